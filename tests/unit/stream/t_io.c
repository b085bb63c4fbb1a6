/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Back ends of io.h: each reads exactly the bytes of the file, detects faults of the file layer and a file
 * that becomes shorter, and reports what it fell back to. */
#include "tests/harness/qsf_test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/stream/io.h"
#include "tests/harness/gguf_build.h"

#define W       QSF_IO_WINDOW
#define BUFFERS (64u * W)

typedef struct Rig {
    QsfLedger ledger;
    QsfSource *src;
    const QsfFile *file;
    QsfIo *io;
    uint8_t *mem; /* (BUFFERS) registered, followed by as much that is not */
    char path[512];
} Rig;

static uint64_t file_bytes;
static uint8_t *whole;

/* A model with a tensor of about 300 KB and a partial last window. */
static void write_model(const char *path) {
    const QsfTinySpec spec = {
        .layers = 2, .hidden = 96, .ffn = 300, .heads = 4, .kv_heads = 2, .vocab = 301
    };
    assert_int_equal(qsf_test_write_tiny_llama(path, &spec), 0);
}

static void read_whole(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    file_bytes = (uint64_t)st.st_size;
    free(whole);
    whole = malloc(file_bytes);
    assert_int_equal(read(fd, whole, file_bytes), file_bytes);
    close(fd);
}

static void open_source(Rig *r, const char *path) {
    QsfErr err = { 0 };
    memset(r, 0, sizeof *r);
    snprintf(r->path, sizeof r->path, "%s", path);
    qsf_ledger_init(&r->ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&r->src, path, &r->ledger, &err), &err);
    r->file = qsf_source_file(r->src, 0);
    r->mem = mmap(NULL, 2 * BUFFERS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(r->mem, MAP_FAILED);
}

static void open_io(Rig *r, QsfIoKind kind, QsfIoDirect direct) {
    QsfErr err = { 0 };
    const QsfIoOptions o = { .src = r->src,
                             .config = { .kind = kind, .direct = direct },
                             .buffers = r->mem,
                             .buffer_bytes = BUFFERS,
                             .ledger = &r->ledger };
    qsf_test_expect_ok(qsf_io_create(&r->io, &o, &err), &err);
}

static void open_rig(Rig *r, QsfIoKind kind, QsfIoDirect direct) {
    char path[512];
    snprintf(path, sizeof path, "%s", qsf_test_tmp("io.gguf"));
    write_model(path);
    read_whole(path);
    open_source(r, path);
    open_io(r, kind, direct);
}

static void close_rig(Rig *r) {
    qsf_io_destroy(r->io);
    qsf_source_close(r->src);
    munmap(r->mem, 2 * BUFFERS);
    assert_int_equal(r->ledger.total, 0);
    qsf_ledger_destroy(&r->ledger);
    unlink(r->path);
}

static void check_bytes(const QsfIoRead *r) {
    uint64_t left = file_bytes - r->off, n = r->len < left ? r->len : left;
    assert_int_equal(r->got, n);
    assert_memory_equal(r->dst, whole + r->off, n);
}

#define EACH_BACKEND(kind, direct)                              \
    for (QsfIoKind kind = QSF_IO_AUTO; kind < QSF_IO_N; kind++) \
        for (QsfIoDirect direct = QSF_DIRECT_AUTO; direct < QSF_DIRECT_N; direct++)

/* Every window of the file, one and several at a time, to either kind of memory. */
static void test_bytes(void **state) {
    (void)state;
    EACH_BACKEND(kind, direct) {
        Rig r;
        QsfErr err = { 0 };
        open_rig(&r, kind, direct);
        uint64_t windows = (file_bytes + W - 1) / W;
        for (uint64_t n = 1; n <= 8; n += 3) {
            for (uint64_t at = 0; at < windows; at++) {
                uint64_t len = at + n <= windows ? n : windows - at;
                QsfIoRead rd = { .off = at * W, .len = len * W, .dst = r.mem + (at % 2 ? BUFFERS : 0) };
                memset(rd.dst, 0xA5, rd.len);
                qsf_io_start(r.io, &rd);
                qsf_test_expect_ok(qsf_io_wait(r.io, &rd, &err), &err);
                assert_false(rd.busy);
                check_bytes(&rd);
            }
        }
        close_rig(&r);
    }
}

/* The maximum number in flight, waited for in any order. */
static void test_in_flight(void **state) {
    (void)state;
    EACH_BACKEND(kind, direct) {
        Rig r;
        QsfErr err = { 0 };
        open_rig(&r, kind, direct);
        for (unsigned round = 0; round < 12; round++) {
            QsfIoRead rd[QSF_IO_DEPTH];
            for (unsigned i = 0; i < QSF_IO_DEPTH; i++) {
                uint64_t at = (round * 7 + i * 3) % ((file_bytes + W - 1) / W);
                rd[i] = (QsfIoRead){ .off = at * W,
                                     .len = W,
                                     .dst = r.mem + (size_t)i * W + (round % 2) * BUFFERS };
                qsf_io_start(r.io, &rd[i]);
            }
            for (unsigned i = 0; i < QSF_IO_DEPTH; i++) {
                QsfIoRead *x = &rd[(i * 5 + round) % QSF_IO_DEPTH];
                qsf_test_expect_ok(qsf_io_wait(r.io, x, &err), &err);
                check_bytes(x);
            }
        }
        /* Reads in flight have ended when the back end is destroyed. */
        QsfIoRead last = { .off = 0, .len = 4 * W, .dst = r.mem };
        qsf_io_start(r.io, &last);
        qsf_io_destroy(r.io);
        r.io = NULL;
        close_rig(&r);
    }
}

/* Every back end reports a fault of the file layer at its byte, and works again when the fault ends. */
static void test_faults(void **state) {
    (void)state;
    EACH_BACKEND(kind, direct) {
        Rig r;
        open_rig(&r, kind, direct);
        for (uint64_t fault = 3 * W - 1; fault < 5 * W + 100; fault += 700) {
            for (int e = 0; e <= EIO; e += EIO) {
                QsfErr err = { 0 };
                char where[64];
                QsfIoRead rd = { .off = 2 * W, .len = 4 * W, .dst = r.mem };
                qsf_file_inject_fault(fault, e);
                qsf_io_start(r.io, &rd);
                assert_int_equal(qsf_io_wait(r.io, &rd, &err), QSF_E_RUNTIME);
                qsf_file_inject_fault(UINT64_MAX, 0);
                qsf_test_expect_err(&err, QSF_E_RUNTIME, r.path);
                (void)snprintf(where, sizeof where, "ends at byte offset %llu,", (unsigned long long)fault);
                qsf_test_expect_err(&err, QSF_E_RUNTIME, e == 0 ? where : "read error at byte offset");
                qsf_err_clear(&err);
                qsf_io_start(r.io, &rd);
                qsf_test_expect_ok(qsf_io_wait(r.io, &rd, &err), &err);
                check_bytes(&rd);
            }
        }
        close_rig(&r);
    }
}

/* The file is truncated: an error that names its new end, never a signal. */
static void test_truncated(void **state) {
    (void)state;
    EACH_BACKEND(kind, direct) {
        Rig r;
        QsfErr err = { 0 };
        open_rig(&r, kind, direct);
        uint64_t end = 3 * W + 500;
        QsfIoRead head = { .off = 0, .len = 3 * W, .dst = r.mem },
                  tail = { .off = 2 * W, .len = 6 * W, .dst = r.mem };
        QsfIoRead gone = { .off = 20 * W, .len = 2 * W, .dst = r.mem };
        assert_int_equal(truncate(r.path, (off_t)end), 0);
        qsf_io_start(r.io, &head);
        qsf_test_expect_ok(qsf_io_wait(r.io, &head, &err), &err);
        check_bytes(&head);
        qsf_io_start(r.io, &tail);
        assert_int_equal(qsf_io_wait(r.io, &tail, &err), QSF_E_RUNTIME);
        qsf_test_expect_err(&err, QSF_E_RUNTIME, r.path);
        qsf_test_expect_err(&err, QSF_E_RUNTIME, "ends at byte offset 12788,");
        qsf_err_clear(&err);
        qsf_io_start(r.io, &gone);
        assert_int_equal(qsf_io_wait(r.io, &gone, &err), QSF_E_RUNTIME);
        qsf_test_expect_err(&err, QSF_E_RUNTIME, "offset");
        close_rig(&r);
    }
}

static bool has_direct(const Rig *r) {
    int fd = qsf_file_open_direct(r->file);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static void test_names(void **state) {
    (void)state;
    Rig r;
    open_rig(&r, QSF_IO_PREAD, QSF_DIRECT_OFF);
    assert_string_equal(qsf_io_name(r.io), "pread, buffered");
    assert_string_equal(qsf_io_notice(r.io), "");
    bool direct = has_direct(&r);
    close_rig(&r);
    open_rig(&r, QSF_IO_PREAD, QSF_DIRECT_ON);
    assert_string_equal(qsf_io_name(r.io), direct ? "pread, direct" : "pread, buffered");
    assert_int_equal(qsf_io_notice(r.io)[0] == '\0', direct);
    close_rig(&r);
    open_rig(&r, QSF_IO_PREAD, QSF_DIRECT_AUTO); /* just written: cached */
    assert_string_equal(qsf_io_name(r.io), "pread, buffered");
    close_rig(&r);
    open_rig(&r, QSF_IO_MMAP, QSF_DIRECT_ON);
    assert_string_equal(qsf_io_name(r.io), "mmap");
    close_rig(&r);
    open_rig(&r, QSF_IO_URING, QSF_DIRECT_OFF);
    if (strcmp(qsf_io_name(r.io), "io_uring, buffered") != 0) {
        assert_string_equal(qsf_io_name(r.io), "pread, buffered");
        assert_non_null(strstr(qsf_io_notice(r.io), "io_uring"));
    }
    close_rig(&r);
}

static void test_words(void **state) {
    (void)state;
    for (QsfIoKind k = QSF_IO_AUTO; k < QSF_IO_N; k++)
        assert_int_equal(qsf_io_kind_parse(qsf_io_kind_name(k)), k);
    for (QsfIoDirect d = QSF_DIRECT_AUTO; d < QSF_DIRECT_N; d++)
        assert_int_equal(qsf_io_direct_parse(qsf_io_direct_name(d)), d);
    assert_int_equal(qsf_io_kind_parse("aio"), QSF_IO_N);
    assert_int_equal(qsf_io_direct_parse(""), QSF_DIRECT_N);
    assert_int_equal(qsf_io_kind_parse("URING"), QSF_IO_URING);
}

/* Files in memory have no O_DIRECT in older kernels; with any kernel, the bytes are read. */
static void test_tmpfs(void **state) {
    (void)state;
    char path[64];
    Rig r;
    QsfErr err = { 0 };
    snprintf(path, sizeof path, "/dev/shm/qsf-io-%d.gguf", (int)getpid());
    if (access("/dev/shm", W_OK) != 0) {
        print_message("skip: no /dev/shm to write to\n");
        skip();
    }
    write_model(path);
    read_whole(path);
    open_source(&r, path);
    assert_true(qsf_io_cached_share(r.src) > 0.99);
    open_io(&r, QSF_IO_AUTO, QSF_DIRECT_ON);
    QsfIoRead rd = { .off = W, .len = 3 * W, .dst = r.mem };
    qsf_io_start(r.io, &rd);
    qsf_test_expect_ok(qsf_io_wait(r.io, &rd, &err), &err);
    check_bytes(&rd);
    if (strstr(qsf_io_name(r.io), "direct") == NULL) assert_non_null(strstr(qsf_io_notice(r.io), "O_DIRECT"));
    close_rig(&r);
}

/* io_uring_setup returns EPERM from here on, as in container runtimes. */
static bool forbid_uring(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = { sizeof code / sizeof *code, code };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

/* In a child: 0 = success. */
static int run_forbidden(const char *path) {
    QsfErr err = { 0 };
    for (QsfIoKind kind = QSF_IO_AUTO; kind <= QSF_IO_URING; kind++) {
        Rig r;
        open_source(&r, path);
        open_io(&r, kind, QSF_DIRECT_OFF);
        if (strcmp(qsf_io_name(r.io), "pread, buffered") != 0) return 1;
        if (strstr(qsf_io_notice(r.io), "io_uring") == NULL && QSF_HAVE_URING) return 2;
        QsfIoRead rd = { .off = 0, .len = 2 * W, .dst = r.mem };
        qsf_io_start(r.io, &rd);
        if (qsf_io_wait(r.io, &rd, &err) != QSF_OK || rd.got != 2 * W) return 3;
        if (memcmp(r.mem, whole, 2 * W) != 0) return 4;
        qsf_io_destroy(r.io);
    }
    return 0;
}

static void test_forbidden(void **state) {
    (void)state;
    int status;
    char path[512]; /* its name contains the process id: made before the fork */
    snprintf(path, sizeof path, "%s", qsf_test_tmp("io.gguf"));
    write_model(path);
    read_whole(path);
    pid_t pid = fork();
    if (pid == 0) _exit(forbid_uring() ? run_forbidden(path) : 77);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    unlink(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skip: no seccomp filter can be installed here\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A process that mincore does not inform: neither the owner of the file nor allowed to write it. */
static void probe_as_stranger(const QsfSource *src) {
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(setuid(65534) != 0 ? 77 : qsf_io_cached_share(src) > 0.99 ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        print_message("skip: only root can act as another user\n");
    else
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_probe(void **state) {
    (void)state;
    Rig r;
    open_rig(&r, QSF_IO_AUTO, QSF_DIRECT_AUTO);
    assert_true(qsf_io_cached_share(r.src) > 0.99);
    if (!qsf_test_emulated("files of others")) probe_as_stranger(r.src);
    int fd = open(r.path, O_RDONLY);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
    double cold = qsf_io_cached_share(r.src);
    if (cold > 0.5) print_message("skip: this file system does not drop cached pages\n");
    close_rig(&r);
}

/* A query does not change the answer: pages that one query loads are not counted by the next one. */
/* The part of a file's pages that is in memory. */
static double resident_share(const char *path, size_t size) {
    size_t pages = (size + 4095) / 4096, in = 0;
    unsigned char *is = malloc(pages);
    int fd = open(path, O_RDONLY);
    void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(fd >= 0 && is != NULL && at != MAP_FAILED);
    assert_int_equal(mincore(at, size, is), 0);
    for (size_t i = 0; i < pages; i++) in += is[i] & 1u;
    munmap(at, size);
    close(fd);
    free(is);
    return (double)in / (double)pages;
}

static void test_probe_again(void **state) {
    (void)state;
    Rig r;
    char path[512];
    snprintf(path, sizeof path, "%s", qsf_test_tmp("cold.gguf"));
    const QsfTinySpec spec = { .layers = 3, .hidden = 1024, .ffn = 2048, .heads = 8, .kv_heads = 8 };
    assert_int_equal(qsf_test_write_tiny_llama(path, &spec), 0);
    open_source(&r, path);
    int fd = open(path, O_RDONLY);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
    if (qsf_io_cached_share(r.src) >= 0.1) {
        print_message("skip: this file system does not drop cached pages\n");
    } else {
        assert_true(qsf_io_cached_share(r.src) < 0.1);
        usleep(20000);
        assert_true(qsf_io_cached_share(r.src) < 0.1);
        usleep(20000);
        double left = resident_share(path, (size_t)qsf_source_file(r.src, 0)->size);
        assert_true(left < 0.1);
    }
    close_rig(&r);
}

/* A file of a few megabytes: the figure is based on bytes that were really read. */
static void test_measure(void **state) {
    (void)state;
    Rig r;
    char path[512];
    snprintf(path, sizeof path, "%s", qsf_test_tmp("big.gguf"));
    const QsfTinySpec spec = { .layers = 2, .hidden = 512, .ffn = 1024, .heads = 8, .kv_heads = 8 };
    assert_int_equal(qsf_test_write_tiny_llama(path, &spec), 0);
    open_source(&r, path);
    const size_t bytes = 4u << 20;
    void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EACH_BACKEND(kind, direct) {
        QsfIoOptions o = { .src = r.src,
                           .config = { .kind = kind, .direct = direct },
                           .buffers = mem,
                           .buffer_bytes = bytes,
                           .ledger = &r.ledger };
        assert_true(qsf_io_measure(&o, 20000000u) > 0);
        o.buffers = NULL;
        assert_true(qsf_io_measure(&o, 20000000u) == 0);
    }
    munmap(mem, bytes);
    close_rig(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),       cmocka_unit_test(test_in_flight), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_truncated),   cmocka_unit_test(test_names),     cmocka_unit_test(test_words),
        cmocka_unit_test(test_tmpfs),       cmocka_unit_test(test_forbidden), cmocka_unit_test(test_probe),
        cmocka_unit_test(test_probe_again), cmocka_unit_test(test_measure),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    free(whole);
    return rc;
}
