/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decoding of whole texts (include/qsf_decode.h decodes pieces). */
#ifndef QSF_BASE_DECODE_H
#define QSF_BASE_DECODE_H

#include "src/base/strbuf.h"

/* Replaces a text by its UTF-8, without a byte order mark. If memory is exhausted, b is empty and not
 * qsf_strbuf_ok. Returns false if the text is damaged: say QSF_DECODE_DAMAGED. */
bool qsf_strbuf_decode(QsfStrbuf *b);
/* Returns the name of the encoding that the mark at the start of a text announces ("UTF-16", "UTF-32"), NULL
 * if there is none or it is UTF-8's. */
const char *qsf_decode_name(const char *text, size_t len);

#endif
