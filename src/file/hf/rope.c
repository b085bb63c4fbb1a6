/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotation of a Hugging Face model: rope_theta, partial_rotary_factor and rope_scaling; newer files have all
 * of them in rope_parameters (huggingface/transformers modeling_rope_utils.py). */
#include <math.h>
#include <string.h>

#include "src/file/hf/model.h"
#include "src/file/model_keys.h"

#define MAX_SCALE 1e6
#define MAX_BASE  1e12
#define PI        3.14159265358979323846

static const struct {
    const char *name;
    QsfHfRope kind;
} kinds[] = {
    { "default", QSF_HF_ROPE_PLAIN },   { "linear", QSF_HF_ROPE_LINEAR },  { "llama3", QSF_HF_ROPE_LLAMA3 },
    { "yarn", QSF_HF_ROPE_YARN },       { "longrope", QSF_HF_ROPE_LONG },  { "su", QSF_HF_ROPE_LONG },
    { "dynamic", QSF_HF_ROPE_DYNAMIC }, { "mrope", QSF_HF_ROPE_SECTIONS }, { "dynamic", QSF_HF_ROPE_ALPHA },
};

/* Newer files of models with windows have two sets. */
static const QsfJson *parameters(const QsfHfModel *m) {
    const QsfJson *rope = qsf_hf_member(m->text, "rope_parameters");
    const QsfJson *full = qsf_hf_member(rope, "full_attention");
    if (full != NULL) return full;
    if (rope == NULL) rope = qsf_hf_member(m->text, "rope_scaling");
    return rope != NULL ? rope : m->rope_fallback;
}

static int unsupported(const QsfHfModel *m, const char *name) {
    QsfStrbuf list = QSF_STRBUF_INIT;
    for (size_t i = 1; i < sizeof kinds / sizeof *kinds; i++)
        if ((m->arch->ropes & kinds[i].kind) != 0 && strcmp(kinds[i].name, "su") != 0)
            qsf_strbuf_addf(&list, "%s%s", list.len > 0 ? ", " : "only ", kinds[i].name);
    int rc = qsf_err_set(m->err, QSF_E_MODEL,
                         "%s: RoPE scaling of type '%.*s' (rope_scaling) is not supported, %s", m->path,
                         QSF_HF_SHOWN, name != NULL ? name : "?",
                         list.len > 0 ? qsf_strbuf_str(&list) : "only none");
    qsf_strbuf_free(&list);
    return rc;
}

static int read_kind(QsfHfModel *m, const QsfJson *rope) {
    const QsfJson *v = qsf_hf_member(rope, "rope_type|type");
    const char *name = v == NULL && qsf_hf_member(rope, "factor") == NULL ? "default"
                                                                          : qsf_json_string(v, NULL);
    for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) != 0 || ((m->arch->ropes | QSF_HF_ROPE_PLAIN) & kinds[i].kind) == 0)
            continue;
        const bool plain = kinds[i].kind == QSF_HF_ROPE_DYNAMIC || kinds[i].kind == QSF_HF_ROPE_SECTIONS;
        m->rope = plain ? QSF_HF_ROPE_PLAIN : kinds[i].kind;
        return QSF_OK;
    }
    return unsupported(m, name);
}

static int read_llama3(QsfHfModel *m, const QsfJson *rope) {
    int rc = qsf_hf_real(m, rope, "low_freq_factor", (double)NAN, 1e-6, MAX_SCALE, &m->rope_low);
    if (rc == QSF_OK)
        rc = qsf_hf_real(m, rope, "high_freq_factor", (double)NAN, 1e-6, MAX_SCALE, &m->rope_high);
    if (rc == QSF_OK && m->rope_high <= m->rope_low)
        rc = qsf_hf_bad(m, "high_freq_factor", "is not above low_freq_factor");
    if (rc == QSF_OK)
        rc = qsf_hf_real(m, rope, "original_max_position_embeddings", (double)NAN, 1, QSF_HF_NUMBER,
                         &m->rope_ctx);
    return rc;
}

/* huggingface/transformers models/hunyuan_v1_dense; the context is that for which the usual alpha was chosen
 * (ggml-org/llama.cpp conversion/hunyuan.py). */
static int read_alpha(QsfHfModel *m, const QsfJson *rope) {
    double alpha;
    int rc = qsf_hf_real(m, rope, "alpha", 0, 0, MAX_SCALE, &alpha);
    m->rope = QSF_HF_ROPE_PLAIN;
    if (rc != QSF_OK || alpha <= 0) return rc;
    m->rope_base *= pow(alpha, (double)m->head_dim / (m->head_dim - 2));
    m->n_ctx = 256 * 1024;
    return QSF_OK;
}

static int read_scaling(QsfHfModel *m, const QsfJson *rope) {
    int rc = read_kind(m, rope);
    if (rc == QSF_OK && m->rope == QSF_HF_ROPE_ALPHA) return read_alpha(m, rope);
    if (rc == QSF_OK && (m->rope & (QSF_HF_ROPE_LINEAR | QSF_HF_ROPE_LLAMA3 | QSF_HF_ROPE_YARN)) != 0)
        rc = qsf_hf_real(m, rope, "factor", (double)NAN, 1, MAX_SCALE, &m->rope_factor);
    if (rc == QSF_OK && m->rope == QSF_HF_ROPE_YARN)
        rc = qsf_hf_real(m, rope, "original_max_position_embeddings", (double)NAN, 1, QSF_HF_NUMBER,
                         &m->rope_ctx);
    return rc == QSF_OK && m->rope == QSF_HF_ROPE_LLAMA3 ? read_llama3(m, rope) : rc;
}

/* Sets the number of rotated elements of a head. */
static int read_part(QsfHfModel *m, const QsfJson *rope) {
    if (m->arch->rotated != NULL) {
        m->n_rot = m->head_dim;
        return QSF_OK;
    }
    static const char names[] = "partial_rotary_factor|rotary_pct|rope_pct";
    const bool supported = m->arch->rotary > 0;
    double part = supported ? m->arch->rotary : 1;
    int rc = qsf_hf_real(m, m->text, names, part, 0, 1, &part);
    if (rc == QSF_OK) rc = qsf_hf_real(m, rope, "partial_rotary_factor", part, 0, 1, &part);
    if (rc == QSF_OK && part < 1 && !supported)
        rc = qsf_hf_bad(m, names, "is below 1, which is not supported for this architecture");
    m->n_rot = (uint32_t)(m->head_dim * part);
    if (rc == QSF_OK && supported && m->n_rot > 0) rc = qsf_hf_u32(m, "rotary_dim", m->n_rot, &m->n_rot);
    if (rc == QSF_OK && m->n_rot > m->head_dim)
        rc = qsf_hf_bad(m, "rotary_dim", "is above the size of a head");
    if (rc == QSF_OK && (m->n_rot == 0 || m->n_rot % 2 != 0))
        rc = qsf_hf_bad(m, names, "gives an odd number of rotated elements, or none");
    return rc;
}

int qsf_hf_rope_read(QsfHfModel *m) {
    double base = m->arch->rope_base > 0 ? m->arch->rope_base : 10000;
    if (m->arch->rope != NULL)
        m->rope_fallback = qsf_json_parse(m->arch->rope, strlen(m->arch->rope), m->err);
    if (m->arch->rope != NULL && m->rope_fallback == NULL) return m->err->code;
    const QsfJson *rope = parameters(m);
    m->rope = QSF_HF_ROPE_PLAIN;
    m->rope_factor = 1;
    if (rope != NULL && qsf_json_type(rope) != QSF_JSON_OBJECT)
        return qsf_hf_bad(m, "rope_scaling|rope_parameters", "is not an object");
    int rc = qsf_hf_real(m, m->text, "rope_theta|rotary_emb_base", base, 1, MAX_BASE, &base);
    if (rc == QSF_OK) rc = qsf_hf_real(m, rope, "rope_theta", base, 1, MAX_BASE, &base);
    m->rope_base = base;
    if (rc == QSF_OK && m->head_dim > 0) rc = read_part(m, rope);
    return rc == QSF_OK && rope != NULL ? read_scaling(m, rope) : rc;
}

/* --- metadata --- */

/* Wavelengths above trained context / `low` are scaled by the full factor, those below trained context /
 * `high` not at all; in between, the frequency is interpolated in proportion to how often the wave fits into
 * that context (meta-llama/llama-models models/llama3/model.py; huggingface/transformers
 * modeling_rope_utils.py). */
static int make_llama3(QsfHfModel *m) {
    float *out = qsf_hf_make(m, "rope_freqs.weight", m->n_rot / 2);
    if (out == NULL) return m->err->code;
    for (uint32_t i = 0; i < m->n_rot / 2; i++) {
        const double wave = 2 * PI * pow(m->rope_base, 2.0 * i / m->n_rot);
        double t = (m->rope_ctx / wave - m->rope_low) / (m->rope_high - m->rope_low);
        t = t > 1 ? 1 : t < 0 ? 0 : t;
        out[i] = (float)(1 / ((1 - t) / m->rope_factor + t));
    }
    return QSF_OK;
}

/* Hugging Face multiplies cos and sin by this factor, readers of GGUF by 1 + 0.1 ln(factor)
 * and by attn_factor. */
static int put_attention_factor(QsfHfModel *m, const QsfJson *rope) {
    const double usual = 1 + 0.1 * log(m->rope_factor);
    double v;
    int rc = qsf_hf_real(m, rope, "attention_factor|attn_factor", usual, 1e-6, MAX_SCALE, &v);
    if (rc != QSF_OK || fabs(v / usual - 1) < 1e-6) return rc;
    return qsf_hf_put_f32(m, "rope.scaling.attn_factor", v / usual);
}

/* Does YaRN round the ends of its ramp to whole pairs? */
static int put_truncate(QsfHfModel *m, const QsfJson *rope) {
    const QsfJson *v = qsf_hf_member(rope, "truncate");
    if (v == NULL) return QSF_OK;
    if (qsf_json_type(v) != QSF_JSON_BOOL)

        return qsf_err_set(m->err, QSF_E_MODEL, "%s: 'truncate' of rope_scaling is not true or false",
                           m->path);
    return qsf_json_bool(v, true) ? QSF_OK : qsf_hf_put_bool(m, QSF_KEY_YARN_TRUNCATE, false);
}

/* ggml-org/llama.cpp conversion/base.py: which of YaRN's numbers are written. */
static int put_yarn(QsfHfModel *m) {
    static const char *const rows[][2] = {
        { "extrapolation_factor", "rope.scaling.yarn_ext_factor" },
        { "beta_fast", "rope.scaling.yarn_beta_fast" },
        { "beta_slow", "rope.scaling.yarn_beta_slow" },
    };
    const QsfJson *rope = parameters(m);
    int rc = qsf_hf_put_u32(m, "rope.scaling.original_context_length", (uint32_t)m->rope_ctx);
    if (rc == QSF_OK) rc = put_attention_factor(m, rope);
    if (rc == QSF_OK) rc = put_truncate(m, rope);
    for (size_t i = 0; rc == QSF_OK && i < sizeof rows / sizeof *rows; i++) {
        double v;
        if (qsf_hf_member(rope, rows[i][0]) == NULL) continue;
        rc = qsf_hf_real(m, rope, rows[i][0], 0, 0, MAX_SCALE, &v);
        if (rc == QSF_OK) rc = qsf_hf_put_f32(m, rows[i][1], v);
    }
    return rc;
}

/* Where long contexts begin, and the factor of cos and sin (huggingface/transformers
 * modeling_rope_utils.py). */
static int put_long(QsfHfModel *m) {
    const char *const name = "original_max_position_embeddings";
    const QsfJson *rope = parameters(m);
    double original, factor;
    int rc = qsf_hf_real(m, qsf_hf_member(m->text, name) != NULL ? m->text : rope, name, m->n_ctx, 2,
                         QSF_HF_NUMBER, &original);
    if (rc != QSF_OK) return rc;
    const double scale = m->n_ctx / original, usual = scale > 1 ? sqrt(1 + log(scale) / log(original)) : 1;
    rc = qsf_hf_real(m, rope, "attention_factor", usual, 1e-6, MAX_SCALE, &factor);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "rope.scaling.original_context_length", (uint32_t)original);
    return rc == QSF_OK ? qsf_hf_put_f32(m, "rope.scaling.attn_factor", factor) : rc;
}

/* Factors of the frequencies, for short and for long contexts. */
static int make_long(QsfHfModel *m) {
    static const char *const rows[][2] = { { "short_factor", "rope_factors_short.weight" },
                                           { "long_factor", "rope_factors_long.weight" } };
    const QsfJson *rope = parameters(m);
    for (size_t k = 0; k < 2; k++) {
        const QsfJson *list = qsf_hf_member(rope, rows[k][0]);
        if (list == NULL || qsf_json_size(list) != m->n_rot / 2)
            return qsf_err_set(m->err, QSF_E_MODEL, "%s: '%s' of rope_scaling is not a list of %u numbers",
                               m->path, rows[k][0], m->n_rot / 2);
        float *out = qsf_hf_make(m, rows[k][1], m->n_rot / 2);
        if (out == NULL) return m->err->code;
        for (uint32_t i = 0; i < m->n_rot / 2; i++) {
            const double v = qsf_json_real(qsf_json_at(list, i), (double)NAN);
            if (!(v > 0 && v <= MAX_SCALE))
                return qsf_err_set(m->err, QSF_E_MODEL,
                                   "%s: '%s' of rope_scaling has %g, expected positive numbers", m->path,
                                   rows[k][0], v);
            out[i] = (float)v;
        }
    }
    return put_long(m);
}

/* How many pairs rotate by each coordinate of an image; GGUF has four numbers. */
static int put_sections(QsfHfModel *m) {
    const QsfJson *list = qsf_hf_member(parameters(m), "mrope_section");
    uint32_t v[4] = { 0 };
    if (list == NULL) return QSF_OK;
    for (size_t i = 0; i < 4 && i < qsf_json_size(list); i++) {
        const int64_t n = qsf_json_int(qsf_json_at(list, i), -1);
        if (n < 0 || n > QSF_HF_NUMBER) return qsf_hf_bad(m, "mrope_section", "is not a list of sizes");
        v[i] = (uint32_t)n;
    }
    return qsf_hf_put_u32s(m, "rope.dimension_sections", v, 4);
}

int qsf_hf_rope_put(QsfHfModel *m) {
    int rc = m->n_rot > 0 ? qsf_hf_put_u32(m, "rope.dimension_count", m->n_rot) : QSF_OK;
    if (rc == QSF_OK) rc = put_sections(m);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "rope.freq_base", m->rope_base);
    if (rc != QSF_OK || m->rope == QSF_HF_ROPE_PLAIN) return rc;
    if (m->rope == QSF_HF_ROPE_LLAMA3) return make_llama3(m);
    if (m->rope == QSF_HF_ROPE_LONG) return make_long(m);
    rc = qsf_hf_put_str(m, "rope.scaling.type", m->rope == QSF_HF_ROPE_YARN ? "yarn" : "linear");
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "rope.scaling.factor", m->rope_factor);
    return rc == QSF_OK && m->rope == QSF_HF_ROPE_YARN ? put_yarn(m) : rc;
}
