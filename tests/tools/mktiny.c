/* SPDX-License-Identifier: GPL-3.0-or-later */
/* mktiny OUT.gguf [key=value ...]: a tiny llama with random weights, for the scripts of the tests.
 *
 * Keys are those of QsfTinySpec: layers, hidden, heads, kv_heads, ffn, vocab, ctx, seed, tied, twins, wtype,
 * chat_template; mamba=SEED, for a Mamba model instead; nextn=N, for a model with N next-token blocks,
 * nextn=copy, for one whose block says what the model says; experts=stacked|fused|separate, for a sparse
 * model (shared=1: with a shared expert, too); script=WORDS, for a model that emits them
 * (qsf_test_write_script_llama); dir=DTYPE, for an existing Hugging Face directory, which gets such weights
 * and a vocabulary of a few letters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/gguf_build.h"
#include "tests/harness/st_build.h"

static int set_key(QsfTinySpec *s, const char *key, const char *value) {
    const struct {
        const char *name;
        uint32_t *field;
    } numbers[] = {
        { "layers", &s->layers },     { "hidden", &s->hidden },     { "heads", &s->heads },
        { "kv_heads", &s->kv_heads }, { "head_dim", &s->head_dim }, { "ffn", &s->ffn },
        { "vocab", &s->vocab },       { "ctx", &s->ctx },           { "wtype", &s->wtype },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(key, numbers[i].name)) return *numbers[i].field = (uint32_t)strtoul(value, NULL, 10), 0;
    if (!strcmp(key, "seed")) return s->seed = strtoull(value, NULL, 10), 0;
    if (!strcmp(key, "tied")) return s->tied = *value == '1', 0;
    if (!strcmp(key, "ascii")) return s->ascii = *value == '1', 0;
    if (!strcmp(key, "letters")) return s->letters = *value == '1', 0;
    if (!strcmp(key, "rope_freqs")) return s->rope_freqs = *value == '1', 0;
    if (!strcmp(key, "twins")) return s->twins = *value == '1', 0;
    if (!strcmp(key, "chat_template")) return s->chat_template = value, 0;
    return -1;
}

static int write_dir(const char *dir, const QsfTinySpec *s, const char *dtype) {
    const QsfHfSpec spec = { .layers = s->layers,
                             .hidden = s->hidden,
                             .heads = s->heads,
                             .kv_heads = s->kv_heads,
                             .head_dim = s->head_dim,
                             .ffn = s->ffn,
                             .tied = s->tied,
                             .dtype = dtype };
    return qsf_test_write_hf_dir(dir, &spec);
}

static int write_experts(const char *path, const char *layout, uint64_t seed, bool shared) {
    static const char *const names[] = {
        [QSF_TINY_STACKED] = "stacked", [QSF_TINY_FUSED] = "fused", [QSF_TINY_SEPARATE] = "separate"
    };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(layout, names[i]))
            return qsf_test_write_tiny_experts_as(path, seed, (QsfTinyLayout)i, shared);
    return -1;
}

static int write_nextn(const char *path, const char *value, const QsfTinySpec *s) {
    const bool copies = strcmp(value, "copy") == 0;
    const uint32_t n = copies ? 1 : (uint32_t)strtoul(value, NULL, 10);
    const QsfTinyNextn k = {
        .announced = n, .extra = n, .copies = copies, .seed = s->seed, .vocab = s->vocab
    };
    return qsf_test_write_tiny_nextn(path, &k);
}

int main(int argc, char **argv) {
    QsfTinySpec spec = { 0 };
    const char *script = NULL, *dtype = NULL, *mamba = NULL, *experts = NULL, *nextn = NULL;
    bool shared = false;
    for (int i = 2; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        if (eq) *eq = '\0';
        if (eq && !strcmp(argv[i], "script")) {
            script = eq + 1;
            continue;
        }
        if (eq && !strcmp(argv[i], "mamba")) {
            mamba = eq + 1;
            continue;
        }
        if (eq && !strcmp(argv[i], "nextn")) {
            nextn = eq + 1;
            continue;
        }
        if (eq && !strcmp(argv[i], "experts")) {
            experts = eq + 1;
            continue;
        }
        if (eq && !strcmp(argv[i], "shared")) {
            shared = eq[1] == '1';
            continue;
        }
        if (eq && !strcmp(argv[i], "dir")) {
            dtype = eq + 1;
            continue;
        }
        if (!eq || set_key(&spec, argv[i], eq + 1))
            return fprintf(stderr, "mktiny: unknown key %s\n", argv[i]), 2;
    }
    int rc = argc < 2  ? -1
             : dtype   ? write_dir(argv[1], &spec, dtype)
             : experts ? write_experts(argv[1], experts, spec.seed, shared)
             : nextn   ? write_nextn(argv[1], nextn, &spec)
             : mamba   ? qsf_test_write_tiny_mamba(argv[1], strtoull(mamba, NULL, 10))
             : script  ? qsf_test_write_script_llama(argv[1], script, &spec)
                       : qsf_test_write_tiny_llama(argv[1], &spec);
    if (rc) return fprintf(stderr, "mktiny: cannot write the model\n"), 1;
    return 0;
}
