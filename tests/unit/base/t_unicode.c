/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Grapheme clusters and their cells, normalization, categories. */
#include "tests/harness/qsf_test.h"

#include "src/base/interrupt.h"
#include "src/base/unicode.h"

typedef struct Case {
    const char *text;
    size_t first; /* bytes of the first cluster */
    int cells;    /* its width */
} Case;

static const Case cases[] = {
    { "a", 1, 1 },
    { "ab", 1, 1 },
    { "\xc3\xa4", 2, 1 }, /* a umlaut */
    { "a\xcc\x88"
      "b",
      3, 1 },                                                     /* a + combining diaeresis */
    { "\xe4\xb8\xad\xe6\x96\x87", 3, 2 },                         /* CJK */
    { "\xef\xbd\xb1", 3, 1 },                                     /* halfwidth katakana */
    { "\xf0\x9f\x98\x80", 4, 2 },                                 /* emoji */
    { "\xe2\x9d\xa4", 3, 1 },                                     /* heart, text style */
    { "\xe2\x9d\xa4\xef\xb8\x8f", 6, 2 },                         /* heart, emoji style */
    { "1\xef\xb8\x8f\xe2\x83\xa3", 7, 2 },                        /* keycap 1 */
    { "\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd", 8, 2 },                 /* thumbs up, tinted */
    { "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80x", 11, 2 },   /* woman + ZWJ + rocket */
    { "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xf0\x9f\x87\xab", 8, 2 }, /* flag, then half a flag */
    { "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", 9, 2 },             /* Hangul from three jamo */
    { "\r\n", 2, 0 },
    { "\x1b[", 1, 0 },
    { "\xff\xfe", 1, 1 },
    { "a\xff", 1, 1 },
};

static void test_clusters(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int cells = -1;
        size_t n = qsf_grapheme_next(cases[i].text, strlen(cases[i].text), &cells);
        if (n != cases[i].first || cells != cases[i].cells)
            fail_msg("case %zu: %zu bytes %d cells, expected %zu and %d", i, n, cells, cases[i].first,
                     cases[i].cells);
    }
    assert_int_equal(qsf_grapheme_next("", 0, NULL), 0);
    assert_int_equal(qsf_text_cells("a\xe4\xb8\xad\xcc\x81 \xf0\x9f\x98\x80", 11), 6);
}

static void test_nfc(void **state) {
    size_t len;
    (void)state;
    char *s = qsf_normal_form("a\xcc\x88\0z", 5, QSF_NFC, &len);
    assert_non_null(s);
    assert_int_equal(len, 4);
    assert_memory_equal(s, "\xc3\xa4\0z", 5);
    free(s);
    s = qsf_normal_form("", 0, QSF_NFC, &len);
    assert_non_null(s);
    assert_int_equal(len, 0);
    free(s);
    assert_null(qsf_normal_form("\xff", 1, QSF_NFC, &len));
}

/* The other forms, compositions that marks between them block, and starters that join the one before. */
static void test_forms(void **state) {
    static const struct {
        const char *text;
        QsfNormalForm form;
        const char *normal;
    } forms[] = {
        { "a\xcc\xa7\xcc\x81", QSF_NFC, "\xc3\xa1\xcc\xa7" },  /* over the cedilla */
        { "a\xcc\x81\xcc\x81", QSF_NFC, "\xc3\xa1\xcc\x81" },  /* the second one stays */
        { "a\xcc\x88\xcc\x84", QSF_NFC, "\xc7\x9f" },          /* both are composed */
        { "a\xcc\x9b\xcc\x81", QSF_NFC, "\xc3\xa1\xcc\x9b" },  /* another class does not block */
        { "a\xcc\x90\xcc\x81", QSF_NFC, "a\xcc\x90\xcc\x81" }, /* the same class does */
        { "a\xcc\x81\xcc\xa7"
          "b",
          QSF_NFD,
          "a\xcc\xa7\xcc\x81"
          "b" },                                                             /* by class */
        { "\xcc\x81\xcc\xa7", QSF_NFC, "\xcc\xa7\xcc\x81" },                 /* without a starter */
        { "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", QSF_NFC, "\xed\x95\x9c" }, /* jamo */
        { "\xe0\xa7\x87\xe0\xa6\xbe", QSF_NFC, "\xe0\xa7\x8b" },             /* two starters */
        { "\xe0\xa7\x87\xcc\x81\xe0\xa6\xbe", QSF_NFC, "\xe0\xa7\x87\xcc\x81\xe0\xa6\xbe" },
        { "\xe0\xa4\x95\xe0\xa4\xbc", QSF_NFC, "\xe0\xa4\x95\xe0\xa4\xbc" }, /* excluded */
        { "\xef\xac\x81\xc2\xb2", QSF_NFKC, "fi2" },
        { "\xef\xac\x81", QSF_NFC, "\xef\xac\x81" },
        { "\xe1\xba\x9b\xcc\xa3", QSF_NFKC, "\xe1\xb9\xa9" },
        { "\xed\x95\x9c", QSF_NFKD, "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t len;
        char *s = qsf_normal_form(forms[i].text, strlen(forms[i].text), forms[i].form, &len);
        assert_non_null(s);
        if (strcmp(s, forms[i].normal) != 0) fail_msg("form %zu: %s", i, s);
        assert_int_equal(len, strlen(s));
        free(s);
    }
}

/* Marks in the worst order, so many of them that exchanging neighbours would take minutes. */
static void test_many_marks(void **state) {
    enum { MARKS = 400000 };
    char *text = malloc(1 + 2 * MARKS);
    size_t len;
    (void)state;
    assert_non_null(text);
    text[0] = 'a';
    for (size_t i = 0; i < MARKS; i++) memcpy(text + 1 + 2 * i, i % 2 ? "\xcc\xa7" : "\xcc\x90", 2);
    char *s = qsf_normal_form(text, 1 + 2 * MARKS, QSF_NFC, &len);
    assert_non_null(s);
    assert_int_equal(len, 1 + 2 * MARKS);
    for (size_t i = 0; i < MARKS; i++)
        assert_memory_equal(s + 1 + 2 * i, i < MARKS / 2 ? "\xcc\xa7" : "\xcc\x90", 2);
    free(s);
    const atomic_int stop = 1;
    const atomic_int *before = qsf_interrupt_watch(&stop);
    assert_null(qsf_normal_form(text, 1 + 2 * MARKS, QSF_NFC, &len));
    (void)qsf_interrupt_watch(before);
    free(text);
}

static void test_category(void **state) {
    (void)state;
    assert_string_equal(qsf_unicode_category('A'), "Lu");
    assert_string_equal(qsf_unicode_category('7'), "Nd");
    assert_string_equal(qsf_unicode_category(0xA0), "Zs");
    assert_string_equal(qsf_unicode_category(0x0301), "Mn");
    assert_string_equal(qsf_unicode_category(0x110000), "Cn");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_clusters), cmocka_unit_test(test_nfc),
                                        cmocka_unit_test(test_forms), cmocka_unit_test(test_many_marks),
                                        cmocka_unit_test(test_category) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
