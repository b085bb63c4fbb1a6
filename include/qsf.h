/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf.h: load a model under a RAM budget and generate, synchronously.
 *
 * Every function of an engine must be called from one thread at a time; different engines are
 * independent. Pointers that are handed in are borrowed for the call. See qsf_engine.h for the
 * background engine with live parameters, cancellation and events. */
#ifndef QSF_H
#define QSF_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct QSFEngine QSFEngine;
typedef struct QSFConfig QSFConfig;

/* Default configuration, or NULL without memory. The caller frees it. */
QSFConfig *qsf_config_default(void);
/* Whole-process budget in MB of 2^20 bytes; 0 = auto. Default 200. Engines that were loaded with this
 * configuration follow: they plan their memory anew between two tokens, or before the next call, and go on with
 * the same tokens; a budget that cannot be met leaves the old one in force, and qsf_ram_budget says which. This
 * and the next function may be called from any thread while such an engine generates. */
void qsf_config_set_ram_budget(QSFConfig *c, size_t megabytes);
/* Compute threads; 0 or less = one per CPU. Default 0. Followed like the budget. */
void qsf_config_set_threads(QSFConfig *c, int num_threads);
/* Context length in tokens; 0 or less = min(model, 4096), lowered when the budget asks for it. */
void qsf_config_set_max_seq_len(QSFConfig *c, int max_seq_len);
/* 1.0 = full quality, the only value there is yet: any other makes qsf_load fail (qsf_error says so). */
void qsf_config_set_quality(QSFConfig *c, float quality);
/* NULL allowed; engines that follow it live on with what was set last. */
void qsf_config_free(QSFConfig *c);

/* Opens a model; config NULL = defaults. Budget and threads stay tied to config. NULL on failure: qsf_error() says why. */
QSFEngine *qsf_load(const char *model_path, QSFConfig *config);
void qsf_free(QSFEngine *e); /* NULL allowed */

/* Sets the budget of one loaded engine at once; not from within a callback. 0, or 4 when it cannot be met (qsf_error
 * ends with the smallest that works now) or 1: then the old budget stays in force. */
int qsf_set_ram_budget(QSFEngine *e, size_t megabytes);
/* The budget in force, in MB. */
size_t qsf_ram_budget(const QSFEngine *e);

/* One piece of the answer: the id, and the text that became complete with it (UTF-8, may be ""),
 * valid during the call. */
typedef void (*QSFTokenCallback)(int token_id, const char *text, void *user_data);

/* Continues prompt (plain text, no chat template; special tokens in it are not recognised) for at
 * most max_tokens tokens. temperature 0 = argmax; top_p 1 = off. callback may be NULL.
 * Returns 0, or the exit-code number of the failure: 1 runtime, 2 bad argument, 5 context full
 * (what exists was delivered); qsf_error() says why. */
int qsf_generate(QSFEngine *e, const char *prompt, int max_tokens, float temperature, float top_p,
                 QSFTokenCallback callback, void *user_data);

/* Token ids of text with BOS where the vocabulary wants it; special tokens are not recognised.
 * malloc'ed (free() it), *num_tokens its length; NULL on failure. */
int *qsf_tokenize(QSFEngine *e, const char *text, int *num_tokens);
/* Text of ids, NUL-terminated, malloc'ed; special tokens give nothing. NULL on failure. */
char *qsf_detokenize(QSFEngine *e, const int *tokens, int num_tokens);
/* Evaluates tokens as a new context (a common prefix with the last call is reused). Returns the logits
 * of the last position, (n_vocab), owned by the engine, valid until the next call; NULL on failure. */
float *qsf_forward(QSFEngine *e, const int *tokens, int num_tokens);
/* Draws from logits; temperature 0 = argmax, the lowest id on a tie. Uses a generator of this thread,
 * seeded randomly. -1 when vocab_size < 1. */
int qsf_sample(const float *logits, int vocab_size, float temperature, float top_p);

/* RAM by category, tokens per second and I/O to stderr. */
void qsf_print_stats(QSFEngine *e);

/* Why the last call of this thread failed; "" when it did not. Valid until this thread's next call. */
const char *qsf_error(void);

#ifdef __cplusplus
}
#endif

#endif
