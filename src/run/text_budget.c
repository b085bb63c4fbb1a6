/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The smallest budget with which a text that was too long can be read, and tokenized. */
#include "src/engine/prompt.h"
#include "src/run/run.h"
#include "src/token/tokenizer.h"

/* A prompt that cannot fit the context is refused without being tokenized. */
static bool is_tokenized(const QsfRuntime *rt, const RunOptions *o, size_t bytes) {
    return o->mode != RUN_GENERATE || rt->plan_options.kv_lists ||
           qsf_tokenizer_least(rt->tok, NULL, bytes) <= rt->plan.ctx;
}

uint64_t run_text_budget(const RunOptions *o, size_t bytes, size_t longest_word) {
    QsfRuntime rt;
    QsfErr none = { 0 };
    QsfRuntimeOptions ro = run_runtime_options(o);
    ro.plan_only = true;
    ro.learn = ro.may_draft = ro.predict = false;
    if (o->model == NULL || qsf_runtime_open(&rt, o->model, &ro, &none) != QSF_OK) return 0;
    uint64_t need = (uint64_t)bytes * QSF_REQUEST_BYTES, least = 0;
    if (qsf_tokenizer_open(&rt.tok, rt.model.src, &rt.ledger, &none) == QSF_OK) {
        if (is_tokenized(&rt, o, bytes)) need += qsf_tokenizer_need(rt.tok, bytes, longest_word);
        least = qsf_prompt_budget(&rt.model, &rt.plan_options, need);
    }
    qsf_runtime_close(&rt);
    return least;
}
