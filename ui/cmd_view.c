/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands about how the conversation is shown. */
#include <string.h>

#include "ui/app_internal.h"
#include "ui/commands.h"

bool ui_cmd_raw(UiApp *a, const char *name, const char *args) {
    const bool on = strcmp(args, "on") == 0;
    if (*args && !on && strcmp(args, "off") != 0) {
        ui_app_say(a, UI_ERROR, "/%s expects on or off, not '%.40s'", name, args);
        return false;
    }
    if (!a->full_screen) {
        ui_app_say(a, UI_NOTICE, "lines are always shown as they are");
        return true;
    }
    a->raw = *args ? on : !a->raw;
    ui_app_say(a, UI_NOTICE, a->raw ? "answers are shown as they are" : "answers are shown as Markdown");
    return true;
}
