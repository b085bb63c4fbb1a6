/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf_text.h: what may reach a terminal; splitting the input anywhere does not change the result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qsf_text.h"

static const struct {
    const char *in, *out;
} cases[] = {
    /* clang-format off */
    { "plain text\twith tab\nand line", "plain text\twith tab\nand line" },
    { "\033[31mred\033[0m", "^[[31mred^[[0m" },
    { "\033]52;c;aGk=\a", "^[]52;c;aGk=^G" },
    { "\302\233" "31m", "\\x9b31m" },               /* C1 CSI as UTF-8 */
    { "\233" "31m", "\\x9b31m" },                     /* C1 CSI as a raw byte */
    { "a\177b", "a^?b" },
    { "line\r\nnext", "line\nnext" },
    { "over\rwrite", "over^Mwrite" },
    { "a\342\200\256b", "a<U+202E>b" },              /* right-to-left override */
    { "\363\240\201\201", "<U+E0041>" },             /* tag character */
    { "\303\244\342\202\254\360\237\230\200", "\303\244\342\202\254\360\237\230\200" },
    { "\355\240\200", "\\xed\\xa0\\x80" },           /* surrogate */
    { "cut \342\202", "cut \\xe2\\x82" },
    { "\300\257", "\\xc0\\xaf" },                     /* overlong */
    { "end\r", "end^M" },
    /* The flag of Scotland, and what is not the whole of one: a tag that fits no flag is visible. */
    { "\360\237\217\264\363\240\201\247\363\240\201\242\363\240\201\263\363\240\201\243\363\240\201\264\363\240\201\277|", "\360\237\217\264\363\240\201\247\363\240\201\242\363\240\201\263\363\240\201\243\363\240\201\264\363\240\201\277|" },
    { "\360\237\217\264\363\240\201\247\363\240\201\242\363\240\201\267\363\240\201\254\363\240\201\263\363\240\201\277\363\240\201\243", "\360\237\217\264\363\240\201\247\363\240\201\242\363\240\201\267\363\240\201\254\363\240\201\263\363\240\201\277<U+E0063>" },
    { "\360\237\217\264\363\240\201\247\363\240\201\242\363\240\201\241", "\360\237\217\264\363\240\201\247\363\240\201\242<U+E0061>" },
    { "\360\237\217\264|\363\240\201\247", "\360\237\217\264|<U+E0067>" },
    { "\360\237\217\264\r\363\240\201\247", "\360\237\217\264^M<U+E0067>" },
    { "\360\237\217\264\377\363\240\201\247", "\360\237\217\264\\xff<U+E0067>" },
    { "", "" },
    /* clang-format on */
};

static void clean_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = qsf_clean_dup(cases[i].in, strlen(cases[i].in), false);
        assert_string_equal(got, cases[i].out);
        free(got);
    }
}

static void clean_split_at_every_byte(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *in = cases[i].in;
        size_t len = strlen(in);
        for (size_t cut = 0; cut <= len; cut++) {
            char out[1024];
            QSFClean c = { 0 };
            size_t n = qsf_clean(&c, in, cut, false, out);
            n += qsf_clean(&c, in + cut, len - cut, true, out + n);
            out[n] = '\0';
            assert_string_equal(out, cases[i].out);
        }
    }
}

/* One byte at a time, every byte value before and after ASCII: no control byte is returned. */
static void clean_never_emits_controls(void **state) {
    (void)state;
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            char in[3] = { (char)a, (char)b, 'x' }, out[QSF_CLEAN_MAX(3)];
            QSFClean c = { 0 };
            size_t n = 0;
            for (int i = 0; i < 3; i++) n += qsf_clean(&c, in + i, 1, i == 2, out + n);
            assert_true(n <= QSF_CLEAN_MAX(3));
            for (size_t i = 0; i < n; i++) {
                unsigned char ch = (unsigned char)out[i];
                assert_true((ch >= 0x20 && ch != 0x7F) || ch == '\n' || ch == '\t');
                assert_false(ch == 0xC2 && i + 1 < n && (unsigned char)out[i + 1] < 0xA0);
            }
        }
}

static void clean_ascii_and_one_line(void **state) {
    (void)state;
    QSFClean c = { .ascii = true };
    char out[256];
    size_t n = qsf_clean(&c, "\303\244b\342\202\254", 6, true, out);
    assert_int_equal(n, 3);
    assert_memory_equal(out, "?b?", 3);
    char *line = qsf_clean_dup("a\nb\tc", 5, true);
    assert_string_equal(line, "a b c");
    free(line);
}

static void format_text(char *out, size_t cap, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const size_t n = qsf_text_vformat(out, cap, fmt, ap);
    assert_int_equal(n, strlen(out));
    va_end(ap);
}

/* Only the format ends lines. */
static void formats(void **state) {
    char out[16];
    (void)state;
    format_text(out, sizeof out, "%s", "a\nb");
    assert_string_equal(out, "a^Jb");
    format_text(out, sizeof out, "%s\n%s", "\x01", "\n");
    assert_string_equal(out, "\x01\n^J");
    format_text(out, sizeof out, "%s", "0123456789abcdefgh");
    assert_true(strlen(out) < sizeof out);
    format_text(out, sizeof out, "%s", "\n\n\n\n\n\n\n\n\n\n");
    assert_string_equal(out, "^J^J^J^J^J^J^J");
}

static void widths(void **state) {
    (void)state;
    int cells;
    assert_int_equal(qsf_text_width("abc", 3), 3);
    assert_int_equal(qsf_text_width("\344\270\255\346\226\207", 6), 4); /* two wide characters */
    assert_int_equal(qsf_text_grapheme("e\314\201x", 4, &cells), 3);    /* e + combining acute */
    assert_int_equal(cells, 1);
    assert_int_equal(qsf_text_grapheme("", 0, &cells), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_whole),
        cmocka_unit_test(clean_split_at_every_byte),
        cmocka_unit_test(clean_never_emits_controls),
        cmocka_unit_test(clean_ascii_and_one_line),
        cmocka_unit_test(formats),
        cmocka_unit_test(widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
