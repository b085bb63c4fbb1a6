/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derives the fixed header fields from metadata and compares them with it. Key names: ggml-org/ggml
 * docs/gguf.md. */
#include "src/file/qsf/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY_MAX       256
#define THETA_DEFAULT 10000.0f /* default of the key: ggml-org/llama.cpp src/llama-model.cpp */

/* A number in the header and its key; "<architecture>" is prepended to a key that begins with a dot. */
typedef struct NumberRow {
    uint16_t member;
    uint8_t at; /* header byte */
    bool token;
    const char *key;
} NumberRow;

#define N(member, at, token, key) \
    { offsetof(QsfFileHeader, member), at, token, key }
static const NumberRow numbers[] = {
    N(n_layers, 16, false, ".block_count"),          N(hidden, 20, false, ".embedding_length"),
    N(n_heads, 24, false, ".attention.head_count"),  N(n_kv_heads, 28, false, ".attention.head_count_kv"),
    N(n_ctx, 36, false, ".context_length"),          N(ffn, 40, false, ".feed_forward_length"),
    N(head_dim, 44, false, ".attention.key_length"), N(bos, 80, true, "tokenizer.ggml.bos_token_id"),
    N(eos, 84, true, "tokenizer.ggml.eos_token_id"), N(pad, 88, true, "tokenizer.ggml.padding_token_id"),
};
#define N_NUMBERS (sizeof numbers / sizeof *numbers)

/* Model families that have a code in the header. */
typedef struct ArchRow {
    const char *name;
    uint32_t code, also; /* also: an alternative code that a file may have */
    uint8_t act, norm, pos;
} ArchRow;

static const ArchRow archs[] = {
    { "gpt2", QSFF_GPT2, QSFF_GPT2, QSFF_GELU, QSFF_LAYER_NORM, QSFF_LEARNED },
    { "llama", QSFF_LLAMA, QSFF_MISTRAL, QSFF_SILU, QSFF_RMS_NORM, QSFF_ROPE },
    { "mistral", QSFF_MISTRAL, QSFF_MISTRAL, QSFF_SILU, QSFF_RMS_NORM, QSFF_ROPE },
    { "phi2", QSFF_PHI, QSFF_PHI, QSFF_GELU, QSFF_LAYER_NORM, QSFF_ROPE },
    { "phi3", QSFF_PHI, QSFF_PHI, QSFF_SILU, QSFF_RMS_NORM, QSFF_ROPE },
};

typedef struct Meta {
    const QsfSource *s;
    const char *arch;
    QsfErr *err;
    char key[KEY_MAX];
} Meta;

static uint32_t *number_of(QsfFileHeader *h, const NumberRow *r) {
    return (uint32_t *)(void *)((char *)h + r->member);
}

static const char *full_key(Meta *m, const char *key) {
    snprintf(m->key, sizeof m->key, "%s%s", key[0] == '.' ? m->arch : "", key);
    return m->key;
}

static const ArchRow *arch_row(const char *name) {
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (strcmp(archs[i].name, name) == 0) return &archs[i];
    return NULL;
}

/* Reads the number at m->key, or the first element of an array; *present is false if the key is absent. */
static int read_number(Meta *m, bool *present, int64_t *v) {
    const QsfMetaEntry *e = qsf_meta_find(&m->s->meta, m->key);
    *present = e != NULL;
    if (e == NULL) return QSF_OK;
    if (e->type != QSF_META_ARRAY) return qsf_meta_i64(m->s, m->key, 0, v, m->err);
    QsfMetaArray a;
    int rc = qsf_meta_array_open(m->s, m->key, QSF_META_I64, &a, present, m->err);
    if (rc != QSF_OK) return rc;
    *present = a.count > 0;
    if (*present) rc = qsf_meta_array_i64(&a, v, m->err);
    qsf_meta_array_close(&a);
    return rc;
}

/* Converts to the value in the header; a token outside the vocabulary becomes QSFF_NO_TOKEN. */
static int read_u32(Meta *m, const char *key, bool token, uint32_t n_vocab, bool *present, uint32_t *out) {
    int64_t v = 0;
    full_key(m, key);
    int rc = read_number(m, present, &v);
    if (rc != QSF_OK || !*present) return rc;
    if (token) {
        *out = v < 0 || v >= n_vocab ? QSFF_NO_TOKEN : (uint32_t)v;
    } else if (v < 0 || v > UINT32_MAX) {
        return qsf_err_set(m->err, QSF_E_MODEL, "%s: metadata key '%s' is %" PRId64 ", out of range",
                           qsf_source_path(m->s), m->key, v);
    } else {
        *out = (uint32_t)v;
    }
    return QSF_OK;
}

/* The token list takes precedence: vocab_size of some files is that of the model before padding. */
static int read_vocab(Meta *m, bool *present, uint32_t *out) {
    QsfMetaArray a;
    full_key(m, "tokenizer.ggml.tokens");
    int rc = qsf_meta_array_open(m->s, m->key, QSF_META_STRING, &a, present, m->err);
    if (rc != QSF_OK) return rc;
    uint64_t n = a.count;
    if (*present) qsf_meta_array_close(&a);
    if (!*present || n == 0) return read_u32(m, ".vocab_size", false, 0, present, out);
    *out = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
    return QSF_OK;
}

/* Sets the codes from the name of the family or else from the metadata. */
static void read_codes(Meta *m, QsfFileHeader *h) {
    const ArchRow *row = arch_row(m->arch);
    h->arch = row != NULL ? row->code : QSFF_CUSTOM;
    h->act = row != NULL ? row->act : QSFF_BY_META;
    h->norm = h->pos = QSFF_BY_META;
    if (qsf_meta_has(m->s, full_key(m, ".attention.layer_norm_rms_epsilon"))) {
        h->norm = QSFF_RMS_NORM;
    } else if (qsf_meta_has(m->s, full_key(m, ".attention.layer_norm_epsilon"))) {
        h->norm = QSFF_LAYER_NORM;
    }
    if (qsf_meta_has(m->s, full_key(m, ".rope.freq_base"))) /* without it, the default is the family's */
        h->pos = QSFF_ROPE;
    if (row != NULL) {
        h->norm = row->norm;
        h->pos = row->pos;
    }
}

static int read_arch(Meta *m) {
    int rc = qsf_meta_str(m->s, "general.architecture", &m->arch, NULL, m->err);
    if (rc == QSF_OK && m->arch == NULL)
        rc = qsf_err_set(m->err, QSF_E_MODEL, "%s: metadata key 'general.architecture' is missing",
                         qsf_source_path(m->s));
    return rc;
}

/* Checks the number of layers before any loop relies on it. */
static int check_layers(Meta *m, uint32_t n) {
    if (n >= 1 && n <= QSFF_LAYERS_MAX) return QSF_OK;
    if (!qsf_meta_has(m->s, full_key(m, ".block_count")))
        return qsf_err_set(m->err, QSF_E_MODEL, "%s: metadata key '%s' is missing", qsf_source_path(m->s),
                           m->key);
    return qsf_err_set(m->err, QSF_E_MODEL, "%s: metadata key '%s' is %" PRIu32 ", expected 1 to %u",
                       qsf_source_path(m->s), m->key, n, QSFF_LAYERS_MAX);
}

int qsf_fields_of_source(QsfFileHeader *h, const QsfSource *s, QsfErr *err) {
    Meta m = { .s = s, .err = err };
    bool present;
    int rc = read_arch(&m);
    if (rc != QSF_OK) return rc;
    h->n_vocab = 0;
    rc = read_vocab(&m, &present, &h->n_vocab);
    const QsfTensor *embed = s->n_tensors > 0 ? qsf_source_find_tensor(s, "token_embd.weight") : NULL;
    if (rc == QSF_OK && !present && embed != NULL && embed->ne[1] <= UINT32_MAX)
        h->n_vocab = (uint32_t)embed->ne[1];
    for (size_t i = 0; rc == QSF_OK && i < N_NUMBERS; i++) {
        *number_of(h, &numbers[i]) = numbers[i].token ? QSFF_NO_TOKEN : 0;
        rc = read_u32(&m, numbers[i].key, numbers[i].token, h->n_vocab, &present, number_of(h, &numbers[i]));
    }
    if (rc == QSF_OK) rc = check_layers(&m, h->n_layers);
    if (rc != QSF_OK) return rc;
    if (h->head_dim == 0 && h->n_heads != 0 && h->hidden % h->n_heads == 0)
        h->head_dim = h->hidden / h->n_heads;
    read_codes(&m, h);
    h->rope_theta = 0.0f;
    if (h->pos != QSFF_ROPE) return QSF_OK;
    return qsf_meta_f32(s, full_key(&m, ".rope.freq_base"), THETA_DEFAULT, &h->rope_theta, err);
}

static int disagree(const Meta *m, unsigned at, uint64_t here, uint64_t there) {
    return qsf_err_set(m->err, QSF_E_MODEL,
                       "%s: the header says %" PRIu64 " at byte offset %u, metadata key '%s' says %" PRIu64,
                       qsf_source_path(m->s), here, at, m->key, there);
}

/* Adds an entry with a copy of m->key, which lives as long as s. */
static int add_entry(Meta *m, QsfSource *s, QsfMetaEntry *e) {
    e->key = qsf_arena_strdup(&s->arena, m->key, strlen(m->key), m->err);
    return e->key == NULL ? m->err->code : qsf_meta_make(s, e, m->err);
}

/* Is v what the number would be without its key? */
static bool is_usual(const QsfFileHeader *h, const uint32_t *member, uint32_t v) {
    if (member == &h->n_kv_heads) return v == h->n_heads;
    if (member == &h->head_dim) return h->n_heads > 0 && (uint64_t)v * h->n_heads == h->hidden;
    return member == &h->n_vocab;
}

static int add_number(Meta *m, QsfSource *s, const QsfFileHeader *h, const uint32_t *member) {
    QsfMetaEntry e = { .type = QSF_META_U32, .v.u = *member, .derived = is_usual(h, member, *member) };
    return add_entry(m, s, &e);
}

static int apply_number(Meta *m, QsfSource *s, const NumberRow *r, QsfFileHeader *h) {
    bool present;
    uint32_t here = *number_of(h, r), there = 0;
    int rc = read_u32(m, r->key, r->token, h->n_vocab, &present, &there);
    if (rc != QSF_OK) return rc;
    const bool none = r->token ? here == QSFF_NO_TOKEN : here == 0; /* the model has no such number */
    if (present) return here == there ? QSF_OK : disagree(m, r->at, here, there);
    return none ? QSF_OK : add_number(m, s, h, number_of(h, r));
}

static int apply_vocab(Meta *m, QsfSource *s, const QsfFileHeader *h) {
    bool present;
    uint32_t n = 0;
    int rc = read_vocab(m, &present, &n);
    if (rc != QSF_OK) return rc;
    if (present) return n == h->n_vocab ? QSF_OK : disagree(m, 32, h->n_vocab, n);
    return add_number(m, s, h, &h->n_vocab);
}

static int apply_theta(Meta *m, QsfSource *s, const QsfFileHeader *h) {
    float v = 0.0f;
    full_key(m, ".rope.freq_base");
    if (h->pos != QSFF_ROPE) return QSF_OK;
    if (!qsf_meta_has(s, m->key)) {
        QsfMetaEntry e = { .type = QSF_META_F32,
                           .v.f = (double)h->rope_theta,
                           .derived = h->rope_theta == THETA_DEFAULT };
        return add_entry(m, s, &e);
    }
    int rc = qsf_meta_f32(s, m->key, 0.0f, &v, m->err);
    if (rc != QSF_OK || memcmp(&v, &h->rope_theta, sizeof v) == 0) return rc;
    return qsf_err_set(m->err, QSF_E_MODEL,
                       "%s: the header says %g at byte offset 52, metadata key '%s' says %g",
                       qsf_source_path(s), (double)h->rope_theta, m->key, (double)v);
}

/* Checks the family and the codes that follow from it. */
static int check_codes(Meta *m, const QsfFileHeader *h) {
    QsfFileHeader want = { 0 };
    const ArchRow *row = arch_row(m->arch);
    if (h->arch != QSFF_CUSTOM && (row == NULL || (h->arch != row->code && h->arch != row->also)))
        return qsf_err_set(m->err, QSF_E_MODEL,
                           "%s: the header says architecture %" PRIu32 " at byte offset 12, metadata key "
                           "'general.architecture' says '%s'",
                           qsf_source_path(m->s), h->arch, m->arch);
    read_codes(m, &want);
    const uint8_t here[] = { h->act, h->norm, h->pos }, there[] = { want.act, want.norm, want.pos };
    for (unsigned i = 0; i < 3; i++)
        if (here[i] != there[i] && here[i] != QSFF_BY_META && there[i] != QSFF_BY_META)
            return qsf_err_set(m->err, QSF_E_MODEL,
                               "%s: the code at byte offset %u is %u, a model of architecture '%s' has %u",
                               qsf_source_path(m->s), 49 + i, here[i], m->arch, there[i]);
    return QSF_OK;
}

/* Keeps the codes that the metadata does not decide. */
static void keep_codes(Meta *m, QsfSource *s, const QsfFileHeader *h) {
    QsfFileHeader from_meta = { 0 };
    read_codes(m, &from_meta);
    s->has_codes = true;
    s->codes[0] = from_meta.act == QSFF_BY_META ? h->act : QSFF_BY_META;
    s->codes[1] = from_meta.norm == QSFF_BY_META ? h->norm : QSFF_BY_META;
    s->codes[2] = from_meta.pos == QSFF_BY_META ? h->pos : QSFF_BY_META;
}

/* Adds general.architecture from the header if the metadata lacks it. */
static int apply_arch(Meta *m, QsfSource *s, const QsfFileHeader *h) {
    static const char *const names[] = { "gpt2", "llama", "llama", "phi2" };
    if (!qsf_meta_has(s, "general.architecture") && h->arch < QSFF_CUSTOM) {
        const char *name = names[h->arch];
        int rc = qsf_meta_make_str(s, "general.architecture", name, strlen(name), m->err);
        if (rc != QSF_OK) return rc;
    }
    return read_arch(m);
}

/* 0 KV heads in the header: as many as heads, unless the metadata also says 0 (of the first layer). */
static int fill_kv_heads(Meta *m, QsfFileHeader *h) {
    bool present;
    uint32_t there = 1;
    if (h->n_kv_heads > 0) return QSF_OK;
    int rc = read_u32(m, ".attention.head_count_kv", false, 0, &present, &there);
    if (rc == QSF_OK && there > 0) h->n_kv_heads = h->n_heads;
    return rc;
}

int qsf_fields_apply(const QsfFileHeader *head, QsfSource *s, QsfErr *err) {
    Meta m = { .s = s, .err = err };
    QsfFileHeader h = *head;
    int rc = apply_arch(&m, s, &h);
    if (rc == QSF_OK) rc = fill_kv_heads(&m, &h);
    if (rc == QSF_OK) rc = check_codes(&m, &h);
    if (rc == QSF_OK) keep_codes(&m, s, &h);
    if (rc == QSF_OK) rc = apply_vocab(&m, s, &h);
    for (size_t i = 0; rc == QSF_OK && i < N_NUMBERS; i++) rc = apply_number(&m, s, &numbers[i], &h);
    return rc == QSF_OK ? apply_theta(&m, s, &h) : rc;
}

int qsf_fields_crc(const QsfSource *s, const char *key, uint32_t have, uint64_t at, bool required,
                   QsfErr *err) {
    uint32_t want = have;
    if (required && !qsf_meta_has(s, key))
        return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' is missing", qsf_source_path(s), key);
    int rc = qsf_meta_u32(s, key, have, &want, err);
    if (rc != QSF_OK || want == have) return rc;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: damaged at byte offset %" PRIu64 " or later: checksum %08" PRIX32
                       ", but '%s' is %08" PRIX32,
                       qsf_source_path(s), at, have, key, want);
}

static int layer_bytes(const QsfSource *s, const QsfIndexEntry *e, uint64_t at, QsfMetaArray *a,
                       uint64_t *bytes, QsfErr *err) {
    int64_t v = e->bytes;
    if (a->count > 0) {
        int rc = qsf_meta_array_i64(a, &v, err);
        if (rc != QSF_OK) return rc;
    }
    if (a->count > 0 ? v < 0 || (e->bytes == QSFF_LONG ? v < QSFF_LONG : v != e->bytes)
                     : e->bytes == QSFF_LONG)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the layer size at byte offset %" PRIu64 " is %" PRIu32
                           ", " QSF_KEY_LAYER_BYTES " has %" PRId64,
                           qsf_source_path(s), at + 8, e->bytes, a->count > 0 ? v : 0);
    *bytes = (uint64_t)v;
    return QSF_OK;
}

int qsf_fields_layer_bytes(const QsfSource *s, const QsfIndexEntry *e, uint32_t n, uint64_t index_off,
                           uint64_t *bytes, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    int rc = qsf_meta_array_open(s, QSF_KEY_LAYER_BYTES, QSF_META_I64, &a, &present, err);
    if (rc == QSF_OK && present && a.count != n)
        rc = qsf_err_set(err, QSF_E_MODEL,
                         "%s: " QSF_KEY_LAYER_BYTES " has %" PRIu64
                         " elements, the index at byte offset %" PRIu64 " %" PRIu32,
                         qsf_source_path(s), a.count, index_off, n);
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++)
        rc = layer_bytes(s, &e[i], index_off + (uint64_t)i * QSFF_INDEX_BYTES, &a, &bytes[i], err);
    if (present) qsf_meta_array_close(&a);
    return rc;
}
