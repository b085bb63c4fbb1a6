/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a model: the formats, and which one a file or directory has. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "src/base/paths.h"
#include "src/file/format.h"
#include "src/file/sniff.h"

static const QsfFormat *const formats[] = {
    &qsf_format_gguf,
    &qsf_format_qsf,
    &qsf_format_tokenizer_json,
    &qsf_format_sentencepiece,
};

/* Adapters and control vectors are GGUF files only. */
static int detect_and_open(QsfSource *s, const QsfWanted *w, QsfErr *err) {
    unsigned char head[QSF_SNIFF_BYTES];
    size_t n;
    int rc = qsf_sniff_head(s, head, &n, err);
    if (rc != QSF_OK) return rc;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (!formats[i]->matches(head, n) || (w != &qsf_wanted_model && formats[i] != &qsf_format_gguf))
            continue;
        (void)snprintf(s->format, sizeof s->format, "%s", formats[i]->name);
        return formats[i]->open(s, err);
    }
    return qsf_sniff_reject(&s->files[0], head, n, w, err);
}

/* Opens a model or vocabulary whose first file is given. */
static int open_one(QsfSource *s, const char *path, const QsfWanted *w, QsfErr *err) {
    QsfFile file;
    int rc = qsf_file_open(&file, path, err);
    if (rc != QSF_OK) return rc;
    s->files = qsf_arena_alloc(&s->arena, sizeof *s->files, 16, err);
    if (s->files == NULL) {
        qsf_file_close(&file);
        return err->code;
    }
    s->files[0] = file;
    s->n_files = 1;
    return detect_and_open(s, w, err);
}

static int open_dir(QsfSource *s, const char *path, bool weights, const QsfWanted *w,
                    const QsfAdapterBase *base, QsfErr *err) {
    if (base != NULL) return qsf_hf_adapter_open(s, path, base, err);
    if (w == &qsf_wanted_model) return qsf_hf_dir_open(s, path, weights, err);
    return qsf_err_set(err, QSF_E_MODEL, "%s: is a directory, not %s: expected %s", path, w->what,
                       w->expected);
}

/* base: a directory has an adapter for this model; NULL: no adapter is wanted. */
static int open_source(QsfSource **out, const char *path, bool weights, const QsfWanted *w,
                       const QsfAdapterBase *base, QsfLedger *ledger, QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local; /* the readers use its code */
    *out = NULL;
    QsfSource *s = calloc(1, sizeof *s);
    if (s == NULL) return qsf_err_memory(err, "%s", path);
    s->ledger = ledger;
    qsf_arena_init(&s->arena, ledger, QSF_MEM_META, "model metadata", 0);
    qsf_arena_init(&s->opening, ledger, QSF_MEM_META, "model headers", 0);
    int rc = qsf_path_is_dir(path) ? open_dir(s, path, weights, w, base, err) : open_one(s, path, w, err);
    qsf_arena_destroy(&s->opening);
    if (rc != QSF_OK) {
        qsf_source_close(s);
        return rc;
    }
    *out = s;
    return QSF_OK;
}

int qsf_source_open(QsfSource **out, const char *path, QsfLedger *ledger, QsfErr *err) {
    return open_source(out, path, true, &qsf_wanted_model, NULL, ledger, err);
}

int qsf_source_open_tokens(QsfSource **out, const char *path, QsfLedger *ledger, QsfErr *err) {
    return open_source(out, path, false, &qsf_wanted_model, NULL, ledger, err);
}

int qsf_source_open_adapter(QsfSource **out, const char *path, const QsfAdapterBase *base, QsfLedger *ledger,
                            QsfErr *err) {
    return open_source(out, path, true, &qsf_wanted_adapter, base, ledger, err);
}

int qsf_source_open_control(QsfSource **out, const char *path, QsfLedger *ledger, QsfErr *err) {
    return open_source(out, path, true, &qsf_wanted_control, NULL, ledger, err);
}
