/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: the conversation, requests to the engine, queued messages, settings and the
 * session file. The full screen and the line mode both drive it: submit lines, process engine events,
 * read the state. One thread; no function blocks. */
#ifndef QSF_UI_APP_H
#define QSF_UI_APP_H

#include "qsf_config.h"
#include "ui/ahead.h"
#include "ui/compose/attach.h"
#include "ui/compose/folds.h"
#include "ui/compose/queue.h"
#include "ui/download.h"
#include "ui/engine.h"
#include "ui/session.h"
#include "ui/source.h"
#include "ui/stops.h"
#include "ui/theme.h"
#include "ui/transcript.h"

#define UI_SPARK       32
#define UI_MESSAGE_MAX ((size_t)8 << 20) /* bytes of one message */

typedef enum UiRequest {
    UI_REQUEST_NONE,
    UI_REQUEST_LOAD,
    UI_REQUEST_ANSWER,
    UI_REQUEST_SUMMARY,
    UI_REQUEST_SWAP,  /* the next message of the user, by the model */
    UI_REQUEST_TOKENS /* those of the last answer, evaluated again */
} UiRequest;

/* Callbacks for the line mode; the full screen draws the transcript instead. Any may be NULL. */
typedef struct UiHooks {
    void *arg;
    void (*said)(void *arg, UiKind kind, const char *text);
    void (*loaded)(void *arg); /* a model: app.stats describes it */
    void (*answer_begin)(void *arg);
    void (*answer_thought)(void *arg, const char *text, size_t len); /* before its text, tags included */
    void (*answer_text)(void *arg, const char *text, size_t len);
    void (*answer_end)(void *arg);
} UiHooks;

/* How fast weights are pinned in the background. */
typedef struct UiPinning {
    uint64_t done, total; /* at the last refresh */
    double time;          /* of the last refresh, monotonic seconds */
    double rate;          /* bytes per second, 0 = unknown */
} UiPinning;

/* The message being typed, when its tokens were last counted. */
typedef struct UiTyped {
    size_t bytes;
    double tokens;
} UiTyped;

/* What the command line set: it applies to each session that is opened. */
typedef struct UiGiven {
    QSFSettings settings; /* those with qsf_setting_user_set */
    UiStops stops;
    UiBuf system; /* for sessions without a system prompt */
} UiGiven;

/* The settings that a session file sets; what a model recommends is not among them. */
typedef struct UiOwn {
    QSFSettings settings;
    UiStops stops;
    UiBuf system;
} UiOwn;

/* What would make space in the context, as last found: advice is drawn with every frame. */
typedef struct UiFit {
    uint32_t last_item, exchanges; /* of the conversation for which it was found */
    uint32_t most;                 /* that may leave */
    uint32_t forget;               /* exchanges, 0 = none helps */
    int64_t left, before;          /* tokens that stay after them, and after one less */
    uint32_t ctx_size;             /* of the plan for which the rest was found */
    uint64_t budget;
    int64_t ctx_for; /* tokens */
    uint32_t ctx;    /* a context for them, 0 = impossible */
    bool policy;     /* an eviction policy is possible */
} UiFit;

/* A command that /undo does not take back, and the last change before it. */
typedef struct UiNotUndone {
    const char *command; /* NULL = none */
    uint32_t steps, message;
} UiNotUndone;

/* What a command asks the full screen to open. */
typedef enum UiView { UI_VIEW_NONE, UI_VIEW_HELP, UI_VIEW_SESSIONS, UI_VIEW_SEARCH, UI_VIEW_MODELS } UiView;

/* A summary that the model is writing (exchanges.h). */
typedef struct UiCompact {
    uint32_t exchanges; /* that it replaces */
    bool go_on;         /* the last answer continues after it */
    bool cut;           /* it ended in the middle */
    bool ready;         /* it is shown, and waits for a decision */
    uint32_t edited;    /* exchanges of the one that was put into the input, 0 = none */
    UiBuf text;
} UiCompact;

/* What the text of the last answer shows about its tokens (tint.h). */
typedef enum UiTint { UI_TINT_OFF, UI_TINT_PROBABILITY, UI_TINT_ENTROPY } UiTint;

/* A place in the last answer, token by token (walk.h). */
typedef struct UiWalk {
    uint64_t request; /* after which the engine knows the tokens of the answer `item`; 0 = none */
    uint32_t item;
    bool open, opens; /* opens: when the tokens that are evaluated again are known */
    uint32_t at, n;   /* the token, of n */
    size_t begin;     /* of its text, in the answer */
    unsigned row;     /* chosen in the list */
    QSFToken token;
} UiWalk;

/* The game that is played (cmd_game.c). */
typedef struct UiGame {
    char name[64];      /* "" = none */
    QSFSettings before; /* those that it replaced */
    QSFSettings after;  /* those that it set: what differs now was changed since */
    QSFSettingSet set;
    UiBuf system; /* the system prompt that it replaced, if has_system */
    bool has_system;
} UiGame;

struct UiApp {
    UiEngine engine;
    UiHooks hooks;
    QSFSettings settings;
    UiGiven given;
    const QSFConfigFile *config; /* owned by the caller of ui_app_init, or `edited`; NULL = none */
    QSFConfigFile *edited;       /* owned: after /role save */
    bool no_config;              /* --no-config: there is nothing to change */
    QSFSettingSet by_config;     /* settings that have the value of the configuration file */
    char role[64];               /* the last one that was taken from it, "" = none */
    UiGame game;
    bool no_save; /* nothing is written but what /save NAME creates */
    bool kept;    /* the session existed before this program opened it: its file does not get what is given */
    UiOwn own;    /* of that file; only if kept */
    UiTranscript chat;
    UiSession session;
    UiBuf system;     /* system prompt, empty = none */
    UiStops stops;    /* stop strings */
    char *model_path; /* of the model that is loaded or being loaded; NULL = none */

    UiRequest running;
    uint64_t request;    /* id of it */
    double request_time; /* when it began, monotonic seconds */
    char *good_path;     /* the model loaded last, with good_settings: the fallback when a load fails */
    QSFSettings good_settings;
    uint64_t held_at_load; /* bytes of texts that the plan of the model counts as part of the program */
    size_t cells;          /* of the full screen, 0 = there is none */
    size_t cells_drawn;    /* those that have their memory */
    size_t cells_at_load;  /* those that the plan of the model counts */
    bool model_ready;      /* the last load succeeded */
    UiItem *answer;        /* the answer being written */
    UiPlace answer_from;   /* its length before this request (/continue) */
    char answer_stop[16];  /* its stop reason before this request */
    bool stopping;         /* cancelled, but still running */

    bool snapshots;          /* what was evaluated is kept with the session */
    uint64_t snapshot_limit; /* as in QSFRequest */

    uint32_t asking;      /* id of the answer for which it was asked what to do at a full context
                             (ctx_full.h); 0 = none */
    uint32_t ask_item;    /* id of that question on the screen, 0 = none */
    unsigned ask_offered; /* the choices, bit 0 is the first */
    char ask_keys[80];    /* and their names, "1 forget  4 stop" */
    bool enlarging;       /* the plan changes so that the answer can continue */
    UiFit fit;
    UiTint tint;
    UiWalk walk;
    uint32_t no_tokens, no_tokens_version; /* an answer whose tokens are not those of its text; 0 = none */
    uint32_t branch;                       /* as in QSFRequest, of the next one */
    int32_t branch_id;
    UiCompact compact; /* of the running UI_REQUEST_SUMMARY */
    UiBuf swapped;     /* text of the running UI_REQUEST_SWAP */
    double read_tps;   /* speed of the last longer prefill, 0 = unknown */

    UiNotUndone not_undone;
    uint32_t unanswered; /* id of a message that got no answer and ends the file, though it
                            left the context; 0 = none */
    bool guide_talk;     /* the messages in the context were exchanged with the guide */
    UiQueue queue;       /* messages to send when the answer is finished */
    UiAttach attach;     /* files that go with messages */
    char where[300];     /* "FILE:LINE" of the line of --script that is run, "" = none */
    UiSource source;     /* files of /source that are being read */
    UiFolds folds;       /* long pastes in the input */
    UiAhead ahead;       /* what is typed, as far as the engine knows it */
    int64_t not_sent;    /* tokens of the conversation with the message that was refused last; 0 = it fits */
    UiBuf draft;         /* text for the input, see ui_app_draft */
    char *want_model;    /* to load when the answer is finished */
    bool want_reload;    /* settings changed that need a load */
    bool resuming;      /* a session was resumed and the engine has not answered yet: settings that it refuses
                           are not written to the file */
    bool unnamed;       /* the session was resumed and its file names no model */
    bool model_unsaved; /* another model answers than the session's, which is recorded with the
                           next message */
    bool replanning;    /* the engine was asked for a new plan and has not answered yet */

    bool interactive; /* input comes from a terminal: prefixes of command names are accepted */
    bool full_screen;
    bool verbose;            /* the plan is printed after a load */
    bool quiet;              /* notices of the start are left out */
    bool raw;                /* the full screen shows answers as they are, not as Markdown */
    char theme[64];          /* name of the theme of the full screen */
    UiBackground background; /* of the terminal, as far as it is known */
    int text_width;          /* maximum cells of its text, 0 = the whole window */
    unsigned knob;           /* index of the setting that the live keys change */
    bool quit;
    int exit_code; /* of the program: the first failure, 0 = none */
    bool started;  /* the start is over: from now on a failed load is a failed command */

    bool eviction_reported; /* the user knows what evictions are */
    QSFStats stats;         /* last snapshot; ctx_used is that of the conversation */
    bool ctx_stale;         /* they changed, and their number was not needed yet (pipes) */
    bool ctx_counted;       /* messages changed since the last answer: they have ctx_tokens tokens */
    bool came_back;         /* the last answer had no token, and the one that it was to replace is back */
    uint32_t ctx_tokens;
    UiTyped typed;
    QSFLayerStats *layers; /* (n_layers) of it, the last one is the head */
    uint32_t n_layers, layers_cap;
    UiPinning pinning;
    QSFBudgetStep more;     /* what the key for a larger budget would bring */
    double more_time;       /* monotonic seconds when that was found; 0 = find it again */
    double spark[UI_SPARK]; /* recent tokens per second, oldest first */
    unsigned n_spark;
    double spark_time; /* monotonic seconds of the last one */
    int columns;       /* cells of a line of output on the full screen, 0 = not known yet */
    UiView view;       /* to open when the command is done (ui_app_open_view) */
    UiBuf view_text;
    const char *const
        *model_dirs;        /* (NULL-terminated) folders with models besides the usual places, or NULL */
    const char *models_dir; /* the folder whose models are listed at the start, or NULL */
    bool remember_model;    /* what is loaded is the first in the list of models the next time */
    char refused[400];      /* why the model of the command line is not loaded, "" = it is */
    bool choose_model;      /* no model was given: the full screen lists what there is, or loads the guide */
    UiDownload download;
    bool offline;        /* nothing is downloaded */
    bool show_downloads; /* qsf-get shows their progress and errors by itself, on standard error */
};

/* Fills s with the defaults of the chat: those of the engine, but an automatic budget. */
void ui_settings_default(QSFSettings *s);
/* Does row have another value than by default? */
bool ui_setting_is_on(const QSFSettings *s, const QSFSetting *row);
/* Is the value a list of files with scales? */
bool ui_setting_has_files(const QSFSetting *row);
/* Writes a value as messages and the status show it: such lists without the folders of files. */
void ui_setting_shown(const QSFSetting *row, const char *value, char *dst, size_t cap);
/* settings are copied. The engine has no model yet. */
void ui_app_init(UiApp *a, UiEngine engine, const QSFSettings *settings);
void ui_app_free(UiApp *a);

/* Prints a message: into the transcript on the full screen, to the hook otherwise. UI_ERROR counts as a
 * failure with exit code 1. */
void ui_app_say(UiApp *a, UiKind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same with text of any length, usually UI_OUTPUT. */
void ui_app_print(UiApp *a, UiKind kind, const char *text);

bool ui_app_busy(const UiApp *a);
/* The model is writing: an answer or a summary. */
bool ui_app_writing(const UiApp *a);

/* Submits a line of input: a slash command, or a message; "//x" is the message "/x". While something runs, a
 * message is queued. An empty line sends the next one of a queue that is held. false: it was not taken (it
 * does not fit, the queue is full) and should stay in the input line. */
bool ui_app_submit(UiApp *a, const char *text, size_t len);
/* Stops the running answer or load; false if nothing runs. */
bool ui_app_stop(UiApp *a);
/* Ends the reasoning before the running answer; false if no answer runs or its text has begun. */
bool ui_app_answer_now(UiApp *a);
/* The same for the running answer, and sends the next queued message as soon as it has ended, or now. */
void ui_app_send_next(UiApp *a);
/* Puts text into the input line when the key or command that is being handled is done; the line mode has no
 * input line and prints it. */
void ui_app_draft(UiApp *a, const char *text, size_t len);

/* Asks the full screen for a view, which it opens when the command is done. text: the expression of SESSIONS
 * ("" = all) and SEARCH, what filters MODELS at first; "" for the others. */
void ui_app_open_view(UiApp *a, UiView view, const char *text);

/* Loads path now, or when the answer is finished; what is to be downloaded when that is complete. */
void ui_app_load(UiApp *a, const char *path);
/* Reloads the model with the current settings; row (NULL: several) is the setting that changed. */
void ui_app_reload(UiApp *a, const QSFSetting *row);
/* Length of a file name without the extension of a model file (.gguf, .qsf), if it has one. */
size_t ui_model_stem(const char *name);
/* Asks the model to answer the conversation, or with go_on to continue the last answer. Returns false if that
 * is impossible (reported). */
bool ui_app_ask(UiApp *a, bool go_on);
/* Sets a setting; live and replanned settings take effect immediately, others reload the model. Returns false
 * if refused (reported). quiet: does not report success. */
bool ui_app_set(UiApp *a, const QSFSetting *row, const char *value, bool quiet);
/* Shows or folds the reasoning before answers. quiet: as for ui_app_set. */
void ui_app_think(UiApp *a, bool show, bool quiet);
/* The live keys: choose the next (+1) or previous (-1) setting with a step; change it by steps. */
void ui_app_knob_choose(UiApp *a, int by);
void ui_app_knob_turn(UiApp *a, int steps);

/* The keys for the budget (app_budget.c): takes the next smaller one, or a larger one with which less
 * streams, as far as there is one, and writes what that brings and when, or why not. */
void ui_app_budget_key(UiApp *a, bool more, char *dst, size_t cap);
/* Finds out again what the key for more would bring (a->more), at most every few seconds. */
void ui_app_budget_look(UiApp *a, double now);

/* Processes all waiting engine events; true when something changed. */
bool ui_app_pump(UiApp *a);
/* Takes a snapshot of the engine's numbers. */
void ui_app_refresh(UiApp *a);
/* The same, and saves the open answer periodically. */
void ui_app_tick(UiApp *a, double now);
/* Weights are still being read into RAM. */
bool ui_app_pinning(const UiApp *a);
/* Seconds until pinning ends, -1 if unknown. */
double ui_app_pin_left(const UiApp *a);
/* Ends the chat and saves the open answer as far as it exists; waits for its end at most half a second. */
void ui_app_finish(UiApp *a);

/* ---- the context (app_context.c) ---- */

/* Makes a->stats.ctx_used that of the conversation, for commands that print it: in a pipe it
 * is counted only then. */
void ui_app_refresh_context(UiApp *a);
/* Estimates by how many tokens the conversation with text as the next message ("": without) is too long for
 * the context; 0 = it fits, or unknown. more: tokens that the message has besides. Cheap enough to call for
 * every key. */
int64_t ui_app_too_long(UiApp *a, const char *text, size_t len, int64_t more);
/* Estimates the tokens of a message that is typed, and the seconds until the first token of its answer by the
 * speed of the last prompt, -1 = unknown. more: as above. 0: unknown. Cheap enough to call for every key. */
int64_t ui_app_typed(UiApp *a, const char *text, size_t len, int64_t more, double *seconds);
/* Whether the conversation with text as the next message fits the context. *need: its tokens, or -1 =
 * unknown, then true. */
bool ui_app_fits(UiApp *a, const char *text, size_t len, int64_t *need);
/* Writes what can be done if a prompt of need tokens does not fit, as much as fits into cap: "/forget 199:
 * fits, /ctx 4096, /kv policy sliding". Nothing of it is impossible. message: it ends with a message that is
 * not in the conversation yet; otherwise the last exchange has to stay. Cheap enough for every frame. false:
 * there is only the last resort, to shorten the message or to /clear. */
bool ui_app_context_advice(UiApp *a, int64_t need, bool message, char *dst, size_t cap);
/* Prints a notice if the conversation is longer than the context. */
void ui_app_say_long(UiApp *a);

/* ---- the RAM budget (app_room.c) ---- */

#define UI_ROOM_ALWAYS ((size_t)16 << 10) /* bytes of a command: each plan has a reserve for it */
/* Bytes that the next line or message may have so that it stays within the budget, with all copies of its
 * text and its prompt; at least UI_ROOM_ALWAYS, at most UI_MESSAGE_MAX. */
size_t ui_app_text_room(UiApp *a);
/* The budget in bytes with which a message of this size is sent; 0 = none, or unknown. */
uint64_t ui_app_budget_for(UiApp *a, const QSFTextSize *size);
/* Reports that a text of this size was dropped because it has more than `room` bytes, and a budget that
 * works. */
void ui_app_say_too_long(UiApp *a, const QSFTextSize *size, size_t room);

/* The full screen takes memory for each of its cells. */
#define UI_CELLS_ALWAYS ((size_t)16 << 10) /* of each plan: 256 columns, 64 rows */
/* Cells that the screen may have so that it stays within the budget: UI_CELLS_ALWAYS to UI_CELLS_MAX. */
size_t ui_app_screen_room(UiApp *a);
/* Cells of the screen, for the plan of the model and for later texts. drawn: they have their memory. */
void ui_app_screen_has(UiApp *a, size_t cells, bool drawn);

/* ---- conversations ---- */

/* Another conversation begins: its session is called `name`, and all settings of the chat are its own. */
void ui_app_begin_session(UiApp *a, const char *name);
/* Sets its title, in its file too; the end of a long one is dropped. */
void ui_app_set_title(UiApp *a, const char *text);
/* Its title, clean and on one line: that of /rename, or the beginning of the first message; "" = none yet. */
void ui_app_title(const UiApp *a, char *dst, size_t cap);
/* Clears all messages, but keeps the settings and the file. */
void ui_app_clear_messages(UiApp *a);
/* Replays conversation `name` and continues it, and says what it is and where the command line replaces its
 * own model or settings. Returns false on failure (reported). */
bool ui_app_resume(UiApp *a, const char *name);
typedef enum UiResume { UI_RESUMED, UI_RESUME_IN_USE, UI_RESUME_FAILED } UiResume;
/* The same, but changes and reports nothing when another program has the session open. */
UiResume ui_app_try_resume(UiApp *a, const char *name);
/* Writes the whole conversation to the session, which has no file yet or is missing a part. A new file is
 * created completely or not at all; with other_name it is NAME-2, NAME-3 ... if its name is taken. false:
 * a->session.problem says why. */
bool ui_app_save_all(UiApp *a, bool other_name);
/* Removes the last n messages, in the file too. */
void ui_app_drop(UiApp *a, uint32_t n);
void ui_app_set_system(UiApp *a, const char *text);
/* The same with that of the command line: a session that existed before keeps its own in its file. */
void ui_app_give_system(UiApp *a, const char *text);

/* ---- small things shared by the commands ---- */

/* Monotonic seconds. */
double ui_now(void);

#endif
