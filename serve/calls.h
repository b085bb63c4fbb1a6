/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tool calls in the text of an answer. Models write them in their own ways. These are read: <tool_call> with
 * JSON or with <function=NAME> and <parameter=KEY> (Hermes, Qwen), JSON alone with name and arguments or
 * parameters (Llama, Mistral), and "[tool call to=NAME] {...}", which the engine makes of messages to tools
 * (gpt-oss, Kimi, Solar). Untrusted text; pure functions. */
#ifndef QSF_SERVE_CALLS_H
#define QSF_SERVE_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/strbuf.h"

/* Returns how many bytes of an answer that is still written are certainly before its first call. */
size_t serve_calls_before(const char *text, size_t len);
/* The tools of a request, a JSON array: their schemas say which values of <parameter=KEY> are strings. */
typedef struct ServeCallTools {
    const char *text; /* (len) */
    size_t len;
} ServeCallTools;

/* Reads the calls of a whole answer: appends to out for each a JSON object of an array tool_calls, with ", "
 * after it; indexed: with the member index, as streams have it. *before: bytes of text before the calls. only
 * one: those after the first are left out. Returns their number; 0: the text has no complete call. */
size_t serve_calls_read(const char *text, size_t len, const ServeCallTools *tools, bool only_one,
                        bool indexed, size_t *before, QsfStrbuf *out);

#endif
