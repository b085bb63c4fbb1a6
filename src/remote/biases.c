/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/biases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/json.h"

#define LOOKS_UP (QSF_ON(LLAMA) | QSF_ON(VLLM))
#define BY_TEXT  (QSF_ON(QSF))                 /* a text is a token there */
#define WORDS    (QSF_ON(VLLM) | QSF_ON(QSF))  /* bans of texts have a field of their own */
#define PAIRS    (QSF_ON(LLAMA) | QSF_ON(QSF)) /* [[TOKEN, X], ...], where X is false for never */
#define MOST     100.0f /* in OpenAI's interface the largest bias, which decides alone */

static bool is_on(QsfRemoteServer server, unsigned set) { return (set & (1u << server)) != 0; }

/* ---- the items of both settings, with the texts that stand for tokens */

typedef struct Walk {
    const char *at;
    bool bans;       /* of `ban`, otherwise of logit-bias */
    bool with_blank; /* next the same text after a blank, as most words begin */
    QSFSettingItem item;
    const QSFSettings *s;
    QsfRemoteServer server;
} Walk;

static Walk begin(const QSFSettings *s, QsfRemoteServer server, bool bans) {
    return (
        Walk){ .at = bans ? s->params.ban : s->params.logit_bias, .bans = bans, .s = s, .server = server };
}

/* A text that is banned, with a blank before it: another token, that writes the same word. */
static bool add_blank(QSFSettingItem *item) {
    if (item->id >= 0 || item->text[0] == ' ' || item->len + 2 > sizeof item->text) return false;
    memmove(item->text + 1, item->text, item->len + 1);
    item->text[0] = ' ';
    item->len++;
    return true;
}

static bool next(Walk *w) {
    if (w->with_blank) {
        w->with_blank = false;
        if (add_blank(&w->item)) return true;
    }
    if (!qsf_setting_item(&w->at, !w->bans, &w->item)) return false;
    w->with_blank = w->bans && w->item.id < 0 && is_on(w->server, LOOKS_UP & ~WORDS);
    return true;
}

/* Is the item a text for which the server has to be asked? */
static bool looked_up(const Walk *w) {
    return w->item.id < 0 && is_on(w->server, LOOKS_UP) && !(w->bans && is_on(w->server, WORDS));
}

bool qsf_biases_missing(const QSFSettings *s, QsfRemoteServer server, const QsfTokenTexts *known,
                        QSFSettingItem *out) {
    for (int bans = 0; bans < 2; bans++)
        for (Walk w = begin(s, server, bans); next(&w);) {
            if (!looked_up(&w) || qsf_token_texts_find(known, w.item.text, w.item.len)) continue;
            *out = w.item;
            return true;
        }
    return false;
}

/* ---- fields */

static void put_bias(const Walk *w, float x, QsfStrbuf *b) {
    const bool pairs = is_on(w->server, PAIRS);
    if (isinf(x) && pairs) {
        qsf_strbuf_adds(b, "false");
        return;
    }
    if (!pairs) x = x > MOST ? MOST : x < -MOST ? -MOST : x;
    qsf_strbuf_addf(b, "%.9g", (double)x);
}

/* Appends the item; false: it is not sent. */
static bool put_item(const Walk *w, const QsfTokenTexts *known, bool any, QsfStrbuf *b) {
    const QSFSettingItem *item = &w->item;
    const bool by_text = item->id < 0 && !w->bans && is_on(w->server, BY_TEXT);
    int32_t id = item->id;
    if (looked_up(w)) {
        const QsfTokenText *found = known ? qsf_token_texts_find(known, item->text, item->len) : NULL;
        if (!known) return true; /* its token will be known */
        id = found ? found->id : -1;
    }
    if (id < 0 && !by_text) return false;
    const bool pairs = is_on(w->server, PAIRS);
    qsf_strbuf_adds(b, any ? ", " : pairs ? "[" : "{");
    if (pairs) qsf_strbuf_addc(b, '[');
    if (by_text)
        qsf_json_put_string(b, item->text, item->len);
    else
        qsf_strbuf_addf(b, pairs ? "%d" : "\"%d\"", (int)id);
    qsf_strbuf_adds(b, pairs ? ", " : ": ");
    put_bias(w, item->bias, b);
    if (pairs) qsf_strbuf_addc(b, ']');
    return true;
}

bool qsf_biases_put(const QSFSettings *s, QsfRemoteServer server, const QsfTokenTexts *known, bool bans_only,
                    QsfStrbuf *b) {
    const size_t before = b->len;
    bool any = false;
    for (int bans = bans_only; bans < 2; bans++)
        for (Walk w = begin(s, server, bans); next(&w);)
            if (put_item(&w, known, b->len > before, b)) any = true;
    if (b->len > before) qsf_strbuf_addc(b, is_on(server, PAIRS) ? ']' : '}');
    return any;
}

bool qsf_bans_put(const QSFSettings *s, QsfStrbuf *b) {
    const char *at = s->params.ban;
    QSFSettingItem item;
    bool any = false;
    while (qsf_setting_item(&at, false, &item)) {
        if (item.id >= 0) continue;
        qsf_strbuf_adds(b, any ? ", " : "[");
        qsf_json_put_string(b, item.text, item.len);
        any = true;
    }
    if (any) qsf_strbuf_addc(b, ']');
    return any;
}

/* ---- what is not sent */

static bool is_token(const QsfTokenTexts *known, const QSFSettingItem *item) {
    const QsfTokenText *one = qsf_token_texts_find(known, item->text, item->len);
    return one && one->id >= 0;
}

static void add_lost(const QsfTokenTexts *known, bool bans, const QSFSettingItem *item, QsfStrbuf *b) {
    const QsfTokenText *one = qsf_token_texts_find(known, item->text, item->len);
    qsf_strbuf_addf(b, "%s%s: \"%s\" has no effect: ", b->len > 0 ? "; " : "", bans ? "ban" : "logit-bias",
                    item->text);
    if (one && one->n > 0)
        qsf_strbuf_addf(b, "it is %u tokens, and this server takes single ones only", one->n);
    else
        qsf_strbuf_adds(b, "the server does not say which token it is; #ID names one");
}

void qsf_biases_lost(const QSFSettings *s, QsfRemoteServer server, const QsfTokenTexts *known, QsfStrbuf *b) {
    for (int bans = 0; bans < 2; bans++) {
        Walk w = begin(s, server, bans);
        while (qsf_setting_item(&w.at, !bans, &w.item)) {
            QSFSettingItem blank = w.item;
            if (!looked_up(&w) || is_token(known, &w.item)) continue;
            if (bans && add_blank(&blank) && is_token(known, &blank)) continue;
            add_lost(known, bans, &w.item, b);
        }
    }
}
