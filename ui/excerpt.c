/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of the conversation as text. */
#include "ui/excerpt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Walk {
    void (*fn)(void *arg, unsigned k, const UiMdCode *code);
    void *arg;
    unsigned n;
} Walk;

static bool step(void *arg, const UiMdCode *code) {
    Walk *w = arg;
    w->fn(w->arg, ++w->n, code);
    return true;
}

unsigned ui_excerpt_codes(const UiTranscript *t, void (*fn)(void *arg, unsigned k, const UiMdCode *code),
                          void *arg) {
    Walk w = { .fn = fn, .arg = arg };
    for (size_t i = 0; i < t->n; i++) {
        const UiItem *it = t->items[i];
        char *clean = it->kind == UI_ANSWER ? qsf_clean_dup(ui_buf_str(&it->raw), it->raw.len, false) : NULL;
        if (clean) (void)ui_md_codes(clean, strlen(clean), step, &w);
        free(clean);
    }
    return w.n;
}

typedef struct Search {
    UiExcerpt *out;
    unsigned wanted; /* 0 = the last one */
    bool found;
} Search;

static void on_code(void *arg, unsigned k, const UiMdCode *code) {
    Search *s = arg;
    UiExcerpt *out = s->out;
    const size_t name = code->lang_len < sizeof out->language ? code->lang_len : sizeof out->language - 1;
    if (s->wanted != 0 && k != s->wanted) return;
    ui_buf_clear(&out->text);
    s->found = ui_buf_add(&out->text, code->text, code->len);
    out->number = k;
    (void)snprintf(out->language, sizeof out->language, "%.*s", (int)name, code->info);
}

bool ui_excerpt_code(const UiTranscript *t, unsigned k, UiExcerpt *out, unsigned *n) {
    Search s = { .out = out, .wanted = k };
    *out = (UiExcerpt){ 0 };
    *n = ui_excerpt_codes(t, on_code, &s);
    return s.found;
}

/* Numbers begin again with a new conversation; earlier ones are still in the transcript. */
static const UiItem *message(const UiTranscript *t, unsigned n) {
    for (size_t i = t->n; i-- > 0;) {
        const UiItem *it = t->items[i];
        if (it->kind != UI_USER && it->kind != UI_ANSWER) continue;
        if (n == 0 ? it->kind == UI_ANSWER && it->raw.len > 0 : it->number == n) return it;
    }
    return NULL;
}

bool ui_excerpt_message(const UiTranscript *t, unsigned n, UiExcerpt *out, const UiItem **item) {
    *out = (UiExcerpt){ 0 };
    *item = message(t, n);
    char *clean = *item ? qsf_clean_dup(ui_buf_str(&(*item)->raw), (*item)->raw.len, false) : NULL;
    if (clean) ui_buf_puts(&out->text, clean);
    free(clean);
    out->number = *item ? (*item)->number : 0;
    return clean && !out->text.failed;
}

void ui_excerpt_size(const UiExcerpt *t, char *dst, size_t cap) {
    const char *s = ui_buf_str(&t->text);
    size_t lines = t->text.len > 0 && s[t->text.len - 1] != '\n';
    for (size_t i = 0; i < t->text.len; i++) lines += s[i] == '\n';
    (void)snprintf(dst, cap, "%s%s%zu line%s, %zu byte%s", t->language, t->language[0] ? ", " : "", lines,
                   lines == 1 ? "" : "s", t->text.len, t->text.len == 1 ? "" : "s");
}
