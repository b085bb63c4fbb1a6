/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: settings, changed by commands and by the live keys. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"

/* The file says where in the answer the change was: what is there of it comes first. */
static void mark(UiApp *a, const QSFSetting *row, const char *value) {
    if (a->answer)
        ui_session_part(&a->session, ui_buf_str(&a->answer->raw) + a->answer_from,
                        a->answer->raw.len - a->answer_from, ui_now(), true);
    ui_session_simple(&a->session, QSF_LOG_SET, row->name, value, 0);
}

/* Turning a knob is one line in the transcript, not one per key. */
static void mark_on_screen(UiApp *a, const QSFSetting *row, const char *from, const char *to) {
    UiItem *last = a->chat.n > 0 ? a->chat.items[a->chat.n - 1] : NULL;
    if (last && last->kind == UI_NOTICE && strcmp(last->label, row->name) == 0) {
        const char *arrow = strstr(ui_buf_str(&last->raw), " -> ");
        UiBuf text = { 0 };
        ui_buf_add(&text, ui_buf_str(&last->raw), arrow ? (size_t)(arrow - ui_buf_str(&last->raw)) : 0);
        ui_buf_printf(&text, " -> %s", to);
        ui_buf_clear(&last->raw);
        (void)ui_item_append(&a->chat, last, ui_buf_str(&text), text.len);
        ui_buf_free(&text);
        return;
    }
    char text[QSF_SETTING_TEXT * 2 + 80];
    int n = snprintf(text, sizeof text, "%s %s -> %s", row->name, from, to);
    UiItem *it = ui_transcript_add(&a->chat, UI_NOTICE, text, n > 0 ? (size_t)n : 0);
    if (it) (void)snprintf(it->label, sizeof it->label, "%s", row->name);
}

static void said_change(UiApp *a, const QSFSetting *row, const char *from, const char *to) {
    if (a->full_screen)
        mark_on_screen(a, row, from, to);
    else
        ui_app_say(a, UI_NOTICE, "%s %s", row->name, to);
}

bool ui_app_set(UiApp *a, const QSFSetting *row, const char *value, bool quiet) {
    char err[300], from[QSF_SETTING_TEXT], to[QSF_SETTING_TEXT];
    QSFSettings next = a->settings;
    qsf_setting_get(&a->settings, row, from, sizeof from);
    if (qsf_setting_set(&next, row, value, err, sizeof err) != 0) {
        ui_app_say(a, UI_ERROR, "%s", err);
        return false;
    }
    qsf_setting_get(&next, row, to, sizeof to);
    a->settings = next;
    if (strcmp(from, to) == 0) {
        if (!quiet) ui_app_say(a, UI_NOTICE, "%s is %s", row->name, to);
        return true;
    }
    mark(a, row, to);
    if (!quiet) said_change(a, row, from, to);
    if (row->flags & QSF_SETTING_LIVE)
        a->engine.set_params(a->engine.self, &a->settings.params);
    else
        ui_app_load(a, NULL);
    return true;
}

static bool is_knob(size_t i) {
    const QSFSetting *row = qsf_setting_at(i);
    return row && row->step > 0 && (row->flags & QSF_SETTING_LIVE);
}

void ui_app_knob_choose(UiApp *a, int by) {
    size_t n = qsf_setting_count();
    size_t i = a->knob;
    for (size_t tries = 0; n > 0 && tries < n; tries++) {
        i = (i + (by < 0 ? n - 1 : 1)) % n;
        if (is_knob(i)) {
            a->knob = (unsigned)i;
            return;
        }
    }
}

void ui_app_knob_turn(UiApp *a, int steps) {
    const QSFSetting *row = qsf_setting_at(a->knob);
    char value[QSF_SETTING_TEXT], from[QSF_SETTING_TEXT];
    if (!row || !is_knob(a->knob)) return;
    qsf_setting_get(&a->settings, row, from, sizeof from);
    double v = strtod(from, NULL) + steps * row->step;
    v = v < row->min ? row->min : v > row->max ? row->max : v;
    /* Steps land on round numbers; a limit of "above 0" stays above it. */
    v = round(v * 1e4) / 1e4;
    if (v <= 0 && strcmp(row->name, "top-p") == 0) v = row->step;
    (void)snprintf(value, sizeof value, "%.10g", v);
    (void)ui_app_set(a, row, value, !a->full_screen);
}
