/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saves the conversation to disk continuously, through qsf_chatlog.h. A write error is reported once and the
 * chat continues; the next record tries again. A file that was removed, replaced or truncated is noticed
 * before the next record, and the whole conversation is written again. One thread. */
#ifndef QSF_UI_SESSION_H
#define QSF_UI_SESSION_H

#include "qsf_chatlog.h"
#include "ui/buf.h"
#include "ui/tree.h"

typedef struct UiSession {
    bool on;         /* conversations are saved */
    bool failing;    /* the last write failed and was reported */
    bool saved;      /* there is a file; still known after ui_session_close */
    bool had_file;   /* something was saved in one, which may be gone */
    bool pending;    /* the file is not visible yet */
    bool fresh;      /* nothing was said in it yet: then ui_session_close removes the file */
    bool unsaved;    /* after ui_session_close: a part of the conversation is not in the file, or all of it */
    char name[128];  /* "" = none yet */
    char title[128]; /* of the conversation, as /rename set it; "" = none */
    QSFChatLog *log; /* NULL until the first message */
    size_t parted, parted_reasoning; /* bytes of the open answer already written as PART */
    double part_time;                /* monotonic seconds of the last PART */
    char problem[400]; /* message about a failed write, "" = none; the owner shows and clears it */
    char why[300];     /* while failing: the reason */
    char notice[400];  /* the same for repairs */
    /* Writes the conversation again, with the change whose record is being appended: to a new file if log is
     * NULL, otherwise after what is left in it. false: not done, s->problem may say why. */
    bool (*rewrite)(void *arg);
    void *arg;
    bool rewriting;
    UiTree tree;          /* of the records that were written */
    QSFChatLog *scratch;  /* those of a conversation without a file; NULL = none yet */
    uint64_t scratch_max; /* bytes that they may take, 0 = a few MB */
    const char *by;       /* QSFLogRecord.by and .more of the next records: see ui_session_because */
    bool more;
    const char *was; /* QSFLogRecord.was of the next SET */
    bool lost;       /* an earlier session was closed with a part missing */
} UiSession;

/* "2026-08-01_09-42-10": a name from the current time. */
void ui_session_name_now(char *dst, size_t cap);
/* Was this name made by ui_session_name_now? */
bool ui_session_is_dated(const char *name);
/* The conversation is called `name` and has no file yet. */
void ui_session_use(UiSession *s, const char *name);
/* The same for one that may have a file: opens or creates it, and locks it. Returns false with a message in
 * err; errno is EWOULDBLOCK if another program has it open. */
bool ui_session_attach(UiSession *s, const char *name, char *err, size_t cap);
/* Leaves the file as it is: nothing more is saved. */
void ui_session_detach(UiSession *s);
/* Starts the file of a conversation that has none. ui_session_publish makes it visible, with everything
 * appended so far. Returns false if it cannot be created; s->problem says why. */
bool ui_session_create(UiSession *s);
/* If the name is taken, other_name allows NAME-2, NAME-3 ... Returns false if there is no file, not even a
 * part of one; s->problem says why. */
bool ui_session_publish(UiSession *s, bool other_name);
/* Closes it, after what is missing was written, as far as possible. */
void ui_session_close(UiSession *s);
/* Frees what it has in memory. */
void ui_session_free(UiSession *s);
/* Checks that the file is still there, and repairs what is not. Returns true if everything was written again:
 * a record of a change that has been made already must not be appended then. */
bool ui_session_repair(UiSession *s);

/* Each appends one record of a change that the conversation has already; without a file in memory, where it
 * lasts as long as the program. s->tree takes it. facts (may be NULL): reasoning, stop, seed, tokens. */
bool ui_session_message(UiSession *s, const char *role, const char *text, size_t len,
                        const QSFLogRecord *facts);
bool ui_session_simple(UiSession *s, QSFLogKind kind, const char *name, const char *text, uint32_t n);
/* The records that follow belong to a change that this command makes (NULL: none in particular), and
 * with more to the same one as the record after them. Until it is called again. by must stay valid. */
void ui_session_because(UiSession *s, const char *by, bool more);
/* For qsf_chatlog_texts: appends the texts to the UiBuf arg. */
void ui_session_put_text(void *arg, QSFLogPart part, const char *s, size_t len);
/* The log that has the texts of the messages in s->tree, or NULL. */
const QSFChatLog *ui_session_texts(const UiSession *s);
/* Bytes of memory that the tree takes. */
uint64_t ui_session_held(const UiSession *s);
/* The conversation is about to be written again as a whole, to the file or, without one, in memory. */
void ui_session_restart(UiSession *s);
/* An open answer: text and reasoning are complete so far. Writes the new part, about once a second or, with
 * force, immediately. */
void ui_session_part(UiSession *s, const QSFLogRecord *all, double now, bool force);

#endif
