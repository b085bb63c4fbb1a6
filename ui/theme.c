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
};

const UiStyleRow *ui_theme(UiStyle s) { return &rows[(unsigned)s < UI_STYLE_COUNT ? s : UI_STYLE_TEXT]; }
