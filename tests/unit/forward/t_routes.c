/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The record of the routers' choices: it is what the experts were computed for, and the same with any number
 * of slots and threads; files that cannot be written. */
#include "src/forward/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/plan/layout.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { PROMPT = 37, ANSWER = 5, VOCAB = 300, BLOCKS = 2, USED = 4, BYTES = 1 << 16 };

static const char *const four[] = { "llama.expert_used_count=int:4", NULL };
static char path[512], trace[512];
static uint64_t dense, expert;

static int write_model(void **state) {
    const QsfRigOptions o = { .path = path };
    QsfShape s;
    QsfErr err = { 0 };
    QsfRig r;
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("routes.gguf"));
    snprintf(trace, sizeof trace, "%s", qsf_test_tmp("routes.trace"));
    assert_int_equal(qsf_test_write_tiny_experts(path, 5), 0);
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_shape_make(&s, &r.model, &r.table);
    expert = s.expert_bytes / s.n_experts;
    dense = s.weight_bytes - s.expert_bytes;
    qsf_rig_close(&r);
    return 0;
}

static int clean(void **state) {
    (void)state;
    unlink(trace);
    return unlink(path);
}

/* The experts of tokens that are evaluated alone, as they were computed. */
typedef struct Seen {
    const QsfRig *r;
    bool used[PROMPT + ANSWER][BLOCKS][QSF_TINY_EXPERTS];
} Seen;

static void see(void *arg, const QsfTapData *t) {
    Seen *s = arg;
    const uint32_t n = qsf_forward_n_past(s->r->fwd);
    if (t->expert != QSF_NONE && n >= PROMPT)
        s->used[n][s->r->model.prog.step[t->step].block][t->expert] = true;
}

/* A prompt and an answer; the file that was written. */
static char *record(QsfRigOptions o, Seen *seen) {
    static char text[BYTES];
    QsfErr err = { 0 };
    QsfRoutes *routes;
    int32_t ids[PROMPT];
    QsfRig r;
    o.path = path;
    o.overrides = four;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_test_expect_ok(qsf_routes_open(&routes, &r.model, trace, &r.ledger, &err), &err);
    qsf_forward_trace_experts(r.fwd, routes);
    *seen = (Seen){ .r = &r };
    qsf_forward_tap(r.fwd, see, seen);
    for (uint32_t i = 0; i < PROMPT; i++) ids[i] = (int32_t)((i * 31u + i * i % 17u) % VOCAB);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, PROMPT, NULL, NULL, &err), &err);
    for (int32_t i = 0; i < ANSWER; i++)
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, &(int32_t){ 19 * i + 3 }, 1, NULL, NULL, &err), &err);
    qsf_forward_trace_experts(r.fwd, NULL);
    qsf_routes_close(routes);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
    FILE *f = fopen(trace, "r");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    assert_int_equal(fclose(f), 0);
    text[n] = '\0';
    return text;
}

/* Reads the number at *p, which `after` must follow. */
static uint32_t number(const char **p, char after) {
    char *end;
    const unsigned long v = strtoul(*p, &end, 10);
    if (end == *p || *end != after) fail_msg("not a number: %.40s", *p);
    *p = end + 1;
    return (uint32_t)v;
}

static void expect(const char **p, const char *text) {
    if (strncmp(*p, text, strlen(text)) != 0) fail_msg("expected %s at %.40s", text, *p);
    *p += strlen(text);
}

static void line(const char **p, uint32_t pos, uint32_t block, const Seen *seen) {
    bool used[QSF_TINY_EXPERTS] = { false };
    assert_int_equal(number(p, ' '), pos);
    assert_int_equal(number(p, ' '), block);
    for (unsigned k = 0; k < USED; k++) {
        const uint32_t e = number(p, k + 1 < USED ? ' ' : '\n');
        assert_true(e < QSF_TINY_EXPERTS && !used[e]);
        used[e] = true;
    }
    if (pos >= PROMPT) assert_memory_equal(used, seen->used[pos][block], sizeof used);
}

static void pass(const char **p, uint32_t first, uint32_t n, const Seen *seen) {
    char fact[64];
    snprintf(fact, sizeof fact, "# pass %u %u\n", first, n);
    expect(p, fact);
    for (uint32_t block = 0; block < BLOCKS; block++)
        for (uint32_t i = 0; i < n; i++) line(p, first + i, block, seen);
}

static void is_what_was_computed(void **state) {
    Seen seen;
    char fact[96];
    const char *p = record((QsfRigOptions){ .batch = 16 }, &seen);
    (void)state;
    snprintf(fact, sizeof fact, "# experts 1\n# layers %u experts %u used %u bytes %llu\n", BLOCKS,
             QSF_TINY_EXPERTS, USED, (unsigned long long)expert);
    expect(&p, fact);
    for (uint32_t i = 0; i < PROMPT; i += 16) pass(&p, i, PROMPT - i < 16 ? PROMPT - i : 16, &seen);
    for (uint32_t i = PROMPT; i < PROMPT + ANSWER; i++) pass(&p, i, 1, &seen);
    assert_string_equal(p, "");
}

static void same_at_every_size(void **state) {
    static const uint32_t slots[] = { 3, 4, 7, 2 * QSF_TINY_EXPERTS - 1 };
    Seen seen;
    char *all = strdup(record((QsfRigOptions){ .batch = 16 }, &seen));
    (void)state;
    assert_non_null(all);
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        for (int threads = 1; threads <= 2; threads++)
            assert_string_equal(record((QsfRigOptions){ .pin_cap = dense + slots[i] * expert,
                                                        .batch = 16,
                                                        .threads = threads },
                                       &seen),
                                all);
    free(all);
}

/* The highest weight first, of equal ones the lowest id; ids that are left out are not there; numbers of all
 * lengths; more than fits in memory. */
static void order(void **state) {
    const float choice[] = { 0, 7, 7, 42, 815, 0.25f, 0.5f, 0, 0.25f, 0.75f };
    const QsfRigOptions o = { .path = path };
    QsfErr err = { 0 };
    QsfRoutes *routes;
    char got[200];
    unsigned n = 0;
    QsfRig r;
    (void)state;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_test_expect_ok(qsf_routes_open(&routes, &r.model, trace, &r.ledger, &err), &err);
    for (unsigned i = 0; i < 10000; i++) qsf_routes_add(routes, 4294967295u, 10, choice, 5);
    qsf_routes_close(routes);
    qsf_rig_close(&r);
    FILE *f = fopen(trace, "r");
    assert_non_null(f);
    while (fgets(got, sizeof got, f) != NULL)
        if (n++ >= 2) assert_string_equal(got, "4294967295 10 815 7 0 42\n");
    assert_int_equal(n, 10002);
    fclose(f);
}

static void refused(const QsfRig *r, QsfLedger *l, const char *name, const char *why) {
    QsfErr err = { 0 };
    QsfRoutes *routes;
    qsf_routes_open(&routes, &r->model, name, l, &err);
    qsf_test_expect_err(&err, QSF_E_USAGE, why);
    assert_null(routes);
    qsf_err_clear(&err);
}

static void files(void **state) {
    const QsfRigOptions o = { .path = path };
    QsfErr err = { 0 };
    QsfRoutes *routes;
    struct stat before, after;
    char note[300], link_name[600];
    QsfRig r;
    (void)state;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    assert_int_equal(stat(path, &before), 0);
    refused(&r, &r.ledger, path, "this is the model");
    snprintf(link_name, sizeof link_name, "%s.link", path);
    assert_int_equal(link(path, link_name), 0);
    refused(&r, &r.ledger, link_name, "this is the model");
    unlink(link_name);
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_size == after.st_size);
    refused(&r, &r.ledger, "/", "trace-experts /: ");
    refused(&r, &r.ledger, "/nowhere/file", "No such file");
    /* A disk that fills later: the answer continues, and one note says so. */
    qsf_test_expect_ok(qsf_routes_open(&routes, &r.model, "/dev/full", &r.ledger, &err), &err);
    qsf_forward_trace_experts(r.fwd, routes);
    assert_false(qsf_routes_failed(routes, note, sizeof note));
    for (int32_t i = 0; i < 3; i++)
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, &i, 1, NULL, NULL, &err), &err);
    assert_true(qsf_routes_failed(routes, note, sizeof note));
    assert_non_null(strstr(note, "/dev/full: No space left"));
    assert_false(qsf_routes_failed(routes, note, sizeof note));
    qsf_routes_close(routes);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_what_was_computed),
        cmocka_unit_test(same_at_every_size),
        cmocka_unit_test(order),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, write_model, clean);
}
