/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is known of the sessions on disk. */
#include "ui/session_rows.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qsf_remote.h"
#include "qsf_text.h"
#include "ui/app.h"
#include "ui/format.h"

#define UI_READ_MAX  ((uint64_t)128 << 20) /* maximum size of all files that are read */
#define UI_FIND_MAX  ((uint64_t)1 << 30)   /* the same for a search */
#define UI_COUNT_MAX 1000000               /* messages of a session that are counted */
#define UI_FIRST_MAX 1000                  /* bytes of the first message */
#define UI_FIND_LINE 65536                 /* bytes of a line that are searched at once */

#define UI_TOO_LARGE "[too large to scan] "

/* Searches texts line by line. */
typedef struct Find {
    QSFSearch *search; /* NULL = nothing is searched for */
    QSFChatLog *log;   /* for long texts */
    UiBuf line;
    bool hit;
} Find;

typedef struct Reader {
    UiBuf roles;    /* one letter per message in the context: u or a, capital if it was found */
    size_t past;    /* messages that were forgotten, which are still shown */
    bool past_user; /* one of them is of the user */
    bool found;     /* in one of them, or in the title */
    UiBuf first, model, title;
    bool too_many; /* messages to count */
    Find find;
} Reader;

/* ---- search ---- */

static void find_line(Find *f) {
    size_t begin, end;
    f->hit = f->hit || qsf_search_find(f->search, ui_buf_str(&f->line), f->line.len, 0, &begin, &end);
    ui_buf_clear(&f->line);
}

/* Whole characters arrive. */
static void find_text(Find *f, const char *s, size_t len) {
    while (len > 0 && !f->hit) {
        const char *nl = memchr(s, '\n', len);
        const size_t n = nl ? (size_t)(nl - s) : len;
        (void)ui_buf_add(&f->line, s, n);
        if (nl || f->line.len >= UI_FIND_LINE) find_line(f);
        s += n + (nl != NULL);
        len -= n + (nl != NULL);
    }
}

static void find_piece(void *arg, QSFLogPart part, const char *s, size_t len) {
    if (part == QSF_LOG_IS_TEXT || part == QSF_LOG_IS_REASONING) find_text(arg, s, len);
}

/* Is there something in the texts of r? */
static bool find_record(Find *f, const QSFLogRecord *r) {
    if (!f->search) return false;
    f->hit = false;
    if (r->text_bytes > r->len || r->reasoning_bytes > r->reasoning_len) {
        if (f->log) (void)qsf_chatlog_texts(f->log, &r->at, 1, find_piece, f);
    } else {
        find_text(f, r->text ? r->text : "", r->len);
        find_text(f, "\n", 1);
        find_text(f, r->reasoning ? r->reasoning : "", r->reasoning_len);
    }
    if (!f->hit) find_line(f);
    ui_buf_clear(&f->line);
    return f->hit;
}

/* ---- records ---- */

static void cut(UiBuf *b, size_t len) {
    if (b->len <= len) return;
    b->len = len;
    b->data[len] = '\0';
}

static bool has_user(const UiBuf *roles, size_t n) {
    return n > 0 && (memchr(roles->data, 'u', n) || memchr(roles->data, 'U', n));
}

static bool has_found(const UiBuf *roles, size_t n) {
    return n > 0 && (memchr(roles->data, 'U', n) || memchr(roles->data, 'A', n));
}

/* A message without an answer is shown, though it left the context. */
static bool has_found_last(const UiBuf *roles) {
    return roles->len > 0 && roles->data[roles->len - 1] == 'U';
}

/* The same rules as for replay: an answer after an answer continues it. */
static void count_message(Reader *rd, const QSFLogRecord *r) {
    const bool user = strcmp(r->role, "user") == 0, found = find_record(&rd->find, r);
    char *last = rd->roles.len > 0 ? &rd->roles.data[rd->roles.len - 1] : NULL;
    if (!user && last && (*last == 'a' || *last == 'A')) {
        if (found) *last = 'A';
        return;
    }
    if (user && !rd->past_user && !has_user(&rd->roles, rd->roles.len)) {
        ui_buf_clear(&rd->first);
        const size_t typed = ui_attach_typed(r->text, r->len); /* not the files that go with it */
        ui_buf_add(&rd->first, r->text, typed < UI_FIRST_MAX ? typed : UI_FIRST_MAX);
    }
    ui_buf_puts(&rd->roles, user ? (found ? "U" : "u") : found ? "A" : "a");
}

static void forget(Reader *rd, const QSFLogRecord *r) {
    const size_t gone = r->n < rd->roles.len ? r->n : rd->roles.len;
    UiBuf rest = { 0 };
    rd->past += gone;
    rd->past_user = rd->past_user || has_user(&rd->roles, gone);
    rd->found = rd->found || has_found(&rd->roles, gone);
    if (r->text) ui_buf_puts(&rest, find_record(&rd->find, r) ? "uA" : "ua");
    ui_buf_puts(&rest, ui_buf_str(&rd->roles) + gone);
    ui_buf_free(&rd->roles);
    rd->roles = rest;
}

static void take_text(UiBuf *b, const QSFLogRecord *r) {
    ui_buf_clear(b);
    ui_buf_add(b, r->text ? r->text : "", r->text ? r->len : 0);
}

static bool on_record(void *arg, const QSFLogRecord *r) {
    Reader *rd = arg;
    switch (r->kind) {
    case QSF_LOG_MESSAGE: count_message(rd, r); break;
    case QSF_LOG_UNDO:
        if (r->more && !r->by) rd->found = rd->found || has_found_last(&rd->roles);
        cut(&rd->roles, r->n < rd->roles.len ? rd->roles.len - r->n : 0);
        break;
    case QSF_LOG_CLEAR:
        cut(&rd->roles, 0);
        rd->past = 0;
        rd->past_user = rd->found = false;
        break;
    case QSF_LOG_FORGET: forget(rd, r); break;
    case QSF_LOG_MODEL: take_text(&rd->model, r); break;
    case QSF_LOG_SET:
        if (r->name && strcmp(r->name, QSF_LOG_TITLE) == 0) take_text(&rd->title, r);
        break;
    case QSF_LOG_PART:
    case QSF_LOG_SYSTEM: break;
    }
    rd->too_many = rd->past + rd->roles.len >= UI_COUNT_MAX || rd->roles.failed;
    return !rd->too_many;
}

/* ---- rows ---- */

/* "NAME at HOST:PORT": names of models may have slashes. */
static char *server_model_name(const char *path) {
    const char *url = strchr(path, ':') + 1, *host = strstr(url, "://");
    UiBuf b = { 0 };
    if (host) url = host + 3;
    size_t len = strcspn(url, "#");
    if (len > 3 && strncmp(url + len - 3, "/v1", 3) == 0) len -= 3;
    ui_buf_printf(&b, "%s at %.*s", qsf_connect_model(path), (int)len, url);
    char *clean = qsf_clean_dup(ui_buf_str(&b), b.len, true);
    ui_buf_free(&b);
    return clean;
}

/* The model's file name without directory and extension, or the model of a server. */
static char *model_name(const UiBuf *path) {
    if (qsf_connect_is(ui_buf_str(path))) return server_model_name(ui_buf_str(path));
    const char *slash = strrchr(ui_buf_str(path), '/');
    const char *name = slash ? slash + 1 : ui_buf_str(path);
    return qsf_clean_dup(name, ui_model_stem(name), true);
}

/* Clean words with one blank between them. */
static char *words(const char *s, size_t len) {
    char *clean = qsf_clean_dup(s, len, true), *to = clean;
    for (const char *p = clean; p && *p; p++) {
        if (*p == ' ' && (to == clean || to[-1] == ' ')) continue;
        *to++ = *p;
    }
    if (to) *to = '\0';
    return clean;
}

static void set_state(UiSessionRow *row, bool current, bool ok, bool too_large, uint32_t damaged) {
    if (!current && qsf_chatlog_in_use(row->info.name))
        (void)snprintf(row->state, sizeof row->state, "[in use] ");
    else if (!ok)
        (void)snprintf(row->state, sizeof row->state, "%s", too_large ? UI_TOO_LARGE : "[cannot be read] ");
    else if (damaged > 0)
        (void)snprintf(row->state, sizeof row->state, "[%u damaged line%s] ", damaged,
                       damaged == 1 ? "" : "s");
}

static void take_title(UiSessionRow *row, Reader *rd) {
    const bool any = rd->past_user || has_user(&rd->roles, rd->roles.len);
    const UiBuf *title = rd->title.len > 0 ? &rd->title : any ? &rd->first : NULL;
    row->title = words(title ? ui_buf_str(title) : "", title ? title->len : 0);
    if (!rd->find.search || !row->title) return;
    rd->find.hit = false;
    find_text(&rd->find, row->title, strlen(row->title));
    find_line(&rd->find);
    row->found = rd->find.hit || rd->found || has_found(&rd->roles, rd->roles.len);
}

static void set_facts(UiSessionRow *row, const QSFLogInfo *info) {
    const time_t t = (time_t)info->mtime;
    struct tm tm;
    *row = (UiSessionRow){ .info = *info };
    if (info->snapshot_bytes > 0)
        ui_format_bytes(info->snapshot_bytes, row->kept, sizeof row->kept);
    else
        (void)snprintf(row->kept, sizeof row->kept, "-");
    if (localtime_r(&t, &tm)) (void)strftime(row->when, sizeof row->when, "%Y-%m-%d %H:%M", &tm);
    row->name = words(info->name, strlen(info->name));
}

void ui_session_row_read(UiSessionRow *row, const QSFLogInfo *info, const char *current, QSFSearch *search,
                         uint64_t *left) {
    char err[300] = "";
    uint32_t damaged = 0;
    Reader rd = { .find.search = search };
    const bool small = info->bytes <= *left;
    set_facts(row, info);
    if (small) *left -= info->bytes;
    if (search && small) rd.find.log = qsf_chatlog_view(info->name, err, sizeof err);
    const bool ok = small && qsf_chatlog_read(info->name, on_record, &rd, &damaged, err, sizeof err) &&
                    !rd.too_many;
    set_state(row, strcmp(info->name, current) == 0, ok, !small || rd.too_many, damaged);
    row->model = model_name(&rd.model);
    row->messages = rd.past + rd.roles.len;
    take_title(row, &rd);
    (void)qsf_chatlog_close(rd.find.log);
    ui_buf_free(&rd.find.line);
    ui_buf_free(&rd.roles);
    ui_buf_free(&rd.first);
    ui_buf_free(&rd.model);
    ui_buf_free(&rd.title);
}

void ui_session_row_free(UiSessionRow *row) {
    free(row->name);
    free(row->model);
    free(row->title);
}

bool ui_session_rows_read(UiSessionRows *r, const char *current, size_t most, QSFSearch *search) {
    uint64_t left = search ? UI_FIND_MAX : UI_READ_MAX;
    *r = (UiSessionRows){ 0 };
    QSFLogInfo *all = qsf_chatlog_list(&r->all);
    const size_t n = r->all < most ? r->all : most;
    r->rows = n > 0 ? calloc(n, sizeof *r->rows) : NULL;
    for (size_t i = 0; i < r->all; i++) r->snapshots += all[i].snapshot_bytes;
    for (size_t i = 0; r->rows && i < n; i++) {
        UiSessionRow *row = &r->rows[r->n];
        ui_session_row_read(row, &all[i], current, search, &left);
        if (search && !row->found) {
            r->skipped += strcmp(row->state, UI_TOO_LARGE) == 0;
            ui_session_row_free(row);
        } else {
            r->n++;
        }
    }
    free(all);
    return n == 0 || r->rows;
}

void ui_session_rows_free(UiSessionRows *r) {
    for (size_t i = 0; i < r->n; i++) ui_session_row_free(&r->rows[i]);
    free(r->rows);
    *r = (UiSessionRows){ 0 };
}
