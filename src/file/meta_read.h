/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads metadata, encoded as in GGUF: GGUF files and the metadata section of QSF files. Private to the format
 * readers. */
#ifndef QSF_FILE_META_READ_H
#define QSF_FILE_META_READ_H

#include "src/file/source_impl.h"

#define QSF_META_MIN_PAIR 14u /* bytes: key length, one key byte, type, one value byte */

typedef struct QsfMetaReader {
    QsfSource *s;
    QsfCursor c;
    QsfErr *err;
    uint32_t file; /* in s->files, for messages */
} QsfMetaReader;

/* Reads a key or the name of a tensor, of 1 to max bytes without NULs: *out is NUL-terminated, in the memory
 * of r->s. QSF_E_MODEL names the file, `what` and the byte offset; QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_meta_read_name(QsfMetaReader *r, uint64_t max, const char *what, const char **out, uint64_t *len);
/* Initializes t with space for n + more entries and reads n pairs into it. Errors as above. */
int qsf_meta_read_table(QsfMetaReader *r, uint64_t n, uint32_t more, QsfMetaTable *t);
/* Checks that n things of `least` bytes or more can follow. QSF_E_MODEL, which names `what`. */
int qsf_meta_check_count(const QsfMetaReader *r, uint64_t n, uint64_t least, const char *what);
/* Reads a count and that many pairs from c; the table gets space for `more` further entries. The elements of
 * arrays are not read: v.arr.off is their offset in the window of c. Errors as above. */
int qsf_meta_read_pairs(QsfSource *s, QsfCursor *c, uint32_t more, QsfMetaTable *t, QsfErr *err);

#endif
