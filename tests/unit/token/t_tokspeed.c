/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Speed of encoding text: English prose, and a line of a megabyte without a space, with every vocabulary of
 * the oracle. The bounds are generous: they catch quadratic time, not slowness. */
#include "tests/harness/qsf_test.h"

#include <time.h>

#include "src/token/tokenizer.h"

#define MIB (1u << 20)
static size_t size = MIB; /* an eighth of it with sanitizers */

static const char PROSE[] =
    "It was a bright cold day in spring, and the clocks of the little town were striking one after "
    "another, never quite "
    "together. \"You're late,\" said the woman at the counter, without looking up from her 14 ledgers; "
    "\"the train left at "
    "12:45.\" He put down his suitcase and thought about what could be done. There wasn't much: a bus in "
    "the evening, a "
    "room above the bakery, or a walk of some thirty miles along the river.\n\nNobody had told him that "
    "the mountains would "
    "be so near. They stood behind the last houses, white and sharp, as if somebody had cut them out of "
    "paper.\n";

static char *prose(size_t n) {
    char *s = malloc(n);
    assert_non_null(s);
    for (size_t i = 0; i < n; i++) s[i] = PROSE[i % (sizeof PROSE - 1)];
    return s;
}

/* Random letters, which do not form words. */
static char *one_line(size_t n) {
    char *s = malloc(n);
    uint32_t x = 1;
    assert_non_null(s);
    for (size_t i = 0; i < n; i++) s[i] = (char)('a' + ((x = x * 1664525u + 1013904223u) >> 24) % 26);
    return s;
}

/* CPU time of this process: independent of other load. */
static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Seconds of the fastest run. */
static double seconds(const QsfTokenizer *t, const char *text, size_t len, unsigned runs) {
    double best = 1e9;
    for (unsigned i = 0; i < runs; i++) {
        QsfErr e = { 0 };
        QsfIds ids = { 0 };
        uint64_t start = cpu_ns();
        qsf_test_expect_ok(qsf_tokenizer_encode(t, text, len, 0, &ids, &e), &e);
        double s = (double)(cpu_ns() - start) / 1e9;
        if (s < best) best = s;
        qsf_ids_free(&ids);
    }
    return best;
}

static void check(const char *name, const char *english, const char *line) {
    char path[128];
    QsfErr e = { 0 };
    QsfLedger ledger;
    QsfSource *src;
    QsfTokenizer *t;
    snprintf(path, sizeof path, "oracle/tokenizers/vocab/ggml-vocab-%s.gguf", name);
    const char *file = qsf_test_data(path);
    if (file == NULL) return;
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&src, file, &ledger, &e), &e);
    qsf_test_expect_ok(qsf_tokenizer_open(&t, src, &ledger, &e), &e);
    qsf_source_close(src);
    double en = seconds(t, english, size, 3), part = seconds(t, line, size / 8, 3),
           whole = seconds(t, line, size, 1);
    double mb = (double)size / 1e6;
    printf("%-14s English %.1f MB/s, a line without spaces: %.1f MB/s, eight times as long %.1f MB/s\n", name,
           mb / en, mb / 8 / part, mb / whole);
    assert_true(size < MIB || en < mb / 0.5); /* half a megabyte per second, however slow the machine */
    assert_true(whole < 8 * 4 * part + 0.5);  /* eight times the text: not sixty-four times the time */
    qsf_tokenizer_close(t);
    qsf_ledger_destroy(&ledger);
}

static void test_speed(void **state) {
    static const char *const names[] = { "gpt-2", "llama-bpe", "deepseek-llm", "llama-spm", "phi-3" };
    (void)state;
    if (qsf_test_data("oracle/tokenizers/vocab/ggml-vocab-gpt-2.gguf") == NULL) skip();
    if (getenv("QSF_SAN") != NULL && strcmp(getenv("QSF_SAN"), "yes") == 0) size = MIB / 8;
    char *english = prose(MIB), *line = one_line(MIB);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check(names[i], english, line);
    free(english);
    free(line);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_speed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
