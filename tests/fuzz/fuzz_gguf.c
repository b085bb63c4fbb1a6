/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: any bytes as a model file. Opens them as a source and as a model and reads everything through
 * the accessors; must neither crash, leak, hang nor leave anything charged. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_array(const QsfSource *s, const char *key, QsfMetaType elem) {
    QsfMetaArray a;
    bool present;
    QsfErr e = { 0 };
    QsfMetaType as = elem == QSF_META_STRING || elem == QSF_META_F32 || elem == QSF_META_F64 ? elem
                                                                                             : QSF_META_I64;
    if (qsf_meta_array_open(s, key, as, &a, &present, &e) != QSF_OK || !present) return;
    for (uint64_t i = 0; i <= a.count && i < 100000; i++) {
        const char *str;
        size_t len;
        int64_t n;
        float f;
        int rc = as == QSF_META_STRING ? qsf_meta_array_str(&a, &str, &len, &e)
                 : as == QSF_META_I64  ? qsf_meta_array_i64(&a, &n, &e)
                                       : qsf_meta_array_f32(&a, &f, &e);
        if (rc != QSF_OK) break;
    }
    qsf_meta_array_close(&a);
}

static void read_source(const QsfSource *s) {
    for (size_t i = 0; i < qsf_meta_count(s); i++) {
        QsfMetaType type, elem;
        uint64_t count;
        int64_t n;
        float f;
        bool b;
        const char *str;
        const char *key = qsf_meta_at(s, i, &type, &elem, &count);
        if (type == QSF_META_ARRAY) read_array(s, key, elem);
        qsf_meta_i64(s, key, 0, &n, NULL);
        qsf_meta_f32(s, key, 0, &f, NULL);
        qsf_meta_bool(s, key, false, &b, NULL);
        qsf_meta_str(s, key, &str, NULL, NULL);
    }
    for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        uint64_t size = qsf_source_file(s, t->file)->size;
        if (t->bytes > size || t->offset > size - t->bytes || qsf_source_find_tensor(s, t->name) != t)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    QsfLedger ledger;
    QsfSource *s;
    QsfModel m;
    int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    if (size > 0 && write(fd, data, size) != (ssize_t)size) {
        close(fd);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    qsf_ledger_init(&ledger, (uint64_t)128 << 20);
    if (qsf_source_open(&s, path, &ledger, NULL) == QSF_OK) {
        read_source(s);
        qsf_source_close(s);
    }
    if (qsf_model_open(&m, path, NULL, &ledger, NULL) == QSF_OK) {
        (void)qsf_model_n_params(&m);
        qsf_model_close(&m);
    }
    if (ledger.total != 0) abort();
    qsf_ledger_destroy(&ledger);
    close(fd);
    return 0;
}
