/* SPDX-License-Identifier: GPL-3.0-or-later */
/* LaTeX as text, and where it is in Markdown. */
#include <string.h>

#include "tests/harness/qsf_test.h"
#include "ui/md/parse.h"

static void check(const char *latex, const char *text) {
    UiBuf out = { 0 };
    assert_true(ui_md_math(&out, latex, strlen(latex)));
    assert_string_equal(ui_buf_str(&out), text);
    ui_buf_free(&out);
}

static void test_text(void **state) {
    (void)state;
    check("x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}", "x = (-b ± √(b² - 4ac))/(2a)");
    check("\\sum_{i=1}^{n} i = \\frac{n(n+1)}{2}", "∑ᵢ₌₁ⁿ i = n(n+1)/2");
    check("\\int_0^\\infty e^{-x^2}\\,dx", "∫₀^∞ e^(-x²) dx");
    check("\\lim_{x \\to 0}\\frac{\\sin x}{x}", "lim_(x→0) (sin x)/x");
    check("f'(x) = \\frac{df}{dx}\\neq\\dfrac{\\partial f}{\\partial x}", "f′(x) = df/dx ≠ ∂f/∂x");
    check("\\frac{1}{\\sigma\\sqrt{2\\pi}} \\cdot 2\\frac12mv^2", "1/(σ√(2π)) · 2 1/2 mv²");
    check("P(A\\mid B)=\\frac{P(B)}{P(C)}", "P(A ∣ B)=P(B)/P(C)");
    check("\\sqrt[3]{27}\\times 90^\\circ \\not= \\{\\,\\}", "³√27 × 90° ≠ { }");
    check("\\hat{y}_{i,j} = \\beta_0 + \\overline{AB}", "y\xcc\x82_(i,j) = β₀ + bar(AB)");
    check("\\mathbb{R}^n, x_{\\text{max}}, \\mathbf{v}^T", "ℝⁿ, xₘₐₓ, vᵀ");
    check("\\frac{x^k}{k!} A \\xrightarrow{k} \\ce{H2O} \\cancel{x}", "xᵏ/k! A →ᵏ H2O x");
    check("\\text{if } x > 0 \\text{ and } 10\\%", "if x > 0 and 10%");
    check("\\left( a \\right. \\bigl[ b \\bigr]", "( a [ b ]");
    check("\\boxed{42}\\tag{1} a \\equiv b \\pmod{m} \\binom{n}{k}", "[42](1) a ≡ b (mod m) C(n, k)");
}

static void test_rows(void **state) {
    (void)state;
    check("\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}^{-1}", "(a b; c d)⁻¹");
    check("f = \\begin{cases} 1 & x>0 \\\\ 0 & \\text{else} \\end{cases}", "f = { 1 x>0; 0 else }");
    check("\\begin{align*}\nx &= 1 \\\\[2pt]\n  &= 2 \\\\\n\\end{align*}", "x = 1\n= 2");
    check("\\begin{array}{c|c} a & b \\\\ \\hline c & d \\end{array}", "a b\nc d");
    check("a \\\\ b", "a\nb");
}

/* What is not known stays; what is open is closed. */
static void test_incomplete(void **state) {
    (void)state;
    check("", "");
    check("\\nosuch{a} \\nosuch", "\\nosuch{a} \\nosuch");
    check("\\frac{", "");
    check("\\frac{a}{b", "a/b");
    check("x_", "x");
    check("a } b", "a b");
    check("\\end{x} \\begin{pmatrix} a", "(a)");
}

/* Whatever is inside itself very often takes neither much stack nor much text. */
static void test_deep(void **state) {
    static const char *const parts[] = { "\\sqrt", "\\sqrt{", "\\frac1", "\\text\\hat",    "\\text{\\hat",
                                         "x^",     "x^\\bar", "{",       "\\begin{matrix}" };
    (void)state;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        UiBuf in = { 0 }, out = { 0 };
        for (size_t i = 0; i < 100000; i++) assert_true(ui_buf_puts(&in, parts[k]));
        assert_true(ui_md_math(&out, in.data, in.len));
        assert_true(out.len < 2 * in.len);
        ui_buf_free(&in);
        ui_buf_free(&out);
    }
}

/* The formulas of a text, each in <>; ascii: as they are. */
static void check_found(const char *text, bool ascii, const char *shown) {
    UiMdDoc d = { 0 };
    UiBuf out = { 0 };
    assert_true(ui_md_parse(&d, text, strlen(text), strlen(text), ascii));
    for (size_t i = 0; i < d.n_runs; i++) {
        const UiMdRun *run = &d.runs[i];
        const bool formula = (run->style & UI_MD_OWN) && !(run->style & (UI_MD_SOFT | UI_MD_HARD));
        if (formula) ui_buf_puts(&out, "<");
        ui_buf_add(&out, ui_md_text(&d, text, run), run->len);
        if (formula) ui_buf_puts(&out, ">");
    }
    assert_string_equal(ui_buf_str(&out), shown);
    ui_buf_free(&out);
    ui_md_free(&d);
}

static void test_found(void **state) {
    (void)state;
    check_found("a \\(x_1 * y_1\\) and $z_2$, $$c$$, \\(\\,\\)", false, "a <x₁ * y₁> and <z₂>, <c>, ");
    check_found("**\\(a\\)** *$b$*", false, "<a> <b>");
    check_found("a\n\\[\n- x\n= 2\n\\]\nb", false, "a\n<- x = 2>\nb");
    check_found("\\[\na \\\\ b\n\\]", false, "<a>\n<b>");
    check_found("> $$\n> x > 1\n> $$\n> b", false, "<x > 1>\nb");
    check_found("\\begin{align} a &= b \\end{align}", false, "<a = b>");
    check_found("| $a|b$ | \\(|x|\\) |\n|-|:-|\n| c | $d$ |", false, "<a|b><|x|>c<d>");
    check_found("a $x_1$ \\(y\\)", true, "a <$x_1$> <\\(y\\)>");
}

static void test_not_found(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        { "it costs $5 and 10$ or $3-$4", NULL },
        { "PATH=$HOME/bin:$PATH and $A=$B", NULL },
        { "a \\[optional\\] \\[1\\] f\\(x\\)", "a [optional] [1] f(x)" },
        { "`$x_1$` and ``\\(a\\)``", "$x_1$ and \\(a\\)" },
        { "```\n$x_1$ \\(a\\)\n```", "$x_1$ \\(a\\)\n" },
        { "    $x_1$ \\(a\\)", "$x_1$ \\(a\\)\n" },
        { "[a](http://b/$x_1$)", "a" },
        { "a \\( b = 1\n\nc \\)", "a ( b = 1c )" },
        { "$ a = b$ $a = b $ $a = b$c", NULL },
        { "$$$a = b$$$", NULL },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = texts[i][0];
        UiMdDoc d = { 0 };
        UiBuf out = { 0 };
        assert_true(ui_md_parse(&d, text, strlen(text), strlen(text), false));
        for (size_t k = 0; k < d.n_runs; k++)
            ui_buf_add(&out, ui_md_text(&d, text, &d.runs[k]), d.runs[k].len);
        assert_string_equal(ui_buf_str(&out), texts[i][1] ? texts[i][1] : text);
        ui_buf_free(&out);
        ui_md_free(&d);
    }
}

/* Offsets of a text with added dashes are those of the source. */
static void test_prepared(void **state) {
    (void)state;
    static const char text[] = "| a |\n|-|\n| b |\n\n|c|d|\n|--|:-:|\n|e|$f$|";
    UiMdPrepared p = { 0 };
    assert_true(ui_md_prepare(&p, text, strlen(text)));
    assert_string_equal(ui_buf_str(&p.text), "| a |\n|---|\n| b |\n\n|c|d|\n|---|:---:|\n|e|xxx|\n");
    assert_int_equal(p.n_added, 3);
    for (size_t i = 0; i <= strlen(text); i++) {
        const size_t at = ui_md_from_source(&p, i);
        assert_int_equal(ui_md_to_source(&p, at), i);
        const char c = ui_buf_str(&p.text)[at];
        assert_true(c == text[i] || c == (strchr("$f", text[i]) ? 'x' : '-') || i == strlen(text));
    }
    assert_int_equal(p.n_math, 1);
    ui_md_prepared_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),     cmocka_unit_test(test_rows),  cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_deep),     cmocka_unit_test(test_found), cmocka_unit_test(test_not_found),
        cmocka_unit_test(test_prepared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
