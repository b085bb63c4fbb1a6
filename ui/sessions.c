/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of sessions. */
#include "ui/sessions.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/format.h"
#include "ui/session_rows.h"

#define UI_LISTED     50 /* maximum number of sessions read and shown */
#define UI_ONE_LINE   68 /* minimum width of the list for one line per session */
#define UI_WITH_MODEL 90 /* and for the model in that line */
#define UI_KEPT       10 /* cells of the column of snapshots, if there are any */

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

static void put_title(Table *t, const UiSessionRow *row, int room) {
    UiBuf b = { 0 };
    ui_buf_printf(&b, "%s%s", row->state, row->title ? row->title : "");
    put(t, ui_buf_str(&b), room, false);
    ui_buf_free(&b);
}

static void one_line(Table *t, const UiSessionRow *row, const char *mark) {
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
    put_title(t, row, room);
}

static void two_lines(Table *t, const UiSessionRow *row, const char *mark) {
    char facts[64];
    const bool kept = row->info.snapshot_bytes > 0;
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
    if (room > 8 && (row->state[0] || (row->title && *row->title))) {
        ui_buf_puts(t->b, ", ");
        put_title(t, row, room - 2);
    }
}

static int smaller(int a, int b) { return a < b ? a : b; }

static int room_for_all(const Table *t) { return t->width - (t->kept > 0 ? UI_KEPT : 0); }

static bool is_narrow(const Table *t) { return room_for_all(t) < UI_ONE_LINE; }

/* Columns are as wide as their widest text, but leave space for the others. */
static void arrange(Table *t, const UiSessionRow *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        t->kept += rows[i].info.snapshot_bytes;
        int name = cells_of(rows[i].name), model = cells_of(rows[i].model);
        if (name > t->name) t->name = name;
        if (model > t->model) t->model = model;
    }
    t->name = smaller(t->name, is_narrow(t) ? t->width - 4 - UI_WHEN : room_for_all(t) / 3);
    if (t->name < 4) t->name = 4;
    if (t->model < 5) t->model = 5;
    t->model = room_for_all(t) < UI_WITH_MODEL ? 0 : smaller(t->model, t->width / 6);
}

static void put_rows(Table *t, const UiSessionRow *rows, size_t n, const char *current) {
    const bool narrow = is_narrow(t);
    if (!narrow)
        ui_buf_printf(t->b, "  %-*s  %-*s  messages  %s%-*s%stitle", t->name, "name", UI_WHEN, "last used",
                      t->kept ? "snapshot  " : "", t->model, t->model ? "model" : "", t->model ? "  " : "");
    for (size_t i = 0; i < n; i++) {
        const char *mark = strcmp(rows[i].info.name, current) == 0 ? "* " : "  ";
        ui_buf_puts(t->b, i > 0 || !narrow ? "\n" : "");
        if (narrow)
            two_lines(t, &rows[i], mark);
        else
            one_line(t, &rows[i], mark);
        while (t->b->len > 0 && t->b->data[t->b->len - 1] == ' ') t->b->data[--t->b->len] = '\0';
    }
}

/* What the snapshots take, those of sessions that are not shown too. */
static void put_total(Table *t, uint64_t bytes) {
    char text[16];
    if (bytes == 0) return;
    ui_format_bytes(bytes, text, sizeof text);
    ui_buf_printf(t->b, "\n  all snapshots: %s", text);
}

void ui_sessions_list(UiBuf *b, const char *current, QSFSearch *search, int width, bool ascii) {
    UiSessionRows r;
    Table t = { .b = b, .more = ascii ? "..." : "\xe2\x80\xa6" };
    t.width = width < 40 ? 40 : smaller(width, 200);
    (void)ui_session_rows_read(&r, current, search ? SIZE_MAX : UI_LISTED, search);
    if (r.n > 0) {
        arrange(&t, r.rows, r.n);
        put_rows(&t, r.rows, r.n, current);
        if (r.all > r.n && !search) ui_buf_printf(b, "\n  and %zu older ones", r.all - r.n);
        if (!search) put_total(&t, r.snapshots);
    }
    if (r.skipped > 0) ui_buf_printf(b, "%s  %zu not searched: too large", r.n > 0 ? "\n" : "", r.skipped);
    ui_session_rows_free(&r);
}

/* ---- titles ---- */

#define UI_KNOWN       64          /* sessions whose titles are remembered */
#define UI_FIRST_BYTES (256 << 10) /* of a file that is read for them: Tab must not take long */

typedef struct Known {
    char name[QSF_LOG_NAME], title[120];
    double mtime;
    uint64_t bytes;
} Known;

static void cut_at_character(UiBuf *b, size_t len) {
    while (len > 0 && len < b->len && ((unsigned char)b->data[len] & 0xc0) == 0x80) len--;
    if (len >= b->len) return;
    b->len = len;
    b->data[len] = '\0';
}

void ui_sessions_title(const QSFLogInfo *info, const char *current, char *dst, size_t cap) {
    static Known known[UI_KNOWN];
    static size_t next;
    dst[0] = '\0';
    if (info->bytes > UI_FIRST_BYTES) return;
    Known *k = NULL;
    for (size_t i = 0; i < UI_KNOWN && !k; i++)
        if (strcmp(known[i].name, info->name) == 0) k = &known[i];
    if (!k) k = &known[next++ % UI_KNOWN];
    if (strcmp(k->name, info->name) != 0 || k->mtime != info->mtime || k->bytes != info->bytes) {
        UiSessionRow row;
        uint64_t left = UI_FIRST_BYTES;
        ui_session_row_read(&row, info, current, NULL, &left);
        *k = (Known){ .mtime = info->mtime, .bytes = info->bytes };
        (void)snprintf(k->name, sizeof k->name, "%s", info->name);
        UiBuf b = { 0 };
        ui_buf_printf(&b, "%s%s", row.state, row.title ? row.title : "");
        cut_at_character(&b, sizeof k->title - 1);
        (void)snprintf(k->title, sizeof k->title, "%s", ui_buf_str(&b));
        ui_buf_free(&b);
        ui_session_row_free(&row);
    }
    (void)snprintf(dst, cap, "%s", k->title);
}
