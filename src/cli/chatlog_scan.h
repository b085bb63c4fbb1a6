/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A streaming reader of conversation files: one line is one JSON object, and takes the same few kilobytes of
 * memory whether it is short or as long as the file. The members of QSFLogRecord are stored, of long texts
 * the beginning; other members are checked and skipped. Input is untrusted. One thread. */
#ifndef QSF_CLI_CHATLOG_SCAN_H
#define QSF_CLI_CHATLOG_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qsf_chatlog.h"

/* One string of a record: its first bytes, up to a whole character, with a NUL. */
typedef struct QsfLogString {
    char *dst; /* (cap + 1) */
    size_t cap, kept;
    uint64_t bytes, lines; /* of the whole string: bytes of UTF-8, newlines */
    bool present;
} QsfLogString;

/* Receives a whole text in pieces. */
typedef struct QsfLogSink {
    void (*put)(void *arg, QSFLogPart part, const char *s, size_t len);
    void *arg;
} QsfLogSink;

enum {
    QSF_LOG_KEY,
    QSF_LOG_KIND,
    QSF_LOG_ROLE,
    QSF_LOG_STOP,
    QSF_LOG_SEED,
    QSF_LOG_BY,
    QSF_LOG_NAMED,
    QSF_LOG_WAS,
    QSF_LOG_TEXT,
    QSF_LOG_REASONING,
    QSF_LOG_EXACT,
    QSF_LOG_IDS,
    QSF_LOG_STRINGS
};

typedef struct QsfLogScan {
    int fd;
    uint64_t at;   /* place in the file of buf[pos] */
    uint64_t line; /* bytes of this line so far */
    size_t n, pos;
    int why;                /* errno of a failed read, 0 = none */
    const QsfLogSink *sink; /* NULL = none */
    QSFLogPart part;        /* what is being read */
    bool to_sink;           /* it goes to the sink */
    QsfLogString string[QSF_LOG_STRINGS];
    double time;
    int64_t tokens, count, id, more, about;
    char small[160];
    char was[QSF_LOG_HEAD + 1];
    char named[QSF_LOG_HEAD + 1], text[QSF_LOG_HEAD + 1], reasoning[QSF_LOG_HEAD + 1],
        exact[QSF_LOG_HEAD + 1], ids[16];
    char out[4096]; /* (n_out) bytes for the sink */
    size_t n_out;
    unsigned char buf[32768];
} QsfLogScan;

typedef enum QsfLogLine {
    QSF_LOG_LINE_END,    /* of the file, or a failed read: s->why */
    QSF_LOG_LINE_RECORD, /* *r is valid until the next call */
    QSF_LOG_LINE_EMPTY,
    QSF_LOG_LINE_DAMAGED /* not a record, or longer than 64 MiB */
} QsfLogLine;

/* Starts at byte `at` of fd, which stays open and belongs to the caller; its own position is not used. */
void qsf_logscan_init(QsfLogScan *s, int fd, uint64_t at);
/* Continues at byte `at`, which is the beginning of a line. */
void qsf_logscan_seek(QsfLogScan *s, uint64_t at);
/* Reads one line. sink (may be NULL) receives its texts, also of a line that turns out to be damaged. */
QsfLogLine qsf_logscan_line(QsfLogScan *s, const QsfLogSink *sink, QSFLogRecord *r);

#endif
