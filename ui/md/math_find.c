/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where formulas are in Markdown. */
#include <string.h>

#include "ui/md/math.h"

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

/* Is the line after s[i], a newline, blank? Marks of quotes do not count. */
static bool blank_follows(const char *s, size_t len, size_t i) {
    for (i++; i < len && s[i] != '\n'; i++)
        if (!is_space(s[i]) && s[i] != '>') return false;
    return true;
}

static bool begins(const char *s, size_t len, size_t i, const char *with) {
    const size_t n = strlen(with);
    return i + n <= len && memcmp(s + i, with, n) == 0;
}

/* ---- is it a formula? ---- */

/* Words without a sign of mathematics are text: "\[optional\]", "$5 and 6$". What is open needs such a
 * sign. */
static bool is_formula(const UiMdMath *m, const char *s) {
    size_t letters = 0, longest = 0, others = 0;
    for (size_t i = m->in; i < m->in + m->in_len; i++) {
        if (strchr("\\^_{}=<>+", s[i])) return true;
        letters = is_letter(s[i]) ? letters + 1 : 0;
        if (letters > longest) longest = letters;
        others += !is_space(s[i]);
    }
    return m->closed && others > 0 && longest <= 2;
}

static bool only_digits(const UiMdMath *m, const char *s) {
    for (size_t i = m->in; i < m->in + m->in_len; i++)
        if (!is_digit(s[i]) && s[i] != ',') return false;
    return true;
}

/* ---- delimiters ---- */

/* After a dollar sign: one on the same line that does not follow a space, and before which no price ends. */
static bool find_dollar(UiMdMath *m, const char *s, size_t len) {
    size_t i = m->in;
    const char before = m->off > 0 ? s[m->off - 1] : ' ';
    if (i >= len || is_space(s[i]) || is_letter(before) || is_digit(before)) return false;
    for (; i < len && s[i] != '$'; i++) {
        if (s[i] == '\n' || s[i] == '`' || (s[i] == '|' && s[i - 1] == ' ')) return false;
        if (s[i] == '\\') i++;
    }
    const char after = i + 1 < len ? s[i + 1] : ' ';
    if (i >= len || i == m->in || is_space(s[i - 1]) || is_letter(after) || is_digit(after) || after == '$')
        return false;
    m->in_len = i - m->in;
    m->len = i + 1 - m->off;
    return m->closed = true;
}

/* The closing delimiter, or the end of the paragraph. */
static bool find_closer(UiMdMath *m, const char *s, size_t len, const char *closer) {
    size_t i = m->in;
    for (; i < len && !begins(s, len, i, closer); i++) {
        if (s[i] == '\n' && blank_follows(s, len, i)) break;
        if (s[i] == '\\' && i + 1 < len && s[i + 1] != '\n') i++;
    }
    if (i > len) i = len;
    m->closed = begins(s, len, i, closer);
    m->in_len = i - m->in;
    m->len = i - m->off + (m->closed ? strlen(closer) : 0);
    return m->closed || i == len || s[i] == '\n';
}

/* \begin{NAME} is a part of the formula. */
static bool find_environment(UiMdMath *m, const char *s, size_t len) {
    static const char *const names[] = { "equation", "align",   "gather", "multline",
                                         "eqnarray", "aligned", "cases" };
    size_t name = m->off + sizeof "\\begin{" - 1, n = 0, known = 0;
    while (name + n < len && (is_letter(s[name + n]) || s[name + n] == '*')) n++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t k = strlen(names[i]);
        known += begins(s, name + n, name, names[i]) && (n == k || (n == k + 1 && s[name + k] == '*'));
    }
    if (known == 0 || name + n >= len || s[name + n] != '}') return false;
    char closer[32] = "\\end{";
    memcpy(closer + 5, s + name, n);
    closer[5 + n] = '}';
    m->in = m->off;
    size_t i = name;
    while (i < len && !begins(s, len, i, closer) && !(s[i] == '\n' && blank_follows(s, len, i))) i++;
    m->closed = begins(s, len, i, closer);
    m->len = m->in_len = i - m->off + (m->closed ? strlen(closer) : 0);
    return true;
}

bool ui_md_math_at(const char *s, size_t len, size_t at, UiMdMath *m) {
    *m = (UiMdMath){ .off = at, .in = at + 2 };
    if (s[at] == '$') {
        if (begins(s, len, at, "$$$")) return false;
        if (begins(s, len, at, "$$")) return find_closer(m, s, len, "$$") && is_formula(m, s);
        m->in = at + 1;
        return find_dollar(m, s, len) && is_formula(m, s);
    }
    if (begins(s, len, at, "\\(")) return find_closer(m, s, len, "\\)") && is_formula(m, s);
    if (begins(s, len, at, "\\["))
        return find_closer(m, s, len, "\\]") && is_formula(m, s) && !only_digits(m, s);
    return begins(s, len, at, "\\begin{") && find_environment(m, s, len);
}

const char *ui_md_math_closer(const char *text, const UiMdMath *m, size_t *len) {
    *len = 2;
    if (text[m->off] == '$') return "$$";
    return text[m->off + 1] == '(' ? "\\)" : text[m->off + 1] == '[' ? "\\]" : (*len = 0, "");
}
