/* SPDX-License-Identifier: GPL-3.0-or-later */
/* mkbig OUT.gguf [key=value ...]: a llama of 150 MB and more with random weights, written in well under a
 * second: packed blocks are random bits under fixed scales. The same keys give the same bytes.
 *
 * Keys: layers hidden heads kv_heads ffn vocab ctx seed tied=1 twins=1 (each second row of a layer's matrix
 * equals the previous one: layers compress to half) experts=N used=N (in each layer, of ffn rows each)
 * type=q4_0|q8_0|q4_k|f16|mixed chain=N
 *
 * chain=N: the model repeats itself. Its layers add hardly anything, and the head finds after token t the
 * next one of a cycle of N: greedily always, at temperature 1 in about 93 of 100 tokens, else any other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/gguf_build.h"

#define ALIGN 32u

typedef struct Spec {
    uint32_t layers, hidden, heads, kv_heads, ffn, vocab, ctx, tied, twins, experts, used, chain;
    uint64_t seed;
    const char *type;
} Spec;

/* A GGML weight type: n values in `bytes`. Values have a mean of 0 and a deviation of spread times the number
 * in the half at scale_at (all other bits being random); Q4_K has a second half, the scale of the minima, 7.5
 * times the first so that they cancel. */
typedef struct Type {
    uint32_t id, n, bytes, scale_at;
    double spread;
    bool minima;
} Type;

enum { F32, F16, Q4_0, Q8_0, Q4_K, Q6_K };
static const Type types[] = {
    [F32] = { 0, 1, 4, 0, 0, false },        [F16] = { 1, 1, 2, 0, 0, false },
    [Q4_0] = { 2, 32, 18, 0, 4.6, false },   [Q8_0] = { 8, 32, 34, 0, 73.6, false },
    [Q4_K] = { 12, 256, 144, 0, 240, true }, [Q6_K] = { 14, 256, 210, 208, 1366, false },
};

/* Types of attention, FFN, its down projection, embedding, head. */
typedef struct Recipe {
    const char *name;
    int attn, ffn, down, embed, head;
} Recipe;
static const Recipe recipes[] = {
    { "q8_0", Q8_0, Q8_0, Q8_0, Q8_0, Q8_0 },  { "q4_0", Q4_0, Q4_0, Q4_0, Q4_0, Q4_0 },
    { "q4_k", Q4_K, Q4_K, Q6_K, Q4_K, Q6_K },  { "f16", F16, F16, F16, F16, F16 },
    { "mixed", Q8_0, Q4_K, Q6_K, Q8_0, Q4_0 },
};

typedef struct Tensor {
    const Type *type;
    uint64_t cols, rows, offset, bytes;
    double deviation; /* rows 0: a vector of ones plus this */
    bool in_layer;
    int chain; /* 1: its rows are those of the embedding; 2: those of the tokens before */
} Tensor;

typedef struct Plan {
    QsfGgufBuild gb;
    Tensor *t;
    size_t n, cap;
    uint64_t end;
} Plan;

static uint64_t random_bits(uint64_t *state) { /* splitmix64 */
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* IEEE binary16 of a number below 2048, truncated. */
static uint16_t half(double x) {
    int e;
    double m = frexp(fabs(x), &e);
    uint32_t sign = x < 0 ? 0x8000 : 0;
    if (x == 0 || e < -23) return (uint16_t)sign;
    if (e < -13) return (uint16_t)(sign | (uint32_t)ldexp(m, e + 24));
    return (uint16_t)(sign | ((uint32_t)(e + 14) << 10) | ((uint32_t)(m * 2048) & 0x3FF));
}

static void put_half(unsigned char *at, double x) {
    uint16_t h = half(x);
    at[0] = (unsigned char)(h & 0xFF);
    at[1] = (unsigned char)(h >> 8);
}

/* n: matrices in the tensor, if it has three dimensions; otherwise 0. */
static void add_tensor(Plan *p, const char *name, int type, uint64_t cols, uint64_t rows, uint64_t n,
                       double deviation) {
    const uint64_t ne[3] = { cols, rows, n };
    const Type *ty = &types[type];
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 64;
        p->t = realloc(p->t, p->cap * sizeof *p->t);
        if (!p->t) abort();
    }
    Tensor *t = &p->t[p->n++];
    *t = (Tensor){ ty,
                   cols,
                   rows,
                   p->end,
                   (rows ? rows : 1) * (n ? n : 1) * cols / ty->n * ty->bytes,
                   deviation,
                   !strncmp(name, "blk.", 4) && rows,
                   0 };
    qsf_gb_tensor_row(&p->gb, name, ty->id, n ? 3 : rows ? 2 : 1, ne, t->offset);
    p->end = (t->offset + t->bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void add(Plan *p, const char *name, int type, uint64_t cols, uint64_t rows, double deviation) {
    add_tensor(p, name, type, cols, rows, 0, deviation);
}

static void add_experts(Plan *p, const Spec *s, const Recipe *r, uint32_t layer) {
    const struct {
        const char *name;
        int type;
        uint64_t cols, rows, n;
    } mats[] = { { "gate_inp", F32, s->hidden, s->experts, 0 },
                 { "gate_exps", r->ffn, s->hidden, s->ffn, s->experts },
                 { "up_exps", r->ffn, s->hidden, s->ffn, s->experts },
                 { "down_exps", r->down, s->ffn, s->hidden, s->experts } };
    for (size_t i = 0; i < sizeof mats / sizeof *mats; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.ffn_%s.weight", layer, mats[i].name);
        add_tensor(p, name, mats[i].type, mats[i].cols, mats[i].rows, mats[i].n,
                   1 / sqrt((double)mats[i].cols));
    }
}

static void add_layer(Plan *p, const Spec *s, const Recipe *r, uint32_t layer) {
    uint64_t h = s->hidden, kv = h / s->heads * s->kv_heads, f = s->ffn;
    const struct {
        const char *name;
        int type;
        uint64_t cols, rows;
    } mats[] = {
        { "attn_q", r->attn, h, h },      { "attn_k", r->attn, h, kv }, { "attn_v", r->attn, h, kv },
        { "attn_output", r->attn, h, h }, { "ffn_gate", r->ffn, h, f }, { "ffn_up", r->ffn, h, f },
        { "ffn_down", r->down, f, h },    { "attn_norm", F32, h, 0 },   { "ffn_norm", F32, h, 0 },
    };
    for (size_t i = 0; i < sizeof mats / sizeof *mats; i++) {
        char name[64];
        const bool ffn = mats[i].rows && !strncmp(mats[i].name, "ffn_", 4);
        if (ffn && s->experts) continue;
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, mats[i].name);
        const bool adds = !strcmp(mats[i].name, "attn_output") || !strcmp(mats[i].name, "ffn_down");
        add(p, name, mats[i].type, mats[i].cols, mats[i].rows,
            mats[i].rows ? (s->chain && adds ? 0.001 : 1) / sqrt((double)mats[i].cols) : 0.1);
    }
    if (s->experts) add_experts(p, s, r, layer);
}

static void add_all(Plan *p, const Spec *s, const Recipe *r) {
    const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {
        { "llama.block_count", s->layers },
        { "llama.embedding_length", s->hidden },
        { "llama.feed_forward_length", s->ffn },
        { "llama.context_length", s->ctx },
        { "llama.attention.head_count", s->heads },
        { "llama.attention.head_count_kv", s->kv_heads },
        { "llama.rope.dimension_count", s->hidden / s->heads },
        { "llama.vocab_size", s->vocab },
    };
    qsf_gb_str(&p->gb, "general.architecture", "llama");
    qsf_gb_str(&p->gb, "general.name", "big random llama");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        qsf_gb_u32(&p->gb, numbers[i].key, numbers[i].value);
    if (s->experts) {
        qsf_gb_u32(&p->gb, "llama.expert_count", s->experts);
        qsf_gb_u32(&p->gb, "llama.expert_used_count", s->used);
    }
    qsf_gb_f32(&p->gb, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    qsf_gb_tiny_vocab(&p->gb, s->vocab);
    add(p, "token_embd.weight", r->embed, s->hidden, s->vocab, 0.5);
    if (s->chain) p->t[p->n - 1].chain = 1;
    for (uint32_t l = 0; l < s->layers; l++) add_layer(p, s, r, l);
    add(p, "output_norm.weight", F32, s->hidden, 0, 0.1);
    if (s->tied) return;
    /* With a chain: a logit of 13 for the next token, 0.3 on average for others. */
    add(p, "output.weight", r->head, s->hidden, s->vocab,
        s->chain ? 13 / (double)s->hidden : 3 / sqrt((double)s->hidden));
    if (s->chain) p->t[p->n - 1].chain = 2;
}

static void fill_block(unsigned char *b, const Tensor *t, uint64_t *state) {
    const Type *ty = t->type;
    if (ty->n == 1) { /* a plain number */
        double u = (double)(int64_t)random_bits(state) / 9.3e18;
        float x = (float)(t->rows ? 1.7 * u * t->deviation : 1 + u * t->deviation);
        if (ty->bytes == 2) put_half(b, x);
        if (ty->bytes == 4) memcpy(b, &x, 4);
        return;
    }
    for (uint32_t i = 0; i < ty->bytes; i += 8) {
        uint64_t bits = random_bits(state);
        memcpy(b + i, &bits, ty->bytes - i < 8 ? ty->bytes - i : 8);
    }
    double scale = t->deviation / ty->spread;
    put_half(b + ty->scale_at, scale);
    if (ty->minima) put_half(b + ty->scale_at + 2, 7.5 * scale);
}

/* The token before t in its cycle. */
static uint64_t before(const Spec *s, uint64_t t) {
    const uint64_t first = t / s->chain * s->chain, end = first + s->chain;
    return t > first ? t - 1 : (end < s->vocab ? end : s->vocab) - 1;
}

/* Rows of the embedding and of the head that are equal where one token follows another. */
static uint64_t chain_state(const Spec *s, const Tensor *t, uint64_t row) {
    uint64_t state = s->seed + 1 + (t->chain == 1 ? row : before(s, row));
    return random_bits(&state);
}

static int write_tensor(FILE *f, const Tensor *t, const Spec *s, uint64_t *state) {
    const bool twins = s->twins && t->in_layer;
    static const unsigned char zero[ALIGN];
    unsigned char block[256];
    uint64_t row = t->cols / t->type->n * t->type->bytes, first = *state;
    for (uint64_t done = 0; done < t->bytes; done += t->type->bytes) {
        if (twins && done % (2 * row) == 0) first = *state;
        if (twins && done % (2 * row) == row) *state = first;
        if (t->chain && done % row == 0) *state = chain_state(s, t, done / row);
        fill_block(block, t, state);
        if (fwrite(block, t->type->bytes, 1, f) != 1) return -1;
    }
    size_t pad = (size_t)((ALIGN - t->bytes % ALIGN) % ALIGN);
    return pad && fwrite(zero, pad, 1, f) != 1 ? -1 : 0;
}

static int write_model(const char *path, const Spec *s, const Recipe *r) {
    Plan p = { 0 };
    size_t len;
    uint64_t state = s->seed;
    FILE *f = fopen(path, "wb");
    if (!f) return -1;
    setvbuf(f, NULL, _IOFBF, 1 << 20);
    add_all(&p, s, r);
    unsigned char *head = qsf_gb_bytes(&p.gb, &len);
    int rc = head && fwrite(head, len, 1, f) == 1 ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < p.n; i++) rc = write_tensor(f, &p.t[i], s, &state);
    free(head);
    free(p.t);
    qsf_gb_free(&p.gb);
    return fclose(f) == 0 ? rc : -1;
}

static int set_key(Spec *s, const char *key, const char *value) {
    const struct {
        const char *name;
        uint32_t *field;
    } numbers[] = {
        { "layers", &s->layers },     { "hidden", &s->hidden }, { "heads", &s->heads },
        { "kv_heads", &s->kv_heads }, { "ffn", &s->ffn },       { "vocab", &s->vocab },
        { "ctx", &s->ctx },           { "tied", &s->tied },     { "twins", &s->twins },
        { "experts", &s->experts },   { "used", &s->used },     { "chain", &s->chain },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(key, numbers[i].name)) return *numbers[i].field = (uint32_t)strtoul(value, NULL, 10), 0;
    if (!strcmp(key, "seed")) return s->seed = strtoull(value, NULL, 10), 0;
    if (!strcmp(key, "type")) return s->type = value, 0;
    return -1;
}

int main(int argc, char **argv) {
    Spec s = { .layers = 12,
               .hidden = 1024,
               .heads = 16,
               .kv_heads = 4,
               .ffn = 2816,
               .vocab = 8000,
               .ctx = 4096,
               .used = 4,
               .seed = 1,
               .type = "q8_0" };
    for (int i = 2; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        if (eq) *eq = '\0';
        if (!eq || set_key(&s, argv[i], eq + 1))
            return fprintf(stderr, "mkbig: unknown key %s\n", argv[i]), 2;
    }
    const Recipe *r = NULL;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (!strcmp(recipes[i].name, s.type)) r = &recipes[i];
    const uint32_t block = r == &recipes[3] ? 32 : 256; /* f16 has no blocks */
    if (argc < 2 || !r || s.vocab < 260 || s.heads == 0 || s.kv_heads == 0 || s.hidden % block ||
        s.ffn % block || (s.chain && (s.tied || r->embed != r->head)))
        return fprintf(stderr, "usage: mkbig OUT.gguf [key=value ...]\n"), 2;
    if (write_model(argv[1], &s, r)) return fprintf(stderr, "mkbig: cannot write %s\n", argv[1]), 1;
    return 0;
}
