/* SPDX-License-Identifier: GPL-3.0-or-later */
/* URLs in text that are not marked as links. Pure functions. */
#ifndef QSF_UI_MD_URL_H
#define QSF_UI_MD_URL_H

#include <stddef.h>

/* Finds the first "http://", "https://" or "www." in text[from, len) that begins a word. Returns its length,
 * without punctuation at its end and without a parenthesis that was opened before it, and its offset in *at;
 * 0 if there is none. */
size_t ui_md_url(const char *text, size_t len, size_t from, size_t *at);

#endif
