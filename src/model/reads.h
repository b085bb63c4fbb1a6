/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What opening a model read: the metadata keys that were looked for, the values that were used instead of
 * absent ones, and the optional tensors that the file does not have. QsfKeys and QsfBuilder write it;
 * --inspect and --verbose show it. Complete once the model is open; then any thread may read it. */
#ifndef QSF_MODEL_READS_H
#define QSF_MODEL_READS_H

#include "src/base/arena.h"
#include "src/base/strbuf.h"
#include "src/file/source.h"

/* What was used instead of an absent key. */
typedef struct QsfReadValue {
    QsfMetaType type; /* U32, F32, BOOL or STRING; QSF_META_N = no value: a part without it, or
                         a rule of the family */
    union {
        uint32_t u;
        float f;
        bool b;
        const char *s; /* static */
    } v;
} QsfReadValue;

typedef struct QsfReadKey QsfReadKey;
typedef struct QsfAbsentTensor QsfAbsentTensor;

typedef struct QsfReads {
    QsfArena *arena;             /* NULL: nothing is recorded */
    QsfReadKey *keys, *last_key; /* in the order of the first look */
    QsfAbsentTensor *tensors, *last_tensor;
    bool failed; /* out of memory */
} QsfReads;

/* Record that "<arch>.<name>" was looked for; both are static. absent NULL: the file has the key. A later
 * value replaces one of type QSF_META_N. reads may be NULL. */
void qsf_reads_key(QsfReads *reads, const char *arch, const char *name, const QsfReadValue *absent);
/* Records that an optional tensor is absent; block: its number, or QSF_NONE (program.h) if it
 * is not of a block. */
void qsf_reads_tensor(QsfReads *reads, const char *name, uint32_t block);

/* Appends what was defaulted and what is absent: as two tables of text, or as the two members
 * "defaults" (an object) and "absent_tensors" (an array) of a JSON object, each after a comma.
 * n_blocks: of the file that are run. */
void qsf_reads_put_text(QsfStrbuf *out, const QsfReads *reads, uint32_t n_blocks);
void qsf_reads_put_json(QsfStrbuf *out, const QsfReads *reads);

/* Calls each(arg, key) for the keys of src that begin with "<arch>.", that nothing looked for, and that are
 * not known to have no effect on text. Returns their number. each may be NULL. */
uint32_t qsf_reads_unknown(const QsfReads *reads, const QsfSource *src, const char *arch,
                           void (*each)(void *arg, const char *key), void *arg);
/* Appends these keys, cleaned for display, separated by commas; nothing if there are none.
 * Returns their number. */
uint32_t qsf_reads_put_unknown(QsfStrbuf *out, const QsfReads *reads, const QsfSource *src, const char *arch);

#endif
