/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text and Markdown as HTML. Everything is escaped: no text of a model or a user becomes a tag, an
 * attribute or a script. Text was cleaned before (qsf_text.h). One thread. */
#ifndef QSF_UI_HTML_H
#define QSF_UI_HTML_H

#include <stddef.h>

#include "ui/buf.h"

/* Appends text for the content of an element or a value between double quotes. */
void ui_html_text(UiBuf *b, const char *s, size_t len);
/* Appends Markdown; its blocks of code are numbered from first. Returns how many there are. */
unsigned ui_html_markdown(UiBuf *b, const char *text, size_t len, unsigned first);

#endif
