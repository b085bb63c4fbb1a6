/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Server-sent events: any split of any bytes gives the same events. */
#include "tests/harness/qsf_test.h"

#include <stdlib.h>

#include "src/remote/sse.h"

/* Appends each event, with a mark after it, and "!" where the reader has refused the rest. */
static void read_all(const char *bytes, size_t len, size_t piece, QsfStrbuf *out) {
    QsfSse s = { 0 };
    bool refused = false;
    for (size_t at = 0; at < len && !refused;) {
        const size_t end = at + piece < len ? at + piece : len;
        while (at < end && !refused) {
            bool event;
            const size_t used = qsf_sse_read(&s, bytes + at, end - at, &event);
            assert_in_range(used, 0, end - at);
            at += used;
            if (event) {
                qsf_strbuf_add(out, qsf_strbuf_str(&s.data), s.data.len);
                qsf_strbuf_addc(out, '|');
            }
            refused = !event && at < end;
        }
    }
    if (refused) {
        qsf_strbuf_addc(out, '!');
    } else if (qsf_sse_end(&s)) {
        qsf_strbuf_add(out, qsf_strbuf_str(&s.data), s.data.len);
        qsf_strbuf_addc(out, '|');
    }
    qsf_sse_free(&s);
}

static void check_bytes(const char *bytes, size_t len, const char *expected) {
    QsfStrbuf whole = QSF_STRBUF_INIT;
    read_all(bytes, len, len + 1, &whole);
    if (expected) assert_string_equal(qsf_strbuf_str(&whole), expected);
    for (size_t piece = 1; piece < len && piece < 40; piece++) {
        QsfStrbuf b = QSF_STRBUF_INIT;
        read_all(bytes, len, piece, &b);
        assert_int_equal(b.len, whole.len);
        assert_string_equal(qsf_strbuf_str(&b), qsf_strbuf_str(&whole));
        qsf_strbuf_free(&b);
    }
    qsf_strbuf_free(&whole);
}

static void check(const char *text, const char *expected) { check_bytes(text, strlen(text), expected); }

static void test_events(void **state) {
    (void)state;
    check("data: one\n\ndata: two\n\n", "one|two|");
    check("data:one\r\n\r\ndata:  two\r\rdata: three\n\r\n", "one| two|three|");
    check("data: a\ndata: b\n\n", "a\nb|");
    check("data\n\n", "|");
    check("data:\ndata:\n\n", "\n|");
    check(": comment\nevent: x\nid: 7\nretry: 3\ndata: y\n\n", "y|");
    check("\n\n\n", "");
    check("event: only\n\n", "");
    check("datax: no\ndat: no\n data: no\nDATA: no\n\ndata: yes\n\n", "yes|");
    check("averyveryverylongfieldname: x\ndata: y\n\n", "y|");
}

static void test_byte_order_mark(void **state) {
    (void)state;
    check("\xEF\xBB\xBF"
          "data: x\n\n",
          "x|");
    check("\xEF\xBB"
          "data: x\n\ndata: y\n\n",
          "y|"); /* no mark: the name of an unknown field */
    check("data: \xEF\xBB\xBF\n\n", "\xEF\xBB\xBF|");
}

static void test_end_without_empty_line(void **state) {
    (void)state;
    check("data: one\n\ndata: last", "one|last|");
    check("data: one\n\ndata: last\n", "one|last|");
    check("data: one\n\n: comment", "one|");
}

static void test_too_long(void **state) {
    QsfStrbuf b = QSF_STRBUF_INIT, out = QSF_STRBUF_INIT;
    (void)state;
    qsf_strbuf_adds(&b, "data: ");
    for (size_t i = 0; i < QSF_SSE_MAX / 1024 + 2; i++) {
        char kb[1024];
        memset(kb, 'x', sizeof kb);
        qsf_strbuf_add(&b, kb, sizeof kb);
    }
    qsf_strbuf_adds(&b, "\n\n");
    for (size_t piece = 1000; piece < b.len; piece *= 50) {
        qsf_strbuf_clear(&out);
        read_all(b.data, b.len, piece, &out);
        assert_string_equal(qsf_strbuf_str(&out), "!");
    }
    memset(b.data, 'n', b.len); /* a name without an end is skipped only so far */
    qsf_strbuf_clear(&out);
    read_all(b.data, b.len, 65536, &out);
    assert_string_equal(qsf_strbuf_str(&out), "!");
    qsf_strbuf_free(&b);
    qsf_strbuf_free(&out);
}

/* Random bytes of those that mean something. */
static void test_any_bytes(void **state) {
    static const char alphabet[] = "data: \r\n\r\nx:\xEF\xBB\xBF";
    char bytes[120];
    (void)state;
    srand(7);
    for (int i = 0; i < 400; i++) {
        const size_t len = (size_t)rand() % sizeof bytes;
        for (size_t k = 0; k < len; k++) bytes[k] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        check_bytes(bytes, len, NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),    cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_too_long),  cmocka_unit_test(test_end_without_empty_line),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
