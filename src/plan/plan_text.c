/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text for plans: the table of a plan that fits and the error message of one that does not. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/plural.h"
#include "src/base/strbuf.h"
#include "src/plan/plan_impl.h"

static double mb(uint64_t bytes) { return (double)bytes / (double)QSF_MIB; }

static void line(QsfStrbuf *b, const char *name, double value, const char *unit) {
    qsf_strbuf_addf(b, "%-20s %9.2f %s", name, value, unit);
}

/* Bytes and their share of all weights. */
static void share(QsfStrbuf *b, const QsfPlan *p, const char *name, uint64_t bytes) {
    double percent = p->weight_bytes > 0 ? 100.0 * (double)bytes / (double)p->weight_bytes : 0;
    line(b, name, mb(bytes), "MB");
    qsf_strbuf_addf(b, ", %.1f %%\n", percent);
}

static void streaming(QsfStrbuf *b, const QsfPlan *p) {
    if (p->n_slots == 0) {
        qsf_strbuf_addf(b, "%-20s %9s\n", "slots", "none");
        return;
    }
    qsf_strbuf_addf(b, "%-20s %9" PRIu32 " of %.2f MB\n", "slots", p->n_slots, mb(p->slot_bytes));
    if (p->disk_bytes == p->streamed_bytes || p->n_stages == 0) return;
    line(b, "read per token", mb(p->disk_bytes), "MB, compressed\n");
}

static void embedding(QsfStrbuf *b, const QsfPlan *p) {
    qsf_strbuf_addf(b, "%-20s ", "embedding rows");
    if (p->embed_resident)
        qsf_strbuf_addf(b, "resident: all in RAM\n");
    else if (p->embed_rows == 0)
        qsf_strbuf_addf(b, "lru: read from the file one by one\n");
    else
        qsf_strbuf_addf(b, "lru: read from the file, %" PRIu32 " cached\n", p->embed_rows);
}

/* For K or V, which have the same three types. */
static void kv_reason(QsfKvReason why, qk_kv used, qk_kv most, qk_kv set, char *dst, size_t cap) {
    static const char *const texts[QSF_KV_REASON_N] = { "the default", "as set", "lowered to fit the budget",
                                                        "" };
    if (why != QSF_KV_INSTEAD)
        snprintf(dst, cap, "%s", texts[why]);
    else if (used != set)
        snprintf(dst, cap, "because the model cannot store %s", qk_kv_name(set));
    else
        snprintf(dst, cap, "as set, %s where the model cannot store it", qk_kv_name(most));
}

void qsf_plan_kv_text(const QsfPlan *p, char *dst, size_t cap) {
    char kv[QSF_KV_TYPES_TEXT], k[56], v[56];
    qsf_kv_types_print(p->kv, kv, sizeof kv);
    kv_reason(p->why_k, p->kv.k, p->kv_most.k, p->kv_set.k, k, sizeof k);
    kv_reason(p->why_v, p->kv.v, p->kv_most.v, p->kv_set.v, v, sizeof v);
    if (strcmp(k, v) == 0)
        snprintf(dst, cap, "%s (%s)", kv, k);
    else
        snprintf(dst, cap, "%s (K %s, V %s)", kv, k, v);
}

static void share_of(QsfStrbuf *b, uint64_t part, uint64_t all) {
    qsf_strbuf_addf(b, ", %.2f MB of them in RAM, %.1f %%\n", mb(part), 100.0 * (double)part / (double)all);
}

static void experts(QsfStrbuf *b, const QsfPlan *p) {
    if (p->expert_bytes == 0) return;
    line(b, "experts", mb(p->expert_bytes), "MB");
    share_of(b, qsf_plan_expert_resident(p), p->expert_bytes);
    if (p->expert_slots == 0) return;
    qsf_strbuf_addf(b, "%-20s %9" PRIu32 " of %.2f MB, about %.0f %% of those chosen are in them%s\n",
                    "expert slots", p->expert_slots, mb(p->expert_slot_bytes), 100 * p->expert_hits,
                    p->expert_known ? ", by earlier conversations" : "");
}

/* Beside the rows of a pass, which are among the activations. */
static void drafts(QsfStrbuf *b, const QsfPlan *p) {
    if (p->draft_cols < 2) return;
    line(b, "drafts", mb(p->beside_bytes + qsf_lookup_bytes(p->lookup_tokens)), "MB");
    qsf_strbuf_addf(b, ", up to %" PRIu32 " tokens in a pass\n", p->draft_cols);
}

char *qsf_plan_text(const QsfPlan *p) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    char kv[QSF_PLAN_KV_TEXT];
    for (unsigned i = 0; i < QSF_MEM_N; i++) line(&b, qsf_mem_cat_name((QsfMemCat)i), mb(p->rows[i]), "MB\n");
    line(&b, "sum", mb(p->total), "MB\n");
    line(&b, "budget", mb(p->budget), "MB\n");
    qsf_strbuf_addf(&b, "%-20s %9" PRIu32 " tokens\n%-20s %9" PRIu32 " tokens\n", "context", p->ctx,
                    "prefill chunk", p->batch);
    qsf_plan_kv_text(p, kv, sizeof kv);
    qsf_strbuf_addf(&b, "%-20s %s\n", "KV cache type", kv);
    if (p->state_bytes > 0)
        qsf_strbuf_addf(&b, "%-20s %9" PRIu32 " of %.2f MB of state\n", "checkpoints", p->checkpoints,
                        mb(p->state_bytes));
    qsf_strbuf_addf(&b, "%-20s %9d\n", "threads", p->threads);
    line(&b, "weights", mb(p->weight_bytes), "MB\n");
    share(&b, p, "pinned", p->pinned_bytes);
    share(&b, p, "streamed per token", p->streamed_bytes);
    if (p->lent_weight > 0) {
        share(&b, p, "pinned at start", p->pinned_bytes + p->lent_weight);
        share(&b, p, "streamed at start", p->streamed_bytes - p->lent_active);
    }
    experts(&b, p);
    streaming(&b, p);
    embedding(&b, p);
    drafts(&b, p);
    qsf_strbuf_addf(&b, "%-20s %s, direct %s%s\n", "io", qsf_io_kind_name(p->stream.kind),
                    qsf_io_direct_name(p->stream.direct),
                    p->stream.keep_cached ? ", the page cache may keep the file" : "");
    if (p->note[0] != '\0') qsf_strbuf_addf(&b, "%-20s %s\n", "note", p->note);
    return qsf_strbuf_take(&b, NULL);
}

typedef struct Text {
    char *buf;
    size_t cap, len;
} Text;

static void add(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(Text *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = qsf_plural_vsnprintf(t->buf + t->len, t->cap - t->len, fmt, ap);
    va_end(ap);
    if (n < 0) return;
    t->len += (size_t)n < t->cap - t->len ? (size_t)n : t->cap - t->len - 1;
}

/* ---- what was lowered ---- */

static void comma(Text *t) {
    if (t->len > 0) add(t, ", ");
}

/* The types without regard to memory and to those of positions in the cache. */
static QsfKvTypes best_types(const QsfPricing *s) {
    const QsfConfig best = { .kv = qsf_kv_choices() - 1 };
    QsfPlanOptions o = *s->o;
    QsfPricing fresh = *s;
    o.keep_k = o.keep_v = false;
    fresh.o = &o;
    return qsf_pricing_kv(&fresh, &best);
}

/* kept: the positions in the cache are the reason. */
static void note_types(const QsfPricing *s, const QsfPlan *p, bool kept, Text *t) {
    char kv[QSF_KV_TYPES_TEXT], best[QSF_KV_TYPES_TEXT];
    const bool held = (s->o->keep_k || s->o->keep_v) && qsf_kv_types_equal(p->kv, s->o->kv_now);
    if ((p->why_k != QSF_KV_LOWERED && p->why_v != QSF_KV_LOWERED) || held != kept) return;
    qsf_kv_types_print(p->kv, kv, sizeof kv);
    qsf_kv_types_print(best_types(s), best, sizeof best);
    comma(t);
    add(t, kept ? "KV cache %s instead of %s because it is not empty" : "KV cache %s instead of %s", kv,
        best);
}

static uint64_t cache_bytes(const QsfPricing *s, const QsfPlan *p, QsfKvTypes t) {
    const QsfProgram *prog = &s->m->prog;
    const uint32_t n = qsf_checkpoint_count(prog, t, p->ctx, s->budget);
    return qsf_kv_bytes(prog->kv, prog->n_kv, t, p->ctx) + qsf_recurrent_bytes(prog, t, n);
}

/* Where the context is short, the copies of recent positions take more than 2 bits save. */
static void note_larger(const QsfPricing *s, const QsfPlan *p, Text *t) {
    const QsfKvTypes other = { p->kv.k == QK_KV_Q2 ? QK_KV_Q4 : p->kv.k,
                               p->kv.v == QK_KV_Q2 ? QK_KV_Q4 : p->kv.v };
    const uint64_t now = cache_bytes(s, p, p->kv), then = cache_bytes(s, p, other);
    char kv[QSF_KV_TYPES_TEXT], smaller[QSF_KV_TYPES_TEXT];
    if (then >= now) return;
    qsf_kv_types_print(p->kv, kv, sizeof kv);
    qsf_kv_types_print(other, smaller, sizeof smaller);
    comma(t);
    add(t, "KV cache %s takes %.2f MB for %" PRIu32 " tokens, %s would take %.2f", kv, mb(now), p->ctx,
        smaller, mb(then));
}

static void note_half(const QsfPricing *s, Text *t) {
    if (!s->above_half) return;
    comma(t);
    add(t,
        "automatic RAM budget of %" PRIu64 " MB because half of the %" PRIu64 " MB that are available is "
        "too little",
        s->budget >> 20, s->o->available >> 20);
}

void qsf_plan_note(const QsfPricing *s, const QsfConfig *c, QsfPlan *p) {
    Text t = { p->note, sizeof p->note, 0 };
    QsfConfig want = qsf_plan_preferred(s);
    if (c->ctx < want.ctx)
        add(&t, "context lowered from %" PRIu32 " to %" PRIu32 " tokens", want.ctx, c->ctx);
    note_types(s, p, false, &t);
    if (!p->embed_resident && c->embed_rows < want.embed_rows) {
        comma(&t);
        if (c->embed_rows == 0)
            add(&t, "no embedding rows kept");
        else
            add(&t, "%" PRIu32 " instead of %" PRIu32 " embedding rows kept", c->embed_rows, want.embed_rows);
    }
    if (c->n_slots > 0 && (c->n_slots < want.n_slots || c->slot_bytes < want.slot_bytes)) {
        comma(&t);
        add(&t, "%" PRIu32 " layer slot%s of %" PRIu64 " KB instead of %" PRIu32 " of %" PRIu64 " KB",
            c->n_slots, c->n_slots == 1 ? "" : "s", c->slot_bytes >> 10, want.n_slots, want.slot_bytes >> 10);
    }
    if (c->batch < want.batch) {
        comma(&t);
        add(&t, "prefill chunk of %" PRIu32 " token%s", c->batch, c->batch == 1 ? "" : "s");
    }
    if (t.len > 0) add(&t, " to fit %" PRIu64 " MB", s->budget >> 20);
    note_half(s, &t);
    note_types(s, p, true, &t);
    note_larger(s, p, &t);
    if (p->batch == s->o->batch || s->o->batch == 0) return;
    comma(&t);
    add(&t, "prefill chunk of %" PRIu32 " instead of %" PRIu32 " tokens, which is all that %s", p->batch,
        s->o->batch, p->batch == p->ctx ? "the context has" : "a model with windows takes");
}

/* ---- refusals ---- */

const char *qsf_option_name(QsfOptionName name, bool commands) {
    static const char *const names[QSF_OPTION_N][2] = {
        [QSF_OPTION_BUDGET] = { "--ram-budget", "/budget" },
        [QSF_OPTION_CTX] = { "--ctx", "/ctx" },
        [QSF_OPTION_BATCH] = { "--batch", "/batch" },
        [QSF_OPTION_KV] = { "--kv-type q8", "/kv type q8" },
    };
    return names[name][commands];
}

static bool large_types(const QsfPlanOptions *o) {
    return (o->k >= 0 && qsf_kv_type_bits((qk_kv)o->k) > 8) ||
           (o->v >= 0 && qsf_kv_type_bits((qk_kv)o->v) > 8);
}

/* Suggests what to change among the settings the user has made. */
static void add_advice(Text *t, const QsfPlanOptions *o) {
    const char *budget = qsf_option_name(QSF_OPTION_BUDGET, o->commands);
    const char *ctx = o->ctx > QSF_CTX_MIN ? qsf_option_name(QSF_OPTION_CTX, o->commands) : NULL;
    const char *batch = o->batch > 1 ? qsf_option_name(QSF_OPTION_BATCH, o->commands) : NULL;
    if (large_types(o)) add(t, "use %s, ", qsf_option_name(QSF_OPTION_KV, o->commands));
    if (ctx != NULL && batch != NULL)
        add(t, "lower %s or %s, or raise %s", ctx, batch, budget);
    else if (ctx != NULL || batch != NULL)
        add(t, "lower %s or raise %s", ctx != NULL ? ctx : batch, budget);
    else
        add(t, "raise %s or take a smaller model", budget);
}

/* Appends the end of the path without control characters, so that it cannot add lines to the message. */
static void add_model(Text *t, const QsfModel *m) {
    const char *path = m->src != NULL ? qsf_source_path(m->src) : "this model";
    size_t n = strlen(path), most = 60;
    if (n > most) path += n - most;
    while (((unsigned char)*path & 0xC0) == 0x80) path++; /* do not start in the middle of a character */
    size_t at = t->len;
    add(t, "%s", path);
    for (; at < t->len; at++) {
        if ((unsigned char)t->buf[at] < ' ') t->buf[at] = '?';
    }
}

void qsf_plan_refuse(const QsfPricing *s, const QsfConfig *least, uint64_t smallest, QsfErr *err) {
    char buf[QSF_ERR_MSG_MAX - 64]; /* the last line must not be truncated */
    uint64_t rows[QSF_MEM_N];
    Text t = { buf, sizeof buf, 0 };
    uint64_t sum = qsf_pricing_rows(s, least, rows);
    add(&t, "%.5g MB", mb(s->budget));
    if (s->o->asked > s->o->budget) add(&t, ", which is all that this machine, or its cgroup, has,");
    if (s->above_half) add(&t, ", three quarters of the %.5g MB that are available,", mb(s->o->available));
    add(&t, " is too little for ");
    add_model(&t, s->m);
    add(&t, "; the least, in MB:\n");
    for (unsigned i = 0; i < QSF_MEM_N; i++) {
        if (rows[i] > 0) add(&t, "%s %.2f\n", qsf_mem_cat_name((QsfMemCat)i), mb(rows[i]));
    }
    if (s->o->opening_bytes > s->budget) add(&t, "opening the model %.2f\n", mb(s->o->opening_bytes));
    add(&t, "sum %.2f (context %" PRIu32 "); ", mb(sum), least->ctx);
    add_advice(&t, s->o);
    char text[QSF_ERR_MSG_MAX];
    snprintf(text, sizeof text, "%s\nsmallest budget that works: %" PRIu64 " MB", buf, smallest >> 20);
    qsf_err_lines(err, QSF_E_BUDGET, text);
}
