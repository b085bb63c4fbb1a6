/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One part of an answer as rows. One thread. */
#ifndef QSF_UI_MD_PART_H
#define QSF_UI_MD_PART_H

#include "ui/md/answer.h"

/* Returns where the line that contains s[from] ends: at its newline, or len. */
size_t ui_md_line_end(const char *s, size_t len, size_t from);
/* Makes the rows of part i in rows, which is emptied before. *codes: the number of blocks of code that begin
 * in it. *state: that of highlighting after it, if it is code. */
void ui_md_part(const UiMdAnswer *a, UiMdCache *cache, const char *text, size_t i, UiMdRows *rows,
                size_t *codes, UiCodeState *state);

#endif
