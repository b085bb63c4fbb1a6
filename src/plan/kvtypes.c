/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/plan/kvtypes.h"

#include <stdio.h>
#include <string.h>

#include "kernels/kvsize.h"
#include "src/model/hparams.h"

typedef struct Row {
    unsigned bits; /* of an element */
    bool latent;   /* for caches whose V is K: the rows of MLA, keys of indexers */
    unsigned dims; /* for heads whose size is a multiple of this */
} Row;

#define ROW(a, name, NAME, bits, latent, dims) [QK_KV_##NAME] = { bits, latent, dims },
static const Row rows[QK_KV_N] = { QK_KV_TYPES(ROW, ) };

_Static_assert(QSF_MAX_HEAD_DIM <= QK_KV_MAX_DIM, "a head that the kernels do not store");

/* Bits of K and V in the order in which a plan lowers them (docs/MEMORY.md). */
static const struct { unsigned k, v; } choices[] = { { 16, 16 }, { 8, 8 }, { 8, 4 }, { 4, 4 } };

qk_kv qsf_kv_type_parse(const char *name) {
    for (int i = 0; i < QK_KV_N; i++)
        if (strcmp(name, qk_kv_name((qk_kv)i)) == 0) return (qk_kv)i;
    return QK_KV_N;
}

unsigned qsf_kv_type_bits(qk_kv type) { return rows[type].bits; }

static qk_kv fewer_bits(qk_kv a, qk_kv b) { return qsf_kv_type_bits(b) < qsf_kv_type_bits(a) ? b : a; }

QsfKvTypes qsf_kv_types_less(QsfKvTypes a, QsfKvTypes b) {
    return (QsfKvTypes){ fewer_bits(a.k, b.k), fewer_bits(a.v, b.v) };
}

void qsf_kv_types_print(QsfKvTypes t, char *dst, size_t cap) {
    if (t.k == t.v)
        snprintf(dst, cap, "%s", qk_kv_name(t.k));
    else
        snprintf(dst, cap, "%s/%s", qk_kv_name(t.k), qk_kv_name(t.v));
}

/* The type of recent positions. */
static qk_kv recent_of(qk_kv type) { return type == QK_KV_Q2 ? QK_KV_Q8 : type; }

static bool can_have(const QsfKvSpec *spec, qk_kv type) {
    return (rows[type].latent || !spec->v_is_k) && spec->dim % rows[type].dims == 0 &&
           (recent_of(type) == type || spec->read_once);
}

/* The type itself, or the one with the fewest more bits that the cache can have. */
static qk_kv nearest(const QsfKvSpec *spec, qk_kv type) {
    const unsigned bits = qsf_kv_type_bits(type);
    qk_kv best = QK_KV_F32;
    if (can_have(spec, type)) return type; /* nearly always, and a plan asks hundreds of thousands of times */
    for (int i = 0; i < QK_KV_N; i++) {
        const unsigned b = qsf_kv_type_bits((qk_kv)i);
        if (can_have(spec, (qk_kv)i) && b >= bits && b < qsf_kv_type_bits(best)) best = (qk_kv)i;
    }
    return best;
}

qk_kv qsf_kv_stored(const QsfKvSpec *spec, QsfKvTypes t, unsigned which) {
    return nearest(spec, spec->v_is_k || which == 0 ? t.k : t.v);
}

static qk_kv further(qk_kv a, qk_kv b, bool most) {
    return (qsf_kv_type_bits(b) > qsf_kv_type_bits(a)) == most ? b : a;
}

/* Those with the most bits, or the fewest. */
static QsfKvTypes used(const QsfKvSpec *spec, uint32_t n, QsfKvTypes t, bool most) {
    QsfKvTypes all = t;
    bool has_v = false;
    for (uint32_t i = 0; i < n; i++) {
        const qk_kv k = qsf_kv_stored(&spec[i], t, 0), v = qsf_kv_stored(&spec[i], t, 1);
        all.k = i > 0 ? further(all.k, k, most) : k;
        if (spec[i].v_is_k) continue;
        all.v = has_v ? further(all.v, v, most) : v;
        has_v = true;
    }
    if (n > 0 && !has_v) all.v = all.k;
    return all;
}

QsfKvTypes qsf_kv_types_used(const QsfKvSpec *spec, uint32_t n, QsfKvTypes t) {
    return used(spec, n, t, false);
}

QsfKvTypes qsf_kv_types_most(const QsfKvSpec *spec, uint32_t n, QsfKvTypes t) {
    return used(spec, n, t, true);
}

size_t qsf_kv_tile(const QsfKvSpec *spec, QsfKvTypes t, unsigned which) {
    return qk_kv_tile_bytes(qsf_kv_stored(spec, t, which), spec->dim);
}

qk_kv qsf_kv_recent_type(const QsfKvSpec *spec, QsfKvTypes t, unsigned which) {
    return recent_of(qsf_kv_stored(spec, t, which));
}

bool qsf_kv_has_recent(const QsfKvSpec *spec, QsfKvTypes t) {
    for (unsigned which = 0; which < 2; which++)
        if (qsf_kv_recent_type(spec, t, which) != qsf_kv_stored(spec, t, which)) return true;
    return false;
}

size_t qsf_kv_recent_tile(const QsfKvSpec *spec, QsfKvTypes t, unsigned which) {
    return qk_kv_tile_bytes(qsf_kv_recent_type(spec, t, which), spec->dim);
}

static qk_kv of_bits(unsigned bits) {
    for (int i = 0; i < QK_KV_N; i++)
        if (qsf_kv_type_bits((qk_kv)i) == bits) return (qk_kv)i;
    return QK_KV_N;
}

unsigned qsf_kv_choices(void) {
    unsigned n = 0;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        n += of_bits(choices[i].k) != QK_KV_N && of_bits(choices[i].v) != QK_KV_N;
    return n;
}

QsfKvTypes qsf_kv_choice(unsigned n) {
    QsfKvTypes t = { QK_KV_F16, QK_KV_F16 };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const QsfKvTypes c = { of_bits(choices[i].k), of_bits(choices[i].v) };
        if (c.k == QK_KV_N || c.v == QK_KV_N) continue;
        t = c;
        if (n-- == 0) break;
    }
    return t;
}
