/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads config.json of a model. Keys and their defaults: huggingface/transformers
 * models/llama/configuration_llama.py, models/mistral/configuration_mistral.py, modeling_rope_utils.py. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/format/hf_model.h"
#include "src/format/whole.h"

#define MAX_FILE   ((uint64_t)16 << 20)
#define MAX_NUMBER (1u << 28) /* of any count here; the readers of the metadata have stricter limits */
#define MAX_SCALE  1e6
#define MAX_BASE   1e15
#define SHOWN      40 /* bytes of a name in a message */

typedef struct Reader {
    const char *path; /* of config.json */
    const QsfJson *root;
    QsfHfConfig *c;
    QsfErr *err;
} Reader;

/* Returns a member; NULL if it is absent or null, which mean the same in these files. */
static const QsfJson *member(const QsfJson *object, const char *key) {
    const QsfJson *v = qsf_json_get(object, key);
    return v != NULL && qsf_json_type(v) != QSF_JSON_NULL ? v : NULL;
}

static int bad(const Reader *r, const char *key, const char *what) {
    return qsf_err_set(r->err, QSF_E_MODEL, "%s: '%s' %s", r->path, key, what);
}

/* Reads a number from 1 to MAX_NUMBER. fallback 0: the key is required. */
static int get_u32(const Reader *r, const char *key, uint32_t fallback, uint32_t *out) {
    const QsfJson *v = member(r->root, key);
    *out = fallback;
    if (v == NULL) return fallback > 0 ? QSF_OK : bad(r, key, "is missing");
    int64_t n = qsf_json_int(v, -1);
    if (n < 1 || n > MAX_NUMBER)
        return qsf_err_set(r->err, QSF_E_MODEL, "%s: '%s' is %g, expected a whole number from 1 to %u",
                           r->path, key, qsf_json_real(v, (double)NAN), MAX_NUMBER);
    *out = (uint32_t)n;
    return QSF_OK;
}

/* Reads a number from lo to hi. fallback NaN: the key is required. */
static int get_real(const Reader *r, const QsfJson *object, const char *key, double fallback, double lo,
                    double hi, double *out) {
    const QsfJson *v = member(object, key);
    *out = fallback;
    if (v == NULL) return isnan(fallback) ? bad(r, key, "is missing") : QSF_OK;
    *out = qsf_json_real(v, (double)NAN);
    if (*out >= lo && *out <= hi) return QSF_OK;
    return qsf_err_set(r->err, QSF_E_MODEL, "%s: '%s' is %g, expected a number from %g to %g", r->path, key,
                       *out, lo, hi);
}

static int get_bool(const Reader *r, const char *key, bool fallback, bool *out) {
    const QsfJson *v = member(r->root, key);
    *out = qsf_json_bool(v, fallback);
    return v == NULL || qsf_json_type(v) == QSF_JSON_BOOL ? QSF_OK : bad(r, key, "is not true or false");
}

/* Reads a token id, or the first of a list; -1 if there is none. */
static int get_id(const Reader *r, const char *key, int64_t *out) {
    const QsfJson *v = member(r->root, key);
    if (v != NULL && qsf_json_type(v) == QSF_JSON_ARRAY) v = qsf_json_at(v, 0);
    *out = v == NULL ? -1 : qsf_json_int(v, INT64_MIN);
    if (*out >= -1 && *out <= UINT32_MAX) return QSF_OK;
    return bad(r, key, "is not a token id");
}

/* --- architecture --- */

static int read_arch(const Reader *r) {
    const char *name = qsf_json_string(qsf_json_at(member(r->root, "architectures"), 0), NULL);
    if (name == NULL) return bad(r, "architectures", "is missing or not a list of names");
    r->c->arch = qsf_hf_arch_find(name);
    if (r->c->arch != NULL) return QSF_OK;
    QsfStrbuf list = QSF_STRBUF_INIT;
    for (unsigned i = 0; qsf_hf_arch_at(i) != NULL; i++)
        qsf_strbuf_addf(&list, "%s%s", i > 0 ? ", " : "", qsf_hf_arch_at(i)->name);
    int rc =
        qsf_err_set(r->err, QSF_E_MODEL,
                    "%s: the architecture '%.*s' is not supported; supported: %s (for tokenizing only, open "
                    "the tokenizer file)",
                    r->path, SHOWN, name, qsf_strbuf_str(&list));
    qsf_strbuf_free(&list);
    return rc;
}

/* Rejects settings that change the computation and cannot be expressed in the metadata of this
 * architecture. */
static int refuse_features(const Reader *r) {
    const QsfJson *quant = member(r->root, "quantization_config");
    const char *act = qsf_json_string(member(r->root, "hidden_act"), NULL);
    const char *method = qsf_json_string(qsf_json_get(quant, "quant_method"), NULL);
    double part;
    if (quant != NULL)
        return qsf_err_set(
            r->err, QSF_E_MODEL,
            "%s: 'quantization_config': weights quantized by '%.*s' are not supported, only F32, F16 and "
            "BF16",
            r->path, SHOWN, method != NULL ? method : "?");
    if (member(r->root, "hidden_act") != NULL && (act == NULL || strcmp(act, "silu") != 0))
        return qsf_err_set(r->err, QSF_E_MODEL, "%s: 'hidden_act' is '%.*s', only 'silu' is supported",
                           r->path, SHOWN, act != NULL ? act : "?");
    int rc = get_real(r, r->root, "partial_rotary_factor", 1, 0, 1, &part);
    if (rc == QSF_OK && part < 1) rc = bad(r, "partial_rotary_factor", "is below 1, which is not supported");
    return rc;
}

/* --- sizes --- */

static int read_head_dim(const Reader *r) {
    QsfHfConfig *c = r->c;
    c->says_head_dim = member(r->root, "head_dim") != NULL;
    if (!c->says_head_dim && c->hidden % c->n_heads != 0)
        return qsf_err_set(
            r->err, QSF_E_MODEL,
            "%s: 'hidden_size' %u is not a multiple of the %u heads, and 'head_dim' is missing", r->path,
            c->hidden, c->n_heads);
    int rc = get_u32(r, "head_dim", c->hidden / c->n_heads, &c->head_dim);
    if (rc == QSF_OK && c->head_dim % 2 != 0)
        rc = qsf_err_set(r->err, QSF_E_MODEL, "%s: the size of a head is %u, expected an even number",
                         r->path, c->head_dim);
    return rc;
}

static int read_sizes(const Reader *r) {
    QsfHfConfig *c = r->c;
    int rc = get_u32(r, "num_hidden_layers", 0, &c->n_layers);
    if (rc == QSF_OK) rc = get_u32(r, "hidden_size", 0, &c->hidden);
    if (rc == QSF_OK) rc = get_u32(r, "intermediate_size", 0, &c->ffn);
    if (rc == QSF_OK) rc = get_u32(r, "num_attention_heads", 0, &c->n_heads);
    if (rc == QSF_OK)
        rc = get_u32(r, "num_key_value_heads", c->arch->kv_heads > 0 ? c->arch->kv_heads : c->n_heads,
                     &c->n_kv_heads);
    if (rc == QSF_OK && c->n_heads % c->n_kv_heads != 0)
        rc = qsf_err_set(r->err, QSF_E_MODEL,
                         "%s: 'num_key_value_heads' is %u, which does not divide the %u heads", r->path,
                         c->n_kv_heads, c->n_heads);
    if (rc == QSF_OK) rc = read_head_dim(r);
    if (rc == QSF_OK) rc = get_u32(r, "vocab_size", 0, &c->n_vocab);
    if (rc == QSF_OK) rc = get_u32(r, "max_position_embeddings", 0, &c->n_ctx);
    if (rc == QSF_OK && member(r->root, "sliding_window") != NULL)
        rc = get_u32(r, "sliding_window", 0, &c->window);
    return rc;
}

/* --- rotation --- */

static int read_rope_kind(const Reader *r, const QsfJson *rope) {
    static const struct {
        const char *name;
        QsfHfRope kind;
    } kinds[] = {
        { "default", QSF_HF_ROPE_PLAIN },
        { "linear", QSF_HF_ROPE_LINEAR },
        { "llama3", QSF_HF_ROPE_LLAMA3 },
    };
    const QsfJson *v = member(rope, "rope_type");
    if (v == NULL) v = member(rope, "type");
    const char *name = v == NULL && member(rope, "factor") == NULL ? "default" : qsf_json_string(v, NULL);
    for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) != 0) continue;
        r->c->rope = kinds[i].kind;
        return QSF_OK;
    }
    return qsf_err_set(
        r->err, QSF_E_MODEL,
        "%s: RoPE scaling of type '%.*s' (rope_scaling) is not supported, only linear and llama3", r->path,
        SHOWN, name != NULL ? name : "?");
}

static int read_llama3(const Reader *r, const QsfJson *rope) {
    QsfHfConfig *c = r->c;
    int rc = get_real(r, rope, "low_freq_factor", (double)NAN, 1e-6, MAX_SCALE, &c->rope_low);
    if (rc == QSF_OK) rc = get_real(r, rope, "high_freq_factor", (double)NAN, 1e-6, MAX_SCALE, &c->rope_high);
    if (rc == QSF_OK && c->rope_high <= c->rope_low)
        rc = bad(r, "high_freq_factor", "is not above low_freq_factor");
    if (rc == QSF_OK)
        rc = get_real(r, rope, "original_max_position_embeddings", (double)NAN, 1, MAX_NUMBER, &c->rope_ctx);
    return rc;
}

/* Reads rope_scaling and rope_theta; newer files have both in rope_parameters. */
static int read_rope(const Reader *r) {
    QsfHfConfig *c = r->c;
    double base = 10000;
    const QsfJson *rope = member(r->root, "rope_parameters");
    if (rope == NULL) rope = member(r->root, "rope_scaling");
    if (rope != NULL && qsf_json_type(rope) != QSF_JSON_OBJECT)
        return bad(r, "rope_scaling", "is not an object");
    int rc = get_real(r, r->root, "rope_theta", base, 1, MAX_BASE, &base);
    if (rc == QSF_OK) rc = get_real(r, rope, "rope_theta", base, 1, MAX_BASE, &base);
    c->rope_base = (float)base;
    c->rope_factor = 1;
    if (rc != QSF_OK || rope == NULL) return rc;
    rc = read_rope_kind(r, rope);
    if (rc == QSF_OK && c->rope != QSF_HF_ROPE_PLAIN)
        rc = get_real(r, rope, "factor", (double)NAN, 1, MAX_SCALE, &c->rope_factor);
    return rc == QSF_OK && c->rope == QSF_HF_ROPE_LLAMA3 ? read_llama3(r, rope) : rc;
}

static int read_object(const Reader *r) {
    QsfHfConfig *c = r->c;
    double eps = 0;
    if (qsf_json_type(r->root) != QSF_JSON_OBJECT)
        return qsf_err_set(r->err, QSF_E_MODEL, "%s: is not a JSON object", r->path);
    int rc = read_arch(r);
    if (rc == QSF_OK) rc = refuse_features(r);
    if (rc == QSF_OK) rc = read_sizes(r);
    if (rc == QSF_OK) rc = read_rope(r);
    if (rc == QSF_OK) rc = get_real(r, r->root, "rms_norm_eps", 1e-6, 0, 1, &eps);
    c->norm_eps = (float)eps;
    if (rc == QSF_OK) rc = get_bool(r, "tie_word_embeddings", false, &c->tied);
    if (rc == QSF_OK) rc = get_id(r, "bos_token_id", &c->bos);
    return rc == QSF_OK ? get_id(r, "eos_token_id", &c->eos) : rc;
}

int qsf_hf_config_read(QsfSource *s, const char *dir, QsfHfConfig *c, QsfErr *err) {
    QsfWhole w;
    QsfJson *root = NULL;
    *c = (QsfHfConfig){ 0 };
    char *path = qsf_hf_path(dir, "config.json", err);
    if (path == NULL) return err->code;
    int rc = qsf_whole_open(s, path, MAX_FILE, &w, err);
    if (rc == QSF_OK && w.text == NULL)
        rc = qsf_err_set(err, QSF_E_MODEL,
                         "%s: is missing; safetensors weights need it in the same directory", path);
    else if (rc == QSF_OK)
        rc = qsf_whole_json(&w, &root, err);
    Reader r = { .path = path, .root = root, .c = c, .err = err };
    if (rc == QSF_OK) rc = read_object(&r);
    qsf_json_free(root);
    qsf_whole_close(s, &w);
    free(path);
    return rc;
}
