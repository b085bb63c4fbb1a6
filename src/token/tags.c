/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tables of tags. */
#include "src/token/tags.h"

#include <string.h>

/* From the models' own templates: deepseek-ai and Qwen and most others, mistralai (Magistral, Ministral),
 * CohereLabs (command-a), swiss-ai (Apertus), ByteDance-Seed, tencent (Hy3), LGAI-EXAONE (Deep), google
 * (gemma 4), MiniMaxAI (M3), moonshotai (Kimi-VL). */
const QsfThinkTags qsf_tags[QSF_TAGS] = {
    { "<think>", "</think>" },
    { "[THINK]", "[/THINK]" },
    { "<|START_THINKING|>", "<|END_THINKING|>" },
    { "<|inner_prefix|>", "<|inner_suffix|>" },
    { "<seed:think>", "</seed:think>" },
    { "<think:opensource>", "</think:opensource>" },
    { "<thought>", "</thought>" },
    { "<|channel>thought", "<channel|>" },
    { "<mm:think>", "</mm:think>" },
    { "\xE2\x97\x81think\xE2\x96\xB7", "\xE2\x97\x81/think\xE2\x96\xB7" },
};

/* Around answers: ibm-granite (3.3) and baidu (ERNIE), tencent (Hunyuan), CohereLabs. */
const QsfThinkTags qsf_answer_tags[QSF_ANSWER_TAGS] = {
    { "<response>", "</response>" },
    { "<answer>", "</answer>" },
    { "<|START_RESPONSE|>", "<|END_RESPONSE|>" },
    { "<|START_TEXT|>", "<|END_TEXT|>" },
};

static bool is_one(const QsfThinkTags *rows, size_t n, const char *text, size_t len) {
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            const char *tag = k == 0 ? rows[i].open : rows[i].close;
            if (strlen(tag) == len && memcmp(text, tag, len) == 0) return true;
        }
    return false;
}

bool qsf_is_tag(const char *text, size_t len) {
    return is_one(qsf_tags, QSF_TAGS, text, len) || is_one(qsf_answer_tags, QSF_ANSWER_TAGS, text, len);
}
