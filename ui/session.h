/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The conversation on disk while it happens, through qsf_chatlog.h. What cannot be written is said once
 * and the chat continues; the next record tries again. One thread. */
#ifndef QSF_UI_SESSION_H
#define QSF_UI_SESSION_H

#include "qsf_chatlog.h"
#include "ui/buf.h"

typedef struct UiSession {
    bool on;         /* conversations are saved */
    bool failing;    /* the last write failed and was said */
    bool saved;      /* there is a file; still known after ui_session_close */
    bool unsaved;    /* after ui_session_close: a part of the conversation is not in the file, or all of it */
    char name[128];  /* "" = none yet */
    QSFChatLog *log; /* NULL until the first message */
    size_t parted, parted_reasoning; /* bytes of the open answer already written as PART */
    double part_time;                /* monotonic seconds of the last PART */
    char problem[400]; /* sentence about a failed write, "" = none; the owner shows and clears it */
} UiSession;

/* "2026-08-01_09-42-10": a name by the clock. */
void ui_session_name_now(char *dst, size_t cap);
/* The conversation is called `name` and has no file yet. */
void ui_session_use(UiSession *s, const char *name);
/* The same for one that may have a file: opens or makes it, and takes its lock. false with a sentence in
 * err; errno is EWOULDBLOCK when another program has it. */
bool ui_session_attach(UiSession *s, const char *name, char *err, size_t cap);
/* Begins the file of a conversation that has none. It appears, with all that was appended, with
 * ui_session_publish. false: it cannot be made, s->problem says why. */
bool ui_session_create(UiSession *s);
/* Where the name is taken, with other_name NAME-2, NAME-3 ... is used. false: there is no file, not even a
 * part of one, and s->problem says why. */
bool ui_session_publish(UiSession *s, bool other_name);
void ui_session_close(UiSession *s);

/* Each appends one record; nothing while no file is open. facts (may be NULL): reasoning, stop, seed, tokens. */
bool ui_session_message(UiSession *s, const char *role, const char *text, size_t len,
                        const QSFLogRecord *facts);
bool ui_session_simple(UiSession *s, QSFLogKind kind, const char *name, const char *text, uint32_t n);
/* An open answer, text and reasoning all of it so far: writes what is new, about once a second or, with force, at
 * once. */
void ui_session_part(UiSession *s, const QSFLogRecord *all, double now, bool force);

#endif
