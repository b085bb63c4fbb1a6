/* SPDX-License-Identifier: GPL-3.0-or-later */
/* kvquality MODEL OPTIONS...: how well a model predicts a text that the KV cache cannot hold, by eviction
 * policy. The tokens are evaluated one by one, as in an answer. Without a text the model writes one first, in
 * pieces that its full context holds. tools/kvquality/measure prints the tables of docs/KV.md with it.
 *
 *   tokens=N    length of the text (default 512)            skip=N      tokens before the first that counts
 *                                                                       (default 0)
 *   block=N     print the perplexity of every N tokens      piece=N     tokens of a piece (default 400)
 *   seed=N      of the text (default 1)                     text=FILE   use this text
 *   override=KEY=TYPE:VALUE  metadata of the model that is measured
 *   ctx=N, kv-type=T, eviction-policy=P and any other setting of the programs
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/runtime.h"
#include "tests/tools/setting.h"

typedef struct Options {
    unsigned long tokens, skip, block, piece, seed;
    const char *text, *model, *override[2];
    QSFSettings settings;
} Options;

static _Noreturn void fail(const char *why) {
    fprintf(stderr, "kvquality: %s\n", why);
    exit(1);
}

static bool number(const char *word, const char *name, unsigned long *out) {
    const size_t n = strlen(name);
    if (strncmp(word, name, n) != 0 || word[n] != '=') return false;
    *out = strtoul(word + n + 1, NULL, 10);
    return true;
}

static void parse(Options *o, int argc, char **argv) {
    *o = (Options){ .tokens = 512, .piece = 400, .seed = 1, .model = argv[1] };
    qsf_settings_default(&o->settings);
    o->settings.ram_budget = 0;
    for (int i = 2; i < argc; i++) {
        const char *w = argv[i];
        if (strncmp(w, "text=", 5) == 0)
            o->text = w + 5;
        else if (strncmp(w, "override=", 9) == 0)
            o->override[0] = w + 9;
        else if (!number(w, "tokens", &o->tokens) && !number(w, "skip", &o->skip) &&
                 !number(w, "block", &o->block) && !number(w, "piece", &o->piece) &&
                 !number(w, "seed", &o->seed))
            tool_setting(&o->settings, w, fail);
    }
}

static void open_model(QsfRuntime *rt, const Options *o, const QSFSettings *s, const char *const *override) {
    QsfErr err = { 0 };
    const QsfRuntimeOptions ro = { .settings = *s, .overrides = override };
    if (qsf_runtime_open(rt, o->model, &ro, &err) != QSF_OK) fail(err.msg);
}

static void eval(QsfRuntime *rt, int32_t id) {
    QsfErr err = { 0 };
    if (qsf_forward_eval(rt->fwd, &id, 1, NULL, NULL, &err) != QSF_OK) fail(err.msg);
}

/* Pieces that begin with the first token of a text and end with the model's own end, or with their length. */
static void write_text(const Options *o, int32_t *ids) {
    QsfRuntime rt;
    QSFSettings s;
    QSFParams p;
    QsfSample sample;
    QsfErr err = { 0 };
    qsf_settings_default(&s);
    s.ram_budget = 0;
    s.ctx = (uint32_t)o->piece;
    open_model(&rt, o, &s, NULL);
    p = s.params;
    p.temperature = 1;
    p.top_k = 0;
    p.top_p = 1;
    qsf_sampler_seed(rt.sampler, o->seed);
    const int32_t bos = qsf_tokenizer_bos(rt.tok);
    for (size_t n = 0; n < o->tokens;) {
        qsf_forward_truncate(rt.fwd, 0);
        int32_t id = bos >= 0 ? bos : 1;
        for (unsigned long k = 0; k < o->piece && n < o->tokens; k++) {
            ids[n++] = id;
            eval(&rt, id);
            const QsfSamplerInput in = { .logits = qsf_forward_logits(rt.fwd), .params = &p };
            if (qsf_sampler_next(rt.sampler, &in, &sample, &err) != QSF_OK) fail(err.msg);
            id = sample.id;
            if (qsf_runtime_ends(&rt, id)) break;
        }
    }
    qsf_runtime_close(&rt);
}

static size_t read_text(const Options *o, QsfRuntime *rt, int32_t *ids) {
    QsfErr err = { 0 };
    QsfIds got = { 0 };
    FILE *f = fopen(o->text, "r");
    char *text = malloc(4u << 20);
    if (f == NULL || text == NULL) fail(o->text);
    const size_t len = fread(text, 1, 4u << 20, f);
    fclose(f);
    if (qsf_tokenizer_encode(rt->tok, text, len, QSF_TOK_BOS | QSF_TOK_SPECIAL, &got, &err) != QSF_OK)
        fail(err.msg);
    const size_t n = got.n < o->tokens ? got.n : o->tokens;
    memcpy(ids, got.data, n * sizeof *ids);
    qsf_ids_free(&got);
    free(text);
    return n;
}

/* -log of the probability of id, in nats. */
static double surprise(const float *logits, uint32_t n, int32_t id) {
    double max = (double)logits[0], sum = 0;
    for (uint32_t i = 1; i < n; i++) max = (double)logits[i] > max ? (double)logits[i] : max;
    for (uint32_t i = 0; i < n; i++) sum += exp((double)logits[i] - max);
    return max + log(sum) - (double)logits[id];
}

int main(int argc, char **argv) {
    Options o;
    QsfRuntime rt;
    QsfForwardStats stats;
    if (argc < 2) fail("usage: kvquality MODEL [NAME=VALUE]...");
    parse(&o, argc, argv);
    int32_t *ids = calloc(o.tokens + 1, sizeof *ids);
    if (ids == NULL) fail("out of memory");
    if (o.text == NULL) write_text(&o, ids);
    open_model(&rt, &o, &o.settings, o.override);
    const size_t n = o.text != NULL ? read_text(&o, &rt, ids) : o.tokens;
    double all = 0, part = 0;
    size_t n_all = 0, n_part = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        eval(&rt, ids[i]);
        const double x = surprise(qsf_forward_logits(rt.fwd), rt.model.hp.n_vocab, ids[i + 1]);
        part += x;
        n_part++;
        if (i >= o.skip) all += x;
        n_all += i >= o.skip;
        if (o.block == 0 || (i + 1) % o.block != 0) continue;
        printf("%zu %.3f\n", i + 1, exp(part / (double)n_part));
        fflush(stdout);
        part = 0;
        n_part = 0;
    }
    qsf_forward_stats(rt.fwd, &stats);
    printf("perplexity %.3f of %zu tokens, %llu evicted\n", n_all > 0 ? exp(all / (double)n_all) : 0.0, n_all,
           (unsigned long long)stats.evicted);
    qsf_runtime_close(&rt);
    free(ids);
    return 0;
}
