/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A vocabulary with special tokens and a chat template, and what they say about the output of a model. */
#ifndef QSF_TEST_THINK_RIG_H
#define QSF_TEST_THINK_RIG_H

#include "src/chat/think.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/tiny_vocab.h"

typedef struct QsfThinkRig {
    QsfTestVocab v;
    QsfLedger ledger;
    QsfSource *src;
    QsfTokenizer *tok;
    QsfChatTemplate *tmpl;
    QsfThink think;
} QsfThinkRig;

/* Byte-level BPE with these tokens (NULL-terminated), control tokens but for those after '~'.
 * template NULL: none. */
static inline void qsf_think_rig_open(QsfThinkRig *r, const char *template, const char *const *tokens) {
    QsfErr e = { 0 };
    memset(r, 0, sizeof *r);
    qsf_ledger_init(&r->ledger, 0);
    qsf_tv_bpe(&r->v);
    for (; *tokens != NULL; tokens++)
        qsf_tv_add(&r->v, *tokens + (**tokens == '~'), 0,
                   **tokens == '~' ? QSF_TOKEN_USER : QSF_TOKEN_CONTROL);
    if (template != NULL) qsf_gb_str(&r->v.gb, "tokenizer.chat_template", template);
    r->src = qsf_tv_source(&r->v, "gpt2", &r->ledger, &e);
    assert_non_null(r->src);
    qsf_test_expect_ok(qsf_tokenizer_open(&r->tok, r->src, &r->ledger, &e), &e);
    qsf_test_expect_ok(qsf_chat_template_open(&r->tmpl, r->src, r->tok, NULL, NULL, 0, &e), &e);
    qsf_think_detect(&r->think, r->tok, template, template != NULL ? strlen(template) : 0);
}

static inline void qsf_think_rig_close(QsfThinkRig *r) {
    qsf_chat_template_close(r->tmpl);
    qsf_tokenizer_close(r->tok);
    qsf_source_close(r->src);
    qsf_tv_free(&r->v);
    qsf_ledger_destroy(&r->ledger);
}

#endif
