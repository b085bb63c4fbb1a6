/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: the conversation, the engine's requests, the queue of one message, settings and
 * the session file. The full screen and the line mode both drive it: submit a line, take engine events, read
 * what is there. One thread; nothing here waits. */
#ifndef QSF_UI_APP_H
#define QSF_UI_APP_H

#include "ui/engine.h"
#include "ui/session.h"
#include "ui/stops.h"
#include "ui/transcript.h"

#define UI_SPARK       32
#define UI_MESSAGE_MAX ((size_t)8 << 20) /* bytes of one message */

typedef enum UiRequest { UI_REQUEST_NONE, UI_REQUEST_LOAD, UI_REQUEST_ANSWER } UiRequest;

/* What the line mode wants to hear at once; the full screen draws the transcript instead. Any may be NULL. */
typedef struct UiHooks {
    void *arg;
    void (*said)(void *arg, UiKind kind, const char *text);
    void (*answer_begin)(void *arg);
    void (*answer_thought)(void *arg, const char *text, size_t len); /* before its text, tags included */
    void (*answer_text)(void *arg, const char *text, size_t len);
    void (*answer_end)(void *arg);
} UiHooks;

/* How fast weights are read into RAM behind everything else. */
typedef struct UiPinning {
    uint64_t done, total; /* at the last look */
    double time;          /* of it, monotonic seconds */
    double rate;          /* bytes a second, 0 = not known yet */
} UiPinning;

/* The message being typed, when its tokens were last counted. */
typedef struct UiTyped {
    size_t bytes;
    double tokens;
} UiTyped;

typedef struct UiApp {
    UiEngine engine;
    UiHooks hooks;
    QSFSettings settings;
    UiTranscript chat;
    UiSession session;
    UiBuf system;     /* system prompt, empty = none */
    UiStops stops;    /* texts that end an answer */
    char *model_path; /* of the model that is loaded or being loaded; NULL = none */

    UiRequest running;
    uint64_t request; /* id of it */
    char *good_path;  /* what was loaded last, with good_settings: a load that fails goes back to it */
    QSFSettings good_settings;
    bool model_ready;   /* the last load succeeded */
    UiItem *answer;     /* the answer being written */
    UiPlace answer_from; /* what was in it before this request (/continue) */
    char answer_stop[16]; /* why it ended before this request */
    bool stopping;      /* cancelled, its end not seen yet */

    bool guide_talk;   /* the messages in the context were exchanged with the guide */
    bool has_queue;
    UiBuf queue;      /* the message to send when the answer is finished */
    char *want_model; /* to load when the answer is finished */
    bool want_reload; /* settings changed that need a load */
    bool replanning;  /* the engine was asked for another plan and has not said yet what came of it */

    bool interactive; /* a person types: prefixes of command names are understood */
    bool full_screen;
    bool verbose;  /* more is said about a model that was loaded */
    unsigned knob; /* index of the setting that the live keys change */
    bool quit;
    int exit_code; /* of the program: the first failure, 0 = none */
    bool started;  /* past the start: a load that fails from here on is a failed command */

    QSFStats stats;        /* last snapshot; ctx_used is that of the conversation */
    bool ctx_counted;      /* messages changed since the engine's last answer: they take ctx_tokens */
    uint32_t ctx_tokens;
    UiTyped typed;
    QSFLayerStats *layers; /* (n_layers) of it, the last one is the head */
    uint32_t n_layers, layers_cap;
    UiPinning pinning;
    double spark[UI_SPARK]; /* recent tokens per second, oldest first */
    unsigned n_spark;
    double spark_time;    /* monotonic seconds of the last one */
    int columns;          /* cells of a line of output on the full screen, 0 = not known yet */
    unsigned help_wanted; /* grows when a command asks for the help screen */
} UiApp;

/* settings are copied. The engine has no model yet. */
void ui_app_init(UiApp *a, UiEngine engine, const QSFSettings *settings);
void ui_app_free(UiApp *a);

/* Says something: into the transcript on the full screen, to the hook otherwise. UI_ERROR counts as a
 * failure with exit code 1. */
void ui_app_say(UiApp *a, UiKind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same with text of any length, UI_OUTPUT mostly. */
void ui_app_print(UiApp *a, UiKind kind, const char *text);

bool ui_app_busy(const UiApp *a);

/* What a person sends: a slash command, or a message; "//x" is the message "/x". false: it was not taken
 * (one message is queued already) and should stay in the input line. */
bool ui_app_submit(UiApp *a, const char *text, size_t len);
/* Would ui_app_submit take a message? */
bool ui_app_can_take(const UiApp *a, const char *text, size_t len);
/* Stops the answer or the load that runs; true when there was one. */
bool ui_app_stop(UiApp *a);
/* Takes the queued message back: the caller frees it; NULL when there is none. */
char *ui_app_unqueue(UiApp *a, size_t *len);

/* Loads path now, or when the answer is finished. */
void ui_app_load(UiApp *a, const char *path);
/* Loads the model there is, with the settings there are; row (NULL: several) is the one that changed. */
void ui_app_reload(UiApp *a, const QSFSetting *row);
/* Length of a file name without the ending of a model file (.gguf, .qsf); its whole length where it has none. */
size_t ui_model_stem(const char *name);
/* Asks the model for an answer to the messages there are; more text of the last answer with go_on. false
 * when that cannot be (said). */
bool ui_app_ask(UiApp *a, bool go_on);
/* Sets a setting; live ones and those that only need another plan act at once, others load the model anew.
 * false when refused (said). quiet: says nothing about success. */
bool ui_app_set(UiApp *a, const QSFSetting *row, const char *value, bool quiet);
/* Shows or folds what the model thinks before its answers. quiet: as of ui_app_set. */
void ui_app_think(UiApp *a, bool show, bool quiet);
/* The live keys: choose the next (+1) or previous (-1) setting with a step; change it by steps. */
void ui_app_knob_choose(UiApp *a, int by);
void ui_app_knob_turn(UiApp *a, int steps);

/* Takes all engine events that wait; true when something changed. */
bool ui_app_pump(UiApp *a);
/* Takes a snapshot of the engine's numbers. */
void ui_app_refresh(UiApp *a);
/* The same, and saves the open answer now and then. */
void ui_app_tick(UiApp *a, double now);
/* Weights are still being read into RAM. */
bool ui_app_pinning(const UiApp *a);
/* Seconds that it will take, -1 when nobody knows. */
double ui_app_pin_left(const UiApp *a);
/* Ends: what exists of an open answer is saved. */
void ui_app_finish(UiApp *a);

/* ---- the context (app_context.c) ---- */

/* By how many tokens, about, text as the next message is too long for the context; 0 = it fits or nobody knows. Cheap
 * enough for every key. */
int64_t ui_app_too_long(UiApp *a, const char *text, size_t len);
/* Does the conversation with text as the next message fit the context? *need: its tokens; not known (-1) is true. */
bool ui_app_fits(UiApp *a, const char *text, size_t len, int64_t *need);
/* What helps when need tokens (0 = not known) do not fit: "/ctx 4096, /undo or /clear". */
void ui_app_context_advice(const UiApp *a, int64_t need, char *dst, size_t cap);

/* ---- conversations ---- */

/* Forgets all messages (not the settings, not the file). */
void ui_app_clear_messages(UiApp *a);
/* Replays conversation `name` and goes on in it. false with a sentence said. */
bool ui_app_resume(UiApp *a, const char *name);
typedef enum UiResume { UI_RESUMED, UI_RESUME_IN_USE, UI_RESUME_FAILED } UiResume;
/* The same; nothing is said, and nothing changes, when another program has it. */
UiResume ui_app_try_resume(UiApp *a, const char *name);
/* Writes the whole conversation to the session, which has no file yet or lost a part. A new file appears
 * whole or not at all, with other_name as NAME-2, NAME-3 ... where its name is taken. false:
 * a->session.problem says why. */
bool ui_app_save_all(UiApp *a, bool other_name);
/* Takes the last n messages away, in the file too. */
void ui_app_drop(UiApp *a, uint32_t n);
void ui_app_set_system(UiApp *a, const char *text);

/* ---- small things shared by the commands ---- */

/* Monotonic seconds. */
double ui_now(void);

#endif
