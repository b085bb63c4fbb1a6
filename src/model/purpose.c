/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of keys and values: ggml-org/llama.cpp gguf-py/gguf/constants.py, src/llama-adapter.cpp,
 * tools/cvector-generator; PrismML-Eng/llama.cpp (prism.hadamard.*); SJTU-IPADS/PowerInfer (powerinfer.*);
 * names of image models: city96/ComfyUI-GGUF. */
#include "src/model/purpose.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "src/base/ascii.h"
#include "src/file/dtype.h"

#define KEY_SHOWN  120
#define WORD_SHOWN 40

#define GIVE_MODEL "give the file of the model itself"
#define ADAPTER    "an adapter (LoRA) for a model; " GIVE_MODEL ", and this one with --lora"
#define PROJECTOR                                                                                 \
    "the projector of a multimodal model, which turns images or sound into embeddings; give the " \
    "file of the language model"
#define IMATRIX  "an importance matrix for quantizing a model; " GIVE_MODEL
#define STEERING "a control vector for a model; " GIVE_MODEL ", and this one with --control-vector"
#define DRAFT                                                                                  \
    "a draft head, which predicts tokens of another model for speculative decoding; give the " \
    "file of that model"
#define CHECKPOINT "a checkpoint of a training run, which is not supported; " GIVE_MODEL
#define EMBEDDER   "an embedding model, which does not generate text"
#define DIFFUSION  "a diffusion model, which does not generate text token by token and is not supported"
#define SOUND      "a model for sound or speech, which is not supported"
#define IMAGES     "a model that generates images or video, which is not supported"

typedef struct Kind {
    const char *name, *what;
} Kind;

/* Values of general.type but "model". */
static const Kind types[] = {
    { "adapter", ADAPTER },
    { "mmproj", PROJECTOR },
    { "imatrix", IMATRIX },
    { "controlvector", STEERING },
};

/* Keys that no language model has. */
static const Kind keys[] = {
    { "adapter.type", ADAPTER },
    { "adapter.lora.alpha", ADAPTER },
    { "controlvector.model_hint", STEERING },
    { "controlvector.layer_count", STEERING },
    { "training.type", CHECKPOINT },
    { "optimizer.type", CHECKPOINT },
};

/* The same for files without general.architecture. */
static const Kind other_keys[] = {
    { "imatrix.chunk_count", IMATRIX },
    { "imatrix.datasets", IMATRIX },
};

static const Kind archs[] = {
    { "clip", PROJECTOR },
    { "mmproj", PROJECTOR },
    { "controlvector", STEERING },
    { "imatrix", IMATRIX },
    { "eagle", DRAFT },
    { "eagle2", DRAFT },
    { "eagle3", DRAFT },
    { "dflash", DRAFT },
    { "medusa", DRAFT },
    { "gemma4-assistant", DRAFT },
    { "bert", EMBEDDER },
    { "modern-bert", EMBEDDER },
    { "nomic-bert", EMBEDDER },
    { "nomic-bert-moe", EMBEDDER },
    { "neo-bert", EMBEDDER },
    { "jina-bert-v2", EMBEDDER },
    { "jina-bert-v3", EMBEDDER },
    { "eurobert", EMBEDDER },
    { "gemma-embedding", EMBEDDER },
    { "llama-embed", EMBEDDER },
    { "t5encoder", EMBEDDER },
    { "t5", "an encoder-decoder model, which is not supported" },
    { "dream", DIFFUSION },
    { "llada", DIFFUSION },
    { "llada-moe", DIFFUSION },
    { "rnd1", DIFFUSION },
    { "wavtokenizer-dec", SOUND },
    { "qwen3tts", SOUND },
    { "pockettts", SOUND },
    { "whisper", SOUND },
    { "sd1", IMAGES },
    { "sd3", IMAGES },
    { "sdxl", IMAGES },
    { "flux", IMAGES },
    { "aura", IMAGES },
    { "hidream", IMAGES },
    { "lumina2", IMAGES },
    { "qwen_image", IMAGES },
    { "cosmos", IMAGES },
    { "hyvid", IMAGES },
    { "ltxv", IMAGES },
    { "wan", IMAGES },
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *find(const Kind *table, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].name, name) == 0) return table[i].what;
    return NULL;
}

const char *qsf_purpose_of_arch(const char *arch) { return find(archs, COUNT(archs), arch); }

/* Refuses a file that has one of the keys. */
static int check_keys(const QsfSource *src, const Kind *table, size_t n, QsfErr *err) {
    for (size_t i = 0; i < n; i++)
        if (qsf_meta_has(src, table[i].name))
            return qsf_err_set(err, QSF_E_MODEL, "%s: is %s (it has the metadata key '%s')",
                               qsf_source_path(src), table[i].what, table[i].name);
    return QSF_OK;
}

int qsf_purpose_check(const QsfSource *src, QsfErr *err) {
    const char *type, *what;
    int rc = qsf_meta_str(src, "general.type", &type, NULL, err);
    if (rc != QSF_OK) return rc;
    what = type != NULL ? find(types, COUNT(types), type) : NULL;
    if (what != NULL)
        return qsf_err_set(err, QSF_E_MODEL, "%s: is %s (metadata key 'general.type' is '%s')",
                           qsf_source_path(src), what, type);
    rc = check_keys(src, keys, COUNT(keys), err);
    if (rc != QSF_OK || qsf_meta_has(src, "general.architecture")) return rc;
    return check_keys(src, other_keys, COUNT(other_keys), err);
}

/* ---- computations ---- */

/* Parts of keys, in lower case. */
static const Kind transformations[] = {
    { "hadamard", "a Hadamard rotation" },
    { "walsh", "a Hadamard rotation" },
    { "quarot", "a rotation (QuaRot)" },
    { "spinquant", "a rotation (SpinQuant)" },
    { "rotat", "a rotation" },
    { "givens", "a rotation" },
    { "incoheren", "incoherence processing" },
    { "quip", "incoherence processing (QuIP)" },
    { "smoothquant", "smoothing (SmoothQuant)" },
    { "smoothing", "smoothing" },
    { "smooth_scale", "smoothing" },
    { "awq", "scaling (AWQ)" },
    { "permut", "a permutation" },
    { "powerinfer.", "sparse evaluation (PowerInfer)" },
};

/* Namespaces of keys about the text and about sampling. */
static const char *const unrelated[] = { "tokenizer.", "general.sampling." };

static const char *transformation_of(const char *key) {
    char low[KEY_SHOWN + 1];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(unrelated); i++)
        if (strncmp(key, unrelated[i], strlen(unrelated[i])) == 0) return NULL;
    for (; key[n] != '\0' && n < KEY_SHOWN; n++) low[n] = (char)tolower((unsigned char)key[n]);
    low[n] = '\0';
    for (size_t i = 0; i < COUNT(transformations); i++)
        if (strstr(low, transformations[i].name) != NULL) return transformations[i].what;
    return NULL;
}

/* Does a text say that there is nothing to do? */
static bool says_none(const char *text) {
    static const char *const words[] = { "", "none", "off", "no", "false", "identity", "0" };
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcasecmp(words[i], text) == 0) return true;
    return false;
}

/* Does a key have a value other than 0, false, "none" or an empty list? */
static bool is_set(const QsfSource *src, const char *key, QsfMetaType type, uint64_t count) {
    QsfErr ignored = { 0 };
    const char *text = NULL;
    bool yes = true;
    int64_t v = 1;
    float x = 1;
    switch (type) {
    case QSF_META_ARRAY: return count > 0;
    case QSF_META_BOOL: return qsf_meta_bool(src, key, true, &yes, &ignored) != QSF_OK || yes;
    case QSF_META_STRING: return qsf_meta_str(src, key, &text, NULL, &ignored) != QSF_OK || !says_none(text);
    case QSF_META_F32:
    case QSF_META_F64: return qsf_meta_f32(src, key, 1, &x, &ignored) != QSF_OK || x != 0;
    default: return qsf_meta_i64(src, key, 1, &v, &ignored) != QSF_OK || v != 0;
    }
}

static int refuse(const QsfSource *src, const char *key, const char *what, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: metadata key '%.*s' announces %s, which is not supported; without it the answers "
                       "would be wrong",
                       qsf_source_path(src), KEY_SHOWN, key, what);
}

/* ggml-org/ggml docs/gguf.md: the order of weights within tensors. Converters of llama.cpp write all but the
 * first name, each for the order that readers expect. */
static int check_layout(const QsfSource *src, const char *key, QsfErr *err) {
    static const char *const usual[] = { "reference", "Meta AI original pth", "jploski" };
    const char *text;
    int rc = qsf_meta_str(src, key, &text, NULL, err);
    for (size_t i = 0; rc == QSF_OK && i < COUNT(usual); i++)
        if (strcmp(text, usual[i]) == 0) return QSF_OK;
    if (rc != QSF_OK) return rc;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: the layout of its tensors ('%.*s') is '%.*s', which is not supported",
                       qsf_source_path(src), KEY_SHOWN, key, WORD_SHOWN, text);
}

/* ggml-org/ggml docs/gguf.md; GGML_QNT_VERSION: blocks of version 1 have another order of nibbles. */
static int check_version(const QsfSource *src, QsfErr *err) {
    uint32_t v;
    bool quantized = false;
    int rc = qsf_meta_u32(src, "general.quantization_version", 2, &v, err);
    for (uint64_t i = 0; i < qsf_source_n_tensors(src) && !quantized; i++) {
        const QsfDtype *t = qsf_dtype(qsf_source_tensor(src, i)->dtype);
        quantized = t != NULL && t->block_elems > 1;
    }
    if (rc != QSF_OK || v == 2 || !quantized) return rc;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: its weights are quantized in version %u of the formats "
                       "('general.quantization_version'), only version 2 is supported",
                       qsf_source_path(src), v);
}

static int check_key(const QsfSource *src, const char *key, QsfMetaType type, uint64_t count, QsfErr *err) {
    const char *what = transformation_of(key);
    if (what == NULL && qsf_ends_with(key, ".adapters.count")) what = "adapters chosen by tokens";
    if (what != NULL && is_set(src, key, type, count)) return refuse(src, key, what, err);
    return qsf_ends_with(key, ".tensor_data_layout") ? check_layout(src, key, err) : QSF_OK;
}

/* Kinds of files that qsf_purpose_check does not know by name. */
static int check_type(const QsfSource *src, QsfErr *err) {
    const char *type;
    int rc = qsf_meta_str(src, "general.type", &type, NULL, err);
    if (rc != QSF_OK || type == NULL || strcmp(type, "model") == 0 || type[0] == '\0') return rc;
    return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key 'general.type' is '%.*s', expected 'model'",
                       qsf_source_path(src), WORD_SHOWN, type);
}

int qsf_purpose_check_computation(const QsfSource *src, QsfErr *err) {
    int rc = check_type(src, err);
    if (rc == QSF_OK) rc = check_version(src, err);
    for (size_t i = 0; rc == QSF_OK && i < qsf_meta_count(src); i++) {
        QsfMetaType type, elem;
        uint64_t count;
        const char *key = qsf_meta_at(src, i, &type, &elem, &count);
        rc = check_key(src, key, type, count, err);
    }
    return rc;
}
