/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writing JSON, whatever a model has generated: ill-formed UTF-8 becomes U+FFFD, and control characters, DEL
 * and those of C1 too, are escaped, because the text may be shown on a terminal. One thread. */
#ifndef QSF_UI_JSON_H
#define QSF_UI_JSON_H

#include "ui/buf.h"

/* Appends a string with its quotes. */
void ui_json_string(UiBuf *b, const char *s, size_t len);
/* Appends "name": "value". */
void ui_json_field(UiBuf *b, const char *name, const char *value);

#endif
