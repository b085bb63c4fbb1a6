/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A streaming reader of conversation files: implements chatlog_scan.h. */
#include "src/cli/chatlog_scan.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "src/base/ascii.h"
#include "src/base/jsonscan.h"
#include "src/base/utf8.h"
#include "src/cli/chatlog_path.h"

#define LINE_MAX_BYTES ((uint64_t)64 << 20) /* a longer line is damage, not a message */
#define MAX_DEPTH      100
#define NUMBER_MAX     64 /* characters of a number that are read; more digits change nothing */

/* ---- bytes ---- */

void qsf_logscan_init(QsfLogScan *s, int fd, uint64_t at) {
    s->fd = fd;
    s->at = at;
    s->n = s->pos = 0;
    s->why = 0;
    s->n_out = 0;
}

/* The buffer is kept if it has the place. */
void qsf_logscan_seek(QsfLogScan *s, uint64_t at) {
    if (at < s->at || at - s->at > s->n - s->pos)
        s->n = s->pos = 0;
    else
        s->pos += (size_t)(at - s->at);
    s->at = at;
}

static bool fill(QsfLogScan *s) {
    ssize_t n;
    if (s->why != 0) return false;
    do n = pread(s->fd, s->buf, sizeof s->buf, (off_t)s->at);
    while (n < 0 && errno == EINTR);
    if (n < 0) s->why = errno;
    s->pos = 0;
    s->n = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* The next byte of the line, -1 at its end. Does not consume it. */
static int peek(QsfLogScan *s) {
    if (s->line > LINE_MAX_BYTES || (s->pos == s->n && !fill(s))) return -1;
    return s->buf[s->pos] == '\n' ? -1 : s->buf[s->pos];
}

static void skip(QsfLogScan *s, size_t n) {
    s->pos += n;
    s->at += n;
    s->line += n;
}

static int next(QsfLogScan *s) {
    const int c = peek(s);
    if (c >= 0) skip(s, 1);
    return c;
}

/* Skips the rest of the line, newline included. */
static void skip_line(QsfLogScan *s) {
    while (s->pos < s->n || fill(s)) {
        const unsigned char *nl = memchr(s->buf + s->pos, '\n', s->n - s->pos);
        skip(s, nl != NULL ? (size_t)(nl - (s->buf + s->pos)) + 1 : s->n - s->pos);
        if (nl != NULL) return;
    }
}

static int peek_token(QsfLogScan *s) {
    int c;
    while ((c = peek(s)) == ' ' || c == '\t' || c == '\r') skip(s, 1);
    return c;
}

static bool take(QsfLogScan *s, char c) {
    const bool found = peek_token(s) == c;
    if (found) skip(s, 1);
    return found;
}

/* ---- strings; d NULL: checked only ---- */

static void flush(QsfLogScan *s) {
    if (s->n_out > 0) s->sink->put(s->sink->arg, s->part, s->out, s->n_out);
    s->n_out = 0;
}

/* A text of escapes would arrive one character at a time. */
static void pass_on(QsfLogScan *s, const char *bytes, size_t n) {
    if (n > sizeof s->out - s->n_out) flush(s);
    if (n > sizeof s->out) {
        s->sink->put(s->sink->arg, s->part, bytes, n);
        return;
    }
    memcpy(s->out + s->n_out, bytes, n);
    s->n_out += n;
}

/* ascii: it can be cut anywhere. */
static void emit(QsfLogScan *s, QsfLogString *d, const char *bytes, size_t n, bool ascii) {
    if (d == NULL) return;
    if (s->to_sink && n > 0) pass_on(s, bytes, n);
    const bool whole = d->bytes == d->kept;
    d->bytes += n;
    size_t left = whole ? d->cap - d->kept : 0;
    if (n > left) n = ascii ? left : 0;
    memcpy(d->dst + d->kept, bytes, n);
    d->kept += n;
    d->dst[d->kept] = '\0';
}

static void emit_code(QsfLogScan *s, QsfLogString *d, uint32_t cp) {
    char utf8[4];
    const size_t n = qsf_utf8_put(cp, utf8);
    if (d != NULL && cp == '\n') d->lines++;
    emit(s, d, utf8, n, false);
}

static bool hex4(QsfLogScan *s, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const int c = next(s), digit = c > 0 ? qsf_hex_digit((char)c) : -1;
        if (digit < 0) return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

static bool unicode_escape(QsfLogScan *s, QsfLogString *d) {
    uint32_t hi, lo;
    if (!hex4(s, &hi) || (hi >= 0xDC00 && hi <= 0xDFFF)) return false;
    if (hi >= 0xD800 && hi <= 0xDBFF) {
        if (next(s) != '\\' || next(s) != 'u' || !hex4(s, &lo) || lo < 0xDC00 || lo > 0xDFFF) return false;
        hi = 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
    }
    emit_code(s, d, hi);
    return true;
}

static bool escape(QsfLogScan *s, QsfLogString *d) {
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const int c = next(s);
    if (c == 'u') return unicode_escape(s, d);
    const char *p = c > 0 ? strchr(letters, c) : NULL;
    if (p == NULL) return false;
    emit_code(s, d, (unsigned char)values[p - letters]);
    return true;
}

/* One character of several bytes, which may lie across the end of the buffer. */
static bool character(QsfLogScan *s, QsfLogString *d) {
    char utf8[4];
    size_t n = 0;
    uint32_t cp;
    do {
        const int c = next(s);
        if (c < 0) return false;
        utf8[n++] = (char)c;
    } while (n < 4 && qsf_utf8_incomplete_tail(utf8, n) == n);
    if (qsf_utf8_next(utf8, n, &cp) != n || cp == 0xFFFFFFFFu) return false;
    emit(s, d, utf8, n, false);
    return true;
}

/* Literal ASCII, as far as it is in the buffer. */
static size_t plain_run(const QsfLogScan *s) {
    size_t i = s->pos;
    while (i < s->n && s->buf[i] >= 0x20 && s->buf[i] < 0x80 && s->buf[i] != '"' && s->buf[i] != '\\') i++;
    return i - s->pos;
}

static bool read_string(QsfLogScan *s, QsfLogString *d) {
    bool ok = take(s, '"');
    while (ok) {
        const int c = peek(s);
        const size_t run = c >= 0 ? plain_run(s) : 0;
        if (run > 0) {
            emit(s, d, (const char *)s->buf + s->pos, run, true);
            skip(s, run);
        } else if (c == '"') {
            skip(s, 1);
            return true;
        } else if (c == '\\') {
            skip(s, 1);
            ok = escape(s, d);
        } else {
            ok = c >= 0x80 && character(s, d); /* no unescaped control character */
        }
    }
    return false;
}

/* ---- other values ---- */

static bool read_number(QsfLogScan *s, double *out) {
    char text[NUMBER_MAX];
    size_t n = 0;
    QsfJsonScan js;
    QsfErr e = { 0 };
    for (int c; (c = peek(s)) > 0 && strchr("+-.0123456789eE", c) != NULL; skip(s, 1)) {
        if (n < sizeof text) text[n++] = (char)c;
    }
    const size_t first = n > 0 && text[0] == '-' ? 1 : 0;
    if (n > first + 1 && text[first] == '0' && text[first + 1] >= '0' && text[first + 1] <= '9') return false;
    qsf_jscan_init(&js, text, n);
    return qsf_jscan_number(&js, out, &e) == QSF_OK && (js.at == n || n == sizeof text);
}

static bool word(QsfLogScan *s, const char *text) {
    while (*text != '\0' && next(s) == *text) text++;
    return *text == '\0';
}

static bool skip_value(QsfLogScan *s, unsigned depth);

static bool skip_list(QsfLogScan *s, char close, unsigned depth) {
    skip(s, 1);
    if (take(s, close)) return true;
    do {
        if (close == '}' && !(read_string(s, NULL) && take(s, ':'))) return false;
        if (!skip_value(s, depth)) return false;
    } while (take(s, ','));
    return take(s, close);
}

static bool skip_value(QsfLogScan *s, unsigned depth) {
    double v;
    const int c = peek_token(s);
    if (depth > MAX_DEPTH) return false;
    switch (c) {
    case '"': return read_string(s, NULL);
    case '[': return skip_list(s, ']', depth + 1);
    case '{': return skip_list(s, '}', depth + 1);
    case 't': return word(s, "true");
    case 'f': return word(s, "false");
    case 'n': return word(s, "null");
    default: return read_number(s, &v);
    }
}

/* ---- a record ---- */

static const struct {
    const char *key;
    int string; /* QSF_LOG_KEY: a number */
} members[] = {
    { "kind", QSF_LOG_KIND },   { "role", QSF_LOG_ROLE }, { "name", QSF_LOG_NAMED },
    { "text", QSF_LOG_TEXT },   { "stop", QSF_LOG_STOP }, { "reasoning", QSF_LOG_REASONING },
    { "exact", QSF_LOG_EXACT }, { "seed", QSF_LOG_SEED }, { "time", QSF_LOG_KEY },
    { "tokens", QSF_LOG_KEY },  { "n", QSF_LOG_KEY },     { "id", QSF_LOG_KEY },
    { "more", QSF_LOG_KEY },    { "by", QSF_LOG_BY },     { "was", QSF_LOG_WAS },
    { "ids", QSF_LOG_IDS },     { "about", QSF_LOG_KEY },
};

static void clear_string(QsfLogString *d) {
    d->kept = 0;
    d->bytes = d->lines = 0;
    d->dst[0] = '\0';
    d->present = false;
}

static void clear_record(QsfLogScan *s) {
    static const size_t caps[] = { [QSF_LOG_KEY] = 15,  [QSF_LOG_KIND] = 15, [QSF_LOG_ROLE] = 31,
                                   [QSF_LOG_STOP] = 31, [QSF_LOG_SEED] = 31, [QSF_LOG_BY] = 15 };
    char *at = s->small;
    for (int i = 0; i < QSF_LOG_NAMED; i++) {
        s->string[i] = (QsfLogString){ .dst = at, .cap = caps[i] };
        at += caps[i] + 1;
    }
    s->string[QSF_LOG_NAMED] = (QsfLogString){ .dst = s->named, .cap = QSF_LOG_HEAD };
    s->string[QSF_LOG_WAS] = (QsfLogString){ .dst = s->was, .cap = sizeof s->was - 1 };
    s->string[QSF_LOG_TEXT] = (QsfLogString){ .dst = s->text, .cap = QSF_LOG_HEAD };
    s->string[QSF_LOG_REASONING] = (QsfLogString){ .dst = s->reasoning, .cap = QSF_LOG_HEAD };
    s->string[QSF_LOG_EXACT] = (QsfLogString){ .dst = s->exact, .cap = QSF_LOG_HEAD };
    s->string[QSF_LOG_IDS] = (QsfLogString){ .dst = s->ids, .cap = sizeof s->ids - 1 };
    for (int i = 0; i < QSF_LOG_STRINGS; i++) clear_string(&s->string[i]);
    s->time = 0;
    s->tokens = s->count = s->id = s->more = s->about = 0;
}

static bool read_text(QsfLogScan *s, int which) {
    QsfLogString *d = &s->string[which];
    clear_string(d); /* the last one of equal members counts */
    if (peek_token(s) != '"') return skip_value(s, 1);
    s->part = which == QSF_LOG_REASONING ? QSF_LOG_IS_REASONING
              : which == QSF_LOG_EXACT   ? QSF_LOG_IS_EXACT
              : which == QSF_LOG_IDS     ? QSF_LOG_IS_IDS
                                         : QSF_LOG_IS_TEXT;
    s->to_sink = s->sink != NULL && which >= QSF_LOG_TEXT;
    d->present = read_string(s, d);
    if (s->to_sink) flush(s);
    s->to_sink = false;
    return d->present;
}

static int64_t integer(double v) { return v > -9e15 && v < 9e15 && v == floor(v) ? (int64_t)v : 0; }

/* The last one of equal members counts; another type is as if absent. */
static bool read_count(QsfLogScan *s, const char *key) {
    double v = 0;
    const int c = peek_token(s);
    bool ok = c == '-' || (c >= '0' && c <= '9') ? read_number(s, &v) : skip_value(s, 1);
    switch (key[0]) {
    case 'n': s->count = integer(v); break;
    case 'i': s->id = integer(v); break;
    case 'm': s->more = integer(v); break;
    case 'a': s->about = integer(v); break;
    default:
        if (key[1] == 'o')
            s->tokens = integer(v);
        else
            s->time = v;
    }
    return ok;
}

static bool member(QsfLogScan *s) {
    QsfLogString *key = &s->string[QSF_LOG_KEY];
    clear_string(key);
    if (!read_string(s, key) || !take(s, ':')) return false;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (key->bytes != strlen(members[i].key) || memcmp(key->dst, members[i].key, key->kept) != 0)
            continue;
        return members[i].string == QSF_LOG_KEY ? read_count(s, members[i].key)
                                                : read_text(s, members[i].string);
    }
    return skip_value(s, 1);
}

static bool read_object(QsfLogScan *s) {
    if (!take(s, '{')) return false;
    if (!take(s, '}')) {
        do {
            if (!member(s)) return false;
        } while (take(s, ','));
        if (!take(s, '}')) return false;
    }
    return peek_token(s) < 0 && s->line <= LINE_MAX_BYTES;
}

static const char *string_of(const QsfLogScan *s, int which, size_t *len) {
    const QsfLogString *d = &s->string[which];
    if (len != NULL) *len = d->kept;
    return d->present ? d->dst : NULL;
}

static uint32_t count_of(int64_t n) { return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n; }

static uint64_t seed_of(const char *text) {
    QsfJsonScan js;
    QsfErr e = { 0 };
    uint64_t seed = 0;
    if (text == NULL) return 0;
    qsf_jscan_init(&js, text, strlen(text));
    return qsf_jscan_u64(&js, &seed, &e) == QSF_OK ? seed : 0;
}

/* Fills r; false when it is not a valid record. */
static bool record_of(const QsfLogScan *s, QSFLogRecord *r) {
    const char *kind = string_of(s, QSF_LOG_KIND, NULL);
    int k = 0;
    if (kind == NULL) return false;
    while (k <= QSF_LOG_FORGET && strcmp(kind, qsf_chatlog_kind_name((QSFLogKind)k)) != 0) k++;
    if (k > QSF_LOG_FORGET) return false;
    r->kind = (QSFLogKind)k;
    r->role = string_of(s, QSF_LOG_ROLE, NULL);
    r->name = string_of(s, QSF_LOG_NAMED, NULL);
    r->text = string_of(s, QSF_LOG_TEXT, &r->len);
    r->text_bytes = s->string[QSF_LOG_TEXT].bytes;
    r->text_lines = s->string[QSF_LOG_TEXT].lines;
    r->reasoning = string_of(s, QSF_LOG_REASONING, &r->reasoning_len);
    r->reasoning_bytes = s->string[QSF_LOG_REASONING].bytes;
    r->reasoning_lines = s->string[QSF_LOG_REASONING].lines;
    r->exact = string_of(s, QSF_LOG_EXACT, &r->exact_len);
    r->exact_bytes = s->string[QSF_LOG_EXACT].bytes;
    r->ids_bytes = s->string[QSF_LOG_IDS].bytes;
    r->stop = string_of(s, QSF_LOG_STOP, NULL);
    r->seed = seed_of(string_of(s, QSF_LOG_SEED, NULL));
    r->tokens = count_of(s->tokens);
    r->n = count_of(s->count);
    r->id = k == QSF_LOG_MESSAGE ? count_of(s->id) : 0;
    r->more = s->more == 1;
    r->about = s->about == 1;
    r->by = string_of(s, QSF_LOG_BY, NULL);
    r->was = s->string[QSF_LOG_WAS].bytes < sizeof s->was ? string_of(s, QSF_LOG_WAS, NULL) : NULL;
    r->time = s->time;
    const bool needs_text = k == QSF_LOG_MESSAGE || k == QSF_LOG_PART || k == QSF_LOG_SYSTEM;
    if (needs_text && r->text == NULL) return false;
    return k != QSF_LOG_MESSAGE || (r->role != NULL && *r->role != '\0');
}

QsfLogLine qsf_logscan_line(QsfLogScan *s, const QsfLogSink *sink, QSFLogRecord *r) {
    *r = (QSFLogRecord){ .at = s->at };
    s->line = 0;
    s->sink = sink;
    s->to_sink = false;
    s->n_out = 0;
    if (s->pos == s->n && !fill(s)) return QSF_LOG_LINE_END;
    if (s->at == 0) skip(s, qsf_utf8_bom((const char *)s->buf, s->n));
    if (peek(s) < 0) {
        skip_line(s);
        return QSF_LOG_LINE_EMPTY;
    }
    clear_record(s);
    bool ok = read_object(s) && record_of(s, r);
    skip_line(s);
    if (s->why != 0) return QSF_LOG_LINE_END;
    return ok ? QSF_LOG_LINE_RECORD : QSF_LOG_LINE_DAMAGED;
}
