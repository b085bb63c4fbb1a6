/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scales, ticks, numbers, labels, and texts that a model wrote. */
#include "tests/harness/qsf_test.h"

#include <locale.h>
#include <math.h>

#include "src/svg/chart.h"
#include "src/svg/svg.c"

static const char *escaped(const char *text) {
    static char out[400];
    QsfStrbuf b = QSF_STRBUF_INIT;
    put_text(&b, text);
    snprintf(out, sizeof out, "%s", qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
    return out;
}

static void markup_is_escaped(void **state) {
    (void)state;
    assert_string_equal(escaped("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
    assert_string_equal(escaped("]]></title><script>x</script>"),
                        "]]&gt;&lt;/title&gt;&lt;script&gt;x&lt;/script&gt;");
    assert_string_equal(escaped("na\xC3\xAFve \xE6\xA8\xA1"), "na\xC3\xAFve \xE6\xA8\xA1");
}

static void what_xml_cannot_say_is_replaced(void **state) {
    (void)state;
    assert_string_equal(escaped("a\nb\tc\x1b[31m\x7f"), "a?b?c?[31m?");
    assert_string_equal(escaped("\xC2\x9B"), "?");                  /* C1 */
    assert_string_equal(escaped("\xEF\xBF\xBE\xEF\xBF\xBF"), "??"); /* U+FFFE, U+FFFF */
    assert_string_equal(escaped("\xE2\x80\xAE"
                                "cod.exe"),
                        "?cod.exe"); /* right-to-left override */
    assert_string_equal(escaped("x\xFFy\xC3"), "x?y?");
    assert_string_equal(escaped("\xED\xA0\x80"), "???"); /* a surrogate */
}

static const char *put(double v) {
    static char out[40];
    QsfStrbuf b = QSF_STRBUF_INIT;
    put_number(&b, v);
    snprintf(out, sizeof out, "%s", qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
    return out;
}

static void coordinates_have_tenths(void **state) {
    (void)state;
    assert_string_equal(put(0), "0");
    assert_string_equal(put(12.04), "12");
    assert_string_equal(put(12.05), "12.1");
    assert_string_equal(put(-0.26), "-0.3");
    assert_string_equal(put(-0.04), "0");
    assert_string_equal(put(NAN), "0");
    assert_string_equal(put(INFINITY), "0");
    assert_string_equal(put(1e300), "1000000");
}

static const char *number(double v) {
    static char out[QSF_NUMBER_BYTES];
    qsf_svg_number(v, out);
    return out;
}

static void numbers_are_short(void **state) {
    (void)state;
    static const struct {
        double v;
        const char *text;
    } all[] = {
        { 0, "0" },           { 0.06, "0.06" },         { 0.3, "0.3" },
        { 4.4, "4.4" },       { 4.444, "4.44" },        { 9.996, "10" },
        { 31.5, "31.5" },     { 99.96, "100" },         { 123.4, "123" },
        { 12400, "12,400" },  { 1234567, "1,234,567" }, { 0.012, "0.012" },
        { 0.0012, "0.0012" }, { 0.00001, "0" },         { -4.4, "-4.4" },
        { NAN, "-" },         { INFINITY, "-" },        { 1e300, "1,000,000,000,000,000" },
        { 1.05, "1.05" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) assert_string_equal(number(all[i].v), all[i].text);
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8")) assert_string_equal(number(4.4), "4.4");
    setlocale(LC_NUMERIC, "C");
}

static void ticks_are_round_and_cover_the_data(void **state) {
    (void)state;
    double t[QSF_TICKS_MOST];
    assert_int_equal(qsf_ticks(5.1, 4, t), 4);
    assert_true(t[0] == 0 && t[1] == 2 && t[2] == 4 && t[3] == 6);
    assert_int_equal(qsf_ticks(0, 4, t), 3); /* 0 to 1 */
    assert_true(t[2] == 1);
    for (double most = 1e-7; most < 1e13; most *= 1.07)
        for (unsigned n = 2; n < QSF_TICKS_MOST; n++) {
            const unsigned count = qsf_ticks(most, n, t);
            assert_true(count >= 2 && count <= n + 1);
            assert_true(t[0] == 0 && t[count - 1] >= most * (1 - 1e-9) && t[count - 2] < most);
        }
    (void)qsf_ticks(NAN, 4, t);
    (void)qsf_ticks(INFINITY, 4, t);
}

static void values_outside_lie_at_the_ends(void **state) {
    (void)state;
    const QsfScale s = { 0, 10, 100, 0, false }, l = { 1, 100, 0, 200, true };
    assert_true(qsf_scale_at(&s, 5) == 50 && qsf_scale_at(&s, -1) == 100 && qsf_scale_at(&s, 11) == 0);
    assert_true(qsf_scale_at(&s, NAN) == 100);
    assert_true(fabs(qsf_scale_at(&l, 10) - 100) < 1e-9 && qsf_scale_at(&l, 0) == 0 &&
                qsf_scale_at(&l, 1e9) == 200);
}

static void labels_are_spread(void **state) {
    (void)state;
    double near[] = { 10, 10, 11, 50 }, end[] = { 95, 96, 97 }, many[] = { 1, 1, 1, 1 };
    qsf_spread(near, 4, 15, 0, 100);
    assert_true(near[0] == 10 && near[1] == 25 && near[2] == 40 && near[3] == 55);
    qsf_spread(end, 3, 15, 0, 100);
    assert_true(end[0] == 70 && end[1] == 85 && end[2] == 100);
    qsf_spread(many, 4, 15, 0, 30); /* there is not enough room */
    assert_true(many[0] == 0 && many[3] == 30 && many[1] == 10);
    qsf_spread(many, 0, 15, 0, 30);
}

static void long_names_end_in_dots(void **state) {
    (void)state;
    char dst[100];
    qsf_svg_fit("short", 12, 200, dst, sizeof dst);
    assert_string_equal(dst, "short");
    qsf_svg_fit("a very long name of a model that nobody can read", 12, 100, dst, sizeof dst);
    assert_non_null(strstr(dst, "\xE2\x80\xA6"));
    assert_true(qsf_svg_width(dst, 12) <= 100);
    qsf_svg_fit("\xE6\xA8\xA1\xE6\xA8\xA1\xE6\xA8\xA1", 10, 25, dst, sizeof dst); /* cut between characters */
    assert_string_equal(dst, "\xE6\xA8\xA1\xE2\x80\xA6");
    qsf_svg_fit("abcdefghijkl", 12, 1000, dst, 8); /* a small buffer */
    assert_string_equal(dst, "abcd\xE2\x80\xA6");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_is_escaped),
        cmocka_unit_test(what_xml_cannot_say_is_replaced),
        cmocka_unit_test(coordinates_have_tenths),
        cmocka_unit_test(numbers_are_short),
        cmocka_unit_test(ticks_are_round_and_cover_the_data),
        cmocka_unit_test(values_outside_lie_at_the_ends),
        cmocka_unit_test(labels_are_spread),
        cmocka_unit_test(long_names_end_in_dots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
