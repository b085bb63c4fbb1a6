/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Character references and line breaks of HTML in Markdown. Any thread. */
#ifndef QSF_UI_MD_ENTITY_H
#define QSF_UI_MD_ENTITY_H

#include <stdbool.h>
#include <stddef.h>

#define UI_MD_ENTITY_MAX 160 /* bytes of a character, cleaned for a terminal */

/* The text of the reference s[0..len), "&amp;", "&#65;" or "&#x41;", cleaned for a terminal (qsf_text.h).
 * Returns its length; 0 for a name that is not known: the reference is then text. */
size_t ui_md_entity(const char *s, size_t len, bool ascii, char dst[UI_MD_ENTITY_MAX]);
/* Is s[0..len) the tag <br>, <br/> or <br />? */
bool ui_md_is_br(const char *s, size_t len);

#endif
