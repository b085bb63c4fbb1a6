/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ids of tokens as text. */
#include "ui/token_ids.h"

#include <stdlib.h>
#include <string.h>

#define BITS 5u
#define MORE (1u << BITS)

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ui_token_ids_put(UiBuf *b, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char text[8];
        size_t len = 0;
        uint32_t left = ids[i] > 0 ? (uint32_t)ids[i] : 0;
        for (; left >= MORE; left >>= BITS) text[len++] = digits[(left & (MORE - 1)) | MORE];
        text[len++] = digits[left];
        (void)ui_buf_add(b, text, len);
    }
}

/* The next number, -1 if it is damaged. */
static int32_t next(const char **text) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 7 * BITS; shift += BITS) {
        const char *at = **text ? strchr(digits, **text) : NULL;
        if (!at) return -1;
        const uint32_t digit = (uint32_t)(at - digits);
        (*text)++;
        value |= (uint64_t)(digit & (MORE - 1)) << shift;
        if (digit < MORE) return value <= INT32_MAX ? (int32_t)value : -1;
    }
    return -1;
}

int32_t *ui_token_ids_read(const char *text, size_t *n) {
    size_t most = text ? strlen(text) : 0;
    int32_t *ids = most > 0 ? malloc(most * sizeof *ids) : NULL; /* as long as the text that is there */
    *n = 0;
    while (ids && *text) {
        const int32_t id = next(&text);
        if (id < 0) {
            free(ids);
            ids = NULL;
        } else {
            ids[(*n)++] = id;
        }
    }
    if (!ids) *n = 0;
    return ids;
}
