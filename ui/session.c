/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saves the conversation to disk continuously. */
#include "ui/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define UI_PART_SECONDS 1.0
#define UI_SAME_NAME    999 /* chats of one name: NAME, NAME-2, ... */

void ui_session_name_now(char *dst, size_t cap) {
    time_t now = time(NULL);
    struct tm tm;
    char base[40] = "chat";
    if (localtime_r(&now, &tm)) (void)strftime(base, sizeof base, "%Y-%m-%d_%H-%M-%S", &tm);
    (void)snprintf(dst, cap, "%s", base);
}

bool ui_session_is_dated(const char *name) {
    static const char form[] = "dddd-dd-dd_dd-dd-dd";
    size_t i = 0;
    while (form[i] && (form[i] == 'd' ? name[i] >= '0' && name[i] <= '9' : name[i] == form[i])) i++;
    return form[i] == '\0'; /* -2, -3 may follow */
}

/* Maximum bytes of the records of a conversation without a file: besides the transcript. */
#define UI_SCRATCH_MAX ((uint64_t)4 << 20)

void ui_session_because(UiSession *s, const char *by, bool more) {
    s->by = by;
    s->more = more;
}

void ui_session_put_text(void *arg, QSFLogPart part, const char *s, size_t len) {
    if (part == QSF_LOG_IS_TEXT) (void)ui_buf_add(arg, s, len);
}

const QSFChatLog *ui_session_texts(const UiSession *s) { return s->log ? s->log : s->scratch; }

uint64_t ui_session_held(const UiSession *s) { return ui_tree_bytes(&s->tree); }

static void drop_scratch(UiSession *s) {
    (void)qsf_chatlog_close(s->scratch);
    s->scratch = NULL;
}

void ui_session_free(UiSession *s) {
    drop_scratch(s);
    ui_tree_free(&s->tree);
}

void ui_session_restart(UiSession *s) {
    drop_scratch(s);
    ui_tree_reset(&s->tree);
}

void ui_session_use(UiSession *s, const char *name) {
    ui_session_close(s);
    ui_session_free(s);
    s->lost = s->lost || s->unsaved;
    s->saved = s->had_file = s->unsaved = false;
    (void)snprintf(s->name, sizeof s->name, "%s", name);
}

static void problem(UiSession *s, const char *err) {
    if (!s->failing) (void)snprintf(s->problem, sizeof s->problem, "not saved: %s", err);
    (void)snprintf(s->why, sizeof s->why, "%s", err);
    s->failing = true;
}

static void saved(UiSession *s) {
    if (s->failing)
        (void)snprintf(s->notice, sizeof s->notice, "saved %sas %s", s->had_file ? "again " : "", s->name);
    s->failing = false;
    s->saved = s->had_file = true;
}

bool ui_session_attach(UiSession *s, const char *name, char *err, size_t cap) {
    ui_session_use(s, name);
    s->log = qsf_chatlog_open(name, err, cap);
    s->saved = s->log != NULL;
    return s->saved;
}

void ui_session_detach(UiSession *s) {
    (void)qsf_chatlog_close(s->log);
    s->log = NULL;
    s->on = s->saved = false;
}

bool ui_session_create(UiSession *s) {
    char err[300] = "";
    ui_session_restart(s);
    s->tree.last_id = 0;
    s->log = qsf_chatlog_create(s->name, err, sizeof err);
    if (!s->log) problem(s, err);
    s->pending = s->log != NULL;
    return s->pending;
}

/* Leaves no file; the next message tries again. */
static void discard(UiSession *s) {
    qsf_chatlog_close(s->log);
    s->log = NULL;
}

bool ui_session_publish(UiSession *s, bool other_name) {
    char err[300] = "", name[sizeof s->name + 16];
    s->pending = false;
    if (!qsf_chatlog_complete(s->log)) {
        discard(s);
        return false;
    }
    (void)snprintf(name, sizeof name, "%s", s->name);
    bool ok = qsf_chatlog_publish(s->log, name, err, sizeof err);
    for (int i = 2; !ok && other_name && errno == EEXIST && i <= UI_SAME_NAME; i++) {
        (void)snprintf(name, sizeof name, "%.95s-%d", s->name, i); /* 100 bytes at most */
        ok = qsf_chatlog_publish(s->log, name, err, sizeof err);
    }
    if (ok) {
        memcpy(s->name, name, sizeof s->name);
        s->name[sizeof s->name - 1] = '\0';
        saved(s);
    } else {
        problem(s, err);
        discard(s);
    }
    return ok;
}

bool ui_session_repair(UiSession *s) {
    static const char *const what[] = { "", "removed", "replaced by another, which is kept", "truncated" };
    const QSFLogState state = s->log && s->rewrite && !s->rewriting ? qsf_chatlog_state(s->log)
                                                                    : QSF_LOG_INTACT;
    char name[sizeof s->name];
    if (state == QSF_LOG_INTACT) return false;
    memcpy(name, s->name, sizeof name);
    if (state != QSF_LOG_CUT) {
        qsf_chatlog_close(s->log);
        s->log = NULL;
        s->saved = false;
    }
    s->parted = s->parted_reasoning = 0;
    s->rewriting = true;
    const bool ok = s->rewrite(s->arg);
    (void)snprintf(s->notice, sizeof s->notice, "the file of session %s was %s%s%s", name, what[state],
                   ok ? ": the conversation was saved again as " : "", ok ? s->name : "");
    s->rewriting = false;
    return true;
}

void ui_session_close(UiSession *s) {
    const bool empty = s->fresh && s->log && !s->pending;
    char err[300];
    (void)ui_session_repair(s);
    s->unsaved = s->log ? !qsf_chatlog_close(s->log) : s->failing || s->unsaved;
    s->log = NULL;
    if (empty && qsf_chatlog_delete(s->name, err, sizeof err)) s->saved = s->unsaved = false;
    s->fresh = s->failing = false;
    s->parted = s->parted_reasoning = 0;
}

/* Too much for memory: then earlier versions are not kept. */
static void append_scratch(UiSession *s, const QSFLogRecord *r) {
    char err[300];
    if (s->tree.failed || r->kind == QSF_LOG_PART) return;
    if (!s->scratch) s->scratch = qsf_chatlog_scratch();
    QSFLogRecord made = *r;
    const uint64_t most = s->scratch_max > 0 && s->scratch_max < UI_SCRATCH_MAX ? s->scratch_max
                                                                                : UI_SCRATCH_MAX;
    const bool ok = s->scratch && qsf_chatlog_last(s->scratch) + r->len < most &&
                    qsf_chatlog_append(s->scratch, r, err, sizeof err);
    if (ok) {
        made.at = qsf_chatlog_last(s->scratch);
        made.text_bytes = r->len;
        ui_tree_record(&s->tree, &made);
    } else {
        ui_session_restart(s);
        s->tree.failed = true;
    }
}

/* Something that is worth a file: what was said, or what the user said about it. */
static bool says_something(const QSFLogRecord *r) {
    if (r->kind == QSF_LOG_SET) return r->name && strcmp(r->name, QSF_LOG_TITLE) == 0;
    return r->kind != QSF_LOG_MODEL && (r->kind != QSF_LOG_SYSTEM || r->by != NULL);
}

static bool append(UiSession *s, const QSFLogRecord *given) {
    char err[300] = "";
    QSFLogRecord r = *given;
    if (!r.by) r.by = s->by;
    r.more = r.more || s->more;
    if (r.kind == QSF_LOG_SET) r.was = s->was;
    s->fresh = s->fresh && !says_something(&r);
    if (ui_session_repair(s)) return s->log != NULL;
    if (!s->log) {
        append_scratch(s, &r);
        return false;
    }
    const bool ok = qsf_chatlog_append(s->log, &r, err, sizeof err);
    r.at = qsf_chatlog_last(s->log);
    r.text_bytes = r.len;
    ui_tree_record(&s->tree, &r);
    if (!ok)
        problem(s, err);
    else if (!s->pending)
        saved(s);
    return ok;
}

bool ui_session_message(UiSession *s, const char *role, const char *text, size_t len,
                        const QSFLogRecord *facts) {
    QSFLogRecord r = facts ? *facts : (QSFLogRecord){ 0 };
    r.kind = QSF_LOG_MESSAGE;
    r.role = role;
    r.text = text;
    r.len = len;
    bool ok = append(s, &r);
    s->parted = s->parted_reasoning = 0;
    return ok;
}

bool ui_session_simple(UiSession *s, QSFLogKind kind, const char *name, const char *text, uint32_t n) {
    QSFLogRecord r = { .kind = kind, .name = name, .text = text, .len = text ? strlen(text) : 0, .n = n };
    return append(s, &r);
}

void ui_session_part(UiSession *s, const QSFLogRecord *all, double now, bool force) {
    bool more = all->len > s->parted || all->reasoning_len > s->parted_reasoning;
    if (!more || (!force && now - s->part_time < UI_PART_SECONDS)) return;
    (void)ui_session_repair(s); /* the open answer is not in what it writes */
    QSFLogRecord r = { .kind = QSF_LOG_PART, .text = all->text + s->parted, .len = all->len - s->parted };
    if (all->reasoning_len > s->parted_reasoning) {
        r.reasoning = all->reasoning + s->parted_reasoning;
        r.reasoning_len = all->reasoning_len - s->parted_reasoning;
    }
    s->part_time = now;
    if (!append(s, &r)) return;
    s->parted = all->len;
    s->parted_reasoning = all->reasoning_len;
}
