/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growable list of token ids. */
#include <string.h>

#include "src/base/heap.h"
#include "src/token/tokenizer.h"

static int grow(QsfIds *ids, size_t extra, QsfErr *err) {
    if (extra <= ids->cap - ids->n) return QSF_OK;
    size_t want = ids->cap < 64 ? 64 : ids->cap + ids->cap / 2;
    if (extra > SIZE_MAX / 4 - ids->n || want > SIZE_MAX / sizeof *ids->data) {
        return qsf_err_memory(err, "%zu more token ids", extra);
    }
    if (want < ids->n + extra) want = ids->n + extra;
    void *p = ids->data;
    int rc = qsf_heap_resize(ids->ledger, QSF_MEM_TRANSCRIPT, ids->cap * sizeof *ids->data,
                             want * sizeof *ids->data, "token ids of the prompt", &p, err);
    if (rc != QSF_OK) return rc;
    ids->data = p;
    ids->cap = want;
    return QSF_OK;
}

int qsf_ids_push(QsfIds *ids, int32_t id, QsfErr *err) {
    if (ids->n == ids->cap) {
        int rc = grow(ids, 1, err);
        if (rc != QSF_OK) return rc;
    }
    ids->data[ids->n++] = id;
    return QSF_OK;
}

int qsf_ids_append(QsfIds *ids, const int32_t *src, size_t n, QsfErr *err) {
    if (n == 0) return QSF_OK;
    int rc = grow(ids, n, err);
    if (rc != QSF_OK) return rc;
    memcpy(ids->data + ids->n, src, n * sizeof *src);
    ids->n += n;
    return QSF_OK;
}

void qsf_ids_free(QsfIds *ids) {
    void *p = ids->data;
    (void)qsf_heap_resize(ids->ledger, QSF_MEM_TRANSCRIPT, ids->cap * sizeof *ids->data, 0, "", &p, NULL);
    *ids = (QsfIds){ .ledger = ids->ledger };
}
