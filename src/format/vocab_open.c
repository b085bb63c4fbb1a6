/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens vocabulary files that are not GGUF, with the two small files that may stand beside them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/format/vocab_draft.h"

#define MAX_FILE ((uint64_t)256 << 20)
#define MAX_KEYS 64

char *qsf_vocab_file_in(const char *dir, QsfErr *err) {
    static const char *const names[] = { "tokenizer.json", "tokenizer.model" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path;
        if (asprintf(&path, "%s/%s", dir, names[i]) < 0) {
            qsf_err_set(err, QSF_E_RUNTIME, "%s: out of memory", dir);
            return NULL;
        }
        if (access(path, F_OK) == 0) return path;
        free(path);
    }
    qsf_err_set(err, QSF_E_MODEL, "%s: is a directory without tokenizer.json or tokenizer.model", dir);
    return NULL;
}

/* The whole file, NUL-terminated and charged; give it back with release(). */
static int read_whole(QsfSource *s, const QsfFile *f, char **out, QsfErr *err) {
    *out = NULL;
    if (f->size > MAX_FILE)
        return qsf_err_set(err, QSF_E_MODEL, "%s: has %llu bytes, more than the limit of %llu for a vocabulary",
                           f->path, (unsigned long long)f->size, (unsigned long long)MAX_FILE);
    void *p;
    int rc = qsf_mem_map(s->ledger, QSF_MEM_META, f->size + 1, "vocabulary file", &p, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_file_pread(f, p, (size_t)f->size, 0, err);
    if (rc != QSF_OK) qsf_mem_unmap(s->ledger, QSF_MEM_META, p, f->size + 1);
    if (rc == QSF_OK) *out = p;
    return rc;
}

static void release(QsfSource *s, const QsfFile *f, char *text) {
    if (text != NULL) qsf_mem_unmap(s->ledger, QSF_MEM_META, text, f->size + 1);
}

/* Opens the file `name` beside files[0] and reads it; *text NULL with success when it is not there. */
static int read_beside(QsfSource *s, const char *name, QsfFile *f, char **text, QsfErr *err) {
    const char *path = s->files[0].path, *slash = strrchr(path, '/');
    char *beside;
    *text = NULL;
    if (asprintf(&beside, "%.*s%s", slash != NULL ? (int)(slash - path) + 1 : 0, path, name) < 0)
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: out of memory", path);
    bool there = access(beside, F_OK) == 0;
    int rc = there ? qsf_file_open(f, beside, err) : QSF_OK;
    if (there && rc == QSF_OK) {
        rc = read_whole(s, f, text, err);
        if (rc != QSF_OK) qsf_file_close(f);
    }
    free(beside);
    return rc;
}

static int read_config(QsfVocabDraft *d, QsfErr *err) {
    QsfFile f;
    QsfErr e = { 0 };
    char *text;
    int rc = read_beside(d->s, "tokenizer_config.json", &f, &text, err);
    if (text == NULL) return rc;
    QsfJson *v = qsf_json_parse(text, (size_t)f.size, &e);
    rc = v == NULL ? qsf_err_set(err, QSF_E_MODEL, "%s: %s", f.path, e.msg) : qsf_hf_config(d, v, err);
    qsf_json_free(v);
    release(d->s, &f, text);
    qsf_file_close(&f);
    return rc;
}

/* Newer directories keep the template in a file of its own, which comes before one in tokenizer_config.json. */
static int read_template(QsfSource *s, QsfErr *err) {
    QsfFile f;
    char *text;
    int rc = read_beside(s, "chat_template.jinja", &f, &text, err);
    if (text == NULL) return rc;
    rc = qsf_meta_make_str(s, "tokenizer.chat_template", text, (size_t)f.size, err);
    release(s, &f, text);
    qsf_file_close(&f);
    return rc;
}

int qsf_vocab_file_open(QsfSource *s, bool json, QsfErr *err) {
    QsfVocabDraft d;
    char *text;
    const QsfFile *f = &s->files[0];
    snprintf(s->format, sizeof s->format, "%s", json ? "tokenizer.json" : "SentencePiece");
    qsf_draft_init(&d, s);
    int rc = qsf_meta_table_init(s, &s->meta, MAX_KEYS, err);
    if (rc == QSF_OK) rc = read_whole(s, f, &text, err);
    if (rc == QSF_OK) {
        rc = json ? qsf_hf_tokenizer_read(&d, text, (size_t)f->size, err)
                  : qsf_spm_model_read(&d, text, (size_t)f->size, err);
        release(s, f, text);
    }
    if (rc == QSF_OK) rc = read_template(s, err);
    if (rc == QSF_OK) rc = read_config(&d, err);
    if (rc == QSF_OK) rc = qsf_draft_finish(&d, err);
    qsf_draft_free(&d);
    return rc;
}
