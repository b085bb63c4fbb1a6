/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: any bytes as JSON, through the wrapper of jansson and through the scanner without a tree. The
 * scanner must accept what the wrapper accepts, strings must be UTF-8 and survive writing and parsing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/jsonscan.h"
#include "src/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_string(const char *s, size_t len) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    size_t n;
    if (!qsf_utf8_valid(s, len)) abort();
    qsf_json_put_string(&b, s, len);
    QsfJson *v = qsf_json_parse(qsf_strbuf_str(&b), b.len, &e);
    const char *back = v != NULL ? qsf_json_string(v, &n) : NULL;
    if (back == NULL || n != len || memcmp(back, s, len) != 0) abort();
    QsfJsonScan scan;
    QsfStrbuf again = QSF_STRBUF_INIT;
    qsf_jscan_init(&scan, qsf_strbuf_str(&b), b.len);
    if (qsf_jscan_string(&scan, &again, &e) != QSF_OK || again.len != len) abort();
    if (len > 0 && memcmp(again.data, s, len) != 0) abort();
    qsf_strbuf_free(&again);
    qsf_strbuf_free(&b);
    qsf_json_free(v);
}

/* As deep as the wrapper allows trees to be. */
static void look(const QsfJson *v) {
    size_t len;
    const char *key, *s = qsf_json_string(v, &len);
    const QsfJson *member;
    if (s != NULL) check_string(s, len);
    (void)qsf_json_int(v, 0);
    (void)qsf_json_real(v, 0);
    (void)qsf_json_bool(v, false);
    if (qsf_json_type(v) == QSF_JSON_ARRAY)
        for (size_t i = 0; i < qsf_json_size(v); i++) look(qsf_json_at(v, i));
    if (qsf_json_type(v) == QSF_JSON_OBJECT)
        for (const void *it = NULL; (it = qsf_json_next(v, it, &key, &member)) != NULL;) look(member);
}

/* Everything at the top level, read as the type it appears to be. */
static void walk(const char *text, size_t size, bool valid) {
    QsfJsonScan s;
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    size_t begin, end;
    qsf_jscan_init(&s, text, size);
    int rc = qsf_jscan_skip(&s, &begin, &end, &e);
    if (rc == QSF_OK) rc = qsf_jscan_end(&s, &e);
    if (valid && rc != QSF_OK && strstr(e.msg, "nesting") == NULL) abort();
    if (end > size || begin > size || (rc != QSF_OK && e.msg[0] == '\0')) abort();
    qsf_jscan_init(&s, text, size);
    char c = qsf_jscan_peek(&s);
    double v;
    bool first = true, more = true;
    rc = QSF_OK;
    if (c == '[' || c == '{') {
        rc = qsf_jscan_enter(&s, c, NULL);
        while (rc == QSF_OK &&
               (rc = qsf_jscan_next(&s, c == '[' ? ']' : '}', &first, &more, NULL)) == QSF_OK && more) {
            if (c == '{') rc = qsf_jscan_key(&s, &b, NULL);
            if (rc == QSF_OK && qsf_jscan_peek(&s) == '"')
                rc = qsf_jscan_string(&s, &b, NULL);
            else if (rc == QSF_OK)
                rc = qsf_jscan_skip(&s, &begin, &end, NULL);
            if (!qsf_utf8_valid(qsf_strbuf_str(&b), b.len)) abort();
        }
    } else if (c != '"') {
        rc = qsf_jscan_number(&s, &v, NULL);
    }
    if (s.at > size) abort();
    qsf_strbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    QsfErr e = { 0 };
    QsfJson *v = qsf_json_parse((const char *)data, size, &e);
    if (v == NULL && e.msg[0] == '\0') abort();
    look(v);
    walk((const char *)data, size, v != NULL);
    qsf_json_free(v);
    return 0;
}
