/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists of setting_lists.h, and adding to and removing from them. */
#include "src/engine/setting_lists.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "qsf_setting_items.h"
#include "src/base/err.h"
#include "src/engine/number.h"

_Static_assert(QSF_SETTING_ITEM == QSF_LIST_ITEM, "an item fits");

bool qsf_list_next(const char **at, const char **item, size_t *len) {
    const char *p = *at;
    if (*p == '\0') return false;
    *item = p;
    while (*p != '\0' && *p != ',') p += p[0] == '\\' && p[1] != '\0' ? 2 : 1;
    *len = (size_t)(p - *item);
    *at = *p == ',' ? p + 1 : p;
    return true;
}

static char escaped(char c) { return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c; }

bool qsf_list_text(const char *item, size_t len, char *out, size_t *out_len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (n + 1 >= QSF_LIST_ITEM) return false;
        const bool escapes = item[i] == '\\' && i + 1 < len;
        i += escapes;
        out[n++] = escapes ? escaped(item[i]) : item[i];
    }
    out[n] = '\0';
    *out_len = n;
    return n > 0;
}

static bool parse_id(const char *item, size_t len, int32_t *id) {
    char digits[12] = "";
    uint64_t v;
    if (len < 2 || len >= sizeof digits) return false;
    memcpy(digits, item + 1, len - 1);
    if (!qsf_u64_parse(digits, &v) || v > INT32_MAX) return false;
    *id = (int32_t)v;
    return true;
}

bool qsf_list_token(const char *item, size_t len, QsfListToken *out) {
    *out = (QsfListToken){ .id = -1 };
    if (len > 0 && item[0] == '#') return parse_id(item, len, &out->id);
    return qsf_list_text(item, len, out->text, &out->len);
}

/* The length of what is before the last '='; len if there is none. */
static size_t before_value(const char *item, size_t len) {
    for (size_t i = len; i > 1; i--)
        if (item[i - 1] == '=') return i - 1;
    return len;
}

bool qsf_list_bias(const char *item, size_t len, QsfListToken *out, float *bias) {
    const size_t n = before_value(item, len);
    char number[32] = "";
    const char *end;
    double v;
    if (n == len || len - n - 1 >= sizeof number || !qsf_list_token(item, n, out)) return false;
    memcpy(number, item + n + 1, len - n - 1);
    *bias = -INFINITY;
    if (strcasecmp(number, "-inf") == 0) return true;
    if (!qsf_number_parse(number, &v, &end) || *end != '\0' || !(fabs(v) <= 1e6)) return false;
    *bias = (float)v;
    return true;
}

bool qsf_setting_item(const char **at, bool valued, QSFSettingItem *out) {
    const char *item;
    size_t len;
    while (qsf_list_next(at, &item, &len)) {
        QsfListToken token;
        float bias = -INFINITY;
        if (!(valued ? qsf_list_bias(item, len, &token, &bias) : qsf_list_token(item, len, &token))) continue;
        *out = (QSFSettingItem){ .id = token.id, .len = token.len, .bias = bias };
        memcpy(out->text, token.text, token.len);
        return true;
    }
    return false;
}

bool qsf_setting_item_text(const char *text, size_t len, char *dst, size_t cap) {
    static const char plain[] = "\n\t\r", letter[] = "ntr";
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        const char *at = text[i] ? strchr(plain, text[i]) : NULL;
        const bool escapes = at || text[i] == ',' || text[i] == '\\' || (i == 0 && text[i] == '#');
        if (!text[i] || n + 2 >= cap) return false;
        if (escapes) dst[n++] = '\\';
        dst[n++] = at ? letter[at - plain] : text[i];
    }
    if (cap > 0) dst[n] = '\0';
    return n > 0 && len < QSF_LIST_ITEM;
}

/* Do two items mean the same token? */
static bool same_token(const char *a, size_t a_len, const char *b, size_t b_len, bool valued) {
    QsfListToken x, y;
    float bias;
    if (!qsf_list_token(a, valued ? before_value(a, a_len) : a_len, &x)) return false;
    const bool has_value = valued && qsf_list_bias(b, b_len, &y, &bias);
    if (!has_value && !qsf_list_token(b, b_len, &y)) return false;
    return x.id == y.id && x.len == y.len && memcmp(x.text, y.text, x.len) == 0;
}

/* Copies the list without one token to out; true if it was there. */
static bool without(const char *list, const char *item, bool valued, char *out, size_t cap) {
    const char *at = list, *one;
    size_t len, n = 0;
    bool found = false;
    out[0] = '\0';
    while (qsf_list_next(&at, &one, &len)) {
        if (same_token(one, len, item, strlen(item), valued)) {
            found = true;
            continue;
        }
        const int wrote = snprintf(out + n, cap - n, "%s%.*s", n > 0 ? "," : "", (int)len, one);
        if (wrote < 0 || (size_t)wrote >= cap - n) break;
        n += (size_t)wrote;
    }
    return found;
}

/* A single item, in which ',' needs no '\'. */
static void escape_commas(const char *item, char *out, size_t cap) {
    size_t n = 0;
    for (; *item != '\0' && n + 3 < cap; item++) {
        if (*item == ',') out[n++] = '\\';
        out[n++] = *item;
        if (*item == '\\' && item[1] != '\0') out[n++] = *++item;
    }
    out[n] = '\0';
}

/* Doubles a '\' at the end, which would take the comma that follows with it. */
static void end_escape(char *items, size_t cap) {
    const size_t n = strlen(items);
    size_t i = 0;
    while (i < n && !(items[i] == '\\' && i + 1 == n)) i += items[i] == '\\' ? 2 : 1;
    if (i < n && n + 1 < cap) memcpy(items + n, "\\", 2);
}

static bool is_off(const char *text) { return strcasecmp(text, "off") == 0 || text[0] == '\0'; }

static void current(const QSFSettings *s, const QSFSetting *row, char *out, size_t cap) {
    qsf_setting_get(s, row, out, cap);
    if (is_off(out)) out[0] = '\0';
}

static bool is_valued(const QSFSetting *row) { return strchr(row->arg, '=') != NULL; }

static bool is_scaled(const QSFSetting *row) { return strstr(row->arg, ":SCALE") != NULL; }

int qsf_setting_add(QSFSettings *s, const QSFSetting *row, const char *item, char *err, size_t cap) {
    char old[QSF_SETTING_TEXT], rest[QSF_SETTING_TEXT], one[QSF_SETTING_TEXT], list[2 * QSF_SETTING_TEXT + 2];
    if (s == NULL || row == NULL || item == NULL || is_off(item) || !(row->flags & QSF_SETTING_LIST))
        return qsf_setting_set(s, row, item, err, cap);
    current(s, row, old, sizeof old);
    escape_commas(item, one, sizeof one);
    end_escape(one, sizeof one);
    if (is_scaled(row))
        memcpy(rest, old, sizeof rest); /* the scales of one file add up */
    else
        without(old, one, is_valued(row), rest, sizeof rest);
    end_escape(rest, sizeof rest);
    snprintf(list, sizeof list, "%s%s%s", rest, rest[0] != '\0' ? "," : "", one);
    return qsf_setting_set(s, row, list, err, cap);
}

bool qsf_setting_remove(QSFSettings *s, const QSFSetting *row, const char *item) {
    char old[QSF_SETTING_TEXT], rest[QSF_SETTING_TEXT], one[QSF_SETTING_TEXT], err[300];
    if (s == NULL || row == NULL || item == NULL || !(row->flags & QSF_SETTING_LIST)) return false;
    current(s, row, old, sizeof old);
    escape_commas(item, one, sizeof one);
    return without(old, one, is_valued(row), rest, sizeof rest) &&
           qsf_setting_set(s, row, rest[0] != '\0' ? rest : "off", err, sizeof err) == QSF_OK;
}
