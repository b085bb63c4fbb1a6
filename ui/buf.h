/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growable bytes for the programs' own text. Always NUL-terminated once something was added. One thread. */
#ifndef QSF_UI_BUF_H
#define QSF_UI_BUF_H

#include <stdbool.h>
#include <stddef.h>

/* A zeroed UiBuf is empty. failed stays set after growing failed for lack of memory: the contents stay valid
 * and the addition is lost. */
typedef struct UiBuf {
    char *data;
    size_t len, cap;
    bool failed;
} UiBuf;

/* Makes space for len bytes in all. */
bool ui_buf_reserve(UiBuf *b, size_t len);
bool ui_buf_add(UiBuf *b, const char *s, size_t len);
bool ui_buf_puts(UiBuf *b, const char *s);
bool ui_buf_printf(UiBuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "" when nothing was added. */
const char *ui_buf_str(const UiBuf *b);
/* Clears the text and keeps the memory, unless it is large. */
void ui_buf_clear(UiBuf *b);
void ui_buf_free(UiBuf *b);
/* malloc'ed copy of s[0..len) with a NUL, or NULL without memory. */
char *ui_strdup_len(const char *s, size_t len);

#endif
