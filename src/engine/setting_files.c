/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kinds of settings that name a file, or may: templates, grammars, and others. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/utf8.h"
#include "src/engine/setting_kinds.h"

const char *qsf_home_path(const char *value, char *buf) {
    const char *home = getenv("HOME");
    if (strncmp(value, "~/", 2) != 0 || home == NULL) return value;
    const int n = snprintf(buf, PATH_MAX, "%s%s", home, value + 1);
    return n > 0 && n < PATH_MAX ? buf : value;
}

int qsf_setting_check_file(const char *path, QsfErr *err) {
    const bool download = strncmp(path, "hf:", 3) == 0 || strstr(path, "://") != NULL;
    if ((!download && strcmp(path, "guide") != 0) || access(path, F_OK) == 0) return QSF_OK;
    if (!download) return qsf_err_set(err, QSF_E_MODEL, "guide: is not a file, which is needed here");
    return qsf_err_set(err, QSF_E_MODEL, "%s: is not a file, which is needed here: download it with qsf-get",
                       path);
}

static bool set_template(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    char path[PATH_MAX];
    value = qsf_home_path(value, path);
    size_t len = strlen(value);
    (void)row;
    (void)s;
    if (len >= QSF_SETTING_LINE) return false;
    if (!qsf_setting_is_plain(value) && access(value, F_OK) != 0) return false; /* a file may have any name */
    snprintf(p, QSF_SETTING_LINE, "%s", strcmp(value, "model") == 0 ? "" : value);
    return true;
}
static void get_template(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    (void)s;
    snprintf(dst, cap, "%s", *(const char *)p == '\0' ? "model" : (const char *)p);
}

static bool set_file(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    char path[PATH_MAX];
    (void)row;
    (void)s;
    value = qsf_home_path(value, path);
    const size_t len = strlen(value);
    if (len == 0 || len >= QSF_SETTING_LINE) return false;
    snprintf(p, QSF_SETTING_LINE, "%s", strcmp(value, "off") == 0 ? "" : value);
    return true;
}
/* For the rows that share params.grammar. "off" ends only a grammar that the same row has set. */
static bool set_grammar(QSFSettings *s, QSFGrammarKind kind, const char *value) {
    QSFParams *p = &s->params;
    const size_t len = strlen(value);
    const bool off = strcmp(value, "off") == 0;
    if (len == 0 || len >= sizeof p->grammar || !qsf_utf8_valid(value, len) || strchr(value, '\n') != NULL)
        return false;
    if (off && p->grammar_kind != kind) return true;
    p->grammar_kind = (uint8_t)(off ? QSF_GRAMMAR_NONE : kind);
    snprintf(p->grammar, sizeof p->grammar, "%s", off ? "" : value);
    return true;
}

/* A file is found again from other folders, as by a session. */
static bool set_grammar_file(QSFSettings *s, QSFGrammarKind kind, const char *value) {
    char path[PATH_MAX], own[PATH_MAX];
    value = qsf_home_path(value, own);
    const bool word = strcmp(value, "off") == 0 || (kind == QSF_GRAMMAR_SCHEMA && strcmp(value, "any") == 0);
    if (!word && value[0] != '/' && value[0] != '\0' && realpath(value, path) != NULL) value = path;
    return set_grammar(s, kind, value);
}

static void get_grammar(const QSFSettings *s, QSFGrammarKind kind, char *dst, size_t cap) {
    snprintf(dst, cap, "%s", s->params.grammar_kind == kind ? s->params.grammar : "off");
}

#define GRAMMAR_KIND(name, kind, setter, expected)                                              \
    static bool set_##name(const QSFSetting *row, QSFSettings *s, void *p, const char *value) { \
        (void)row, (void)p;                                                                     \
        return setter(s, kind, value);                                                          \
    }                                                                                           \
    static void get_##name(const QSFSettings *s, const void *p, char *dst, size_t cap) {        \
        (void)p;                                                                                \
        get_grammar(s, kind, dst, cap);                                                         \
    }                                                                                           \
    const QsfSettingKind qsf_kind_##name = { set_##name, get_##name, expected };
GRAMMAR_KIND(gbnf, QSF_GRAMMAR_GBNF, set_grammar_file, "the name of a file, or off")
GRAMMAR_KIND(schema, QSF_GRAMMAR_SCHEMA, set_grammar_file, "the name of a file, any, or off")
GRAMMAR_KIND(regex, QSF_GRAMMAR_REGEX, set_grammar, "a regular expression of at most 1023 bytes, or off")
GRAMMAR_KIND(words, QSF_GRAMMAR_WORDS, set_grammar,
             "a regular expression, optionally followed by a second one, at most 1023 bytes, or off")

const QsfSettingKind qsf_kind_template = { set_template, get_template,
                                           "the name of a template or file, at most 255 bytes" };
const QsfSettingKind qsf_kind_file = { set_file, qsf_setting_get_list,
                                       "the name of a file, 1 to 255 bytes, or off (./off is a file)" };
