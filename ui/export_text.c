/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The conversation as Markdown, text and JSON. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ui/export_internal.h"
#include "ui/json.h"

#define UI_YEAR_10000 253402300800.0 /* in seconds since 1970 */

void ui_export_time(double t, char *dst, size_t cap) {
    time_t when = t > 0 && t < UI_YEAR_10000 ? (time_t)t : 0;
    struct tm tm;
    dst[0] = '\0';
    if (when > 0 && gmtime_r(&when, &tm)) (void)strftime(dst, cap, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void ui_export_thought(UiBuf *b, const UiItem *thought, void (*put)(UiBuf *, const char *, size_t)) {
    char *plain = malloc(thought->raw.len + 1);
    b->failed = b->failed || !plain;
    if (plain) put(b, plain, qsf_reasoning_plain(ui_buf_str(&thought->raw), thought->raw.len, plain));
    free(plain);
}

void ui_export_as_json(const UiApp *a, UiBuf *b) {
    ui_buf_puts(b, "{\"version\": 1, ");
    ui_json_field(b, "model", a->stats.model_name);
    ui_buf_puts(b, ", ");
    ui_json_field(b, "session", a->session.name);
    ui_buf_puts(b, ", \"settings\": {");
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        char value[QSF_SETTING_TEXT];
        qsf_setting_get(&a->settings, qsf_setting_at(i), value, sizeof value);
        ui_buf_puts(b, i ? ", " : "");
        ui_json_field(b, qsf_setting_at(i)->name, value);
    }
    ui_buf_puts(b, "},\n \"messages\": [");
    const char *sep = "\n";
    if (a->system.len > 0) {
        ui_buf_puts(b, "\n  {\"role\": \"system\", ");
        ui_json_field(b, "content", ui_buf_str(&a->system));
        ui_buf_puts(b, "}");
        sep = ",\n";
    }
    for (size_t i = 0; i < a->chat.n; i++) {
        const UiItem *it = a->chat.items[i];
        char when[32];
        if (!it->in_context) continue;
        ui_export_time(it->time, when, sizeof when);
        ui_buf_printf(b, "%s  {\"role\": \"%s\", \"time\": \"%s\", \"content\": ", sep,
                      it->kind == UI_USER ? "user" : "assistant", when);
        ui_json_string(b, ui_buf_str(&it->raw), it->raw.len);
        if (ui_item_thought(it)) {
            ui_buf_puts(b, ", \"reasoning\": ");
            ui_export_thought(b, it->thought, ui_json_string);
        }
        if (it->kind == UI_ANSWER) {
            ui_buf_printf(b, ", \"tokens\": %u, \"seed\": \"%llu\", ", it->tokens,
                          (unsigned long long)it->seed);
            ui_json_field(b, "stop", it->stop);
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
    ui_export_thought(b, thought, put_lines);
    ui_buf_puts(b, markdown ? "\n\n</details>\n\n" : "\n[answer]\n");
}

static void put_heading(UiBuf *b, const char *title, bool markdown) {
    ui_buf_puts(b, markdown ? "## " : "");
    put_clean(b, title, strlen(title), true);
    ui_buf_puts(b, markdown ? "\n\n" : ":\n");
}

const char *ui_export_title(const UiApp *a) {
    if (a->session.title[0]) return a->session.title;
    return a->session.name[0] ? a->session.name : "Conversation";
}

const char *ui_export_speaker(const UiItem *it) {
    if (it->kind == UI_USER) return "You";
    return it->label[0] ? it->label : "Assistant";
}

/* markdown: with its headings. */
static void as_text(const UiApp *a, UiBuf *b, bool markdown) {
    const char *name = ui_export_title(a);
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
        put_heading(b, ui_export_speaker(it), markdown);
        if (ui_item_thought(it)) put_thought(b, it->thought, markdown);
        put_clean(b, ui_buf_str(&it->raw), it->raw.len, false);
        ui_buf_puts(b, "\n\n");
    }
    if (b->len > 1) b->len--;
}

void ui_export_as_markdown(const UiApp *a, UiBuf *b) { as_text(a, b, true); }

void ui_export_as_text(const UiApp *a, UiBuf *b) { as_text(a, b, false); }
