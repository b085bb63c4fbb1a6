/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which positions adapters act on, and which positions in the cache were evaluated with the same ones. */
#include <math.h>
#include <string.h>

#include "src/forward/forward_impl.h"

/* ---- positions in the cache ---- */

static bool same_adapter(const QsfAdapter *a, const QsfAdapter *b) {
    return a->identity == b->identity && a->scale == b->scale;
}

static bool same_controls(const QsfAdapterSet *a, const QsfAdapterSet *b) {
    const uint32_t n = a != NULL ? a->n_controls : 0;
    if (n != (b != NULL ? b->n_controls : 0)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (a->control[i].identity != b->control[i].identity || a->control[i].scale != b->control[i].scale)
            return false;
    return true;
}

/* Returns the next adapter that always acts, i or a later one; the number of adapters if there is none. */
static uint32_t next_constant(const QsfAdapterSet *s, uint32_t i) {
    const uint32_t n = s != NULL ? s->n : 0;
    while (i < n && s->adapter[i].n_invocation > 0) i++;
    return i < n ? i : n;
}

/* Do both sets do the same before any invocation? */
static bool same_before(const QsfAdapterSet *a, const QsfAdapterSet *b) {
    const uint32_t na = a != NULL ? a->n : 0, nb = b != NULL ? b->n : 0;
    uint32_t i = next_constant(a, 0), k = next_constant(b, 0);
    while (i < na && k < nb && same_adapter(&a->adapter[i], &b->adapter[k])) {
        i = next_constant(a, i + 1);
        k = next_constant(b, k + 1);
    }
    return i == na && k == nb && same_controls(a, b);
}

static void distrust(QsfForward *f, uint32_t from) {
    if (from < f->stale_from && from < f->kv.n_past) f->stale_from = from;
}

void qsf_forward_adapted(QsfForward *f, const QsfAdapterSet *old) {
    distrust(f, same_before(old, f->adapters.set) ? f->invoked_from : 0);
    f->invoked_from = UINT32_MAX;
}

/* The factor of a pair, as when it was read: its scales in memory are powers of two. */
static float factor_of(const QsfAdapters *a, const QsfAdapter *of, const QsfAdapterPair *p) {
    const float *in_memory = a->scales + 2 * (size_t)p->index;
    return qsf_adapter_factor(of, p) / in_memory[0] / in_memory[1];
}

/* Computes all factors with these scales; store: into memory. */
static int scale_all(QsfForward *f, const QsfAdapterSet *s, const float *scale, bool store, QsfErr *err) {
    for (uint32_t k = 0; k < s->n; k++) {
        QsfAdapter a = s->adapter[k];
        a.scale = scale[k];
        for (uint32_t i = 0; i < a.n_pairs; i++) {
            const QsfAdapterPair *p = &a.pair[i];
            if (!p->used) continue;
            const float factor = factor_of(&f->adapters, &a, p);
            if (!isfinite(factor))
                return qsf_err_set(err, QSF_E_MODEL, "%s: the scale %g is too large for '%s.lora_a'", a.path,
                                   (double)a.scale, p->name);
            if (store) f->adapters.factor[p->index] = factor;
        }
    }
    return QSF_OK;
}

int qsf_forward_rescale(QsfForward *f, QsfAdapterSet *s, const float *scale, QsfErr *err) {
    bool always = false, invoked = false;
    int rc = scale_all(f, s, scale, false, err);
    if (rc != QSF_OK) return rc;
    (void)scale_all(f, s, scale, true, err);
    for (uint32_t k = 0; k < s->n; k++) {
        QsfAdapter *a = &s->adapter[k];
        const bool differs = a->scale != scale[k];
        if (a->n_invocation == 0) always = always || differs;
        if (a->n_invocation > 0) invoked = invoked || differs;
        a->scale = scale[k];
    }
    if (always) distrust(f, 0);
    if (invoked) distrust(f, f->invoked_from);
    return QSF_OK;
}

/* ---- invocations ---- */

/* Returns where the last invocation of an adapter in ids begins; UINT32_MAX: it has none. */
static uint32_t invocation(const QsfAdapter *a, const int32_t *ids, size_t n) {
    const size_t k = a->n_invocation;
    if (k == 0) return 0;
    for (size_t i = n >= k ? n - k + 1 : 0; i > 0; i--)
        if (memcmp(ids + i - 1, a->invocation, k * sizeof *ids) == 0) return (uint32_t)(i - 1);
    return UINT32_MAX;
}

void qsf_forward_invoke(QsfForward *f, const int32_t *ids, size_t n) {
    QsfAdapters *a = &f->adapters;
    f->invoked_from = UINT32_MAX;
    for (uint32_t i = 0; a->set != NULL && i < a->set->n; i++) {
        const uint32_t from = invocation(&a->set->adapter[i], ids, n), old = a->from[i];
        if (from != old) distrust(f, from < old ? from : old);
        a->from[i] = from;
        if (a->set->adapter[i].n_invocation > 0 && from < f->invoked_from) f->invoked_from = from;
    }
}

void qsf_adapters_truncated(QsfForward *f) {
    const QsfAdapterSet *s = f->adapters.set;
    for (uint32_t i = 0; s != NULL && i < s->n; i++)
        if (s->adapter[i].n_invocation > 0 && f->adapters.from[i] >= f->kv.n_past)
            f->adapters.from[i] = UINT32_MAX;
}

/* ---- the key of a snapshot ---- */

static uint64_t add(uint64_t h, uint64_t v) {
    for (unsigned i = 0; i < 8; i++) h = (h ^ (v >> 8 * i & 0xFF)) * 0x100000001B3u; /* FNV-1a */
    return h;
}

static uint64_t add_scale(uint64_t h, float scale) {
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    return add(h, bits);
}

uint64_t qsf_adapters_key(const QsfForward *f) {
    const QsfAdapterSet *s = f->adapters.set;
    uint64_t h = 0;
    for (uint32_t i = 0; s != NULL && i < s->n; i++) {
        if (s->adapter[i].n_invocation > 0 && f->adapters.from[i] >= f->kv.n_past) continue;
        h = add_scale(add(h != 0 ? h : 0xCBF29CE484222325u, s->adapter[i].identity), s->adapter[i].scale);
        h = add(h, f->adapters.from[i]);
    }
    for (uint32_t i = 0; s != NULL && i < s->n_controls; i++)
        h = add_scale(add(h != 0 ? h : 0xCBF29CE484222325u, s->control[i].identity), s->control[i].scale);
    return h;
}
