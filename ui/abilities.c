/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/abilities.h"

#include <string.h>

#include "ui/app.h"

const char *ui_lacks(UiNeed need) {
    static const char *const why[UI_NEEDS] = {
        [UI_NEEDS_NOTHING] = "",
        [UI_NEEDS_MEMORY] = "the model runs on a server, which plans its own memory",
        [UI_NEEDS_TOKENS] = "the tokens of a server's answers and their candidates are not known here",
        [UI_NEEDS_PROMPT] = "the server makes the prompt, with the template of its model",
        [UI_NEEDS_CLOSE] = "this server cannot be told to end its reasoning; ^C stops the answer",
        [UI_NEEDS_RESUME] = "this server does not continue reasoning",
    };
    return need < UI_NEEDS ? why[need] : "";
}

bool ui_has(const UiApp *a, UiNeed need) {
    return need == UI_NEEDS_NOTHING || a->engine.has(a->engine.self, need);
}

bool ui_need(UiApp *a, UiNeed need, const char *name) {
    if (ui_has(a, need)) return true;
    ui_app_say(a, UI_ERROR, "/%s: %s", name, ui_lacks(need));
    return false;
}

UiNeed ui_command_need(const char *command) {
    static const struct {
        const char *command;
        UiNeed need;
    } needs[] = {
        { "mem", UI_NEEDS_MEMORY },      { "budget", UI_NEEDS_MEMORY }, { "io", UI_NEEDS_MEMORY },
        { "kv", UI_NEEDS_MEMORY },       { "lora", UI_NEEDS_MEMORY },   { "quality", UI_NEEDS_MEMORY },
        { "experts", UI_NEEDS_MEMORY },  { "probs", UI_NEEDS_TOKENS },  { "why", UI_NEEDS_TOKENS },
        { "bias", UI_NEEDS_TOKENS },     { "ban", UI_NEEDS_TOKENS },    { "least", UI_NEEDS_TOKENS },
        { "template", UI_NEEDS_PROMPT },
    };
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (strcmp(needs[i].command, command) == 0) return needs[i].need;
    return UI_NEEDS_NOTHING;
}

const char *ui_effect_text(UiEffect effect) {
    switch (effect) {
    case UI_EFFECT_SENT: return "next answer";
    case UI_EFFECT_OWN: return "the server's own until it is set";
    case UI_EFFECT_REFUSED: return "no effect: this server refuses it";
    case UI_EFFECT_NONE: return "no effect on this server";
    default: return NULL;
    }
}

const char *ui_effect_mark(UiEffect effect) {
    if (effect == UI_EFFECT_OWN) return "-";
    return effect == UI_EFFECT_REFUSED || effect == UI_EFFECT_NONE ? "n/a" : NULL;
}
