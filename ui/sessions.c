/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of sessions. */
#include "ui/sessions.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qsf_chatlog.h"
#include "qsf_text.h"
#include "ui/app.h"
#include "ui/format.h"

#define UI_LISTED     50                    /* maximum number of sessions read and shown */
#define UI_READ_MAX   ((uint64_t)128 << 20) /* maximum size of all files that are read for the list */
#define UI_COUNT_MAX  1000000               /* messages of a session that are counted */
#define UI_FIRST_MAX  1000                  /* bytes of the first message */
#define UI_ONE_LINE   68                    /* minimum width of the list for one line per session */
#define UI_WITH_MODEL 90                    /* and for the model in that line */
#define UI_KEPT       10                    /* cells of the column of snapshots, if there are any */
#define UI_WHEN       16                    /* cells of a time */

typedef struct Row {
    const QSFLogInfo *info;
    char when[UI_WHEN + 1];
    char *name, *model, *first; /* clean; NULL without memory */
    UiBuf roles;                /* one letter per message in the context: u or a */
    size_t past;                /* messages that were forgotten, which are still shown */
    bool past_user;             /* one of them is of the user */
    UiBuf first_raw, model_raw;
    uint32_t damaged;
    size_t messages;
    bool too_many;  /* messages to count */
    char state[48]; /* the problem with it, "" = none */
    char kept[16];  /* size of its snapshot, "-" = none */
} Row;

/* ---- contents of a session ---- */

static void cut(UiBuf *b, size_t len) {
    if (b->len <= len) return;
    b->len = len;
    b->data[len] = '\0';
}

/* The same rules as for replay: an answer after an answer continues it. */
static void count_message(Row *row, const QSFLogRecord *r) {
    bool user = strcmp(r->role, "user") == 0;
    if (!user && row->roles.len > 0 && row->roles.data[row->roles.len - 1] == 'a') return;
    if (user && !row->past_user && (row->roles.len == 0 || !memchr(row->roles.data, 'u', row->roles.len))) {
        ui_buf_clear(&row->first_raw);
        ui_buf_add(&row->first_raw, r->text, r->len < UI_FIRST_MAX ? r->len : UI_FIRST_MAX);
    }
    ui_buf_puts(&row->roles, user ? "u" : "a");
}

static void forget(Row *row, const QSFLogRecord *r) {
    const size_t gone = r->n < row->roles.len ? r->n : row->roles.len;
    UiBuf rest = { 0 };
    row->past += gone;
    row->past_user = row->past_user || (gone > 0 && memchr(row->roles.data, 'u', gone));
    if (r->text) ui_buf_puts(&rest, "ua");
    ui_buf_puts(&rest, ui_buf_str(&row->roles) + gone);
    ui_buf_free(&row->roles);
    row->roles = rest;
}

static bool on_record(void *arg, const QSFLogRecord *r) {
    Row *row = arg;
    switch (r->kind) {
    case QSF_LOG_MESSAGE: count_message(row, r); break;
    case QSF_LOG_UNDO: cut(&row->roles, r->n < row->roles.len ? row->roles.len - r->n : 0); break;
    case QSF_LOG_CLEAR:
        cut(&row->roles, 0);
        row->past = 0;
        row->past_user = false;
        break;
    case QSF_LOG_FORGET: forget(row, r); break;
    case QSF_LOG_MODEL:
        ui_buf_clear(&row->model_raw);
        ui_buf_add(&row->model_raw, r->text ? r->text : "", r->len);
        break;
    case QSF_LOG_PART:
    case QSF_LOG_SYSTEM:
    case QSF_LOG_SET: break;
    }
    row->too_many = row->past + row->roles.len >= UI_COUNT_MAX || row->roles.failed;
    return !row->too_many;
}

/* The model's file name without directory and extension. */
static char *model_name(const UiBuf *path) {
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

/* left: bytes of files that may still be read. */
static void read_row(Row *row, const QSFLogInfo *info, bool current, uint64_t *left) {
    char err[300] = "";
    time_t t = (time_t)info->mtime;
    struct tm tm;
    *row = (Row){ .info = info };
    if (info->snapshot_bytes > 0)
        ui_format_bytes(info->snapshot_bytes, row->kept, sizeof row->kept);
    else
        (void)snprintf(row->kept, sizeof row->kept, "-");
    if (localtime_r(&t, &tm)) (void)strftime(row->when, sizeof row->when, "%Y-%m-%d %H:%M", &tm);
    bool small = info->bytes <= *left;
    if (small) *left -= info->bytes;
    bool ok = small && qsf_chatlog_read(info->name, on_record, row, &row->damaged, err, sizeof err) &&
              !row->too_many;
    if (!current && qsf_chatlog_in_use(info->name))
        (void)snprintf(row->state, sizeof row->state, "[in use] ");
    else if (!ok)
        (void)snprintf(row->state, sizeof row->state, "%s",
                       small && !row->too_many ? "[cannot be read] " : "[too large to scan] ");
    else if (row->damaged > 0)
        (void)snprintf(row->state, sizeof row->state, "[%u damaged line%s] ", row->damaged,
                       row->damaged == 1 ? "" : "s");
    bool any = row->past_user || (row->roles.len > 0 && memchr(row->roles.data, 'u', row->roles.len));
    row->name = words(info->name, strlen(info->name));
    row->model = model_name(&row->model_raw);
    row->first = words(any ? ui_buf_str(&row->first_raw) : "", any ? row->first_raw.len : 0);
    row->messages = row->past + row->roles.len;
    ui_buf_free(&row->roles);
}

static void free_row(Row *row) {
    free(row->name);
    free(row->model);
    free(row->first);
    ui_buf_free(&row->roles);
    ui_buf_free(&row->first_raw);
    ui_buf_free(&row->model_raw);
}

/* ---- the text ---- */

typedef struct Table {
    UiBuf *b;
    const char *more; /* mark of truncated text */
    int width, name, model;
    uint64_t kept; /* bytes of all snapshots; 0: there is no column for them */
} Table;

static int cells_of(const char *s) { return s ? (int)qsf_text_width(s, strlen(s)) : 0; }

/* Fits s into room cells; with pad, into exactly that many. */
static void put(Table *t, const char *s, int room, bool pad) {
    s = s ? s : "";
    bool fits = cells_of(s) <= room;
    int used = 0, most = fits ? room : room - cells_of(t->more);
    for (size_t len = strlen(s); len > 0;) {
        int cells;
        size_t n = qsf_text_grapheme(s, len, &cells);
        if (used + cells > most) break;
        ui_buf_add(t->b, s, n);
        used += cells;
        s += n;
        len -= n;
    }
    if (!fits && most >= 0) {
        ui_buf_puts(t->b, t->more);
        used += cells_of(t->more);
    }
    if (pad && used < room) ui_buf_printf(t->b, "%*s", room - used, "");
}

static void put_first(Table *t, const Row *row, int room) {
    UiBuf b = { 0 };
    ui_buf_printf(&b, "%s%s", row->state, row->first ? row->first : "");
    put(t, ui_buf_str(&b), room, false);
    ui_buf_free(&b);
}

static void one_line(Table *t, const Row *row, const char *mark) {
    int room = t->width - 2 - t->name - 2 - UI_WHEN - 2 - 8 - 2;
    ui_buf_puts(t->b, mark);
    put(t, row->name, t->name, true);
    ui_buf_printf(t->b, "  %-*s  %8zu  ", UI_WHEN, row->when, row->messages);
    if (t->kept > 0) {
        ui_buf_printf(t->b, "%8s  ", row->kept);
        room -= UI_KEPT;
    }
    if (t->model > 0) {
        put(t, row->model, t->model, true);
        ui_buf_puts(t->b, "  ");
        room -= t->model + 2;
    }
    put_first(t, row, room);
}

static void two_lines(Table *t, const Row *row, const char *mark) {
    char facts[64];
    const bool kept = row->info->snapshot_bytes > 0;
    int n = snprintf(facts, sizeof facts, "%zu message%s%s%s", row->messages, row->messages == 1 ? "" : "s",
                     kept ? ", " : "", kept ? row->kept : "");
    ui_buf_puts(t->b, mark);
    put(t, row->name, t->name, true);
    ui_buf_printf(t->b, "  %s\n    %s", row->when, facts);
    int room = t->width - 4 - n;
    if (row->model && *row->model) {
        ui_buf_puts(t->b, ", ");
        int most = room / 2, is = cells_of(row->model);
        put(t, row->model, most, false);
        room -= 2 + (is < most ? is : most);
    }
    if (room > 8 && (row->state[0] || (row->first && *row->first))) {
        ui_buf_puts(t->b, ", ");
        put_first(t, row, room - 2);
    }
}

static int smaller(int a, int b) { return a < b ? a : b; }

static int room_for_all(const Table *t) { return t->width - (t->kept > 0 ? UI_KEPT : 0); }

static bool is_narrow(const Table *t) { return room_for_all(t) < UI_ONE_LINE; }

/* Columns are as wide as their widest text, but leave space for the others. */
static void arrange(Table *t, const Row *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        t->kept += rows[i].info->snapshot_bytes;
        int name = cells_of(rows[i].name), model = cells_of(rows[i].model);
        if (name > t->name) t->name = name;
        if (model > t->model) t->model = model;
    }
    t->name = smaller(t->name, is_narrow(t) ? t->width - 4 - UI_WHEN : room_for_all(t) / 3);
    if (t->name < 4) t->name = 4;
    if (t->model < 5) t->model = 5;
    t->model = room_for_all(t) < UI_WITH_MODEL ? 0 : smaller(t->model, t->width / 6);
}

static void put_rows(Table *t, const Row *rows, size_t n, const char *current) {
    const bool narrow = is_narrow(t);
    if (!narrow)
        ui_buf_printf(t->b, "  %-*s  %-*s  messages  %s%-*s%sfirst message", t->name, "name", UI_WHEN,
                      "last used", t->kept ? "snapshot  " : "", t->model, t->model ? "model" : "",
                      t->model ? "  " : "");
    for (size_t i = 0; i < n; i++) {
        const char *mark = strcmp(rows[i].info->name, current) == 0 ? "* " : "  ";
        ui_buf_puts(t->b, i > 0 || !narrow ? "\n" : "");
        if (narrow)
            two_lines(t, &rows[i], mark);
        else
            one_line(t, &rows[i], mark);
        while (t->b->len > 0 && t->b->data[t->b->len - 1] == ' ') t->b->data[--t->b->len] = '\0';
    }
}

/* What the snapshots take, those of sessions that are not shown too. */
static void put_total(Table *t, const QSFLogInfo *all, size_t n) {
    char text[16];
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += all[i].snapshot_bytes;
    if (sum == 0) return;
    ui_format_bytes(sum, text, sizeof text);
    ui_buf_printf(t->b, "\n  all snapshots: %s", text);
}

void ui_sessions_list(UiBuf *b, const char *current, int width, bool ascii) {
    size_t n = 0;
    QSFLogInfo *all = qsf_chatlog_list(&n);
    size_t shown = n < UI_LISTED ? n : UI_LISTED;
    Row *rows = shown > 0 ? calloc(shown, sizeof *rows) : NULL;
    Table t = { .b = b, .more = ascii ? "..." : "\xe2\x80\xa6" };
    t.width = width < 40 ? 40 : smaller(width, 200);
    uint64_t left = UI_READ_MAX;
    for (size_t i = 0; rows && i < shown; i++)
        read_row(&rows[i], &all[i], strcmp(all[i].name, current) == 0, &left);
    if (rows) {
        arrange(&t, rows, shown);
        put_rows(&t, rows, shown, current);
        if (n > shown) ui_buf_printf(b, "\n  and %zu older ones", n - shown);
        put_total(&t, all, n);
    }
    for (size_t i = 0; rows && i < shown; i++) free_row(&rows[i]);
    free(rows);
    free(all);
}

/* ---- first words ---- */

#define UI_KNOWN       64          /* sessions whose first words are remembered */
#define UI_FIRST_BYTES (256 << 10) /* of a file that is read for them: Tab must not take long */

typedef struct Known {
    char name[QSF_LOG_NAME], first[120];
    double mtime;
    uint64_t bytes;
} Known;

static void cut_at_character(UiBuf *b, size_t len) {
    while (len > 0 && len < b->len && ((unsigned char)b->data[len] & 0xc0) == 0x80) len--;
    cut(b, len);
}

void ui_sessions_first(const QSFLogInfo *info, const char *current, char *dst, size_t cap) {
    static Known known[UI_KNOWN];
    static size_t next;
    dst[0] = '\0';
    if (info->bytes > UI_FIRST_BYTES) return;
    Known *k = NULL;
    for (size_t i = 0; i < UI_KNOWN && !k; i++)
        if (strcmp(known[i].name, info->name) == 0) k = &known[i];
    if (!k) k = &known[next++ % UI_KNOWN];
    if (strcmp(k->name, info->name) != 0 || k->mtime != info->mtime || k->bytes != info->bytes) {
        Row row;
        uint64_t left = UI_FIRST_BYTES;
        read_row(&row, info, strcmp(info->name, current) == 0, &left);
        *k = (Known){ .mtime = info->mtime, .bytes = info->bytes };
        (void)snprintf(k->name, sizeof k->name, "%s", info->name);
        UiBuf b = { 0 };
        ui_buf_printf(&b, "%s%s", row.state, row.first ? row.first : "");
        cut_at_character(&b, sizeof k->first - 1);
        (void)snprintf(k->first, sizeof k->first, "%s", ui_buf_str(&b));
        ui_buf_free(&b);
        free_row(&row);
    }
    (void)snprintf(dst, cap, "%s", k->first);
}
