/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Engine statistics: implements stats.h. */
#include "src/engine/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/utf8.h"
#include "src/engine/model_info.h"
#include "src/engine/quality/quality.h"
#include "src/forward/forward.h"
#include "src/plan/layout.h"

/* ---- how layers keep past positions ---- */

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

static void context_kinds(const QsfProgram *p, QsfKvTypes types, uint32_t ctx, QSFContextInfo *out) {
    memset(out->kind, 0, sizeof out->kind);
    add_caches(p, types, ctx, out->kind);
    add_states(p, &out->kind[QSF_LAYERS_RECURRENT]);
}

static void context_positions(uint32_t kept, const QsfForwardStats *f, QSFContextInfo *out) {
    out->kept = kept;
    out->evicted = f->missing;
    out->converted = f->converted;
    out->n_protected = f->n_protected < kept ? f->n_protected : kept;
}

/* ---- statistics ---- */

#define RSS_NS     100000000u /* the resident set is read at most ten times a second */
#define READ_LEAST 16         /* tokens of a prefill whose speed counts for the next one */
#define WAIT_MOST  0.95       /* of the time of a token: the rest is computing */
#define READ_PRIOR 0.1        /* the part of a prefill that the speed of the last one counts for */
#define READ_SHOWN 0.02       /* the part that has to be done before its own speed says anything, */
#define READ_WAIT  0.4        /* or the seconds that it has to take */

_Static_assert(QSF_STATS_MEM == QSF_MEM_N, "one row per category");

static double per_second(double n, uint64_t ns) { return ns > 0 ? n * 1e9 / (double)ns : 0; }

static void set_state(QsfLiveStats *b, QSFState state) {
    b->s.state = state;
    b->state_ns = qsf_now_ns();
}

void qsf_live_stats_init(QsfLiveStats *b, const QSFSettings *s) {
    memset(b, 0, sizeof *b);
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_init(&b->rss_lock, NULL);
    b->s.budget = s->ram_budget;
    set_state(b, QSF_STATE_EMPTY);
}

void qsf_live_stats_free(QsfLiveStats *b) {
    pthread_mutex_destroy(&b->rss_lock);
    pthread_mutex_destroy(&b->lock);
}

void qsf_live_stats_state(QsfLiveStats *b, QSFState state) {
    pthread_mutex_lock(&b->lock);
    set_state(b, state);
    pthread_mutex_unlock(&b->lock);
}

static void copy_clean(char *dst, size_t cap, const char *s) {
    snprintf(dst, cap, "%s", s);
    dst[qsf_utf8_clean(dst, strlen(dst), false)] = '\0';
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static void fill_template(QSFStats *s, const QsfRuntime *rt) {
    copy_clean(s->template_name, sizeof s->template_name,
               rt->tmpl != NULL ? qsf_chat_template_name(rt->tmpl) : "none");
}

static void fill_quality(QSFStats *s, const QsfRuntime *rt) {
    QsfQualityRow row;
    qsf_quality_now(rt, &row);
    s->quality = row.value;
    s->quality_layers = row.layers;
    s->quality_exit = row.exit;
    s->quality_head = row.sketched;
    s->experts_used = row.experts;
    s->experts = row.n_experts;
    s->expert_top = row.limits.top;
    s->expert_drop = row.limits.drop;
}

static void fill_plan(QSFStats *s, const QsfRuntime *rt) {
    const QsfPlan *p = &rt->plan;
    copy_clean(s->plan_note, sizeof s->plan_note, p->note);
    s->threads = s->prefill_threads = (uint32_t)rt->threads;
    s->ctx_size = p->ctx;
    snprintf(s->k_type, sizeof s->k_type, "%s", qk_kv_name(p->kv.k));
    snprintf(s->v_type, sizeof s->v_type, "%s", qk_kv_name(p->kv.v));
    qsf_plan_kv_text(p, s->kv_note, sizeof s->kv_note);
    copy_clean(s->eviction, sizeof s->eviction, rt->settings.eviction);
    context_kinds(&rt->model.prog, p->kv, p->ctx, &s->context);
    fill_quality(s, rt);
    s->budget = rt->budget;
    s->expert = (QSFExpertInfo){ .bytes = p->expert_bytes,
                                 .slot_bytes = p->expert_slot_bytes,
                                 .n = p->n_experts,
                                 .expected_hits = p->expert_slots > 0 ? p->expert_hits : 0 };
    s->pinned_bytes = p->pinned_bytes;
    s->streamed_bytes = p->streamed_bytes;
    s->n_mem = QSF_MEM_N;
    for (unsigned i = 0; i < QSF_MEM_N; i++) {
        s->mem[i].name = qsf_mem_cat_name((QsfMemCat)i);
        s->mem[i].planned = p->rows[i];
    }
}

static void fill_experts(QsfExpertFacts *f, const QsfRuntime *rt) {
    const QsfPlan *p = &rt->plan;
    *f = (QsfExpertFacts){ .budget = rt->budget,
                           .slot_bytes = p->expert_slot_bytes,
                           .n = p->n_experts,
                           .slots = p->expert_slots > 0 ? p->expert_slots
                                    : p->n_slots == 0   ? p->n_experts
                                                        : 0,
                           .used = p->experts_used };
}

static void fill_model(QSFStats *s, const QsfRuntime *rt, const char *path) {
    const char *name = rt->model.hp.name;
    copy_clean(s->model_name, sizeof s->model_name, name[0] != '\0' ? name : base_name(path));
    snprintf(s->model_path, sizeof s->model_path, "%s", path);
    qsf_model_summary(&rt->model, s->model_desc, sizeof s->model_desc);
    fill_template(s, rt);
    snprintf(s->backend, sizeof s->backend, "%s", qk_level_name(rt->table.level));
    s->n_layers = rt->model.hp.n_layers;
    s->ctx_train = rt->model.hp.n_ctx_train;
    fill_plan(s, rt);
}

/* Times of tokens count from the next one: a prompt is read, or other weights are pinned. */
static void reset_times(QsfLiveStats *b) {
    b->timed = false;
    b->timed_tokens = 0;
}

void qsf_live_stats_model(QsfLiveStats *b, QsfRuntime *rt, const char *path, const QSFSettings *s) {
    pthread_mutex_lock(&b->lock);
    memset(&b->s, 0, sizeof b->s);
    b->rt = rt;
    b->read_tps = 0;
    reset_times(b);
    b->s.budget = s->ram_budget;
    if (rt != NULL) fill_model(&b->s, rt, path);
    if (rt != NULL) fill_experts(&b->experts, rt);
    set_state(b, rt != NULL ? QSF_STATE_IDLE : QSF_STATE_EMPTY);
    pthread_mutex_unlock(&b->lock);
}

void qsf_live_stats_template(QsfLiveStats *b) {
    pthread_mutex_lock(&b->lock);
    if (b->rt != NULL) fill_template(&b->s, b->rt);
    pthread_mutex_unlock(&b->lock);
}

/* Resident and pinned bytes change with the plan. */
static void forget_rss(QsfLiveStats *b) {
    pthread_mutex_lock(&b->rss_lock);
    b->rss_ns = 0;
    pthread_mutex_unlock(&b->rss_lock);
}

void qsf_live_stats_plan(QsfLiveStats *b, uint32_t ctx_used) {
    pthread_mutex_lock(&b->lock);
    if (b->rt != NULL) {
        QsfForwardStats f;
        qsf_forward_stats(b->rt->fwd, &f);
        fill_plan(&b->s, b->rt);
        fill_experts(&b->experts, b->rt);
        b->s.ctx_used = ctx_used;
        reset_times(b);
        b->read_from = f.bytes_read; /* bytes per token are counted for this plan */
        b->read_tokens = b->s.out_tokens;
    }
    pthread_mutex_unlock(&b->lock);
    forget_rss(b);
}

void qsf_live_stats_budget(QsfLiveStats *b, const QSFSettings *s) {
    pthread_mutex_lock(&b->lock);
    b->s.budget = s->ram_budget;
    pthread_mutex_unlock(&b->lock);
}

/* A conversation that has evicted positions and is read from its beginning soon has as many as before. */
static uint32_t begin_ctx(const QsfLiveStats *b, uint32_t n, uint32_t reused) {
    QsfForwardStats f = { 0 };
    if (b->rt != NULL) qsf_forward_stats(b->rt->fwd, &f);
    if (reused > 0 || f.missing == 0) return reused > f.missing ? reused - f.missing : reused;
    return b->s.ctx_used < n ? b->s.ctx_used : n;
}

void qsf_live_stats_prefill(QsfLiveStats *b, uint32_t n, uint32_t reused, int32_t max_tokens) {
    pthread_mutex_lock(&b->lock);
    QSFStats *s = &b->s;
    set_state(b, QSF_STATE_PREFILL);
    b->reused = reused;
    b->request_ns = b->state_ns;
    s->ahead_done = s->ahead_total = 0;
    s->prefill_done = 0;
    s->prefill_total = n - reused;
    s->ctx_used = begin_ctx(b, n, reused);
    s->out_tokens = 0;
    reset_times(b);
    s->max_tokens = max_tokens > 0 ? (uint32_t)max_tokens : 0;
    s->prefill_tps = s->decode_tps = s->bytes_per_token = s->ttft_ms = s->token_p = s->token_entropy = 0;
    pthread_mutex_unlock(&b->lock);
}

void qsf_live_stats_ahead(QsfLiveStats *b, uint32_t done, uint32_t total) {
    pthread_mutex_lock(&b->lock);
    b->s.ahead_done = done;
    b->s.ahead_total = total;
    pthread_mutex_unlock(&b->lock);
}

void qsf_live_stats_decode(QsfLiveStats *b, uint32_t ctx_used) {
    pthread_mutex_lock(&b->lock);
    QSFStats *s = &b->s;
    s->prefill_tps = per_second(s->prefill_total, qsf_now_ns() - b->state_ns);
    s->prefill_done = s->prefill_total;
    if (s->prefill_total >= READ_LEAST) b->read_tps = s->prefill_tps;
    s->ctx_used = ctx_used;
    set_state(b, QSF_STATE_DECODE);
    pthread_mutex_unlock(&b->lock);
}

static void note_memory(QsfLiveStats *b) {
    (void)qsf_pressure_note(&b->rt->pressure, b->rt->settings.memory_threshold, b->s.memory_note,
                            sizeof b->s.memory_note);
}

static uint64_t since(uint64_t now, uint64_t from) { return now > from ? now - from : 0; }

static void note_time(QsfLiveStats *b, const QsfForwardStats *f, uint64_t now) {
    if (b->timed) {
        b->timed_tokens++;
        b->token_ns = since(now, b->timed_ns);
        b->waited_ns = since(f->wait_ns, b->wait_from);
        b->reading_ns = since(f->read_ns, b->reading_from);
        return;
    }
    b->timed = true;
    b->timed_ns = now;
    b->wait_from = f->wait_ns;
    b->reading_from = f->read_ns;
}

/* Decoding speed and bytes are counted after the first token, which belongs to the prefill. */
void qsf_live_stats_token(QsfLiveStats *b, const QsfSample *t, uint32_t ctx_used, int32_t max_tokens) {
    QsfForwardStats f;
    uint64_t now = qsf_now_ns();
    qsf_forward_stats(b->rt->fwd, &f);
    pthread_mutex_lock(&b->lock);
    QSFStats *s = &b->s;
    note_time(b, &f, now);
    if (s->out_tokens++ == 0) {
        b->first_ns = now;
        b->read_from = f.bytes_read;
        b->read_tokens = 1;
        s->ttft_ms = (double)(now - b->request_ns) / 1e6;
    } else {
        uint32_t n = s->out_tokens - b->read_tokens;
        s->decode_tps = per_second(s->out_tokens - 1, now - b->first_ns);
        s->bytes_per_token = n > 0 ? (double)(f.bytes_read - b->read_from) / n : 0;
    }
    s->max_tokens = max_tokens > 0 ? (uint32_t)max_tokens : 0;
    s->ctx_used = ctx_used;
    s->token_p = (double)t->p;
    s->token_entropy = (double)t->entropy;
    note_memory(b);
    pthread_mutex_unlock(&b->lock);
}

/* A prefill that was stopped: what it read, and how fast, which the next one will be, too. */
static void note_stopped_prefill(QsfLiveStats *b) {
    QsfForwardStats f;
    QSFStats *s = &b->s;
    if (b->rt == NULL || s->state != QSF_STATE_PREFILL) return;
    qsf_forward_stats(b->rt->fwd, &f);
    if (f.work < s->prefill_total) s->prefill_total = (uint32_t)f.work;
    s->prefill_done = s->prefill_total;
    s->prefill_tps = per_second(s->prefill_total, qsf_now_ns() - b->state_ns);
    if (s->prefill_total >= READ_LEAST) b->read_tps = s->prefill_tps;
}

void qsf_live_stats_done(QsfLiveStats *b, uint32_t ctx_used) {
    pthread_mutex_lock(&b->lock);
    note_stopped_prefill(b);
    b->s.ctx_used = ctx_used;
    set_state(b, QSF_STATE_IDLE);
    pthread_mutex_unlock(&b->lock);
    forget_rss(b); /* /mem after a short answer */
}

static bool says_something(double done, double total, double seconds) {
    return done >= total * READ_SHOWN || (done >= 1 && seconds >= READ_WAIT);
}

/* Seconds that the prefill still takes if `done` tokens took `seconds`; 0 = not known. The speed of the last
 * prefill counts as if a part of this one had been read at it, because the first steps say little: the first
 * layers wait for the disk. */
static double prefill_left(const QsfLiveStats *b, double done, double seconds) {
    const double total = b->s.prefill_total;
    const double prior = b->read_tps > 0 ? total * READ_PRIOR : 0;
    if (done >= total || (prior <= 0 && !says_something(done, total, seconds))) return 0;
    if (prior > 0) seconds += prior / b->read_tps;
    return (total - done) * seconds / (done + prior);
}

/* Moves within a batch, from layer to layer. */
static void add_prefill(const QsfLiveStats *b, const QsfForwardStats *f, QSFStats *s) {
    const double seconds = (double)s->elapsed_ns / 1e9, total = s->prefill_total;
    const double done = f->work < total ? f->work : total;
    s->prefill_done = (uint32_t)done;
    s->prefill_tps = seconds > 0 && says_something(done, total, seconds) ? done / seconds : 0;
    s->prefill_left = prefill_left(b, done, seconds);
    const uint32_t past = b->reused + s->prefill_done; /* a prompt may be several evals */
    if (past > f->missing) s->ctx_used = past - f->missing;
}

/* All are in memory when the plan pins them; that is known before they are read. */
static void add_experts(const QsfLiveStats *b, const QsfForwardStats *f, QSFExpertInfo *x) {
    if (x->n == 0) return;
    x->slots = b->experts.slots > 0 && b->experts.slots < x->n ? f->expert_slots : 0;
    x->resident = f->experts_in;
    x->uses = f->expert_uses;
    x->misses = f->expert_misses;
    x->hits = x->uses > 0 ? 1 - (double)x->misses / (double)x->uses : 0;
    if (x->resident == x->n) x->expected_hits = 1;
}

static void add_live(QsfLiveStats *b, QSFStats *s) {
    QsfForwardStats f;
    QsfLedger l;
    qsf_forward_stats(b->rt->fwd, &f);
    s->evictions = f.evictions;
    s->evicted = f.evicted;
    s->reliefs = f.reliefs;
    qsf_ledger_snapshot(&b->rt->ledger, &l);
    for (unsigned i = 0; i < QSF_MEM_N; i++) s->mem[i].used = l.used[i];
    s->mem[QSF_MEM_PINNED].planned += f.lent_bytes;
    s->mem[QSF_MEM_KV].planned -= f.lent_bytes;
    s->pinned_bytes = f.pin_total;
    s->streamed_bytes = f.streamed_bytes;
    s->threads = f.threads;
    s->prefill_threads = f.prefill_threads;
    s->layer = f.layer;
    s->pin_done = f.pin_done;
    s->pin_total = f.pin_total;
    add_experts(b, &f, &s->expert);
    qsf_speculate_info(&b->rt->speculator, &s->speculation);
    s->embed_hits = f.embed_hits;
    s->embed_misses = f.embed_misses;
    qsf_forward_io(b->rt->fwd, s->io_name, sizeof s->io_name, s->io_notice, sizeof s->io_notice);
    s->bytes_read = f.bytes_read;
    s->io_gbps = per_second((double)f.bytes_read, f.read_ns) / 1e9;
    s->wait_ms = (double)f.wait_ns / 1e6;
    s->compute_ms = (double)f.compute_ns / 1e6;
    uint64_t busy = f.wait_ns + f.compute_ns;
    s->stall = busy > 0 ? (double)f.wait_ns / (double)busy : 0;
    if (s->state == QSF_STATE_PREFILL) add_prefill(b, &f, s);
    context_positions(s->ctx_used, &f, &s->context);
}

static void add_rss(QsfLiveStats *b, QSFStats *s) {
    pthread_mutex_lock(&b->rss_lock);
    uint64_t now = qsf_now_ns();
    if (b->rss_ns == 0 || now - b->rss_ns >= RSS_NS) {
        b->rss = qsf_rss_bytes();
        b->peak_rss = qsf_peak_rss_bytes();
        b->recent_peak_rss = qsf_recent_peak_rss_bytes();
        b->rss_ns = now;
    }
    s->rss = b->rss;
    s->peak_rss = b->peak_rss;
    s->recent_peak_rss = b->recent_peak_rss;
    pthread_mutex_unlock(&b->rss_lock);
}

void qsf_live_stats_snapshot(QsfLiveStats *b, QSFStats *out) {
    pthread_mutex_lock(&b->lock);
    *out = b->s;
    out->elapsed_ns = qsf_now_ns() - b->state_ns;
    if (b->rt != NULL) add_live(b, out);
    pthread_mutex_unlock(&b->lock);
    add_rss(b, out);
}

uint32_t qsf_live_stats_layers(QsfLiveStats *b, QSFLayerStats *out, uint32_t max) {
    QsfLayerStats *l = max > 0 ? malloc(max * sizeof *l) : NULL;
    uint32_t n = 0;
    pthread_mutex_lock(&b->lock);
    if (b->rt != NULL) n = qsf_forward_layers(b->rt->fwd, l, l != NULL ? max : 0);
    pthread_mutex_unlock(&b->lock);
    for (uint32_t i = 0; l != NULL && i < n && i < max; i++)
        out[i] = (QSFLayerStats){ .weight_bytes = l[i].weight_bytes,
                                  .pinned_bytes = l[i].pinned_bytes,
                                  .read_bytes = l[i].read_bytes,
                                  .wait_ns = l[i].wait_ns,
                                  .compute_ns = l[i].compute_ns,
                                  .experts = l[i].experts,
                                  .experts_in = l[i].experts_in,
                                  .expert_uses = l[i].expert_uses,
                                  .expert_misses = l[i].expert_misses };
    if (l == NULL && max > 0) n = 0;
    free(l);
    return n;
}

static void add_times(const QsfLiveStats *b, QsfExpertFacts *f) {
    const uint32_t n = b->timed_tokens;
    if (n == 0) return;
    f->token_ns = (double)b->token_ns / n;
    f->wait_ns = (double)b->waited_ns / n;
    f->read_ns = (double)b->reading_ns / n;
    if (f->wait_ns > f->token_ns * WAIT_MOST) f->wait_ns = f->token_ns * WAIT_MOST;
}

bool qsf_live_stats_experts(QsfLiveStats *b, QsfForwardStats *s, QsfExpertFacts *f) {
    pthread_mutex_lock(&b->lock);
    const bool loaded = b->rt != NULL;
    if (loaded) {
        *f = b->experts;
        qsf_forward_stats(b->rt->fwd, s);
        if (f->slots > 0 && f->slots < f->n) f->slots = s->expert_slots; /* some may be lent */
        f->from = f->budget;
        f->from_slots = f->slots;
        f->depth = s->expert_depth;
        add_times(b, f);
    }
    pthread_mutex_unlock(&b->lock);
    return loaded;
}

char *qsf_live_stats_threads(QsfLiveStats *b) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    pthread_mutex_lock(&b->lock);
    const bool loaded = b->rt != NULL && b->rt->fwd != NULL;
    if (loaded) qsf_forward_threads_text(b->rt->fwd, &text);
    pthread_mutex_unlock(&b->lock);
    if (loaded && qsf_strbuf_ok(&text)) return qsf_strbuf_take(&text, NULL);
    qsf_strbuf_free(&text);
    return NULL;
}

char *qsf_live_stats_memory(QsfLiveStats *b) {
    pthread_mutex_lock(&b->lock);
    char *text = b->rt != NULL ? qsf_ledger_text(&b->rt->ledger) : NULL;
    pthread_mutex_unlock(&b->lock);
    return text;
}
