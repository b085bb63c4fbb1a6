/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /search: on the full screen it moves the transcript (ui/screen.c), elsewhere it prints lines. */
#include "ui/commands.h"
#include "ui/search.h"

bool ui_cmd_search(UiApp *a, const char *name, const char *args) {
    UiSearch s = { 0 };
    UiBuf lines = { 0 };
    char err[300];
    if (!*args) {
        ui_app_say(a, UI_ERROR, "/%s expects what to search for: a regular expression", name);
        return false;
    }
    if (a->full_screen) {
        ui_app_open_view(a, UI_VIEW_SEARCH, args);
        return true;
    }
    if (!ui_search_start(&s, &a->chat, args, err, sizeof err)) {
        ui_app_say(a, UI_ERROR, "/%s: %s", name, err);
        return false;
    }
    ui_search_lines(&s, &a->chat, &lines);
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&lines));
    ui_buf_free(&lines);
    ui_search_end(&s);
    return true;
}
