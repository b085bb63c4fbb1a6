/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests of an owner, and the prompts that are made of them. */
#ifndef QSF_ENGINE_PROMPT_H
#define QSF_ENGINE_PROMPT_H

#include "src/engine/runtime.h"

/* ---- requests: checked and copied to one block of memory. Any thread ----
 * QSF_REQUEST_BYTES per byte of text are for its copy, the values of the template, the rendered text and its
 * marks. Tokenizing and the ids are charged by themselves. */

typedef struct QsfRequestCopy {
    QsfMsg *messages; /* (n_messages) */
    size_t n_messages;
    const char **stop; /* (n_stop) */
    size_t n_stop;
    size_t text_bytes; /* of all messages */
    uint64_t refused;  /* not 0: the messages were not copied, because their text does not fit in the budget;
                          what their prompt needs (qsf_prompt_need) */
    bool raw;          /* as QSFRequest.raw */
    const char *tools; /* (tools_len) as QSFRequest.tools */
    size_t tools_len;
    const char *call; /* as QSFRequest.call */
    bool one_call;
    bool continue_last;
    uint32_t max_tokens;                  /* 0 = none */
    const char *snapshot, *snapshot_from; /* NULL = none */
    uint64_t snapshot_limit;
    uint64_t held;        /* as QSFRequest.held */
    uint8_t grammar_kind; /* as QSFRequest.grammar_kind */
    const char *grammar;  /* (grammar_len) */
    size_t grammar_len;
    uint32_t branch; /* as QSFRequest.branch */
    int32_t branch_id;
    bool score; /* then continue_last, too */
    const int32_t
        *tokens; /* (n_tokens) as QSFRequest.tokens; 0 = none, of the answer or with raw the prompt */
    size_t n_tokens;
    void (*scored)(void *arg, const QSFToken *token); /* as QSFRequest.scored */
    void *scored_arg;
} QsfRequestCopy;

/* Is r valid? false when r, or an array or string that it needs, is NULL. */
bool qsf_request_ok(const QSFRequest *r);
/* Returns the bytes of text of all messages of a valid request. */
size_t qsf_request_text_bytes(const QSFRequest *r);
/* Copies a valid request; refused (see above) > 0: without its messages. free() it. NULL when out of
 * memory. */
QsfRequestCopy *qsf_request_copy(const QSFRequest *r, uint64_t refused);
/* Returns the flags (QSF_CHAT_*) for rendering it with these parameters. */
unsigned qsf_request_chat_flags(const QsfRequestCopy *r, const QSFParams *p);

/* ---- prompts: made within the RAM budget, and not at all when they certainly do not fit in
 * the context. The thread of the
 * runtime ---- */

/* QSF_E_CONTEXT if even the smallest possible number of tokens of the text exceeds the context and no
 * eviction policy is set; the text is not tokenized. */
int qsf_prompt_check(const QsfRuntime *r, const char *text, size_t len, QsfErr *err);
/* Sets the error of a prompt of n tokens; more: it has more. Returns QSF_E_CONTEXT. */
int qsf_prompt_too_long(const QsfRuntime *r, size_t n, bool more, QsfErr *err);

/* Returns the bytes that a prompt with this message charges, besides the constant ones: for copies of the
 * text and for tokenizing it. A message that is certainly too long for the context is not tokenized. */
uint64_t qsf_prompt_need(const QsfRuntime *r, const char *text, size_t len);
/* Returns the smallest budget in bytes whose plan leaves `need` bytes beside the model. Any thread while the
 * model is open; o: from which its plan was made. */
uint64_t qsf_prompt_budget(const QsfModel *m, const QsfPlanOptions *o, uint64_t need);
/* Appends to a refusal (QSF_E_BUDGET) the smallest budget with which this prompt is made, which charges
 * `need` bytes, and sets r->needed and r->left, the bytes that the ledger has; to no other error.
 * Returns err->code. */
int qsf_prompt_advise(QsfRuntime *r, uint64_t need, QsfErr *err);

/* As qsf_think_encode with the template, unless flags have QSF_CHAT_RAW, and the vocabulary of r. ids, which
 * must be empty, and all memory for making them are charged to the ledger. Also QSF_E_BUDGET, whose message
 * ends with the smallest budget that works, and QSF_E_CONTEXT for a newest message that does not fit in the
 * context. */
int qsf_prompt_encode(QsfRuntime *r, const QsfMsg *msgs, size_t n, unsigned flags, QsfIds *ids,
                      QsfThinkPrompt *where, QsfErr *err);

/* Is its prompt given by its tokens? */
bool qsf_prompt_has_ids(const QsfRequestCopy *q);
/* Copies that prompt to ids, which must be empty and are charged to their ledger, if they have one. Also
 * QSF_E_USAGE for an id outside the vocabulary, QSF_E_CONTEXT and QSF_E_BUDGET. */
int qsf_prompt_take_ids(const QsfRuntime *r, const QsfRequestCopy *q, QsfIds *ids, QsfThinkPrompt *where,
                        QsfErr *err);
/* The prompt of a request, of either kind, charged to the ledger of ids alone; flags: qsf_request_chat_flags.
 * Errors are those of qsf_prompt_take_ids and qsf_think_encode. */
int qsf_request_encode(const QsfRuntime *r, const QsfRequestCopy *q, unsigned flags, QsfIds *ids,
                       QsfThinkPrompt *where, QsfErr *err);
/* Are these (n) in the vocabulary? Otherwise QSF_E_USAGE. */
int qsf_prompt_check_ids(const QsfRuntime *r, const int32_t *ids, size_t n, QsfErr *err);

/* Returns n: ids[0..n) of the prompt of these messages, which have a ledger, do not depend on the text of the
 * user. 0 without a system message or tools, without a template, without memory, and where nothing needs it:
 * a policy that protects it, or states to be kept. Renders the first messages again, with another text of the
 * user. */
uint32_t qsf_system_tokens(const QsfRuntime *r, const QsfMsg *msgs, size_t n, unsigned flags,
                           const QsfIds *ids);

#endif
