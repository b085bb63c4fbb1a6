/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parsing and printing of settings: implements setting_kinds.h. */
#include "src/engine/setting_kinds.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/cpu.h"
#include "src/base/utf8.h"
#include "src/chat/chat.h"
#include "src/engine/number.h"
#include "src/engine/setting_lists.h"
#include "src/plan/drafting.h"
#include "src/plan/evict.h"
#include "src/plan/kvtypes.h"
#include "src/plan/plan.h"
#include "src/sample/sampler.h"

#define WORD_MAX 8 /* size of the members that hold a keyword */
_Static_assert(sizeof((QSFSettings *)0)->kv == WORD_MAX && sizeof((QSFSettings *)0)->k == WORD_MAX &&
                   sizeof((QSFSettings *)0)->v == WORD_MAX && sizeof((QSFSettings *)0)->io == WORD_MAX &&
                   sizeof((QSFSettings *)0)->direct == WORD_MAX &&
                   sizeof((QSFSettings *)0)->expert_ahead == WORD_MAX &&
                   sizeof((QSFSettings *)0)->speculate == WORD_MAX &&
                   sizeof((QSFSettings *)0)->eviction == WORD_MAX,
               "keyword members have the same size");

static bool set_float(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    (void)s;
    double v;
    const char *end;
    if (!qsf_number_parse(value, &v, &end) || *end != '\0') return false;
    if (!(v >= row->min && v <= row->max)) return false;
    *(float *)p = (float)v;
    return true;
}
static bool set_positive(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    float old = *(float *)p;
    if (set_float(row, s, p, value) && *(float *)p > 0) return true;
    *(float *)p = old;
    return false;
}
static void get_float(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    qsf_number_print(*(const float *)p, dst, cap);
}

/* Accepts decimal integers, but not "1e3"; min may be negative. */
static bool set_int(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    (void)s;
    uint64_t u;
    bool neg = value[0] == '-';
    if (!qsf_u64_parse(value + neg, &u) || u > INT32_MAX) return false;
    int32_t v = neg ? -(int32_t)u : (int32_t)u;
    if (v < row->min || v > row->max) return false;
    memcpy(p, &v, sizeof v); /* int32_t, or uint32_t in a row whose min is not negative */
    return true;
}
static void get_int(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%ld", (long)*(const int32_t *)p);
}

/* 0 means that the engine chooses; it is written "auto". */
static bool set_int_auto(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    return set_int(row, s, p, strcasecmp(value, "auto") == 0 ? "0" : value);
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

static bool set_switch(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    static const char *const on[] = { "", "on", "true", "yes", "1", NULL };
    static const char *const off[] = { "off", "false", "no", "0", NULL };
    (void)row;
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

static bool set_seed(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    (void)row;
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
static bool set_budget(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    uint64_t bytes;
    uint32_t percent;
    (void)row;
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

static bool set_pin(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    uint64_t bytes;
    uint32_t percent;
    (void)row;
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

static bool set_kv_one(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    char word[WORD_MAX];
    (void)row;
    (void)s;
    if (!lower_word(value, word)) return false;
    if (strcmp(word, "auto") != 0 && qsf_kv_type_parse(word) == QK_KV_N) return false;
    memcpy(p, word, sizeof word);
    return true;
}
/* The type of both, whatever was set for one of them before. */
static bool set_kv(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    if (!set_kv_one(row, s, p, value)) return false;
    snprintf(s->k, sizeof s->k, "auto");
    snprintf(s->v, sizeof s->v, "auto");
    return true;
}
static void get_kv_one(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%s", *(const char *)p == '\0' ? "auto" : (const char *)p);
}
static bool set_eviction(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    (void)row;
    (void)s;
    return qsf_evict_parse(value) != QSF_EVICT_N && lower_word(value, p);
}
static bool set_window(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    uint32_t old = *(uint32_t *)p;
    if (set_int_auto(row, s, p, value) && (*(uint32_t *)p == 0 || *(uint32_t *)p >= QSF_EVICT_MIN))
        return true;
    *(uint32_t *)p = old;
    return false;
}
/* 0 is a number here, and auto another value. */
static bool set_prefix(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    if (!set_int_auto(row, s, p, value)) return false;
    if (*(uint32_t *)p == 0 && strcasecmp(value, "auto") != 0) *(uint32_t *)p = QSF_PROTECT_NOTHING;
    return true;
}
static void get_prefix(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    if (*(const uint32_t *)p == QSF_PROTECT_NOTHING)
        snprintf(dst, cap, "0");
    else
        get_int_auto(s, p, dst, cap);
}
static bool set_io(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    char word[WORD_MAX];
    (void)row;
    (void)s;
    if (!lower_word(value, word) || qsf_io_kind_parse(word) == QSF_IO_N) return false;
    memcpy(p, word, sizeof word);
    return true;
}
static bool set_direct(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    char word[WORD_MAX];
    (void)row;
    (void)s;
    if (!lower_word(value, word) || qsf_io_direct_parse(word) == QSF_DIRECT_N) return false;
    memcpy(p, word, sizeof word);
    return true;
}
static bool set_speculate(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    char word[WORD_MAX];
    (void)row;
    (void)s;
    if (*value == '\0' || !lower_word(value, word) || qsf_drafting_parse(word) == QSF_DRAFTING_N)
        return false;
    memcpy(p, word, sizeof word);
    return true;
}
static bool set_mask(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    (void)row;
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

static bool set_embedding(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    const QsfEmbedding e = qsf_embedding_parse(value);
    (void)row;
    (void)s;
    if (e == QSF_EMBEDDING_N) return false;
    *(uint8_t *)p = (uint8_t)e;
    return true;
}
static void get_embedding(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%s", qsf_embedding_name((QsfEmbedding) * (const uint8_t *)p));
}

static bool set_reasoning(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    char word[WORD_MAX];
    (void)row;
    (void)s;
    if (!lower_word(value, word) || qsf_reason_parse(word) == QSF_REASON_N) return false;
    *(uint8_t *)p = (uint8_t)qsf_reason_parse(word);
    return true;
}
static void get_reasoning(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%s", qsf_reason_word((QsfReason) * (const uint8_t *)p));
}

/* The member is 1 more, so that 0 means that there is no limit. */
static bool set_limit(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    int32_t v;
    if (!set_int(row, s, &v, value)) return false;
    *(int32_t *)p = v + 1;
    return true;
}
static void get_limit(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    const int32_t v = *(const int32_t *)p - 1;
    get_int(s, &v, dst, cap);
}

bool qsf_setting_is_plain(const char *value) {
    for (; *value != '\0'; value++)
        if ((unsigned char)*value < 0x20 || *value == 0x7f) return false;
    return true;
}

static bool set_sentence(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    (void)row;
    (void)s;
    const size_t len = strlen(value);
    if (len >= QSF_SETTING_LINE || !qsf_setting_is_plain(value) || !qsf_utf8_valid(value, len)) return false;
    memcpy(p, value, len + 1);
    return true;
}

/* The error names the stage; settings.c asks for it. */
static bool set_samplers(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    uint8_t order[QSF_SAMPLERS_MAX];
    char why[300];
    (void)row;
    (void)s;
    if (!qsf_samplers_parse(value, order, why, sizeof why)) return false;
    memcpy(p, order, sizeof order);
    return true;
}
static void get_samplers(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    qsf_samplers_print(p, dst, cap);
}

static bool is_bias(const char *item, size_t len) {
    QsfListToken token;
    float bias;
    return qsf_list_bias(item, len, &token, &bias);
}
static bool is_token(const char *item, size_t len) {
    QsfListToken token;
    return qsf_list_token(item, len, &token);
}
static bool is_text(const char *item, size_t len) {
    char text[QSF_LIST_ITEM];
    size_t n;
    return qsf_list_text(item, len, text, &n);
}

static bool set_list(void *p, const char *value, size_t cap, bool (*valid)(const char *item, size_t len)) {
    const bool off = strcasecmp(value, "off") == 0;
    const char *at = value, *item;
    const size_t size = strlen(value);
    size_t len;
    if (off) {
        *(char *)p = '\0';
        return true;
    }
    if (size == 0 || size >= cap || !qsf_setting_is_plain(value) || !qsf_utf8_valid(value, size))
        return false;
    while (qsf_list_next(&at, &item, &len))
        if (!valid(item, len)) return false;
    memcpy(p, value, size + 1);
    return true;
}
static bool set_biases(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    (void)row;
    (void)s;
    return set_list(p, value, QSF_SETTING_TEXT, is_bias);
}
static bool set_tokens(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    (void)row;
    (void)s;
    return set_list(p, value, QSF_SETTING_TEXT, is_token);
}
static bool set_texts(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    (void)row;
    (void)s;
    return set_list(p, value, QSF_SETTING_LINE, is_text);
}
void qsf_setting_get_list(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%s", *(const char *)p == '\0' ? "off" : (const char *)p);
}

const QsfSettingKind qsf_kind_float = { set_float, get_float, NULL };
const QsfSettingKind qsf_kind_positive = { set_positive, get_float, "a number above 0 and at most 1" };
const QsfSettingKind qsf_kind_int = { set_int, get_int, NULL };
const QsfSettingKind qsf_kind_auto = { set_int_auto, get_int_auto, NULL };
const QsfSettingKind qsf_kind_switch = { set_switch, get_switch, "on or off" };
const QsfSettingKind qsf_kind_seed = { set_seed, get_seed,
                                       "a whole number from 0 to 18446744073709551615, or random" };
const QsfSettingKind qsf_kind_budget = { set_budget, get_budget,
                                         "a size above 0 (200, 200M, 1.5G), 1% to 100%, or auto" };
const QsfSettingKind qsf_kind_pin = { set_pin, get_pin, "a size (0, 200, 200M, 1.5G), or auto" };
const QsfSettingKind qsf_kind_kv = { set_kv, get_text, "auto, f32, f16, q8, q6, q4 or q2" };
const QsfSettingKind qsf_kind_kv_one = { set_kv_one, get_kv_one, "auto, f32, f16, q8, q6, q4 or q2" };
const QsfSettingKind qsf_kind_eviction = { set_eviction, get_text, "none, sliding, h2o or snapkv" };
const QsfSettingKind qsf_kind_window = { set_window, get_int_auto,
                                         "a whole number from 64 to 16777216, or auto" };
const QsfSettingKind qsf_kind_prefix = { set_prefix, get_prefix,
                                         "a whole number from 0 to 16777216, or auto" };
const QsfSettingKind qsf_kind_io = { set_io, get_text, "auto, uring, pread or mmap" };
const QsfSettingKind qsf_kind_direct = { set_direct, get_text, "auto, on or off" };
const QsfSettingKind qsf_kind_speculate = { set_speculate, get_text,
                                            "auto, off, lookup, nextn, pinned or draft" };
const QsfSettingKind qsf_kind_mask = {
    set_mask, get_mask,
    "one of ref, sse42, avx2, avxvnni, avx512, avx512vnni, avx512vbmi, neon, dotprod, i8mm, or best"
};
const QsfSettingKind qsf_kind_reasoning = { set_reasoning, get_reasoning,
                                            "auto, on, off, low, medium or high" };
const QsfSettingKind qsf_kind_embedding = { set_embedding, get_embedding,
                                            "auto, resident or lru (tables by clusters are not supported)" };
const QsfSettingKind qsf_kind_limit = { set_limit, get_limit, "a whole number from 0 to 1000000000, or -1" };
const QsfSettingKind qsf_kind_sentence = { set_sentence, get_text, "one line of at most 255 bytes" };
const QsfSettingKind qsf_kind_samplers = { set_samplers, get_samplers, "names of stages" };
const QsfSettingKind qsf_kind_biases = {
    set_biases, qsf_setting_get_list,
    "TOKEN=X,... with a number or -inf for each text or #id, at most 1023 bytes, or off"
};
const QsfSettingKind qsf_kind_tokens = { set_tokens, qsf_setting_get_list,
                                         "texts and #ids separated by commas, at most 1023 bytes, or off" };
const QsfSettingKind qsf_kind_texts = { set_texts, qsf_setting_get_list,
                                        "texts separated by commas, at most 255 bytes, or off" };
