/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Properties of a file and its disk, measured before the weights are read. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/stream/io.h"

#define SAMPLES       96u
#define PIECE         (1u << 20)
#define MEASURE_MAX   (64u << 20)
#define IN_FLIGHT_MAX 8u

/* linux/magic.h: file systems whose files are memory. */
static bool in_memory(int fd) {
    struct statfs s;
    if (fstatfs(fd, &s) != 0) return false;
    unsigned long type = (unsigned long)s.f_type & 0xFFFFFFFFu;
    return type == 0x01021994u || type == 0x858458F6u; /* tmpfs, ramfs */
}

/* Is mincore reliable? Linux reports the true state only to the owner of a file and to processes that may
 * write it; to others it reports every page as resident. */
static bool mincore_is_reliable(const QsfFile *f) {
    struct stat s;
    if (fstat(f->fd, &s) == 0 && s.st_uid == geteuid()) return true;
    return faccessat(AT_FDCWD, f->path, W_OK, AT_EACCESS) == 0;
}

/* Is the byte in memory? Reads nothing. -1 when unknown. */
static int in_core(int fd, uint64_t off) {
    unsigned char is = 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)(off - off % page));
    if (at == MAP_FAILED) return -1;
    int rc = mincore(at, page, &is);
    munmap(at, page);
    return rc == 0 ? is & 1 : -1;
}

/* Can the byte be read without waiting for a disk? A disk that answers immediately looks like memory here. */
static bool read_without_wait(int fd, uint64_t off) {
#ifdef RWF_NOWAIT
    char byte;
    struct iovec v = { &byte, 1 };
    return preadv2(fd, &v, 1, (off_t)off, RWF_NOWAIT) == 1;
#else
    (void)fd;
    (void)off;
    return false;
#endif
}

static bool cached_at(const QsfFile *f, bool told, uint64_t off) {
    int in = told ? in_core(f->fd, off) : -1;
    return in >= 0 ? in == 1 : read_without_wait(f->fd, off);
}

/* Returns sample i of n, spread evenly over all files of the source; phase in [0,1) is the position within
 * the n-th part. */
static const QsfFile *spread(const QsfSource *src, uint64_t i, uint64_t n, double phase, uint64_t *off) {
    uint64_t all = 0;
    for (uint32_t f = 0; f < qsf_source_n_files(src); f++) all += qsf_source_file(src, f)->size;
    uint64_t at = (uint64_t)((double)all * ((double)i + phase) / (double)n);
    for (uint32_t f = 0; f < qsf_source_n_files(src); f++) {
        const QsfFile *file = qsf_source_file(src, f);
        *off = at;
        if (at < file->size) return file;
        at -= file->size;
    }
    return NULL;
}

/* Where mincore is not reliable, Linux answers "would wait" only after it has requested the page from the
 * disk, so a second query at the same places finds the pages of the first one. Each query therefore samples
 * different places (splitmix64 of the time). */
static double fresh_phase(void) {
    uint64_t z = qsf_now_ns() + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* A query about one byte must not cause readahead, which is megabytes on some disks: 96 queries would read
 * much of the file. With random access announced, Linux fetches only the requested page. The advice applies
 * to the open file and is reset afterwards. */
static void advise(const QsfSource *src, int advice) {
    for (uint32_t f = 0; f < qsf_source_n_files(src); f++)
        posix_fadvise(qsf_source_file(src, f)->fd, 0, 0, advice);
}

double qsf_io_cached_share(const QsfSource *src) {
    unsigned hits = 0, asked = 0;
    double phase = fresh_phase();
    advise(src, POSIX_FADV_RANDOM);
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint64_t off;
        const QsfFile *f = spread(src, i, SAMPLES, phase, &off);
        if (f == NULL) continue;
        asked++;
        hits += in_memory(f->fd) || cached_at(f, mincore_is_reliable(f), off);
    }
    advise(src, POSIX_FADV_NORMAL);
    return asked > 0 ? (double)hits / asked : 0;
}

/* Sets r to window i of n evenly spread windows of the source. */
static bool place(const QsfSource *src, unsigned i, unsigned n, QsfIoRead *r) {
    uint64_t off;
    const QsfFile *f = spread(src, i, n, 0.5, &off);
    if (f == NULL || f->size < PIECE) return false;
    if (off > f->size - PIECE) off = f->size - PIECE;
    r->off = off & ~(uint64_t)(QSF_IO_WINDOW - 1);
    r->len = PIECE;
    for (r->file = 0; qsf_source_file(src, r->file) != f;) r->file++;
    return true;
}

double qsf_io_measure(const QsfIoOptions *o, uint64_t max_ns) {
    QsfErr err = { 0 };
    QsfIo *io;
    QsfIoRead read[IN_FLIGHT_MAX] = { { 0 } };
    unsigned most = (unsigned)(o->buffer_bytes / PIECE), n = MEASURE_MAX / PIECE, begun = 0, ended = 0;
    uint64_t bytes = 0;
    if (most > IN_FLIGHT_MAX) most = IN_FLIGHT_MAX;
    if (o->buffers == NULL || most == 0 || qsf_io_create(&io, o, &err) != QSF_OK) return 0;
    uint64_t t0 = qsf_now_ns();
    while (ended < n) {
        while (begun < n && begun - ended < most && qsf_now_ns() - t0 < max_ns) {
            QsfIoRead *r = &read[begun % most];
            *r = (QsfIoRead){ .dst = o->buffers + (size_t)(begun % most) * PIECE };
            if (!place(o->src, begun, n, r)) break;
            qsf_io_start(io, r);
            begun++;
        }
        if (ended == begun) break;
        if (qsf_io_wait(io, &read[ended % most], &err) == QSF_OK) bytes += read[ended % most].got;
        ended++;
    }
    uint64_t ns = qsf_now_ns() - t0;
    qsf_io_destroy(io);
    return ns > 0 ? (double)bytes * 1e9 / (double)ns : 0;
}
