/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model that emits a script. Its layers are zero, so the last token alone decides: each word of the script
 * is a token with a direction of its own in the hidden state, which the head maps to the next word. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/gguf_build.h"

enum { N_BASE = 300, N_WORDS = 60, HIDDEN = 64, EOS = 2 };
enum { TYPE_NORMAL = 1, TYPE_CONTROL = 3, TYPE_USER = 4 };

#define LOUD 10.0f /* so large that the script is followed at any temperature */

typedef struct Script {
    char text[N_WORDS][64];
    int32_t type[N_WORDS];
    uint32_t n_tokens;     /* of the two above, after the base vocabulary */
    uint32_t say[N_WORDS]; /* (n) ids, one after another */
    uint32_t n;
} Script;

/* '_' is the space of SentencePiece. */
static void set_text(char dst[64], const char *word, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len && n + 4 < 64; i++) {
        if (word[i] == '_') {
            memcpy(dst + n, "\xE2\x96\x81", 3);
            n += 3;
        } else {
            dst[n++] = word[i];
        }
    }
    dst[n] = '\0';
}

static int add_word(Script *s, const char *word, size_t len) {
    bool silent = *word == '+', control = word[silent] == '!';
    size_t skip = (size_t)silent + (size_t)control;
    if (s->n == N_WORDS || s->n_tokens == N_WORDS || len <= skip) return -1;
    if (len == 6 && memcmp(word, "<0x", 3) == 0) {
        s->say[s->n++] = 3 + (uint32_t)strtoul(word + 3, NULL, 16);
        return 0;
    }
    set_text(s->text[s->n_tokens], word + skip, len - skip);
    bool tag = strchr("<[", word[skip]) != NULL;
    s->type[s->n_tokens] = control ? TYPE_CONTROL : tag ? TYPE_USER : TYPE_NORMAL;
    if (!silent) s->say[s->n++] = N_BASE + s->n_tokens;
    s->n_tokens++;
    return 0;
}

static int parse(Script *s, const char *script) {
    while (*script != '\0') {
        size_t len = strcspn(script, " ");
        if (len > 0 && add_word(s, script, len) != 0) return -1;
        script += len + (script[len] == ' ');
    }
    return 0;
}

static void add_zeros(QsfGgufBuild *b, const char *name, uint64_t cols, uint64_t rows, float value) {
    uint64_t ne[2] = { cols, rows }, n = rows == 0 ? cols : cols * rows;
    float *x = calloc((size_t)n, sizeof *x);
    for (uint64_t i = 0; x != NULL && value != 0 && i < n; i++) x[i] = value;
    if (x != NULL) qsf_gb_tensor(b, name, 0, rows == 0 ? 1 : 2, ne, x, n * sizeof *x);
    free(x);
}

/* Embedding: any token maps to "begin", those of the script to their place in it. Head: from a place to the
 * next word. */
static void add_places(QsfGgufBuild *b, const Script *s) {
    uint64_t n = N_BASE + s->n_tokens, ne[2] = { HIDDEN, n };
    float *in = calloc(n * HIDDEN, sizeof *in), *out = calloc(n * HIDDEN, sizeof *out);
    if (in != NULL && out != NULL) {
        for (uint64_t i = 0; i < n; i++) in[i * HIDDEN] = 1;
        for (uint32_t k = 0; k < s->n; k++) {
            in[s->say[k] * HIDDEN] = 0;
            in[s->say[k] * HIDDEN + k + 1] = 1;
        }
        for (uint32_t k = 0; k <= s->n; k++) out[(k < s->n ? s->say[k] : EOS) * HIDDEN + k] = LOUD;
        qsf_gb_tensor(b, "token_embd.weight", 0, 2, ne, in, n * HIDDEN * sizeof *in);
        qsf_gb_tensor(b, "output.weight", 0, 2, ne, out, n * HIDDEN * sizeof *out);
    }
    free(in);
    free(out);
}

static void add_weights(QsfGgufBuild *b, const Script *s) {
    static const char *const mats[] = { "attn_q",   "attn_k", "attn_v",  "attn_output",
                                        "ffn_gate", "ffn_up", "ffn_down" };
    char name[64];
    add_places(b, s);
    for (size_t i = 0; i < sizeof mats / sizeof *mats; i++) {
        snprintf(name, sizeof name, "blk.0.%s.weight", mats[i]);
        add_zeros(b, name, HIDDEN, HIDDEN, 0);
    }
    add_zeros(b, "blk.0.attn_norm.weight", HIDDEN, 0, 1);
    add_zeros(b, "blk.0.ffn_norm.weight", HIDDEN, 0, 1);
    add_zeros(b, "output_norm.weight", HIDDEN, 0, 1);
}

static void add_facts(QsfGgufBuild *b, const Script *s, const char *chat_template) {
    const struct {
        const char *key;
        uint32_t value;
    } facts[] = { { "block_count", 1 },
                  { "embedding_length", HIDDEN },
                  { "feed_forward_length", HIDDEN },
                  { "context_length", 512 },
                  { "attention.head_count", 4 },
                  { "attention.head_count_kv", 4 },
                  { "rope.dimension_count", 16 },
                  { "vocab_size", N_BASE + s->n_tokens } };
    char key[64];
    qsf_gb_str(b, "general.architecture", "llama");
    qsf_gb_str(b, "general.name", "script");
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        snprintf(key, sizeof key, "llama.%s", facts[i].key);
        qsf_gb_u32(b, key, facts[i].value);
    }
    qsf_gb_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (chat_template != NULL) qsf_gb_str(b, "tokenizer.chat_template", chat_template);
}

int qsf_test_write_script_llama(const char *path, const char *script, const char *chat_template) {
    Script s = { 0 };
    QsfGgufBuild b = { 0 };
    const char *texts[N_WORDS];
    if (parse(&s, script) != 0) return -1;
    for (uint32_t i = 0; i < s.n_tokens; i++) texts[i] = s.text[i];
    add_facts(&b, &s, chat_template);
    qsf_gb_tiny_vocab_with(&b, N_BASE, texts, s.type, s.n_tokens);
    add_weights(&b, &s);
    int rc = qsf_gb_write(&b, path);
    qsf_gb_free(&b);
    return rc;
}
