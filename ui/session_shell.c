/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sessions for the shell. */
#include "ui/session_shell.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "qsf_cli.h"
#include "qsf_text.h"
#include "ui/app_internal.h"
#include "ui/format.h"
#include "ui/session_rows.h"

#define MIB         ((uint64_t)1 << 20)
#define ROOM        (256 * MIB) /* for messages without their texts; also with a larger budget, or none */
#define PROGRAM     (6 * MIB)   /* of a budget, not for them */
#define GAP         2
#define TITLE_LEAST 12 /* cells */
#define FACTS       6

/* ---- list ---- */

typedef struct Facts {
    char age[32], size[24], messages[24];
    const char *text[FACTS];
} Facts;

static void facts_of(const UiSessionRow *row, bool rounded, double now, Facts *f) {
    if (rounded) {
        ui_format_ago(row->info.mtime, now, f->age, sizeof f->age);
        ui_format_file(row->info.bytes, f->size, sizeof f->size);
    } else {
        (void)snprintf(f->age, sizeof f->age, "%.0f", now > row->info.mtime ? now - row->info.mtime : 0);
        (void)snprintf(f->size, sizeof f->size, "%llu", (unsigned long long)row->info.bytes);
    }
    (void)snprintf(f->messages, sizeof f->messages, "%zu", row->messages);
    const char *const text[FACTS] = { row->name, row->title, row->model, f->messages, f->age, f->size };
    for (int i = 0; i < FACTS; i++) f->text[i] = text[i] ? text[i] : "";
}

static int cells_of(const char *s) { return (int)qsf_text_width(s, strlen(s)); }

/* s in exactly that many cells. */
static void put_cells(const char *s, int cells, bool right) {
    const int have = cells_of(s);
    int used = 0;
    if (right && have < cells) printf("%*s", cells - have, "");
    for (size_t len = strlen(s); len > 0;) {
        int w;
        const size_t n = qsf_text_grapheme(s, len, &w);
        if (used + w > cells) break;
        (void)fwrite(s, 1, n, stdout);
        used += w;
        s += n;
        len -= n;
    }
    if (!right && used < cells) printf("%*s", cells - used, "");
}

/* Cells of all columns but the title, with their gaps. */
static int others_of(const int width[FACTS]) {
    int sum = 0;
    for (int i = 0; i < FACTS; i++)
        if (i != 1 && width[i] >= 0) sum += width[i] + GAP;
    return sum;
}

/* The title, and if need be the name and the model, leave space for the others; of those that do not fit
 * beside it even so the width becomes -1: they are left out. */
static void fit(int width[FACTS], int columns) {
    static const int less[] = { 5, 2, 3, 4 };
    if (width[0] > columns / 3) width[0] = columns / 3;
    if (width[2] > columns / 4) width[2] = columns / 4;
    for (size_t i = 0; i < sizeof less / sizeof *less && columns - others_of(width) < TITLE_LEAST; i++)
        width[less[i]] = -1;
    const int room = columns - others_of(width);
    if (width[1] > room) width[1] = room > 1 ? room : 1;
}

static void print_columns(const UiSessionRows *r, double now) {
    struct winsize ws;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 20;
    int width[FACTS] = { 0 };
    Facts f;
    for (size_t i = 0; i < r->n; i++) {
        facts_of(&r->rows[i], true, now, &f);
        for (int k = 0; k < FACTS; k++)
            if (cells_of(f.text[k]) > width[k]) width[k] = cells_of(f.text[k]);
    }
    fit(width, known ? ws.ws_col : 80);
    for (size_t i = 0; i < r->n; i++) {
        facts_of(&r->rows[i], true, now, &f);
        for (int k = 0; k < FACTS; k++) {
            if (width[k] < 0) continue;
            if (k > 0) (void)fputs("  ", stdout);
            put_cells(f.text[k], width[k], k == 3 || k == 5);
        }
        (void)fputc('\n', stdout);
    }
}

static void print_tabs(const UiSessionRows *r, double now) {
    Facts f;
    for (size_t i = 0; i < r->n; i++) {
        facts_of(&r->rows[i], false, now, &f);
        for (int k = 0; k < FACTS; k++) printf("%s%c", f.text[k], k + 1 < FACTS ? '\t' : '\n');
    }
}

int ui_sessions_print(const char *expression, char *err, size_t cap) {
    UiSessionRows r;
    QSFSearch *search = expression ? qsf_search_new(expression, err, cap) : NULL;
    if (expression && !search) return QSF_EXIT_USAGE;
    const bool ok = ui_session_rows_read(&r, "", SIZE_MAX, search);
    if (isatty(STDOUT_FILENO) == 1)
        print_columns(&r, (double)time(NULL));
    else
        print_tabs(&r, (double)time(NULL));
    if (!ok) (void)snprintf(err, cap, "out of memory");
    if (ok && r.skipped > 0)
        (void)snprintf(err, cap, "%zu session%s not searched: too large", r.skipped,
                       r.skipped == 1 ? " was" : "s were");
    const int status = ok && r.skipped == 0 ? QSF_EXIT_OK : QSF_EXIT_RUNTIME;
    ui_session_rows_free(&r);
    qsf_search_free(search);
    return status;
}

/* ---- one session ---- */

typedef struct Printer {
    QSFChatLog *log;
    QSFClean clean;
    QSFLogPart part; /* what is printed now */
    UiBuf thought;
    bool failed;
} Printer;

static void put_clean(Printer *p, const char *s, size_t len, bool end) {
    char *dst = malloc(QSF_CLEAN_MAX(len) + 1);
    p->failed = p->failed || !dst;
    if (dst) (void)fwrite(dst, 1, qsf_clean(&p->clean, s, len, end, dst), stdout);
    free(dst);
}

static void put_piece(void *arg, QSFLogPart part, const char *s, size_t len) {
    Printer *p = arg;
    if (part != p->part) return;
    if (part == QSF_LOG_IS_REASONING)
        p->failed = !ui_buf_add(&p->thought, s, len) || p->failed;
    else
        put_clean(p, s, len, false);
}

static void put_texts(Printer *p, const uint64_t *at, size_t n, QSFLogPart part) {
    p->part = part;
    p->failed = !qsf_chatlog_texts(p->log, at, n, put_piece, p) || p->failed;
}

static void put_heading(const char *title) { printf("## %s\n\n", title); }

static void print_thought(Printer *p, const UiPlaces *places) {
    put_texts(p, places->at, places->n, QSF_LOG_IS_REASONING);
    char *plain = p->thought.len > 0 ? malloc(p->thought.len + 1) : NULL;
    const size_t n = plain ? qsf_reasoning_plain(p->thought.data, p->thought.len, plain) : 0;
    if (n > 0) {
        (void)fputs("<details><summary>Thinking</summary>\n\n", stdout);
        put_clean(p, plain, n, true);
        (void)fputs("\n\n</details>\n\n", stdout);
    }
    free(plain);
    ui_buf_clear(&p->thought);
}

static void print_item(Printer *p, const UiItem *it) {
    put_heading(it->kind == UI_USER ? "You" : it->label[0] ? it->label : "Assistant");
    if (it->places) {
        if (it->kind == UI_ANSWER) print_thought(p, it->places);
        put_texts(p, it->places->at, it->places->n, QSF_LOG_IS_TEXT);
    } else {
        put_clean(p, ui_buf_str(&it->raw), it->raw.len, false);
    }
    put_clean(p, "", 0, true);
    (void)fputs("\n\n", stdout);
}

static void print_head(Printer *p, const UiReplay *rp, const char *name) {
    const char *title = rp->title[0] ? rp->title : name;
    char *clean = qsf_clean_dup(title, strlen(title), true);
    printf("# %s\n\n", clean ? clean : "");
    free(clean);
    if (rp->system_bytes == 0) return;
    put_heading("System");
    put_texts(p, &rp->system_at, 1, QSF_LOG_IS_TEXT);
    put_clean(p, "", 0, true);
    (void)fputs("\n\n", stdout);
}

static void print_all(Printer *p, const UiReplay *rp, const char *name) {
    const size_t n = ui_replay_count(&rp->list);
    UiItem **items = n > 0 ? malloc(n * sizeof *items) : NULL;
    print_head(p, rp, name);
    if (items) ui_replay_all(&rp->list, items);
    for (size_t i = 0; items && i < n; i++) print_item(p, items[i]);
    p->failed = p->failed || (n > 0 && !items);
    free(items);
}

static uint64_t room_of(uint64_t budget) {
    if (budget == 0 || budget >= ROOM + PROGRAM) return ROOM;
    return budget > PROGRAM + MIB ? budget - PROGRAM : MIB;
}

int ui_session_print(const char *name, uint64_t budget, char *err, size_t cap) {
    UiReplay rp = { .room.bytes = room_of(budget) };
    Printer p = { .log = qsf_chatlog_view(name, err, cap) };
    uint32_t damaged = 0;
    if (!p.log) return QSF_EXIT_RUNTIME;
    ui_own_begin(&rp.own);
    bool ok = qsf_chatlog_read(name, ui_replay_record, &rp, &damaged, err, cap);
    const bool low = rp.room.bytes < ROOM;
    if (ok && rp.too_many)
        (void)snprintf(err, cap, "session %s: it has more messages than fit in %u MB%s", name,
                       (unsigned)(rp.room.bytes / MIB), low ? ": raise --ram-budget" : "");
    const int refused = low ? QSF_EXIT_BUDGET : QSF_EXIT_RUNTIME;
    ok = ok && !rp.too_many;
    if (ok) print_all(&p, &rp, name);
    if (ok && p.failed) (void)snprintf(err, cap, "session %s: a part of it cannot be read", name);
    if (ok && !p.failed && damaged > 0)
        (void)snprintf(err, cap, "session %s: %u damaged line%s skipped", name, damaged,
                       damaged == 1 ? " was" : "s were");
    ui_replay_end(&rp);
    ui_buf_free(&p.thought);
    (void)qsf_chatlog_close(p.log);
    return rp.too_many ? refused : ok && !p.failed ? QSF_EXIT_OK : QSF_EXIT_RUNTIME;
}
