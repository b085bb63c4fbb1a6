/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the app_*.c files only. */
#ifndef QSF_UI_APP_INTERNAL_H
#define QSF_UI_APP_INTERNAL_H

#include "ui/app.h"

/* The system prompt and every message the model sees, with space for one more; free() it. Text stays owned by
 * the transcript. NULL without memory. */
QSFMessage *ui_app_messages(const UiApp *a, size_t *n);
/* Whether a line is a message; leaves in *text and *len only what would be sent. */
bool ui_app_message(const UiApp *a, const char **text, size_t *len);
/* The snapshot of the session, malloc'ed; NULL = none. */
char *ui_app_snapshot(const UiApp *a);
/* Submits r with the messages, the stop strings and the snapshot of the conversation. false: reported. */
bool ui_app_request(UiApp *a, QSFRequest r);
/* Bytes of texts for QSFRequest.held (app_room.c). */
uint64_t ui_app_held(const UiApp *a);
/* A load begins: the plan counts the screen as it is now (app_room.c). */
void ui_app_screen_load(UiApp *a);
/* Sends the next queued message when nothing runs and the queue is not held. */
void ui_app_send_queued(UiApp *a);
/* Takes a snapshot of the engine's numbers into a->stats. */
void ui_app_refresh_stats(UiApp *a);
/* The messages changed without the engine: their tokens are counted for the status. Does nothing while an
 * answer is generated, because the engine reports the number at its end. */
void ui_app_count_context(UiApp *a);
/* Returns whether there is no eviction policy but one can be set; otherwise err has the reason. */
bool ui_app_policy_is_possible(const UiApp *a, char *err, size_t cap);
/* Reports why the engine refused setting name (NULL: several) with that value: its first sentence, and of a
 * table the last line, which names a value that works. */
void ui_app_say_refused(UiApp *a, const char *name, const char *value, const char *text);
/* Lines of the log (ui/app_log.c): the engine was asked for a load or an answer; a model was loaded, an
 * answer has ended; something was said, unless it is what a command prints. */
void ui_log_load(UiApp *a, const char *file);
void ui_log_loaded(const UiApp *a);
void ui_log_request(UiApp *a, const char *what);
void ui_log_answer(const UiApp *a, const QSFEvent *e);
void ui_log_said(UiKind kind, const char *text);
/* The requested model was loaded, or was not (ui/app_load.c). */
void ui_app_model_loaded(UiApp *a, const QSFEvent *e);
void ui_app_load_failed(UiApp *a, const QSFEvent *e);
/* Starts the requested load if nothing runs. */
void ui_app_start_load(UiApp *a);
/* Restores the rows of these kinds (QSF_SETTING_*) to their values in s, in the session's file too; say:
 * reports it. */
void ui_app_take_back(UiApp *a, const QSFSettings *s, unsigned flags, bool say);
/* Settings of a session and of the command line may exclude each other (qsf_settings_check): sets the quality
 * to 1 then, and says why. */
void ui_app_settle(UiApp *a);
/* A model was loaded: if it has no experts, limits for experts are taken back, and that is said. */
void ui_app_drop_limits(UiApp *a);
/* Is it one of the settings that say what an answer has to match? One at a time is on; an answer keeps what
 * it began with. */
bool ui_setting_is_grammar(const QSFSetting *row);
/* Asks the engine for a plan with the settings and the text of the conversation. */
void ui_app_replan(UiApp *a);
/* Tokens of the conversation without an answer that is being written; -1 = not known. */
int64_t ui_app_prompt_tokens(const UiApp *a);
/* Puts what a new plan depends on, but is not a setting, into s: the bytes and tokens of the conversation. */
void ui_app_note_conversation(UiApp *a, QSFSettings *s);
/* Whether positions leave the context by a policy. */
bool ui_app_evicts(const UiApp *a);
/* Settings changed without ui_app_set; before holds the old values. Informs the engine. */
void ui_app_apply(UiApp *a, const QSFSettings *before);
/* ---- the configuration file (app_config.c) ---- */

/* Defaults and what the file says for this model (NULL = none). */
void ui_config_base(const UiApp *a, const char *model, QSFSettings *s);
/* Does the row have the value of the file? No longer after ui_config_chosen: it is the session's own. */
bool ui_config_sets(const UiApp *a, const QSFSetting *row);
void ui_config_chosen(UiApp *a, const QSFSetting *row);
/* The row has its default again, which is that of the file if it has one. */
void ui_config_unchosen(UiApp *a, const QSFSetting *row);
/* The bit of the row in QSFSettings.user_set. */
QSFSettingSet ui_setting_bit(const QSFSetting *row);
/* As a value of /set, and in session files: the setting is no longer set, and has the value that the
 * configuration file, the model or the server gives it. */
#define UI_DEFAULT "default"
/* Does value mean that? Not for rows of which it is a value. */
bool ui_setting_is_default(const QSFSetting *row, const char *value);
/* Gives row of s the value that it has in base, which the user has not set if base does not say so. */
void ui_setting_unset(QSFSettings *s, const QSFSettings *base, const QSFSetting *row);
/* Makes the settings those of ui_config_base, but for the rows of `chosen` (as in
 * QSFSettings.user_set). */
void ui_config_apply(UiApp *a, const char *model, QSFSettingSet chosen);
/* The same when another model is loaded, for all rows that the user has not chosen. */
void ui_config_for_model(UiApp *a, const char *model);
/* A session begins that did not exist before: takes the role, the system prompt and the stop strings of the
 * file, which become its own. false: reported. */
bool ui_config_begin_session(UiApp *a, const char *model);

/* The settings without user choices: the defaults and those of the configuration file, with the values that
 * the loaded model recommends. */
void ui_app_base(const UiApp *a, QSFSettings *base);
/* A model was loaded: applies its recommended settings. Adds ", NAME VALUE" for each setting that changed. */
void ui_app_take_model_defaults(UiApp *a, UiBuf *changed);
/* The last message got no answer: it leaves the context, but stays on the screen, and in the file. */
void ui_app_withdraw(UiApp *a);

/* Returns a record with the text and the reasoning of a message, starting at `from`; both are
 * owned by the item. */
QSFLogRecord ui_app_record(const UiItem *it, UiPlace from);
/* A message without an answer leaves the context in the file, too: the conversation continues without it. */
void ui_app_drop_unanswered(UiApp *a);
/* Saves a message of the transcript, starting at `from`. Creates the file with the first message, and writes
 * everything again if a record was lost before. */
void ui_app_save_message(UiApp *a, UiItem *it, UiPlace from);
/* Saves a message that the file has already, with its number: the conversation continues from it. */
void ui_app_save_again(UiApp *a, UiItem *it);
/* A conversation without a file: writes all of it into memory, so that its changes can be undone. */
void ui_app_keep(UiApp *a);
/* Sets which version each answer is. */
void ui_app_versions(UiApp *a);
/* Implements UiSession.rewrite; arg is the app. */
bool ui_app_rewrite(void *arg);
/* Saves which model answers from now on. */
void ui_app_save_model(UiApp *a);
/* In the file a stop string is a setting like any other, except that there may be several; "" clears them. */
#define UI_STOP_SETTING "stop"
/* Saves a stop string that applies from now on; "": clears them. */
void ui_app_save_stop(UiApp *a, const char *text);
/* Adds a stop string, or with "" removes all, as a change that can be undone. Returns NULL, or why it cannot
 * be added. */
const char *ui_app_change_stops(UiApp *a, const char *text);
/* Saves which role the conversation has taken, in its file too. */
void ui_app_set_role(UiApp *a, const char *role);
/* Saves stops; replace: instead of those in the file. */
void ui_app_save_stops(UiApp *a, const UiStops *stops, bool replace);

/* A message that left the context because it got no answer. */
typedef struct UiReplayAside {
    UiItem *item;
    int64_t before; /* place of the message in the context that follows it, or would */
} UiReplayAside;

/* The messages of a session whose file is replayed, without their texts (ui/replay_list.c). Zeroed but for
 * maker.ascii and maker.next_id it is empty. */
typedef struct UiReplayList {
    UiItem **items; /* those in the context: [first, first + n) of (cap) */
    size_t first, n, cap;
    UiItem **past; /* (n_past) messages that were forgotten, before the others */
    size_t n_past, cap_past;
    UiReplayAside *aside; /* [first_aside, n_aside): messages without an answer, in order */
    size_t first_aside, n_aside, cap_aside;
    int64_t front;      /* place of the first one in the context */
    UiTranscript maker; /* counts ids and numbers */
} UiReplayList;
/* The last one in the context, or NULL. */
UiItem *ui_replay_last(const UiReplayList *l);
/* Adds an empty one; NULL without memory. */
UiItem *ui_replay_add(UiReplayList *l, UiKind kind);
/* Removes the last n in the context; the first n leave it, false without memory; removes all. */
void ui_replay_drop(UiReplayList *l, uint32_t n);
/* The last one, of the user, leaves the context, but keeps its place; false without memory. */
bool ui_replay_withdraw(UiReplayList *l);
bool ui_replay_forget(UiReplayList *l, uint32_t n);
void ui_replay_clear(UiReplayList *l);
/* Puts a question and an empty answer, which is returned, before those in the context; NULL
 * without memory. */
UiItem *ui_replay_prepend(UiReplayList *l, const char *question);
/* How many there are, and all of them in their order: (ui_replay_count) in dst. */
size_t ui_replay_count(const UiReplayList *l);
void ui_replay_all(const UiReplayList *l, UiItem **dst);
/* Moves them to t, which must be empty; false without memory. */
bool ui_replay_finish(UiReplayList *l, UiTranscript *t);
void ui_replay_free(UiReplayList *l);

/* Memory for the texts of a session that is resumed. */
typedef struct UiRoom {
    uint64_t budget, bytes; /* of the process; that they may take */
    bool refused;           /* they do not fit, which was written to err */
} UiRoom;
/* Measures it; s: the settings that will apply. */
void ui_room_measure(UiApp *a, const QSFSettings *s, UiRoom *room);
/* Measures it for the conversation of the chat, which may still grow by `more` bytes: does it hold them? */
bool ui_room_for_more(UiApp *a, UiRoom *room, uint64_t more);
/* Does the room hold this many items without texts and this many places of records? */
bool ui_room_for_items(const UiRoom *room, uint64_t items, uint64_t places);
/* How many messages of branches a tree may have in a part of the room. */
uint32_t ui_room_for_tree(const UiRoom *room);
/* Refuses a session that needs `need` bytes (0 = unknown), and writes to err what to do. */
void ui_room_refuse(const UiApp *a, UiRoom *room, const char *name, uint64_t need, char *err, size_t cap);
/* Adds the texts of record r, which stay in the file, to it; false without memory. */
bool ui_item_place(UiItem *it, const QSFLogRecord *r);
/* Reads the texts of t from log: of all messages in the context, and of others as far as they fit in a part
 * of the room. false, with a message in err, if those in the context do not fit or cannot be read. */
bool ui_texts_load(UiApp *a, UiTranscript *t, const QSFChatLog *log, UiRoom *room, const char *name,
                   char *err, size_t cap);

/* A conversation while the records of its file are read (ui/replay_file.c). Before the first one: list.maker
 * and room are set, and ui_own_begin(&own) was called. */
typedef struct UiReplay {
    UiReplayList list;
    UiTree *tree; /* is made too; NULL = not needed */
    UiRoom room;
    uint64_t places; /* records of messages */
    bool guide_talk;
    bool any;                         /* record */
    UiOwn own;                        /* settings in the file */
    bool system;                      /* it has a system prompt, or had one */
    uint64_t system_at, system_bytes; /* its record */
    char *model;                      /* path of the last QSF_LOG_MODEL record */
    char *label;                      /* its name there, or NULL */
    bool too_many;                    /* messages for the room, or for the memory */
    char title[QSF_LOG_NAME];         /* of the last such record, "" = none */
    char role[64];                    /* the same */
} UiReplay;
/* For qsf_chatlog_read; arg is a UiReplay. */
bool ui_replay_record(void *arg, const QSFLogRecord *r);
/* Gives an answer the name of the model that r, or the session, has. */
void ui_replay_label(const UiReplay *rp, UiItem *it, const QSFLogRecord *r);
void ui_replay_end(UiReplay *rp);

/* The settings in a session file (ui/app_given.c): begin, add each QSF_LOG_SET record, then
 * pass it to ui_own_take. */
void ui_own_begin(UiOwn *own);
void ui_own_record(UiOwn *own, const QSFLogRecord *r);
/* The settings that ui_own_take will make those of the chat. */
void ui_own_settings(const UiApp *a, const UiOwn *own, QSFSettings *s);
/* Makes a->own the settings of the chat; nothing of the session before remains. Those of the command line
 * replace them, in the file too unless a->kept. system: the session has its own system prompt. */
void ui_own_take(UiApp *a, bool system);
void ui_own_free(UiOwn *own);
/* Saves that the user set this: it belongs to the session from now on. */
void ui_own_set(UiApp *a, const QSFSetting *row, const char *value);
void ui_given_free(UiGiven *g);

#endif
