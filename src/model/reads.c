/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/model/reads.h"

#include <string.h>

#include "src/model/reads_impl.h"

static void *append(QsfReads *r, size_t size) {
    void *mem = qsf_arena_alloc(r->arena, size, _Alignof(max_align_t), NULL);
    if (mem == NULL) r->failed = true;
    return mem;
}

static QsfReadKey *find_key(const QsfReads *r, const char *arch, const char *name) {
    for (QsfReadKey *k = r->keys; k != NULL; k = k->next)
        if ((k->name == name || strcmp(k->name, name) == 0) && strcmp(k->arch, arch) == 0) return k;
    return NULL;
}

void qsf_reads_key(QsfReads *r, const char *arch, const char *name, const QsfReadValue *absent) {
    if (r == NULL || r->arena == NULL) return;
    QsfReadKey *k = find_key(r, arch, name);
    if (k == NULL) {
        k = append(r, sizeof *k);
        if (k == NULL) return;
        *k = (QsfReadKey){ .arch = arch, .name = name, .value.type = QSF_META_N };
        if (r->last_key != NULL)
            r->last_key->next = k;
        else
            r->keys = k;
        r->last_key = k;
    }
    k->absent = absent != NULL;
    if (absent != NULL && k->value.type == QSF_META_N) k->value = *absent;
}

static QsfAbsentTensor *add_tensor(QsfReads *r, const char *name) {
    const size_t len = strlen(name);
    QsfAbsentTensor *t = append(r, sizeof *t + len + 1);
    if (t == NULL) return NULL;
    memcpy(t->name, name, len + 1);
    if (r->last_tensor != NULL)
        r->last_tensor->next = t;
    else
        r->tensors = t;
    r->last_tensor = t;
    return t;
}

void qsf_reads_tensor(QsfReads *r, const char *name, uint32_t block) {
    QsfAbsentTensor *t;
    if (r == NULL || r->arena == NULL) return;
    for (t = r->tensors; t != NULL && strcmp(t->name, name) != 0; t = t->next) continue;
    if (t == NULL) t = add_tensor(r, name);
    if (t != NULL && block < QSF_MAX_LAYERS) t->block[block / 64] |= 1ull << (block % 64);
}
