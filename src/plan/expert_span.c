/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/plan/expert_span.h"

/* The windows of some matrices. */
typedef struct Windows {
    uint64_t from, to, bytes; /* the range that contains them, and their sum */
    const QsfTensor *first;
    bool same; /* all are in the same file */
} Windows;

static void add(Windows *w, const QsfUnit *u) {
    QsfChunk c;
    qsf_chunk_make(u, 0, u->items, &c);
    for (unsigned i = 0; i < c.n_parts; i++) {
        const QsfPart *p = &c.part[i];
        const QsfTensor *t = u->tensor[p->tensor];
        if (w->first == NULL) *w = (Windows){ .from = p->file_off, .first = t, .same = true };
        w->same = w->same && t->file == w->first->file;
        if (p->file_off < w->from) w->from = p->file_off;
        if (p->file_off + p->window_bytes > w->to) w->to = p->file_off + p->window_bytes;
    }
    w->bytes += c.bytes;
}

static QsfExpertRange range_of(const Windows *w) {
    const bool one = w->same && w->to - w->from <= w->bytes;
    return (QsfExpertRange){ one, one ? w->from : 0, one ? w->to - w->from : w->bytes };
}

void qsf_expert_span(const QsfUnit *first, const QsfUnit *second, QsfExpertSpan *out) {
    Windows all = { 0 }, one = { 0 }, two = { 0 };
    add(&all, first);
    add(&all, second);
    add(&one, first);
    add(&two, second);
    *out = (QsfExpertSpan){ range_of(&all), { range_of(&one), range_of(&two) } };
    if (!out->all.one) out->all.bytes = out->unit[0].bytes + out->unit[1].bytes;
}

void qsf_expert_chunk(const QsfUnit *first, const QsfUnit *second, unsigned which, QsfChunk *c) {
    const QsfUnit *u = which == 0 ? first : second;
    QsfExpertSpan s;
    qsf_expert_span(first, second, &s);
    qsf_chunk_make(u, 0, u->items, c);
    const QsfExpertRange *r = s.all.one ? &s.all : &s.unit[which];
    const uint64_t before = s.all.one || which == 0 ? 0 : s.unit[0].bytes;
    for (unsigned i = 0; i < c->n_parts; i++) {
        QsfPart *p = &c->part[i];
        const uint64_t in_window = p->at - p->window;
        p->window = before + (r->one ? p->file_off - r->from : p->window);
        p->at = p->window + in_window;
    }
}
