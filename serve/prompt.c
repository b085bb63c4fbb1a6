/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The prompt of /v1/completions: a text or token ids. Implements a part of reader.h. */
#include <stdlib.h>
#include <string.h>

#include "serve/reader.h"

static bool no_memory(ServeReader *rd) {
    return serve_error_set(rd->error, 500, NULL, NULL, "out of memory");
}

static bool read_text(ServeReader *rd) {
    ServeSlice s;
    if (!serve_reader_string(rd, &s)) return false;
    return serve_request_set_prompt(rd->r, s.text, s.len) || no_memory(rd);
}

/* As many ids as an array of numbers has at most. */
static size_t most_ids(const ServeSlice *json) {
    size_t n = 1;
    for (size_t i = 0; i < json->len; i++) n += json->text[i] == ',';
    return n;
}

/* [ID, ...]. The JSON is kept, too: conversations are compared by it (slots.h). */
static bool read_ids(ServeReader *rd) {
    ServeRequest *r = rd->r;
    const QsfJsonScan begin = rd->scan;
    bool first = true, more = true;
    ServeSlice json;
    if (!serve_reader_raw(rd, &json)) return false;
    rd->scan = begin;
    const size_t most = most_ids(&json);
    if (!serve_request_set_prompt(r, json.text, json.len)) return no_memory(rd);
    r->ids = malloc(most * sizeof *r->ids);
    if (r->ids == NULL) return no_memory(rd);
    if (!serve_reader_enter(rd, '[')) return false;
    while (serve_reader_next(rd, '[', &first, &more) && more) {
        uint32_t id;
        if (!serve_reader_is(rd, '0')) return serve_reader_fail(rd, "token ids are numbers");
        if (!serve_reader_count(rd, 0, INT32_MAX, &id)) return false;
        if (r->n_ids < most) r->ids[r->n_ids++] = (int32_t)id;
    }
    return rd->error->status == 0;
}

/* What an array begins with tells what it is: ids, or texts and arrays of ids. */
bool serve_prompt_read(ServeReader *rd) {
    const QsfJsonScan begin = rd->scan;
    bool first = true, more = true;
    if (!serve_reader_is(rd, '[')) {
        if (serve_reader_is(rd, '"')) return read_text(rd);
        return serve_reader_fail(rd, "expected a string, token ids, or an array with one of both");
    }
    if (!serve_reader_enter(rd, '[') || !serve_reader_next(rd, '[', &first, &more)) return false;
    if (!more) return serve_reader_fail(rd, "the prompt is empty");
    if (serve_reader_is(rd, '0')) {
        rd->scan = begin;
        return read_ids(rd);
    }
    if (serve_reader_is(rd, '[')) {
        const QsfJsonScan inner = rd->scan;
        bool one = true, any = true;
        if (!serve_reader_enter(rd, '[') || !serve_reader_next(rd, '[', &one, &any)) return false;
        if (!any) return serve_reader_fail(rd, "the prompt is empty");
        rd->scan = inner;
        if (!read_ids(rd)) return false;
    } else if (!serve_reader_is(rd, '"')) {
        return serve_reader_fail(rd, "expected a string, token ids, or an array with one of both");
    } else if (!read_text(rd)) {
        return false;
    }
    if (!serve_reader_next(rd, '[', &first, &more)) return false;
    return !more || serve_reader_fail(rd, "only one prompt at a time is supported");
}
