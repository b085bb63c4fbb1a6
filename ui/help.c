/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help texts, made from the tables. */
#include "ui/help.h"

#include <string.h>

#include "ui/commands.h"
#include "ui/keys.h"

static void command_line(const UiCommand *c, UiBuf *b) {
    size_t from = b->len;
    ui_buf_printf(b, " /%s%s%s", c->name, c->args[0] ? " " : "", c->args);
    while (!b->failed && b->len < from + 26)
        ui_buf_add(b, " ", 1);
    ui_buf_printf(b, " %s", c->help);
    if (c->aliases[0]) {
        ui_buf_puts(b, " (also ");
        for (const char *p = c->aliases; *p;) {
            size_t n = strcspn(p, ",");
            ui_buf_printf(b, "%s/%.*s", p == c->aliases ? "" : " ", (int)n, p);
            p += n + (p[n] == ',');
        }
        ui_buf_puts(b, ")");
    }
    ui_buf_puts(b, "\n");
}

void ui_help_all(UiBuf *b, bool keys) {
    if (keys) {
        ui_buf_puts(b, "Keys\n");
        for (size_t i = 0; i < ui_binding_count(); i++) {
            const UiBinding *k = ui_binding_at(i);
            if (k->help)
                ui_buf_printf(b, " %-25s %s\n", k->names, k->help);
        }
        ui_buf_puts(b, "\n");
    }
    ui_buf_puts(b, "Commands\n");
    for (size_t i = 0; i < ui_command_count(); i++)
        command_line(ui_command_at(i), b);
    ui_buf_puts(b, " /SETTING VALUE            like /temp 0.7 or /seed 1; /set lists the settings\n");
    ui_buf_puts(b, " //text                    a message that begins with a slash\n");
    ui_buf_puts(b, " \"\"\" ... \"\"\"               a message over several lines");
}

bool ui_help_topic(const char *name, UiBuf *b) {
    const UiCommand *c = ui_command_find(name);
    const QSFSetting *row = c ? NULL : qsf_setting_find(name);
    if (c) {
        command_line(c, b);
        return true;
    }
    if (!row)
        return false;
    ui_buf_printf(b, " /%s %s  %s\n", row->name, row->arg ? row->arg : "[on|off]", row->help);
    ui_buf_printf(b, " %s", row->flags & QSF_SETTING_LIVE ? "acts on the next token" : "loads the model anew");
    return true;
}
