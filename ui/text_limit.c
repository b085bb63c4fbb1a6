/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements text_limit.h. */
#include "ui/text_limit.h"

#include <string.h>

#define AGAIN ((size_t)16 << 10) /* bytes of a text that was cut before it is cut again */

/* Bytes at the start of b that are counted. */
static size_t counted(const UiTextLimit *c) { return c->cut ? UI_TEXT_LIMIT_KEPT : 0; }

void ui_text_limit_begin(UiTextLimit *c, UiBuf *b) {
    ui_buf_clear(b);
    *c = (UiTextLimit){ .limit = c->limit };
}

static void cut(UiTextLimit *c, UiBuf *b) {
    char kept[2 * UI_TEXT_LIMIT_KEPT];
    const size_t last = b->len - UI_TEXT_LIMIT_KEPT;
    qsf_text_size_add(&c->size, b->data + counted(c), last - counted(c));
    memcpy(kept, b->data, UI_TEXT_LIMIT_KEPT);
    memcpy(kept + UI_TEXT_LIMIT_KEPT, b->data + last, UI_TEXT_LIMIT_KEPT);
    ui_buf_clear(b);
    ui_buf_add(b, kept, sizeof kept);
    c->cut = true;
}

void ui_text_limit_add(UiTextLimit *c, UiBuf *b, const char *s, size_t len) {
    ui_buf_add(b, s, len);
    if (c->limit > 0 && b->len > (c->cut ? AGAIN : c->limit) && b->len > 2 * UI_TEXT_LIMIT_KEPT) cut(c, b);
}

void ui_text_limit_count(UiTextLimit *c, const UiBuf *b) {
    qsf_text_size_add(&c->size, ui_buf_str(b) + counted(c), b->len - counted(c));
}
