/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Properties of a file and its disk, measured before the weights are read. */

#include "src/base/clock.h"
#include "src/base/platform.h"
#include "src/stream/io.h"

#define SAMPLES       96u
#define SAMPLE_BYTES  (32u << 10) /* small files need fewer: the system reads ahead more than that */
#define PIECE         (1u << 20)
#define MEASURE_MAX   (64u << 20)
#define IN_FLIGHT_MAX 8u

static uint64_t all_bytes(const QsfSource *src) {
    uint64_t all = 0;
    for (uint32_t f = 0; f < qsf_source_n_files(src); f++) all += qsf_source_file(src, f)->size;
    return all;
}

/* Returns sample i of n, spread evenly over all files of the source; phase in [0,1) is the position within
 * the n-th part. */
static const QsfFile *spread(const QsfSource *src, uint64_t i, uint64_t n, double phase, uint64_t *off) {
    const uint64_t all = all_bytes(src);
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
static void advise(const QsfSource *src, QsfAdvice advice) {
    for (uint32_t f = 0; f < qsf_source_n_files(src); f++)
        qsf_os_advise(qsf_source_file(src, f)->fd, 0, 0, advice);
}

double qsf_io_cached_share(const QsfSource *src) {
    unsigned hits = 0, asked = 0;
    double phase = fresh_phase();
    const uint64_t enough = all_bytes(src) / SAMPLE_BYTES + 1, n = enough < SAMPLES ? enough : SAMPLES;
    advise(src, QSF_ADVICE_RANDOM);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t off;
        const QsfFile *f = spread(src, i, n, phase, &off);
        if (f == NULL) continue;
        asked++;
        hits += qsf_os_is_cached(f->fd, f->path, off);
    }
    advise(src, QSF_ADVICE_NORMAL);
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
