/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replacements of libraries that a build omits: the same checksums as libdeflate, the same ASCII as utf8proc,
 * and refusals by name. Their functions are renamed here, because the real ones are linked too. */
#include "tests/harness/qsf_test.h"

#include <string.h>

#include "src/base/crc32.h"
#include "src/base/json.h"
#include "src/base/unicode.h"
#include "src/token/regex.h"

#define QSF_WITHOUT_LIBDEFLATE 1
#define qsf_crc32              plain_crc32
uint32_t plain_crc32(uint32_t crc, const void *p, size_t len);
#include "src/base/crc32_plain.c"
#undef qsf_crc32

#define QSF_WITHOUT_PCRE2      1
#define qsf_regex_compile      none_regex_compile
#define qsf_regex_compile_ruby none_regex_compile_ruby
#define qsf_regex_free         none_regex_free
#define qsf_regex_bytes        none_regex_bytes
#define qsf_regex_scratch_new  none_regex_scratch_new
#define qsf_regex_scratch_free none_regex_scratch_free
#define qsf_regex_find         none_regex_find
int none_regex_compile(QsfRegex **out, const char *pattern, QsfErr *err);
int none_regex_compile_ruby(QsfRegex **out, const char *pattern, QsfErr *err);
void none_regex_free(QsfRegex *re);
size_t none_regex_bytes(const QsfRegex *re);
QsfRegexScratch *none_regex_scratch_new(void);
void none_regex_scratch_free(QsfRegexScratch *s);
bool none_regex_find(const QsfRegex *re, QsfRegexScratch *s, const char *text, size_t len, size_t from,
                     size_t *begin, size_t *end);
#include "src/token/regex_none.c"

#define QSF_WITHOUT_UTF8PROC  1
#define qsf_unicode_has_forms none_has_forms
#define qsf_unicode_guessed   none_guessed
#define qsf_grapheme_next     none_grapheme_next
#define qsf_text_cells        none_text_cells
#define qsf_normal_form       none_normal_form
#define qsf_unicode_category  none_category
#define qsf_unicode_upper     none_upper
#define qsf_unicode_lower     none_lower
bool none_has_forms(void);
bool none_guessed(void);
size_t none_grapheme_next(const char *s, size_t len, int *cells);
size_t none_text_cells(const char *s, size_t len);
char *none_normal_form(const char *s, size_t len, QsfNormalForm form, size_t *out_len);
const char *none_category(uint32_t cp);
uint32_t none_upper(uint32_t cp);
uint32_t none_lower(uint32_t cp);
#include "src/base/unicode_none.c"
#undef qsf_unicode_category
#undef qsf_unicode_upper
#undef qsf_unicode_lower
#undef qsf_grapheme_next

static void test_crc32(void **state) {
    (void)state;
    uint8_t b[300];
    for (size_t i = 0; i < sizeof b; i++) b[i] = (uint8_t)(i * 167 + 13);
    assert_int_equal(plain_crc32(0, "123456789", 9), 0xCBF43926); /* the check value of CRC-32 */
    for (size_t len = 0; len < sizeof b; len++) {
        size_t cut = len / 3;
        assert_int_equal(plain_crc32(0, b, len), qsf_crc32(0, b, len));
        assert_int_equal(plain_crc32(plain_crc32(0, b, cut), b + cut, len - cut), qsf_crc32(0, b, len));
    }
    assert_int_equal(plain_crc32(7, NULL, 0), 7);
}

static void test_ascii(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp < 128; cp++) {
        char c = (char)cp;
        int none, real;
        assert_string_equal(none_category(cp), qsf_unicode_category(cp));
        assert_int_equal(none_upper(cp), qsf_unicode_upper(cp));
        assert_int_equal(none_lower(cp), qsf_unicode_lower(cp));
        assert_int_equal(none_grapheme_next(&c, 1, &none), qsf_grapheme_next(&c, 1, &real));
        assert_int_equal(none, real);
    }
    assert_false(none_guessed());
}

static void test_beyond_ascii_is_reported(void **state) {
    (void)state;
    none_category(0xE9);
    assert_true(none_guessed());
    assert_false(none_guessed());
    assert_int_equal(none_upper(0xE9), 0xE9);
    assert_true(none_guessed());
    none_lower(0xC9);
    assert_true(none_guessed());
    assert_false(none_has_forms());
    assert_int_equal(none_text_cells("a\xC3\xA9z", 4), 3);
}

static void test_regex_refuses(void **state) {
    (void)state;
    QsfErr err = { 0 };
    QsfRegex *re = (QsfRegex *)&err;
    assert_int_equal(none_regex_compile(&re, "a+", &err), QSF_E_RUNTIME);
    assert_null(re);
    assert_non_null(strstr(err.msg, "PCRE2"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32),
        cmocka_unit_test(test_ascii),
        cmocka_unit_test(test_beyond_ascii_is_reported),
        cmocka_unit_test(test_regex_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
