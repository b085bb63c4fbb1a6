/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Conversations on disk: append-only JSON Lines under $XDG_DATA_HOME/qsf/sessions/NAME.jsonl, each record
 * written as it happens, so that a killed program loses nothing that was shown as finished. A record
 * that is damaged (torn last line, NUL block, not JSON) is skipped, counted and never deleted.
 * Shared by the programs; not installed. One thread. */
#ifndef QSF_CHATLOG_H
#define QSF_CHATLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One event of a conversation. Which fields count depends on kind. */
typedef enum QSFLogKind {
    QSF_LOG_MESSAGE,   /* role, text; for answers: reasoning, stop, seed, tokens */
    QSF_LOG_PART,      /* text, reasoning: more of an answer that is still being written */
    QSF_LOG_UNDO,      /* n: the last n messages no longer count */
    QSF_LOG_CLEAR,     /* all messages so far no longer count */
    QSF_LOG_SYSTEM,    /* text: the system prompt from here on ("" = none) */
    QSF_LOG_SET,       /* name, text: a setting changed (also in the middle of an answer) */
    QSF_LOG_MODEL      /* text: path of the model from here on */
} QSFLogKind;

typedef struct QSFLogRecord {
    QSFLogKind kind;
    const char *role;     /* "user", "assistant" */
    const char *name;
    const char *text;     /* (len) bytes */
    size_t len;
    const char *reasoning; /* (reasoning_len) bytes that came before the text, as QSF_EVENT_REASONING gives them; or NULL */
    size_t reasoning_len;
    const char *stop;     /* "eos", ... or NULL */
    uint64_t seed;
    uint32_t tokens;
    uint32_t n;
    double time;          /* seconds since 1970; 0 = now when writing */
} QSFLogRecord;

typedef struct QSFChatLog QSFChatLog;

/* NAME must not be empty, hold '/' or control characters or begin with '.'. */
bool qsf_chatlog_name_ok(const char *name);
/* Opens (creating folder and file as needed) for appending and takes a lock, so that a second program on
 * the same conversation is told. NULL with a sentence naming the file in err; errno is EWOULDBLOCK when
 * another program has it. */
QSFChatLog *qsf_chatlog_open(const char *name, char *err, size_t cap);
/* Begins a new conversation. No file NAME appears, and none may exist, before qsf_chatlog_publish; closed
 * without it, or killed, nothing is left behind. NULL with a sentence naming the file in err. */
QSFChatLog *qsf_chatlog_create(const char *name, char *err, size_t cap);
/* Gives a created conversation the name NAME, with all that was appended to it. It is locked from its first
 * moment on. false with a sentence in err; errno is EEXIST when there is one of that name: another one may
 * be tried. */
bool qsf_chatlog_publish(QSFChatLog *l, const char *name, char *err, size_t cap);
/* Writes what could not be written before, if there is space by now. false: the file lacks records. NULL is
 * allowed. */
bool qsf_chatlog_close(QSFChatLog *l);
const char *qsf_chatlog_name(const QSFChatLog *l);
/* Appends one record with one write(), then fdatasync for whole messages. false with a sentence in err
 * (disk full ...): nothing of the record is in the file. It is kept, and written before the next one or
 * with qsf_chatlog_close, so that the file always holds the beginning of the conversation; a PART is not
 * kept, its MESSAGE repeats it. */
bool qsf_chatlog_append(QSFChatLog *l, const QSFLogRecord *r, char *err, size_t cap);
/* Are all records in the file or kept? Not after one that there was no memory for, until a CLEAR. */
bool qsf_chatlog_complete(const QSFChatLog *l);

/* Reads NAME front to back, calling fn for each intact record (pointers valid during the call). PART
 * records that no MESSAGE followed (the program was killed) are given at the end as one assistant MESSAGE
 * with stop "interrupted". *damaged counts skipped lines. false with err when the file cannot be read; a
 * missing file is no record and true. */
bool qsf_chatlog_read(const char *name, void (*fn)(void *arg, const QSFLogRecord *r), void *arg, uint32_t *damaged,
                      char *err, size_t cap);

typedef struct QSFLogInfo {
    char name[128];
    double mtime;         /* seconds since 1970 */
    uint64_t bytes;
} QSFLogInfo;
/* Newest first; malloc'ed array (free()), *n its length; NULL when there is none. */
QSFLogInfo *qsf_chatlog_list(size_t *n);
/* Has another program NAME open (or this one)? */
bool qsf_chatlog_in_use(const char *name);
/* Copies NAME to a new conversation NAME2 (an existing one is refused). */
bool qsf_chatlog_copy(const char *name, const char *name2, char *err, size_t cap);
/* $XDG_STATE_HOME/qsf/history, its folder made; malloc'ed or NULL. */
char *qsf_history_path(void);

#endif
