/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How weights are read from disk: chosen by the settings, passed by value from the plan to the
 * I/O back end. */
#ifndef QSF_PLAN_STREAM_CONFIG_H
#define QSF_PLAN_STREAM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

typedef enum QsfIoKind { QSF_IO_AUTO, QSF_IO_URING, QSF_IO_PREAD, QSF_IO_MMAP, QSF_IO_N } QsfIoKind;
typedef enum QsfIoDirect { QSF_DIRECT_AUTO, QSF_DIRECT_ON, QSF_DIRECT_OFF, QSF_DIRECT_N } QsfIoDirect;

/* Experts are read before they are chosen: always, never, or as long as that pays. */
typedef enum QsfGuessing { QSF_GUESSING_AUTO, QSF_GUESSING_ON, QSF_GUESSING_OFF, QSF_GUESSING_N } QsfGuessing;

typedef struct QsfStreamConfig {
    QsfIoKind kind;     /* AUTO: io_uring where it is built in and allowed, else pread threads */
    QsfIoDirect direct; /* AUTO: O_DIRECT unless the page cache already holds most of the source, or
                           keep_cached */
    bool keep_cached;   /* AUTO only: memory is plentiful and nothing streams, so read through the page cache
                           and leave the file there for a fast next start; decided by the plan */
    QsfGuessing ahead;
} QsfStreamConfig;

#define QSF_IO_THREADS      4u
#define QSF_IO_THREAD_STACK (64u << 10)
#define QSF_IO_MAP_BYTES    (256u << 10) /* mapped at a time by a thread of the mmap back end */

/* Returns the bytes of stacks that a back end of this kind charges. */
uint64_t qsf_io_stack_bytes(QsfIoKind kind);
/* "auto", "uring", "pread", "mmap" / "auto", "on", "off"; parse ignores case and returns _N when unknown. */
const char *qsf_io_kind_name(QsfIoKind k);
QsfIoKind qsf_io_kind_parse(const char *word);
const char *qsf_io_direct_name(QsfIoDirect d);
QsfIoDirect qsf_io_direct_parse(const char *word);
QsfGuessing qsf_guessing_parse(const char *word); /* the same words */

/* Where rows of the embedding table come from: the names of the strategies. Any thread. */

typedef enum QsfEmbedding {
    QSF_EMBEDDING_AUTO,     /* resident if all weights and the table fit, else lru */
    QSF_EMBEDDING_RESIDENT, /* the whole table is in RAM, also while weights stream */
    QSF_EMBEDDING_LRU,      /* no table of its own: rows are read from the file, and the last ones are kept */
    QSF_EMBEDDING_N
} QsfEmbedding;

/* "auto", "resident", "lru"; parse ignores case and returns QSF_EMBEDDING_N when unknown. */
const char *qsf_embedding_name(QsfEmbedding e);
QsfEmbedding qsf_embedding_parse(const char *word);

#endif
