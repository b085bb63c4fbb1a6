/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compressed layers on the loader's thread, between their reads and their use. */
#include "src/file/qsf/compressed.h"
#include "src/stream/loader_impl.h"

int qsf_job_unpack(QsfLoader *l, const QsfJob *j, QsfErr *err) {
    QsfWeightUnit *w = &l->o.units[j->unit];
    const QsfCompressed *c = j->compressed;
    const uint8_t *raw = j->stage + (c->off & (QSF_WINDOW - 1));
    const bool first = !atomic_load_explicit(&w->seen, memory_order_relaxed);
    int rc = first ? qsf_compressed_check(l->o.src, c, raw, err) : QSF_OK;
    if (rc == QSF_OK) rc = qsf_compressed_unpack(l->o.src, c, &l->unpacker, raw, j->whole, err);
    if (rc != QSF_OK || !first) return rc;
    if (l->o.on_layer != NULL) l->o.on_layer(l->o.on_layer_arg, c->layer, j->whole);
    atomic_store_explicit(&w->seen, true, memory_order_release);
    return QSF_OK;
}
