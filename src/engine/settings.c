/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The settings of qsf_engine.h as one table, used by the long options, /set and --help. A row stores the
 * offset of its member in QSFSettings and a pair of functions to parse and print it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kernels/cpu.h"
#include "qsf_engine.h"
#include "src/base/err.h"
#include "src/base/utf8.h"
#include "src/engine/number.h"
#include "src/plan/plan.h"
#include "src/text/chat.h"

#define WORD_MAX 8 /* size of the members that hold a keyword */
_Static_assert(sizeof((QSFSettings *)0)->kv == WORD_MAX && sizeof((QSFSettings *)0)->io == WORD_MAX &&
                   sizeof((QSFSettings *)0)->direct == WORD_MAX,
               "keyword members have the same size");

typedef struct Row Row;

/* How a kind of value is parsed and printed. set returns false when value is malformed or out of the row's
 * range; p points to the row's member. */
typedef struct Kind {
    bool (*set)(const Row *r, QSFSettings *s, void *p, const char *value);
    void (*get)(const QSFSettings *s, const void *p, char *dst, size_t cap);
    const char *expected; /* for the error message; NULL: a number from min to max */
} Kind;

struct Row {
    QSFSetting pub;
    const Kind *kind;
    size_t offset; /* of the member in QSFSettings */
};

static bool set_float(const Row *r, QSFSettings *s, void *p, const char *value) {
    (void)s;
    double v;
    const char *end;
    if (!qsf_number_parse(value, &v, &end) || *end != '\0') return false;
    if (!(v >= r->pub.min && v <= r->pub.max)) return false;
    *(float *)p = (float)v;
    return true;
}
static bool set_positive(const Row *r, QSFSettings *s, void *p, const char *value) {
    float old = *(float *)p;
    if (set_float(r, s, p, value) && *(float *)p > 0) return true;
    *(float *)p = old;
    return false;
}
static void get_float(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    qsf_number_print(*(const float *)p, dst, cap);
}

/* Accepts decimal integers, but not "1e3"; min may be negative. */
static bool set_int(const Row *r, QSFSettings *s, void *p, const char *value) {
    (void)s;
    uint64_t u;
    bool neg = value[0] == '-';
    if (!qsf_u64_parse(value + neg, &u) || u > INT32_MAX) return false;
    int32_t v = neg ? -(int32_t)u : (int32_t)u;
    if (v < r->pub.min || v > r->pub.max) return false;
    memcpy(p, &v, sizeof v); /* int32_t, or uint32_t in a row whose min is not negative */
    return true;
}
static void get_int(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%ld", (long)*(const int32_t *)p);
}

/* 0 means that the engine chooses; it is written "auto". */
static bool set_int_auto(const Row *r, QSFSettings *s, void *p, const char *value) {
    return set_int(r, s, p, strcasecmp(value, "auto") == 0 ? "0" : value);
}
static void get_int_auto(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    if (*(const int32_t *)p == 0)
        snprintf(dst, cap, "auto");
    else
        get_int(s, p, dst, cap);
}

static bool word_in(const char *const *words, const char *value) {
    for (; *words != NULL; words++)
        if (strcasecmp(*words, value) == 0) return true;
    return false;
}

static bool set_switch(const Row *r, QSFSettings *s, void *p, const char *value) {
    static const char *const on[] = { "", "on", "true", "yes", "1", NULL };
    static const char *const off[] = { "off", "false", "no", "0", NULL };
    (void)r;
    (void)s;
    bool yes = word_in(on, value);
    if (!yes && !word_in(off, value)) return false;
    *(bool *)p = yes;
    return true;
}
static void get_switch(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%s", *(const bool *)p ? "on" : "off");
}

static bool set_seed(const Row *r, QSFSettings *s, void *p, const char *value) {
    (void)r;
    bool random = strcasecmp(value, "random") == 0;
    uint64_t v = 0;
    if (!random && !qsf_u64_parse(value, &v)) return false;
    *(uint64_t *)p = v;
    s->params.seed_set = !random;
    return true;
}
static void get_seed(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    if (s->params.seed_set)
        snprintf(dst, cap, "%llu", (unsigned long long)*(const uint64_t *)p);
    else
        snprintf(dst, cap, "random");
}

static void print_size(uint64_t bytes, char *dst, size_t cap) {
    static const struct {
        uint64_t unit;
        char name;
    } units[] = { { 1u << 30, 'G' }, { 1u << 20, 'M' }, { 1u << 10, 'K' } };
    size_t i = 0;
    while (i < 3 && bytes % units[i].unit != 0) i++;
    if (i < 3)
        snprintf(dst, cap, "%llu%c", (unsigned long long)(bytes / units[i].unit), units[i].name);
    else
        snprintf(dst, cap, "%lluB", (unsigned long long)bytes);
}

/* The bytes and the percentage have one member each. Both 0 means auto, so a budget of 0 is rejected. */
static bool set_budget(const Row *r, QSFSettings *s, void *p, const char *value) {
    uint64_t bytes;
    uint32_t percent;
    (void)r;
    if (!qsf_parse_size(value, &bytes, &percent)) return false;
    if (bytes == 0 && percent == 0 && strcasecmp(value, "auto") != 0) return false;
    *(uint64_t *)p = bytes;
    s->ram_percent = percent;
    return true;
}
static void get_budget(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    uint64_t bytes = *(const uint64_t *)p;
    if (s->ram_percent != 0)
        snprintf(dst, cap, "%lu%%", (unsigned long)s->ram_percent);
    else if (bytes == 0)
        snprintf(dst, cap, "auto");
    else
        print_size(bytes, dst, cap);
}

static bool set_pin(const Row *r, QSFSettings *s, void *p, const char *value) {
    uint64_t bytes;
    uint32_t percent;
    (void)r;
    (void)s;
    if (!qsf_parse_size(value, &bytes, &percent) || percent != 0) return false;
    *(uint64_t *)p = strcasecmp(value, "auto") == 0 ? UINT64_MAX : bytes;
    return true;
}
static void get_pin(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    uint64_t bytes = *(const uint64_t *)p;
    (void)s;
    if (bytes == UINT64_MAX)
        snprintf(dst, cap, "auto");
    else if (bytes == 0)
        snprintf(dst, cap, "0");
    else
        print_size(bytes, dst, cap);
}

/* Copies value to dst in lower case; false when it is longer than WORD_MAX - 1 bytes. */
static bool lower_word(const char *value, char dst[WORD_MAX]) {
    size_t len = strlen(value);
    if (len >= WORD_MAX) return false;
    memset(dst, 0, WORD_MAX);
    for (size_t i = 0; i < len; i++)
        dst[i] = (char)(value[i] >= 'A' && value[i] <= 'Z' ? value[i] | 0x20 : value[i]);
    return true;
}

static bool set_kv(const Row *r, QSFSettings *s, void *p, const char *value) {
    static const char *const words[] = { "auto", "f16", "f32", NULL };
    (void)r;
    (void)s;
    return word_in(words, value) && lower_word(value, p);
}
static bool set_io(const Row *r, QSFSettings *s, void *p, const char *value) {
    char word[WORD_MAX];
    (void)r;
    (void)s;
    if (!lower_word(value, word) || qsf_io_kind_parse(word) == QSF_IO_N) return false;
    memcpy(p, word, sizeof word);
    return true;
}
static bool set_direct(const Row *r, QSFSettings *s, void *p, const char *value) {
    char word[WORD_MAX];
    (void)r;
    (void)s;
    if (!lower_word(value, word) || qsf_io_direct_parse(word) == QSF_DIRECT_N) return false;
    memcpy(p, word, sizeof word);
    return true;
}
static bool set_mask(const Row *r, QSFSettings *s, void *p, const char *value) {
    (void)r;
    bool best = strcasecmp(value, "best") == 0;
    if (!best && qk_level_parse(value) == QK_LEVEL_UNKNOWN) return false;
    snprintf(p, sizeof s->cpu_mask, "%s", best ? "" : value);
    return true;
}
static void get_mask(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%s", *(const char *)p == '\0' ? "best" : (const char *)p);
}
static void get_text(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%s", (const char *)p);
}

static bool set_reasoning(const Row *r, QSFSettings *s, void *p, const char *value) {
    char word[WORD_MAX];
    (void)r;
    (void)s;
    if (!lower_word(value, word) || qsf_reason_parse(word) == QSF_REASON_N) return false;
    *(uint8_t *)p = (uint8_t)qsf_reason_parse(word);
    return true;
}
static void get_reasoning(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%s", qsf_reason_word((QsfReason) * (const uint8_t *)p));
}

static bool set_template(const Row *r, QSFSettings *s, void *p, const char *value) {
    size_t len = strlen(value);
    (void)r;
    (void)s;
    if (len >= QSF_SETTING_TEXT) return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f) return false;
    snprintf(p, QSF_SETTING_TEXT, "%s", strcmp(value, "model") == 0 ? "" : value);
    return true;
}
static void get_template(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%s", *(const char *)p == '\0' ? "model" : (const char *)p);
}

static const Kind kind_float = { set_float, get_float, NULL };
static const Kind kind_positive = { set_positive, get_float, "a number above 0 and at most 1" };
static const Kind kind_int = { set_int, get_int, NULL };
static const Kind kind_auto = { set_int_auto, get_int_auto, NULL };
static const Kind kind_switch = { set_switch, get_switch, "on or off" };
static const Kind kind_seed = { set_seed, get_seed,
                                "a whole number from 0 to 18446744073709551615, or random" };
static const Kind kind_budget = { set_budget, get_budget,
                                  "a size above 0 (200, 200M, 1.5G), 1% to 100%, or auto" };
static const Kind kind_pin = { set_pin, get_pin, "a size (0, 200, 200M, 1.5G), or auto" };
static const Kind kind_kv = { set_kv, get_text, "auto, f16 or f32" };
static const Kind kind_io = { set_io, get_text, "auto, uring, pread or mmap" };
static const Kind kind_direct = { set_direct, get_text, "auto, on or off" };
static const Kind kind_mask = {
    set_mask, get_mask, "one of ref, sse42, avx2, avx512, avx512vnni, avx512vbmi, neon, dotprod, or best"
};
static const Kind kind_reasoning = { set_reasoning, get_reasoning, "auto, on, off, low, medium or high" };
static const Kind kind_template = { set_template, get_template,
                                    "the name of a template or file, at most 255 bytes" };

#define AT(member) offsetof(QSFSettings, member)
#define LIVE       QSF_SETTING_LIVE
#define RELOAD     QSF_SETTING_RELOAD
#define REPLAN     QSF_SETTING_REPLAN

/* clang-format off */
static const Row rows[] = {
    /* name, aliases, short, argument, flags, help, min, max, step */
    {{"temperature", "temp", 0, "F", LIVE,
      "sampling temperature, 0 to 5; 0 = always the most likely token (default 0.7)",
      0, 5, 0.05}, &kind_float, AT(params.temperature)},
    {{"top-k", "topk", 0, "N", LIVE,
      "sample from the N most likely tokens, 0 to 1000000; 0 = off (default 40)",
      0, 1000000, 5}, &kind_int, AT(params.top_k)},
    {{"top-p", "topp", 0, "F", LIVE,
      "nucleus sampling: keep the smallest set of tokens whose cumulative probability reaches F, above 0 to 1; 1 = off (default 0.9)",
      0, 1, 0.05}, &kind_positive, AT(params.top_p)},
    {{"min-p", "minp", 0, "F", LIVE,
      "drop tokens less likely than F times the most likely one, 0 to 1; 0 = off (default 0)",
      0, 1, 0.01}, &kind_float, AT(params.min_p)},
    {{"repeat-penalty", "repetition-penalty", 0, "F", LIVE,
      "penalize recently used tokens, 0.1 to 10; 1 = off (default 1)",
      0.1, 10, 0.05}, &kind_float, AT(params.repeat_penalty)},
    {{"repeat-last-n", "", 0, "N", LIVE,
      "tokens the repeat penalty considers, -1 to 1000000; -1 = all (default 64)",
      -1, 1000000, 0}, &kind_int, AT(params.repeat_last_n)},
    {{"seed", "", 0, "N", LIVE,
      "random seed, or random (default random; the seed used is reported)",
      0, 0, 0}, &kind_seed, AT(params.seed)},
    {{"max-tokens", "predict,n-predict,tokens", 'n', "N", LIVE,
      "maximum number of tokens to generate, 0 to 1000000000; 0 = until the end of the answer",
      0, 1000000000, 0}, &kind_int, AT(params.max_tokens)},
    {{"ignore-eos", "", 0, NULL, LIVE,
      "ignore the end-of-turn token and keep generating",
      0, 1, 0}, &kind_switch, AT(params.ignore_eos)},
    {{"allow-special", "", 0, NULL, LIVE,
      "parse special tokens in message text (default off: they are plain text)",
      0, 1, 0}, &kind_switch, AT(params.allow_special)},
    {{"ram-budget", "", 0, "SIZE", REPLAN,
      "RAM budget of the whole process: 200, 200M, 1.5G, 25% of available memory, or auto (default 200M)",
      0, 0, 0}, &kind_budget, AT(ram_budget)},
    {{"pin", "", 0, "SIZE", REPLAN,
      "maximum size of pinned weights, 0 = stream every layer, or auto (default auto)",
      0, 0, 0}, &kind_pin, AT(pin)},
    {{"slots", "", 0, "N", REPLAN,
      "number of streaming buffers for weights, 1 to 4, or auto (default auto)",
      0, 4, 0}, &kind_auto, AT(slots)},
    {{"io", "", 0, "NAME", REPLAN,
      "how weights are read: uring, pread, mmap, or auto: uring where it is available (default auto)",
      0, 0, 0}, &kind_io, AT(io)},
    {{"direct", "", 0, "WHEN", REPLAN,
      "bypass the page cache: on, off, or auto: on unless the file is already cached (default auto)",
      0, 0, 0}, &kind_direct, AT(direct)},
    {{"ctx", "ctx-size,context,max-seq-len", 'c', "N", RELOAD,
      "context size in tokens, 1 to 16777216, or auto: the model's, at most 4096 (default auto)",
      0, 16777216, 0}, &kind_auto, AT(ctx)},
    {{"batch", "batch-size", 0, "N", RELOAD,
      "prompt tokens processed per batch, 1 to 65536, or auto (default auto)",
      0, 65536, 0}, &kind_auto, AT(batch)},
    {{"threads", "", 't', "N", REPLAN,
      "compute threads, 1 to 256, or auto: one per CPU (default auto)",
      0, 256, 0}, &kind_auto, AT(threads)},
    {{"kv-type", "kv", 0, "TYPE", RELOAD,
      "data type of the KV cache: auto, f16 or f32 (default auto: f16)",
      0, 0, 0}, &kind_kv, AT(kv)},
    {{"cpu-mask", "", 0, "LEVEL", RELOAD,
      "highest instruction set to use: ref, sse42, avx2, avx512, avx512vnni, avx512vbmi, neon, dotprod or best (default best)",
      0, 0, 0}, &kind_mask, AT(cpu_mask)},
    {{"show-thinking", "", 0, NULL, LIVE,
      "show the reasoning before the answer; when off, it is folded, and omitted from pipes (default off)",
      0, 1, 0}, &kind_switch, AT(show_thinking)},
    {{"reasoning", "", 0, "WHEN", LIVE,
      "switch reasoning on or off where the model supports it: on, off, low, medium, high, or auto: its default (default auto)",
      0, 0, 0}, &kind_reasoning, AT(params.reasoning)},
    {{"template", "chat-template", 0, "NAME", RELOAD,
      "chat template: a name, a file, raw, model (the model's own), or model:NAME (one of its named templates) (default model)",
      0, 0, 0}, &kind_template, AT(chat_template)},
};
/* clang-format on */
_Static_assert(sizeof rows / sizeof *rows <= 32, "QSFSettings.user_set has a bit for each row");

/* Spec Phase 14.2 and design §12; llama.cpp also considers 64 tokens for the repeat penalty. */
void qsf_settings_default(QSFSettings *s) {
    if (s == NULL) return;
    *s = (QSFSettings){
        .params = { .temperature = 0.7f,
                    .top_p = 0.9f,
                    .repeat_penalty = 1.0f,
                    .top_k = 40,
                    .repeat_last_n = 64 },
        .ram_budget = QSF_BUDGET_DEFAULT,
        .pin = UINT64_MAX,
        .io = "auto",
        .direct = "auto",
        .kv = "auto",
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

static uint32_t bit_of(const Row *r) { return 1u << (r - rows); }

static void put_value_error(const Row *r, const char *value, char *err, size_t cap) {
    QsfErr e = { 0 };
    const char *name = r->pub.name;
    if (r->kind->expected != NULL) {
        qsf_err_set(&e, QSF_E_USAGE, "%s takes %s, not '%.60s'", name, r->kind->expected, value);
    } else {
        char lo[40], hi[40];
        bool has_auto = r->kind == &kind_auto;
        qsf_number_print((float)(has_auto ? 1 : r->pub.min), lo, sizeof lo);
        qsf_number_print((float)r->pub.max, hi, sizeof hi);
        qsf_err_set(&e, QSF_E_USAGE, "%s takes a %s from %s to %s%s, not '%.60s'", name,
                    r->kind == &kind_float ? "number" : "whole number", lo, hi, has_auto ? ", or auto" : "",
                    value);
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
    if (!r->kind->set(r, s, (char *)s + r->offset, value)) {
        put_value_error(r, value, err, cap);
        return QSF_E_USAGE;
    }
    s->user_set |= bit_of(r);
    return 0;
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
        qsf_setting_set(dst, row, text, err, sizeof err);
    }
}
