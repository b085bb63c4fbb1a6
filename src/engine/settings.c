/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The settings of qsf_engine.h as one table, used by the long options, /set and --help. A row stores the
 * offset of its member in QSFSettings and the kind of its value. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_engine.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/paths.h"
#include "src/base/utf8.h"
#include "src/chat/chat.h"
#include "src/engine/adapters.h"
#include "src/engine/number.h"
#include "src/engine/setting_kinds.h"
#include "src/plan/plan.h"
#include "src/sample/sampler.h"

typedef struct Row {
    QSFSetting pub;
    const QsfSettingKind *kind;
    size_t offset; /* of the member in QSFSettings */
} Row;

#define AT(member) offsetof(QSFSettings, member)
#define LIVE       QSF_SETTING_LIVE
#define RELOAD     QSF_SETTING_RELOAD
#define REPLAN     QSF_SETTING_REPLAN
#define LIST       QSF_SETTING_LIST
#define MORE       QSF_SETTING_MORE
#define CONVERT    (QSF_SETTING_REPLAN | QSF_SETTING_CHANGES)

/* clang-format off */
static const Row rows[] = {
    /* name, aliases, short, argument, flags, help, min, max, step */
    {{"temperature", "temp", 0, "F", LIVE,
      "sampling temperature, 0 to 5; 0 = always the most likely token (default 0.7)",
      0, 5, 0.05}, &qsf_kind_float, AT(params.temperature)},
    {{"top-k", "topk", 0, "N", LIVE,
      "sample from the N most likely tokens, 0 to 1000000; 0 = off (default 40)",
      0, 1000000, 5}, &qsf_kind_int, AT(params.top_k)},
    {{"top-p", "topp", 0, "F", LIVE,
      "nucleus sampling: keep the smallest set of tokens whose cumulative probability reaches F, above 0 to 1; 1 = off (default 0.9)",
      0, 1, 0.05}, &qsf_kind_positive, AT(params.top_p)},
    {{"min-p", "minp", 0, "F", LIVE,
      "drop tokens less likely than F times the most likely one, 0 to 1; 0 = off (default 0)",
      0, 1, 0.01}, &qsf_kind_float, AT(params.min_p)},
    {{"repeat-penalty", "repetition-penalty", 0, "F", LIVE,
      "penalize recently used tokens, 0.1 to 10; 1 = off (default 1)",
      0.1, 10, 0.05}, &qsf_kind_float, AT(params.repeat_penalty)},
    {{"repeat-last-n", "repeat-window", 0, "N", LIVE,
      "tokens that the repeat penalty, presence and frequency consider, -1 to 1000000; -1 = all (default 64)",
      -1, 1000000, 0}, &qsf_kind_int, AT(params.repeat_last_n)},
    {{"presence", "presence-penalty", 0, "F", LIVE | MORE,
      "subtract F from the logits of recently used tokens, -10 to 10; 0 = off (default 0)",
      -10, 10, 0.05}, &qsf_kind_float, AT(params.presence)},
    {{"frequency", "frequency-penalty", 0, "F", LIVE | MORE,
      "subtract F for each time that a token was recently used, -10 to 10; 0 = off (default 0)",
      -10, 10, 0.05}, &qsf_kind_float, AT(params.frequency)},
    {{"dry", "dry-multiplier", 0, "F", LIVE | MORE,
      "penalize tokens that would continue a repeated sequence, 0 to 100; 0 = off, 0.8 is usual (default 0)",
      0, 100, 0.1}, &qsf_kind_float, AT(params.dry)},
    {{"dry-base", "", 0, "F", LIVE | MORE,
      "how fast that penalty grows with each repeated token, 1 to 100 (default 1.75)",
      1, 100, 0.05}, &qsf_kind_float, AT(params.dry_base)},
    {{"dry-length", "dry-allowed-length", 0, "N", LIVE | MORE,
      "tokens that may be repeated before that penalty grows, 1 to 1000 (default 2)",
      1, 1000, 1}, &qsf_kind_int, AT(params.dry_length)},
    {{"dry-breakers", "dry-sequence-breaker", 0, "LIST", LIVE | MORE | LIST,
      "texts, separated by commas, at which repeated sequences end, or off (default \\n,:,\",*)",
      0, 0, 0}, &qsf_kind_texts, AT(params.dry_breakers)},
    {{"typical", "typical-p,typ-p", 0, "F", LIVE | MORE,
      "locally typical sampling: keep the tokens whose surprise is the most expected, up to the cumulative probability F, above 0 to 1; 1 = off (default 1)",
      0, 1, 0.05}, &qsf_kind_positive, AT(params.typical)},
    {{"top-n-sigma", "top-nsigma", 0, "F", LIVE | MORE,
      "keep tokens whose logit is at most F standard deviations below the largest, 0 to 100; 0 = off (default 0)",
      0, 100, 0.1}, &qsf_kind_float, AT(params.top_n_sigma)},
    {{"xtc", "xtc-probability", 0, "F", LIVE | MORE,
      "with this probability, remove all tokens above xtc-threshold but the least likely of them, 0 to 1; 0 = off (default 0)",
      0, 1, 0.05}, &qsf_kind_float, AT(params.xtc)},
    {{"xtc-threshold", "", 0, "F", LIVE | MORE,
      "the probability that xtc looks for, 0 to 1; above 0.5 = off (default 0.1)",
      0, 1, 0.01}, &qsf_kind_float, AT(params.xtc_threshold)},
    {{"dynatemp", "dynatemp-range", 0, "F", LIVE | MORE,
      "vary the temperature by up to F with the entropy of the candidates, 0 to 5; 0 = off (default 0)",
      0, 5, 0.05}, &qsf_kind_float, AT(params.dynatemp)},
    {{"dynatemp-exp", "dynatemp-exponent", 0, "F", LIVE | MORE,
      "exponent of the entropy in dynatemp, 0.01 to 10 (default 1)",
      0.01, 10, 0.1}, &qsf_kind_float, AT(params.dynatemp_exponent)},
    {{"mirostat", "", 0, "N", LIVE | MORE,
      "keep the surprise of the text constant: version 1 or 2, instead of top-k, top-p and the like; 0 = off (default 0)",
      0, 2, 1}, &qsf_kind_int, AT(params.mirostat)},
    {{"mirostat-tau", "mirostat-ent", 0, "F", LIVE | MORE,
      "the surprise that mirostat aims at, in bits, 0 to 100 (default 5)",
      0, 100, 0.1}, &qsf_kind_float, AT(params.mirostat_tau)},
    {{"mirostat-eta", "mirostat-lr", 0, "F", LIVE | MORE,
      "the learning rate of mirostat, 0 to 10 (default 0.1)",
      0, 10, 0.01}, &qsf_kind_float, AT(params.mirostat_eta)},
    {{"adaptive-target", "", 0, "F", LIVE | MORE,
      "adaptive-p: prefer tokens so that the average probability is F, 0 to 1; 0 = off (default 0)",
      0, 1, 0.05}, &qsf_kind_float, AT(params.adaptive_target)},
    {{"adaptive-decay", "", 0, "F", LIVE | MORE,
      "adaptive-p: how long earlier tokens count, 0 to 0.99 (default 0.9)",
      0, 0.99, 0.01}, &qsf_kind_float, AT(params.adaptive_decay)},
    {{"least", "", 0, "F", LIVE | MORE,
      "take the least likely token with at least the probability F, 0 to 1; 0 = off (default 0)",
      0, 1, 0.001}, &qsf_kind_float, AT(params.least)},
    {{"samplers", "", 0, "LIST", LIVE | MORE,
      "stages of the sampler in their order; what is not listed is off (default penalties, dry, top-n-sigma, top-k, typical, top-p, min-p, xtc, temperature)",
      0, 0, 0}, &qsf_kind_samplers, AT(params.samplers)},
    {{"logit-bias", "", 0, "TOKEN=X", LIVE | MORE | LIST,
      "add X to the logit of a token, a text or #id; -inf = never; may be repeated (default off)",
      0, 0, 0}, &qsf_kind_biases, AT(params.logit_bias)},
    {{"ban", "", 0, "TEXT", LIVE | MORE | LIST,
      "never write this text, or the token #id; may be repeated (default off)",
      0, 0, 0}, &qsf_kind_tokens, AT(params.ban)},
    {{"quality", "", 0, "F", LIVE,
      "use about this part of the weights for each token of an answer, above 0 to 1: lower is faster and less exact; 1 = all (default 1)",
      0, 1, 0.05}, &qsf_kind_positive, AT(params.quality)},
    {{"expert-top", "", 0, "N", LIVE,
      "of sparse models: use at most N of the experts that a router chooses for each token of an answer, 0 to 1024: fewer are faster and less exact; 0 = all (default 0)",
      0, 1024, 0}, &qsf_kind_int, AT(params.expert_top)},
    {{"expert-drop", "", 0, "F", LIVE,
      "of sparse models: leave out chosen experts whose weight is below F times the largest one, 0 to 1; 0 = none (default 0)",
      0, 1, 0}, &qsf_kind_float, AT(params.expert_drop)},
    {{"seed", "", 0, "N", LIVE,
      "random seed, or random (default random; the seed used is reported)",
      0, 0, 0}, &qsf_kind_seed, AT(params.seed)},
    {{"max-tokens", "predict,n-predict,tokens", 'n', "N", LIVE,
      "maximum number of tokens to generate, 0 to 1000000000; 0 = until the end of the answer",
      0, 1000000000, 0}, &qsf_kind_int, AT(params.max_tokens)},
    {{"ignore-eos", "", 0, NULL, LIVE,
      "ignore the end-of-turn token and keep generating",
      0, 1, 0}, &qsf_kind_switch, AT(params.ignore_eos)},
    {{"allow-special", "", 0, NULL, LIVE,
      "parse special tokens in message text (default off: they are plain text)",
      0, 1, 0}, &qsf_kind_switch, AT(params.allow_special)},
    {{"ram-budget", "", 0, "SIZE", REPLAN,
      "RAM budget of the whole process: 200, 200M, 1.5G, 25% of available memory, or auto (default 200M; qsf-chat and qsf-serve: auto)",
      0, 0, 0}, &qsf_kind_budget, AT(ram_budget)},
    {{"pin", "", 0, "SIZE", REPLAN,
      "maximum size of pinned weights, 0 = stream every layer, or auto (default auto)",
      0, 0, 0}, &qsf_kind_pin, AT(pin)},
    {{"slots", "", 0, "N", REPLAN,
      "number of streaming buffers for weights, 1 to 4, or auto (default auto)",
      0, 4, 0}, &qsf_kind_auto, AT(slots)},
    {{"embedding", "", 0, "NAME", REPLAN,
      "where rows of the embedding table come from: resident (RAM), lru (the file, the last ones are kept), or auto: resident if everything fits (default auto)",
      0, 0, 0}, &qsf_kind_embedding, AT(embedding)},
    {{"io", "", 0, "NAME", REPLAN,
      "how weights are read: uring, pread, mmap, or auto: uring where it is available (default auto)",
      0, 0, 0}, &qsf_kind_io, AT(io)},
    {{"direct", "", 0, "WHEN", REPLAN,
      "bypass the page cache: on, off, or auto: on unless the file is already cached (default auto)",
      0, 0, 0}, &qsf_kind_direct, AT(direct)},
    {{"ctx", "ctx-size,context,max-seq-len", 'c', "N", REPLAN,
      "context size in tokens, 1 to 16777216, or auto: the model's, at most 4096 (default auto)",
      0, 16777216, 0}, &qsf_kind_auto, AT(ctx)},
    {{"batch", "batch-size", 0, "N", RELOAD,
      "prompt tokens processed per batch, 1 to 65536, or auto (default auto)",
      0, 65536, 0}, &qsf_kind_auto, AT(batch)},
    {{"threads", "", 't', "N", REPLAN,
      "compute threads, 1 to 256, or auto: the fastest number, measured (default auto)",
      0, 256, 0}, &qsf_kind_auto, AT(threads)},
    {{"kv-type", "kv", 0, "TYPE", CONVERT,
      "data type of the KV cache: f32, f16, q8, q6, q4 or q2 (half, three eighths, a quarter and an eighth of f16; q2 also holds some positions in q8, so it is smaller than q4 only above about 1100 tokens), or auto: f16 if it fits (default auto)",
      0, 0, 0}, &qsf_kind_kv, AT(kv)},
    {{"k-type", "", 0, "TYPE", CONVERT,
      "the same for keys alone, or auto: as kv-type (default auto)",
      0, 0, 0}, &qsf_kind_kv_one, AT(k)},
    {{"v-type", "", 0, "TYPE", CONVERT,
      "the same for values alone, or auto: as kv-type (default auto)",
      0, 0, 0}, &qsf_kind_kv_one, AT(v)},
    {{"eviction-policy", "eviction", 0, "NAME", REPLAN,
      "what to evict when the context is full: none (the answer ends), sliding (the oldest tokens), h2o or snapkv (those that get the least attention) (default none)",
      0, 0, 0}, &qsf_kind_eviction, AT(eviction)},
    {{"eviction-window", "", 0, "N", REPLAN,
      "positions that an eviction policy keeps besides the protected ones, 64 to 16777216, or auto: what the context holds (default auto)",
      0, 16777216, 0}, &qsf_kind_window, AT(eviction_window)},
    {{"protected-prefix", "", 0, "N", REPLAN,
      "first positions that are never evicted, 0 to 16777216, or auto: the system prompt, at least 4 (default auto)",
      0, 16777216, 0}, &qsf_kind_prefix, AT(protected_prefix)},
    {{"memory-threshold-mb", "memory-threshold", 0, "N", REPLAN,
      "give memory back while less than N MB are available: the cache shrinks by the eviction policy; 0 to 16777216, 0 = off (default 0)",
      0, 16777216, 0}, &qsf_kind_int, AT(memory_threshold)},
    {{"cpu-mask", "", 0, "LEVEL", RELOAD,
      "highest instruction set to use: ref, sse42, avx2, avxvnni, avx512, avx512vnni, avx512vbmi, neon, dotprod, i8mm or best (default best)",
      0, 0, 0}, &qsf_kind_mask, AT(cpu_mask)},
    {{"no-learn", "", 0, NULL, RELOAD,
      "neither use nor keep which experts of a sparse model were used before, by which those that are likely are read first (default off)",
      0, 1, 0}, &qsf_kind_switch, AT(no_learn)},
    {{"show-thinking", "", 0, NULL, LIVE,
      "show the reasoning before the answer; when off, it is folded, and omitted from pipes (default off)",
      0, 1, 0}, &qsf_kind_switch, AT(show_thinking)},
    {{"prefill-ahead", "", 0, "WHEN", LIVE,
      "in qsf-chat, evaluate a message during pauses in typing it, so that the answer begins sooner: on or off (default on)",
      0, 1, 0}, &qsf_kind_switch, AT(prefill_ahead)},
    {{"reasoning", "", 0, "WHEN", LIVE,
      "switch reasoning on or off where the model supports it: on, off, low, medium, high, or auto: its default (default auto)",
      0, 0, 0}, &qsf_kind_reasoning, AT(params.reasoning)},
    {{"reasoning-budget", "", 0, "N", LIVE,
      "tokens of reasoning after which the answer should begin, 0 to 1000000000; -1 = no limit (default -1)",
      -1, 1000000000, 0}, &qsf_kind_limit, AT(params.reasoning_limit)},
    {{"reasoning-budget-message", "", 0, "TEXT", LIVE,
      "a sentence written into reasoning that is cut (default: I have thought long enough and answer now.)",
      0, 0, 0}, &qsf_kind_sentence, AT(params.reasoning_message)},
    {{"grammar", "", 0, "FILE", LIVE,
      "the answer matches the GBNF grammar of FILE, or off (default off)",
      0, 0, 0}, &qsf_kind_gbnf, AT(params.grammar)},
    {{"json-schema", "schema", 0, "FILE", LIVE,
      "the answer is JSON that matches the JSON Schema of FILE, any for any JSON, or off (default off)",
      0, 0, 0}, &qsf_kind_schema, AT(params.grammar)},
    {{"regex", "", 0, "RE", LIVE,
      "the whole answer matches the regular expression RE, or off (default off)",
      0, 0, 0}, &qsf_kind_regex, AT(params.grammar)},
    {{"only", "", 0, "RE", LIVE,
      "all words of the answer match the regular expression RE, or after a blank a second one for words between; off = any (default off)",
      0, 0, 0}, &qsf_kind_words, AT(params.grammar)},
    {{"template", "chat-template", 0, "NAME", RELOAD,
      "chat template: a name, a file, raw, model (the model's own), or model:NAME (one of its named templates) (default model)",
      0, 0, 0}, &qsf_kind_template, AT(chat_template)},
    {{"expert-ahead", "", 0, "WHEN", REPLAN,
      "read experts that the next layer of a sparse model will probably choose, while the disk is idle: on, off, or auto: as long as most are used (default auto)",
      0, 0, 0}, &qsf_kind_direct, AT(expert_ahead)},
    {{"speculate", "", 0, "NAME", REPLAN,
      "how several tokens are computed at a time, which changes no token: lookup (drafts are what followed the same tokens before), nextn (those of the model's own next-token block), pinned (those of some of its layers), draft (those of --draft-model), off, or auto: as long as it is faster (default auto)",
      0, 0, 0}, &qsf_kind_speculate, AT(speculate)},
    {{"draft-model", "", 0, "FILE", REPLAN,
      "a smaller model with the same vocabulary, in the same budget: it guesses the next tokens, which changes no token; off = none (default off)",
      0, 0, 0}, &qsf_kind_path, AT(draft_model)},
    {{"trace-experts", "", 0, "FILE", RELOAD | QSF_SETTING_HERE,
      "write which experts the routers of a sparse model choose to FILE, as text; each time a model is loaded the file starts from scratch; off = none (default off)",
      0, 0, 0}, &qsf_kind_file, AT(trace_experts)},
    {{"lora", "", 0, "FILE[:SCALE]", CONVERT | LIST | MORE,
      "apply the LoRA adapter of FILE, a GGUF file or a PEFT directory, SCALE times (default 1); may be repeated; off = none (default off)",
      0, 0, 0}, &qsf_kind_adapters, AT(lora)},
    {{"control-vector", "", 0, "FILE[:SCALE]", CONVERT | LIST | MORE,
      "add the control vector of FILE, a GGUF file, SCALE times (default 1); may be repeated; off = none (default off)",
      0, 0, 0}, &qsf_kind_adapters, AT(control_vector)},
};
/* clang-format on */
_Static_assert(sizeof rows / sizeof *rows <= QSF_SETTINGS_MAX, "QSFSettings.user_set has a bit for each row");

/* ggml-org/llama.cpp also considers 64 tokens for the repeat penalty. */
void qsf_settings_default(QSFSettings *s) {
    if (s == NULL) return;
    *s = (QSFSettings){
        .params = { .temperature = 0.7f,
                    .top_p = 0.9f,
                    .repeat_penalty = 1.0f,
                    .quality = 1.0f,
                    .top_k = 40,
                    .repeat_last_n = 64,
                    .dry_base = 1.75f,
                    .dry_length = 2,
                    .dry_breakers = "\\n,:,\",*",
                    .typical = 1.0f,
                    .xtc_threshold = 0.1f,
                    .dynatemp_exponent = 1.0f,
                    .mirostat_tau = 5.0f,
                    .mirostat_eta = 0.1f,
                    .adaptive_decay = 0.9f,
                    .reasoning_message = "I have thought long enough and answer now." },
        .ram_budget = QSF_BUDGET_DEFAULT,
        .pin = UINT64_MAX,
        .io = "auto",
        .direct = "auto",
        .expert_ahead = "auto",
        .speculate = "auto",
        .kv = "auto",
        .k = "auto",
        .v = "auto",
        .eviction = "none",
        .prefill_ahead = true,
    };
}

size_t qsf_setting_count(void) { return sizeof rows / sizeof rows[0]; }

const QSFSetting *qsf_setting_at(size_t i) { return i < qsf_setting_count() ? &rows[i].pub : NULL; }

/* Is a[0..n) the same name as b? '_' equals '-'. */
static bool same_name(const char *a, size_t n, const char *b) {
    for (size_t i = 0; i < n; i++) {
        char x = a[i] == '_' ? '-' : a[i], y = b[i] == '_' ? '-' : b[i];
        if (x != y) return false; /* also at the end of b: a[0..n) contains no NUL */
    }
    return b[n] == '\0';
}

static bool has_name(const QSFSetting *row, const char *name) {
    if (same_name(row->name, strlen(row->name), name)) return true;
    for (const char *a = row->aliases; *a != '\0';) {
        size_t n = strcspn(a, ",");
        if (same_name(a, n, name)) return true;
        a += n + (a[n] == ',');
    }
    return false;
}

const QSFSetting *qsf_setting_find(const char *name) {
    for (size_t i = 0; name != NULL && i < qsf_setting_count(); i++)
        if (has_name(&rows[i].pub, name)) return &rows[i].pub;
    return NULL;
}

/* A public row is the first member of its Row. */
static const Row *row_of(const QSFSetting *pub) { return (const Row *)(const void *)pub; }

static QSFSettingSet bit_of(const Row *r) { return (QSFSettingSet)1 << (r - rows); }

static void put_value_error(const Row *r, const char *value, char *err, size_t cap) {
    QsfErr e = { 0 };
    const char *name = r->pub.name;
    char why[400];
    uint8_t order[QSF_SAMPLERS_MAX];
    if (r->kind == &qsf_kind_samplers && !qsf_samplers_parse(value, order, why, sizeof why)) {
        qsf_err_set(&e, QSF_E_USAGE, "%s", why);
    } else if (r->kind == &qsf_kind_adapters && qsf_adapters_explain(value, why, sizeof why)) {
        qsf_err_set(&e, QSF_E_USAGE, "%s: %s", name, why);
    } else if (r->kind->expected != NULL) {
        qsf_err_set(&e, QSF_E_USAGE, "%s takes %s, not '%.60s'", name, r->kind->expected, value);
    } else {
        char lo[40], hi[40];
        bool has_auto = r->kind == &qsf_kind_auto;
        qsf_number_print((float)(has_auto ? 1 : r->pub.min), lo, sizeof lo);
        qsf_number_print((float)r->pub.max, hi, sizeof hi);
        qsf_err_set(&e, QSF_E_USAGE, "%s takes a %s from %s to %s%s, not '%.60s'", name,
                    r->kind == &qsf_kind_float ? "number" : "whole number", lo, hi,
                    has_auto ? ", or auto" : "", value);
    }
    size_t n = qsf_utf8_clean(e.msg, strlen(e.msg), false);
    snprintf(err, cap, "%.*s", (int)n, e.msg);
}

int qsf_setting_set(QSFSettings *s, const QSFSetting *row, const char *value, char *err, size_t cap) {
    const Row *r = row_of(row);
    if (err == NULL) cap = 0;
    if (s == NULL || row == NULL) {
        snprintf(err, cap, "the settings or the setting is NULL");
        return QSF_E_USAGE;
    }
    if (value == NULL) value = "";
    if (!r->kind->set(row, s, (char *)s + r->offset, value)) {
        put_value_error(r, value, err, cap);
        return QSF_E_USAGE;
    }
    s->user_set |= bit_of(r);
    return 0;
}

const QSFSetting *qsf_settings_reducing(const QSFSettings *s, const char **off) {
    const QSFParams *p = &s->params;
    const bool below = p->quality > 0 && p->quality < 1;
    *off = below ? "1" : "0";
    return qsf_setting_find(below                ? "quality"
                            : p->expert_top > 0  ? "expert-top"
                            : p->expert_drop > 0 ? "expert-drop"
                                                 : NULL);
}

/* What an answer leaves out is evaluated before the next prompt, from a position before it; once positions
 * were evicted, no conversation can go back there. */
int qsf_settings_check(const QSFSettings *s, char *err, size_t cap) {
    const char *off;
    const QSFSetting *row = s != NULL ? qsf_settings_reducing(s, &off) : NULL;
    if (err == NULL) cap = 0;
    if (row == NULL || s->eviction[0] == '\0' || strcmp(s->eviction, "none") == 0) return 0;
    const char *before = s->commands ? "/" : "--", *use = s->commands ? "" : "use ",
               *policy = s->commands ? "/kv policy" : "--eviction-policy";
    char value[QSF_SETTING_TEXT];
    qsf_setting_get(s, row, value, sizeof value);
    snprintf(err, cap,
             "%s%s %s does not work with %s %s: before the next prompt everything that an answer left out is "
             "evaluated, which needs "
             "the positions that the policy evicts; %s%s%s %s or %s none",
             before, row->name, value, policy, s->eviction, use, before, row->name, off, policy);
    return QSF_E_USAGE;
}

bool qsf_setting_user_set(const QSFSettings *s, const QSFSetting *row) {
    return s != NULL && row != NULL && (s->user_set & bit_of(row_of(row)));
}

void qsf_setting_get(const QSFSettings *s, const QSFSetting *row, char *dst, size_t cap) {
    const Row *r = row_of(row);
    if (dst == NULL || cap == 0) return;
    dst[0] = '\0';
    if (s == NULL || row == NULL) return;
    r->kind->get(s, (const char *)s + r->offset, dst, cap);
}

/* Compares the printed values, which read back exactly, so that a new row needs no code here. */
bool qsf_setting_differs(const QSFSettings *x, const QSFSettings *y, const QSFSetting *row) {
    char a[QSF_SETTING_TEXT] = "", b[QSF_SETTING_TEXT] = "";
    qsf_setting_get(x, row, a, sizeof a);
    qsf_setting_get(y, row, b, sizeof b);
    return strcmp(a, b) != 0;
}

unsigned qsf_settings_differ(const QSFSettings *x, const QSFSettings *y) {
    unsigned flags = 0;
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        if (qsf_setting_differs(x, y, &rows[i].pub)) flags |= rows[i].pub.flags;
    }
    return flags;
}

void qsf_settings_take(QSFSettings *dst, const QSFSettings *src, unsigned flags) {
    char text[QSF_SETTING_TEXT], err[256];
    if (dst == NULL || src == NULL) return;
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = &rows[i].pub;
        if ((row->flags & flags) == 0) continue;
        qsf_setting_get(src, row, text, sizeof text);
        if (qsf_setting_set(dst, row, text, err, sizeof err) != QSF_OK) continue;
        dst->user_set = (dst->user_set & ~bit_of(&rows[i])) | (src->user_set & bit_of(&rows[i]));
    }
}

/* --- the names of qsf_engine.h that need no worker: a MODEL argument, templates, reasons to stop,
 * the version --- */

#define GUIDE_FILE "models/guide.qsf"

char *qsf_model_file(const char *name) {
    if (name == NULL) return NULL;
    if (strcmp(name, QSF_GUIDE) != 0) return strdup(name);
    char path[QSF_PATH_MAX];
    return strdup(qsf_path_data(GUIDE_FILE, path) ? path : QSF_DATADIR "/" GUIDE_FILE);
}

const char *qsf_stop_name(QSFStop s) {
    static const char *const names[] = {
        [QSF_STOP_EOS] = "eos",
        [QSF_STOP_STRING] = "stop",
        [QSF_STOP_LENGTH] = "length",
        [QSF_STOP_CONTEXT] = "context",
        [QSF_STOP_INTERRUPTED] = "interrupted",
    };
    return (unsigned)s < sizeof names / sizeof names[0] ? names[s] : "unknown";
}

uint64_t qsf_memory_available(void) { return qsf_available_bytes(); }

char *qsf_template_names(void) { return qsf_chat_template_list(); }

const char *qsf_version(void) { return QSF_VERSION; }
