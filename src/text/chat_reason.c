/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The switch of templates for models with optional reasoning. */
#include <string.h>

#include "src/text/chat_impl.h"

static const char *const words[QSF_REASON_N] = { "auto", "on", "off", "low", "medium", "high" };

/* Its names in templates: Qwen, Hugging Face (SmolLM3), GLM and most others; IBM (Granite) and DeepSeek;
 * OpenAI (gpt-oss) and its followers. */
static const char *const switches[] = { "enable_thinking", "thinking" };
static const char effort[] = "reasoning_effort";

QsfReason qsf_reason_parse(const char *word) {
    int r = 0;
    while (r < QSF_REASON_N && strcmp(word, words[r]) != 0) r++;
    return (QsfReason)r;
}

const char *qsf_reason_word(QsfReason r) { return r < QSF_REASON_N ? words[r] : ""; }

/* Finds a name as a whole word inside {{ }} or {% %}: names in the text of a template do not count. */
static bool reads(const char *source, size_t len, const char *name) {
    size_t n = strlen(name);
    bool code = false;
    for (size_t i = 0; i + n <= len; i++) {
        if (source[i] == '{' && i + 1 < len && (source[i + 1] == '{' || source[i + 1] == '%')) code = true;
        if ((source[i] == '}' || source[i] == '%') && i + 1 < len && source[i + 1] == '}') code = false;
        bool begins = i == 0 || strchr(" \t\n({[,=!<>+-~|", source[i - 1]) != NULL;
        bool ends = i + n == len || strchr(" \t\n)}],=!<>+-~|%", source[i + n]) != NULL;
        if (code && begins && ends && memcmp(source + i, name, n) == 0) return true;
    }
    return false;
}

bool qsf_chat_takes_reasoning(const QsfChatTemplate *t, QsfReason r) {
    bool takes = false;
    if (t == NULL) return false;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        takes = takes || reads(t->source, t->source_len, switches[i]);
    return takes || (r >= QSF_REASON_LOW && reads(t->source, t->source_len, effort));
}

void qsf_chat_reason_bind(QsfReason r, QsfJinjaVars *v) {
    if (r == QSF_REASON_AUTO) return;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        qsf_jinja_set(v, switches[i], qsf_j_bool(r != QSF_REASON_OFF));
    if (r < QSF_REASON_LOW) return;
    const char *word = words[r];
    qsf_jinja_set(v, effort, qsf_j_str(qsf_jinja_vars_mem(v), word, strlen(word), QSF_J_TEXT));
}
