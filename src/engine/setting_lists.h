/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Values of settings that are lists of texts: items separated by ','. In an item \n, \t and \r are what they
 * are in C, and \ before any other character is that character: "\," and "\\". Any thread. */
#ifndef QSF_ENGINE_SETTING_LISTS_H
#define QSF_ENGINE_SETTING_LISTS_H

#include "qsf_engine.h"

#define QSF_LIST_ITEM 256u /* bytes of an item's text, with its NUL */

/* Moves *at to what follows the next item, which *item and *len become, as it is written; false at the
 * end. */
bool qsf_list_next(const char **at, const char **item, size_t *len);
/* Writes the text that an item stands for, and a NUL, to out (QSF_LIST_ITEM); false if it is empty or too
 * long. */
bool qsf_list_text(const char *item, size_t len, char *out, size_t *out_len);

/* A token: by its id, or by its text. */
typedef struct QsfListToken {
    int32_t id; /* -1 = by text */
    char text[QSF_LIST_ITEM];
    size_t len;
} QsfListToken;
/* "#id" or a text; "\#" begins a text with '#'. */
bool qsf_list_token(const char *item, size_t len, QsfListToken *out);
/* TOKEN=X, with X a number or -inf. */
bool qsf_list_bias(const char *item, size_t len, QsfListToken *out, float *bias);

#endif
