/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Branches of a conversation. */
#include "ui/branches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/ctx_full.h"

/* ---- a new version ---- */

/* Messages in the context from this one to the end. */
static uint32_t count_from(const UiApp *a, const UiItem *it) {
    uint32_t n = 0;
    for (size_t i = a->chat.n; i > 0; i--) {
        n += a->chat.items[i - 1]->in_context;
        if (a->chat.items[i - 1] == it) break;
    }
    return n;
}

void ui_app_branch_answer(UiApp *a, const UiItem *it, const char *by) {
    const uint32_t n = count_from(a, it);
    ui_session_because(&a->session, by, true);
    ui_app_drop(a, n);
    ui_session_because(&a->session, NULL, false);
}

bool ui_app_branch_back(UiApp *a) {
    const UiTree *t = &a->session.tree;
    if (!t->pending || !t->by[0] || t->n_done == 0) return false;
    return ui_app_go(a, t->steps[t->n_done - 1].to, NULL);
}

/* ---- to another place ---- */

/* What changes: the last `drop` messages leave the conversation, or (whole) all of it, and `add` comes. */
typedef struct Move {
    UiApp *app;
    UiSpot to;
    bool whole;
    uint32_t drop;
    UiTranscript add;
    UiItem *it; /* being read */
    bool failed;
    uint32_t *forgets; /* (n_forgets) indexes of those that apply after it, if whole, the first one first */
    uint32_t n_forgets;
} Move;

static void take_facts(void *arg, const QSFLogRecord *r) {
    Move *m = arg;
    UiItem *it = m->it;
    char *clean = r->name && r->kind == QSF_LOG_MESSAGE ? qsf_clean_dup(r->name, strlen(r->name), true)
                                                        : NULL;
    if (clean) (void)snprintf(it->label, sizeof it->label, "%.63s", clean);
    free(clean);
    it->time = r->time > 0 && r->time < 1e11 ? r->time : 0;
    it->seed = r->seed;
    it->tokens += r->tokens;
    (void)snprintf(it->stop, sizeof it->stop, "%s",
                   r->stop                   ? r->stop
                   : r->kind == QSF_LOG_PART ? "interrupted"
                                             : "");
    m->failed = !ui_item_place(it, r) || m->failed;
}

static void take_place(void *arg, uint64_t at) {
    Move *m = arg;
    m->failed = !qsf_chatlog_record(ui_session_texts(&m->app->session), at, take_facts, m) || m->failed;
}

static bool add_item(Move *m, const UiNode *n) {
    m->it = ui_transcript_add(&m->add, n->at & UI_NODE_USER ? UI_USER : UI_ANSWER, "", 0);
    if (!m->it) return false;
    m->it->node = m->it->number = n->id;
    if (n->id > m->add.next_number) m->add.next_number = n->id;
    ui_tree_places(&m->app->session.tree, n, take_place, m);
    return !m->failed;
}

static bool add_items(Move *m, const uint32_t *path, uint32_t from, uint32_t n) {
    bool ok = ui_session_texts(&m->app->session) != NULL || from == n;
    m->add = (UiTranscript){ .ascii = m->app->chat.ascii, .next_id = m->app->chat.next_id };
    for (uint32_t i = from; ok && i < n; i++) ok = add_item(m, ui_tree_node(&m->app->session.tree, path[i]));
    return ok;
}

/* Messages that the path and the open branch have in common. */
static uint32_t common(const uint32_t *path, uint32_t n, const uint32_t *open, uint32_t n_open) {
    uint32_t i = 0;
    while (i < n && i < n_open && path[i] == open[i]) i++;
    return i;
}

static bool list_forgets(Move *m) {
    const UiTree *t = &m->app->session.tree;
    uint32_t n = 0;
    for (uint32_t f = m->to.forget; f > 0; f = t->forgets[f - 1].prev) n++;
    m->forgets = malloc((n > 0 ? n : 1) * sizeof *m->forgets);
    m->n_forgets = m->forgets ? n : 0;
    for (uint32_t f = m->to.forget; m->forgets && f > 0; f = t->forgets[f - 1].prev) m->forgets[--n] = f;
    return m->forgets != NULL;
}

/* Finds out what changes; false: the texts cannot be read. */
static bool prepare(Move *m) {
    const UiTree *t = &m->app->session.tree;
    const UiNode *tip = ui_tree_tip(t), *to = ui_tree_node(t, m->to.id);
    const uint32_t n = ui_tree_depth(t, to), n_open = ui_tree_depth(t, tip);
    uint32_t *path = malloc((n > 0 ? n : 1) * sizeof *path),
             *open = malloc((n_open > 0 ? n_open : 1) * sizeof *open);
    uint32_t gone[2], front[2];
    bool ok = path && open && (to || m->to.id == 0);
    ui_tree_forgotten(t, m->to, &gone[0], &front[0]);
    ui_tree_forgotten(t, ui_tree_spot(t), &gone[1], &front[1]);
    if (ok) {
        ui_tree_path(t, to, path);
        ui_tree_path(t, tip, open);
        const uint32_t same = common(path, n, open, n_open);
        m->whole = gone[0] != gone[1] || front[0] != front[1] || same < gone[1];
        m->drop = m->whole ? 0 : n_open - same;
        ok = add_items(m, path, m->whole ? 0 : same, n) && (!m->whole || list_forgets(m));
    }
    free(path);
    free(open);
    return ok;
}

static bool load(Move *m, char *err, size_t cap) {
    UiApp *a = m->app;
    UiRoom room = { 0 };
    bool texts = false;
    for (size_t i = 0; i < m->add.n; i++) texts = texts || m->add.items[i]->places;
    if (!texts) return true;
    ui_room_measure(a, &a->settings, &room);
    return ui_texts_load(a, &m->add, ui_session_texts(&a->session), &room, a->session.name, err, cap);
}

/* ---- the change ---- */

typedef struct Summary {
    UiBuf question, text;
} Summary;

static void take_question(void *arg, const QSFLogRecord *r) {
    Summary *s = arg;
    ui_buf_puts(&s->question, r->name ? r->name : "");
}

static void take_summary(void *arg, QSFLogPart part, const char *text, size_t len) {
    Summary *s = arg;
    if (part == QSF_LOG_IS_TEXT) (void)ui_buf_add(&s->text, text, len);
}

/* Messages leave the context as they did before. */
static void forget_again(Move *m, const UiForget *f) {
    UiApp *a = m->app;
    const QSFChatLog *log = ui_session_texts(&a->session);
    Summary s = { 0 };
    const uint64_t at = f->at > 0 ? f->at - 1 : 0;
    const bool summary = f->at > 0 && log && qsf_chatlog_record(log, at, take_question, &s) &&
                         qsf_chatlog_texts(log, &at, 1, take_summary, &s);
    (void)ui_transcript_forget(&a->chat, f->n);
    if (summary)
        (void)ui_transcript_prepend(&a->chat, ui_buf_str(&s.question), ui_buf_str(&s.text), s.text.len);
    ui_session_simple(&a->session, QSF_LOG_FORGET, summary ? ui_buf_str(&s.question) : NULL,
                      summary ? ui_buf_str(&s.text) : NULL, f->n);
    ui_buf_free(&s.question);
    ui_buf_free(&s.text);
}

/* A message without an answer counts again, until the conversation is the other one. */
static void readmit(UiApp *a) {
    for (size_t i = 0; a->unanswered != 0 && i < a->chat.n; i++) {
        UiItem *it = a->chat.items[i];
        if (it->id != a->unanswered) continue;
        it->in_context = true;
    }
    a->unanswered = 0;
}

static void change(Move *m, const char *by, size_t added) {
    UiApp *a = m->app;
    UiSession *s = &a->session;
    const char *branch = ui_tree_branch_name(&s->tree, m->to.branch);
    const bool leaves = strcmp(branch, ui_tree_branch(&s->tree)) != 0;
    size_t left = added + m->n_forgets + (m->whole || m->drop > 0) + leaves;
    UiForget *forgets = m->n_forgets > 0 ? malloc(m->n_forgets * sizeof *forgets) : NULL;
    for (uint32_t i = 0; forgets && i < m->n_forgets; i++) forgets[i] = s->tree.forgets[m->forgets[i] - 1];
    if (!forgets) left -= m->n_forgets;
    if (s->log) qsf_chatlog_batch(s->log, true);
    if (leaves) { /* first: the other branch ends here */
        char name[UI_BRANCH_NAME];
        (void)snprintf(name, sizeof name, "%s", branch);
        ui_session_because(s, by, --left > 0);
        ui_session_simple(s, QSF_LOG_SET, QSF_LOG_BRANCH, name, 0);
    }
    if (m->whole || m->drop > 0) {
        ui_session_because(s, by, --left > 0);
        ui_session_simple(s, m->whole ? QSF_LOG_CLEAR : QSF_LOG_UNDO, NULL, NULL, m->drop);
    }
    for (size_t i = a->chat.n - added; i < a->chat.n; i++) {
        ui_session_because(s, by, --left > 0);
        ui_app_save_again(a, a->chat.items[i]);
    }
    for (uint32_t i = 0; forgets && i < m->n_forgets; i++) {
        ui_session_because(s, by, --left > 0);
        forget_again(m, &forgets[i]);
    }
    ui_session_because(s, NULL, false);
    if (s->log) qsf_chatlog_batch(s->log, false);
    free(forgets);
}

/* The transcript first: then the file. */
static bool apply(Move *m, const char *by) {
    UiApp *a = m->app;
    const size_t added = m->add.n;
    readmit(a);
    if (m->whole)
        ui_transcript_clear(&a->chat);
    else if (m->drop > 0)
        (void)ui_transcript_drop(&a->chat, m->drop);
    if (!ui_transcript_take(&a->chat, &m->add)) return false;
    change(m, by, added);
    UiItem *last = ui_transcript_last(&a->chat);
    if (last && last->kind == UI_USER) ui_app_withdraw(a);
    ui_app_versions(a);
    ui_app_count_context(a);
    ui_ctx_full_refresh(a);
    return true;
}

bool ui_app_go(UiApp *a, UiSpot to, const char *by) {
    Move m = { .app = a, .to = to };
    char err[300] = "";
    if (ui_session_repair(&a->session) || a->session.tree.failed) {
        ui_app_say(a, UI_ERROR, "earlier versions of the conversation are no longer known");
        return false;
    }
    bool ok = prepare(&m);
    if (!ok) (void)snprintf(err, sizeof err, "the messages cannot be read from the session's file");
    ok = ok && load(&m, err, sizeof err);
    if (!ok) ui_app_say(a, UI_ERROR, "%s", err);
    if (ok && !apply(&m, by)) {
        ui_app_say(a, UI_ERROR, "out of memory");
        ok = false;
    }
    ui_transcript_clear(&m.add);
    free(m.forgets);
    return ok;
}

/* ---- versions ---- */

void ui_app_versions(UiApp *a) {
    const UiTree *t = &a->session.tree;
    for (size_t i = 0; i < a->chat.n; i++) {
        UiItem *it = a->chat.items[i];
        const UiNode *n = it->kind == UI_ANSWER && it->node > 0 && it->in_context ? ui_tree_node(t, it->node)
                                                                                  : NULL;
        it->nth = n ? n->nth : 0;
        it->of = n ? ui_tree_versions(t, n) : 0;
    }
}

static UiItem *versioned(const UiApp *a) {
    for (size_t i = a->chat.n; i > 0; i--) {
        UiItem *it = a->chat.items[i - 1];
        if (it->in_context && it->of > 1) return it;
    }
    return NULL;
}

bool ui_app_go_version(UiApp *a, uint32_t nth, char *said, size_t cap) {
    const UiTree *t = &a->session.tree;
    const UiItem *it = versioned(a);
    const UiNode *n = it ? ui_tree_node(t, it->node) : NULL, *other = n ? ui_tree_version(t, n, nth) : NULL;
    const char *why = ui_app_busy(a) ? "the answer is not finished"
                      : !it          ? "no answer has other versions: /retry makes one"
                      : !n           ? "the versions are no longer known"
                      : !other       ? "there is no such version"
                                     : NULL;
    (void)snprintf(said, cap, "%s", why ? why : "");
    if (why) return false;
    const uint32_t id = other->id, of = it->of;
    if (!ui_app_go(a, ui_tree_end(t, id), "version")) {
        (void)snprintf(said, cap, "the version cannot be shown");
        return false;
    }
    (void)snprintf(said, cap, "version %u/%u", nth, of);
    return true;
}

bool ui_app_step_version(UiApp *a, int by, char *said, size_t cap) {
    const UiItem *it = versioned(a);
    const uint32_t nth = it ? it->nth : 0;
    if (it && !ui_app_busy(a) && (by < 0 ? nth == 1 : nth == it->of)) {
        (void)snprintf(said, cap, "version %u/%u is the %s", nth, it->of, by < 0 ? "first" : "last");
        return false;
    }
    return ui_app_go_version(a, by < 0 ? nth - 1 : nth + 1, said, cap);
}
