/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a Hugging Face model directory as a source: config.json, safetensors weights, and the vocabulary,
 * with the names that a GGUF file of the model would have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/dirhint.h"
#include "src/file/format.h"
#include "src/file/hf/model.h"
#include "src/file/vocab/vocab.h"

/* --- consistency --- */

static int check_vocab_rows(QsfHfModel *m) {
    const QsfTensor *embed = qsf_source_find_tensor(m->s, "token_embd.weight");
    const QsfTensor *head = qsf_source_find_tensor(m->s, "output.weight");
    if (embed == NULL || (head == NULL && !m->tied))
        return qsf_err_set(m->err, QSF_E_MODEL, "%s: the weights of the %s are missing%s", m->s->dir,
                           embed == NULL ? "embedding" : "head",
                           embed == NULL ? "" : ", and config.json does not set tie_word_embeddings");
    if (embed->ne[1] == m->n_vocab) return QSF_OK;
    return qsf_err_set(m->err, QSF_E_MODEL,
                       "%s: tensor '%s' has %llu rows, but vocab_size in config.json is %u",
                       m->s->files[embed->file].path, embed->name, (unsigned long long)embed->ne[1],
                       m->n_vocab);
}

/* config.json also has BOS and EOS; the vocabulary files take precedence. */
static int put_ends(QsfHfModel *m) {
    const struct {
        const char *key, *name;
        int64_t id;
    } rows[] = {
        { "tokenizer.ggml.bos_token_id", "bos_token_id", m->bos },
        { "tokenizer.ggml.eos_token_id", "eos_token_id", m->eos },
    };
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].id < 0 || qsf_meta_has(m->s, rows[i].key)) continue;
        if (rows[i].id >= m->n_vocab)
            return qsf_err_set(m->err, QSF_E_MODEL, "%s/config.json: '%s' is %lld, but there are %u tokens",
                               m->s->dir, rows[i].name, (long long)rows[i].id, m->n_vocab);
        rc = qsf_meta_make_u32(m->s, rows[i].key, (uint32_t)rows[i].id, m->err);
    }
    return rc == QSF_OK ? qsf_hf_ends_put(m) : rc;
}

/* --- */

/* While the vocabulary is read, its file is files[0], which messages name. */
static int read_vocabulary(QsfHfModel *m) {
    QsfSource *s = m->s;
    QsfFile vocab, weights = s->files[0];
    char *path = qsf_vocab_file_in(s->dir, false, m->err);
    if (path == NULL) return m->err->code;
    int rc = qsf_file_open(&vocab, path, m->err);
    free(path);
    if (rc != QSF_OK) return rc;
    s->files[0] = vocab;
    rc = qsf_vocab_read(s, m->n_vocab, m->err);
    qsf_file_close(&s->files[0]);
    s->files[0] = weights;
    return rc == QSF_OK ? put_ends(m) : rc;
}

static int read_model(QsfHfModel *m) {
    QsfSource *s = m->s;
    int rc = qsf_hf_weights_read(s, &m->h, m->err);
    if (rc == QSF_OK) rc = qsf_meta_table_init(s, &s->meta, QSF_MADE_KEYS, m->err);
    if (rc == QSF_OK) rc = qsf_hf_nextn_read(m);
    if (rc == QSF_OK) rc = qsf_hf_config_put(m);
    if (rc == QSF_OK) rc = qsf_hf_tensors_add(m);
    if (rc == QSF_OK) rc = check_vocab_rows(m);
    if (rc == QSF_OK) rc = qsf_hf_generation_put(m);
    return rc == QSF_OK ? read_vocabulary(m) : rc;
}

static int keep_path(QsfSource *s, const char *dir, QsfErr *err) {
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/') len--;
    s->dir = qsf_arena_strdup(&s->arena, dir, len, err);
    s->from_dir = true;
    return s->dir == NULL ? err->code : QSF_OK;
}

/* Returns the number of tokens of the vocabulary, which has no more than QSF_DRAFT_MAX. */
static uint32_t count_tokens(const QsfSource *s) {
    const QsfMetaEntry *e = qsf_meta_find(&s->meta, "tokenizer.ggml.tokens");
    return e != NULL && e->type == QSF_META_ARRAY ? (uint32_t)e->v.arr.count : 0;
}

/* Opens the vocabulary in s->dir as files[0], and reads it. */
static int open_vocabulary(QsfHfModel *m, bool weights) {
    QsfSource *s = m->s;
    char *path = qsf_vocab_file_in(s->dir, weights, m->err);
    if (path == NULL) return m->err->code;
    s->files = qsf_arena_alloc(&s->arena, sizeof *s->files, 16, m->err);
    int rc = s->files == NULL ? m->err->code : qsf_file_open(&s->files[0], path, m->err);
    free(path);
    if (rc != QSF_OK) return rc;
    s->n_files = 1;
    rc = qsf_vocab_read(s, m->n_vocab, m->err);
    if (rc == QSF_OK && m->n_vocab == 0) m->n_vocab = count_tokens(s);
    if (rc == QSF_OK) rc = qsf_hf_generation_put(m);
    return rc == QSF_OK ? put_ends(m) : rc;
}

static int open_tokens(QsfSource *s, const char *dir, bool weights, QsfErr *err) {
    QsfHfModel m;
    int rc = keep_path(s, dir, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_hf_config_open_tokens(&m, s, s->dir, err);
    if (rc == QSF_OK) rc = open_vocabulary(&m, weights);
    qsf_hf_config_close(&m);
    if (rc == QSF_OK) s->dir = NULL; /* messages name the file of the vocabulary */
    return rc;
}

static int open_model(QsfSource *s, const char *dir, QsfErr *err) {
    QsfHfModel m;
    int rc = keep_path(s, dir, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_hf_config_open(&m, s, s->dir, err);
    if (rc == QSF_OK) rc = read_model(&m);
    qsf_hf_config_close(&m);
    snprintf(s->format, sizeof s->format, "safetensors");
    return rc;
}

int qsf_hf_dir_open(QsfSource *s, const char *dir, bool weights, QsfErr *err) {
    return weights && qsf_dir_has_weights(dir) ? open_model(s, dir, err) : open_tokens(s, dir, weights, err);
}
