/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walking through the last answer. */
#include "ui/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_cli.h"
#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/branches.h"
#include "ui/token_ids.h"

#define IDS_PIECE 256u /* tokens whose ids are asked for at once */
#define TEXT_MAX  48   /* bytes of a token that are shown */

void ui_walk_asked(UiApp *a, const UiItem *it) {
    a->walk = (UiWalk){ .item = it ? it->id : 0, .request = a->request };
}

const UiItem *ui_walk_item(const UiApp *a) {
    const UiItem *last = ui_transcript_last(&a->chat);
    return last && last->kind == UI_ANSWER ? last : NULL;
}

bool ui_walk_known(const UiApp *a, QSFTokens *t) {
    const UiItem *it = ui_walk_item(a);
    const UiWalk *w = &a->walk;
    QSFToken last;
    a->engine.tokens(a->engine.self, t);
    if (!it || t->n == 0 || t->request == 0 || t->request != w->request || it->id != w->item) return false;
    if (it == a->answer) return true;
    return a->engine.token_rows(a->engine.self, t->n - 1, &last, 1) == 1 && last.text_end == it->raw.len;
}

void ui_walk_keep(UiApp *a, UiItem *it, bool done) {
    int32_t ids[IDS_PIECE];
    QSFTokens t;
    UiBuf b = { 0 };
    const bool known = done && ui_walk_known(a, &t) && t.n < QSF_TOKENS_KNOWN;
    for (uint32_t n, at = 0; known && at < t.n; at += n) {
        n = a->engine.token_ids(a->engine.self, at, ids, IDS_PIECE);
        if (n == 0) break;
        ui_token_ids_put(&b, ids, n);
    }
    if (b.failed) ui_buf_free(&b);
    ui_item_set_ids(it, b.data);
}

/* Why no request can be made for the last answer, or NULL. */
static const char *obstacle(const UiApp *a) {
    if (!ui_walk_item(a)) return "the last message is not an answer";
    if (!a->model_ready) return "no model is loaded";
    if (!ui_has(a, UI_NEEDS_TOKENS)) return ui_lacks(UI_NEEDS_TOKENS);
    if (a->running == UI_REQUEST_TOKENS) return "the tokens of the answer are being evaluated: ^C stops that";
    return ui_app_busy(a) ? "the model is busy: ^C stops it" : NULL;
}

const char *ui_walk_evaluate(UiApp *a, bool open) {
    const char *why = obstacle(a);
    const UiItem *it = ui_walk_item(a);
    if (why) return why;
    if (it->id == a->no_tokens && it->version == a->no_tokens_version)
        return "the tokens of this answer cannot be determined from its text";
    const bool own = strncmp(it->label, a->stats.model_name, sizeof it->label - 1) == 0;
    size_t n = 0;
    int32_t *ids = own ? ui_token_ids_read(it->ids, &n) : NULL; /* another model has other tokens */
    const bool asked = ui_app_request(a, (QSFRequest){ .score = true, .tokens = ids, .n_tokens = n });
    free(ids);
    if (!asked) return "nothing was evaluated";
    ui_walk_asked(a, ui_walk_item(a));
    a->walk.opens = open;
    a->running = UI_REQUEST_TOKENS;
    a->stopping = false;
    return NULL;
}

static bool go_to(UiApp *a, uint32_t at) {
    UiWalk *w = &a->walk;
    QSFToken before = { 0 };
    if (a->engine.token_rows(a->engine.self, at, &w->token, 1) != 1) return false;
    if (at > 0 && a->engine.token_rows(a->engine.self, at - 1, &before, 1) != 1)
        before.text_end = w->token.text_end;
    w->at = at;
    w->begin = before.text_end;
    w->open = true;
    w->row = 0;
    while (w->row + 1 < ui_walk_rows(a) && ui_walk_row(a, w->row).id != w->token.id) w->row++;
    return true;
}

const char *ui_walk_step(UiApp *a, int by) {
    UiWalk *w = &a->walk;
    QSFTokens t;
    const char *why = obstacle(a);
    if (why) return why;
    if (!ui_walk_known(a, &t)) return ui_walk_evaluate(a, true);
    w->n = t.n;
    if (!w->open) return go_to(a, t.n - 1) ? NULL : "the tokens of the answer are unknown";
    if (by < 0 && w->at <= t.first) return t.first > 0 ? "tokens before it are not kept" : "the first token";
    if (by > 0 && w->at + 1 >= t.n) return "the last token";
    return go_to(a, by < 0 ? w->at - 1 : w->at + 1) ? NULL : "the tokens of the answer are unknown";
}

void ui_walk_known_now(UiApp *a, const QSFEvent *e) {
    const bool opens = a->walk.opens;
    QSFTokens t;
    a->walk.opens = false;
    ui_app_refresh_stats(a);
    const UiItem *it = ui_walk_item(a);
    if (it && e->type != QSF_EVENT_DONE && e->code == QSF_EXIT_USAGE) {
        a->no_tokens = it->id;
        a->no_tokens_version = it->version;
    }
    if (e->type != QSF_EVENT_DONE)
        ui_app_print(a, UI_ERROR, e->text ? e->text : "the engine failed");
    else if (e->stop == QSF_STOP_INTERRUPTED)
        ui_app_say(a, UI_NOTICE, "stopped: the tokens of the answer are unknown");
    else if (!ui_walk_known(a, &t)) /* asking again would not change that */
        ui_app_say(a, UI_NOTICE, "the tokens of the answer are unknown");
    else if (opens)
        (void)ui_walk_step(a, 0);
}

void ui_walk_close(UiApp *a) { a->walk.open = a->walk.opens = false; }

static bool is_listed(const QSFToken *t) {
    for (uint32_t i = 0; i < t->n; i++)
        if (t->top[i].id == t->id) return true;
    return false;
}

unsigned ui_walk_rows(const UiApp *a) {
    const QSFToken *t = &a->walk.token;
    return t->n + (is_listed(t) ? 0 : 1);
}

QSFCandidate ui_walk_row(const UiApp *a, unsigned i) {
    const QSFToken *t = &a->walk.token;
    return i < t->n ? t->top[i] : (QSFCandidate){ .id = t->id, .p = t->p };
}

void ui_walk_move(UiApp *a, int by) {
    UiWalk *w = &a->walk;
    if (by < 0 && w->row > 0) w->row--;
    if (by > 0 && w->row + 1 < ui_walk_rows(a)) w->row++;
}

const char *ui_walk_take(UiApp *a, unsigned i) {
    const UiWalk w = a->walk;
    QSFTokens t;
    if (i >= ui_walk_rows(a)) return "there is no such token";
    const int32_t id = ui_walk_row(a, i).id;
    if (id == w.token.id) return "the answer has this token: choose another one";
    if (obstacle(a)) return obstacle(a);
    ui_walk_close(a);
    if (!ui_walk_known(a, &t) || t.n <= w.at) return "the answer has changed";
    UiItem *last = ui_transcript_last(&a->chat);
    ui_app_branch_answer(a, last, UI_BY_TOKEN);
    a->branch = w.at + 1;
    a->branch_id = id;
    const bool ok = ui_app_ask(a, false);
    a->branch = 0;
    if (!ok && !ui_app_branch_back(a)) ui_app_withdraw(a);
    return NULL;
}

/* Bytes of a whole, well-formed character at s, or 0. */
static size_t whole(const char *s, size_t len) {
    int cells;
    const unsigned char c = (unsigned char)*s;
    const size_t want = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (want == 0 || want > len) return 0;
    if (want == 1) return c >= ' ' && c != 0x7f;
    return qsf_text_grapheme(s, want, &cells) == want ? want : 0;
}

static void put_text(UiBuf *b, const char *s, size_t len, bool ascii) {
    for (size_t i = 0, n; i < len; i += n) {
        char clean[QSF_CLEAN_MAX(4)];
        QSFClean c = { .ascii = ascii };
        n = whole(s + i, len - i);
        if (n > 0)
            ui_buf_add(b, clean, qsf_clean(&c, s + i, n, true, clean));
        else if (s[i] == '\n' || s[i] == '\t' || s[i] == '\r')
            ui_buf_puts(b, s[i] == '\n' ? "\\n" : s[i] == '\t' ? "\\t" : "\\r");
        else
            ui_buf_printf(b, "\\x%02X", (unsigned)(unsigned char)s[i]);
        n = n > 0 ? n : 1;
    }
}

/* Several tokens may have this name, or none: then the id tells them apart. */
static bool is_unnamed(const char *text, size_t n) {
    static const char unknown[] = "<unk>";
    return n == 0 || (n == sizeof unknown - 1 && memcmp(text, unknown, n) == 0);
}

void ui_walk_text(const UiApp *a, int32_t id, char *dst, size_t cap) {
    char text[TEXT_MAX];
    bool special = false;
    UiBuf b = { 0 };
    const size_t n = a->engine.token_text(a->engine.self, id, text, sizeof text, &special);
    const bool unnamed = is_unnamed(text, n);
    const char *open = special || unnamed ? (a->chat.ascii ? "<<" : "⟦") : "\"";
    const char *close = special || unnamed ? (a->chat.ascii ? ">>" : "⟧") : "\"";
    ui_buf_puts(&b, open);
    put_text(&b, text, n < sizeof text ? n : sizeof text, a->chat.ascii);
    if (unnamed) ui_buf_printf(&b, "%s%d", n > 0 ? " " : "", (int)id);
    ui_buf_printf(&b, "%s%s", n > sizeof text ? "..." : "", close);
    (void)snprintf(dst, cap, "%s", ui_buf_str(&b));
    ui_buf_free(&b);
}
