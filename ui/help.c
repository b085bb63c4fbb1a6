/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help texts, made from the tables. */
#include "ui/help.h"

#include <stdio.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/keys.h"

#define UI_HELP_COLUMN 27

static void pad(UiBuf *b, size_t from, size_t cells) {
    while (!b->failed && b->len < from + cells) ui_buf_add(b, " ", 1);
}

/* Bytes of text (ASCII) that fit into room, up to a blank. */
static size_t fit(const char *text, size_t room) {
    size_t len = strlen(text);
    if (len <= room || room == 0) return len;
    size_t n = room;
    while (n > 0 && text[n] != ' ') n--;
    return n > 0 ? n : room;
}

/* Name on the left, explanation on the right, continued below it if too long; in a narrow window all of it is
 * below. */
static void row(UiBuf *b, const char *left, const char *text, int width) {
    bool narrow = width > 0 && width < 2 * UI_HELP_COLUMN;
    size_t column = narrow ? 4 : UI_HELP_COLUMN;
    size_t room = width > (int)column ? (size_t)width - column : 0;
    size_t from = b->len;
    ui_buf_printf(b, " %s", left);
    if (b->len - from >= column) {
        ui_buf_puts(b, "\n");
        from = b->len;
    }
    for (size_t n; *text; text += n + (text[n] == ' ')) {
        n = fit(text, room);
        pad(b, from, column);
        ui_buf_add(b, text, n);
        ui_buf_puts(b, "\n");
        from = b->len;
    }
}

static void command_row(const UiCommand *c, UiBuf *b, int width) {
    char left[100];
    UiBuf text = { 0 };
    (void)snprintf(left, sizeof left, "/%s%s%s", c->name, c->args[0] ? " " : "", c->args);
    ui_buf_puts(&text, c->help);
    for (const char *p = c->aliases; *p;) {
        size_t n = strcspn(p, ",");
        ui_buf_printf(&text, "%s/%.*s", p == c->aliases ? " (also " : " ", (int)n, p);
        p += n + (p[n] == ',');
    }
    ui_buf_puts(&text, c->aliases[0] ? ")" : "");
    row(b, left, ui_buf_str(&text), width);
    ui_buf_free(&text);
}

void ui_help_all(UiBuf *b, bool keys, int width) {
    if (keys) {
        ui_buf_puts(b, "Keys\n");
        for (size_t i = 0; i < ui_binding_count(); i++) {
            const UiBinding *k = ui_binding_at(i);
            if (k->help) row(b, k->names, k->help, width);
        }
        ui_buf_puts(b, "\n");
    }
    ui_buf_puts(b, "Commands\n");
    for (size_t i = 0; i < ui_command_count(); i++) command_row(ui_command_at(i), b, width);
    row(b, "/SETTING VALUE", "such as /temp 0.7, /seed 1 or /threads 2; /set lists the settings", width);
    row(b, "//text", "a message that begins with a slash", width);
    row(b, "\"\"\" ... \"\"\"", "a message over several lines", width);
}

/* When a change of it takes effect, as part of a sentence. */
static const char *setting_when(const QSFSetting *row) {
    return ui_setting_is_grammar(row)      ? "takes effect with the next answer"
           : row->flags & QSF_SETTING_LIVE ? "takes effect on the next token"
           : row->flags & QSF_SETTING_CHANGES
               ? "takes effect between two tokens; the text may differ from then on"
           : row->flags & QSF_SETTING_REPLAN ? "takes effect between two tokens; does not change the text"
                                             : "reloads the model";
}

static void undo_row(const UiCommand *c, UiBuf *b, int width) {
    const char *why;
    const UiUndo undo = ui_undo_of(c->name, &why);
    UiBuf text = { 0 };
    if (undo == UI_UNDO_BACK) ui_buf_puts(&text, "/undo takes it back");
    if (undo == UI_UNDO_NOT) ui_buf_printf(&text, "/undo does not take it back: %s", why);
    row(b, "", ui_buf_str(&text), width);
    ui_buf_free(&text);
}

bool ui_help_topic(const char *name, UiBuf *b, int width) {
    const UiCommand *c = ui_command_find(name);
    const QSFSetting *row = c ? NULL : qsf_setting_find(name);
    if (c) {
        command_row(c, b, width);
        undo_row(c, b, width);
        return true;
    }
    if (!row) return false;
    ui_buf_printf(b, " /%s %s  %s\n", row->name, row->arg ? row->arg : "[on|off]", row->help);
    ui_buf_printf(b, " %s", setting_when(row));
    return true;
}
