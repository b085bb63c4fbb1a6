/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The last changes of a session, for /undo and /redo: a row of places where the conversation was, with a mark
 * at the one where it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/buf.h"
#include "ui/stops.h"
#include "ui/tree_internal.h"

static bool is_position(const UiStep *s) { return s->kind == UI_STEP_EXCHANGE || s->kind == UI_STEP_MOVED; }

static void step_free(UiStep *s) {
    free(s->name);
    free(s->was);
    free(s->is);
    *s = (UiStep){ 0 };
}

/* Where step i begins. */
static UiSpot before(const UiTree *t, uint32_t i) { return i > 0 ? t->steps[i - 1].to : t->begin; }

static void drop_undone(UiTree *t) {
    while (t->n_steps > t->n_done) step_free(&t->steps[--t->n_steps]);
}

static void drop_first(UiTree *t) {
    t->begin = t->steps[0].to;
    step_free(&t->steps[0]);
    memmove(t->steps, t->steps + 1, (t->n_steps - 1) * sizeof t->steps[0]);
    t->n_steps--;
    t->n_done -= t->n_done > 0;
}

/* Adds a change after those that are in effect; what was undone can no longer be made again. */
static UiStep *push(UiTree *t, UiStepKind kind, const char *by) {
    drop_undone(t);
    if (t->n_steps == UI_STEPS_MAX) drop_first(t);
    UiStep *s = &t->steps[t->n_steps++];
    t->n_done = t->n_steps;
    *s = (UiStep){ .kind = kind, .to = ui_tree_spot(t) };
    (void)snprintf(s->by, sizeof s->by, "%s", by);
    return s;
}

void ui_steps_clear(UiTree *t, bool settings) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_steps; i++) {
        UiStep *s = &t->steps[i];
        const bool branch = s->name && strcmp(s->name, QSF_LOG_BRANCH) == 0;
        if (settings && s->kind == UI_STEP_SETTING && !branch && s->to.id == 0 && i < t->n_done)
            t->steps[n++] = *s;
        else
            step_free(s);
    }
    t->n_steps = t->n_done = n;
    for (uint32_t i = 0; i < n; i++) t->steps[i].to = (UiSpot){ 0 };
    t->pending = false;
    t->begin = (UiSpot){ 0 };
}

bool ui_steps_is_before_last(const UiTree *t, UiSpot spot) {
    return t->n_done > 0 && is_position(&t->steps[t->n_done - 1]) &&
           ui_tree_same(t, before(t, t->n_done - 1), spot);
}

/* Steps [from, n_done) become the settings among them and one exchange, which leads to `to` and is undone. */
static void collapse(UiTree *t, uint32_t from, UiSpot to) {
    const UiSpot now = ui_tree_spot(t);
    UiStep last = { .kind = UI_STEP_EXCHANGE, .to = to };
    uint32_t n = from;
    for (uint32_t i = from; i < t->n_done; i++) {
        UiStep *s = &t->steps[i];
        if (is_position(s)) {
            step_free(s);
            continue;
        }
        t->steps[n] = *s;
        t->steps[n++].to = now;
    }
    const uint32_t undone = t->n_steps - t->n_done;
    memmove(t->steps + n + 1, t->steps + t->n_done, undone * sizeof t->steps[0]);
    t->steps[n] = last; /* at least one step was an exchange */
    t->n_done = n;
    t->n_steps = n + 1 + undone;
}

void ui_steps_back(UiTree *t, UiSpot from) {
    const UiSpot now = ui_tree_spot(t);
    if (ui_steps_is_before_last(t, now)) {
        t->n_done--;
        return;
    }
    for (uint32_t i = t->n_done; i > 0; i--) {
        if (!is_position(&t->steps[i - 1]) || !ui_tree_same(t, before(t, i - 1), now)) continue;
        collapse(t, i - 1, from);
        return;
    }
    /* It leads to where no known change began. */
    drop_undone(t);
    ui_steps_clear(t, false);
    t->begin = now;
    t->steps[0] = (UiStep){ .kind = UI_STEP_EXCHANGE, .to = from };
    t->n_steps = 1;
}

static void redone(UiTree *t) {
    const UiSpot now = ui_tree_spot(t);
    if (t->n_done < t->n_steps && ui_tree_same(t, t->steps[t->n_done].to, now))
        t->steps[t->n_done++].to = now;
    else
        (void)push(t, UI_STEP_MOVED, QSF_LOG_BY_REDO);
}

/* The answer belongs to the change that added its message. Settings that changed while it was written come
 * before that: the answer is what happened last. */
static bool answers_last(UiTree *t) {
    const UiNode *tip = ui_tree_tip(t), *parent = tip ? ui_tree_parent(t, tip) : NULL;
    uint32_t i = t->n_done;
    while (i > 0 && !is_position(&t->steps[i - 1])) i--;
    if (i == 0 || !parent || t->steps[i - 1].to.id != parent->id || !(parent->at & UI_NODE_USER))
        return false;
    drop_undone(t);
    UiStep step = t->steps[--i];
    const UiSpot begin = before(t, i);
    for (; i + 1 < t->n_done; i++) {
        t->steps[i] = t->steps[i + 1];
        t->steps[i].to = begin;
    }
    step.to = ui_tree_spot(t);
    t->steps[i] = step;
    return true;
}

static void begin_change(UiTree *t, const QSFLogRecord *r) {
    if (t->pending) return;
    t->pending = true;
    (void)snprintf(t->by, sizeof t->by, "%s", r->by ? r->by : "");
}

static bool is_walk(const char *by) { return strcmp(by, "version") == 0 || strcmp(by, "goto") == 0; }

/* Going from place to place is one change, and none if it leads back. */
static bool walks_on(UiTree *t, const char *by) {
    UiStep *s = t->n_done > 0 ? &t->steps[t->n_done - 1] : NULL;
    if (!s || s->kind != UI_STEP_MOVED || !is_walk(by) || !is_walk(s->by)) return false;
    drop_undone(t);
    s->to = ui_tree_spot(t);
    (void)snprintf(s->by, sizeof s->by, "%s", by);
    if (!ui_tree_same(t, before(t, t->n_done - 1), s->to)) return true;
    t->n_done--;
    drop_undone(t);
    return true;
}

void ui_steps_commit(UiTree *t, const QSFLogRecord *r, UiStepKind kind) {
    const bool answer = r->kind == QSF_LOG_MESSAGE && strcmp(r->role, "user") != 0;
    if (r->more) {
        begin_change(t, r);
        return;
    }
    const bool begun = t->pending && t->by[0];
    char by[sizeof t->by];
    (void)snprintf(by, sizeof by, "%s", begun ? t->by : r->by ? r->by : "");
    t->pending = false;
    if (strcmp(by, QSF_LOG_BY_UNDO) == 0)
        ui_steps_back(t, t->n_done > 0 ? t->steps[t->n_done - 1].to : t->begin);
    else if (strcmp(by, QSF_LOG_BY_REDO) == 0)
        redone(t);
    else if (ui_tree_same(t, t->n_done > 0 ? t->steps[t->n_done - 1].to : t->begin, ui_tree_spot(t)))
        return; /* it came to nothing */
    else if (!walks_on(t, by) && (begun || !answer || !answers_last(t)))
        (void)push(t, by[0] ? UI_STEP_MOVED : kind, by);
}

/* After the beginning has left the context it is the answer that happened last. */
void ui_steps_go_on(UiTree *t) {
    const UiStep *s = t->n_done > 0 ? &t->steps[t->n_done - 1] : NULL;
    const bool left = s && (strcmp(s->by, "forget") == 0 || strcmp(s->by, "compact") == 0);
    if (left && s->kind == UI_STEP_MOVED) (void)push(t, UI_STEP_EXCHANGE, "");
}

void ui_steps_withdrawn(UiTree *t, uint32_t id) {
    if (t->n_done == 0) return;
    UiStep *s = &t->steps[t->n_done - 1];
    if (s->kind != UI_STEP_EXCHANGE || s->to.id != id) return;
    t->n_done--;
    drop_undone(t);
}

static bool is_by(const QSFLogRecord *r, const char *by) { return r->by && strcmp(r->by, by) == 0; }

static bool is_of(const UiStep *s, const QSFLogRecord *r) {
    if (r->kind == QSF_LOG_SYSTEM) return s->kind == UI_STEP_SYSTEM;
    return s->kind == UI_STEP_SETTING && s->name && strcmp(s->name, r->name) == 0;
}

static char *copy(const char *s) { return s ? ui_strdup_len(s, strlen(s)) : NULL; }

/* A record adds one stop string, or removes all. */
static char *value_after(const QSFLogRecord *r) {
    UiBuf b = { 0 };
    if (strcmp(r->name, "stop") != 0 || !*r->text) return copy(r->text);
    if (r->was && *r->was) ui_buf_printf(&b, "%s\n", r->was);
    ui_stops_quote(r->text, &b);
    return b.data;
}

/* Repeated changes of one setting are one change; those of /role, /branch and others are not. */
static void take_setting(UiTree *t, const QSFLogRecord *r, uint32_t was_at) {
    UiStep *top = t->n_done > 0 ? &t->steps[t->n_done - 1] : NULL;
    const uint32_t is_at = r->kind == QSF_LOG_SYSTEM ? t->system_at : 0;
    if (!r->by && top && top->kind == UI_STEP_SETTING && strcmp(top->by, "set") == 0 && is_of(top, r)) {
        char *is = copy(r->text);
        drop_undone(t);
        free(top->is);
        top->is = is;
        return;
    }
    UiStep *s = push(t, r->kind == QSF_LOG_SYSTEM ? UI_STEP_SYSTEM : UI_STEP_SETTING, r->by ? r->by : "set");
    s->more = r->more;
    s->was_at = was_at;
    s->is_at = is_at;
    if (r->kind == QSF_LOG_SYSTEM) return;
    s->name = copy(r->name);
    s->was = copy(r->was);
    s->is = value_after(r);
}

bool ui_steps_undoes(const UiTree *t, const QSFLogRecord *r) {
    return is_by(r, QSF_LOG_BY_UNDO) && !r->more && t->n_done > 0 && is_of(&t->steps[t->n_done - 1], r);
}

/* Several records may set one value: the last one counts. */
void ui_steps_setting(UiTree *t, const QSFLogRecord *r, uint32_t was_at) {
    if (is_by(r, QSF_LOG_BY_UNDO)) {
        if (ui_steps_undoes(t, r)) t->n_done--;
    } else if (is_by(r, QSF_LOG_BY_REDO)) {
        if (!r->more && t->n_done < t->n_steps && is_of(&t->steps[t->n_done], r)) t->n_done++;
    } else if (r->kind == QSF_LOG_SYSTEM ? r->by != NULL : r->was != NULL) {
        take_setting(t, r, was_at);
    }
}

const UiStep *ui_tree_undo(const UiTree *t, UiSpot *to) {
    if (t->n_done == 0) return NULL;
    *to = before(t, t->n_done - 1);
    return &t->steps[t->n_done - 1];
}

const UiStep *ui_tree_redo(const UiTree *t) { return t->n_done < t->n_steps ? &t->steps[t->n_done] : NULL; }
