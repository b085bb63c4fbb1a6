/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model that emits a script. Its layers are zero, so the last token alone decides: each word of the script
 * is a token with a direction of its own in the hidden state, which the head maps to the next word. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/gguf_build.h"

enum { N_BASE = 300, N_WORDS = 250, HEAD = 16, EOS = 2 };
enum { TYPE_NORMAL = 1, TYPE_CONTROL = 3, TYPE_USER = 4 };

#define LOUD 10.0f /* so large that the script is followed at any temperature */

typedef struct Script {
    char text[N_WORDS][64];
    int32_t type[N_WORDS];
    uint32_t n_tokens;     /* of the two above, after the base vocabulary */
    uint32_t say[N_WORDS]; /* (n) ids, one after another */
    uint32_t n;
    uint32_t hidden;           /* a multiple of 64, more than n */
    uint32_t layers, ffn, ctx; /* zeros, for a model of some size */
    const char *chat_template;
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
    s->hidden = (s->n + 64) / 64 * 64;
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
    uint64_t n = N_BASE + s->n_tokens, hidden = s->hidden, ne[2] = { hidden, n };
    float *in = calloc(n * hidden, sizeof *in), *out = calloc(n * hidden, sizeof *out);
    if (in != NULL && out != NULL) {
        for (uint64_t i = 0; i < n; i++) in[i * hidden] = 1;
        for (uint32_t k = 0; k < s->n; k++) {
            in[s->say[k] * hidden] = 0;
            in[s->say[k] * hidden + k + 1] = 1;
        }
        for (uint32_t k = 0; k <= s->n; k++) out[(k < s->n ? s->say[k] : EOS) * hidden + k] = LOUD;
        qsf_gb_tensor(b, "token_embd.weight", 0, 2, ne, in, n * hidden * sizeof *in);
        qsf_gb_tensor(b, "output.weight", 0, 2, ne, out, n * hidden * sizeof *out);
    }
    free(in);
    free(out);
}

static void add_layer(QsfGgufBuild *b, const Script *s, uint32_t layer) {
    const struct {
        const char *name;
        uint32_t cols, rows; /* rows 0: a norm */
    } tensors[] = { { "attn_norm", s->hidden, 0 },           { "attn_q", s->hidden, s->hidden },
                    { "attn_k", s->hidden, s->hidden },      { "attn_v", s->hidden, s->hidden },
                    { "attn_output", s->hidden, s->hidden }, { "ffn_norm", s->hidden, 0 },
                    { "ffn_gate", s->hidden, s->ffn },       { "ffn_up", s->hidden, s->ffn },
                    { "ffn_down", s->ffn, s->hidden } };
    char name[64];
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, tensors[i].name);
        add_zeros(b, name, tensors[i].cols, tensors[i].rows, tensors[i].rows == 0 ? 1 : 0);
    }
}

static void add_weights(QsfGgufBuild *b, const Script *s) {
    add_places(b, s);
    for (uint32_t i = 0; i < s->layers; i++) add_layer(b, s, i);
    add_zeros(b, "output_norm.weight", s->hidden, 0, 1);
}

static void add_facts(QsfGgufBuild *b, const Script *s) {
    const struct {
        const char *key;
        uint32_t value;
    } facts[] = { { "block_count", s->layers },
                  { "embedding_length", s->hidden },
                  { "feed_forward_length", s->ffn },
                  { "context_length", s->ctx },
                  { "attention.head_count", s->hidden / HEAD },
                  { "attention.head_count_kv", s->hidden / HEAD },
                  { "rope.dimension_count", HEAD },
                  { "vocab_size", N_BASE + s->n_tokens } };
    char key[64];
    qsf_gb_str(b, "general.architecture", "llama");
    qsf_gb_str(b, "general.name", "script");
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        snprintf(key, sizeof key, "llama.%s", facts[i].key);
        qsf_gb_u32(b, key, facts[i].value);
    }
    qsf_gb_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (s->chat_template != NULL) qsf_gb_str(b, "tokenizer.chat_template", s->chat_template);
}

int qsf_test_write_script_llama(const char *path, const char *script, const QsfTinySpec *spec) {
    Script s = { .layers = spec->layers ? spec->layers : 1,
                 .ctx = spec->ctx ? spec->ctx : 512,
                 .chat_template = spec->chat_template };
    QsfGgufBuild b = { 0 };
    const char *texts[N_WORDS];
    if (parse(&s, script) != 0) return -1;
    s.ffn = spec->ffn ? spec->ffn : s.hidden;
    for (uint32_t i = 0; i < s.n_tokens; i++) texts[i] = s.text[i];
    add_facts(&b, &s);
    qsf_gb_tiny_vocab_with(&b, N_BASE, texts, s.type, s.n_tokens);
    add_weights(&b, &s);
    int rc = qsf_gb_write(&b, path);
    qsf_gb_free(&b);
    return rc;
}
