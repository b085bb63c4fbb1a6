/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/context_info.h"

#include <string.h>

#include "src/plan/layout.h"

static const char *const names[QSF_LAYERS_N] = { "full attention", "window", "MLA", "recurrent" };

const char *qsf_layer_kind_name(QSFLayerKind kind) {
    return (unsigned)kind < QSF_LAYERS_N ? names[kind] : "";
}

/* A cache whose V is K holds the compressed rows of MLA, or the keys of an indexer. */
static QSFLayerKind kind_of(const QsfKvSpec *spec) {
    return spec->v_is_k ? QSF_LAYERS_MLA : spec->window > 0 ? QSF_LAYERS_WINDOW : QSF_LAYERS_FULL;
}

static void add_caches(const QsfProgram *p, QsfKvTypes types, uint32_t ctx, QSFLayerKindInfo *kind) {
    uint32_t last[QSF_LAYERS_N];
    memset(last, 0xff, sizeof last);
    for (uint32_t i = 0; i < p->n_kv; i++) {
        const QsfKvSpec *spec = &p->kv[i];
        const QSFLayerKind k = kind_of(spec);
        const uint32_t n = qsf_kv_positions(spec, ctx);
        kind[k].layers += spec->block != last[k];
        last[k] = spec->block;
        if (n > kind[k].positions) kind[k].positions = n;
        kind[k].token_bytes += qsf_kv_spec_bytes(spec, types, QK_KV_TILE) / QK_KV_TILE;
        kind[k].most_bytes += qsf_kv_spec_bytes(spec, types, ctx) + qsf_kv_recent_bytes(spec, types);
    }
}

static void add_states(const QsfProgram *p, QSFLayerKindInfo *kind) {
    uint32_t last = UINT32_MAX;
    for (uint32_t i = 0; i < p->n_states; i++) {
        kind->layers += p->state[i].block != last;
        last = p->state[i].block;
        kind->most_bytes += sizeof(float) * (uint64_t)p->state[i].floats;
    }
}

void qsf_context_kinds(const QsfProgram *p, QsfKvTypes types, uint32_t ctx, QSFContextInfo *out) {
    memset(out->kind, 0, sizeof out->kind);
    add_caches(p, types, ctx, out->kind);
    add_states(p, &out->kind[QSF_LAYERS_RECURRENT]);
}

void qsf_context_positions(uint32_t kept, const QsfForwardStats *f, QSFContextInfo *out) {
    out->kept = kept;
    out->evicted = f->missing;
    out->converted = f->converted;
    out->n_protected = f->n_protected < kept ? f->n_protected : kept;
}
