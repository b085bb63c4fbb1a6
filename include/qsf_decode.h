/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text from files and pipes as UTF-8, whatever its byte order mark says. Shared by the
 * programs; not installed. */
#ifndef QSF_DECODE_H
#define QSF_DECODE_H

#include <stdbool.h>
#include <stddef.h>

/* State of a text that is decoded in pieces; zeroed at its start. */
typedef struct QSFDecode {
    unsigned char held[4]; /* (n) bytes of an incomplete mark, unit or pair */
    unsigned char n, encoding;
    bool damaged; /* something could not be read and became U+FFFD */
} QSFDecode;

/* The text of an error message for damaged text; the name of the file precedes it. */
#define QSF_DECODE_DAMAGED \
    "the text is damaged: it is cut, or characters of UTF-16 or UTF-32 are invalid; each became U+FFFD"

/* The same for text that must be UTF-8 and is not. */
#define QSF_DECODE_NOT_UTF8 \
    "the text is damaged: it is not UTF-8; the bytes that are not one of its characters stay as they are"

/* Maximum size of the result of decoding len bytes. */
#define QSF_DECODE_MAX(len) (2 * (len) + 16)
/* Decodes the next len bytes of a text into dst (QSF_DECODE_MAX(len) bytes) and returns the number of bytes
 * written. The mark at the start of the text is dropped. After a mark of UTF-16 or UTF-32, in either byte
 * order, the text becomes UTF-8; surrogates without a partner, numbers above U+10FFFF and a cut unit at the
 * end become U+FFFD. Other bytes pass. end: no more bytes follow, so what is held back is written too. */
size_t qsf_decode(QSFDecode *d, const char *s, size_t len, bool end, char *dst);
/* Whether decoded text has a character that text never has: NUL or another control character besides BEL, BS,
 * HT, LF, VT, FF, CR, SUB and ESC, which logs and old files have. */
bool qsf_decode_is_binary(const char *text, size_t len);
/* What a file is that is not text, by its first bytes, and what to do with it: "it is a PDF file: ...";
 * without a known format "it is not text". Static. */
const char *qsf_decode_kind(const char *text, size_t len);
/* Whether decoded text is well-formed UTF-8: text in an older encoding is not. */
bool qsf_decode_is_utf8(const char *text, size_t len);

#endif
