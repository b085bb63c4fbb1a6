/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which file of templates/ makes the same prompts as a template that cannot be used, or as those that a
 * vocabulary was trained with. */
#include <string.h>

#include "src/chat/chat_impl.h"

#define BAR "\xEF\xBD\x9C" /* U+FF5C, the bar of DeepSeek's tokens */

enum {
    IN_VOCAB = 1, /* the mark is a token of the vocabularies of that family: sufficient without a template */
    NEEDS = 2,    /* the mark must be a token, even if a template contains it */
    NEEDS_BPE = 4 /* the vocabulary must be byte-level BPE */
};

/* Texts that identify a family of templates, the most specific ones first. */
static const struct {
    const char *mark, *file;
    unsigned flags;
} families[] = {
    { "<" BAR "User" BAR ">", "deepseek", IN_VOCAB },
    { "<|START_OF_TURN_TOKEN|>", "command-r", IN_VOCAB },
    { "<|start_of_role|>", "granite", IN_VOCAB },
    { "<|im_sep|>", "phi4", IN_VOCAB },
    { "<|im_start|>", "chatml", IN_VOCAB },
    { "<|start_header_id|>", "llama3", IN_VOCAB },
    { "<start_of_turn>", "gemma", IN_VOCAB },
    { "<|channel|>", "gpt-oss", IN_VOCAB },
    { "<|begin|>", "solar-open", 0 },
    { "<|flush|>", "solar-open", IN_VOCAB },
    { "<|end|>", "phi3", IN_VOCAB },
    { "<|user|>", "zephyr", 0 },
    { "<<SYS>>", "llama2", 0 },
    { "[INST]", "mistral-tekken", IN_VOCAB | NEEDS | NEEDS_BPE },
    { "[INST]", "mistral-v3", IN_VOCAB | NEEDS },
    { "[INST]", "mistral-v1", 0 },
    { "### Instruction", "alpaca", 0 },
    { "ASSISTANT:", "vicuna", 0 },
    { "Falcon:", "falcon", 0 },
    { "<|eot_id|>", "bitnet", 0 },
};

static bool is_bpe(const QsfSource *src) {
    const char *model;
    QsfErr ignored = { 0 };
    return qsf_meta_str(src, "tokenizer.ggml.model", &model, NULL, &ignored) == QSF_OK && model != NULL &&
           strcmp(model, "gpt2") == 0;
}

const char *qsf_chat_family(const QsfSource *src, const QsfTokenizer *tok, const char *text, size_t len) {
    bool bpe = is_bpe(src);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const char *mark = families[i].mark;
        unsigned flags = families[i].flags;
        bool token = qsf_tokenizer_find(tok, mark, strlen(mark)) >= 0;
        if (((flags & NEEDS) && !token) || ((flags & NEEDS_BPE) && !bpe)) continue;
        if (text != NULL ? memmem(text, len, mark, strlen(mark)) != NULL : (flags & IN_VOCAB) && token)
            return families[i].file;
    }
    return NULL;
}

bool qsf_chat_is_base(const QsfTokenizer *tok) {
    static const char *const usual[] = { "<pad>", "[PAD]", "<mask>", "[MASK]",
                                         "<sep>", "[SEP]", "<cls>",  "[CLS]" };
    for (uint32_t i = 0; i < qsf_tokenizer_n_vocab(tok); i++) {
        const int32_t id = (int32_t)i;
        size_t len;
        if (qsf_tokenizer_type(tok, id) != QSF_TOKEN_CONTROL || id == qsf_tokenizer_bos(tok) ||
            id == qsf_tokenizer_eos(tok))
            continue;
        const char *text = qsf_tokenizer_raw(tok, id, &len);
        bool known = false;
        for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
            known = known || (strlen(usual[k]) == len && memcmp(text, usual[k], len) == 0);
        if (!known) return false;
    }
    return true;
}

/* Texts that occur only in a converter's placeholder. */
static const struct {
    const char *mark, *file, *why;
} placeholders[] = {
    /* microsoft/BitNet utils/convert-ms-to-gguf-bitnet.py writes it; the model's tokenizer_config.json
     * differs from it */
    { "BITNETAssistant:", "bitnet",
      "it is a placeholder from a converter, not what the model was trained with" },
};

const char *qsf_chat_placeholder(const char *text, size_t len, const char **file) {
    for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++) {
        const char *mark = placeholders[i].mark;
        if (memmem(text, len, mark, strlen(mark)) == NULL) continue;
        *file = placeholders[i].file;
        return placeholders[i].why;
    }
    return NULL;
}
