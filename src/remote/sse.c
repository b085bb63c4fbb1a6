/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/sse.h"

#include <string.h>

#define FIELD_MAX 16u /* bytes of the name of a field: longer ones are not known */

static bool is_data(const QsfSse *s) { return qsf_strbuf_is(&s->field, "data"); }

/* Data of several lines is joined by line feeds. */
static void begin_value(QsfSse *s) {
    const bool data = is_data(s);
    s->state = data ? QSF_SSE_VALUE : QSF_SSE_SKIP;
    s->blank = true;
    if (!data) return;
    if (s->any) qsf_strbuf_addc(&s->data, '\n');
    s->any = true;
}

/* The line has ended; returns whether the event has, too. */
static bool end_line(QsfSse *s) {
    const bool empty = s->line == 0;
    if (!empty && s->state == QSF_SSE_FIELD) begin_value(s); /* a name without a colon */
    s->state = QSF_SSE_FIELD;
    s->line = 0;
    qsf_strbuf_clear(&s->field);
    const bool event = empty && s->any;
    s->ready = event;
    if (event) s->any = false;
    return event;
}

static void add(QsfSse *s, char c) {
    s->line++;
    if (s->state == QSF_SSE_FIELD && c == ':') {
        begin_value(s);
    } else if (s->state == QSF_SSE_FIELD) {
        if (s->field.len == FIELD_MAX)
            s->state = QSF_SSE_SKIP;
        else
            qsf_strbuf_addc(&s->field, c);
    } else {
        if (s->state == QSF_SSE_VALUE && !(s->blank && c == ' ')) qsf_strbuf_addc(&s->data, c);
        s->blank = false;
    }
    s->too_long = s->line > QSF_SSE_MAX || s->data.len > QSF_SSE_MAX;
}

/* A byte order mark at the start of the stream is not part of a line. */
static bool is_mark(QsfSse *s, char c) {
    static const char mark[] = "\xEF\xBB\xBF";
    if (s->start >= 3) return false;
    if (c == mark[s->start]) return s->start++, true;
    if (s->start > 0) add(s, '\xEF'); /* the name of a field that is not known */
    s->start = 3;
    return false;
}

/* The rest of a value at once: most bytes are in one. */
static size_t run(QsfSse *s, const char *bytes, size_t len) {
    size_t n = 0;
    if (s->state != QSF_SSE_VALUE || s->blank) return 0;
    while (n < len && bytes[n] != '\n' && bytes[n] != '\r') n++;
    if (n > QSF_SSE_MAX - s->data.len) {
        s->too_long = true;
        return 0;
    }
    qsf_strbuf_add(&s->data, bytes, n);
    s->line += n;
    return n;
}

static bool one(QsfSse *s, char c) {
    const bool second = s->after_cr && c == '\n';
    s->after_cr = c == '\r';
    if (second || is_mark(s, c)) return false;
    if (c == '\n' || c == '\r') return end_line(s);
    add(s, c);
    return false;
}

size_t qsf_sse_read(QsfSse *s, const char *bytes, size_t len, bool *event) {
    *event = false;
    if (s->ready) qsf_strbuf_clear(&s->data);
    s->ready = false;
    for (size_t i = 0; i < len;) {
        const size_t n = run(s, bytes + i, len - i);
        i += n;
        if (n > 0) s->after_cr = false;
        if (s->too_long || !qsf_strbuf_ok(&s->data)) return i;
        if (i == len) break;
        if (one(s, bytes[i++])) {
            *event = true;
            return i;
        }
        if (s->too_long) return i - 1;
    }
    return len;
}

bool qsf_sse_end(QsfSse *s) {
    if (s->ready) qsf_strbuf_clear(&s->data);
    s->ready = false;
    if (s->line > 0) (void)end_line(s);
    const bool event = s->any;
    s->any = false;
    s->ready = event;
    return event;
}

void qsf_sse_free(QsfSse *s) {
    qsf_strbuf_free(&s->field);
    qsf_strbuf_free(&s->data);
    *s = (QsfSse){ 0 };
}
