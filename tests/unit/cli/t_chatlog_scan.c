/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The scanner of conversation files accepts the same lines as a parser with a tree, with the
 * same contents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/json.h"
#include "src/cli/chatlog_scan.h"

static uint32_t state_of = 1;

static uint32_t draw(uint32_t n) {
    state_of = state_of * 1664525u + 1013904223u;
    return (state_of >> 8) % n;
}

static void random_value(QsfStrbuf *b, int depth) {
    static const char *const words[] = { "null",
                                         "true",
                                         "false",
                                         "0",
                                         "-1",
                                         "12",
                                         "3.5",
                                         "1e3",
                                         "\"\"",
                                         "\"a\\n\\u00e4\"",
                                         "\"\\ud83d\\ude00\"",
                                         "\"\\u0000x\"",
                                         "\"\xe6\xbc\xa2\"" };
    const uint32_t what = draw(depth > 3 ? 13 : 17);
    if (what < 13) {
        qsf_strbuf_adds(b, words[what]);
        return;
    }
    const bool list = what < 15;
    qsf_strbuf_addc(b, list ? '[' : '{');
    for (uint32_t i = 0, n = draw(4); i < n; i++) {
        if (i > 0) qsf_strbuf_addc(b, ',');
        if (!list) qsf_strbuf_addf(b, " \"k%u\" :", i);
        random_value(b, depth + 1);
    }
    qsf_strbuf_addc(b, list ? ']' : '}');
}

static void random_line(QsfStrbuf *b) {
    static const char *const keys[] = { "kind", "role",   "text", "name", "reasoning", "stop",
                                        "seed", "tokens", "n",    "time", "other",     "exact" };
    static const char *const kinds[] = { "message", "part",  "undo",   "clear", "system",
                                         "set",     "model", "forget", "other" };
    qsf_strbuf_clear(b);
    qsf_strbuf_addf(b, "{\"kind\":\"%s\"", kinds[draw(9)]);
    if (draw(3)) qsf_strbuf_adds(b, ",\"role\":\"user\"");
    if (draw(3)) qsf_strbuf_adds(b, ",\"text\":\"words\"");
    for (uint32_t n = draw(5); n > 0; n--) {
        qsf_strbuf_addf(b, ", \"%s\": ", keys[draw(12)]);
        random_value(b, 0);
    }
    qsf_strbuf_addc(b, '}');
    for (uint32_t n = draw(3) ? 0 : draw(3); n > 0; n--) {
        char *at = b->data + draw((uint32_t)b->len);
        *at = "\"\\{}[],:0a \t\xc3\x80\x01"[draw(16)];
    }
}

static const char *string_in(const QsfJson *v, const char *key, size_t *len) {
    return qsf_json_string(qsf_json_get(v, key), len);
}

static void same_string(const char *line, const QsfJson *v, const char *key, const char *got) {
    size_t len = 0;
    const char *want = string_in(v, key, &len);
    if ((want == NULL) != (got == NULL) || (want && strcmp(want, got) != 0))
        fail_msg("%s: %s is '%s' instead of '%s'", line, key, got ? got : "(none)", want ? want : "(none)");
}

static void scanner_and_parser_agree(void **state) {
    (void)state;
    QsfStrbuf b = QSF_STRBUF_INIT;
    static QsfLogScan s;
    int records = 0, damaged = 0;
    FILE *f = tmpfile();
    assert_non_null(f);
    for (int i = 0; i < 20000; i++) {
        QsfErr e = { 0 };
        QSFLogRecord r;
        random_line(&b);
        rewind(f);
        fwrite(b.data, 1, b.len, f), fflush(f);
        assert_int_equal(ftruncate(fileno(f), (off_t)b.len), 0);
        qsf_logscan_init(&s, fileno(f), 0);
        const QsfLogLine got = qsf_logscan_line(&s, NULL, &r);
        QsfJson *v = qsf_json_parse(b.data, b.len, &e);
        size_t len;
        const char *kind = string_in(v, "kind", &len), *role = string_in(v, "role", &len);
        const bool known = kind && strcmp(kind, "other") != 0 &&
                           strstr("message part undo clear system set model forget", kind) &&
                           strlen(kind) > 2;
        if (got == QSF_LOG_LINE_RECORD) {
            records++;
            if (!v || !known) fail_msg("accepted: %s", b.data);
            same_string(b.data, v, "role", r.role), same_string(b.data, v, "name", r.name);
            same_string(b.data, v, "text", r.text), same_string(b.data, v, "reasoning", r.reasoning);
            same_string(b.data, v, "stop", r.stop), same_string(b.data, v, "exact", r.exact);
            const int64_t n = qsf_json_int(qsf_json_get(v, "n"), 0),
                          tokens = qsf_json_int(qsf_json_get(v, "tokens"), 0);
            assert_int_equal(r.n, n < 0 ? 0 : n);
            assert_int_equal(r.tokens, tokens < 0 ? 0 : tokens);
            assert_true(r.time == qsf_json_real(qsf_json_get(v, "time"), 0));
        } else {
            damaged++;
            const bool text = string_in(v, "text", &len) != NULL;
            const bool needs = known &&
                               (!strcmp(kind, "message") || !strcmp(kind, "part") || !strcmp(kind, "system"));
            const bool whole = v && known && (!needs || text) &&
                               (strcmp(kind, "message") != 0 || (role && *role));
            if (whole) fail_msg("refused: %s", b.data);
        }
        qsf_json_free(v);
    }
    assert_true(records > 5000 && damaged > 3000);
    fclose(f);
    qsf_strbuf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(scanner_and_parser_agree) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
