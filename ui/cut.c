/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements cut.h. */
#include "ui/cut.h"

#include <string.h>

#define AGAIN ((size_t)16 << 10) /* bytes of a text that was cut before it is cut again */

/* Bytes at the start of b that are counted. */
static size_t counted(const UiCut *c) { return c->cut ? UI_CUT_KEPT : 0; }

void ui_cut_begin(UiCut *c, UiBuf *b) {
    ui_buf_clear(b);
    *c = (UiCut){ .limit = c->limit };
}

static void cut(UiCut *c, UiBuf *b) {
    char kept[2 * UI_CUT_KEPT];
    const size_t last = b->len - UI_CUT_KEPT;
    qsf_text_size_add(&c->size, b->data + counted(c), last - counted(c));
    memcpy(kept, b->data, UI_CUT_KEPT);
    memcpy(kept + UI_CUT_KEPT, b->data + last, UI_CUT_KEPT);
    ui_buf_clear(b);
    ui_buf_add(b, kept, sizeof kept);
    c->cut = true;
}

void ui_cut_add(UiCut *c, UiBuf *b, const char *s, size_t len) {
    ui_buf_add(b, s, len);
    if (c->limit > 0 && b->len > (c->cut ? AGAIN : c->limit) && b->len > 2 * UI_CUT_KEPT) cut(c, b);
}

void ui_cut_count(UiCut *c, const UiBuf *b) {
    qsf_text_size_add(&c->size, ui_buf_str(b) + counted(c), b->len - counted(c));
}
