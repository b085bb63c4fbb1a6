/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands about how the conversation is shown. */
#include <stdio.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/theme_config.h"
#include "ui/walk.h"

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
    ui_app_say(a, UI_NOTICE,
               a->raw ? "answers are shown as the model wrote them" : "answers are shown as Markdown");
    return true;
}

static void say_probs(UiApp *a) {
    static const char *const by[] = {
        [UI_TINT_PROBABILITY] = "by probability: 90 % and more, 50 %, 10 %, less",
        [UI_TINT_ENTROPY] = "by entropy: less than 0.5 bits, 2, 4, more",
    };
    if (a->tint == UI_TINT_OFF)
        ui_app_say(a, UI_NOTICE, "the last answer is shown as usual");
    else
        ui_app_say(a, UI_NOTICE, "the tokens of the last answer are marked %s", by[a->tint]);
}

bool ui_cmd_probs(UiApp *a, const char *name, const char *args) {
    static const char *const words[] = { "off", "probability", "entropy" };
    QSFTokens t;
    UiTint tint = a->tint == UI_TINT_OFF ? UI_TINT_PROBABILITY : UI_TINT_OFF;
    unsigned i = 0;
    while (*args && i < 3 && strcmp(args, words[i]) != 0) i++;
    if (i == 3) {
        ui_app_say(a, UI_ERROR, "/%s expects off, probability or entropy, not '%.40s'", name, args);
        return false;
    }
    if (!a->full_screen) {
        ui_app_say(a, UI_NOTICE, "lines have no styles: /%s needs the full screen", name);
        return true;
    }
    a->tint = *args ? (UiTint)i : tint;
    say_probs(a);
    if (a->tint == UI_TINT_OFF || !ui_walk_item(a) || ui_app_busy(a) || ui_walk_known(a, &t)) return true;
    const char *why = ui_walk_evaluate(a, false);
    if (why) ui_app_say(a, UI_NOTICE, "%s", why);
    return true;
}

static void list_themes(UiApp *a) {
    static const char *const grounds[] = { "unknown", "dark", "light" };
    UiBuf b = { 0 };
    const char *name;
    ui_buf_printf(&b, "theme %s, background %s; themes:", a->theme, grounds[a->background]);
    for (size_t i = 0; (name = ui_theme_at(i)) != NULL; i++) ui_buf_printf(&b, " %s", name);
    for (size_t i = 0; (name = qsf_config_theme_at(a->config, i)) != NULL; i++)
        ui_buf_printf(&b, " %s", name);
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
}

bool ui_cmd_theme(UiApp *a, const char *name, const char *args) {
    if (*args && (!ui_theme_known(a->config, args) || strlen(args) >= sizeof a->theme)) {
        ui_app_say(a, UI_ERROR, "/%s: no theme is called '%.60s'; /%s lists them", name, args, name);
        return false;
    }
    if (!a->full_screen) {
        ui_app_say(a, UI_NOTICE, "lines have no colors");
        return true;
    }
    if (*args)
        (void)snprintf(a->theme, sizeof a->theme, "%s", args);
    else
        list_themes(a);
    return true;
}
