/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "get/hash.h"

#include <stdio.h>
#include <string.h>

bool get_hash_known(const char *etag) {
    const size_t n = strlen(etag);
    return (n == 64 || n == 40) && etag[strspn(etag, "0123456789abcdef")] == '\0';
}

void get_hash_begin(GetHash *h, const char *etag, uint64_t bytes) {
    char head[40];
    h->git = strlen(etag) == 40;
    sha256_init(&h->sha256);
    sha1_init(&h->sha1);
    const int n = snprintf(head, sizeof head, "blob %llu", (unsigned long long)bytes);
    if (h->git) get_hash_add(h, head, (size_t)n + 1);
}

void get_hash_add(GetHash *h, const void *bytes, size_t len) {
    if (h->git)
        sha1_update(&h->sha1, len, bytes);
    else
        sha256_update(&h->sha256, len, bytes);
}

void get_hash_end(GetHash *h, char out[GET_HASH_TEXT]) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    const size_t n = h->git ? SHA1_DIGEST_SIZE : SHA256_DIGEST_SIZE;
    if (h->git)
        sha1_digest(&h->sha1, n, digest);
    else
        sha256_digest(&h->sha256, n, digest);
    for (size_t i = 0; i < n; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

void get_hash_text(const char *text, size_t len, char out[GET_HASH_TEXT]) {
    GetHash h;
    get_hash_begin(&h, "", 0);
    get_hash_add(&h, text, len);
    get_hash_end(&h, out);
}
