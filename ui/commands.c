/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of slash commands, and lookup in it. */
#include "ui/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_cli.h"
#include "ui/abilities.h"
#include "ui/dialect.h"

const UiWord ui_kv_words[] = {
    { "policy", "what the context forgets when it is full", "eviction-policy" },
    { "window", "positions that a policy keeps besides the protected ones", "eviction-window" },
    { "prefix", "first positions that are never evicted", "protected-prefix" },
    { "threshold", "MB of available memory below which the cache shrinks", "memory-threshold-mb" },
    { "type", "data type of keys and values", "kv-type" },
    { "k-type", "of keys alone", "k-type" },
    { "v-type", "of values alone", "v-type" },
    { NULL, NULL, NULL },
};
static const UiWord queue_words[] = {
    { "drop", "remove message N, or all", NULL },
    { NULL, NULL, NULL },
};
static const UiWord io_words[] = {
    { "direct", "on, off or auto: read past the page cache", "direct" },
    { NULL, NULL, NULL },
};
static const UiWord models_words[] = {
    { "fits", "those that need no streaming", NULL },
    { "streams", "those that stream weights", NULL },
    { NULL, NULL, NULL },
};
static const UiWord show_words[] = {
    { "settings", "all settings and their values", NULL },
    { "model", "facts about the model", NULL },
    { "system", "the system prompt", NULL },
    { "template", "the chat template", NULL },
    { "prompt", "the exact prompt of the conversation, or for a TEXT", NULL },
    { "license", "what the model file says", NULL },
    { "plan", "what uses the budget", NULL },
    { "memory", "regions of memory", NULL },
    { NULL, NULL, NULL },
};
static const UiWord think_words[] = {
    { "show", "show the reasoning", NULL },
    { "hide", "fold it", NULL },
    { "now", "end it: the answer begins", NULL },
    { NULL, NULL, NULL },
};
static const UiWord copy_words[] = {
    { "code", "the last block of code, or block K as numbered on the screen", NULL },
    { "all", "the conversation as Markdown", NULL },
    { NULL, NULL, NULL },
};
static const UiWord as_words[] = {
    { "user", "as if you had sent it", NULL },
    { "assistant", "as if the model had answered it", NULL },
    { "system", "the system prompt", NULL },
    { NULL, NULL, NULL },
};
static const UiWord export_words[] = {
    { "md", "Markdown, in a new file of the current directory", NULL },
    { "txt", "text", NULL },
    { "json", "JSON", NULL },
    { "html", "a page without a network", NULL },
    { NULL, NULL, NULL },
};
static const UiWord raw_words[] = {
    { "on", "show answers as they are", NULL },
    { "off", "show them as Markdown", NULL },
    { NULL, NULL, NULL },
};
static const UiWord probs_words[] = {
    { "off", "show it as usual", NULL },
    { "probability", "of each token", NULL },
    { "entropy", "of the tokens that were possible there", NULL },
    { NULL, NULL, NULL },
};
static const UiWord theme_words[] = {
    { "auto", "dark or light, as the terminal is", NULL },
    { "dark", "for a dark background", NULL },
    { "light", "for a light background", NULL },
    { "ansi", "the eight basic colors of the terminal", NULL },
    { "mono", "without colors", NULL },
    { NULL, NULL, NULL },
};
static const UiWord experts_words[] = {
    { "forget", "which ones were used: what is kept for the next start", NULL },
    { NULL, NULL, NULL },
};
static const UiWord system_words[] = { { "off", "remove the system prompt", NULL }, { NULL, NULL, NULL } };
static const UiWord role_words[] = {
    { "save", "NAME: make a role of the system prompt and the settings of now", UI_WORD_NAME },
    { "save!", "NAME: the same, replacing a role", UI_WORD_NAME },
    { "delete", "NAME: remove a role from the configuration file", UI_WORD_NAME },
    { NULL, NULL, NULL },
};
static const UiWord game_words[] = {
    { "off", "end the game: settings and system prompt are those of before", NULL },
    { NULL, NULL, NULL },
};
static const UiWord bias_words[] = {
    { "off", "clear the biases, or that of one TOKEN", NULL },
    { NULL, NULL, NULL },
};
static const UiWord ban_words[] = {
    { "off", "allow everything again, or one TEXT", NULL },
    { NULL, NULL, NULL },
};
static const UiWord lora_words[] = {
    { "add", "FILE [SCALE]: use one more adapter", UI_WORD_FILE },
    { "scale", "N X: change the scale of one", NULL },
    { "remove", "N: use it no longer", NULL },
    { "off", "use none", NULL },
    { NULL, NULL, NULL },
};
static const UiWord least_words[] = {
    { "on", "with a floor of 0.01", NULL },
    { "off", "draw tokens as usual", NULL },
    { NULL, NULL, NULL },
};
static const UiWord stop_words[] = { { "off", "clear all stop strings", NULL }, { NULL, NULL, NULL } };

#define ARG(kind) \
    { UI_ARG_##kind, NULL, NULL }
#define WORDS(list) \
    { UI_ARG_NONE, list, NULL }
#define VALUE(setting) \
    { UI_ARG_NONE, NULL, setting }
#define MIXED(list, setting) \
    { UI_ARG_NONE, list, setting }

/* clang-format off */
static const UiCommand table[] = {
    { "help", "?", "[COMMAND]", "show keys and commands, or one command", ARG(COMMAND), ui_cmd_help },
    { "quit", "exit,bye,q", "", "quit; the conversation is saved", ARG(NONE), ui_cmd_quit },
    { "clear", "", "", "clear the conversation; settings and session stay", ARG(NONE), ui_cmd_clear },
    { "new", "", "[NAME]", "start a new session", ARG(NONE), ui_cmd_new },
    { "set", "", "[NAME [VALUE]]", "show or change settings; sampling takes effect on the next token",
      ARG(SETTING), ui_cmd_set },
    { "show", "info", "[settings|model|system|template|prompt [TEXT]|license|plan|memory]",
      "show settings, model facts, prompt or memory", WORDS(show_words), ui_cmd_show },
    { "system", "", "[TEXT|off]", "show, set or remove the system prompt", WORDS(system_words), ui_cmd_system },
    { "role", "persona", "[NAME|save NAME|save! NAME|delete NAME]", "list the roles of the configuration file, take system prompt and settings from one, save those of now as one (save! replaces it), or delete one",
      { UI_ARG_ROLE, role_words, NULL }, ui_cmd_role },
    { "game", "", "[NAME|off]", "list the games, play one, or end it: personas that set sampling and what answers may consist of", { UI_ARG_GAME, game_words, NULL }, ui_cmd_game },
    { "template", "", "[NAME|FILE|off]", "show or choose the chat template; off = plain continuation",
      ARG(TEMPLATE), ui_cmd_template },
    { "model", "", "[FILE|NAME|hf:OWNER/NAME|connect:URL]", "show or load a model, downloading it first, or one of a server; guide is the built-in one", ARG(MODEL), ui_cmd_model },
    { "models", "", "[WORDS]", "list the models on this machine, also those of Ollama, LM Studio, llama.cpp and Hugging Face; on the screen to choose from", WORDS(models_words), ui_cmd_models },
    { "retry", "regen,regenerate", "", "answer the last message again", ARG(NONE), ui_cmd_retry },
    { "edit", "", "[N [TEXT]]", "take message N (default your last) back into the input, without what follows it; or replace it by TEXT", ARG(NONE), ui_cmd_edit },
    { "as", "", "ROLE TEXT", "add a message of user, assistant or system without asking the model", WORDS(as_words), ui_cmd_as },
    { "undo", "", "[N]", "take back the last change: an exchange, /clear, /forget, /retry, a setting ...; with N remove the last N exchanges", ARG(NONE), ui_cmd_undo },
    { "redo", "", "[N]", "make the last N changes again that /undo took back (default 1)", ARG(NONE), ui_cmd_redo },
    { "branch", "", "[NAME]", "begin a branch at this place; what was said so far stays on the other one", ARG(NONE), ui_cmd_branch },
    { "tree", "", "", "show all messages of the session with their branches and numbers", ARG(NONE), ui_cmd_tree },
    { "goto", "", "N|NAME|N/M", "go to a message or branch of /tree, or to a version of the last answer", ARG(BRANCH), ui_cmd_goto },
    { "forget", "", "[N]", "remove the oldest N exchanges from the context (default 1)", ARG(NONE),
      ui_cmd_forget },
    { "compact", "", "[TEXT]", "replace the oldest half of the exchanges by a summary, which is shown first, or by TEXT", ARG(NONE),
      ui_cmd_compact },
    { "swap", "", "", "exchange the roles: the model writes your next message", ARG(NONE), ui_cmd_swap },
    { "continue", "", "", "continue the last answer", ARG(NONE), ui_cmd_continue },
    { "think", "thinking", "[show|hide|now|N]", "show, fold, end or limit the reasoning before answers", WORDS(think_words),
      ui_cmd_think },
    { "raw", "", "[on|off]", "show answers as they are, or as Markdown", WORDS(raw_words), ui_cmd_raw },
    { "probs", "logprobs", "[off|probability|entropy]",
      "show how sure the model was of each token of the last answer (Alt-, Alt-. choose others)", WORDS(probs_words), ui_cmd_probs },
    { "why", "", "[N]", "show how the last token was chosen, token N of the last answer, or the one that Alt-, has walked to: probabilities and candidates after each stage", ARG(NONE), ui_cmd_why },
    { "theme", "colors,colours", "[NAME]", "show the themes, or use one: auto, dark, light, ansi, mono, or your own", { UI_ARG_THEME, theme_words, NULL }, ui_cmd_theme },
    { "search", "find", "RE", "find an expression in the conversation; n and N go to the next places (also ^F)", ARG(NONE), ui_cmd_search },
    { "stop", "", "[TEXT|off]", "list, add or clear stop strings", WORDS(stop_words), ui_cmd_stop },
    { "bias", "", "[TOKEN=X|off [TOKEN]]", "list, add or remove biases: X is added to the logit of a token, a text or #id; -inf = never", WORDS(bias_words), ui_cmd_bias },
    { "ban", "", "[TEXT|off [TEXT]]", "list, add or remove texts and #ids that answers never have", WORDS(ban_words), ui_cmd_ban },
    { "least", "", "[F|on|off]", "take the least likely token that has at least the probability F", MIXED(least_words, "least"), ui_cmd_least },
    { "read", "file,attach", "FILE|PATTERN", "attach text files to the message: mention them as @FILE", ARG(FILE),
      ui_cmd_read },
    { "queue", "", "[N|drop N|drop all]", "list the queued messages, take one back into the input, or remove it",
      WORDS(queue_words), ui_cmd_queue },
    { "source", "", "FILE", "read messages and commands from FILE, as if they were typed", ARG(FILE), ui_cmd_source },
    { "stats", "", "", "show speed and size of the last answer", ARG(NONE), ui_cmd_stats },
    { "context", "", "[N]", "show the positions in the cache and what a token takes in each kind of layer",
      VALUE("ctx"), ui_cmd_context },
    { "mem", "ram,memory", "", "show RAM use by category and as the kernel counts it", ARG(NONE), ui_cmd_mem },
    { "experts", "", "[forget]", "show where the experts of a sparse model are, and what other budgets would bring; or forget which were used", WORDS(experts_words), ui_cmd_experts },
    { "budget", "", "[SIZE]", "show or change the RAM budget: 200, 1.5G, 25%, auto", VALUE("ram-budget"),
      ui_cmd_budget },
    { "io", "", "[auto|uring|pread|mmap|direct WHEN]",
      "show or change how weights are read; direct on|off|auto: bypass the page cache", MIXED(io_words, "io"),
      ui_cmd_io },
    { "kv", "", "[policy NAME|window N|prefix N|threshold MB|type T|k-type T|v-type T]",
      "show or change what the context forgets when it is full, and the type of the KV cache", MIXED(ui_kv_words, "kv-type"),
      ui_cmd_kv },
    { "quality", "", "[Q]",
      "show what each quality means, or set it: above 0 to 1, lower is faster and less exact", VALUE("quality"),
      ui_cmd_quality },
    { "lora", "", "[add FILE [SCALE]|scale N X|remove N|off]", "list adapters (LoRA), add or remove one, or change its scale", WORDS(lora_words), ui_cmd_lora },
    { "save", "", "[NAME]", "show where the session is saved, or save it as NAME", ARG(NONE), ui_cmd_save },
    { "load", "", "NAME", "resume another session (or load a model file)", ARG(SESSION), ui_cmd_load },
    { "sessions", "list", "[RE]", "list the sessions, newest first, or those in which an expression is found; on the screen to choose from", ARG(NONE), ui_cmd_sessions },
    { "rename", "", "[TEXT]", "show or set the title of the session", ARG(NONE), ui_cmd_rename },
    { "delete", "", "NAME", "delete a session that is not open", ARG(SESSION_ONLY), ui_cmd_delete },
    { "copy", "", "[N|code [K]|all]",
      "copy the last answer, message N, block K of code or everything to the clipboard", { UI_ARG_CODE, copy_words, NULL },
      ui_cmd_copy },
    { "save-code", "save-code!", "K FILE", "write block K of code to FILE; /save-code! overwrites", ARG(CODE_FILE),
      ui_cmd_save_code },
    { "export", "export!", "[FILE|md|txt|json|html]",
      "write the conversation to FILE (.md .txt .json .html); /export! overwrites", { UI_ARG_FILE, export_words, NULL },
      ui_cmd_export },
};

/* clang-format on */

size_t ui_command_count(void) { return sizeof table / sizeof *table; }

const UiCommand *ui_command_at(size_t i) { return i < ui_command_count() ? &table[i] : NULL; }

static bool in_list(const char *list, const char *word) {
    size_t len = strlen(word);
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n == len && memcmp(list, word, n) == 0) return true;
        list += n + (list[n] == ',');
    }
    return false;
}

const UiCommand *ui_command_find(const char *name) {
    for (size_t i = 0; i < ui_command_count(); i++) {
        if (strcmp(table[i].name, name) == 0 || in_list(table[i].aliases, name)) return &table[i];
    }
    return NULL;
}

static bool has_prefix(const UiCommand *c, const char *word, size_t len) {
    if (strncmp(c->name, word, len) == 0) return true;
    for (const char *p = c->aliases; *p; p += strcspn(p, ","), p += *p == ',') {
        if (strncmp(p, word, len) == 0) return true;
    }
    return false;
}

/* Settings are considered only if no command has the prefix: /t is /template although there is a
 * temperature. */
static const UiCommand *by_prefix(const char *word, const QSFSetting **setting, bool *ambiguous) {
    size_t len = strlen(word);
    const UiCommand *found = NULL;
    for (size_t i = 0; i < ui_command_count(); i++) {
        if (!has_prefix(&table[i], word, len)) continue;
        *ambiguous = found != NULL;
        if (*ambiguous) return NULL;
        found = &table[i];
    }
    for (size_t i = 0; !found && i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (strncmp(row->name, word, len) != 0) continue;
        *ambiguous = *setting != NULL;
        if (*ambiguous) {
            *setting = NULL;
            return NULL;
        }
        *setting = row;
    }
    return found;
}

const UiCommand *ui_command_lookup(const char *word, bool prefix, const QSFSetting **setting,
                                   bool *ambiguous) {
    *setting = NULL;
    *ambiguous = false;
    const UiCommand *c = ui_command_find(word);
    if (c || !*word) return c;
    *setting = qsf_setting_find(word);
    if (*setting || !prefix) return NULL;
    return by_prefix(word, setting, ambiguous);
}

const char *ui_command_nearest(const char *word) {
    size_t n_settings = qsf_setting_count(), n = ui_command_count();
    const char **names = calloc(n + n_settings, sizeof *names);
    if (!names) return NULL;
    for (size_t i = 0; i < n; i++) names[i] = table[i].name;
    for (size_t i = 0; i < n_settings; i++) names[n + i] = qsf_setting_at(i)->name;
    for (size_t i = 0; i < n + n_settings && word[0] && word[1]; i++) {
        if (strncmp(names[i], word, strlen(word)) != 0) continue;
        const char *longer = names[i]; /* line mode has no abbreviations */
        free(names);
        return longer;
    }
    const char *near = qsf_nearest(word, names, n + n_settings);
    free(names);
    return near;
}

static bool unknown(UiApp *a, const char *word, bool ambiguous) {
    char *clean = qsf_clean_dup(word, strlen(word), true);
    const char *near = ui_command_nearest(word), *means = ui_dialect_command(word),
               *name = clean ? clean : "";
    if (ambiguous)
        ui_app_say(a, UI_ERROR, "/%s: ambiguous command; press Tab for matches", name);
    else if (means)
        ui_app_say(a, UI_ERROR, "/%s: no such command; %s", name, means);
    else if (near)
        ui_app_say(a, UI_ERROR, "/%s: no such command; did you mean /%s? (//%s sends it as text)", name, near,
                   name);
    else
        ui_app_say(a, UI_ERROR, "/%s: no such command; /help lists them (//%s sends it as text)", name, name);
    free(clean);
    return false;
}

/* Commands whose text may have several lines. */
static bool takes_lines(const UiCommand *c, const char *args) {
    if (strcmp(c->name, "set") == 0) return strncmp(args, "system ", strlen("system ")) == 0;
    return strcmp(c->name, "system") == 0 || strcmp(c->name, "edit") == 0 || strcmp(c->name, "as") == 0 ||
           strcmp(c->name, "compact") == 0;
}

/* The setting of which the command is another name, NULL: of none. */
static const QSFSetting *setting_of(const UiCommand *c, const char *args) {
    static const char *const lists[][2] = { { "bias", "logit-bias" }, { "ban", "ban" } };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strcmp(c->name, lists[i][0]) == 0) return qsf_setting_find(lists[i][1]);
    return *args && c->arg.setting ? qsf_setting_find(c->arg.setting) : NULL;
}

/* Is it one that the server takes? What was set can always be changed back. */
static bool sets_for_server(const UiApp *a, const UiCommand *c, const char *args) {
    const QSFSetting *row = setting_of(c, args);
    const UiEffect effect = row ? a->engine.effect(a->engine.self, row) : UI_EFFECT_NONE;
    return effect == UI_EFFECT_SENT || effect == UI_EFFECT_OWN || effect == UI_EFFECT_REFUSED ||
           (row && qsf_setting_user_set(&a->settings, row));
}

static bool run(UiApp *a, const char *word, const char *args) {
    const QSFSetting *setting = NULL;
    bool ambiguous = false;
    const UiCommand *c = ui_command_lookup(word, a->interactive, &setting, &ambiguous);
    if ((c || setting) && strchr(args, '\n') && !(c && takes_lines(c, args))) {
        ui_app_say(a, UI_ERROR, "/%s takes one line; //%s sends the text to the model", word, word);
        return false;
    }
    if (c && !sets_for_server(a, c, args) && !ui_need(a, ui_command_need(c->name), word)) return false;
    if (c) {
        const bool ok = c->run(a, word, args);
        if (ok && (*args || strcmp(c->name, "new") == 0)) ui_undo_note(a, c->name);
        return ok;
    }
    a->not_undone.command = NULL;
    if (setting && *args) return ui_app_set(a, setting, args, false);
    if (setting) return ui_cmd_set(a, "set", setting->name);
    return unknown(a, word, ambiguous);
}

bool ui_command_run(UiApp *a, const char *line, size_t len) {
    if (memchr(line, '\0', len)) { /* what follows it would be lost */
        ui_app_say(a, UI_ERROR, "a command cannot contain a NUL character");
        return false;
    }
    char *copy = ui_strdup_len(line, len);
    if (!copy) {
        ui_app_say(a, UI_ERROR, "out of memory");
        return false;
    }
    char *word = copy + (copy[0] == '/');
    char *args = word + strcspn(word, " \t\n");
    while (*args == ' ' || *args == '\t' || *args == '\n') *args++ = '\0';
    for (size_t n = strlen(args); n > 0 && (args[n - 1] == ' ' || args[n - 1] == '\t'); n--)
        args[n - 1] = '\0';
    bool ok = run(a, word, args);
    if (!ok && a->exit_code == 0) a->exit_code = 1;
    free(copy);
    return ok;
}

bool ui_cmd_busy(UiApp *a, const char *name) {
    if (a->running == UI_REQUEST_NONE) return false;
    ui_app_say(a, UI_ERROR, "/%s has to wait: %s (^C stops it)", name,
               a->running == UI_REQUEST_LOAD      ? "a model is being loaded"
               : a->running == UI_REQUEST_SUMMARY ? "a summary is being written"
               : a->running == UI_REQUEST_SWAP    ? "the model is writing your next message"
               : a->running == UI_REQUEST_TOKENS  ? "the tokens of the answer are being evaluated"
                                                  : "an answer is being written");
    return true;
}
