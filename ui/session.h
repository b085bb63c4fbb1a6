/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The conversation on disk while it happens, through qsf_chatlog.h. What cannot be written is said once
 * and the chat goes on; the next record tries again. One thread. */
#ifndef QSF_UI_SESSION_H
#define QSF_UI_SESSION_H

#include "qsf_chatlog.h"
#include "ui/buf.h"

typedef struct UiSession {
    bool on;           /* conversations are saved */
    bool failing;      /* the last write failed and was said */
    bool lost;         /* a message is missing in the file */
    char name[128];    /* "" = none yet */
    QSFChatLog *log;   /* NULL until the first record */
    size_t parted, parted_reasoning; /* bytes of the open answer already written as PART */
    double part_time;  /* monotonic seconds of the last PART */
    char problem[400]; /* sentence about a failed write, "" = none; the owner shows and clears it */
} UiSession;

/* "2026-08-01_09-42-10": a name by the clock that no conversation has. */
void ui_session_name_now(char *dst, size_t cap);
/* From now on conversation `name`; the file is made with the first record. */
void ui_session_use(UiSession *s, const char *name);
/* Opens the file now: takes its lock. false with a sentence in err. */
bool ui_session_open(UiSession *s, char *err, size_t cap);
void ui_session_close(UiSession *s);

/* Each appends one record; nothing while no file is open. facts (may be NULL): reasoning, stop, seed, tokens. */
bool ui_session_message(UiSession *s, const char *role, const char *text, size_t len,
                        const QSFLogRecord *facts);
bool ui_session_simple(UiSession *s, QSFLogKind kind, const char *name, const char *text, uint32_t n);
/* An open answer, text and reasoning all of it so far: writes what is new, about once a second or, with force, at
 * once. */
void ui_session_part(UiSession *s, const QSFLogRecord *all, double now, bool force);

#endif
