/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads a PEFT directory as the GGUF file of an adapter. Names and settings: huggingface/peft
 * src/peft/tuners/lora/config.py, src/peft/utils/save_and_load.py; aLoRA: alora_invocation_tokens
 * there. Which matrix of GGUF a module is, and in which order its rows are, say the tables of
 * architectures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/blocks.h"
#include "src/file/format.h"
#include "src/file/hf/model.h"

#define MAX_CONFIG (4u << 20)
#define PREFIX     "base_model.model."
#define TARGETS    4u /* matrices of GGUF that one module can be */
#define NAME_BYTES 256

typedef struct Peft {
    QsfHfModel m;
    const QsfAdapterBase *base;
    uint64_t cap;  /* of s->tensors */
    uint64_t rank; /* of all tensors; 0: each has its own */
} Peft;

/* ---- settings ---- */

static int bad(const Peft *p, const char *key, const char *what) {
    return qsf_err_set(p->m.err, QSF_E_MODEL, "%s: '%s' %s", p->m.path, key, what);
}

static bool is_given(const QsfJson *v) {
    const QsfJsonType t = v != NULL ? qsf_json_type(v) : QSF_JSON_NULL;
    if (t == QSF_JSON_NULL || qsf_json_is(v, false)) return false;
    return (t != QSF_JSON_ARRAY && t != QSF_JSON_OBJECT) || qsf_json_size(v) > 0;
}

/* Absent, null, or of the type. */
static bool is_of(const QsfJson *v, QsfJsonType type) {
    const QsfJsonType t = v != NULL ? qsf_json_type(v) : QSF_JSON_NULL;
    return t == QSF_JSON_NULL || t == type;
}

/* Settings with which B (A x) times alpha / rank is not all that the adapter does. */
static int check_settings(const Peft *p) {
    static const char *const others[] = { "use_dora",          "lora_bias",       "layer_replication",
                                          "alpha_pattern",     "use_qalora",      "trainable_token_indices",
                                          "target_parameters", "megatron_config", "arrow_config",
                                          "modules_to_save",   "use_bdlora" };
    static const char *const changed[] = { "pissa", "olora", "corda", "loftq", "lora_ga" };
    const char *type = qsf_json_string(qsf_json_get(p->m.root, "peft_type"), NULL),
               *bias = qsf_json_string(qsf_json_get(p->m.root, "bias"), NULL),
               *init = qsf_json_string(qsf_json_get(p->m.root, "init_lora_weights"), NULL);
    if (type == NULL || strcmp(type, "LORA") != 0)
        return bad(p, "peft_type", "is not LORA, the only type that is supported");
    if (!is_of(qsf_json_get(p->m.root, "bias"), QSF_JSON_STRING) ||
        (bias != NULL && strcmp(bias, "none") != 0))
        return bad(p, "bias", "is not none, which is not supported");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_given(qsf_json_get(p->m.root, others[i])))
            return bad(p, others[i], "is set, which is not supported");
    for (size_t i = 0; init != NULL && i < sizeof changed / sizeof *changed; i++)
        if (strncmp(init, changed[i], strlen(changed[i])) == 0)
            return bad(p, "init_lora_weights",
                       "names a method that changes the weights of the model, which is not "
                       "supported");
    return QSF_OK;
}

static int put_invocation(const Peft *p) {
    const QsfJson *list = qsf_json_get(p->m.root, "alora_invocation_tokens");
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (!is_given(list)) return QSF_OK;
    for (size_t i = 0; i < qsf_json_size(list); i++) {
        const int64_t id = qsf_json_int(qsf_json_at(list, i), -1);
        if (id < 0 || id > UINT32_MAX) {
            qsf_strbuf_free(&b);
            return bad(p, "alora_invocation_tokens", "is not a list of tokens");
        }
        qsf_meta_put_le(&b, (uint64_t)id, 4);
    }
    return qsf_meta_make_array(p->m.s, "adapter.alora.invocation_tokens", QSF_META_U32, qsf_json_size(list),
                               &b, p->m.err);
}

/* How the scale depends on the rank, and which rank the tensors have. */
static int put_ranks(Peft *p) {
    const QsfJson *sqrt_rank = qsf_json_get(p->m.root, "use_rslora"), *r = qsf_json_get(p->m.root, "r");
    if (!is_of(sqrt_rank, QSF_JSON_BOOL)) return bad(p, "use_rslora", "is neither true nor false");
    if (!is_of(r, QSF_JSON_INT) || qsf_json_int(r, 1) < 1) return bad(p, "r", "is not a rank");
    if (!is_given(qsf_json_get(p->m.root, "rank_pattern"))) p->rank = (uint64_t)qsf_json_int(r, 0);
    return QSF_OK;
}

static int put_settings(Peft *p) {
    QsfSource *s = p->m.s;
    QsfErr *err = p->m.err;
    const QsfJson *v = qsf_json_get(p->m.root, "lora_alpha");
    if (v == NULL || (qsf_json_type(v) != QSF_JSON_INT && qsf_json_type(v) != QSF_JSON_REAL))
        return bad(p, "lora_alpha", "is not a number");
    const double alpha = qsf_json_type(v) == QSF_JSON_INT ? (double)qsf_json_int(v, 0) : qsf_json_real(v, 0);
    if (!(alpha > 0 && alpha <= 1e30)) /* 0 means "no alpha" in GGUF, "no effect" here */
        return bad(p, "lora_alpha", "is not a number above 0");
    int rc = put_ranks(p);
    if (rc != QSF_OK) return rc;
    rc = qsf_meta_table_init(s, &s->meta, QSF_MADE_KEYS, err);
    if (rc == QSF_OK) rc = qsf_meta_make_str(s, "general.type", "adapter", 7, err);
    if (rc == QSF_OK) rc = qsf_meta_make_str(s, "adapter.type", "lora", 4, err);
    if (rc == QSF_OK)
        rc = qsf_meta_make_str(s, "general.architecture", p->base->arch, strlen(p->base->arch), err);
    if (rc == QSF_OK) rc = qsf_meta_make_f32(s, "adapter.lora.alpha", (float)alpha, err);
    if (rc == QSF_OK && is_given(qsf_json_get(p->m.root, "use_rslora")))
        rc = qsf_meta_make_bool(s, "adapter.lora.sqrt_rank", true, err);
    return rc == QSF_OK ? put_invocation(p) : rc;
}

static int read_settings(Peft *p) {
    QsfHfModel *m = &p->m;
    m->path = qsf_hf_path(m->s->dir, "adapter_config.json", m->err);
    if (m->path == NULL) return m->err->code;
    int rc = qsf_whole_open(m->s, m->path, MAX_CONFIG, &m->file, m->err);
    if (rc == QSF_OK && m->file.text == NULL)
        rc = qsf_err_set(m->err, QSF_E_MODEL, "%s: is not a PEFT directory: it has no adapter_config.json",
                         m->s->dir);
    if (rc == QSF_OK) rc = qsf_whole_json(&m->file, &m->root, m->err);
    if (rc == QSF_OK && qsf_json_type(m->root) != QSF_JSON_OBJECT)
        rc = qsf_err_set(m->err, QSF_E_MODEL, "%s: is not an object", m->path);
    m->text = m->root;
    if (rc == QSF_OK) rc = check_settings(p);
    return rc == QSF_OK ? put_settings(p) : rc;
}

/* ---- tensors ---- */

static int bad_tensor(const Peft *p, const QsfStTensor *t, const char *what) {
    return qsf_err_set(p->m.err, QSF_E_MODEL, "%s: tensor '%.*s' %s", p->m.s->files[0].path, QSF_HF_SHOWN,
                       t->name, what);
}

/* Turns "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight", perhaps with ".default" before the last
 * word, into the name of the weight of the module, and the half; false for other names. */
static bool weight_name(const char *name, char out[NAME_BYTES], char *half) {
    const char *mark = strstr(name, ".lora_");
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) == 0) name += sizeof PREFIX - 1;
    if (mark == NULL || mark <= name || (mark[6] != 'A' && mark[6] != 'B')) return false;
    const char *end = mark + 7;
    if (strcmp(end, ".weight") != 0 && strcmp(end, ".default.weight") != 0) return false;
    *half = mark[6];
    return snprintf(out, NAME_BYTES, "%.*s.weight", (int)(mark - name), name) < NAME_BYTES;
}

/* "blk.3.ffn_up_exps.weight.lora_a"; of one expert "blk.3.ffn_up.7.weight.lora_a". */
static const char *target_name(const Peft *p, const QsfHfName *row, int32_t layer, int32_t expert,
                               char half) {
    char text[NAME_BYTES];
    size_t n = 0;
    for (const char *c = row->gguf; *c != '\0' && n + 16 < sizeof text; c++) {
        if (*c == '#') {
            n += (size_t)snprintf(text + n, sizeof text - n, "%d", layer);
        } else if (expert >= 0 && strncmp(c, "_exps", 5) == 0) {
            n += (size_t)snprintf(text + n, sizeof text - n, ".%d", expert);
            c += 4;
        } else {
            text[n++] = *c;
        }
    }
    n += (size_t)snprintf(text + n, sizeof text - n, ".lora_%c", half == 'A' ? 'a' : 'b');
    return qsf_arena_strdup(&p->m.s->arena, text, n, p->m.err);
}

/* The rows of B that a matrix of GGUF has, in its order. */
static int place_rows(Peft *p, const QsfHfName *row, const QsfStTensor *t, QsfTensor *out) {
    QsfHfModel *m = &p->m;
    QsfRowMap map = { .run = t->shape[0], .stride = t->shape[0], .factor = 1 };
    uint64_t n = t->shape[0];
    int rc = row->rows(m, t->shape[0], &map, &n);
    if (rc != QSF_OK)
        return qsf_err_prefix(m->err, "%s: tensor '%.*s'", m->s->files[0].path, QSF_HF_SHOWN, t->name);
    if (map.cuts > 0 || map.pad > 0 || !qsf_row_map_ok(&map, n, t->shape[0]))
        return bad_tensor(p, t, "has a different number of rows than the model");
    QsfDerivedPart *part = qsf_source_alloc(m->s, 1, sizeof *part, m->err);
    QsfRowMap *kept = part != NULL ? qsf_source_alloc(m->s, 1, sizeof *kept, m->err) : NULL;
    if (kept == NULL) return m->err->code;
    *kept = map;
    *part = (QsfDerivedPart){ .rows = n, .at = t->begin, .map = kept };
    const uint32_t elem = (uint32_t)((t->end - t->begin) / (t->shape[0] * t->shape[1]));
    const QsfDerived d = { .kind = QSF_DERIVE_COPY,
                           .row_bytes = t->shape[1] * elem,
                           .cols = t->shape[1],
                           .src_rows = t->shape[0],
                           .src_step = t->shape[0],
                           .src_cols = t->shape[1],
                           .src_dtype = t->dtype,
                           .src_elem = elem,
                           .n_parts = 1,
                           .part = part };
    out->ne[1] = n;
    out->bytes = n * d.row_bytes;
    qsf_derived_add(m->s, &d, out);
    return QSF_OK;
}

static int add_target(Peft *p, const QsfHfName *row, const QsfStTensor *t, int32_t layer, int32_t expert,
                      char half) {
    QsfSource *s = p->m.s;
    const bool plain = row->how == QSF_DERIVE_COPY || row->how == QSF_DERIVE_F32 ||
                       (row->how == QSF_DERIVE_TRANSPOSE && row->rows == NULL);
    if (!plain || row->n_dims != 2 || s->n_tensors == p->cap)
        return bad_tensor(
            p, t, "is of a matrix that GGUF stores in another form, which is not supported in adapters");
    QsfTensor *out = &s->tensors[s->n_tensors];
    *out = (QsfTensor){ .name = target_name(p, row, layer, expert, half),
                        .dtype = t->dtype,
                        .n_dims = 2,
                        .ne = { t->shape[1], t->shape[0], 1, 1 },
                        .offset = t->begin,
                        .bytes = t->end - t->begin };
    if (out->name == NULL) return p->m.err->code;
    s->n_tensors++;
    return half == 'B' && row->rows != NULL ? place_rows(p, row, t, out) : QSF_OK;
}

static int add_tensor(Peft *p, const QsfStTensor *t) {
    char name[NAME_BYTES], half;
    bool known = false;
    int rc = QSF_OK;
    if (!weight_name(t->name, name, &half))
        return bad_tensor(p, t, "is neither lora_A nor lora_B of a matrix");
    if (t->dtype == QSF_ST_NO_DTYPE || t->n_dims != 2 || t->shape[0] == 0 || t->shape[1] == 0)
        return bad_tensor(p, t, "is not a matrix of type F32, F16 or BF16");
    if (p->rank > 0 && t->shape[half == 'A' ? 0 : 1] != p->rank)
        return bad_tensor(p, t, "has another rank than 'r' of adapter_config.json");
    const char *bare = qsf_hf_bare_name(&p->m, name);
    for (const QsfHfName *const *table = p->m.arch->tensors; rc == QSF_OK && *table != NULL; table++) {
        for (const QsfHfName *row = *table; rc == QSF_OK && row->hf != NULL; row++) {
            int32_t layer, expert;
            if (row->gguf == NULL || !qsf_hf_name_fits(row->hf, bare, &layer, &expert)) continue;
            known = true;
            rc = add_target(p, row, t, layer, expert, half);
        }
    }
    return rc == QSF_OK && !known
               ? bad_tensor(p, t, "is for a matrix that models of this architecture do not have")
               : rc;
}

/* If an architecture has several rows, the first one that knows the first tensor. */
static int find_arch(Peft *p) {
    const QsfStHeader *h = p->m.h;
    char name[NAME_BYTES], half;
    int32_t layer, expert;
    const QsfHfArch *first = qsf_hf_arch_of_gguf(p->base->arch, 0);
    for (unsigned i = 0; h->n > 0 && weight_name(h->t[0].name, name, &half); i++) {
        p->m.arch = qsf_hf_arch_of_gguf(p->base->arch, i);
        if (p->m.arch == NULL) break;
        const char *bare = qsf_hf_bare_name(&p->m, name);
        for (const QsfHfName *const *table = p->m.arch->tensors; *table != NULL; table++)
            for (const QsfHfName *row = *table; row->hf != NULL; row++)
                if (qsf_hf_name_fits(row->hf, bare, &layer, &expert)) return QSF_OK;
    }
    p->m.arch = first;
    if (first != NULL) return QSF_OK;
    return qsf_err_set(
        p->m.err, QSF_E_MODEL,
        "%s: PEFT directories are not supported for models of the architecture '%s': an adapter in "
        "GGUF is needed",
        p->m.s->dir, p->base->arch);
}

static int read_tensors(Peft *p) {
    QsfSource *s = p->m.s;
    QsfErr *err = p->m.err;
    char *path = qsf_hf_path(s->dir, "adapter_model.safetensors", err);
    if (path == NULL) return err->code;
    s->files = qsf_arena_alloc(&s->arena, sizeof *s->files, 16, err);
    int rc = s->files == NULL ? err->code : qsf_file_open(&s->files[0], path, err);
    free(path);
    if (rc != QSF_OK) return rc;
    s->n_files = 1;
    p->m.h = qsf_source_alloc_opening(s, 1, sizeof *p->m.h, err);
    rc = p->m.h == NULL ? err->code : qsf_st_read(s, 0, p->m.h, err);
    if (rc == QSF_OK) rc = find_arch(p);
    if (rc != QSF_OK) return rc;
    p->cap = p->m.h->n * TARGETS;
    s->tensors = qsf_source_alloc(s, p->cap, sizeof *s->tensors, err);
    rc = s->tensors == NULL ? err->code : qsf_derived_open(s, p->cap, err);
    for (uint64_t i = 0; rc == QSF_OK && i < p->m.h->n; i++) rc = add_tensor(p, &p->m.h->t[i]);
    return rc == QSF_OK ? qsf_source_index_tensors(s, err) : rc;
}

int qsf_hf_adapter_open(QsfSource *s, const char *dir, const QsfAdapterBase *base, QsfErr *err) {
    Peft p = { .base = base,
               .m = { .s = s,
                      .err = err,
                      .n_layers = base->n_layers,
                      .hidden = base->hidden,
                      .n_heads = base->n_heads,
                      .n_kv_heads = base->n_kv_heads,
                      .head_dim = base->head_dim,
                      .n_vocab = base->n_vocab } };
    s->dir = qsf_arena_strdup(&s->arena, dir, strlen(dir), err);
    s->from_dir = true;
    int rc = s->dir == NULL ? err->code : read_settings(&p);
    if (rc == QSF_OK) rc = read_tensors(&p);
    qsf_hf_config_close(&p.m);
    (void)snprintf(s->format, sizeof s->format, "PEFT");
    return rc;
}
