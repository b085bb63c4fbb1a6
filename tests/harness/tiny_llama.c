/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tiny complete llama models with random weights and a small SentencePiece vocabulary. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/gguf_build.h"

enum { TYPE_F32 = 0, TYPE_F16 = 1, TYPE_Q4_0 = 2, TYPE_Q8_0 = 8, TYPE_Q3_K = 11, TYPE_Q6_K = 14 };
enum { TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_BYTE = 6 };

#define FIRST_PIECE    259u
#define FIRST_NUMBERED (FIRST_PIECE + 53 + 676) /* the pieces before it are letters */
#define END_OF_TEXT    2u

/* splitmix64 (Steele, Lea, Flood 2014): uniform in [-1, 1). */
static float random_unit(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (float)(int64_t)(z >> 40) / 8388608.0f - 1.0f;
}

/* IEEE binary16 of a small finite number, rounded to nearest even. */
static uint16_t half_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    uint32_t sign = u >> 16 & 0x8000, mag = u & 0x7FFFFFFF;
    if (mag < 0x38800000) { /* below 2^-14: subnormal, counted in units of 2^-24 */
        float scaled = fabsf(x) * 16777216.0f;
        return (uint16_t)(sign | (uint32_t)lrintf(scaled));
    }
    mag += 0xFFF + (mag >> 13 & 1);
    return (uint16_t)(sign | ((mag - 0x38000000) >> 13));
}

static void put16(QsfStrbuf *out, uint16_t v) {
    qsf_strbuf_addc(out, (char)(v & 0xFF));
    qsf_strbuf_addc(out, (char)(v >> 8));
}

static float block_max(const float *x, unsigned n) {
    float m = 0.0f;
    for (unsigned i = 0; i < n; i++) m = fabsf(x[i]) > m ? fabsf(x[i]) : m;
    return m;
}

static int quant(float x, float d, int lo, int hi) {
    long q = d > 0.0f ? lrintf(x / d) : 0;
    return q < lo ? lo : q > hi ? hi : (int)q;
}

/* Scale j of a block of 256, different ones. */
static int scale_of(size_t j) { return 1 + (int)(j % 5); }

/* kernels/blocks.h: the low bits of the codes, their upper bits, 16 scales, d. */
static void encode_q6_k(QsfStrbuf *out, const float *x) {
    const float d = block_max(x, 256) / (3 * 31.0f);
    unsigned char b[208] = { 0 };
    for (size_t e = 0; e < 256; e++) {
        const size_t half = e / 128, quarter = e / 32 % 4, l = e % 32;
        const unsigned q = (unsigned)(quant(x[e], d * (float)scale_of(e / 16), -32, 31) + 32);
        b[64 * half + quarter % 2 * 32 + l] |= (unsigned char)((q & 15) << quarter / 2 * 4);
        b[128 + 32 * half + l] |= (unsigned char)(q >> 4 << 2 * quarter);
        b[192 + e / 16] = (unsigned char)scale_of(e / 16);
    }
    qsf_strbuf_add(out, b, sizeof b);
    put16(out, half_bits(d));
}

/* The upper bits first; scales of 6 bits, plus 32, in two parts. */
static void encode_q3_k(QsfStrbuf *out, const float *x) {
    const float d = block_max(x, 256) / (3 * 4.0f);
    unsigned char b[108] = { 0 };
    for (size_t e = 0; e < 256; e++) {
        const unsigned q = (unsigned)(quant(x[e], d * (float)scale_of(e / 16), -4, 3) + 4);
        b[e % 32] |= (unsigned char)(q >> 2 << e / 32);
        b[32 + e / 128 * 32 + e % 32] |= (unsigned char)((q & 3) << e / 32 % 4 * 2);
    }
    for (size_t j = 0; j < 16; j++) {
        const unsigned scale = (unsigned)scale_of(j) + 32;
        b[96 + j % 8] |= (unsigned char)((scale & 15) << j / 8 * 4);
        b[104 + j % 4] |= (unsigned char)(scale >> 4 << j / 4 * 2);
    }
    qsf_strbuf_add(out, b, sizeof b);
    put16(out, half_bits(d));
}

/* Appends n values (a multiple of the block for block types) in the given type. */
static void encode(QsfStrbuf *out, uint32_t type, const float *x, size_t n) {
    if (type == TYPE_F32) qsf_strbuf_add(out, x, n * sizeof *x);
    if (type == TYPE_F16)
        for (size_t i = 0; i < n; i++) put16(out, half_bits(x[i]));
    for (const float *b = x; type == TYPE_Q6_K && b < x + n; b += 256) encode_q6_k(out, b);
    for (const float *b = x; type == TYPE_Q3_K && b < x + n; b += 256) encode_q3_k(out, b);
    if (type != TYPE_Q8_0 && type != TYPE_Q4_0) return;
    for (const float *b = x; b < x + n; b += 32) {
        float d = block_max(b, 32) / (type == TYPE_Q8_0 ? 127.0f : 7.0f);
        put16(out, half_bits(d));
        for (int i = 0; type == TYPE_Q8_0 && i < 32; i++)
            qsf_strbuf_addc(out, (char)quant(b[i], d, -127, 127));
        for (int i = 0; type == TYPE_Q4_0 && i < 16; i++)
            qsf_strbuf_addc(out, (char)((quant(b[i], d, -8, 7) + 8) | (quant(b[i + 16], d, -8, 7) + 8) << 4));
    }
}

/* letters: the last value of each position is LEVEL in the embedding, no layer adds to it, and the head makes
 * tokens that are not letters impossible (the end of the text remains possible). */
#define LEVEL 4.0f
#define NEVER -1000.0f
typedef enum Letters { ANY, LETTERS_EMBED, LETTERS_ADD_NOTHING, LETTERS_HEAD } Letters;

static void keep_letters(float *x, uint64_t cols, uint64_t rows, Letters letters) {
    if (letters == LETTERS_ADD_NOTHING) memset(x + (rows - 1) * cols, 0, (size_t)cols * sizeof *x);
    if (letters != LETTERS_EMBED && letters != LETTERS_HEAD) return;
    for (uint64_t r = 0; r < rows; r++) {
        const bool letter = r >= FIRST_PIECE || r == END_OF_TEXT;
        x[r * cols + cols - 1] = letters == LETTERS_EMBED ? LEVEL : letter ? 0.0f : NEVER;
    }
}

/* A tensor of random values: mean + scale * u; rows 0 = a vector in F32. twins: each second row equals the
 * previous one. */
static void add_rows(QsfGgufBuild *b, const char *name, uint32_t type, uint64_t cols, uint64_t rows,
                     bool twins, Letters letters, float mean, float scale, uint64_t *state) {
    uint64_t ne[2] = { cols, rows }, n = rows == 0 ? cols : cols * rows;
    float *x = malloc((size_t)n * sizeof *x);
    QsfStrbuf bytes = QSF_STRBUF_INIT;
    if (x == NULL) return;
    for (uint64_t i = 0; i < n; i++) x[i] = mean + scale * random_unit(state);
    for (uint64_t r = 1; twins && r < rows; r += 2)
        memcpy(x + r * cols, x + (r - 1) * cols, (size_t)cols * sizeof *x);
    keep_letters(x, cols, rows, letters);
    encode(&bytes, rows == 0 ? TYPE_F32 : type, x, (size_t)n);
    qsf_gb_tensor(b, name, rows == 0 ? TYPE_F32 : type, rows == 0 ? 1 : 2, ne, bytes.data, bytes.len);
    qsf_strbuf_free(&bytes);
    free(x);
}

static void add_random(QsfGgufBuild *b, const char *name, uint32_t type, uint64_t cols, uint64_t rows,
                       float mean, float scale, uint64_t *state) {
    add_rows(b, name, type, cols, rows, false, ANY, mean, scale, state);
}

/* Text of vocabulary entry i: bytes, then U+2581, 26 letters, U+2581 + letter, pairs of letters, numbered
 * words. */
static void piece_text(uint32_t i, char out[32]) {
    static const char *const special[] = { "<unk>", "<s>", "</s>" };
    uint32_t p = i - FIRST_PIECE;
    if (i < 3)
        snprintf(out, 32, "%s", special[i]);
    else if (i < FIRST_PIECE)
        snprintf(out, 32, "<0x%02X>", i - 3);
    else if (p == 0)
        snprintf(out, 32, "\xE2\x96\x81");
    else if (p < 27)
        snprintf(out, 32, "%c", (char)('a' + (int)(p - 1)));
    else if (p < 53)
        snprintf(out, 32, "\xE2\x96\x81%c", (char)('a' + (int)(p - 27)));
    else if (p < 53 + 676)
        snprintf(out, 32, "%c%c", (char)('a' + (int)((p - 53) / 26)), (char)('a' + (int)((p - 53) % 26)));
    else
        snprintf(out, 32, "\xE2\x96\x81w%u", p);
}

static int32_t piece_type(uint32_t i) {
    if (i == 0) return TOKEN_UNKNOWN;
    if (i < 3) return TOKEN_CONTROL;
    return i < FIRST_PIECE ? TOKEN_BYTE : TOKEN_NORMAL;
}

/* ascii: letters (U+0100 and following ones) in place of the bytes from 0x80, so that any answer is
 * UTF-8, and has as many tokens when it is read again. */
static void add_vocab(QsfGgufBuild *b, bool ascii, uint32_t n_base, const char *const *texts,
                      const int32_t *more_types, uint32_t n_more) {
    uint32_t n = n_base + n_more;
    char(*text)[32] = calloc(n, sizeof *text);
    const char **ptr = calloc(n, sizeof *ptr);
    float *scores = calloc(n, sizeof *scores);
    int32_t *types = calloc(n, sizeof *types);
    for (uint32_t i = 0; text != NULL && ptr != NULL && scores != NULL && types != NULL && i < n; i++) {
        piece_text(i, text[i]);
        ptr[i] = i < n_base ? text[i] : texts[i - n_base];
        scores[i] = i < FIRST_PIECE ? 0.0f : -(float)(i - FIRST_PIECE);
        types[i] = i < n_base ? piece_type(i) : more_types[i - n_base];
        if (!ascii || i < 3 + 0x80 || i >= FIRST_PIECE) continue;
        const unsigned letter = 0x100 + i - (3 + 0x80);
        snprintf(text[i], sizeof text[i], "%c%c", (char)(0xC0 | letter >> 6), (char)(0x80 | (letter & 63)));
        types[i] = TOKEN_NORMAL;
    }
    qsf_gb_str(b, "tokenizer.ggml.model", "llama");
    qsf_gb_strings(b, "tokenizer.ggml.tokens", ptr, n);
    qsf_gb_array(b, "tokenizer.ggml.scores", QSF_META_F32, n, scores, n * sizeof *scores);
    qsf_gb_array(b, "tokenizer.ggml.token_type", QSF_META_I32, n, types, n * sizeof *types);
    qsf_gb_u32(b, "tokenizer.ggml.bos_token_id", 1);
    qsf_gb_u32(b, "tokenizer.ggml.eos_token_id", 2);
    qsf_gb_u32(b, "tokenizer.ggml.unknown_token_id", 0);
    free(text);
    free(ptr);
    free(scores);
    free(types);
}

void qsf_gb_tiny_vocab(QsfGgufBuild *b, uint32_t n) { add_vocab(b, false, n, NULL, NULL, 0); }

void qsf_gb_tiny_vocab_with(QsfGgufBuild *b, uint32_t n_base, const char *const *texts,
                            const int32_t *more_types, uint32_t n_more) {
    add_vocab(b, false, n_base, texts, more_types, n_more);
}

static void with_default(uint32_t *v, uint32_t fallback) {
    if (*v == 0) *v = fallback;
}

static QsfTinySpec completed(const QsfTinySpec *spec) {
    QsfTinySpec s = spec != NULL ? *spec : (QsfTinySpec){ 0 };
    with_default(&s.layers, 2);
    with_default(&s.hidden, 64);
    with_default(&s.heads, 4);
    with_default(&s.kv_heads, 2);
    with_default(&s.head_dim, s.hidden / s.heads);
    with_default(&s.ffn, 128);
    with_default(&s.vocab, 300);
    with_default(&s.ctx, 256);
    if (s.seed == 0) s.seed = 1;
    return s;
}

/* Elements of a block; 0: a type that is not written. */
static uint32_t block_of(uint32_t type) {
    if (type == TYPE_F32 || type == TYPE_F16) return 1;
    if (type == TYPE_Q4_0 || type == TYPE_Q8_0) return 32;
    return type == TYPE_Q3_K || type == TYPE_Q6_K ? 256 : 0;
}

static bool spec_ok(const QsfTinySpec *s) {
    const uint32_t n = block_of(s->wtype);
    if (s->letters && (s->tied || s->wtype > TYPE_F16 || s->vocab > FIRST_NUMBERED)) return false;
    if (s->vocab < FIRST_PIECE + 1 || s->heads % s->kv_heads != 0 || n == 0) return false;
    return s->hidden % n == 0 && s->ffn % n == 0 && s->heads * s->head_dim % n == 0;
}

static void add_hparams(QsfGgufBuild *b, const QsfTinySpec *s) {
    qsf_gb_str(b, "general.architecture", "llama");
    qsf_gb_str(b, "general.name", "tiny random llama");
    qsf_gb_u32(b, "llama.block_count", s->layers);
    qsf_gb_u32(b, "llama.embedding_length", s->hidden);
    qsf_gb_u32(b, "llama.feed_forward_length", s->ffn);
    qsf_gb_u32(b, "llama.context_length", s->ctx);
    qsf_gb_u32(b, "llama.attention.head_count", s->heads);
    qsf_gb_u32(b, "llama.attention.head_count_kv", s->kv_heads);
    qsf_gb_u32(b, "llama.attention.key_length", s->head_dim);
    qsf_gb_u32(b, "llama.attention.value_length", s->head_dim);
    qsf_gb_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    qsf_gb_u32(b, "llama.rope.dimension_count", s->head_dim);
    qsf_gb_u32(b, "llama.vocab_size", s->vocab);
    if (s->chat_template != NULL) qsf_gb_str(b, "tokenizer.chat_template", s->chat_template);
}

static void add_layer(QsfGgufBuild *b, const QsfTinySpec *s, uint32_t layer, uint64_t *state) {
    uint64_t q = (uint64_t)s->heads * s->head_dim, kv = (uint64_t)s->kv_heads * s->head_dim, h = s->hidden,
             f = s->ffn;
    const struct {
        const char *name;
        uint64_t cols, rows;
    } mats[] = { { "attn_q", h, q },   { "attn_k", h, kv }, { "attn_v", h, kv }, { "attn_output", q, h },
                 { "ffn_gate", h, f }, { "ffn_up", h, f },  { "ffn_down", f, h } };
    char name[64];
    snprintf(name, sizeof name, "blk.%u.attn_norm.weight", layer);
    add_random(b, name, TYPE_F32, h, 0, 1.0f, 0.1f, state);
    snprintf(name, sizeof name, "blk.%u.ffn_norm.weight", layer);
    add_random(b, name, TYPE_F32, h, 0, 1.0f, 0.1f, state);
    for (size_t i = 0; i < sizeof mats / sizeof *mats; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, mats[i].name);
        const bool adds = i == 3 || i == 6;
        add_rows(b, name, s->wtype, mats[i].cols, mats[i].rows, s->twins,
                 s->letters && adds ? LETTERS_ADD_NOTHING : ANY, 0.0f, 1.7f / sqrtf((float)mats[i].cols),
                 state);
        if (!s->biases || i > 3) continue;
        snprintf(name, sizeof name, "blk.%u.%s.bias", layer, mats[i].name);
        add_random(b, name, TYPE_F32, mats[i].rows, 0, 0.0f, 0.1f, state);
    }
}

int qsf_test_write_tiny_llama(const char *path, const QsfTinySpec *spec) {
    QsfTinySpec s = completed(spec);
    QsfGgufBuild b = { 0 };
    uint64_t state = s.seed;
    if (!spec_ok(&s)) return -1;
    add_hparams(&b, &s);
    add_vocab(&b, s.ascii, s.vocab, NULL, NULL, 0);
    add_rows(&b, "token_embd.weight", s.wtype, s.hidden, s.vocab, false, s.letters ? LETTERS_EMBED : ANY,
             0.0f, 1.0f, &state);
    if (s.rope_freqs) add_random(&b, "rope_freqs.weight", TYPE_F32, s.head_dim / 2, 0, 2.0f, 1.0f, &state);
    for (uint32_t l = 0; l < s.layers; l++) add_layer(&b, &s, l, &state);
    add_random(&b, "output_norm.weight", TYPE_F32, s.hidden, 0, 1.0f, 0.1f, &state);
    if (!s.tied)
        add_rows(&b, "output.weight", s.wtype, s.hidden, s.vocab, false, s.letters ? LETTERS_HEAD : ANY,
                 s.head_mean, 4.0f / sqrtf((float)s.hidden), &state);
    int rc = qsf_gb_write(&b, path);
    qsf_gb_free(&b);
    return rc;
}
