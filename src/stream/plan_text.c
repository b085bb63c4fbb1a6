/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans in words: the table of a plan that fits and the refusal of one that does not. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/strbuf.h"
#include "src/stream/plan_impl.h"

static double mb(uint64_t bytes) { return (double)bytes / (double)QSF_MIB; }

char *qsf_plan_text(const QsfPlan *p) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (unsigned i = 0; i < QSF_MEM_N; i++) {
        qsf_strbuf_addf(&b, "%-20s %9.2f MB\n", qsf_mem_cat_name((QsfMemCat)i), mb(p->rows[i]));
    }
    qsf_strbuf_addf(&b, "%-20s %9.2f MB\n%-20s %9.2f MB\n", "sum", mb(p->total), "budget", mb(p->budget));
    qsf_strbuf_addf(&b, "%-20s %9" PRIu32 " tokens\n%-20s %9" PRIu32 " tokens\n", "context", p->ctx,
                    "prefill chunk", p->batch);
    qsf_strbuf_addf(&b, "%-20s %9d\n", "threads", p->threads);
    qsf_strbuf_addf(&b, "%-20s %9.2f MB, %.2f MB pinned, %.2f MB streamed per pass\n", "weights",
                    mb(p->weight_bytes), mb(p->pinned_bytes), mb(p->streamed_bytes));
    if (p->n_slots > 0) {
        qsf_strbuf_addf(&b, "%-20s %9" PRIu32 " of %.2f MB\n", "slots", p->n_slots, mb(p->slot_bytes));
    }
    qsf_strbuf_addf(&b, "%-20s %s\n", "embedding", p->embed_resident ? "in RAM" : "row by row from the file");
    if (p->note[0] != '\0') qsf_strbuf_addf(&b, "%-20s %s\n", "note", p->note);
    return qsf_strbuf_take(&b, NULL);
}

/* What the user could change, as set by the user. */
static const char *advice(const QsfPlanOptions *o) {
    if (o->ctx > QSF_CTX_MIN && o->batch > 1) return "lower --ctx or --batch, or raise --ram-budget";
    if (o->ctx > QSF_CTX_MIN) return "lower --ctx or raise --ram-budget";
    if (o->batch > 1) return "lower --batch or raise --ram-budget";
    return "raise --ram-budget or take a smaller model";
}

typedef struct Text {
    char *buf;
    size_t cap, len;
} Text;

static void add(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(Text *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->buf + t->len, t->cap - t->len, fmt, ap);
    va_end(ap);
    if (n < 0) return;
    t->len += (size_t)n < t->cap - t->len ? (size_t)n : t->cap - t->len - 1;
}

/* The end of the path, without control characters: newlines of this message are all our own. */
static void add_model(Text *t, const QsfModel *m) {
    const char *path = m->src != NULL ? qsf_source_path(m->src) : "this model";
    size_t n = strlen(path), most = 60;
    if (n > most) path += n - most;
    while (((unsigned char)*path & 0xC0) == 0x80) path++; /* not from the middle of a character */
    size_t at = t->len;
    add(t, "%s", path);
    for (; at < t->len; at++) {
        if ((unsigned char)t->buf[at] < ' ') t->buf[at] = '?';
    }
}

void qsf_plan_refuse(const QsfPricing *s, const QsfConfig *least, uint64_t smallest, QsfErr *err) {
    char buf[QSF_ERR_MSG_MAX - 64]; /* the last line must stay whole */
    uint64_t rows[QSF_MEM_N];
    Text t = {buf, sizeof buf, 0};
    uint64_t sum = qsf_pricing_rows(s, least, rows);
    add(&t, "%.5g MB is too little for ", mb(s->budget));
    add_model(&t, s->m);
    add(&t, "; the least, in MB:\n");
    for (unsigned i = 0; i < QSF_MEM_N; i++) {
        if (rows[i] > 0) add(&t, "%s %.2f\n", qsf_mem_cat_name((QsfMemCat)i), mb(rows[i]));
    }
    add(&t, "sum %.2f (context %" PRIu32 "); %s", mb(sum), least->ctx, advice(s->o));
    qsf_err_set(err, QSF_E_BUDGET, "%s\nsmallest budget that works: %" PRIu64 " MB", buf, smallest >> 20);
}
