/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Looks for models with its own process. */
#include "ui/model_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qsf_system.h"
#include "ui/app.h"

#define ARGS_MOST 512

/* ---- the process ---- */

typedef struct Args {
    char *text[ARGS_MOST + 1]; /* (n) owned, then NULL */
    size_t n;
    bool failed;
} Args;

static void add_arg(Args *a, const char *text) {
    char *copy = a->n < ARGS_MOST ? strdup(text) : NULL;
    if (copy)
        a->text[a->n++] = copy;
    else
        a->failed = true;
}

static void make_args(Args *a, const char *program, const char *const *dirs, const char *only,
                      const QSFSettings *settings) {
    char value[QSF_SETTING_TEXT], text[QSF_SETTING_TEXT + 64];
    add_arg(a, program);
    add_arg(a, "--no-config");
    add_arg(a, "--list-models");
    for (size_t i = 0; dirs && dirs[i]; i++) {
        add_arg(a, "--model-dir");
        add_arg(a, dirs[i]);
    }
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!row->arg || !qsf_setting_user_set(settings, row)) continue;
        qsf_setting_get(settings, row, value, sizeof value);
        (void)snprintf(text, sizeof text, "--%s=%s", row->name, value);
        add_arg(a, text);
    }
    if (only) {
        add_arg(a, "--");
        add_arg(a, only);
    }
}

bool ui_model_scan_start(UiModelScan *s, const char *const *dirs, const char *only,
                         const QSFSettings *settings) {
    char program[4096];
    int fd[2];
    ui_model_scan_stop(s);
    s->last = qsf_model_last();
    if (!qsf_program_again(program, sizeof program) || !qsf_pipe(fd, false)) return false;
    (void)fcntl(fd[0], F_SETFL, O_NONBLOCK);
    Args *a = calloc(1, sizeof *a);
    if (a) make_args(a, program, dirs, only, settings);
    const bool ok = a && !a->failed && qsf_spawn_apart(&s->pid, (const char *const *)a->text, -1, fd[1]) == 0;
    for (size_t i = 0; a && i < a->n; i++) free(a->text[i]);
    free(a);
    close(fd[1]);
    s->fd = fd[0];
    if (ok) return true;
    close(fd[0]);
    s->pid = 0;
    return false;
}

/* One that waits for a dead server cannot be ended: it is left to itself. */
static void end_process(UiModelScan *s) {
    if (s->pid == 0) return;
    close(s->fd);
    if (waitpid(s->pid, NULL, WNOHANG) == 0) {
        kill(s->pid, SIGKILL);
        for (int tries = 0; tries < 20 && waitpid(s->pid, NULL, WNOHANG) == 0; tries++)
            (void)poll(NULL, 0, 1);
    }
    s->pid = 0;
}

/* ---- its lines ---- */

static void free_row(UiModelRow *row) { free(row->line); }

/* Splits a copy of a line; false if it has other fields than expected. */
static bool read_row(UiModelRow *row, const char *line, size_t len) {
    *row = (UiModelRow){ .line = ui_strdup_len(line, len) };
    char *p = row->line;
    for (int i = 0; p && i < UI_MODEL_FIELDS; i++) {
        row->field[i] = p;
        p = strchr(p, '\t');
        if (p) *p++ = '\0';
        if (!p && i + 1 < UI_MODEL_FIELDS) break;
        if (i + 1 == UI_MODEL_FIELDS && !p) {
            row->bytes = strtoull(row->field[UI_MODEL_BYTES], NULL, 10);
            return true;
        }
    }
    free_row(row);
    return false;
}

static UiModelRow *find_row(UiModelScan *s, const char *path) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->rows[i].field[UI_MODEL_PATH], path) == 0) return &s->rows[i];
    return NULL;
}

static bool add_row(UiModelScan *s, const UiModelRow *row) {
    if (s->n == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 32;
        UiModelRow *more = realloc(s->rows, cap * sizeof *more);
        if (!more) return false;
        s->rows = more;
        s->cap = cap;
    }
    const bool first = s->last && strcmp(row->field[UI_MODEL_PATH], s->last) == 0;
    if (first && s->n > 0) memmove(s->rows + 1, s->rows, s->n * sizeof *s->rows);
    s->rows[first ? 0 : s->n] = *row;
    s->n++;
    return true;
}

bool ui_model_scan_add(UiModelScan *s, const char *line, size_t len) {
    UiModelRow row;
    if (!read_row(&row, line, len)) return false;
    if (!*row.field[UI_MODEL_PATH]) { /* about all of it */
        (void)snprintf(s->note, sizeof s->note, "%s", row.field[UI_MODEL_VERDICT]);
        free_row(&row);
        return true;
    }
    UiModelRow *known = find_row(s, row.field[UI_MODEL_PATH]);
    if (known) {
        free_row(known);
        *known = row;
    } else if (!add_row(s, &row)) {
        free_row(&row);
    }
    return true;
}

/* Its output, in any pieces. */
static bool take_bytes(UiModelScan *s, const char *bytes, size_t n) {
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            if (s->part.len <= UI_SCAN_LINE) (void)ui_buf_add(&s->part, bytes + i, 1);
            continue;
        }
        if (s->part.len <= UI_SCAN_LINE && !s->part.failed)
            any = ui_model_scan_add(s, ui_buf_str(&s->part), s->part.len) || any;
        ui_buf_clear(&s->part);
    }
    return any;
}

bool ui_model_scan_read(UiModelScan *s) {
    char bytes[8192];
    bool any = false;
    ssize_t n = -1;
    while (s->pid != 0 && (n = read(s->fd, bytes, sizeof bytes)) > 0)
        any = take_bytes(s, bytes, (size_t)n) || any;
    if (s->pid != 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
        end_process(s);
        any = true;
    }
    return any;
}

void ui_model_scan_finish(UiModelScan *s, double seconds) {
    const double end = ui_now() + seconds;
    while (s->pid != 0 && ui_now() < end) {
        struct pollfd p = { .fd = s->fd, .events = POLLIN };
        (void)poll(&p, 1, 100);
        (void)ui_model_scan_read(s);
    }
    end_process(s);
}

void ui_model_scan_stop(UiModelScan *s) {
    end_process(s);
    for (size_t i = 0; i < s->n; i++) free_row(&s->rows[i]);
    free(s->rows);
    free(s->last);
    ui_buf_free(&s->part);
    *s = (UiModelScan){ 0 };
}

/* ---- rows ---- */

bool ui_model_row_refused(const UiModelRow *row) {
    static const char refused[] = "not supported";
    return strncmp(row->field[UI_MODEL_VERDICT], refused, sizeof refused - 1) == 0;
}

void ui_model_row_text(const UiModelRow *row, UiBuf *b) {
    ui_buf_clear(b);
    ui_buf_printf(b, "%s %s %s %s %s %s", row->field[UI_MODEL_NAME], row->field[UI_MODEL_TYPE],
                  row->field[UI_MODEL_ARCH], row->field[UI_MODEL_VERDICT], row->field[UI_MODEL_PLACE],
                  row->field[UI_MODEL_PATH]);
}
