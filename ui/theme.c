/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Styles by purpose. */
#include "ui/theme.h"

static const UiStyleRow rows[UI_STYLE_COUNT] = {
    [UI_STYLE_TEXT] = { -1, 0, 0 },
    [UI_STYLE_TITLE] = { -1, UI_ATTR_REVERSE, UI_ATTR_REVERSE },
    [UI_STYLE_USER] = { 6, UI_ATTR_BOLD, UI_ATTR_BOLD },
    [UI_STYLE_ANSWER] = { 2, UI_ATTR_BOLD, UI_ATTR_BOLD },
    [UI_STYLE_DIM] = { -1, UI_ATTR_DIM, UI_ATTR_DIM },
    [UI_STYLE_NOTICE] = { 4, 0, 0 },
    [UI_STYLE_ERROR] = { 1, UI_ATTR_BOLD, UI_ATTR_BOLD },
    [UI_STYLE_HEAD] = { -1, UI_ATTR_BOLD, UI_ATTR_BOLD },
    [UI_STYLE_VALUE] = { -1, 0, 0 },
    [UI_STYLE_GOOD] = { 2, 0, 0 },
    [UI_STYLE_WARN] = { 1, UI_ATTR_BOLD, UI_ATTR_REVERSE },
    [UI_STYLE_HOT] = { 1, UI_ATTR_BOLD, UI_ATTR_BOLD },
    [UI_STYLE_KEY] = { -1, UI_ATTR_BOLD, UI_ATTR_BOLD },
    [UI_STYLE_QUEUED] = { 5, 0, UI_ATTR_UNDERLINE },
    [UI_STYLE_MATCH] = { 3, UI_ATTR_REVERSE, UI_ATTR_REVERSE },
    [UI_STYLE_H1] = { 5, UI_ATTR_BOLD | UI_ATTR_UNDERLINE, UI_ATTR_BOLD | UI_ATTR_UNDERLINE },
    [UI_STYLE_H2] = { 5, UI_ATTR_BOLD, UI_ATTR_BOLD },
    [UI_STYLE_H3] = { 5, 0, UI_ATTR_UNDERLINE },
    [UI_STYLE_MARK] = { 6, 0, UI_ATTR_BOLD },
    [UI_STYLE_QUOTE] = { 6, 0, UI_ATTR_DIM },
    [UI_STYLE_LINK] = { 4, UI_ATTR_UNDERLINE, UI_ATTR_UNDERLINE },
    [UI_STYLE_INLINE] = { 6, 0, UI_ATTR_UNDERLINE },
    [UI_STYLE_CODE] = { -1, 0, 0 },
    [UI_STYLE_CODE_KEYWORD] = { 5, 0, UI_ATTR_BOLD },
    [UI_STYLE_CODE_TYPE] = { 6, 0, 0 },
    [UI_STYLE_CODE_STRING] = { 2, 0, 0 },
    [UI_STYLE_CODE_NUMBER] = { 1, 0, 0 },
    [UI_STYLE_CODE_COMMENT] = { -1, UI_ATTR_DIM, UI_ATTR_DIM },
    [UI_STYLE_CODE_DIRECTIVE] = { 5, 0, 0 },
    [UI_STYLE_CODE_FUNCTION] = { 4, UI_ATTR_BOLD, 0 },
    [UI_STYLE_CODE_KEY] = { 6, 0, 0 },
    [UI_STYLE_CODE_ADDED] = { 2, 0, UI_ATTR_BOLD },
    [UI_STYLE_CODE_REMOVED] = { 1, 0, UI_ATTR_DIM },
    [UI_STYLE_CODE_HUNK] = { 6, UI_ATTR_BOLD, UI_ATTR_UNDERLINE },
};

const UiStyleRow *ui_theme(UiStyle s) { return &rows[(unsigned)s < UI_STYLE_COUNT ? s : UI_STYLE_TEXT]; }
