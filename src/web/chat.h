/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What web/worker.js calls. All of it in the owner's thread. Texts that are passed are borrowed for the call;
 * texts that are returned belong to this file and are valid until the next call. A function that can fail
 * returns a sentence, or "" if it did not. */
#ifndef QSF_WEB_CHAT_H
#define QSF_WEB_CHAT_H

#include <emscripten.h>

/* Starts the engine, without a model. limit: bytes that the linear memory can have, which is the RAM budget.
 * To be called once, before all others. */
EMSCRIPTEN_KEEPALIVE const char *qsf_web_start(double limit);
EMSCRIPTEN_KEEPALIVE const char *qsf_web_version(void);

/* Adds a file of `size` bytes and returns the number that the page will be asked to read it by; -1 if there
 * are too many, or out of memory. */
EMSCRIPTEN_KEEPALIVE int qsf_web_add_file(const char *name, double size);
/* Begins to load the model whose first file has this name; an event says how it ended. */
EMSCRIPTEN_KEEPALIVE const char *qsf_web_load(const char *name);

/* Sets a row of the settings (qsf_settings.h). Those of sampling and quality take effect with the next token,
 * the others with the next model. */
EMSCRIPTEN_KEEPALIVE const char *qsf_web_set(const char *name, const char *value);
/* Returns {name, value, help, min, max, step}; "" if there is no such setting. */
EMSCRIPTEN_KEEPALIVE const char *qsf_web_setting(const char *name);

/* A request: begin, its messages, submit. reasoning is that of an answer, or "". */
EMSCRIPTEN_KEEPALIVE void qsf_web_begin(void);
EMSCRIPTEN_KEEPALIVE const char *qsf_web_message(const char *role, const char *content,
                                                 const char *reasoning);
EMSCRIPTEN_KEEPALIVE const char *qsf_web_submit(void);
/* Stops the running request, if any. */
EMSCRIPTEN_KEEPALIVE void qsf_web_cancel(void);

/* Returns the next event, {type, ...} as QSFEvent; "" when there is none. */
EMSCRIPTEN_KEEPALIVE const char *qsf_web_next(void);
/* Returns what the page shows of QSFStats. */
EMSCRIPTEN_KEEPALIVE const char *qsf_web_stats(void);
/* Returns {ids}: the tokens of the last answer. */
EMSCRIPTEN_KEEPALIVE const char *qsf_web_tokens(void);

#endif
