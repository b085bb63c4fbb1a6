/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The conversation on disk while it happens. */
#include "ui/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UI_PART_SECONDS 1.0

static bool name_taken(const char *name) {
    size_t n = 0;
    QSFLogInfo *all = qsf_chatlog_list(&n);
    bool taken = false;
    for (size_t i = 0; all && i < n; i++) taken = taken || strcmp(all[i].name, name) == 0;
    free(all);
    return taken;
}

void ui_session_name_now(char *dst, size_t cap) {
    time_t now = time(NULL);
    struct tm tm;
    char base[40] = "chat";
    if (localtime_r(&now, &tm)) (void)strftime(base, sizeof base, "%Y-%m-%d_%H-%M-%S", &tm);
    (void)snprintf(dst, cap, "%s", base);
    for (int i = 2; i < 100 && name_taken(dst); i++) (void)snprintf(dst, cap, "%s-%d", base, i);
}

void ui_session_use(UiSession *s, const char *name) {
    ui_session_close(s);
    (void)snprintf(s->name, sizeof s->name, "%s", name);
}

static void problem(UiSession *s, const char *err) {
    if (!s->failing) (void)snprintf(s->problem, sizeof s->problem, "not saved: %s", err);
    s->failing = true;
}

bool ui_session_open(UiSession *s, char *err, size_t cap) {
    if (!s->log && s->on && s->name[0]) s->log = qsf_chatlog_open(s->name, err, cap);
    if (!s->log && s->on) problem(s, err);
    return s->log != NULL;
}

void ui_session_close(UiSession *s) {
    qsf_chatlog_close(s->log);
    s->log = NULL;
    s->failing = s->lost = false;
    s->parted = s->parted_reasoning = 0;
}

static bool append(UiSession *s, const QSFLogRecord *r) {
    char err[300] = "";
    if (!s->log) return false;
    if (qsf_chatlog_append(s->log, r, err, sizeof err)) {
        s->failing = false;
        return true;
    }
    problem(s, err);
    return false;
}

bool ui_session_message(UiSession *s, const char *role, const char *text, size_t len,
                        const QSFLogRecord *facts) {
    QSFLogRecord r = facts ? *facts : (QSFLogRecord){ 0 };
    r.kind = QSF_LOG_MESSAGE;
    r.role = role;
    r.text = text;
    r.len = len;
    bool ok = append(s, &r);
    s->lost = s->lost || !ok;
    s->parted = s->parted_reasoning = 0;
    return ok;
}

bool ui_session_simple(UiSession *s, QSFLogKind kind, const char *name, const char *text, uint32_t n) {
    QSFLogRecord r = { .kind = kind, .name = name, .text = text, .len = text ? strlen(text) : 0, .n = n };
    bool ok = append(s, &r);
    s->lost = s->lost || (!ok && s->log && kind != QSF_LOG_SET && kind != QSF_LOG_MODEL);
    return ok;
}

void ui_session_part(UiSession *s, const QSFLogRecord *all, double now, bool force) {
    bool more = all->len > s->parted || all->reasoning_len > s->parted_reasoning;
    if (!more || (!force && now - s->part_time < UI_PART_SECONDS)) return;
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
