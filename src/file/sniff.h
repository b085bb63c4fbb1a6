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
/* Sets the error for a file of no known format, whose first n bytes are at p: what it is, if that is
 * recognized. Returns QSF_E_MODEL. */
int qsf_sniff_reject(const QsfFile *f, const unsigned char *p, size_t n, QsfErr *err);

#endif
