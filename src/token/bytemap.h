/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The 256 printable characters that byte-level BPE uses for bytes (openai/gpt-2 src/encoder.py,
 * bytes_to_unicode): printable Latin-1 maps to itself, the other 68 bytes are numbered from U+0100. */
#ifndef QSF_TOKEN_BYTEMAP_H
#define QSF_TOKEN_BYTEMAP_H

#include <stddef.h>
#include <stdint.h>

/* Code point for a byte, below 0x144. */
uint32_t qsf_bytemap_cp(unsigned char byte);
/* Writes the characters of src[0..len) as UTF-8; dst holds 2 * len bytes. Returns the bytes written. */
size_t qsf_bytemap_encode(const char *src, size_t len, char *dst);
/* Converts back to bytes. Characters that do not encode a byte are copied unchanged. Writes at most cap
 * bytes, returns the full number (never more than len). */
size_t qsf_bytemap_decode(const char *src, size_t len, char *dst, size_t cap);

#endif
