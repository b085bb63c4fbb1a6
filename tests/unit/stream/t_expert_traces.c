/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recorded choices of routers (docs/FORMATS.md), replayed with the pool: how many experts are read per token
 * with slots for a part of all, compared with the fewest that are possible, which only someone who knows the
 * future can reach. Prints the numbers for docs/PERFORMANCE.md, with all sizes for the file QSF_TRACE, or for
 * QSF_TRACE_SLOTS slots; and with QSF_TRACE_MS="L E", milliseconds to compute a layer and to read an expert,
 * how long the same reads take at least if all choices are known in advance. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/stream/expert_pool.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"

enum { MOST = 16384, STEPS = 100000, PAGES = 40, WORDS = 64 };

/* What a pass of n positions chose in a layer. */
typedef struct Step {
    uint32_t layer, first, n;
    uint32_t begin, end; /* of Trace.choice */
} Step;

typedef struct Choice {
    uint32_t expert, pos; /* number of all experts */
} Choice;

typedef struct Trace {
    uint32_t layers, experts, tokens, n_steps;
    Step step[STEPS];
    Choice choice[STEPS * 16];
} Trace;

static void add_line(Trace *t, const char *line, uint32_t first, uint32_t n) {
    uint32_t word[WORDS], count = 0;
    char *end;
    for (const char *p = line; count < WORDS; p = end, count++) {
        word[count] = (uint32_t)strtoul(p, &end, 10);
        if (end == p) break;
    }
    if (count < 3) return;
    Step *s = t->n_steps > 0 ? &t->step[t->n_steps - 1] : NULL;
    if (s == NULL || s->layer != word[1] || s->first != first || word[0] == first) {
        assert_true(t->n_steps < STEPS);
        const uint32_t begin = s != NULL ? s->end : 0;
        s = &t->step[t->n_steps++];
        *s = (Step){ .layer = word[1], .first = first, .n = n, .begin = begin, .end = begin };
        if (word[1] == t->step[0].layer) t->tokens += n;
    }
    if (word[1] >= t->layers) t->layers = word[1] + 1;
    for (uint32_t k = 2; k < count; k++) {
        assert_true(s->end < STEPS * 16);
        t->choice[s->end++] = (Choice){ word[1] * t->experts + word[k], word[0] };
    }
}

static bool read_trace(Trace *t, const char *path) {
    char line[1024];
    unsigned layers, first = 0, n = 1;
    FILE *f = fopen(path, "r");
    memset(t, 0, sizeof *t);
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "# layers %u experts %u", &layers, &t->experts) == 2) continue;
        if (sscanf(line, "# pass %u %u", &first, &n) == 2 || line[0] == '#') continue;
        add_line(t, line, first, n);
    }
    if (f != NULL) fclose(f);
    assert_true(t->layers * t->experts <= MOST);
    return t->n_steps > 0;
}

/* The experts of a step, each once; returns how many. */
static uint32_t different(const Trace *t, const Step *s, uint32_t *id) {
    static bool seen[MOST];
    uint32_t n = 0;
    for (uint32_t i = s->begin; i < s->end; i++) {
        const uint32_t e = t->choice[i].expert;
        if (!seen[e]) id[n++] = e;
        seen[e] = true;
    }
    for (uint32_t i = 0; i < n; i++) seen[id[i]] = false;
    return n;
}

/* ---- the fewest ---- */

/* What is used again last is given up (L. A. Belady, IBM Systems Journal 5(2), 1966). */
static double fewest(const Trace *t, uint32_t slots) {
    static uint32_t again[STEPS * 16], when[MOST], held[MOST];
    static bool there[MOST];
    uint32_t id[1024], n_held = 0, misses = 0, done = 0, counted = 0;
    for (uint32_t e = 0; e < MOST; e++) when[e] = UINT32_MAX, there[e] = false;
    for (uint32_t i = t->n_steps; i-- > 0;) {
        for (uint32_t c = t->step[i].begin; c < t->step[i].end; c++) again[c] = when[t->choice[c].expert];
        for (uint32_t c = t->step[i].begin; c < t->step[i].end; c++) when[t->choice[c].expert] = i;
    }
    for (uint32_t i = 0; i < t->n_steps; i++) {
        const Step *s = &t->step[i];
        const uint32_t n = different(t, s, id);
        if (s->layer == t->step[0].layer) done += s->n;
        const bool counts = done > t->tokens / 4;
        if (counts && s->layer == t->step[0].layer) counted += s->n;
        for (uint32_t c = s->begin; c < s->end; c++) when[t->choice[c].expert] = again[c];
        for (uint32_t k = 0; k < n; k++) {
            uint32_t last = UINT32_MAX;
            if (there[id[k]]) continue;
            misses += counts;
            there[id[k]] = true;
            if (n_held < slots) {
                held[n_held++] = id[k];
                continue;
            }
            for (uint32_t h = 0; h < n_held; h++) {
                bool now = false;
                for (uint32_t x = 0; x < n && n <= slots; x++) now |= held[h] == id[x];
                if (!now && (last == UINT32_MAX || when[held[h]] > when[held[last]])) last = h;
            }
            if (last == UINT32_MAX) last = 0;
            there[held[last]] = false;
            held[last] = id[k];
        }
    }
    return (double)misses / counted;
}

/* ---- the pool ---- */

typedef struct Rig {
    QsfLedger ledger;
    QsfSource *src;
    QsfStreamCounters counters;
    QsfTensor tensor;
    QsfWeightUnit *units;
    QsfExpertPool *pool;
    char path[512];
} Rig;

/* Experts of two pages each, which lie anywhere in a file. */
static void open_rig(Rig *r, const Trace *t, uint32_t slots) {
    const uint32_t n = 2 * t->layers * t->experts;
    const QsfTinySpec spec = {
        .layers = 2, .hidden = 96, .ffn = 300, .heads = 4, .kv_heads = 2, .vocab = 301
    };
    QsfErr err = { 0 };
    memset(r, 0, sizeof *r);
    r->units = calloc(n, sizeof *r->units);
    assert_non_null(r->units);
    snprintf(r->path, sizeof r->path, "%s", qsf_test_tmp("traces.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(r->path, &spec), 0);
    qsf_ledger_init(&r->ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&r->src, r->path, &r->ledger, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        QsfUnit *u = &r->units[i].u;
        *u = (QsfUnit){ .index = i, .layer = i / (2 * t->experts), .n = 1, .on_demand = true, .k = 64 };
        u->tensor[0] = &r->tensor;
        u->offset[0] = (uint64_t)(i % PAGES) * QSF_WINDOW;
        u->rows[0] = u->items = 16;
        u->row_bytes[0] = QSF_WINDOW / 16;
        u->bytes = QSF_WINDOW;
        u->expert = i / 2 % t->experts;
        u->n_expert = t->experts;
    }
    const QsfLoaderOptions o = {
        .src = r->src, .stream = { .kind = QSF_IO_MMAP }, .ledger = &r->ledger, .counters = &r->counters
    };
    qsf_test_expect_ok(qsf_expert_pool_create(&r->pool, r->units, n, &r->ledger, &err), &err);
    qsf_test_expect_ok(qsf_expert_pool_resize(r->pool, slots, &err), &err);
    qsf_test_expect_ok(qsf_expert_pool_start(r->pool, &o, &err), &err);
}

static void close_rig(Rig *r) {
    qsf_expert_pool_destroy(r->pool);
    qsf_source_close(r->src);
    qsf_ledger_destroy(&r->ledger);
    free(r->units);
    unlink(r->path);
}

/* Returns how many were read. */
static uint32_t run_step(Rig *r, const Trace *t, const Step *s) {
    uint32_t id[1024], misses = 0;
    const uint32_t n = different(t, s, id);
    for (uint32_t i = s->begin; i < s->end; i++)
        qsf_expert_pool_use(r->pool, 2 * t->choice[i].expert, s->first + s->n - 1 - t->choice[i].pos);
    for (uint32_t k = 0; k < n; k++) {
        misses += !qsf_expert_pool_has(r->pool, 2 * id[k]);
        qsf_expert_pool_request(r->pool, 2 * id[k]);
    }
    qsf_expert_pool_read_ahead(r->pool, false);
    for (uint32_t i = 0; i < 2 * n; i++) {
        const uint32_t unit = 2 * id[i / 2] + i % 2;
        QsfErr err = { 0 };
        const uint8_t *data;
        QsfChunk c;
        qsf_test_expect_ok(qsf_expert_pool_acquire(r->pool, unit, &c, &data, &err), &err);
        qsf_expert_pool_release(r->pool, unit);
    }
    return misses;
}

/* ---- the same reads, known in advance ---- */

/* The disk reads without a pause, in the order of need, each expert as soon as its slot is free for it: when
 * the one that it replaces was used for the last time. A layer ends when it is computed and all is there. */
typedef struct Schedule {
    double layer_ms, read_ms;
    double now, disk;               /* end of the last layer, and of the last read */
    double used[MOST];              /* end of the last layer that used it */
    bool there[MOST];               /* before the layer */
    double counted_from;            /* `now` when the first counted token began */
    double computed, computed_from; /* by all layers, and until then */
} Schedule;

static void schedule_step(Schedule *s, const Rig *r, const Trace *t, const Step *step) {
    static double free_at[MOST];
    const uint32_t n = t->layers * t->experts;
    uint32_t gone = 0, come = 0, id[1024];
    for (uint32_t e = 0; e < n; e++) {
        const bool is = qsf_expert_pool_has(r->pool, 2 * e);
        come += is && !s->there[e];
        if (!is && s->there[e]) free_at[gone++] = s->used[e];
        s->there[e] = is;
    }
    for (uint32_t i = 0; i < come; i++) {
        const double from = i < gone && free_at[i] > s->disk ? free_at[i] : s->disk;
        s->disk = from + s->read_ms;
    }
    const double computed = s->now + s->layer_ms * step->n;
    s->computed += s->layer_ms * step->n;
    s->now = come > 0 && s->disk > computed ? s->disk : computed;
    for (uint32_t k = different(t, step, id); k-- > 0;) s->used[id[k]] = s->now;
}

static void print_schedule(const Schedule *s, uint32_t tokens) {
    print_message("known in advance: %.1f ms per token, of which %.1f are waiting\n",
                  (s->now - s->counted_from) / tokens,
                  (s->now - s->counted_from - s->computed + s->computed_from) / tokens);
}

static double replay(const Trace *t, uint32_t slots) {
    static Schedule plan;
    const char *ms = getenv("QSF_TRACE_MS");
    plan = (Schedule){ 0 };
    const bool timed = ms != NULL && sscanf(ms, "%lf %lf", &plan.layer_ms, &plan.read_ms) == 2;
    uint32_t misses = 0, done = 0, counted = 0;
    Rig r;
    open_rig(&r, t, slots);
    for (uint32_t i = 0; i < t->n_steps; i++) {
        const Step *s = &t->step[i];
        const bool begins = s->layer == t->step[0].layer;
        if (begins) qsf_expert_pool_begin_pass(r.pool, s->n);
        if (begins) done += s->n;
        const bool counts = done > t->tokens / 4;
        if (counts && counted == 0) {
            plan.counted_from = plan.now;
            plan.computed_from = plan.computed;
        }
        if (counts && begins) counted += s->n;
        const uint32_t n = run_step(&r, t, s);
        if (timed) schedule_step(&plan, &r, t, s);
        if (counts) misses += n;
    }
    if (timed) print_schedule(&plan, counted);
    close_rig(&r);
    return (double)misses / counted;
}

static void compare_at(const Trace *t, const char *path, uint32_t slots, double most) {
    const uint32_t all = t->layers * t->experts;
    const double least = fewest(t, slots), got = replay(t, slots);
    print_message("%s: %2.0f %% of %u experts: %.1f read per token, %.2f times the %.1f that are needed\n",
                  path, 100.0 * slots / all, all, got, got / least, least);
    if (got < least || got > most * least)
        fail_msg("%.2f times as many as needed, expected at most %.2f", got / least, most);
}

/* With slots for 12, 25, 50 and 75 % of the experts, the first n of these; most: times the fewest. slots: as
 * many instead; NULL: not. */
static void compare(const char *path, unsigned n, const double *most, const char *slots) {
    static const double part[] = { 0.12, 0.25, 0.5, 0.75 };
    static Trace t;
    if (!read_trace(&t, path)) {
        print_message("%s: absent\n", path);
        return;
    }
    if (slots != NULL) {
        compare_at(&t, path, (uint32_t)strtoul(slots, NULL, 10), most[0]);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        compare_at(&t, path, (uint32_t)(part[i] * t.layers * t.experts + 0.5), most[i]);
}

static void recorded(void **state) {
    static const struct {
        const char *name;
        double most[2];
    } traces[] = { { "qwen", { 1.80, 2.35 } }, { "gemma", { 1.72, 2.20 } }, { "gptoss", { 1.35, 1.20 } } };
    const char *data = getenv("QSF_TEST_DATA"), *own = getenv("QSF_TRACE");
    char path[600];
    (void)state;
    if (own != NULL) compare(own, 4, (const double[]){ 99, 99, 99, 99 }, getenv("QSF_TRACE_SLOTS"));
    for (unsigned i = 0; i < sizeof traces / sizeof *traces; i++) {
        snprintf(path, sizeof path, "%s/traces/%s.trace", data != NULL ? data : "../shared", traces[i].name);
        compare(path, 2, traces[i].most, NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(recorded) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
