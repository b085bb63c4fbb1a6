/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Conversations on disk: append-only JSON Lines in $XDG_DATA_HOME/qsf/sessions/NAME.jsonl. Each record is
 * written when it happens, so that a killed program loses nothing that was shown as finished. Damaged records
 * (a truncated last line, a block of NULs, not JSON) are skipped and counted, but never deleted. Shared by
 * the programs; not installed. One thread. */
#ifndef QSF_CHATLOG_H
#define QSF_CHATLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One event of a conversation. The kind decides which fields of the record are used. */
typedef enum QSFLogKind {
    QSF_LOG_MESSAGE, /* role, text; for answers: name (the model's, as shown), reasoning, exact, stop, seed,
                        tokens */
    QSF_LOG_PART,    /* text, reasoning: more of an answer that is still being written */
    QSF_LOG_UNDO,    /* n: the last n messages were removed */
    QSF_LOG_CLEAR,   /* all messages so far were removed */
    QSF_LOG_SYSTEM,  /* text: the new system prompt ("" = none) */
    QSF_LOG_SET,   /* name, text: a setting changed (also in the middle of an answer), or QSF_LOG_TITLE ... */
    QSF_LOG_MODEL, /* text: path of the new model; name: its name, or NULL */
    QSF_LOG_FORGET /* n: the first n messages left the context; name, text: an exchange that replaced them, a
                      question and a summary, or NULL */
} QSFLogKind;

typedef struct QSFLogRecord {
    QSFLogKind kind;
    const char *role; /* "user", "assistant" */
    const char *name;
    const char *text; /* (len) bytes; when reading, the first ones, at most QSF_LOG_HEAD */
    size_t len;
    const char *reasoning; /* (reasoning_len) bytes before the text, as in QSF_EVENT_REASONING; or NULL. When
                              reading, the first ones, too */
    size_t reasoning_len;
    const char *exact; /* (exact_len) bytes of an answer that was cut, as in QSFMessage; or NULL */
    size_t exact_len;
    const char *ids;  /* of an answer: all its tokens up to here, as text of ASCII that this file does not
                        interpret; or NULL. Not set when reading: as QSF_LOG_IS_IDS of qsf_chatlog_texts */
    const char *stop; /* "eos", ... or NULL */
    uint64_t seed;
    uint32_t tokens;
    bool about; /* tokens are not exact: a server did not count them */
    uint32_t n;
    uint32_t id; /* MESSAGE: its number in the session, 1...; 0 = none (written by an earlier version, or more
                    of an answer). A number that was there before: the same message again, so that the
                    conversation continues from it */
    const char *by;  /* the command that made the change, or NULL; QSF_LOG_BY_* for /undo and /redo */
    const char *was; /* SET: the value before, of a change that can be undone; or NULL */
    bool more;       /* the next record belongs to the same change */
    double time;     /* seconds since 1970; 0 = now when writing */
    /* Set when reading: bytes and newlines of the whole texts, and where the record is, for
     * qsf_chatlog_texts. */
    uint64_t text_bytes, text_lines, reasoning_bytes, reasoning_lines, exact_bytes, ids_bytes;
    uint64_t at;
} QSFLogRecord;

#define QSF_LOG_TITLE    "title"  /* as a setting: the conversation's title, "" = none */
#define QSF_LOG_BRANCH   "branch" /* the same: what follows is a branch of that name, "" = none */
#define QSF_LOG_PERSONA  "role"   /* the same: the role whose settings the conversation took, "" = none */
#define QSF_LOG_BY_UNDO  "undo"   /* QSFLogRecord.by: a change was taken back ... */
#define QSF_LOG_BY_REDO  "redo"   /* ... or made again */
#define QSF_LOG_HEAD     4096u    /* bytes of a text that are read with its record */
#define QSF_LOG_FILE_MAX ((uint64_t)256 << 20) /* maximum size of a file that is read */

typedef struct QSFChatLog QSFChatLog;

/* Checks a session name: it must not be empty, contain '/' or control characters, or begin with '.'. */
bool qsf_chatlog_name_ok(const char *name);
/* Opens a conversation for appending, creating folder and file as needed, and locks it against other
 * programs. NULL with a message naming the file in err; errno is EWOULDBLOCK when another program has locked
 * it. */
QSFChatLog *qsf_chatlog_open(const char *name, char *err, size_t cap);
/* Begins a new conversation. The file NAME must not exist, and appears only with qsf_chatlog_publish. Without
 * it, or when the program is killed, no file is left. NULL with a message naming the file in err. */
QSFChatLog *qsf_chatlog_create(const char *name, char *err, size_t cap);
/* Opens an existing conversation only for qsf_chatlog_texts: without a lock, so that it may be open in
 * another program. NULL with a message naming the file in err, or the session, if there is none. */
QSFChatLog *qsf_chatlog_view(const char *name, char *err, size_t cap);
/* Begins a conversation without a file, which nothing outlives: its records are in memory. For
 * qsf_chatlog_append and for reading their texts; never published. NULL where that is impossible. */
QSFChatLog *qsf_chatlog_scratch(void);
/* Gives a created conversation, with all its records, the name NAME. The file is already locked when it
 * appears. false with a message in err; errno is EEXIST when that name exists: try a different name. */
bool qsf_chatlog_publish(QSFChatLog *l, const char *name, char *err, size_t cap);
/* Retries pending writes and closes the conversation. false: records are missing from the file. NULL is
 * allowed. */
bool qsf_chatlog_close(QSFChatLog *l);
/* Appends one record with one write(), and calls fdatasync for whole messages. false with a message in err
 * (disk full ...): the file contains no part of the record. The record is buffered and written before the
 * next one or by qsf_chatlog_close, so that the file always contains the conversation without gaps. A PART is
 * not buffered, because its MESSAGE repeats it. */
bool qsf_chatlog_append(QSFChatLog *l, const QSFLogRecord *r, char *err, size_t cap);
/* Returns where the last appended record is in the file (QSFLogRecord.at), or will be when it is written. */
uint64_t qsf_chatlog_last(const QSFChatLog *l);
/* With on, whole messages are not synced one by one, until it is called again: when many are
 * written at once. */
void qsf_chatlog_batch(QSFChatLog *l, bool on);
/* What became of the file since the last record. Another program, or the user, may do that at any time. */
typedef enum QSFLogState {
    QSF_LOG_INTACT,
    QSF_LOG_REMOVED,  /* no file has its name: it was removed, renamed, or its folder was */
    QSF_LOG_REPLACED, /* another file has its name */
    QSF_LOG_CUT       /* it is shorter than the text that was written */
} QSFLogState;
/* Looks at the file, for a check before a record is appended. INTACT for one that is not published, and where
 * it cannot be known (no permission to search the folder). */
QSFLogState qsf_chatlog_state(const QSFChatLog *l);
/* Are all records written or buffered? false after a record was lost because memory ran out, until the next
 * CLEAR. */
bool qsf_chatlog_complete(const QSFChatLog *l);

/* Reads NAME and calls fn for each intact record in order (pointers are valid during the call), until it
 * returns false. Takes a fixed amount of memory, about 100 KB of stack: of long texts the beginning is
 * reported. PART records without a MESSAGE (the program was killed) are reported as assistant MESSAGEs with
 * stop "interrupted", which continue one another. *damaged counts skipped lines. false with a message in err
 * when the file cannot be read, or has more than QSF_LOG_FILE_MAX bytes; for a missing file, true without
 * records. */
bool qsf_chatlog_read(const char *name, bool (*fn)(void *arg, const QSFLogRecord *r), void *arg,
                      uint32_t *damaged, char *err, size_t cap);

typedef enum QSFLogPart {
    QSF_LOG_IS_TEXT,
    QSF_LOG_IS_REASONING,
    QSF_LOG_IS_EXACT,
    QSF_LOG_IS_IDS
} QSFLogPart;
/* Passes the texts of the records at bytes at[0..n) of l (QSFLogRecord.at) to put, in pieces of whole
 * characters: one text after the other. false: one cannot be read, or is damaged now; put may have received a
 * part. */
bool qsf_chatlog_texts(const QSFChatLog *l, const uint64_t *at, size_t n,
                       void (*put)(void *arg, QSFLogPart part, const char *s, size_t len), void *arg);

/* Reads the record at byte `at` of l and passes it to fn (pointers are valid during the call), with the
 * beginning of its texts. false: it cannot be read, or is damaged now. Takes about 60 KB of stack. */
bool qsf_chatlog_record(const QSFChatLog *l, uint64_t at, void (*fn)(void *arg, const QSFLogRecord *r),
                        void *arg);

#define QSF_LOG_NAME 128

typedef struct QSFLogInfo {
    char name[QSF_LOG_NAME];
    double mtime; /* seconds since 1970 */
    uint64_t bytes;
    uint64_t snapshot_bytes; /* of its snapshot, 0 = none */
} QSFLogInfo;
/* Lists the conversations, newest first: a malloc'ed array (free() it) of *n entries; NULL when there are
 * none. */
QSFLogInfo *qsf_chatlog_list(size_t *n);
/* Is NAME open in another program, or in this one? */
bool qsf_chatlog_in_use(const char *name);
/* Removes NAME and its snapshot. false with a message in err; errno is EWOULDBLOCK when it is open in another
 * program, or in this one. */
bool qsf_chatlog_delete(const char *name, char *err, size_t cap);
/* Copies NAME to a new conversation NAME2, which must not exist. false with a message in err. */
bool qsf_chatlog_copy(const char *name, const char *name2, char *err, size_t cap);
/* Returns the path of the snapshot of NAME, NAME.qsfsnap beside it, malloc'ed; NULL for a bad name, without a
 * home directory, or when out of memory. */
char *qsf_chatlog_snapshot(const char *name);
/* Removes the snapshots of conversations that were deleted. */
void qsf_chatlog_drop_snapshots(void);
/* Returns $XDG_STATE_HOME/qsf/history, malloc'ed, and creates its folder; NULL on failure. */
char *qsf_history_path(void);

#endif
