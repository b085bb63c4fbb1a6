/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a Hugging Face model directory as a source: config.json, safetensors weights, and the vocabulary,
 * with the names that a GGUF file of the model would have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/format/dtype.h"
#include "src/format/hf_model.h"
#include "src/format/rows.h"

#define SHOWN     80 /* bytes of a name in a message */
#define DTYPE_F32 0u

typedef struct Dir {
    QsfSource *s;
    QsfHfConfig c;
    QsfStHeader *h; /* (s->n_files) */
    QsfErr *err;
} Dir;

static int bad(const Dir *d, uint32_t file, const QsfStTensor *t, const char *what) {
    return qsf_err_set(d->err, QSF_E_MODEL, "%s: tensor '%.*s' %s", d->s->files[file].path, SHOWN, t->name,
                       what);
}

/* --- which tensors --- */

static bool is_head(const QsfHfName *row) {
    return row->gguf != NULL && strcmp(row->gguf, "output.weight") == 0;
}

/* Sets *row to NULL if the tensor has no effect. */
static int classify(const Dir *d, uint32_t file, const QsfStTensor *t, const QsfHfName **row,
                    int32_t *layer) {
    *row = qsf_hf_name_find(d->c.arch, t->name, layer);
    if (*row == NULL)
        return qsf_err_set(
            d->err, QSF_E_MODEL,
            "%s: tensor '%.*s' is not supported in a model of architecture %s; ignoring it would give "
            "wrong answers",
            d->s->files[file].path, SHOWN, t->name, d->c.arch->name);
    if (*layer >= 0 && (uint32_t)*layer >= d->c.n_layers)
        return qsf_err_set(d->err, QSF_E_MODEL,
                           "%s: tensor '%.*s' belongs to layer %d, but num_hidden_layers is %u",
                           d->s->files[file].path, SHOWN, t->name, *layer, d->c.n_layers);
    /* Some files contain a copy of the embedding as the head although the two are tied. */
    if ((*row)->gguf == NULL || (d->c.tied && is_head(*row))) *row = NULL;
    return QSF_OK;
}

/* Counts the tensors of the source. */
static int count_tensors(const Dir *d, uint64_t *n) {
    const QsfHfName *row;
    int32_t layer;
    *n = d->c.rope == QSF_HF_ROPE_LLAMA3;
    for (uint32_t f = 0; f < d->s->n_files; f++) {
        for (uint64_t i = 0; i < d->h[f].n; i++) {
            int rc = classify(d, f, &d->h[f].t[i], &row, &layer);
            if (rc != QSF_OK) return rc;
            *n += row != NULL;
        }
    }
    return QSF_OK;
}

/* --- one tensor --- */

static const char *gguf_name(const Dir *d, const QsfHfName *row, int32_t layer) {
    char name[128];
    int n = layer < 0 ? snprintf(name, sizeof name, "%s", row->gguf)
                      : snprintf(name, sizeof name, "blk.%d.%s", layer, row->gguf);
    return qsf_arena_strdup(&d->s->arena, name, (size_t)n, d->err);
}

static int check_shape(const Dir *d, uint32_t file, const QsfStTensor *t, const QsfHfName *row) {
    if (t->dtype == QSF_ST_NO_DTYPE)
        return qsf_err_set(d->err, QSF_E_MODEL,
                           "%s: tensor '%.*s' is of dtype %s, expected F32, F16, BF16, F8_E4M3 or F8_E5M2",
                           d->s->files[file].path, SHOWN, t->name, t->type_name);
    if (t->n_dims != row->n_dims)
        return qsf_err_set(d->err, QSF_E_MODEL, "%s: tensor '%.*s' has %u dimensions, expected %u",
                           d->s->files[file].path, SHOWN, t->name, t->n_dims, row->n_dims);
    for (uint32_t i = 0; i < t->n_dims; i++)
        if (t->shape[i] == 0) return bad(d, file, t, "has a dimension of size 0");
    return QSF_OK;
}

/* Sets the number of heads whose rows must be reordered for GGUF, and checks the number of rows. */
static int read_order(const Dir *d, uint32_t file, const QsfStTensor *t, QsfHfRows rows, uint32_t *heads) {
    *heads = rows == QSF_HF_ROWS_Q ? d->c.n_heads : rows == QSF_HF_ROWS_K ? d->c.n_kv_heads : 0;
    uint64_t expected = (uint64_t)*heads * d->c.head_dim;
    if (*heads == 0 || t->shape[0] == expected) return QSF_OK;
    return qsf_err_set(d->err, QSF_E_MODEL,
                       "%s: tensor '%.*s' has %llu rows, but %u heads of %u (config.json) make %llu",
                       d->s->files[file].path, SHOWN, t->name, (unsigned long long)t->shape[0], *heads,
                       d->c.head_dim, (unsigned long long)expected);
}

static int add_tensor(const Dir *d, uint32_t file, const QsfStTensor *t, const QsfHfName *row,
                      int32_t layer) {
    QsfSource *s = d->s;
    QsfTensor *out = &s->tensors[s->n_tensors];
    int rc = check_shape(d, file, t, row);
    if (rc == QSF_OK) rc = read_order(d, file, t, row->rows, &s->notes[s->n_tensors].heads);
    if (rc != QSF_OK) return rc;
    *out = (QsfTensor){
        .name = gguf_name(d, row, layer),
        .dtype = t->dtype,
        .n_dims = t->n_dims,
        .ne = { 1, 1, 1, 1 },
        .file = file,
        .offset = t->begin,
        .bytes = t->end - t->begin,
    };
    for (uint32_t i = 0; i < t->n_dims; i++) out->ne[t->n_dims - 1 - i] = t->shape[i];
    s->n_tensors++;
    return out->name != NULL ? QSF_OK : d->err->code;
}

/* Creates the tensor that GGUF stores for the three RoPE numbers of config.json. */
static int add_rope_factors(const Dir *d) {
    QsfSource *s = d->s;
    uint32_t n = d->c.head_dim / 2;
    float *factors = qsf_source_alloc(s, n, sizeof *factors, d->err);
    if (factors == NULL) return d->err->code;
    qsf_hf_rope_factors(&d->c, factors);
    s->notes[s->n_tensors].made = factors;
    s->tensors[s->n_tensors++] = (QsfTensor){
        .name = "rope_freqs.weight",
        .dtype = DTYPE_F32,
        .n_dims = 1,
        .ne = { n, 1, 1, 1 },
        .file = QSF_FILE_NONE,
        .bytes = n * sizeof *factors,
    };
    return QSF_OK;
}

static int add_tensors(const Dir *d) {
    QsfSource *s = d->s;
    uint64_t n;
    int rc = count_tensors(d, &n);
    if (rc != QSF_OK) return rc;
    s->tensors = qsf_source_alloc(s, n, sizeof *s->tensors, d->err);
    s->notes = s->tensors != NULL ? qsf_source_alloc(s, n, sizeof *s->notes, d->err) : NULL;
    if (s->notes == NULL) return d->err->code;
    for (uint32_t f = 0; f < s->n_files; f++) {
        for (uint64_t i = 0; rc == QSF_OK && i < d->h[f].n; i++) {
            const QsfStTensor *t = &d->h[f].t[i];
            const QsfHfName *row;
            int32_t layer;
            rc = classify(d, f, t, &row, &layer);
            if (rc == QSF_OK && row != NULL) rc = add_tensor(d, f, t, row, layer);
        }
    }
    if (rc == QSF_OK && d->c.rope == QSF_HF_ROPE_LLAMA3) rc = add_rope_factors(d);
    return rc == QSF_OK ? qsf_source_index_tensors(s, d->err) : rc;
}

/* --- consistency --- */

static int check_vocab_rows(const Dir *d) {
    const QsfTensor *embed = qsf_source_find_tensor(d->s, "token_embd.weight");
    const QsfTensor *head = qsf_source_find_tensor(d->s, "output.weight");
    if (embed == NULL || (head == NULL && !d->c.tied))
        return qsf_err_set(d->err, QSF_E_MODEL, "%s: the weights of the %s are missing%s", d->s->dir,
                           embed == NULL ? "embedding" : "head",
                           embed == NULL ? "" : ", and config.json does not set tie_word_embeddings");
    if (embed->ne[1] == d->c.n_vocab) return QSF_OK;
    return qsf_err_set(d->err, QSF_E_MODEL,
                       "%s: tensor '%s' has %llu rows, but vocab_size in config.json is %u",
                       d->s->files[embed->file].path, embed->name, (unsigned long long)embed->ne[1],
                       d->c.n_vocab);
}

/* config.json also has BOS and EOS; the vocabulary files take precedence. */
static int put_ends(const Dir *d) {
    const struct {
        const char *key, *name;
        int64_t id;
    } rows[] = {
        { "tokenizer.ggml.bos_token_id", "bos_token_id", d->c.bos },
        { "tokenizer.ggml.eos_token_id", "eos_token_id", d->c.eos },
    };
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].id < 0 || qsf_meta_has(d->s, rows[i].key)) continue;
        if (rows[i].id >= d->c.n_vocab)
            return qsf_err_set(d->err, QSF_E_MODEL, "%s/config.json: '%s' is %lld, but there are %u tokens",
                               d->s->dir, rows[i].name, (long long)rows[i].id, d->c.n_vocab);
        rc = qsf_meta_make_u32(d->s, rows[i].key, (uint32_t)rows[i].id, d->err);
    }
    return rc;
}

/* --- */

/* While the vocabulary is read, its file is files[0], which messages name. */
static int read_vocabulary(const Dir *d) {
    QsfSource *s = d->s;
    QsfFile vocab, weights = s->files[0];
    char *path = qsf_vocab_file_in(s->dir, d->err);
    if (path == NULL) return d->err->code;
    int rc = qsf_file_open(&vocab, path, d->err);
    free(path);
    if (rc != QSF_OK) return rc;
    s->files[0] = vocab;
    rc = qsf_source_read_vocab(s, d->c.n_vocab, d->err);
    qsf_file_close(&s->files[0]);
    s->files[0] = weights;
    return rc == QSF_OK ? put_ends(d) : rc;
}

static int read_weights(Dir *d) {
    int rc = qsf_hf_weights_read(d->s, &d->h, d->err);
    if (rc == QSF_OK) rc = add_tensors(d);
    return rc == QSF_OK ? check_vocab_rows(d) : rc;
}

int qsf_hf_dir_open(QsfSource *s, const char *dir, QsfErr *err) {
    Dir d = { .s = s, .err = err };
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/') len--;
    s->dir = qsf_arena_strdup(&s->arena, dir, len, err);
    if (s->dir == NULL) return err->code;
    int rc = qsf_hf_config_read(s, s->dir, &d.c, err);
    if (rc == QSF_OK) rc = read_weights(&d);
    if (rc == QSF_OK) rc = qsf_meta_table_init(s, &s->meta, QSF_MADE_KEYS, err);
    if (rc == QSF_OK) rc = qsf_hf_config_put(s, &d.c, err);
    if (rc == QSF_OK) rc = qsf_hf_generation_put(s, s->dir, err);
    if (rc == QSF_OK) rc = read_vocabulary(&d);
    snprintf(s->format, sizeof s->format, "safetensors");
    return rc;
}
