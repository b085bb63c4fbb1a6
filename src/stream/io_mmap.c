/* SPDX-License-Identifier: GPL-3.0-or-later */
/* mmap back end: a range is mapped, copied and unmapped, so that the resident set stays within the plan. A
 * file that was truncated under a mapping raises SIGBUS when it is touched: that can happen in one place here
 * only, and becomes an error. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/base/ledger.h"
#include "src/stream/io_impl.h"

static _Thread_local sigjmp_buf *volatile landing; /* where a SIGBUS of this thread is expected; NULL =
                                                      nowhere */

static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned installed;
static struct sigaction before;

static void on_sigbus(int sig, siginfo_t *info, void *context) {
    if (landing != NULL) siglongjmp(*landing, 1);
    /* Not caused here: act as if this handler were not installed. */
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(sig, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(sig);
    } else {
        signal(sig, SIG_DFL); /* the instruction runs again with the default action */
    }
}

static void install(void) {
    struct sigaction a = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };
    sigemptyset(&a.sa_mask);
    pthread_mutex_lock(&install_lock);
    if (installed++ == 0) sigaction(SIGBUS, &a, &before);
    pthread_mutex_unlock(&install_lock);
}

static void uninstall(void) {
    pthread_mutex_lock(&install_lock);
    if (--installed == 0) sigaction(SIGBUS, &before, NULL);
    pthread_mutex_unlock(&install_lock);
}

/* Copies memory that may raise SIGBUS; a separate function because sigsetjmp may return twice. */
static bool guarded_copy(uint8_t *dst, const uint8_t *src, size_t len) {
    sigjmp_buf here;
    if (sigsetjmp(here, 1) != 0) {
        landing = NULL;
        return false;
    }
    landing = &here;
    atomic_signal_fence(memory_order_seq_cst); /* the handler runs between any two of these */
    memcpy(dst, src, len);
    atomic_signal_fence(memory_order_seq_cst);
    landing = NULL;
    return true;
}

/* Returns how many of the n bytes at off the file has now. A mapping shows zeros after the end of the file,
 * up to the end of the page, and raises SIGBUS beyond that. */
static int64_t what_is_left(const QsfFile *f, uint64_t off, int64_t n) {
    struct stat st;
    if (fstat(f->fd, &st) != 0) return -errno;
    int64_t left = (uint64_t)st.st_size > off ? (int64_t)((uint64_t)st.st_size - off) : 0;
    return left < n ? left : n;
}

static int64_t map_step(QsfIo *io, const QsfIoRead *r, const QsfIoStep *s) {
    const QsfFile *f = io->file[r->file].f;
    uint64_t skip = s->off & (qsf_page_bytes() - 1), len = s->len;
    if (len > QSF_IO_MAP_BYTES - skip) len = QSF_IO_MAP_BYTES - skip;
    void *p = mmap(NULL, (size_t)(skip + len), PROT_READ, MAP_SHARED, f->fd, (off_t)(s->off - skip));
    if (p == MAP_FAILED) return -errno;
    (void)madvise(p, (size_t)(skip + len), MADV_SEQUENTIAL);
    (void)madvise(p, (size_t)(skip + len), MADV_WILLNEED);
    const uint8_t *from = (const uint8_t *)p + skip;
    bool whole = guarded_copy(s->dst, from, (size_t)len);
    int64_t n = what_is_left(f, s->off, (int64_t)len);
    if (!whole && n == (int64_t)len) n = -EIO; /* the file is complete, but cannot be read */
    if (!whole && n > 0 && !guarded_copy(s->dst, from, (size_t)n)) n = -EIO;
    munmap(p, (size_t)(skip + len));
    return n;
}

static int open_mmap(QsfIo *io, const char **why) {
    int rc = qsf_io_threads_open(io, map_step, why);
    if (rc == QSF_OK) install();
    return rc;
}

static void close_mmap(QsfIo *io) {
    if (io->threads == NULL) return;
    qsf_io_threads_close(io);
    uninstall();
}

const QsfIoBackend qsf_io_mmap = {
    .kind = QSF_IO_MMAP,
    .name = "mmap",
    .open = open_mmap,
    .close = close_mmap,
    .start = qsf_io_threads_start,
    .wait = qsf_io_threads_wait,
    .done = qsf_io_threads_done,
};
