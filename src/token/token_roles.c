/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Special ids: tables of keys and of texts, as in ggml-org/llama.cpp src/llama-vocab.cpp. */
#include "src/token/token_roles.h"

#include <string.h>

#include "src/file/vocab/keys.h"

static const struct {
    QsfTokenRole role;
    const char *key;
} KEYS[] = {
    { QSF_TOKEN_ROLE_BOS, "tokenizer.ggml.bos_token_id" },
    { QSF_TOKEN_ROLE_EOS, "tokenizer.ggml.eos_token_id" },
    { QSF_TOKEN_ROLE_UNK, "tokenizer.ggml.unknown_token_id" },
    { QSF_TOKEN_ROLE_EOT, "tokenizer.ggml.eot_token_id" },
    { QSF_TOKEN_ROLE_EOM, "tokenizer.ggml.eom_token_id" },
    { QSF_TOKEN_ROLE_FIM_PRE, "tokenizer.ggml.prefix_token_id" },
    { QSF_TOKEN_ROLE_FIM_SUF, "tokenizer.ggml.suffix_token_id" },
    { QSF_TOKEN_ROLE_FIM_MID, "tokenizer.ggml.middle_token_id" },
    { QSF_TOKEN_ROLE_FIM_PRE, "tokenizer.ggml.fim_pre_token_id" },
    { QSF_TOKEN_ROLE_FIM_SUF, "tokenizer.ggml.fim_suf_token_id" },
    { QSF_TOKEN_ROLE_FIM_MID, "tokenizer.ggml.fim_mid_token_id" },
    { QSF_TOKEN_ROLE_FIM_PAD, "tokenizer.ggml.fim_pad_token_id" },
    { QSF_TOKEN_ROLE_FIM_REP, "tokenizer.ggml.fim_rep_token_id" },
    { QSF_TOKEN_ROLE_FIM_SEP, "tokenizer.ggml.fim_sep_token_id" },
};

#define BAR "\xEF\xBD\x9C" /* U+FF5C, the bar of DeepSeek's tokens */
#define LOW "\xE2\x96\x81" /* U+2581 */

/* Earlier rows take precedence. always_ends: ends a generation even if another token has the role. */
static const struct {
    QsfTokenRole role;
    bool always_ends;
    const char *text;
} TEXTS[] = {
    { QSF_TOKEN_ROLE_EOT, true, "<|eot_id|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<|im_end|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<|end|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<end_of_turn>" },
    { QSF_TOKEN_ROLE_EOT, true, "<|endoftext|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<|end_of_text|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<EOT>" },
    { QSF_TOKEN_ROLE_EOT, true, "_<EOT>" },
    { QSF_TOKEN_ROLE_EOT, true, "[EOT]" },
    { QSF_TOKEN_ROLE_EOT, true, "<|return|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<end_of_utterance>" },
    { QSF_TOKEN_ROLE_EOT, true, "<" BAR "end" LOW "of" LOW "sentence" BAR ">" },
    { QSF_TOKEN_ROLE_EOM, true, "<|eom_id|>" },
    { QSF_TOKEN_ROLE_FIM_PRE, false, "<|fim_prefix|>" },
    { QSF_TOKEN_ROLE_FIM_PRE, false, "<fim-prefix>" },
    { QSF_TOKEN_ROLE_FIM_PRE, false, "<" BAR "fim" LOW "begin" BAR ">" },
    { QSF_TOKEN_ROLE_FIM_PRE, false, "<PRE>" },
    { QSF_TOKEN_ROLE_FIM_PRE, false, LOW "<PRE>" },
    { QSF_TOKEN_ROLE_FIM_SUF, false, "<|fim_suffix|>" },
    { QSF_TOKEN_ROLE_FIM_SUF, false, "<fim-suffix>" },
    { QSF_TOKEN_ROLE_FIM_SUF, false, "<" BAR "fim" LOW "hole" BAR ">" },
    { QSF_TOKEN_ROLE_FIM_SUF, false, "<SUF>" },
    { QSF_TOKEN_ROLE_FIM_SUF, false, LOW "<SUF>" },
    { QSF_TOKEN_ROLE_FIM_MID, false, "<|fim_middle|>" },
    { QSF_TOKEN_ROLE_FIM_MID, false, "<fim-middle>" },
    { QSF_TOKEN_ROLE_FIM_MID, false, "<" BAR "fim" LOW "end" BAR ">" },
    { QSF_TOKEN_ROLE_FIM_MID, false, "<MID>" },
    { QSF_TOKEN_ROLE_FIM_MID, false, LOW "<MID>" },
    { QSF_TOKEN_ROLE_FIM_PAD, false, "<|fim_pad|>" },
    { QSF_TOKEN_ROLE_FIM_PAD, false, "<fim-pad>" },
    { QSF_TOKEN_ROLE_FIM_PAD, false, "<PAD>" },
    { QSF_TOKEN_ROLE_FIM_REP, false, "<|fim_repo|>" },
    { QSF_TOKEN_ROLE_FIM_REP, false, "<|repo_name|>" },
    { QSF_TOKEN_ROLE_FIM_REP, false, "<fim-repo>" },
    { QSF_TOKEN_ROLE_FIM_REP, false, "<REPO>" },
    { QSF_TOKEN_ROLE_FIM_SEP, false, "<|file_sep|>" },
};

/* Control tokens that end an answer in addition to those of the roles: of Llama 4, gpt-oss, Solar
 * Open, Gemma 4, Kimi K2 and K3, MiniMax, OpenChat, HyperCLOVA X, Command R, Apertus, Ling and
 * Seed-OSS. Of other types they are text. */
static const char *const CONTROL_ENDS[] = {
    "<|eot|>",
    "<|eom|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "[EOS]",
    "<|end_of_msg|>",
    "[e~[",
    "<|end_of_turn|>",
    "<|endofturn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|assistant_end|>",
    "<|role_end|>",
    "<seed:eos>",
    "</s>",
};

/* Tokens that show that a special token "</s>" is the HTML tag (Gemma). */
static const char *const HTML_SIGNS[] = { "<|tool_response>", "<turn|>", "<strong>", "<table>", "<h1>" };

static const QsfTokenRole ENDS[] = {
    QSF_TOKEN_ROLE_EOS,     QSF_TOKEN_ROLE_EOT,     QSF_TOKEN_ROLE_EOM,
    QSF_TOKEN_ROLE_FIM_PAD, QSF_TOKEN_ROLE_FIM_REP, QSF_TOKEN_ROLE_FIM_SEP,
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool is_array(const QsfSource *src, const char *key) {
    for (size_t i = 0; i < qsf_meta_count(src); i++) {
        QsfMetaType type, elem;
        uint64_t count;
        if (strcmp(qsf_meta_at(src, i, &type, &elem, &count), key) == 0) return type == QSF_META_ARRAY;
    }
    return false;
}

/* A key with one id or an array of them: *first is the first valid one. ends: all of them end
 * a generation. */
static int read_ids(QsfRoles *r, const QsfSource *src, QsfVocab *v, const char *key, bool ends,
                    int32_t *first, QsfErr *err) {
    QsfMetaArray a = { .count = 1 };
    const bool array = is_array(src, key);
    bool present = false;
    int rc = array ? qsf_meta_array_open(src, key, QSF_META_I64, &a, &present, err) : QSF_OK;
    *first = -1;
    for (uint64_t i = 0; i < a.count && rc == QSF_OK; i++) {
        int64_t id = -1;
        rc = array ? qsf_meta_array_i64(&a, &id, err) : qsf_meta_i64(src, key, -1, &id, err);
        if (rc != QSF_OK) break;
        if (id < 0 || id >= (int64_t)v->n) {
            r->bad_key = key;
            continue;
        }
        if (*first < 0) *first = (int32_t)id;
        if (ends) v->attr[id] |= QSF_ATTR_EOG;
    }
    if (present) qsf_meta_array_close(&a);
    return rc;
}

int qsf_roles_read(QsfRoles *r, const QsfSource *src, QsfVocab *v, const int32_t fallback[3], QsfErr *err) {
    static const QsfTokenRole named[3] = { QSF_TOKEN_ROLE_BOS, QSF_TOKEN_ROLE_EOS, QSF_TOKEN_ROLE_UNK };
    int32_t id;
    *r = (QsfRoles){ 0 };
    for (size_t i = 0; i < QSF_TOKEN_ROLE_N; i++) r->id[i] = -1;
    for (size_t i = 0; i < 3; i++)
        if (fallback[i] < (int32_t)v->n) r->id[named[i]] = fallback[i];
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        if (!qsf_meta_has(src, KEYS[i].key)) continue;
        int rc = read_ids(r, src, v, KEYS[i].key, KEYS[i].role == QSF_TOKEN_ROLE_EOS, &id, err);
        if (rc != QSF_OK) return rc;
        if (id >= 0) r->id[KEYS[i].role] = id;
    }
    return qsf_meta_has(src, QSF_KEY_ENDS) ? read_ids(r, src, v, QSF_KEY_ENDS, true, &id, err) : QSF_OK;
}

/* --- by text --- */

static int32_t find_text(const QsfVocab *v, const char *text) {
    return qsf_vocab_find(v, text, strlen(text));
}

/* Whether types distinguish special tokens from pieces of text. Without them, only texts can. */
static bool has_types(const QsfVocab *v) {
    for (uint32_t i = 0; i < v->n; i++)
        if (qsf_vocab_type(v, (int32_t)i) == QSF_TOKEN_CONTROL) return true;
    return false;
}

static bool is_special(const QsfVocab *v, int32_t id) {
    QsfTokenType type = id < 0 ? QSF_TOKEN_NORMAL : qsf_vocab_type(v, id);
    return type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_USER;
}

static bool ends(QsfTokenRole role) {
    for (size_t i = 0; i < COUNT(ENDS); i++)
        if (ENDS[i] == role) return true;
    return false;
}

/* Some converters lose the types of tokens that the chat template writes. */
static bool is_written(const QsfSource *src, const char *text) {
    const char *chat;
    size_t len;
    QsfErr ignored = { 0 };
    return qsf_meta_str(src, "tokenizer.chat_template", &chat, &len, &ignored) == QSF_OK && chat != NULL &&
           memmem(chat, len, text, strlen(text)) != NULL;
}

static void complete_roles(QsfRoles *r, QsfVocab *v, const QsfSource *src) {
    const bool typed = has_types(v);
    for (size_t i = 0; i < COUNT(TEXTS); i++) {
        const char *text = TEXTS[i].text;
        int32_t id = find_text(v, text);
        if (id < 0) continue;
        if (typed && ends(TEXTS[i].role) && !is_special(v, id) && !is_written(src, text)) continue;
        bool wins = r->id[TEXTS[i].role] < 0;
        if (wins) r->id[TEXTS[i].role] = id;
        if (wins || TEXTS[i].always_ends) qsf_vocab_set_type(v, id, QSF_TOKEN_CONTROL);
        if (TEXTS[i].always_ends) v->attr[id] |= QSF_ATTR_EOG;
    }
}

/* Where "</s>" is an HTML tag, it is part of an answer and printed, whatever its type in the file. */
static void keep_html(const QsfRoles *r, QsfVocab *v) {
    int32_t id = find_text(v, "</s>");
    if (id < 0 || qsf_vocab_type(v, id) != QSF_TOKEN_CONTROL || (v->attr[id] & QSF_ATTR_EOG)) return;
    for (size_t i = 0; i < QSF_TOKEN_ROLE_N; i++)
        if (r->id[i] == id) return;
    for (size_t i = 0; i < COUNT(HTML_SIGNS); i++)
        if (is_special(v, find_text(v, HTML_SIGNS[i]))) qsf_vocab_set_type(v, id, QSF_TOKEN_USER);
}

static void mark_control_ends(QsfVocab *v) {
    /* In formats of messages (Muse) <|eom|> ends one that another follows. */
    const bool messages = is_special(v, find_text(v, "<|message|>"));
    for (size_t i = 0; i < COUNT(CONTROL_ENDS); i++) {
        int32_t id = find_text(v, CONTROL_ENDS[i]);
        if (id < 0 || qsf_vocab_type(v, id) != QSF_TOKEN_CONTROL) continue;
        if (messages && strcmp(CONTROL_ENDS[i], "<|eom|>") == 0) continue;
        v->attr[id] |= QSF_ATTR_EOG;
    }
}

/* Formats in which a generation has several messages: the first token ends each of them, the others the
 * generation. From ggml-org/llama.cpp src/llama-vocab.cpp (gpt-oss, Solar Open) and
 * common/chat.cpp (Muse). */
static const struct {
    const char *message_end, *with[3]; /* with: the vocabulary has these too */
} MESSAGES[] = {
    { "<|end|>", { "<|return|>", "<|call|>", NULL } },
    { "<|end|>", { "<|flush|>", "<|calls|>", NULL } },
    { "<|eom|>", { "<|eot|>", "<|start|>", "<|message|>" } },
};

static void mark_message_ends(QsfRoles *r, QsfVocab *v) {
    for (size_t i = 0; i < COUNT(MESSAGES); i++) {
        const int32_t id = find_text(v, MESSAGES[i].message_end);
        bool all = is_special(v, id);
        for (size_t k = 0; k < COUNT(MESSAGES[i].with) && MESSAGES[i].with[k] != NULL; k++)
            all = all && is_special(v, find_text(v, MESSAGES[i].with[k]));
        if (!all) continue;
        v->attr[id] &= (uint8_t)~QSF_ATTR_EOG;
        for (size_t k = 0; k < COUNT(ENDS); k++)
            if (r->id[ENDS[k]] == id) r->id[ENDS[k]] = find_text(v, MESSAGES[i].with[0]);
        r->id[QSF_TOKEN_ROLE_MESSAGE_END] = id;
    }
}

void qsf_roles_complete(QsfRoles *r, QsfVocab *v, const QsfSource *src) {
    complete_roles(r, v, src);
    keep_html(r, v);
    mark_control_ends(v);
    for (size_t i = 0; i < COUNT(ENDS); i++) {
        int32_t id = r->id[ENDS[i]];
        if (id >= 0) v->attr[id] |= QSF_ATTR_EOG;
    }
    mark_message_ends(r, v);
}
