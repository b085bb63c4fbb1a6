/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Conversation files: records are read back as written, and damage anywhere loses only the damaged record. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "qsf_chatlog.h"
#include "src/base/sanitizer.h"

static char home[256];

static int setup(void **state) {
    (void)state;
    snprintf(home, sizeof home, "%s/qsf-chatlog-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(home)) return -1;
    return setenv("XDG_DATA_HOME", home, 1);
}

static int teardown(void **state) {
    (void)state;
    char cmd[300];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", home);
    return system(cmd);
}

typedef struct Seen {
    char log[4096];
    int n;
} Seen;

/* One line of text per record: comparing text shows the difference. */
static bool on_record(void *arg, const QSFLogRecord *r) {
    Seen *s = arg;
    size_t used = strlen(s->log);
    snprintf(s->log + used, sizeof s->log - used, "%d|%s|%s|%.*s|%s|%llu|%u;", (int)r->kind,
             r->role ? r->role : "-", r->name ? r->name : "-", (int)r->len, r->text ? r->text : "",
             r->stop ? r->stop : "-", (unsigned long long)r->seed, r->n);
    s->n++;
    return true;
}

static Seen read_back(const char *name, uint32_t *damaged) {
    Seen s = { { 0 }, 0 };
    char err[256] = "";
    uint32_t d;
    assert_true(qsf_chatlog_read(name, on_record, &s, damaged ? damaged : &d, err, sizeof err));
    return s;
}

static void append(QSFChatLog *l, QSFLogRecord r) {
    char err[256] = "";
    if (r.text && !r.len) r.len = strlen(r.text);
    if (!qsf_chatlog_append(l, &r, err, sizeof err)) fail_msg("%s", err);
}

static QSFChatLog *open_log(const char *name) {
    char err[256] = "";
    QSFChatLog *l = qsf_chatlog_open(name, err, sizeof err);
    if (!l) fail_msg("%s", err);
    return l;
}

static const QSFLogRecord question = { .kind = QSF_LOG_MESSAGE,
                                       .role = "user",
                                       .text = "why?\n\"quoted\" \\ \xc3\xa4" };
static const QSFLogRecord answer = { .kind = QSF_LOG_MESSAGE,
                                     .role = "assistant",
                                     .text = "because",
                                     .stop = "eos",
                                     .seed = UINT64_MAX,
                                     .tokens = 3 };

static void round_trip(void **state) {
    (void)state;
    QSFChatLog *l = open_log("trip");
    append(l, (QSFLogRecord){ .kind = QSF_LOG_MODEL, .text = "m.gguf" });
    append(l, question);
    append(l, (QSFLogRecord){ .kind = QSF_LOG_PART, .text = "beca" });
    append(l, (QSFLogRecord){ .kind = QSF_LOG_SET, .name = "temperature", .text = "0.5" });
    append(l, answer);
    append(l, (QSFLogRecord){ .kind = QSF_LOG_UNDO, .n = 2 });
    append(l, (QSFLogRecord){ .kind = QSF_LOG_CLEAR });
    append(l, (QSFLogRecord){ .kind = QSF_LOG_SYSTEM, .text = "be brief" });
    qsf_chatlog_close(l);
    uint32_t damaged;
    Seen s = read_back("trip", &damaged);
    assert_string_equal(
        s.log,
        "6|-|-|m.gguf|-|0|0;0|user|-|why?\n\"quoted\" \\ \xc3\xa4|-|0|0;5|-|temperature|0.5|-|0|0;"
        "0|assistant|-|because|eos|18446744073709551615|0;2|-|-||-|0|2;3|-|-||-|0|0;4|-|-|be brief|-|0|0;");
    assert_int_equal(damaged, 0);
}

static void killed_while_answering(void **state) {
    (void)state;
    QSFChatLog *l = open_log("killed");
    append(l, question);
    append(l, (QSFLogRecord){ .kind = QSF_LOG_PART, .text = "be" });
    append(l, (QSFLogRecord){ .kind = QSF_LOG_PART, .text = "cause" });
    qsf_chatlog_close(l);
    Seen s = read_back("killed", NULL);
    assert_int_equal(s.n, 3); /* the second part continues the first one */
    assert_non_null(strstr(s.log, "0|assistant|-|be|interrupted|0|0;0|assistant|-|cause|interrupted|0|0;"));
}

static char *path_of(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/qsf/sessions/%s.jsonl", home, name);
    return path;
}

static size_t slurp(const char *name, char *buf, size_t cap) {
    FILE *f = fopen(path_of(name), "rb");
    assert_non_null(f);
    size_t n = fread(buf, 1, cap, f);
    fclose(f);
    return n;
}

static void spill(const char *name, const char *buf, size_t n) {
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(buf, 1, n, f), n);
    fclose(f);
}

/* Cut at every byte: whole lines before the cut are kept, and appending afterwards begins a new line. */
static void cut_at_every_byte(void **state) {
    (void)state;
    char buf[2048];
    QSFChatLog *l = open_log("torn");
    append(l, question);
    append(l, answer);
    qsf_chatlog_close(l);
    size_t n = slurp("torn", buf, sizeof buf);
    for (size_t cut = 0; cut <= n; cut++) {
        int whole = 0;
        for (size_t i = 0; i < cut; i++) whole += buf[i] == '\n';
        /* a record that lacks only its newline is complete too */
        whole += cut > 0 && cut < n && buf[cut] == '\n';
        spill("torn", buf, cut);
        l = open_log("torn");
        append(l, question);
        qsf_chatlog_close(l);
        Seen s = read_back("torn", NULL);
        assert_int_equal(s.n, whole + 1);
    }
}

static void damaged_lines_are_counted(void **state) {
    (void)state;
    static const char text[] =
        "{\"kind\":\"message\",\"role\":\"user\",\"text\":\"one\"}\n\0\0\0\0\nnot json\n"
        "{\"kind\":\"other\"}\n"
        "{\"kind\":\"message\",\"text\":\"no role\"}\n[1]\n\n"
        "{\"kind\":\"message\",\"role\":\"user\",\"text\":\"two\"}\n";
    QSFChatLog *l = open_log("damaged");
    qsf_chatlog_close(l);
    spill("damaged", text, sizeof text - 1);
    uint32_t damaged;
    Seen s = read_back("damaged", &damaged);
    assert_string_equal(s.log, "0|user|-|one|-|0|0;0|user|-|two|-|0|0;");
    assert_int_equal(damaged, 5);
}

static void *look_slowly(void *arg) {
    usleep(100000);
    close(*(int *)arg);
    return NULL;
}

/* A program that looks whether a session is in use, and gets no processor for a while, does not make others
 * refuse it. */
static void a_look_is_waited_for(void **state) {
    (void)state;
    char err[256] = "";
    pthread_t t;
    qsf_chatlog_close(open_log("seen"));
    int fd = open(path_of("seen"), O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    assert_int_equal(pthread_create(&t, NULL, look_slowly, &fd), 0);
    QSFChatLog *l = qsf_chatlog_open("seen", err, sizeof err);
    assert_string_equal(err, "");
    assert_non_null(l);
    pthread_join(t, NULL);
    qsf_chatlog_close(l);
}

static void names_locks_and_copies(void **state) {
    (void)state;
    char err[256] = "";
    assert_true(qsf_chatlog_name_ok("a b-1"));
    assert_false(qsf_chatlog_name_ok(""));
    assert_false(qsf_chatlog_name_ok(".hidden"));
    assert_false(qsf_chatlog_name_ok("../up"));
    assert_false(qsf_chatlog_name_ok("a\nb"));
    assert_null(qsf_chatlog_open("../x", err, sizeof err));
    QSFChatLog *l = open_log("one");
    append(l, question);
    assert_null(qsf_chatlog_open("one", err, sizeof err));
    assert_non_null(strstr(err, "in use"));
    qsf_chatlog_close(l);
    assert_true(qsf_chatlog_copy("one", "two", err, sizeof err));
    assert_false(qsf_chatlog_copy("one", "two", err, sizeof err));
    assert_false(qsf_chatlog_copy("absent", "three", err, sizeof err));
    size_t n;
    QSFLogInfo *list = qsf_chatlog_list(&n);
    assert_true(n >= 2);
    assert_true(list[0].mtime >= list[n - 1].mtime);
    free(list);
    assert_int_equal(read_back("never written", NULL).n, 0);
}

/* A link to a device or a pipe could be read, or waited for, forever. */
static void only_regular_files(void **state) {
    (void)state;
    char err[512] = "";
    uint32_t damaged;
    Seen s = { { 0 }, 0 };
    assert_int_equal(symlink("/dev/zero", path_of("device")), 0);
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    const char *const names[] = { "device", "pipe" };
    for (int i = 0; i < 2; i++) {
        assert_false(qsf_chatlog_read(names[i], on_record, &s, &damaged, err, sizeof err));
        assert_non_null(strstr(err, "not a regular file"));
        err[0] = '\0';
        assert_null(qsf_chatlog_open(names[i], err, sizeof err));
        assert_non_null(strstr(err, "not a regular file"));
    }
}

/* A full disk, simulated by a file size limit: the record is refused as a whole, and written in its place
 * when there is space; part of an answer is not. */
static void full_disk_keeps_the_file_whole(void **state) {
    (void)state;
    struct rlimit old, tight;
    char err[256] = "", big[1500];
    memset(big, 'x', sizeof big);
    QSFChatLog *l = open_log("full");
    append(l, question);
    getrlimit(RLIMIT_FSIZE, &old);
    tight = old;
    tight.rlim_cur = 1024;
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tight);
    QSFLogRecord r = { .kind = QSF_LOG_MESSAGE, .role = "user", .text = big, .len = sizeof big };
    assert_false(qsf_chatlog_append(l, &r, err, sizeof err));
    assert_non_null(strstr(err, "full.jsonl"));
    assert_true(qsf_chatlog_complete(l));
    r.kind = QSF_LOG_PART;
    assert_false(qsf_chatlog_append(l, &r, err, sizeof err));
    assert_int_equal(read_back("full", NULL).n, 1);
    setrlimit(RLIMIT_FSIZE, &old);
    append(l, answer);
    uint32_t damaged;
    Seen s = read_back("full", &damaged);
    assert_int_equal(s.n, 3);
    assert_non_null(strstr(s.log, "xxx"));
    assert_true(strstr(s.log, "xxx") < strstr(s.log, "because"));
    assert_int_equal(damaged, 0);
    setrlimit(RLIMIT_FSIZE, &tight);
    r.kind = QSF_LOG_MESSAGE;
    assert_false(qsf_chatlog_append(l, &r, err, sizeof err));
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, was);
    qsf_chatlog_close(l);
    assert_int_equal(read_back("full", &damaged).n, 4);
}

/* ---- long texts ---- */

typedef struct Text {
    char *data;
    size_t len, cap, pieces;
    QSFLogPart part; /* to be collected */
} Text;

static void collect(void *arg, QSFLogPart part, const char *s, size_t len) {
    Text *t = arg;
    if (part != t->part) return;
    assert_true(t->len + len <= t->cap);
    memcpy(t->data + t->len, s, len);
    t->len += len;
    t->pieces++;
}

typedef struct Head {
    QSFLogRecord r;
    char text[QSF_LOG_HEAD + 1];
} Head;

static bool keep_head(void *arg, const QSFLogRecord *r) {
    Head *h = arg;
    h->r = *r;
    assert_true(r->len <= QSF_LOG_HEAD);
    memcpy(h->text, r->text, r->len);
    return true;
}

/* Of a long text the beginning is reported, up to a whole character; the rest is read in pieces. */
static void long_texts_stay_in_the_file(void **state) {
    (void)state;
    const size_t n = 3000001;
    char *big = malloc(n), err[256];
    static const char unit[] = "a \xc3\xa4\xe6\xbc\xa2\n\"\\\xf0\x9f\x98\x80\x01";
    for (size_t i = 0; i < n; i++) big[i] = unit[i % (sizeof unit - 1)];
    size_t len = n - n % (sizeof unit - 1), lines = n / (sizeof unit - 1);
    QSFChatLog *l = open_log("long");
    append(l, question);
    append(l, (QSFLogRecord){ .kind = QSF_LOG_MESSAGE,
                              .role = "assistant",
                              .stop = "eos",
                              .text = big,
                              .len = len,
                              .reasoning = big,
                              .reasoning_len = len / 2 / 17 * 17 });
    Head h = { 0 };
    uint32_t damaged;
    assert_true(qsf_chatlog_read("long", keep_head, &h, &damaged, err, sizeof err));
    assert_int_equal(h.r.text_bytes, len);
    assert_int_equal(h.r.text_lines, lines);
    assert_true(h.r.len > QSF_LOG_HEAD - 4);
    assert_memory_equal(h.text, big, h.r.len);
    assert_true(((unsigned char)big[h.r.len] & 0xC0) != 0x80);
    for (int which = 0; which < 2; which++) {
        Text t = { .data = malloc(2 * n + 100),
                   .cap = 2 * n + 100,
                   .part = which ? QSF_LOG_IS_REASONING : QSF_LOG_IS_TEXT };
        const uint64_t at[] = { h.r.at, 0, h.r.at };
        assert_true(qsf_chatlog_texts(l, at, 3, collect, &t));
        const size_t one = which ? h.r.reasoning_bytes : len, first = which           ? 0
                                                                      : question.text ? strlen(question.text)
                                                                                      : 0;
        assert_int_equal(t.len, 2 * one + first);
        assert_memory_equal(t.data, big, one);
        assert_memory_equal(t.data + one + first, big, one);
        assert_true(t.pieces < 3000);
        free(t.data);
    }
    const uint64_t wrong[] = { h.r.at + 1 };
    Text none = { .data = big, .cap = 0, .part = QSF_LOG_IS_REASONING };
    assert_false(qsf_chatlog_texts(l, wrong, 1, collect, &none));
    qsf_chatlog_close(l);
    free(big);
}

static void repeat(FILE *f, const char *s, int n) {
    for (int i = 0; i < n; i++) fputs(s, f);
}

/* Whatever is in the file, and however long a line is, memory does not grow. */
static void reading_takes_no_memory(void **state) {
    (void)state;
    qsf_chatlog_close(open_log("bomb"));
    FILE *f = fopen(path_of("bomb"), "w");
    assert_non_null(f);
    repeat(f, "[", 100000), repeat(f, "\n{\"k\":[[[[[[[1]]]]]]],\"a\":\"", 1), repeat(f, "\\u0061", 1000000);
    repeat(f, "\"}\n", 1), repeat(f, "{\"kind\":\"message\",\"role\":\"user\",\"text\":\"", 1);
    repeat(f, "\\u00e4 ", 1000000), repeat(f, "\"}\n", 1);
    repeat(f, "{\"kind\":\"part\",\"text\":\"x\"}\n", 100000);
    repeat(f, "{\"x\":{\"y\":[1,2,3]},", 200000), fputs("\n", f);
    fclose(f);
    assert_int_equal(truncate(path_of("bomb"), 200 << 20), 0); /* NULs, as after a crash */
    pid_t pid = fork();
    if (pid == 0) {
        unsigned long pages = 0;
        FILE *m = fopen("/proc/self/statm", "r");
        if (!m || fscanf(m, "%lu", &pages) != 1) _exit(2);
        fclose(m);
        const rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 20);
        const struct rlimit limit = { most, most };
#if !QSF_ADDRESS_SANITIZER && !QSF_THREAD_SANITIZER
        if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(3);
#endif
        (void)limit;
        Head h = { 0 };
        uint32_t damaged = 0;
        char err[256];
        bool ok = qsf_chatlog_read("bomb", keep_head, &h, &damaged, err, sizeof err);
        _exit(!ok ? 4 : damaged != 4 ? 5 : strcmp(h.r.role, "assistant") != 0 ? 6 : 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(truncate(path_of("bomb"), (off_t)3 << 30), 0);
    char err[512] = "";
    uint32_t damaged;
    Head h = { 0 };
    assert_false(qsf_chatlog_read("bomb", keep_head, &h, &damaged, err, sizeof err));
    assert_non_null(strstr(err, "it has 3072.0 MB, and a session has at most 256"));
    unlink(path_of("bomb"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(killed_while_answering),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(damaged_lines_are_counted),
        cmocka_unit_test(a_look_is_waited_for),
        cmocka_unit_test(names_locks_and_copies),
        cmocka_unit_test(only_regular_files),
        cmocka_unit_test(full_disk_keeps_the_file_whole),
        cmocka_unit_test(long_texts_stay_in_the_file),
        cmocka_unit_test(reading_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
