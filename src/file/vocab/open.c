/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens vocabulary files that are not GGUF, and the two optional small files next to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/utf8.h"
#include "src/file/dirhint.h"
#include "src/file/format.h"
#include "src/file/sniff.h"
#include "src/file/vocab/draft.h"
#include "src/file/vocab/vocab.h"
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

/* Fills s from files[0], and from tokenizer_config.json and chat_template.jinja next to it. */
static int read_vocab(QsfSource *s, bool json, uint32_t n_vocab, QsfErr *err) {
    QsfVocabDraft d;
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

/* --- the two formats --- */

/* Detects a JSON object, as in tokenizer.json. A safetensors file has NULs before its first brace. */
static bool is_json(const unsigned char *p, size_t n) {
    size_t i = qsf_utf8_bom((const char *)p, n);
    while (i < n && memchr(" \t\r\n", p[i], 4) != NULL) i++;
    if (i == n || p[i++] != '{' || memchr(p, 0, n) != NULL) return false;
    while (i < n && memchr(" \t\r\n", p[i], 4) != NULL) i++;
    return i == n || p[i] == '"' || p[i] == '}';
}

/* Detects a SentencePiece model: its first field is a piece, whose first field is its text. */
static bool is_sentencepiece(const unsigned char *p, size_t n) {
    return n >= 4 && p[0] == 0x0A && p[1] < 0x80 && p[2] == 0x0A && !qsf_sniff_is_text(p, n);
}

static int open_json(QsfSource *s, QsfErr *err) { return read_vocab(s, true, 0, err); }
static int open_sentencepiece(QsfSource *s, QsfErr *err) { return read_vocab(s, false, 0, err); }

const QsfFormat qsf_format_tokenizer_json = { "tokenizer.json", is_json, open_json };
const QsfFormat qsf_format_sentencepiece = { "SentencePiece", is_sentencepiece, open_sentencepiece };

int qsf_vocab_read(QsfSource *s, uint32_t n_vocab, QsfErr *err) {
    unsigned char head[QSF_SNIFF_BYTES];
    size_t n;
    int rc = qsf_sniff_head(s, head, &n, err);
    if (rc != QSF_OK) return rc;
    const bool json = is_json(head, n);
    if (!json && !is_sentencepiece(head, n))
        return qsf_sniff_reject(&s->files[0], head, n, &qsf_wanted_model, err);
    const QsfFormat *format = json ? &qsf_format_tokenizer_json : &qsf_format_sentencepiece;
    (void)snprintf(s->format, sizeof s->format, "%s", format->name);
    return read_vocab(s, json, n_vocab, err);
}
