/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads whole files into memory charged to the ledger. */
#include "src/file/whole.h"

#include <unistd.h>

#include "src/base/decode.h"
#include "src/file/lfs.h"

int qsf_whole_map(QsfSource *s, const QsfFile *f, uint64_t len, char **out, QsfErr *err) {
    void *p;
    *out = NULL;
    int rc = qsf_mem_map(s->ledger, QSF_MEM_META, len + 1, "text of a model", &p, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_file_pread(f, p, (size_t)len, 0, err);
    if (rc != QSF_OK) qsf_mem_unmap(s->ledger, QSF_MEM_META, p, len + 1);
    if (rc == QSF_OK) *out = p;
    return rc;
}

void qsf_whole_unmap(QsfSource *s, char *text, uint64_t len) {
    if (text != NULL) qsf_mem_unmap(s->ledger, QSF_MEM_META, text, len + 1);
}

int qsf_whole_open(QsfSource *s, const char *path, uint64_t max, QsfWhole *w, QsfErr *err) {
    *w = (QsfWhole){ .f = { .fd = -1 } };
    if (access(path, F_OK) != 0) return QSF_OK;
    int rc = qsf_file_open(&w->f, path, err);
    if (rc == QSF_OK) rc = qsf_lfs_check(&w->f, err);
    if (rc == QSF_OK && w->f.size > max)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: has %llu bytes, more than the limit of %llu", path,
                         (unsigned long long)w->f.size, (unsigned long long)max);
    if (rc == QSF_OK) rc = qsf_whole_map(s, &w->f, w->f.size, &w->text, err);
    if (rc == QSF_OK) rc = qsf_whole_check_utf8(path, w->text, (size_t)w->f.size, err);
    if (rc != QSF_OK) qsf_whole_close(s, w);
    return rc;
}

int qsf_whole_check_utf8(const char *path, const char *text, size_t len, QsfErr *err) {
    const char *name = qsf_decode_name(text, len);
    if (name == NULL) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL, "%s: is %s text, expected UTF-8: convert it, for example with iconv",
                       path, name);
}

void qsf_whole_close(QsfSource *s, QsfWhole *w) {
    qsf_whole_unmap(s, w->text, w->f.size);
    qsf_file_close(&w->f);
    w->text = NULL;
}

int qsf_whole_json(const QsfWhole *w, QsfJson **out, QsfErr *err) {
    QsfErr e = { 0 };
    *out = qsf_json_parse(w->text, (size_t)w->f.size, &e);
    if (*out != NULL) return QSF_OK;
    return e.memory ? qsf_err_pass(err, &e) : qsf_err_set(err, QSF_E_MODEL, "%s: %s", w->f.path, e.msg);
}
