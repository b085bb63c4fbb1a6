/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only interface to nettle: the checksums of files on a hub. A file in large-file storage has the SHA-256
 * of its bytes as etag (64 digits), another one its name in Git: the SHA-1 of "blob SIZE", a NUL, and its
 * bytes (40 digits). One thread. */
#ifndef QSF_GET_HASH_H
#define QSF_GET_HASH_H

#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GET_HASH_TEXT 65 /* hexadecimal digits and the NUL */

typedef struct GetHash {
    bool git;
    struct sha256_ctx sha256;
    struct sha1_ctx sha1;
} GetHash;

/* Can a file be checked against this etag? */
bool get_hash_known(const char *etag);
/* Begins the checksum of a file of `bytes` bytes, of the kind of that etag. */
void get_hash_begin(GetHash *h, const char *etag, uint64_t bytes);
void get_hash_add(GetHash *h, const void *bytes, size_t len);
/* Writes its digits. */
void get_hash_end(GetHash *h, char out[GET_HASH_TEXT]);
/* The SHA-256 of a text. */
void get_hash_text(const char *text, size_t len, char out[GET_HASH_TEXT]);

#endif
