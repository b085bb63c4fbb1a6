/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Asynchronous reads of model files behind one interface: io_uring, pread threads or mmap, past the page
 * cache (O_DIRECT) or through it. A back end only moves bytes: who reads what and when is the loader's
 * business. All functions of one QsfIo are called from one thread (the loader). */
#ifndef QSF_STREAM_IO_H
#define QSF_STREAM_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/ledger.h"
#include "src/file/source.h"
#include "src/plan/stream_config.h"

#define QSF_IO_WINDOW 4096u /* windows start, end and lie in memory at multiples of this */
#define QSF_IO_DEPTH  16u   /* most reads in flight */

/* One read, owned by the caller, who keeps it and dst in place until it is done. */
typedef struct QsfIoRead {
    uint32_t file; /* part of the source */
    uint64_t off;  /* multiple of QSF_IO_WINDOW, inside the file */
    uint64_t len;  /* multiple of QSF_IO_WINDOW, > 0; the last window of a file may reach past its end:
                      what lies there is not read and not written */
    uint8_t *dst;  /* (len), aligned to QSF_IO_WINDOW */
    /* The back end's: */
    uint64_t got;          /* bytes in the buffer */
    int error;             /* errno value, 0 = none */
    bool busy;             /* started and not done */
    uint64_t start_ns, ns; /* when it was started; how long it took */
} QsfIoRead;

typedef struct QsfIoOptions {
    const QsfSource *src; /* outlives the back end */
    QsfStreamConfig config;
    uint8_t *buffers; /* memory that most reads go to, registered where allowed; may be NULL */
    uint64_t buffer_bytes;
    QsfLedger *ledger; /* STACKS for threads, KERNEL is planned for rings */
} QsfIoOptions;

typedef struct QsfIo QsfIo;

/* A requested back end or mode that is not available falls back (uring -> pread,
 * direct -> buffered, mmap -> pread) and qsf_io_notice says so. QSF_E_RUNTIME: not even pread
 * threads can be started; QSF_E_BUDGET. */
int qsf_io_create(QsfIo **out, const QsfIoOptions *o, QsfErr *err);
/* Waits for reads in flight first. NULL allowed. */
void qsf_io_destroy(QsfIo *io);

/* Starts r (async_read_start). At most QSF_IO_DEPTH may be in flight. Never fails: an error is the wait's. */
void qsf_io_start(QsfIo *io, QsfIoRead *r);
/* Blocks until r is done (async_read_wait). QSF_E_RUNTIME names file and byte offset: an I/O error, or the
 * file ended before the size it had when it was opened; all faults of the file layer are seen here. Short
 * reads before that are continued. Restarts on EINTR. */
int qsf_io_wait(QsfIo *io, QsfIoRead *r, QsfErr *err);
/* Would qsf_io_wait return at once? */
bool qsf_io_done(QsfIo *io, QsfIoRead *r);

/* "io_uring, direct", "pread, buffered", "mmap": for --verbose, the pane and receipts. Static. */
const char *qsf_io_name(const QsfIo *io);
/* Why it is not what was asked for, or ""; a sentence. Owned by io. */
const char *qsf_io_notice(const QsfIo *io);

/* --- io_probe.c: what a file and its disk are like --- */

/* Share of the source's bytes that the page cache holds, from samples spread over it; 1 where a file system
 * keeps files in memory (tmpfs). Nothing is read where mincore tells (the file is ours, or we may write it);
 * elsewhere preadv2 with RWF_NOWAIT is asked, which costs the disk at most a page per sample, asks at other
 * places each time, and takes a disk that answers at once for memory. 0 where neither tells. */
double qsf_io_cached_share(const QsfSource *src);

/* Bytes per second of large reads, several in flight, at places spread over the source, as qsf_io_create with
 * these options would read: at most max_ns and 64 MiB. buffers must hold at least 2 MiB (page-aligned). 0
 * when it cannot be measured. */
double qsf_io_measure(const QsfIoOptions *o, uint64_t max_ns);

#endif
