/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stop strings. */
#include "ui/stops.h"

#include <stdlib.h>
#include <string.h>

/* Escapes in a line, and their meaning. */
static const char spelled[] = "nt\\", meant[] = "\n\t\\";

const char *ui_stops_add(UiStops *s, const char *text) {
    if (!*text) return "the stop string is empty";
    if (strlen(text) > UI_STOP_LEN) return "the stop string is longer than 4096 bytes";
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->text[i], text) == 0) return NULL;
    }
    if (s->n == UI_STOPS_MAX) return "at most 64 stop strings are allowed";
    s->text[s->n] = ui_strdup_len(text, strlen(text));
    if (!s->text[s->n]) return "out of memory";
    s->n++;
    return NULL;
}

void ui_stops_clear(UiStops *s) {
    for (size_t i = 0; i < s->n; i++) free(s->text[i]);
    *s = (UiStops){ 0 };
}

char *ui_stops_unquote(const char *line) {
    char *text = ui_strdup_len(line, strlen(line)), *to = text;
    for (const char *p = line; text && *p; p++) {
        const char *at = *p == '\\' && p[1] ? strchr(spelled, p[1]) : NULL;
        *to++ = at ? meant[at - spelled] : *p;
        p += at != NULL;
    }
    if (text) *to = '\0';
    return text;
}

void ui_stops_quote(const char *text, UiBuf *out) {
    for (const char *p = text; *p; p++) {
        const char *at = strchr(meant, *p);
        if (at) {
            ui_buf_puts(out, "\\");
            ui_buf_add(out, &spelled[at - meant], 1);
        } else {
            ui_buf_add(out, p, 1);
        }
    }
}

void ui_stops_list(const UiStops *s, UiBuf *out) {
    for (size_t i = 0; i < s->n; i++) {
        if (i > 0) ui_buf_puts(out, "\n");
        ui_stops_quote(s->text[i], out);
    }
}

void ui_stops_read(UiStops *s, const char *list) {
    ui_stops_clear(s);
    for (size_t n; *list; list += n + (list[n] == '\n')) {
        n = strcspn(list, "\n");
        char *line = ui_strdup_len(list, n), *text = line ? ui_stops_unquote(line) : NULL;
        if (text) (void)ui_stops_add(s, text);
        free(line);
        free(text);
    }
}
