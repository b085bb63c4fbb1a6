/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Texts with byte order marks: whole and in pieces of any size, well-formed and not. */
#include "tests/harness/qsf_test.h"

#include "qsf_decode.h"
#include "src/base/decode.h"

typedef struct Case {
    const char *bytes;
    size_t len;
    const char *text;
    bool damaged;
} Case;

#define CASE(bytes, text) \
    { bytes, sizeof(bytes) - 1, text, false }
#define DAMAGED(bytes, text) \
    { bytes, sizeof(bytes) - 1, text, true }

static const Case cases[] = {
    CASE("", ""),
    CASE("plain \xC3\xA4\xFF", "plain \xC3\xA4\xFF"),
    CASE("\xEF\xBB\xBF/help", "/help"),
    CASE("\xEF\xBB", "\xEF\xBB"),
    CASE("\xEF\xBB\xBF\xEF\xBB\xBF", "\xEF\xBB\xBF"), /* only the first is a mark */
    CASE("a\xEF\xBB\xBF", "a\xEF\xBB\xBF"),
    CASE("\xFF\xFE", ""),
    CASE("\xFF\xFEH\0i\0\n\0", "Hi\n"),
    CASE("\xFE\xFF\0H\0i\0\n", "Hi\n"),
    CASE("\xFF\xFE\xE4\0\xAC\x20", "\xC3\xA4\xE2\x82\xAC"),
    CASE("\xFF\xFE\x3D\xD8\x00\xDE!\0", "\xF0\x9F\x98\x80!"),
    CASE("\xFE\xFF\xD8\x3D\xDE\x00\0!", "\xF0\x9F\x98\x80!"),
    DAMAGED("\xFF\xFE\x3D\xD8!\0", "\xEF\xBF\xBD!"), /* half a pair */
    DAMAGED("\xFF\xFE\x00\xDE!\0", "\xEF\xBF\xBD!"),
    DAMAGED("\xFF\xFE\x3D\xD8", "\xEF\xBF\xBD"),
    DAMAGED("\xFF\xFE\x3D\xD8!", "\xEF\xBF\xBD\xEF\xBF\xBD"),
    DAMAGED("\xFF\xFE"
            "a\0b",
            "a\xEF\xBF\xBD"),
    CASE("\xFF\xFE\0\0H\0\0\0", "H"),
    CASE("\0\0\xFE\xFF\0\0\0H\0\x01\xF6\0", "H\xF0\x9F\x98\x80"),
    DAMAGED("\xFF\xFE\0\0\0\0\x11\0", "\xEF\xBF\xBD"),
    CASE("\xFF\xFE\xFD\xFF", "\xEF\xBF\xBD"), /* really U+FFFD */
    CASE("\xFF\xFF", "\xFF\xFF"),
};

static void test_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        QsfStrbuf b = QSF_STRBUF_INIT;
        qsf_strbuf_add(&b, cases[i].bytes, cases[i].len);
        assert_int_equal(qsf_strbuf_decode(&b), !cases[i].damaged);
        assert_true(qsf_strbuf_ok(&b));
        if (b.len != strlen(cases[i].text) || strcmp(qsf_strbuf_str(&b), cases[i].text) != 0)
            fail_msg("case %zu: %s", i, qsf_strbuf_str(&b));
        qsf_strbuf_free(&b);
    }
}

static void test_pieces(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 1; step <= 5; step++) {
            char out[64];
            size_t n = 0;
            QSFDecode d = { 0 };
            for (size_t at = 0; at < cases[i].len; at += step) {
                const size_t len = cases[i].len - at < step ? cases[i].len - at : step;
                char piece[QSF_DECODE_MAX(5)];
                const size_t got = qsf_decode(&d, cases[i].bytes + at, len, false, piece);
                assert_true(got <= QSF_DECODE_MAX(len));
                memcpy(out + n, piece, got);
                n += got;
            }
            n += qsf_decode(&d, "", 0, true, out + n);
            if (n != strlen(cases[i].text) || memcmp(out, cases[i].text, n) != 0)
                fail_msg("case %zu in pieces of %zu", i, step);
            assert_int_equal(d.damaged, cases[i].damaged);
        }
}

/* Text that needs no decoding is not held back: a user may wait for the answer. */
static void test_at_once(void **state) {
    char out[QSF_DECODE_MAX(1)];
    QSFDecode d = { 0 };
    (void)state;
    assert_int_equal(qsf_decode(&d, "a", 1, false, out), 1);
    assert_int_equal(qsf_decode(&d, "\xFF", 1, false, out), 1);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(qsf_decode_name("\xFF\xFE{\0", 4), "UTF-16");
    assert_string_equal(qsf_decode_name("\xFF\xFE\0\0", 4), "UTF-32");
    assert_null(qsf_decode_name("\xEF\xBB\xBF{}", 5));
    assert_null(qsf_decode_name("{}", 2));
    assert_null(qsf_decode_name("", 0));
}

static void test_binary(void **state) {
    (void)state;
    assert_false(qsf_decode_is_binary("caf\xc3\xa9 \xe9\t\r\n\f\x1b[1m\a\b\v\x1a", 19));
    assert_false(qsf_decode_is_binary("", 0));
    assert_true(qsf_decode_is_binary("a\0b", 3));
    assert_true(qsf_decode_is_binary("\x7f"
                                     "ELF\x02\x01",
                                     6));
    assert_true(qsf_decode_is_binary("\xff\xd8\xff\xe1\x1d", 5));
}

static void test_kinds(void **state) {
    (void)state;
    assert_non_null(strstr(qsf_decode_kind("%PDF-1.7\n", 9), "pdftotext"));
    assert_non_null(strstr(qsf_decode_kind("PK\3\4\0", 5), "pandoc"));
    assert_non_null(strstr(qsf_decode_kind("\x89PNG\r\n", 6), "it is an image:"));
    assert_string_equal(qsf_decode_kind("\x89PN", 3), "it is not text");
    assert_string_equal(qsf_decode_kind("", 0), "it is not text");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_whole),   cmocka_unit_test(test_pieces),
                                        cmocka_unit_test(test_at_once), cmocka_unit_test(test_names),
                                        cmocka_unit_test(test_binary),  cmocka_unit_test(test_kinds) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
