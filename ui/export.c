/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exports the conversation to a file. */
#include "ui/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "qsf_savefile.h"

#define UI_YEAR_10000 253402300800.0 /* in seconds since 1970 */

static void iso_time(double t, char *dst, size_t cap) {
    time_t when = t > 0 && t < UI_YEAR_10000 ? (time_t)t : 0;
    struct tm tm;
    dst[0] = '\0';
    if (when > 0 && gmtime_r(&when, &tm)) (void)strftime(dst, cap, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Length of the UTF-8 sequence at s, 0 if it is ill-formed: JSON must be UTF-8, whatever a model
 * generated. */
static size_t sequence(const char *s, size_t len) {
    unsigned char c = (unsigned char)s[0];
    size_t n = c < 0x80                ? 1
               : c >= 0xc2 && c < 0xe0 ? 2
               : (c & 0xf0) == 0xe0    ? 3
               : c >= 0xf0 && c < 0xf5 ? 4
                                       : 0;
    if (n == 0 || n > len) return 0;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80) return 0;
    }
    unsigned char d = n > 1 ? (unsigned char)s[1] : 0;
    bool bad = (c == 0xe0 && d < 0xa0) || (c == 0xed && d >= 0xa0) || (c == 0xf0 && d < 0x90) ||
               (c == 0xf4 && d >= 0x90);
    return bad ? 0 : n;
}

/* DEL and the control characters of C1 too: the file may be shown on a terminal. */
static void json_string(UiBuf *b, const char *s, size_t len) {
    ui_buf_puts(b, "\"");
    while (len > 0) {
        size_t n = sequence(s, len);
        unsigned char c = (unsigned char)*s;
        if (n == 0)
            ui_buf_puts(b, "\\ufffd");
        else if (c == '"' || c == '\\')
            ui_buf_printf(b, "\\%c", c);
        else if (c == '\n')
            ui_buf_puts(b, "\\n");
        else if (c < 0x20 || c == 0x7f)
            ui_buf_printf(b, "\\u%04x", c);
        else if (c == 0xc2 && (unsigned char)s[1] < 0xa0)
            ui_buf_printf(b, "\\u%04x", (unsigned char)s[1]);
        else
            ui_buf_add(b, s, n);
        s += n ? n : 1;
        len -= n ? n : 1;
    }
    ui_buf_puts(b, "\"");
}

/* Appends the readable part of the reasoning. */
static void put_plain(UiBuf *b, const UiItem *thought, void (*put)(UiBuf *, const char *, size_t)) {
    char *plain = malloc(thought->raw.len + 1);
    b->failed = b->failed || !plain;
    if (plain) put(b, plain, qsf_reasoning_plain(ui_buf_str(&thought->raw), thought->raw.len, plain));
    free(plain);
}

static void json_field(UiBuf *b, const char *name, const char *value) {
    ui_buf_printf(b, "\"%s\": ", name);
    json_string(b, value, strlen(value));
}

static void as_json(const UiApp *a, UiBuf *b) {
    ui_buf_puts(b, "{");
    json_field(b, "model", a->stats.model_name);
    ui_buf_puts(b, ", ");
    json_field(b, "session", a->session.name);
    ui_buf_puts(b, ", \"settings\": {");
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        char value[QSF_SETTING_TEXT];
        qsf_setting_get(&a->settings, qsf_setting_at(i), value, sizeof value);
        ui_buf_puts(b, i ? ", " : "");
        json_field(b, qsf_setting_at(i)->name, value);
    }
    ui_buf_puts(b, "},\n \"messages\": [");
    const char *sep = "\n";
    if (a->system.len > 0) {
        ui_buf_puts(b, "\n  {\"role\": \"system\", ");
        json_field(b, "content", ui_buf_str(&a->system));
        ui_buf_puts(b, "}");
        sep = ",\n";
    }
    for (size_t i = 0; i < a->chat.n; i++) {
        const UiItem *it = a->chat.items[i];
        char when[32];
        if (!it->in_context) continue;
        iso_time(it->time, when, sizeof when);
        ui_buf_printf(b, "%s  {\"role\": \"%s\", \"time\": \"%s\", \"content\": ", sep,
                      it->kind == UI_USER ? "user" : "assistant", when);
        json_string(b, ui_buf_str(&it->raw), it->raw.len);
        if (ui_item_thought(it)) {
            ui_buf_puts(b, ", \"reasoning\": ");
            put_plain(b, it->thought, json_string);
        }
        if (it->kind == UI_ANSWER) {
            ui_buf_printf(b, ", \"tokens\": %u, \"seed\": \"%llu\", ", it->tokens,
                          (unsigned long long)it->seed);
            json_field(b, "stop", it->stop);
        }
        ui_buf_puts(b, "}");
        sep = ",\n";
    }
    ui_buf_puts(b, "\n ]}\n");
}

/* Cleaned for display: control characters of an answer must not reach the terminal that shows the file. */
static void put_clean(UiBuf *b, const char *s, size_t len, bool one_line) {
    char *clean = qsf_clean_dup(s, len, one_line);
    b->failed = b->failed || !clean;
    if (clean) ui_buf_puts(b, clean);
    free(clean);
}

static void put_lines(UiBuf *b, const char *s, size_t len) { put_clean(b, s, len, false); }

/* Separate from the answer, and folded if the format can fold. */
static void put_thought(UiBuf *b, const UiItem *thought, bool markdown) {
    ui_buf_puts(b, markdown ? "<details><summary>Thinking</summary>\n\n" : "[thinking]\n");
    put_plain(b, thought, put_lines);
    ui_buf_puts(b, markdown ? "\n\n</details>\n\n" : "\n[answer]\n");
}

static void put_heading(UiBuf *b, const char *title, bool markdown) {
    ui_buf_puts(b, markdown ? "## " : "");
    put_clean(b, title, strlen(title), true);
    ui_buf_puts(b, markdown ? "\n\n" : ":\n");
}

static const char *speaker(const UiItem *it) {
    if (it->kind == UI_USER) return "You";
    return it->label[0] ? it->label : "Assistant";
}

static void as_text(const UiApp *a, UiBuf *b, bool markdown) {
    const char *name = a->session.name[0] ? a->session.name : "Conversation";
    if (markdown) {
        ui_buf_puts(b, "# ");
        put_clean(b, name, strlen(name), true);
        ui_buf_puts(b, "\n\n");
    }
    if (a->system.len > 0) {
        put_heading(b, "System", markdown);
        put_clean(b, ui_buf_str(&a->system), a->system.len, false);
        ui_buf_puts(b, "\n\n");
    }
    for (size_t i = 0; i < a->chat.n; i++) {
        const UiItem *it = a->chat.items[i];
        if (!it->in_context) continue;
        put_heading(b, speaker(it), markdown);
        if (ui_item_thought(it)) put_thought(b, it->thought, markdown);
        put_clean(b, ui_buf_str(&it->raw), it->raw.len, false);
        ui_buf_puts(b, "\n\n");
    }
    if (b->len > 1) b->len--;
}

bool ui_export(const UiApp *a, const char *path, bool overwrite, char *err, size_t cap) {
    const char *dot = strrchr(path, '.');
    UiBuf b = { 0 };
    if (dot && strcasecmp(dot, ".json") == 0)
        as_json(a, &b);
    else if (dot && strcasecmp(dot, ".md") == 0)
        as_text(a, &b, true);
    else if (dot && strcasecmp(dot, ".txt") == 0)
        as_text(a, &b, false);
    else {
        (void)snprintf(err, cap, "%s: the name must end in .md, .txt or .json", path);
        return false;
    }
    int why = b.failed ? ENOMEM : qsf_savefile_save(path, b.data, b.len, overwrite);
    if (why == EEXIST)
        (void)snprintf(err, cap, "%s exists: /export! %s replaces it", path, path);
    else if (why)
        (void)snprintf(err, cap, "%s: cannot write: %s", path,
                       why == EINVAL ? "not a regular file" : strerror(why));
    ui_buf_free(&b);
    return why == 0;
}
