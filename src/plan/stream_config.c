/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of the ways to read, and stack sizes of the I/O back ends. */
#include "src/plan/stream_config.h"

#include <strings.h>

static const char *const kind_names[QSF_IO_N] = { "auto", "uring", "pread", "mmap" };
static const char *const embedding_names[QSF_EMBEDDING_N] = { "auto", "resident", "lru" };
static const char *const direct_names[QSF_DIRECT_N] = { "auto", "on", "off" };

const char *qsf_io_kind_name(QsfIoKind k) { return (unsigned)k < QSF_IO_N ? kind_names[k] : "unknown"; }
const char *qsf_io_direct_name(QsfIoDirect d) {
    return (unsigned)d < QSF_DIRECT_N ? direct_names[d] : "unknown";
}

static unsigned find_word(const char *const *names, unsigned n, const char *word) {
    unsigned i = 0;
    while (i < n && strcasecmp(names[i], word) != 0) i++;
    return i;
}

QsfIoKind qsf_io_kind_parse(const char *word) { return (QsfIoKind)find_word(kind_names, QSF_IO_N, word); }
QsfIoDirect qsf_io_direct_parse(const char *word) {
    return (QsfIoDirect)find_word(direct_names, QSF_DIRECT_N, word);
}

QsfGuessing qsf_guessing_parse(const char *word) {
    return (QsfGuessing)find_word(direct_names, QSF_GUESSING_N, word);
}

uint64_t qsf_io_stack_bytes(QsfIoKind kind) {
    return QSF_IO_THREADS * QSF_IO_THREAD_STACK +
           (kind == QSF_IO_MMAP ? QSF_IO_THREADS * QSF_IO_MAP_BYTES : 0);
}

const char *qsf_embedding_name(QsfEmbedding e) {
    return (unsigned)e < QSF_EMBEDDING_N ? embedding_names[e] : "unknown";
}

QsfEmbedding qsf_embedding_parse(const char *word) {
    return (QsfEmbedding)find_word(embedding_names, QSF_EMBEDDING_N, word);
}
