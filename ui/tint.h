/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of the last answer with styles by token: by its probability, or by the entropy of its place, and
 * the token that the user walked to. One thread. */
#ifndef QSF_UI_TINT_H
#define QSF_UI_TINT_H

#include "ui/app.h"
#include "ui/chatview.h"

/* A zeroed one has none. */
typedef struct UiTints {
    uint32_t item;     /* the answer, 0 = none has styles */
    UiTintSpan *spans; /* (n) in order; text after the last one has no style */
    size_t n, cap;
    size_t cursor; /* byte where the token begins that was walked to */
    /* what they were made of */
    uint64_t request;
    uint32_t version, tokens, at;
    UiTint tint;
    bool walks;
} UiTints;

/* Makes them again if something has changed. Without memory, or if the tokens are unknown, the answer has no
 * styles. */
void ui_tints_update(UiTints *t, const UiApp *a);
void ui_tints_free(UiTints *t);

#endif
