/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lines of files as if they were typed. */
#include "ui/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "qsf_decode.h"
#include "ui/commands.h"
#include "ui/compose/textfile.h"
#include "ui/ctx_full.h"
#include "ui/path.h"

static void close_file(UiSource *s) {
    UiSourceFile *f = &s->files[--s->depth];
    free(f->name);
    ui_buf_free(&f->text);
    ui_buf_free(&f->lines.text);
    *f = (UiSourceFile){ 0 };
}

void ui_source_free(UiSource *s) {
    while (s->depth > 0) close_file(s);
}

/* A file that reads itself would never end. */
static bool is_open(const UiSource *s, const struct stat *st) {
    for (unsigned i = 0; i < s->depth; i++)
        if (s->files[i].dev == st->st_dev && s->files[i].ino == st->st_ino) return true;
    return false;
}

static bool refuse(UiApp *a, const char *path, const char *why) {
    ui_app_say(a, UI_ERROR, "/source: %s: %s", path, why);
    return false;
}

/* Begins to read a file; the lines follow with ui_source_run. false: reported. */
static bool open_file(UiApp *a, const char *path) {
    UiSource *s = &a->source;
    UiTextFile file = { 0 };
    struct stat st = { 0 };
    char why[200];
    const size_t room = ui_app_text_room(a);
    if (s->depth == UI_SOURCE_DEPTH) return refuse(a, path, "more than 8 files name each other");
    if (stat(path, &st) == 0 && is_open(s, &st)) return refuse(a, path, "it is being read already");
    if (s->depth > 0 && ++s->opened >= UI_SOURCE_FILES) return refuse(a, path, "more than 1000 files");
    if (ui_textfile_read(&file, path, room < UI_SOURCE_MAX ? room : UI_SOURCE_MAX, false, why, sizeof why) !=
        UI_TEXTFILE_OK) {
        ui_textfile_free(&file);
        return refuse(a, path, why);
    }
    if (file.damaged) ui_app_say(a, UI_NOTICE, "%s: %s", path, QSF_DECODE_DAMAGED);
    if (s->depth == 0) s->opened = 1;
    s->files[s->depth++] = (UiSourceFile){
        .name = ui_strdup_len(path, strlen(path)), .text = file.text, .dev = st.st_dev, .ino = st.st_ino
    };
    return true;
}

/* The next message or command of the file that was opened last, in f->lines.text; false: it has no more. */
static bool next_line(UiSource *s, UiSourceFile *f) {
    const char *text = ui_buf_str(&f->text);
    while (f->at < f->text.len) {
        const char *line = text + f->at, *end = memchr(line, '\n', f->text.len - f->at);
        const size_t len = end ? (size_t)(end - line) : f->text.len - f->at;
        f->at += len + (end ? 1 : 0);
        f->line++;
        if (ui_lines_at_start(&f->lines))
            (void)snprintf(s->where, sizeof s->where, "%.280s:%u", f->name ? f->name : "", f->line);
        if (ui_lines_feed(&f->lines, line, len)) return true;
    }
    return ui_lines_end(&f->lines);
}

static bool waits(const UiApp *a) {
    const bool download = a->download.by_source && ui_download_running(a);
    return ui_app_busy(a) || a->replanning || a->enlarging || download || ui_ctx_full_open(a) || a->quit;
}

static void submit(UiApp *a, const UiBuf *text) {
    /* It cannot be shortened, as in the input line. */
    if (text->failed)
        ui_app_say(a, UI_ERROR, "out of memory: the message was not sent");
    else if (!ui_app_submit(a, ui_buf_str(text), text->len) && a->not_sent > 0)
        ui_app_say(a, UI_ERROR, "not sent: %lld tokens do not fit the context of %u", (long long)a->not_sent,
                   a->stats.ctx_size);
}

void ui_source_run(UiApp *a) {
    UiSource *s = &a->source;
    if (s->running) return;
    s->running = true;
    while (!waits(a) && s->depth > 0) {
        UiSourceFile *f = &s->files[s->depth - 1];
        if (!next_line(s, f)) {
            close_file(s);
            continue;
        }
        UiBuf text = f->lines.text; /* the file may be closed */
        f->lines.text = (UiBuf){ 0 };
        if (text.len > 0) submit(a, &text);
        ui_buf_free(&text);
    }
    if (s->depth == 0 && !waits(a)) s->where[0] = '\0';
    s->running = false;
}

bool ui_source_drop(UiApp *a) {
    UiSource *s = &a->source;
    const UiSourceFile *f = s->depth > 0 ? &s->files[s->depth - 1] : NULL;
    if (!f) return false;
    const bool more = s->depth > 1 || f->at < f->text.len;
    ui_source_free(s);
    if (more) ui_app_say(a, UI_NOTICE, "stopped: what follows %s is not read", s->where);
    return more;
}

bool ui_cmd_source(UiApp *a, const char *name, const char *args) {
    char *path = *args ? ui_path_expand(args) : NULL;
    if (!*args) ui_app_say(a, UI_ERROR, "/%s expects a file with messages and commands", name);
    const bool ok = path && open_file(a, path);
    free(path);
    return ok;
}
