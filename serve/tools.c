/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fields about tools: implements a part of reader.h. */
#include <string.h>

#include "serve/reader.h"

bool serve_tools_read(ServeReader *rd) {
    ServeSlice s;
    if (!serve_reader_is(rd, '[')) return serve_reader_fail(rd, "expected an array");
    if (!serve_reader_raw(rd, &s)) return false;
    const bool empty = s.len == 2 + strspn(s.text + 1, " \t\r\n");
    rd->r->tools = empty ? NULL : s.text;
    rd->r->tools_len = empty ? 0 : s.len;
    return true;
}

/* {"type": "function", "function": {"name": ...}} */
static bool read_named_tool(ServeReader *rd) {
    bool first = true, more = true, in = true, any = true;
    ServeSlice type = { 0 }, name = { 0 };
    if (!serve_reader_enter(rd, '{')) return false;
    while (serve_reader_next(rd, '{', &first, &more) && more) {
        if (strcmp(qsf_strbuf_str(&rd->key), "type") == 0) {
            if (!serve_reader_string(rd, &type)) return false;
        } else if (strcmp(qsf_strbuf_str(&rd->key), "function") == 0) {
            if (!serve_reader_enter(rd, '{')) return false;
            while (serve_reader_next(rd, '{', &in, &any) && any)
                if (strcmp(qsf_strbuf_str(&rd->key), "name") != 0 || !serve_reader_string(rd, &name))
                    return serve_reader_fail(rd, "function has one member, name, which is a string");
        } else {
            return serve_reader_fail(rd, "the member \"%.40s\" is not supported", qsf_strbuf_str(&rd->key));
        }
    }
    if (rd->error->status != 0) return false;
    if (type.text == NULL || !serve_slice_is(&type, "function"))
        return serve_reader_fail(rd, "only the type function is supported");
    if (name.text == NULL || name.len == 0 || memchr(name.text, 0, name.len) != NULL)
        return serve_reader_fail(rd, "the name of a function is expected");
    rd->r->call = name.text;
    return rd->r->one_call = true;
}

bool serve_tool_choice_read(ServeReader *rd) {
    ServeSlice s = { 0 };
    if (serve_reader_is(rd, '{')) return read_named_tool(rd);
    if (serve_reader_is(rd, '"') && !serve_reader_string(rd, &s)) return false;
    if (serve_slice_is(&s, "auto")) return true;
    if (serve_slice_is(&s, "none")) return rd->r->no_tools = true;
    if (serve_slice_is(&s, "required")) return (rd->r->call = "") != NULL;
    return serve_reader_fail(rd, "expected none, auto, required, or an object with the name of a function");
}
