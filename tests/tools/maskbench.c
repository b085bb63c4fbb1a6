/* SPDX-License-Identifier: GPL-3.0-or-later */
/* maskbench MODEL FOLDER [WALKS]: CPU time of computing which tokens a JSON Schema allows, with the
 * vocabulary of a GGUF or QSF file or a Hugging Face directory. For each NAME.json in the folder: for the
 * tokens of the text NAME.txt, which matches it, beginning with nothing known; then for the tokens of WALKS
 * (10) walks of at most 200 tokens each, every one chosen at random among those that are allowed, so that
 * they go where no model would. Limits of memory are those of the engine. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/strbuf.h"
#include "src/grammar/mask.h"
#include "src/sample/rng.h"

#define AUTOMATON   (4u << 20)
#define TOKENS_MOST 200u
#define TIMES_MOST  20000u
#define FILES_MOST  64

typedef struct Times {
    double us[TIMES_MOST];
    size_t n;
    double worst;
    uint32_t nodes; /* visited at the worst */
} Times;

typedef struct Bench {
    QsfLedger ledger;
    QsfTokenizer *tok;
    QsfTokenTrie trie;
    uint32_t n_vocab;
    int32_t ends[1];
    QsfGrammar *g;
    QsfAutomaton *a;
    QsfMasks *m;
    uint32_t state;
} Bench;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static _Noreturn void fail(const char *what, const char *why) {
    fprintf(stderr, "maskbench: %s: %s\n", what, why);
    exit(1);
}

static bool usable(const void *arg, int32_t id) {
    const QsfTokenType type = qsf_tokenizer_type(arg, id);
    return type != QSF_TOKEN_CONTROL && type != QSF_TOKEN_UNKNOWN;
}

static void open_vocabulary(Bench *b, const char *path) {
    QsfErr err = { 0 };
    QsfSource *src;
    qsf_ledger_init(&b->ledger, 0);
    if (qsf_source_open_tokens(&src, path, &b->ledger, &err) != QSF_OK) fail(path, err.msg);
    if (qsf_tokenizer_open(&b->tok, src, &b->ledger, &err) != QSF_OK) fail(path, err.msg);
    qsf_source_close(src);
    b->n_vocab = qsf_tokenizer_n_vocab(b->tok);
    b->ends[0] = qsf_tokenizer_eos(b->tok);
    const double from = now();
    if (qsf_token_trie_open(&b->trie, b->tok, b->n_vocab, usable, b->tok, &b->ledger, &err) != QSF_OK)
        fail(path, err.msg);
    printf("%u tokens; trie of %u nodes, %.1f MB, made in %.0f ms\n\n", b->n_vocab, b->trie.n,
           (double)b->trie.bytes / 1e6, (now() - from) / 1e3);
}

static void read_file(const char *folder, const char *name, const char *suffix, QsfStrbuf *out) {
    char path[4096], buf[4096];
    size_t n;
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    FILE *f = fopen(path, "rb");
    if (f == NULL) fail(path, "cannot be read");
    while ((n = fread(buf, 1, sizeof buf, f)) > 0) qsf_strbuf_add(out, buf, n);
    fclose(f);
}

/* Returns the milliseconds that it took. */
static double open_schema(Bench *b, const char *name, const QsfStrbuf *text) {
    QsfErr err = { 0 };
    const QsfMaskTokens t = { &b->trie, b->n_vocab, b->ends, 1 };
    const double from = now();
    if (qsf_grammar_new(&b->g, QSF_KIND_SCHEMA, text->data, text->len, &err) != QSF_OK ||
        qsf_automaton_new(&b->a, b->g, AUTOMATON, &err) != QSF_OK ||
        qsf_masks_new(&b->m, &t, b->a, &b->ledger, &err) != QSF_OK)
        fail(name, err.msg);
    b->state = qsf_automaton_start(b->a);
    return (now() - from) / 1e3;
}

static void close_schema(Bench *b) {
    qsf_masks_free(b->m);
    qsf_automaton_free(b->a);
    qsf_grammar_free(b->g);
}

/* As the engine does before a token. */
static const uint64_t *next_set(Bench *b, Times *t) {
    QsfErr err = { 0 };
    const uint64_t *set = NULL;
    const double from = now();
    int rc = qsf_automaton_is_full(b->a) ? qsf_automaton_trim(b->a, &b->state, &err) : QSF_OK;
    if (rc == QSF_OK && qsf_masks_get(b->m, b->state, false, &set, &err) != QSF_OK) {
        qsf_err_clear(&err);
        rc = qsf_automaton_trim(b->a, &b->state, &err);
        if (rc == QSF_OK) rc = qsf_masks_get(b->m, b->state, false, &set, &err);
    }
    const double us = now() - from;
    if (rc != QSF_OK) fail("a set of tokens", err.msg);
    if (t->n < TIMES_MOST) t->us[t->n++] = us;
    if (us >= t->worst) {
        t->worst = us;
        t->nodes = qsf_masks_visited(b->m);
    }
    return set;
}

static void take(Bench *b, int32_t id) {
    static char piece[1024];
    QsfErr err = { 0 };
    const size_t len = qsf_tokenizer_piece(b->tok, id, false, piece, sizeof piece);
    if (qsf_automaton_token(b->a, b->state, id, piece, len, &b->state, &err) != QSF_OK || b->state == 0)
        fail(piece, err.msg[0] != '\0' ? err.msg : "does not match");
}

static void follow_text(Bench *b, const QsfStrbuf *text, Times *t) {
    QsfIds ids = { 0 };
    QsfErr err = { 0 };
    if (qsf_tokenizer_encode(b->tok, text->data, text->len, QSF_TOK_NO_PREFIX, &ids, &err) != QSF_OK)
        fail("the text", err.msg);
    for (size_t i = 0; i < ids.n; i++) {
        const uint64_t *set = next_set(b, t);
        if (!(set[ids.data[i] / 64] >> (ids.data[i] % 64) & 1)) fail("the text", "does not match");
        take(b, ids.data[i]);
    }
    (void)next_set(b, t);
    qsf_ids_free(&ids);
}

static bool is_choice(const Bench *b, const uint64_t *set, uint32_t id) {
    return (set[id / 64] >> (id % 64) & 1) && (int32_t)id != b->ends[0];
}

/* One of the tokens that are allowed; -1: only the end is. */
static int32_t choose(const Bench *b, const uint64_t *set, QsfRng *rng) {
    uint32_t n = 0, at;
    for (uint32_t id = 0; id < b->n_vocab; id++) n += is_choice(b, set, id);
    if (n == 0) return -1;
    at = (uint32_t)(qsf_rng_unit(rng) * n);
    for (uint32_t id = 0; id < b->n_vocab; id++)
        if (is_choice(b, set, id) && at-- == 0) return (int32_t)id;
    return -1;
}

static void walk(Bench *b, QsfRng *rng, Times *t) {
    b->state = qsf_automaton_start(b->a);
    for (uint32_t i = 0; i < TOKENS_MOST; i++) {
        const int32_t id = choose(b, next_set(b, t), rng);
        if (id < 0) return;
        take(b, id);
    }
}

static int ascending(const void *x, const void *y) {
    const double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static void print_times(Times *t) {
    qsort(t->us, t->n, sizeof *t->us, ascending);
    printf(" | %5zu %8.3f %8.3f %8.3f %7u", t->n, t->us[t->n / 2] / 1e3, t->us[t->n * 95 / 100] / 1e3,
           t->worst / 1e3, t->nodes);
}

static void bench_schema(Bench *b, const char *folder, const char *name, unsigned walks) {
    static Times text, random;
    QsfStrbuf schema = QSF_STRBUF_INIT, example = QSF_STRBUF_INIT;
    QsfRng rng;
    text = random = (Times){ 0 };
    read_file(folder, name, ".json", &schema);
    read_file(folder, name, ".txt", &example);
    printf("%-12s %8.1f", name, open_schema(b, name, &schema));
    follow_text(b, &example, &text);
    print_times(&text);
    qsf_rng_seed(&rng, 1);
    for (unsigned i = 0; i < walks; i++) walk(b, &rng, &random);
    if (walks > 0) print_times(&random);
    printf("\n");
    close_schema(b);
    qsf_strbuf_free(&schema);
    qsf_strbuf_free(&example);
}

static int by_name(const void *x, const void *y) { return strcmp(x, y); }

int main(int argc, char **argv) {
    static char names[FILES_MOST][256];
    static Bench b;
    size_t n = 0;
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: maskbench MODEL FOLDER [WALKS]\n");
        return 2;
    }
    DIR *d = opendir(argv[2]);
    if (d == NULL) fail(argv[2], "cannot be read");
    for (const struct dirent *e; n < FILES_MOST && (e = readdir(d)) != NULL;) {
        const size_t len = strlen(e->d_name);
        if (len < 6 || len > 250 || strcmp(e->d_name + len - 5, ".json") != 0) continue;
        snprintf(names[n++], sizeof names[0], "%.*s", (int)(len - 5), e->d_name);
    }
    closedir(d);
    qsort(names, n, sizeof names[0], by_name);
    open_vocabulary(&b, argv[1]);
    printf("%-12s %8s | %-41s | random walks\n", "", "", "the text");
    printf("%-12s %8s", "ms", "compile");
    for (int i = 0; i < 2; i++) printf(" | %5s %8s %8s %8s %7s", "sets", "median", "95 %", "worst", "nodes");
    printf("\n");
    for (size_t i = 0; i < n; i++)
        bench_schema(&b, argv[2], names[i], argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 10);
    qsf_token_trie_close(&b.trie);
    qsf_tokenizer_close(b.tok);
    qsf_ledger_destroy(&b.ledger);
    return 0;
}
