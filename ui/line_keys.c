/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/line_keys.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/compose/editor.h"
#include "ui/input_plain.h"
#include "ui/typeahead.h"
#include "ui/ui_signals.h"

static int wait_for_editor(void *arg) {
    int *ended = arg, pass = 0;
    struct pollfd fd = { .fd = ui_signals_fd(), .events = POLLIN };
    (void)poll(&fd, 1, -1);
    for (int sig; (sig = ui_signals_next()) != 0;)
        if (sig == SIGTERM || sig == SIGHUP) *ended = pass = sig;
    return pass;
}

int ui_line_edit(UiApp *a) {
    int ended = 0;
    UiEditor e = { .arg = &ended, .wait = wait_for_editor, .room = ui_app_text_room(a) };
    UiBuf draft = { 0 }, text = { 0 };
    ui_plain_text(&draft);
    (void)ui_plain_hide();
    ui_plain_release();
    ui_typeahead_restore();
    const bool changed = ui_editor_run(&e, ui_buf_str(&draft), draft.len, &text);
    ui_typeahead_keep();
    if (changed) ui_plain_replace(ui_buf_str(&text), text.len);
    ui_plain_resized();
    ui_plain_take();
    if (!changed && ended == 0) ui_app_say(a, UI_OUTPUT, "%s", e.problem);
    ui_buf_free(&draft);
    ui_buf_free(&text);
    return ended;
}

void ui_line_end_echo(void) {
    if (!ui_plain_is_open()) (void)fputc('\n', stderr);
}

/* Only messages can wait. */
static void queue_line(UiApp *a, const char *line, size_t len) {
    const char *text = line;
    size_t n = len;
    if (ui_app_message(a, &text, &n))
        (void)ui_app_submit(a, line, len);
    else if (n > 0)
        ui_app_say(a, UI_OUTPUT, "not run: %.*s", (int)(len < 200 ? len : 200), line);
}

static void queue_lines(UiApp *a, const UiBuf *typed) {
    const char *s = ui_buf_str(typed);
    ui_line_end_echo();
    for (size_t at = 0; at < typed->len;) {
        const char *end = memchr(s + at, '\n', typed->len - at);
        const size_t len = end ? (size_t)(end - s) - at : typed->len - at;
        queue_line(a, s + at, len);
        at += len + (end ? 1 : 0);
    }
    a->queue.held = a->queue.n > 0;
    if (a->queue.n > 0)
        ui_app_say(a, UI_OUTPUT, "queued: %zu; an empty line sends the next one, /queue lists them",
                   a->queue.n);
}

void ui_line_keep_typed(UiApp *a, const char *rest, size_t len) {
    UiBuf typed = { 0 };
    ui_buf_add(&typed, rest, len);
    ui_typeahead_take(&typed);
    if (ui_plain_is_open())
        ui_plain_hold(ui_buf_str(&typed), typed.len);
    else if (typed.len > 0)
        queue_lines(a, &typed);
    ui_buf_free(&typed);
}
