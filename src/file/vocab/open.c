/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens vocabulary files that are not GGUF, and the two optional small files next to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/utf8.h"
#include "src/file/dirhint.h"
#include "src/file/vocab/draft.h"
#include "src/file/whole.h"

#define MAX_FILE ((uint64_t)256 << 20)

char *qsf_vocab_file_in(const char *dir, bool weights, QsfErr *err) {
    static const char *const names[] = { "tokenizer.json", "tokenizer.model" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path;
        if (asprintf(&path, "%s/%s", dir, names[i]) < 0) {
            qsf_err_memory(err, "%s", dir);
            return NULL;
        }
        if (access(path, F_OK) == 0) return path;
        free(path);
    }
    (void)qsf_dir_missing(dir, weights, err);
    return NULL;
}

int qsf_read_beside(QsfSource *s, const char *name, uint64_t max, QsfWhole *w, QsfErr *err) {
    const char *path = s->files[0].path, *slash = strrchr(path, '/');
    char *beside;
    *w = (QsfWhole){ .f = { .fd = -1 } };
    if (asprintf(&beside, "%.*s%s", slash != NULL ? (int)(slash - path) + 1 : 0, path, name) < 0)
        return qsf_err_memory(err, "%s", path);
    int rc = qsf_whole_open(s, beside, max, w, err);
    free(beside);
    return rc;
}

static int read_config(QsfVocabDraft *d, QsfErr *err) {
    QsfWhole w;
    QsfJson *v;
    int rc = qsf_read_beside(d->s, "tokenizer_config.json", MAX_FILE, &w, err);
    if (w.text == NULL) return rc;
    rc = qsf_whole_json(&w, &v, err);
    if (rc == QSF_OK) rc = qsf_hf_config(d, v, err);
    qsf_json_free(v);
    qsf_whole_close(d->s, &w);
    return rc;
}

static int read_tokens(QsfVocabDraft *d, bool json, QsfErr *err) {
    const QsfFile *f = &d->s->files[0];
    char *text;
    if (f->size > MAX_FILE)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: has %llu bytes, more than the limit of %llu for a vocabulary", f->path,
                           (unsigned long long)f->size, (unsigned long long)MAX_FILE);
    int rc = qsf_whole_map(d->s, f, f->size, &text, err);
    if (rc != QSF_OK) return rc;
    rc = json ? qsf_hf_tokenizer_read(d, text, (size_t)f->size, err)
              : qsf_spm_model_read(d, text, (size_t)f->size, err);
    if (rc == QSF_OK && d->n == 0) /* before the rows of the model are added */
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: no usable vocabulary: it has no tokens", f->path);
    qsf_whole_unmap(d->s, text, f->size);
    return rc;
}

int qsf_vocab_file_open(QsfSource *s, bool json, uint32_t n_vocab, QsfErr *err) {
    QsfVocabDraft d;
    snprintf(s->format, sizeof s->format, "%s", json ? "tokenizer.json" : "SentencePiece");
    qsf_draft_init(&d, s);
    int rc = s->meta.e != NULL ? QSF_OK : qsf_meta_table_init(s, &s->meta, QSF_MADE_KEYS, err);
    if (rc == QSF_OK) rc = read_tokens(&d, json, err);
    if (rc == QSF_OK) rc = qsf_vocab_template_files(s, err);
    if (rc == QSF_OK) rc = read_config(&d, err);
    if (rc == QSF_OK) rc = qsf_vocab_template_members(s, err);
    if (rc == QSF_OK && n_vocab > 0) rc = qsf_draft_extend(&d, n_vocab, err);
    if (rc == QSF_OK) rc = qsf_draft_finish(&d, err);
    qsf_draft_free(&d);
    return rc;
}
