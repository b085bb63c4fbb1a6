/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models to begin with, by their names on the Hugging Face hub. */
#include "qsf_models.h"

/* By size. Instruct models whose templates and architectures are supported. */
static const QSFModelSuggestion suggestions[] = {
    { "hf:ggml-org/gemma-3-1b-it-GGUF:Q4_K_M", 806000000, "small and fast" },
    { "hf:ggml-org/gemma-3-4b-it-GGUF:Q4_K_M", 2490000000, "good answers, many languages" },
    { "hf:Qwen/Qwen3-8B-GGUF:Q4_K_M", 5030000000, "reasons before it answers" },
    { "hf:ggml-org/gpt-oss-20b-GGUF", 12110000000, "sparse, fast for its size; reasons" },
    { "hf:Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", 18560000000, "sparse, fast for its size; reasons" },
};

enum { N = sizeof suggestions / sizeof *suggestions };

#define OTHERS (200u << 20) /* bytes of a process besides weights and what grows with them */

const QSFModelSuggestion *qsf_model_suggestion(size_t i) { return i < N ? &suggestions[i] : NULL; }

bool qsf_model_suggestion_fits(const QSFModelSuggestion *s, uint64_t available) {
    return s->bytes + s->bytes / 10 + OTHERS <= available / 2; /* the budget auto takes up to half */
}

const QSFModelSuggestion *qsf_model_suggested(uint64_t available) {
    size_t best = 0;
    for (size_t i = 0; i < N; i++)
        if (qsf_model_suggestion_fits(&suggestions[i], available)) best = i;
    return &suggestions[best];
}
