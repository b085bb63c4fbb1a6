/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf.h: load a model under a RAM budget and generate, synchronously.
 *
 * Threads: call the functions of one engine from one thread at a time; different engines are independent.
 * The functions of a configuration that set its budget and threads may be called from any thread.
 *
 * Errors: a NULL pointer that no comment allows, or a number out of range, is an error (code 2, NULL or -1; a
 * function without a result does nothing), never a crash. qsf_error() says why.
 *
 * Callbacks: while qsf_generate runs, its callback may call qsf_tokenize, qsf_detokenize, qsf_ram_budget,
 * qsf_print_stats and qsf_free on the same engine, everything on other engines and configurations, and
 * qsf_sample. qsf_generate, qsf_forward, qsf_set_grammar and qsf_set_ram_budget on the same engine fail there
 * with code 1 (or NULL) and change nothing. A callback must return: no longjmp, no exception.
 *
 * Pointers that are handed in are borrowed for the call. See qsf_engine.h for the background engine with live
 * parameters, cancellation and events. */
#ifndef QSF_H
#define QSF_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct QSFEngine QSFEngine;
typedef struct QSFConfig QSFConfig;

/* Creates the default configuration; NULL when out of memory. The caller frees it with qsf_config_free. */
QSFConfig *qsf_config_default(void);
/* Sets the RAM budget of the whole process in MB of 2^20 bytes; 0 = auto. Default 200; with the
 * default, qsf_load says once on standard error if a larger budget would keep all weights in RAM. Engines
 * loaded with this configuration follow: they replan their memory between two tokens, or before the next
 * call, and continue with the same tokens, as long as the types of the KV cache fit
 * (qsf_config_set_kv_types). When a budget cannot be met, the old one stays in force, and qsf_ram_budget
 * returns it. Any thread, also while such an engine generates. */
void qsf_config_set_ram_budget(QSFConfig *c, size_t megabytes);
/* Sets the number of compute threads, at most 256; 0 or less = as many as are measured to be the fastest on
 * the CPUs that the process may use. Default 0. Loaded engines follow, as they do for the budget. Any
 * thread. */
void qsf_config_set_threads(QSFConfig *c, int num_threads);
/* Sets the context length in tokens, at most 2^24; 0 or less = min(model, 4096), lowered when the budget
 * requires it. */
void qsf_config_set_max_seq_len(QSFConfig *c, int max_seq_len);
/* Sets how keys and values are stored in the KV cache: "f32", "f16", "q8", "q6", "q4" or "q2"; "auto" or NULL
 * = f16 if it fits the budget, otherwise fewer bits. Default auto. Returns 0; 2 for another word or when c is
 * NULL, and nothing changes. */
int qsf_config_set_kv_types(QSFConfig *c, const char *k, const char *v);
/* Sets the quality, above 0 to 1: about this part of the weights is used for each token that qsf_generate
 * generates; lower is faster and less exact. Default 1: everything is computed, as it always is for prompts
 * and in qsf_forward. Other values change nothing, set qsf_error(), and make qsf_load fail. Engines loaded
 * with this configuration follow with their next token. Any thread. */
void qsf_config_set_quality(QSFConfig *c, float quality);
/* Adds bias to the logit of a token, by its id, in every qsf_generate of engines that are loaded with this
 * configuration afterwards; -INFINITY: it is never chosen; 0 removes the bias. Returns 0; 2 for a negative
 * id, NaN, more than 1e6, a list that is full (1 KiB as text: 40 tokens at least), or when c is NULL. An id
 * outside the vocabulary is an error of qsf_generate. */
int qsf_config_set_logit_bias(QSFConfig *c, int token_id, float bias);
/* Sets what the answer of every qsf_generate has to match, for engines that are loaded with this
 * configuration afterwards. kind: "gbnf", "json-schema", "regex", or "words"; text: the grammar in GBNF, the
 * JSON Schema ("any" = any JSON), the regular expression for the whole answer, or one that each word matches,
 * and after a line feed one for words in between (docs/GRAMMARS.md). NULL for one of them: anything. It is
 * compiled to check it: returns 0; 2 for an unknown kind or a wrong or unsupported grammar (qsf_error() says
 * where), or when c is NULL; 1 without memory. Then the one before stays. */
int qsf_config_set_grammar(QSFConfig *c, const char *kind, const char *text);
/* Frees the configuration; NULL is allowed. Engines loaded with c keep the last values that were set. */
void qsf_config_free(QSFConfig *c);

/* Opens a model; config NULL = defaults. The budget and threads follow config, which may be freed before the
 * engine. Returns NULL on failure: qsf_error() says why. The caller frees the engine with qsf_free. */
QSFEngine *qsf_load(const char *model_path, QSFConfig *config);
/* Frees the engine; NULL is allowed. From a callback of e, the answer ends and the engine is freed when the
 * running qsf_generate returns; a second qsf_free before that does nothing. */
void qsf_free(QSFEngine *e);

/* Sets the budget of one loaded engine immediately. Returns 0; 4 when the budget cannot be met (qsf_error
 * ends with the smallest budget that works now); 1 for other failures (also from a callback of e: use
 * qsf_config_set_ram_budget there); 2 when e is NULL. After a failure the old budget stays in force. */
int qsf_set_ram_budget(QSFEngine *e, size_t megabytes);
/* Returns the budget in force, in MB; 0 when e is NULL. */
size_t qsf_ram_budget(const QSFEngine *e);

/* Sets the quality of one loaded engine, as qsf_config_set_quality does. It acts on the next token: any
 * thread, also from a callback. Raised during an answer, the answer so far is evaluated again. Returns 0; 2
 * when it is out of range or e is NULL. */
int qsf_set_quality(QSFEngine *e, float quality);
/* Returns the quality of the next token; 0 when e is NULL. */
float qsf_quality(const QSFEngine *e);

/* The same for the qsf_generate calls of one loaded engine that follow. 1 also from a callback of e. */
int qsf_set_grammar(QSFEngine *e, const char *kind, const char *text);

/* May change logits (vocab_size), which are finite, before a token is sampled from them: before biases,
 * penalties and filters. What is NaN or -INFINITY afterwards is not chosen; if that is everything,
 * qsf_generate fails with code 1. Runs on the thread that called qsf_generate, under the rules for
 * callbacks. */
typedef void (*QSFLogitsCallback)(float *logits, int vocab_size, void *user_data);
/* Sets it for the qsf_generate calls that follow; NULL removes it. user_data must stay valid as long. Returns
 * 0; 1 from a callback of e, and nothing changes; 2 when e is NULL. */
int qsf_set_logits_callback(QSFEngine *e, QSFLogitsCallback callback, void *user_data);

/* Receives one piece of the answer: a token id, and the text that this token completed (UTF-8, may be ""),
 * valid during the call. The id is -1 for text that was completed by the end of the answer. Runs on the
 * thread that called qsf_generate. */
typedef void (*QSFTokenCallback)(int token_id, const char *text, void *user_data);

/* Continues prompt (plain text, no chat template; special tokens in it are not recognized) for at most
 * max_tokens tokens; 0 computes nothing. temperature 0 = argmax; top_p 1 = off. callback may be NULL. Returns
 * 0, or the exit code of the failure: 1 runtime error (also from a callback of e, when the callback freed e,
 * and when max_tokens was too small for an answer that matches its grammar), 2 bad argument, 5 context full
 * (the text so far was delivered); qsf_error() says why. */
int qsf_generate(QSFEngine *e, const char *prompt, int max_tokens, float temperature, float top_p,
                 QSFTokenCallback callback, void *user_data);

/* Converts text to token ids, with BOS where the vocabulary uses it; special tokens are not recognized.
 * Returns a malloc'ed array of *num_tokens ids (free() it); NULL, and *num_tokens 0, on failure. */
int *qsf_tokenize(QSFEngine *e, const char *text, int *num_tokens);
/* Converts ids to NUL-terminated, malloc'ed text (free() it); special tokens and ids outside the vocabulary
 * are omitted. tokens may be NULL when num_tokens is 0. Returns NULL on failure. */
char *qsf_detokenize(QSFEngine *e, const int *tokens, int num_tokens);
/* Evaluates one or more tokens as a new context (a common prefix with the last call is reused). Returns the
 * logits of the last position, (n_vocab), owned by the engine and valid until the next call; NULL on failure:
 * an id outside the vocabulary, more tokens than the context holds, an I/O error, or a call from a callback
 * of e. */
float *qsf_forward(QSFEngine *e, const int *tokens, int num_tokens);
/* Samples a token id from logits (vocab_size); temperature 0 = argmax, the lowest id on a tie. NaN is never
 * chosen. Uses a random generator of this thread, seeded randomly. Returns -1 when there is nothing to choose
 * from (vocab_size below 1, or every logit NaN or -infinity), when temperature or top_p is out of range, or
 * when out of memory. Any thread. */
int qsf_sample(const float *logits, int vocab_size, float temperature, float top_p);

/* Prints RAM by category, the types of the KV cache, tokens per second and I/O to stderr. */
void qsf_print_stats(QSFEngine *e);

/* Returns why the last call of this thread failed; "" when it succeeded. The free functions and
 * qsf_ram_budget do not change it. Valid until this thread's next call. */
const char *qsf_error(void);

#ifdef __cplusplus
}
#endif

#endif
