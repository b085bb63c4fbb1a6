/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists of adapters: parsing, printing, opening. */
#include "src/engine/adapters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/base/plural.h"
#include "src/engine/model_info.h"
#include "src/engine/number.h"
#include "src/engine/setting_kinds.h"
#include "src/engine/setting_lists.h"

#define SCALE_MAX 1e6

/* What an item stands for, with the rules of setting_lists.h; false if it is too long. */
static bool unescape(const char *item, size_t len, char *out, size_t cap) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (item[i] == '\\' && i + 1 < len) i++;
        if (n + 1 >= cap) return false;
        out[n++] = item[i];
    }
    out[n] = '\0';
    return n > 0;
}

/* Cuts ":SCALE" from the end of a path, if it has one. */
static bool cut_scale(QsfAdapterItem *item) {
    char *colon = strrchr(item->path, ':');
    const char *end;
    double v;
    item->scale = 1;
    if (colon == NULL || !qsf_number_parse(colon + 1, &v, &end) || *end != '\0') return true;
    *colon = '\0';
    item->scale = (float)v;
    return fabs(v) <= SCALE_MAX && item->path[0] != '\0';
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

/* Is an item, as the user wrote it, the name of a file that ends as a scale does? */
static bool is_whole_name(const QsfAdapterItem *item) {
    QsfAdapterItem cut = *item;
    return exists(item->path) && (!cut_scale(&cut) || !exists(cut.path));
}

/* Reads the next item of a list; *at as in qsf_list_next. false at the end, and for an item without a path
 * or with a scale above SCALE_MAX. */
static bool next_item(const char **at, QsfAdapterItem *item) {
    const char *text;
    size_t len;
    return qsf_list_next(at, &text, &len) && unescape(text, len, item->path, sizeof item->path) &&
           cut_scale(item);
}

/* What is wrong with an item of the user, whose name is not cut yet. */
static bool item_fault(const QsfAdapterItem *item, char *dst, size_t cap) {
    QsfAdapterItem cut = *item;
    char *colon = strrchr(cut.path, ':');
    if (exists(item->path)) return false;
    if (strncmp(item->path, "add ", 4) == 0) { /* as /lora has it */
        snprintf(dst, cap, "there is no file '%.200s': give its name without 'add'", item->path);
        return true;
    }
    const bool in_range = cut_scale(&cut);
    const bool is_number = strlen(cut.path) < strlen(item->path);
    if (is_number && in_range) return false;
    if (!is_number && colon != NULL) *colon = '\0';
    const char *scale = colon != NULL ? colon + 1 : "";
    if (colon != NULL && (is_number || exists(cut.path))) {
        snprintf(dst, cap, "'%.40s' is not a scale of '%.200s': expected a number from -%.0f to %.0f", scale,
                 cut.path, SCALE_MAX, SCALE_MAX);
        return true;
    }
    memcpy(cut.path, item->path, sizeof cut.path);
    char *comma = strchr(cut.path, ',');
    if (comma != NULL) *comma = '\0';
    if (comma == NULL || !exists(cut.path)) return false;
    snprintf(dst, cap, "there is no file '%.200s': repeat the option for each of several files", item->path);
    return true;
}

/* Reads the next item as the user wrote it: "~/" is the home directory, and the file exists or has a scale
 * that is one. *fault: what is wrong (cap bytes of why). */
static bool next_given(const char **at, QsfAdapterItem *item, char *why, size_t cap) {
    const char *text;
    size_t len;
    char home[PATH_MAX];
    why[0] = '\0';
    if (!qsf_list_next(at, &text, &len) || !unescape(text, len, item->path, sizeof item->path)) return false;
    const char *path = qsf_home_path(item->path, home);
    if (path != item->path) memcpy(item->path, home, sizeof home);
    if (item_fault(item, why, cap)) return false;
    item->scale = 1;
    return is_whole_name(item) || cut_scale(item);
}

/* ---- as a setting ---- */

/* Appends an item: the path with what has a meaning in a list escaped, and a scale other than 1. */
static bool put_item(char *list, size_t cap, const QsfAdapterItem *item) {
    char text[2 * PATH_MAX], scale[64];
    size_t n = 0;
    for (const char *p = item->path; *p != '\0'; p++) {
        if (*p == ',' || *p == '\\') text[n++] = '\\';
        text[n++] = *p;
    }
    text[n] = '\0';
    qsf_number_print(item->scale, scale, sizeof scale);
    const size_t len = strlen(list);
    const char *end;
    double v;
    const char *colon = strrchr(item->path, ':');
    /* A path that itself ends as a scale needs one. */
    const bool ambiguous = colon != NULL && qsf_number_parse(colon + 1, &v, &end) && *end == '\0';
    const bool plain = item->scale == 1 && !ambiguous;
    const int wrote = snprintf(list + len, cap - len, "%s%s%s%s", len > 0 ? "," : "", text, plain ? "" : ":",
                               plain ? "" : scale);
    return wrote > 0 && (size_t)wrote < cap - len;
}

/* Adds an item to item[*n], in which a file is once: its scales add up, as adapters do. */
static bool add_item(QsfAdapterItem *item, size_t *n, const QsfAdapterItem *next, char *why, size_t cap) {
    size_t i = 0;
    while (i < *n && strcmp(item[i].path, next->path) != 0) i++;
    if (i == QSF_ADAPTERS_MAX) {
        qsf_plural_snprintf(why, cap, "there are more than %u files, the maximum at a time",
                            QSF_ADAPTERS_MAX);
        return false;
    }
    if (i == *n) {
        item[(*n)++] = *next;
        return true;
    }
    item[i].scale += next->scale;
    if (fabs((double)item[i].scale) <= SCALE_MAX) return true;
    snprintf(why, cap, "the scales of '%.200s' add up to more than %.0f", next->path, SCALE_MAX);
    return false;
}

/* Puts the items of a value together as a setting. A file is found again from other folders, as by a session.
 * false: why says what is wrong, "" if that is not known. */
static bool settle(const char *value, char list[QSF_SETTING_TEXT], char *why, size_t cap) {
    QsfAdapterItem item[QSF_ADAPTERS_MAX], next;
    char full[PATH_MAX];
    const char *at = strcasecmp(value, "off") == 0 ? "" : value;
    size_t n = 0;
    list[0] = why[0] = '\0';
    if (value[0] == '\0') return false;
    while (*at != '\0') {
        if (!next_given(&at, &next, why, cap)) return false;
        if (realpath(next.path, full) != NULL) memcpy(next.path, full, strlen(full) + 1);
        if (!add_item(item, &n, &next, why, cap)) return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (put_item(list, QSF_SETTING_TEXT, &item[i])) continue;
        qsf_plural_snprintf(why, cap, "the names of the files, with their folders, have more than %u bytes",
                            QSF_SETTING_TEXT - 1);
        return false;
    }
    return true;
}

static bool set_adapters(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    char list[QSF_SETTING_TEXT], why[400];
    (void)row;
    (void)s;
    if (!settle(value, list, why, sizeof why)) return false;
    memcpy(p, list, sizeof list);
    return true;
}

bool qsf_adapters_explain(const char *value, char *dst, size_t cap) {
    char list[QSF_SETTING_TEXT];
    return !settle(value, list, dst, cap) && dst[0] != '\0';
}

const QsfSettingKind qsf_kind_adapters = { set_adapters, qsf_setting_get_list,
                                           "FILE[:SCALE], in a setting several separated by commas, or off" };

/* ---- opening ---- */

bool qsf_adapters_differ(const QSFSettings *a, const QSFSettings *b) {
    return strcmp(a->lora, b->lora) != 0 || strcmp(a->control_vector, b->control_vector) != 0;
}

/* One list, parsed. */
typedef struct Specs {
    QsfAdapterItem item[QSF_ADAPTERS_MAX];
    QsfAdapterSpec spec[QSF_ADAPTERS_MAX];
    uint32_t n;
} Specs;

static void parse(const char *list, Specs *l) {
    l->n = 0;
    while (l->n < QSF_ADAPTERS_MAX && next_item(&list, &l->item[l->n])) {
        l->spec[l->n] = (QsfAdapterSpec){ .path = l->item[l->n].path, .scale = l->item[l->n].scale };
        l->n++;
    }
}

/* The two lists of settings, LoRA adapters first; freed by the caller. NULL: no memory. */
static Specs *specs_of(const QSFSettings *s) {
    Specs *l = malloc(2 * sizeof *l);
    if (l == NULL) return NULL;
    parse(s->lora, &l[0]);
    parse(s->control_vector, &l[1]);
    return l;
}

static int check_files(const Specs *l, QsfErr *err) {
    int rc = QSF_OK;
    for (unsigned k = 0; k < 2; k++)
        for (uint32_t i = 0; rc == QSF_OK && i < l[k].n; i++)
            if (l[k].spec[i].src == NULL) rc = qsf_setting_check_file(l[k].spec[i].path, err);
    return rc;
}

static int identify(QsfAdapterSet *s, QsfErr *err) {
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < s->n; i++)
        if (s->adapter[i].identity == 0)
            rc = qsf_model_identity(s->adapter[i].src, &s->adapter[i].identity, err);
    for (uint32_t i = 0; rc == QSF_OK && i < s->n_controls; i++)
        if (s->control[i].identity == 0)
            rc = qsf_model_identity(s->control[i].src, &s->control[i].identity, err);
    return rc;
}

int qsf_adapters_of_settings(QsfAdapterSet **out, const QsfModel *m, const QSFSettings *s,
                             const QsfAdapterSet *have, bool exact, QsfLedger *ledger, QsfErr *err) {
    *out = NULL;
    if (s->lora[0] == '\0' && s->control_vector[0] == '\0') return QSF_OK;
    Specs *l = specs_of(s);
    if (l == NULL) return qsf_err_memory(err, "adapters");
    qsf_adapters_lend(have, false, l[0].spec, l[0].n);
    qsf_adapters_lend(have, true, l[1].spec, l[1].n);
    int rc = check_files(l, err);
    if (rc == QSF_OK)
        rc = qsf_adapters_open(out, m, l[0].spec, l[0].n, l[1].spec, l[1].n, exact, ledger, err);
    free(l);
    if (rc == QSF_OK && *out != NULL) rc = identify(*out, err);
    if (rc != QSF_OK) {
        qsf_adapters_close(*out);
        *out = NULL;
    }
    return rc;
}

bool qsf_adapters_only_scales(const QsfAdapterSet *set, const QSFSettings *s, float *scale) {
    Specs *l = set != NULL ? specs_of(s) : NULL;
    bool same = l != NULL && l[0].n == set->n && l[1].n == set->n_controls;
    for (uint32_t i = 0; same && i < set->n; i++) {
        same = strcmp(l[0].spec[i].path, set->adapter[i].path) == 0;
        scale[i] = l[0].spec[i].scale;
    }
    for (uint32_t i = 0; same && i < set->n_controls; i++)
        same = strcmp(l[1].spec[i].path, set->control[i].path) == 0 &&
               l[1].spec[i].scale == set->control[i].scale;
    free(l);
    return same;
}

/* ---- checking ---- */

#define CHECK_BYTES (16u << 20) /* of headers */

/* Leaves out what is in use already. */
static void leave_known(Specs *l, const Specs *known) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        bool is_known = false;
        for (uint32_t k = 0; k < known->n; k++)
            is_known = is_known || strcmp(l->spec[i].path, known->spec[k].path) == 0;
        if (!is_known) l->spec[n++] = l->spec[i];
    }
    l->n = n;
}

int qsf_adapters_check(const QsfModel *m, const QSFSettings *s, const QSFSettings *now, QsfErr *err) {
    QsfAdapterSet *set = NULL;
    QsfLedger ledger;
    QSFSettings none;
    if (now == NULL) qsf_settings_default(&none);
    if (now == NULL) now = &none;
    if (!qsf_adapters_differ(s, now)) return QSF_OK;
    Specs *l = specs_of(s), *known = specs_of(now);
    int rc = l == NULL || known == NULL ? qsf_err_memory(err, "adapters") : QSF_OK;
    for (unsigned i = 0; rc == QSF_OK && i < 2; i++) leave_known(&l[i], &known[i]);
    qsf_ledger_init(&ledger, CHECK_BYTES);
    if (rc == QSF_OK) rc = check_files(l, err);
    if (rc == QSF_OK)
        rc = qsf_adapters_open(&set, m, l[0].spec, l[0].n, l[1].spec, l[1].n, false, &ledger, err);
    qsf_adapters_close(set);
    qsf_ledger_destroy(&ledger);
    free(l);
    free(known);
    return rc;
}
