/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fields that are lists of tokens or texts, as the settings have them: implements a part of reader.h. */
#include <stdio.h>
#include <string.h>

#include "qsf_setting_items.h"
#include "serve/reader.h"

typedef struct List {
    char *text; /* (n) of cap bytes */
    size_t cap, n;
} List;

static bool add_item(ServeReader *rd, List *l, const char *item, const char *value) {
    const int k = snprintf(l->text + l->n, l->cap - l->n, "%s%s%s", l->n > 0 ? "," : "", item, value);
    l->n += (size_t)k;
    return l->n < l->cap ||
           serve_reader_fail(rd, "more tokens than fit in %zu bytes of \"#ID=X,\"", l->cap - 1);
}

/* X, or false: never. */
static bool read_weight(ServeReader *rd, char *out, size_t cap) {
    double v;
    bool on;
    if (serve_reader_is(rd, 't')) {
        (void)snprintf(out, cap, "=-inf");
        return serve_reader_bool(rd, &on) &&
               (!on || serve_reader_fail(rd, "expected a number, or false for never"));
    }
    if (!serve_reader_number(rd, &v)) return false;
    if (v < -100 || v > 100) return serve_reader_fail(rd, "expected numbers from -100 to 100");
    (void)snprintf(out, cap, "=%.6g", v);
    return true;
}

/* A text as an item of a list. */
static bool put_text(ServeReader *rd, const ServeSlice *s, char *out, size_t cap) {
    return qsf_setting_item_text(s->text, s->len, out, cap) ||
           serve_reader_fail(rd, "a text must have 1 to %u bytes, and no NUL", QSF_SETTING_ITEM - 1);
}

static const char pair[] = "expected pairs [TOKEN, X]";

/* [TOKEN, X]: a number or a text, as in llama.cpp. */
static bool read_pair(ServeReader *rd, List *l) {
    char item[2 * QSF_SETTING_ITEM + 2], weight[40];
    bool first = true, more = true;
    ServeSlice s;
    uint32_t id;
    if (!serve_reader_enter(rd, '[') || !serve_reader_next(rd, '[', &first, &more)) return false;
    if (more && serve_reader_is(rd, '"')) {
        if (!serve_reader_string(rd, &s) || !put_text(rd, &s, item, sizeof item)) return false;
    } else {
        if (!more) return serve_reader_fail(rd, "%s", pair);
        if (!serve_reader_count(rd, 0, INT32_MAX, &id)) return false;
        (void)snprintf(item, sizeof item, "#%u", id);
    }
    if (!serve_reader_next(rd, '[', &first, &more)) return false;
    if (!more) return serve_reader_fail(rd, "%s", pair);
    if (!read_weight(rd, weight, sizeof weight) || !serve_reader_next(rd, '[', &first, &more)) return false;
    return more ? serve_reader_fail(rd, "%s", pair) : add_item(rd, l, item, weight);
}

static bool read_bias_pairs(ServeReader *rd, List *l) {
    bool first = true, more = true;
    if (!serve_reader_enter(rd, '[')) return false;
    while (serve_reader_next(rd, '[', &first, &more) && more)
        if (!read_pair(rd, l)) return false;
    return rd->error->status == 0;
}

/* {"ID": X, ...} */
static bool read_bias_members(ServeReader *rd, List *l) {
    bool first = true, more = true;
    if (!serve_reader_enter(rd, '{')) return false;
    while (serve_reader_next(rd, '{', &first, &more) && more) {
        char item[16], weight[40];
        const char *id = qsf_strbuf_str(&rd->key);
        if (rd->key.len == 0 || strspn(id, "0123456789") != rd->key.len)
            return serve_reader_fail(rd, "expected the number of a token instead of \"%.40s\"", id);
        (void)snprintf(item, sizeof item, "#%.12s", id);
        if (!read_weight(rd, weight, sizeof weight) || !add_item(rd, l, item, weight)) return false;
    }
    return rd->error->status == 0;
}

bool serve_lists_biases(ServeReader *rd, char *dst, size_t cap) {
    List l = { dst, cap, 0 };
    *dst = '\0';
    return serve_reader_is(rd, '[') ? read_bias_pairs(rd, &l) : read_bias_members(rd, &l);
}

bool serve_lists_texts(ServeReader *rd, char *dst, size_t cap) {
    List l = { dst, cap, 0 };
    bool first = true, more = true;
    *dst = '\0';
    if (!serve_reader_enter(rd, '[')) return false;
    while (serve_reader_next(rd, '[', &first, &more) && more) {
        char item[2 * QSF_SETTING_ITEM];
        ServeSlice s;
        if (!serve_reader_string(rd, &s) || !put_text(rd, &s, item, sizeof item)) return false;
        if (!add_item(rd, &l, item, "")) return false;
    }
    return rd->error->status == 0;
}
