/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkkern [--test=NAME] [--function=NAME] [--level=NAME] [--small] [--bench] [--way=NAME] [--limits]
 *           [--count=FORMAT:COLUMNS:TIMES] [--list] [SEED]
 *
 * Checks every pointer of the kernel table at every level this CPU has, lowest first. --bench, --limits and
 * --count use one level: the given one, that of QSF_CPU_MASK, or the best; --way makes all formats read their
 * groups in that way (qk_way). */
#include "tests/kernels/checkkern.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ck_test {
    const char *name;
    void (*run)(const qk_table *t);
} ck_test;

static const ck_test tests[] = {
    { "table", ck_test_table },     { "matmul", ck_test_matmul },     { "x16", ck_test_x16 },
    { "dequant", ck_test_dequant }, { "quantize", ck_test_quantize }, { "exact", ck_test_exact },
    { "vec", ck_test_vec },         { "ops", ck_test_ops },           { "thin", ck_test_thin },
    { "pick", ck_test_pick },       { "norm", ck_test_norm },         { "act", ck_test_act },
    { "kv", ck_test_kv },           { "latent", ck_test_latent },     { "recent", ck_test_recent },
    { "half", ck_test_half },       { "state", ck_test_state },       { "grid", ck_test_grid },
};

enum { N_TESTS = sizeof tests / sizeof tests[0], MAX_SEEN = 2048, MAX_MESSAGES = 4 };

typedef struct ck_options {
    const char *test, *function, *level, *way, *count;
    int small, bench, limits, list;
    uint32_t seed;
} ck_options;

static struct {
    ck_options opt;
    const char *level; /* of the pass */
    char name[64];     /* function begun */
    int errors;        /* of it */
    int passed, failed;
    struct {
        char name[64];
        ck_fn fn;
        int done;
    } seen[MAX_SEEN];
    int n_seen, current; /* current: the function begun */
    uint64_t rng;
    sigjmp_buf jump;
    volatile int armed, signal;
} run;

static void on_signal(int sig) {
    if (!run.armed) {
        signal(sig, SIG_DFL);
        raise(sig);
        return;
    }
    run.armed = 0;
    run.signal = sig;
    siglongjmp(run.jump, 1);
}

static void catch_signals(void) {
    static const int sigs[] = { SIGSEGV, SIGILL, SIGFPE, SIGBUS };
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_signal;
    sa.sa_flags = SA_NODEFER;
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof sigs / sizeof sigs[0]; i++) sigaction(sigs[i], &sa, NULL);
}

uint32_t ck_rand(void) {
    uint64_t z = run.rng += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

size_t ck_below(size_t n) { return ck_rand() % n; }

static int find_seen(const char *name, ck_fn fn) {
    for (int i = 0; i < run.n_seen; i++)
        if (run.seen[i].fn == fn && strcmp(run.seen[i].name, name) == 0) return i;
    return -1;
}

static int seen_before(const char *name, ck_fn fn) {
    if (find_seen(name, fn) >= 0) return 1;
    if (run.n_seen == MAX_SEEN) {
        fprintf(stderr, "checkkern: more than %d functions\n", MAX_SEEN);
        exit(1);
    }
    snprintf(run.seen[run.n_seen].name, sizeof run.seen[0].name, "%s", name);
    run.seen[run.n_seen].fn = fn;
    run.current = run.n_seen++;
    return 0;
}

int ck_compared(const char *name, ck_fn fn) {
    const int i = find_seen(name, fn);
    return run.opt.test || run.opt.function || (i >= 0 && run.seen[i].done);
}

void ck_error(const char *format, ...) {
    va_list ap;
    if (run.errors++ >= MAX_MESSAGES) return;
    printf("%-10s %-24s ", run.level, run.name);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
}

size_t ck_some(size_t n) { return !run.opt.small ? n : n > 3 ? n / 3 : 1; }

int ck_failed(void) { return run.errors >= MAX_MESSAGES; }

static void run_body(ck_body body, const qk_table *t, int arg) {
    if (sigsetjmp(run.jump, 1) == 0) {
        run.armed = 1;
        body(t, arg);
        run.armed = 0;
        run.seen[run.current].done = 1;
    } else {
        ck_error("signal %d", run.signal);
    }
}

void ck_check(const char *name, ck_fn fn, ck_body body, const qk_table *t, int arg) {
    if ((run.opt.function && !strstr(name, run.opt.function)) || seen_before(name, fn)) return;
    if (run.opt.list) {
        printf("%-10s %s\n", run.level, name);
        return;
    }
    snprintf(run.name, sizeof run.name, "%s", name);
    run.errors = 0;
    run.rng = run.opt.seed;
    run_body(body, t, arg);
    printf("%-10s %-24s %s\n", run.level, name, run.errors ? "FAILED" : "ok");
    fflush(stdout);
    if (run.errors)
        run.failed++;
    else
        run.passed++;
}

static int parse(ck_options *o, int argc, char **argv) {
    o->seed = 1;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        char *end;
        if (strncmp(a, "--test=", 7) == 0)
            o->test = a + 7;
        else if (strncmp(a, "--function=", 11) == 0)
            o->function = a + 11;
        else if (strncmp(a, "--level=", 8) == 0)
            o->level = a + 8;
        else if (strncmp(a, "--way=", 6) == 0)
            o->way = a + 6;
        else if (strncmp(a, "--count=", 8) == 0)
            o->count = a + 8;
        else if (strcmp(a, "--small") == 0)
            o->small = 1;
        else if (strcmp(a, "--bench") == 0)
            o->bench = 1;
        else if (strcmp(a, "--limits") == 0)
            o->limits = 1;
        else if (strcmp(a, "--list") == 0)
            o->list = 1;
        else {
            o->seed = (uint32_t)strtoul(a, &end, 0);
            if (end == a || *end) {
                fprintf(stderr,
                        "usage: checkkern [--test=NAME] [--function=NAME] [--level=NAME] [--small] "
                        "[--bench] [--way=NAME] [--limits] [--count=FORMAT:COLUMNS:TIMES] [--list] [SEED]\n");
                return 0;
            }
        }
    }
    return 1;
}

static void pass(qk_level level) {
    qk_table t;
    qk_table_init(&t, level);
    run.level = qk_level_name(level);
    for (int i = 0; i < N_TESTS; i++)
        if (!run.opt.test || strcmp(run.opt.test, tests[i].name) == 0) tests[i].run(&t);
}

/* The level to measure; QK_LEVEL_UNKNOWN: this CPU does not have it. */
static qk_level measured_level(void) {
    const char *mask = getenv("QSF_CPU_MASK");
    const char *word = run.opt.level ? run.opt.level : mask;
    const qk_level level = word && *word ? qk_level_parse(word) : qk_cpu_best();
    return level != QK_LEVEL_UNKNOWN && qk_cpu_has(level) ? level : QK_LEVEL_UNKNOWN;
}

/* All formats read in this way instead of the one chosen for this CPU. */
static int set_way(qk_table *t, const char *name) {
    for (int way = 0; way < QK_WAY_N; way++)
        if (strcmp(name, qk_way_name((qk_way)way)) == 0) {
            for (int type = 0; type < QK_TYPE_N; type++) t->weight[type].way = (qk_way)way;
            return 1;
        }
    return 0;
}

static int measure(void) {
    const qk_level level = measured_level();
    qk_table t;
    if (level == QK_LEVEL_UNKNOWN) {
        fprintf(stderr, "checkkern: this CPU has no such level\n");
        return 2;
    }
    if (run.opt.limits) {
        ck_bench_limits(level);
        return 0;
    }
    qk_table_init(&t, level);
    if (run.opt.way && !set_way(&t, run.opt.way)) {
        fprintf(stderr, "checkkern: no such way of reading\n");
        return 2;
    }
    if (run.opt.count) return ck_count(&t, run.opt.count);
    ck_bench(&t, run.opt.function);
    ck_bench_kv(&t, run.opt.function);
    ck_bench_ops(&t, run.opt.function);
    return 0;
}

int main(int argc, char **argv) {
    if (!parse(&run.opt, argc, argv)) return 2;
    catch_signals();
    const char *san = getenv("QSF_SAN"); /* the sanitizers take several times as long */
    if (san && *san) run.opt.small = 1;
    if (run.opt.bench || run.opt.limits || run.opt.count) return measure();
    if (!run.opt.list)
        printf("checkkern: seed %u, best level %s\n", run.opt.seed, qk_level_name(qk_cpu_best()));
    for (int l = 0; l < QK_LEVEL_N; l++)
        if (qk_cpu_has((qk_level)l) &&
            (!run.opt.level || strcmp(run.opt.level, qk_level_name((qk_level)l)) == 0))
            pass((qk_level)l);
    if (run.opt.list) return 0;
    printf("%d passed, %d failed\n", run.passed, run.failed);
    return run.failed || run.passed == 0;
}
