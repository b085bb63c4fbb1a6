/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements ui/notify.h. Sequences: xterm's ctlseqs (the title and its stack), iTerm2's documentation
 * (OSC 9), urxvt's extension "notify" (OSC 777), which VTE, foot and Ghostty have too. */
#include "ui/notify.h"

#include <string.h>

#include "ui/osc.h"

bool ui_notify_parse(const char *word, UiNotify *out) {
    static const char *const words[] = { "auto", "bell", "osc", "off" };
    for (int i = 0; i < 4; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out = (UiNotify)i;
            return true;
        }
    }
    return false;
}

static bool is(const char *value, const char *word) { return value && strcmp(value, word) == 0; }

static bool begins(const char *value, const char *word) {
    return value && strncmp(value, word, strlen(word)) == 0;
}

static bool has_777(const UiNotifyTerm *t) {
    return (t->vte && *t->vte) || begins(t->term, "foot") || begins(t->term, "rxvt-unicode");
}

static bool has_9(const UiNotifyTerm *t) {
    return is(t->program, "iTerm.app") || is(t->program, "WezTerm") || is(t->program, "ghostty") ||
           begins(t->term, "xterm-kitty") || begins(t->term, "xterm-ghostty");
}

static void put(UiBuf *out, const UiNotifyTerm *t, const char *before, const char *text) {
    UiBuf sequence = { 0 };
    ui_buf_printf(&sequence, "\x1b]%s%s\a", before, text);
    ui_osc_put(out, ui_osc_wrap(t->term, t->tmux), &sequence);
    ui_buf_free(&sequence);
}

void ui_notify_bytes(UiNotify how, const UiNotifyTerm *t, const char *text, UiBuf *out) {
    const bool inside = t->tmux && *t->tmux;
    if (how == UI_NOTIFY_OFF) return;
    if (how == UI_NOTIFY_BELL || (how == UI_NOTIFY_AUTO && (inside || (!has_777(t) && !has_9(t)))))
        ui_buf_puts(out, "\a");
    else if (has_777(t))
        put(out, t, "777;notify;qsf-chat;", text);
    else
        put(out, t, "9;", text);
}

/* The console of Linux and terminals of hardware have no window. */
static bool has_window(const UiNotifyTerm *t) {
    return t->term && !begins(t->term, "linux") && !begins(t->term, "vt") && !begins(t->term, "dumb") &&
           !begins(t->term, "screen");
}

void ui_notify_title(const UiNotifyTerm *t, const char *text, UiBuf *out) {
    if (!has_window(t)) return;
    if (text)
        ui_buf_printf(out, "\x1b[22;2t\x1b]2;%s\a", text);
    else
        ui_buf_puts(out, "\x1b[23;2t");
}

UiNotifyDo ui_notify_watch(UiNotifyWatch *w, bool writing, bool stopped, bool key, double now) {
    const bool ended = w->running && !writing;
    const bool took_long = now - w->since > UI_NOTIFY_SECONDS;
    if (writing && !w->running) w->since = now;
    w->running = writing;
    if (key && w->told) {
        w->told = false;
        return UI_NOTIFY_TAKE_BACK;
    }
    if (!ended || stopped || !took_long || w->told) return UI_NOTIFY_NOTHING;
    w->told = true;
    return UI_NOTIFY_TELL;
}
