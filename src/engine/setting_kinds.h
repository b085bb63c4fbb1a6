/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kinds of values in the settings table: how each is parsed and printed. Any thread. */
#ifndef QSF_ENGINE_SETTING_KINDS_H
#define QSF_ENGINE_SETTING_KINDS_H

#include "qsf_engine.h"
#include "src/base/err.h"

typedef struct QsfSettingKind {
    /* Parses value and stores it at p, the row's member of s. false, with nothing changed, when value is
     * malformed or out of the row's range. */
    bool (*set)(const QSFSetting *row, QSFSettings *s, void *p, const char *value);
    /* Prints the value at p as text that set reads back. */
    void (*get)(const QSFSettings *s, const void *p, char *dst, size_t cap);
    const char *expected; /* for the error message; NULL: a number from min to max of the row */
} QsfSettingKind;

/* The get function of kinds whose value is a text: writes it, or "off" for an empty one. */
void qsf_setting_get_list(const QSFSettings *s, const void *p, char *dst, size_t cap);
/* Has the text no control characters? */
bool qsf_setting_is_plain(const char *value);
/* Returns the name of a file in which "~/" at the beginning is the home directory, as where no shell has
 * replaced it: value itself, or buf (PATH_MAX). */
const char *qsf_home_path(const char *value, char *buf);

/* QSF_E_MODEL for names that only a model can have, and no file here has: of a download, and of the guide. */
int qsf_setting_check_file(const char *path, QsfErr *err);

/* The type of the member is given; a row of a different type must not use the kind. */
extern const QsfSettingKind qsf_kind_float;    /* float */
extern const QsfSettingKind qsf_kind_positive; /* float above 0 */
extern const QsfSettingKind qsf_kind_int;      /* int32_t, or uint32_t if min is not negative */
extern const QsfSettingKind qsf_kind_auto, qsf_kind_prefix, qsf_kind_eviction,
    qsf_kind_window;                         /* the same; 0 is printed as "auto" */
extern const QsfSettingKind qsf_kind_switch; /* bool */
extern const QsfSettingKind qsf_kind_seed;   /* uint64_t; also sets params.seed_set */
extern const QsfSettingKind qsf_kind_budget; /* uint64_t; also sets ram_percent */
extern const QsfSettingKind qsf_kind_pin;    /* uint64_t */
extern const QsfSettingKind qsf_kind_kv;     /* char[8], like the next ones */
extern const QsfSettingKind qsf_kind_kv_one;
extern const QsfSettingKind qsf_kind_io;
extern const QsfSettingKind qsf_kind_direct;
extern const QsfSettingKind qsf_kind_speculate;
extern const QsfSettingKind qsf_kind_eviction;
extern const QsfSettingKind qsf_kind_window;    /* as auto, but at least QSF_EVICT_MIN */
extern const QsfSettingKind qsf_kind_mask;      /* cpu_mask */
extern const QsfSettingKind qsf_kind_reasoning; /* uint8_t */
extern const QsfSettingKind qsf_kind_embedding; /* uint8_t */
extern const QsfSettingKind qsf_kind_limit;     /* int32_t: 1 + the value, which may be -1 */
extern const QsfSettingKind qsf_kind_sentence;  /* char[QSF_SETTING_LINE]: one line */
extern const QsfSettingKind qsf_kind_samplers;  /* uint8_t[QSF_SAMPLERS_MAX] */
extern const QsfSettingKind qsf_kind_biases;    /* char[QSF_SETTING_TEXT]: a list of TOKEN=X */
extern const QsfSettingKind qsf_kind_tokens;    /* char[QSF_SETTING_TEXT]: a list of texts and #ids */
extern const QsfSettingKind qsf_kind_texts;     /* char[QSF_SETTING_LINE]: a list of texts */
extern const QsfSettingKind qsf_kind_template;  /* char[QSF_SETTING_LINE] */
/* params.grammar with grammar_kind: of several rows one is set, the others are printed as "off" */
extern const QsfSettingKind qsf_kind_gbnf, qsf_kind_schema, qsf_kind_regex, qsf_kind_words;
extern const QsfSettingKind
    qsf_kind_adapters;                     /* char[QSF_SETTING_TEXT]: a list of FILE[:SCALE] (adapters.c) */
extern const QsfSettingKind qsf_kind_path; /* as file, and absolute where the file exists (draft_model.c) */
extern const QsfSettingKind qsf_kind_file; /* char[QSF_SETTING_LINE]; "" is printed as "off" */

#endif
