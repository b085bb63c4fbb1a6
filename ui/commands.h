/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Slash commands: one table with name, aliases, arguments, help and completion; the same for the full screen
 * and the line mode. One thread. */
#ifndef QSF_UI_COMMANDS_H
#define QSF_UI_COMMANDS_H

#include "ui/app.h"

/* What Tab offers for the argument besides words and values. */
typedef enum UiArgKind {
    UI_ARG_NONE,
    UI_ARG_COMMAND,
    UI_ARG_SETTING, /* and then its value */
    UI_ARG_TEMPLATE,
    UI_ARG_FILE,
    UI_ARG_MODEL,   /* a file, or guide */
    UI_ARG_SESSION, /* or the file of a model */
    UI_ARG_SESSION_ONLY,
    UI_ARG_CODE,      /* the number of a block of code after the word code */
    UI_ARG_CODE_FILE, /* such a number, and a file */
    UI_ARG_ROLE,
    UI_ARG_GAME,
    UI_ARG_BRANCH,
    UI_ARG_THEME
} UiArgKind;

/* A word that an argument begins with. */
typedef struct UiWord {
    const char *word;    /* NULL ends a list */
    const char *help;    /* one line, or "" */
    const char *setting; /* a value of it follows; UI_WORD_FILE: the name of a file; UI_WORD_NAME: another
                            name; or NULL */
} UiWord;
#define UI_WORD_FILE "@file"
#define UI_WORD_NAME "@name"

typedef struct UiArg {
    UiArgKind kind;
    const UiWord *words; /* or NULL */
    const char *setting; /* the argument may be a value of it, or NULL */
} UiArg;

typedef struct UiCommand {
    const char *name;    /* without the slash */
    const char *aliases; /* comma-separated, or "" */
    const char *args;    /* as shown in help, or "" */
    const char *help;    /* one line */
    UiArg arg;           /* for completion */
    /* args: the text after the name, trimmed, "" if there is none. Returns false if it failed (reported). */
    bool (*run)(UiApp *a, const char *name, const char *args);
} UiCommand;

/* The words of /kv and the settings that they name. */
extern const UiWord ui_kv_words[];

size_t ui_command_count(void);
const UiCommand *ui_command_at(size_t i);
/* By name or alias, otherwise NULL. */
const UiCommand *ui_command_find(const char *name);
/* The same, and with prefix also by a prefix of only one command or setting. *setting is the row if the word
 * is the name of a setting ("/temp"), NULL otherwise. Both NULL: unknown or, with *ambiguous, several. */
const UiCommand *ui_command_lookup(const char *word, bool prefix, const QSFSetting **setting,
                                   bool *ambiguous);
/* The name most similar to word, or NULL. */
const char *ui_command_nearest(const char *word);
/* Runs "/name args". Returns false if it failed, which was reported. */
bool ui_command_run(UiApp *a, const char *line, size_t len);

/* cmd_chat.c */
bool ui_cmd_clear(UiApp *a, const char *name, const char *args);
bool ui_cmd_retry(UiApp *a, const char *name, const char *args);
bool ui_cmd_forget(UiApp *a, const char *name, const char *args);
bool ui_cmd_compact(UiApp *a, const char *name, const char *args);
bool ui_cmd_edit(UiApp *a, const char *name, const char *args);
bool ui_cmd_as(UiApp *a, const char *name, const char *args);
bool ui_cmd_swap(UiApp *a, const char *name, const char *args);
bool ui_cmd_continue(UiApp *a, const char *name, const char *args);
bool ui_cmd_system(UiApp *a, const char *name, const char *args);
bool ui_cmd_think(UiApp *a, const char *name, const char *args);
bool ui_cmd_stop(UiApp *a, const char *name, const char *args);
bool ui_cmd_quit(UiApp *a, const char *name, const char *args);
/* cmd_undo.c */
bool ui_cmd_undo(UiApp *a, const char *name, const char *args);
bool ui_cmd_redo(UiApp *a, const char *name, const char *args);
/* What /undo does about a command. */
typedef enum UiUndo {
    UI_UNDO_UNKNOWN,
    UI_UNDO_NOTHING, /* it shows something, writes a file, or changes the screen alone */
    UI_UNDO_BACK,    /* it takes the command back */
    UI_UNDO_NOT      /* it does not, and says what does */
} UiUndo;
/* why (may be NULL): what takes it back instead, static; NULL but for UI_UNDO_NOT. */
UiUndo ui_undo_of(const char *command, const char **why);
/* This command, whose name must stay valid, was successful: what it did is the last change. */
void ui_undo_note(UiApp *a, const char *command);
/* cmd_sampler.c */
bool ui_cmd_bias(UiApp *a, const char *name, const char *args);
bool ui_cmd_lora(UiApp *a, const char *name, const char *args);
bool ui_cmd_ban(UiApp *a, const char *name, const char *args);
bool ui_cmd_least(UiApp *a, const char *name, const char *args);
/* cmd_why.c */
bool ui_cmd_why(UiApp *a, const char *name, const char *args);
/* cmd_game.c */
bool ui_cmd_game(UiApp *a, const char *name, const char *args);
/* cmd_tree.c */
bool ui_cmd_branch(UiApp *a, const char *name, const char *args);
bool ui_cmd_tree(UiApp *a, const char *name, const char *args);
bool ui_cmd_goto(UiApp *a, const char *name, const char *args);
/* compose/cmd_compose.c */
bool ui_cmd_queue(UiApp *a, const char *name, const char *args);
bool ui_cmd_read(UiApp *a, const char *name, const char *args);
/* source.c */
bool ui_cmd_source(UiApp *a, const char *name, const char *args);
/* cmd_search.c */
bool ui_cmd_search(UiApp *a, const char *name, const char *args);
/* cmd_model.c */
bool ui_cmd_model(UiApp *a, const char *name, const char *args);
bool ui_cmd_models(UiApp *a, const char *name, const char *args);
bool ui_cmd_template(UiApp *a, const char *name, const char *args);
bool ui_cmd_budget(UiApp *a, const char *name, const char *args);
bool ui_cmd_kv(UiApp *a, const char *name, const char *args);
bool ui_cmd_quality(UiApp *a, const char *name, const char *args);
bool ui_cmd_io(UiApp *a, const char *name, const char *args);
bool ui_cmd_set(UiApp *a, const char *name, const char *args);
/* cmd_view.c */
bool ui_cmd_raw(UiApp *a, const char *name, const char *args);
bool ui_cmd_probs(UiApp *a, const char *name, const char *args);
bool ui_cmd_theme(UiApp *a, const char *name, const char *args);
/* cmd_info.c */
bool ui_cmd_help(UiApp *a, const char *name, const char *args);
bool ui_cmd_show(UiApp *a, const char *name, const char *args);
/* cmd_stats.c */
bool ui_cmd_stats(UiApp *a, const char *name, const char *args);
bool ui_cmd_context(UiApp *a, const char *name, const char *args);
bool ui_cmd_mem(UiApp *a, const char *name, const char *args);
/* cmd_experts.c */
bool ui_cmd_experts(UiApp *a, const char *name, const char *args);
/* cmd_role.c */
bool ui_cmd_role(UiApp *a, const char *name, const char *args);
/* cmd_session.c */
bool ui_cmd_new(UiApp *a, const char *name, const char *args);
bool ui_cmd_save(UiApp *a, const char *name, const char *args);
bool ui_cmd_load(UiApp *a, const char *name, const char *args);
bool ui_cmd_sessions(UiApp *a, const char *name, const char *args);
bool ui_cmd_rename(UiApp *a, const char *name, const char *args);
bool ui_cmd_delete(UiApp *a, const char *name, const char *args);
/* What /load and /delete do with the name of a session; false: reported. */
bool ui_session_load(UiApp *a, const char *name);
bool ui_session_delete(UiApp *a, const char *name);
/* cmd_take.c */
bool ui_cmd_copy(UiApp *a, const char *name, const char *args);
bool ui_cmd_save_code(UiApp *a, const char *name, const char *args);
bool ui_cmd_export(UiApp *a, const char *name, const char *args);

/* Cells of a line of output; lines are long if the output is not a terminal. */
int ui_text_columns(const UiApp *a);
/* Parses a number of exchanges, 1 or more; "" is 1. false: reported. */
bool ui_parse_exchanges(UiApp *a, const char *name, const char *args, long *n);
/* Reports that a command must wait for the answer; true if one is being generated. */
bool ui_cmd_busy(UiApp *a, const char *name);

#endif
