/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens adapters. Keys and names: ggml-org/llama.cpp convert_lora_to_gguf.py, src/llama-adapter.cpp,
 * tools/cvector-generator. */
#include "src/model/adapter.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/dtype.h"
#include "src/model/adapter_impl.h"

#define ALPHA      "adapter.lora.alpha"
#define SQRT_RANK  "adapter.lora.sqrt_rank" /* of file/hf/peft.c */
#define INVOCATION "adapter.alora.invocation_tokens"
#define SHOWN      40

int qsf_adapter_fail(const char *path, QsfErr *err, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int rc = qsf_err_setv(err, QSF_E_MODEL, fmt, ap);
    va_end(ap);
    (void)qsf_err_prefix(err, "%s", path);
    return rc;
}

/* ---- what kind of file it is ---- */

/* Checks that a key is a string and has one of two values; the second may be NULL. */
static int check_word(const QsfSource *src, const char *key, const char *want, const char *what,
                      QsfErr *err) {
    const char *text;
    int rc = qsf_meta_str(src, key, &text, NULL, err);
    if (rc != QSF_OK) return rc;
    if (text == NULL)
        return qsf_adapter_fail(qsf_source_path(src), err, "is not %s: the metadata key '%s' is missing",
                                what, key);
    if (strcmp(text, want) == 0) return QSF_OK;
    return qsf_adapter_fail(qsf_source_path(src), err,
                            "is not %s: metadata key '%s' is '%.*s', expected '%s'", what, key, SHOWN, text,
                            want);
}

static int check_arch(const QsfSource *src, const QsfModel *m, QsfErr *err) {
    const char *text;
    int rc = qsf_meta_str(src, "general.architecture", &text, NULL, err);
    if (rc != QSF_OK) return rc;
    if (text != NULL && strcmp(text, m->hp.arch->name) == 0) return QSF_OK;
    return qsf_adapter_fail(qsf_source_path(src), err,
                            "is an adapter for models of the architecture '%.*s', but the model is of '%s'",
                            SHOWN, text != NULL ? text : "", m->hp.arch->name);
}

static int read_alpha(QsfAdapter *a, QsfErr *err) {
    int rc = qsf_meta_f32(a->src, ALPHA, NAN, &a->alpha, err);
    if (rc != QSF_OK) return rc;
    if (!qsf_meta_has(a->src, ALPHA))
        return qsf_adapter_fail(a->path, err, "the metadata key '" ALPHA "' is missing");
    if (isfinite(a->alpha) && a->alpha >= 0) return QSF_OK;
    return qsf_adapter_fail(a->path, err, "metadata key '" ALPHA "' is %g, expected a number of 0 or more",
                            (double)a->alpha);
}

/* The tokens from which on an aLoRA acts. */
static int read_invocation(QsfAdapter *a, const QsfModel *m, QsfErr *err) {
    QsfMetaArray array;
    bool present;
    int rc = qsf_meta_array_open(a->src, INVOCATION, QSF_META_I64, &array, &present, err);
    if (rc != QSF_OK || !present) return rc;
    if (array.count == 0 || array.count > QSF_ADAPTER_TOKENS)
        rc = qsf_adapter_fail(a->path, err,
                              "metadata key '" INVOCATION "' has %" PRIu64 " tokens, expected 1 to %u",
                              array.count, QSF_ADAPTER_TOKENS);
    for (uint64_t i = 0; rc == QSF_OK && i < array.count; i++) {
        int64_t id;
        rc = qsf_meta_array_i64(&array, &id, err);
        if (rc == QSF_OK && (id < 0 || id >= m->hp.n_vocab))
            rc = qsf_adapter_fail(a->path, err,
                                  "metadata key '" INVOCATION "' has the token %" PRId64
                                  ", but the model has %u tokens",
                                  id, m->hp.n_vocab);
        if (rc == QSF_OK) a->invocation[a->n_invocation++] = (int32_t)id;
    }
    qsf_meta_array_close(&array);
    return rc;
}

/* ---- matrices without adapters ---- */

/* What an adapter in GGUF computes is defined by ggml-org/llama.cpp. In its src/models: matrices of a block
 * that are multiplied by ggml_mul_mat instead of build_lora_mm, and the same of the head. */
static const char *const latent[] = {
    "deepseek2", "deepseek32",  "glm-dsa",     "mistral4",  "minicpm3",
    "plm",       "kimi-linear", "bailingmoe3", "dots3note", "deepseek2-ocr"
};
static const char *const plain_head[] = { "deepseek2", "deepseek32", "glm-dsa", "mistral4", "kimi-linear" };
static const char *const latent_parts[] = { "attn_q.",    "attn_q_a.", "attn_q_b.", "attn_kv_a_mqa.",
                                            "attn_kv_b.", "attn_k_b.", "attn_v_b.", "indexer." };

static bool in_list(const char *const *list, size_t n, const char *word) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], word) == 0) return true;
    return false;
}
#define IN(list, word) in_list(list, sizeof(list) / sizeof *(list), word)

static bool leaves_out(const char *arch, const char *name) {
    unsigned block;
    int end = 0;
    if (strcmp(name, "output.weight") == 0) return IN(plain_head, arch);
    if (!IN(latent, arch) || sscanf(name, "blk.%u.%n", &block, &end) != 1 || end == 0) return false;
    for (size_t i = 0; i < sizeof latent_parts / sizeof *latent_parts; i++)
        if (strncmp(name + end, latent_parts[i], strlen(latent_parts[i])) == 0) return true;
    return false;
}

/* ---- its matrices ---- */

/* Returns the length of the name of the model's tensor, and which half of the pair it is ('a', 'b'); 0: the
 * name has another end. */
static size_t base_length(const char *name, char *half) {
    static const char end[] = ".lora_";
    const size_t n = strlen(name), k = sizeof end; /* with the letter instead of the NUL */
    if (n <= k || strncmp(name + n - k, end, k - 1) != 0) return 0;
    *half = name[n - 1];
    return *half == 'a' || *half == 'b' ? n - k : 0;
}

/* Returns the other half of a tensor; NULL if there is none. */
static const QsfTensor *other_half(const QsfAdapter *a, const QsfTensor *t, size_t len, char half) {
    char name[512];
    if (len >= sizeof name - 8) return NULL;
    memcpy(name, t->name, len);
    memcpy(name + len, half == 'a' ? ".lora_b" : ".lora_a", 8);
    return qsf_source_find_tensor(a->src, name);
}

static int check_type(const QsfAdapter *a, const QsfTensor *t, QsfErr *err) {
    const QsfDtype *d = qsf_dtype(t->dtype);
    if (d != NULL && d->supported && strcmp(d->name, "I2_S") != 0) return QSF_OK;
    return qsf_adapter_fail(a->path, err, "tensor '%s' is of type %s, which adapters cannot have", t->name,
                            d != NULL ? d->name : "?");
}

static int bad_shape(const QsfAdapter *a, const QsfTensor *t, const char *want, QsfErr *err) {
    return qsf_adapter_fail(a->path, err,
                            "tensor '%s' has the shape %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                            ", expected %s",
                            t->name, t->ne[0], t->ne[1], t->ne[2], t->ne[3], want);
}

/* Sizes that are wrong by themselves, whatever the model. */
static int check_pair(const QsfAdapter *a, const QsfAdapterPair *p, QsfErr *err) {
    const uint64_t rank = p->table ? p->a->ne[0] : p->a->ne[1];
    char want[120];
    int rc = check_type(a, p->a, err);
    if (rc == QSF_OK) rc = check_type(a, p->b, err);
    if (rc != QSF_OK) return rc;
    if (rank < 1 || rank > QSF_ADAPTER_RANK_MAX)
        return qsf_adapter_fail(a->path, err, "tensor '%s' has the rank %" PRIu64 ", expected 1 to %u",
                                p->a->name, rank, QSF_ADAPTER_RANK_MAX);
    if (p->b->ne[0] != rank || p->b->ne[2] != p->a->ne[2] || p->b->ne[3] != 1 || p->a->ne[3] != 1) {
        (void)snprintf(want, sizeof want, "%" PRIu64 " x N x %" PRIu64 ", the rank of '.lora_a' first", rank,
                       p->a->ne[2]);
        return bad_shape(a, p->b, want, err);
    }
    return QSF_OK;
}

static int add_pair(QsfAdapterSet *s, QsfAdapter *a, const QsfTensor *t, QsfErr *err) {
    char half;
    const size_t len = base_length(t->name, &half);
    if (len == 0)
        return qsf_adapter_fail(
            a->path, err,
            "tensor '%s' is neither '.lora_a' nor '.lora_b' of a matrix; ignoring it would give "
            "wrong answers",
            t->name);
    const QsfTensor *other = other_half(a, t, len, half);
    if (other == NULL)
        return qsf_adapter_fail(a->path, err, "tensor '%s' has no counterpart '.lora_%c'", t->name,
                                half == 'a' ? 'b' : 'a');
    if (half == 'b') return QSF_OK;
    QsfAdapterPair *p = &a->pair[a->n_pairs];
    *p = (QsfAdapterPair){ .name = qsf_arena_strdup(&s->arena, t->name, len, err), .a = t, .b = other };
    if (p->name == NULL) return err->code;
    p->left_out = !qsf_source_from_dir(a->src) && leaves_out(s->arch, p->name);
    p->table = strncmp(p->name, "token_embd", 10) == 0;
    int rc = check_pair(a, p, err);
    if (rc != QSF_OK) return rc;
    p->rank = (uint32_t)p->b->ne[0];
    a->n_pairs++;
    return QSF_OK;
}

static int by_name(const void *x, const void *y) {
    return strcmp(((const QsfAdapterPair *)x)->name, ((const QsfAdapterPair *)y)->name);
}

static int read_pairs(QsfAdapterSet *s, QsfAdapter *a, QsfErr *err) {
    const uint64_t n = qsf_source_n_tensors(a->src);
    int rc = QSF_OK;
    if (n == 0 || n > UINT32_MAX / 2) return qsf_adapter_fail(a->path, err, "has no tensors");
    a->pair = qsf_arena_alloc(&s->arena, (size_t)n * sizeof *a->pair, 0, err);
    if (a->pair == NULL) return err->code;
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) rc = add_pair(s, a, qsf_source_tensor(a->src, i), err);
    if (rc == QSF_OK) qsort(a->pair, a->n_pairs, sizeof *a->pair, by_name);
    return rc;
}

static int open_lora(QsfAdapterSet *s, const QsfModel *m, const QsfAdapterSpec *spec, QsfErr *err) {
    QsfAdapter *a = &s->adapter[s->n++];
    a->scale = spec->scale;
    a->path = qsf_arena_strdup(&s->arena, spec->path, strlen(spec->path), err);
    if (a->path == NULL) return err->code;
    const QsfHparams *hp = &m->hp;
    const QsfAdapterBase base = { hp->arch->name, hp->n_named,  hp->hidden, hp->n_heads,
                                  hp->n_kv_heads, hp->head_dim, hp->n_vocab };
    int rc = qsf_adapter_source(&a->src, spec, &base, s->arena.ledger, &a->src_bytes, err);
    a->borrowed = spec->src != NULL;
    a->identity = spec->identity;
    if (rc == QSF_OK) rc = check_word(a->src, "general.type", "adapter", "an adapter", err);
    if (rc == QSF_OK) rc = check_word(a->src, "adapter.type", "lora", "a LoRA adapter", err);
    if (rc == QSF_OK) rc = check_arch(a->src, m, err);
    if (rc == QSF_OK) rc = read_alpha(a, err);
    if (rc == QSF_OK) rc = qsf_meta_bool(a->src, SQRT_RANK, false, &a->sqrt_rank, err);
    if (rc == QSF_OK) rc = read_invocation(a, m, err);
    return rc == QSF_OK ? read_pairs(s, a, err) : rc;
}

/* ---- a set ---- */

int qsf_adapters_open(QsfAdapterSet **out, const QsfModel *m, const QsfAdapterSpec *lora, uint32_t n,
                      const QsfAdapterSpec *control, uint32_t n_controls, bool exact, QsfLedger *ledger,
                      QsfErr *err) {
    QsfErr own = { 0 };
    *out = NULL;
    if (err == NULL) err = &own;
    if (n == 0 && n_controls == 0) return QSF_OK;
    const uint64_t before = ledger->used[QSF_MEM_META];
    uint64_t borrowed = 0;
    QsfAdapterSet *s = calloc(1, sizeof *s);
    if (s == NULL) return qsf_err_memory(err, "adapters");
    qsf_arena_init(&s->arena, ledger, QSF_MEM_META, "adapters", 0);
    s->exact = exact;
    s->arch = m->hp.arch->name;
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++) rc = open_lora(s, m, &lora[i], err);
    for (uint32_t i = 0; rc == QSF_OK && i < n_controls; i++)
        rc = qsf_adapter_open_control(s, m, &control[i], err);
    if (rc == QSF_OK) rc = qsf_adapters_match(s, m, err);
    for (uint32_t i = 0; i < n; i++) borrowed += lora[i].src != NULL ? lora[i].src_bytes : 0;
    for (uint32_t i = 0; i < n_controls; i++) borrowed += control[i].src != NULL ? control[i].src_bytes : 0;
    s->meta_bytes = ledger->used[QSF_MEM_META] - before + borrowed;
    if (rc != QSF_OK) {
        qsf_adapters_close(s);
        return rc;
    }
    *out = s;
    return QSF_OK;
}

void qsf_adapters_close(QsfAdapterSet *s) {
    if (s == NULL) return;
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->adapter[i].borrowed) qsf_source_close(s->adapter[i].src);
    for (uint32_t i = 0; i < s->n_controls; i++)
        if (!s->control[i].borrowed) qsf_source_close(s->control[i].src);
    qsf_arena_destroy(&s->arena);
    free(s);
}

/* ---- open files of another set ---- */

int qsf_adapter_source(QsfSource **src, const QsfAdapterSpec *spec, const QsfAdapterBase *base,
                       QsfLedger *ledger, uint64_t *bytes, QsfErr *err) {
    const uint64_t before = ledger->used[QSF_MEM_META];
    *src = spec->src;
    *bytes = spec->src_bytes;
    if (*src != NULL) return QSF_OK;
    int rc = base != NULL ? qsf_source_open_adapter(src, spec->path, base, ledger, err)
                          : qsf_source_open_control(src, spec->path, ledger, err);
    *bytes = ledger->used[QSF_MEM_META] - before;
    return rc;
}

void qsf_adapters_lend(const QsfAdapterSet *s, bool control, QsfAdapterSpec *spec, uint32_t n) {
    for (uint32_t k = 0; s != NULL && k < n; k++) {
        for (uint32_t i = 0; !control && i < s->n; i++) {
            const QsfAdapter *a = &s->adapter[i];
            if (strcmp(a->path, spec[k].path) == 0)
                spec[k] = (QsfAdapterSpec){ spec[k].path, spec[k].scale, a->src, a->identity, a->src_bytes };
        }
        for (uint32_t i = 0; control && i < s->n_controls; i++) {
            const QsfControl *c = &s->control[i];
            if (strcmp(c->path, spec[k].path) == 0)
                spec[k] = (QsfAdapterSpec){ spec[k].path, spec[k].scale, c->src, c->identity, c->src_bytes };
        }
    }
}

void qsf_adapters_take(QsfAdapterSet *s, QsfAdapterSet *from) {
    for (uint32_t i = 0; from != NULL && i < from->n; i++)
        for (uint32_t k = 0; s != NULL && k < s->n; k++)
            if (s->adapter[k].src == from->adapter[i].src) from->adapter[i].borrowed = true;
    for (uint32_t i = 0; from != NULL && i < from->n_controls; i++)
        for (uint32_t k = 0; s != NULL && k < s->n_controls; k++)
            if (s->control[k].src == from->control[i].src) from->control[i].borrowed = true;
    for (uint32_t k = 0; s != NULL && k < s->n; k++) s->adapter[k].borrowed = false;
    for (uint32_t k = 0; s != NULL && k < s->n_controls; k++) s->control[k].borrowed = false;
}

void qsf_adapters_notice(const QsfAdapterSet *s, char *dst, size_t cap) {
    dst[0] = '\0';
    for (uint32_t k = 0; s != NULL && k < s->n && dst[0] == '\0'; k++) {
        const QsfAdapter *a = &s->adapter[k];
        uint32_t n = 0;
        for (uint32_t i = 0; i < a->n_pairs; i++) n += a->pair[i].left_out;
        if (n > 0)
            (void)snprintf(
                dst, cap,
                "%s: adapters of the attention and the head are left out (%u of %u), because llama.cpp does "
                "not apply those in GGUF to them in %s models",
                a->path, n, a->n_pairs, s->arch);
    }
}

float qsf_adapter_factor(const QsfAdapter *a, const QsfAdapterPair *p) {
    const float rank = a->sqrt_rank ? sqrtf((float)p->rank) : (float)p->rank;
    return a->alpha > 0 ? a->scale * a->alpha / rank : a->scale;
}
