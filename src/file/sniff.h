/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The first bytes of a file, by which its format is detected. Private to the readers. */
#ifndef QSF_FILE_SNIFF_H
#define QSF_FILE_SNIFF_H

#include "src/file/source_impl.h"

#define QSF_SNIFF_BYTES 512

/* Reads the first *n bytes of files[0]; zeros follow them in head. QSF_E_MODEL if the file is
 * empty, QSF_E_RUNTIME. */
int qsf_sniff_head(const QsfSource *s, unsigned char head[QSF_SNIFF_BYTES], size_t *n, QsfErr *err);
/* Are the bytes text, without NULs and other control characters? */
bool qsf_sniff_is_text(const unsigned char *p, size_t n);
/* What a file is opened as, for messages about what it is instead. */
typedef struct QsfWanted {
    const char *what;       /* "a model" */
    const char *expected;   /* its formats */
    const char *in_its_dir; /* what to give instead of a safetensors file */
} QsfWanted;

extern const QsfWanted qsf_wanted_model, qsf_wanted_adapter, qsf_wanted_control;

/* Sets the error for a file of no format that is wanted, whose first n bytes are at p: what it is, if that is
 * recognized. Returns QSF_E_MODEL. */
int qsf_sniff_reject(const QsfFile *f, const unsigned char *p, size_t n, const QsfWanted *w, QsfErr *err);

#endif
