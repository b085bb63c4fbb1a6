/* SPDX-License-Identifier: GPL-3.0-or-later */
/* LaTeX as a line of text. Source of what commands mean: the manuals of LaTeX and amsmath. */
#include "ui/md/math.h"

#include <string.h>

#include "ui/md/math_impl.h"

#define DEPTH_MAX 48 /* groups and commands inside each other; what is deeper is shown as it is */

typedef enum Until { TO_END, TO_BRACE, TO_BRACKET, TO_ENV } Until;

static bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_word(char c) { return is_letter(c) || is_digit(c) || (unsigned char)c >= 0x80; }

static void expression(UiMath *m, UiBuf *out, Until until);
static void command(UiMath *m, UiBuf *out);

static void skip_space(UiMath *m) {
    while (m->i < m->end && is_space(m->s[m->i])) m->i++;
}

static char next(const UiMath *m) { return m->i < m->end ? m->s[m->i] : '\0'; }

static char last(const UiBuf *out) { return out->len > 0 ? out->data[out->len - 1] : '\n'; }

static void add_space(UiBuf *out) {
    if (last(out) != ' ' && last(out) != '\n') (void)ui_buf_puts(out, " ");
}

static void trim(UiBuf *out, size_t start) {
    while (out->len > start && out->data[out->len - 1] == ' ') out->len--;
}

/* ---- arguments */

/* A group, a command or a character. */
static void argument(UiMath *m, UiBuf *out) {
    skip_space(m);
    const size_t start = out->len;
    if (next(m) == '{') {
        m->i++;
        expression(m, out, TO_BRACE);
    } else if (next(m) == '\\') {
        command(m, out);
    } else if (m->i < m->end && next(m) != '}') {
        do (void)ui_buf_add(out, m->s + m->i++, 1);
        while (m->i < m->end && ((unsigned char)m->s[m->i] & 0xc0) == 0x80);
    }
    trim(out, start);
}

/* [...], which may be missing. */
static bool optional(UiMath *m, UiBuf *out) {
    if (next(m) != '[') return false;
    m->i++;
    expression(m, out, TO_BRACKET);
    return true;
}

/* The text of {...} as it is, such as the name of an environment. */
static const char *raw(UiMath *m, size_t *len) {
    *len = 0;
    skip_space(m);
    if (next(m) != '{') return "";
    const char *s = m->s + ++m->i;
    while (m->i < m->end && m->s[m->i] != '}') m->i++;
    *len = (size_t)(m->s + m->i - s);
    if (m->i < m->end) m->i++;
    return s;
}

/* ---- kinds of commands */

void ui_math_symbol(UiMath *m, UiBuf *out, const char *text) {
    (void)m;
    (void)ui_buf_puts(out, text);
}

/* A sign before an operand. */
void ui_math_prefix(UiMath *m, UiBuf *out, const char *text) {
    (void)ui_buf_puts(out, text);
    skip_space(m);
}

/* A sign between two operands. */
void ui_math_operator(UiMath *m, UiBuf *out, const char *text) {
    if (out->len > 0 && !strchr("([{", last(out))) add_space(out);
    (void)ui_buf_puts(out, text);
    skip_space(m);
    if (m->i < m->end && !strchr("}^_&", next(m))) add_space(out);
}

/* The name of a function. */
void ui_math_word(UiMath *m, UiBuf *out, const char *text) {
    if (is_word(last(out)) || last(out) == ')') add_space(out);
    (void)ui_buf_puts(out, text);
    if (is_word(next(m)) || next(m) == '\\') add_space(out);
}

void ui_math_nothing(UiMath *m, UiBuf *out, const char *text) {
    (void)out;
    (void)text;
    skip_space(m);
}

/* With its argument. */
void ui_math_skip(UiMath *m, UiBuf *out, const char *text) {
    (void)out;
    (void)text;
    size_t len;
    (void)raw(m, &len);
}

void ui_math_space(UiMath *m, UiBuf *out, const char *text) {
    (void)m;
    (void)text;
    add_space(out);
}

void ui_math_group(UiMath *m, UiBuf *out, const char *text) {
    (void)text;
    argument(m, out);
}

/* {...} with its spaces; formulas and commands may be in it. */
void ui_math_text(UiMath *m, UiBuf *out, const char *text) {
    (void)text;
    skip_space(m);
    if (next(m) != '{') {
        argument(m, out);
        return;
    }
    m->i++;
    for (unsigned open = 1; m->i < m->end;) {
        const char c = m->s[m->i];
        if (c == '\\') {
            command(m, out);
            continue;
        }
        m->i++;
        if (c == '{') open++;
        if (c == '}' && --open == 0) return;
        if (is_space(c))
            add_space(out);
        else if (c != '{' && c != '}' && c != '$')
            (void)ui_buf_add(out, &c, 1);
    }
}

/* After the parenthesis at s[i] and what is in it. */
static size_t past_parentheses(const char *s, size_t len, size_t i) {
    size_t open = 0;
    for (; i < len; i++) {
        if (s[i] == '(') open++;
        if (s[i] == ')' && --open == 0) return i + 1;
    }
    return len;
}

/* May it be the numerator without parentheses? */
static bool is_product(const char *s, size_t len) {
    for (size_t i = 0; i < len; i = s[i] == '(' ? past_parentheses(s, len, i) : i + 1)
        if (strchr(" +-*/=<>,;|", s[i])) return false;
    return true;
}

static bool is_greek(const char *s) { return *s == '\xce' || *s == '\xcf'; } /* the first byte of a letter */

/* May it be the denominator? A number, a letter or word with its scripts, a differential, f(x), (x + 1). s
 * ends with a NUL. */
static bool is_factor(const char *s, size_t len) {
    size_t letters = 0, digits = 0, i = 0;
    if (strstr(s, "√")) return false;
    for (; i < len && (is_word(s[i]) || s[i] == '_' || s[i] == '^'); i++) {
        letters += is_letter(s[i]) || is_greek(s + i);
        digits += is_digit(s[i]);
    }
    if (i + 1 == len && s[i] == '!') return true;
    if (i < len) return digits == 0 && s[i] == '(' && past_parentheses(s, len, i) == len;
    if (letters == 0) return digits == len || digits == 0;
    return digits == 0 && (letters != 2 || s[0] == 'd');
}

static void add_part(UiBuf *out, const UiBuf *part, bool alone) {
    if (!alone) (void)ui_buf_puts(out, "(");
    (void)ui_buf_add(out, ui_buf_str(part), part->len);
    if (!alone) (void)ui_buf_puts(out, ")");
    out->failed = out->failed || part->failed;
}

void ui_math_fraction(UiMath *m, UiBuf *out, const char *text) {
    UiBuf top = { 0 }, bottom = { 0 };
    (void)text;
    argument(m, &top);
    argument(m, &bottom);
    if ((is_word(last(out)) || last(out) == ')') && top.len > 0) add_space(out);
    add_part(out, &top, is_product(ui_buf_str(&top), top.len));
    if (top.len > 0) (void)ui_buf_puts(out, "/");
    add_part(out, &bottom, is_factor(ui_buf_str(&bottom), bottom.len));
    if (is_word(next(m))) add_space(out);
    ui_buf_free(&top);
    ui_buf_free(&bottom);
}

void ui_math_binomial(UiMath *m, UiBuf *out, const char *text) {
    (void)ui_buf_puts(out, text);
    argument(m, out);
    (void)ui_buf_puts(out, ", ");
    argument(m, out);
    (void)ui_buf_puts(out, ")");
}

void ui_math_root(UiMath *m, UiBuf *out, const char *text) {
    UiBuf index = { 0 }, arg = { 0 };
    if (optional(m, &index)) ui_math_script(out, true, ui_buf_str(&index), index.len);
    (void)ui_buf_puts(out, text);
    argument(m, &arg);
    add_part(out, &arg, is_factor(ui_buf_str(&arg), arg.len));
    ui_buf_free(&index);
    ui_buf_free(&arg);
}

/* An argument between the two characters of text. */
void ui_math_around(UiMath *m, UiBuf *out, const char *text) {
    (void)ui_buf_add(out, text, strlen(text) - 1);
    argument(m, out);
    (void)ui_buf_puts(out, text + strlen(text) - 1);
}

/* \left( and the like: the delimiter follows as it is, except the empty one. */
void ui_math_delimiter(UiMath *m, UiBuf *out, const char *text) {
    (void)out;
    (void)text;
    skip_space(m);
    if (next(m) == '.') m->i++;
}

void ui_math_accent(UiMath *m, UiBuf *out, const char *text) {
    UiBuf arg = { 0 };
    argument(m, &arg);
    const char *name = strchr(text, ' '); /* the mark, a space, the name */
    char mark[8] = { 0 };
    memcpy(mark, text, (size_t)(name - text));
    ui_math_mark(out, mark, name + 1, ui_buf_str(&arg), arg.len);
    ui_buf_free(&arg);
}

void ui_math_alphabet(UiMath *m, UiBuf *out, const char *text) {
    UiBuf arg = { 0 };
    (void)text;
    argument(m, &arg);
    ui_math_double_struck(out, ui_buf_str(&arg), arg.len);
    ui_buf_free(&arg);
}

void ui_math_not(UiMath *m, UiBuf *out, const char *text) {
    static const char *const known[][2] = { { "=", "≠" }, { "∈", "∉" }, { "∃", "∄" },
                                            { "≡", "≢" }, { "⊂", "⊄" }, { "⊆", "⊈" },
                                            { "<", "≮" }, { ">", "≯" }, { "∣", "∤" } };
    UiBuf arg = { 0 };
    const char *sign = NULL;
    argument(m, &arg);
    const char *s = ui_buf_str(&arg);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i][0], s) == 0) sign = known[i][1];
    if (sign)
        ui_math_operator(m, out, sign);
    else
        (void)(ui_buf_puts(out, s) && ui_buf_puts(out, text));
    ui_buf_free(&arg);
}

/* \overset{a}{b}: what is above (or below) becomes a script of it. */
void ui_math_over(UiMath *m, UiBuf *out, const char *text) {
    UiBuf above = { 0 };
    argument(m, &above);
    argument(m, out);
    ui_math_script(out, *text == '^', ui_buf_str(&above), above.len);
    ui_buf_free(&above);
}

/* An arrow with what is above it. */
void ui_math_labelled(UiMath *m, UiBuf *out, const char *text) {
    UiBuf above = { 0 };
    argument(m, &above);
    add_space(out);
    (void)ui_buf_puts(out, text);
    ui_math_script(out, true, ui_buf_str(&above), above.len);
    ui_buf_free(&above);
}

void ui_math_color(UiMath *m, UiBuf *out, const char *text) {
    ui_math_skip(m, out, text);
    if (next(m) == '{') argument(m, out);
}

/* ---- environments */

void ui_math_begin(UiMath *m, UiBuf *out, const char *text) {
    size_t len;
    const UiMathEnv *outer = m->env;
    const char *name = raw(m, &len);
    (void)text;
    m->env = ui_math_env(name, len);
    if (m->env->columns) ui_math_skip(m, out, "");
    skip_space(m);
    (void)ui_buf_puts(out, m->env->open);
    const size_t start = out->len;
    expression(m, out, TO_ENV);
    while (out->len > start && is_space(last(out))) out->len--;
    (void)ui_buf_puts(out, m->env->close);
    m->env = outer;
    m->ended = false;
}

void ui_math_end(UiMath *m, UiBuf *out, const char *text) {
    ui_math_skip(m, out, text);
    m->ended = m->env != NULL;
}

void ui_math_row(UiMath *m, UiBuf *out, const char *text) {
    UiBuf distance = { 0 };
    (void)text;
    (void)optional(m, &distance);
    ui_buf_free(&distance);
    skip_space(m);
    trim(out, 0);
    if (out->len > 0 && last(out) != '\n') (void)ui_buf_puts(out, m->env ? m->env->row : "\n");
}

/* ---- expressions */

/* With its argument, as it is in the source. */
static void unknown(UiMath *m, UiBuf *out, size_t start) {
    (void)ui_buf_add(out, m->s + start, m->i - start);
    if (next(m) != '{') return;
    (void)ui_buf_puts(out, "{");
    argument(m, out);
    (void)ui_buf_puts(out, "}");
}

/* Enters a group or an argument. false where that is too deep: the rest of the source was added as it is. */
static bool enter(UiMath *m, UiBuf *out) {
    if (m->depth < DEPTH_MAX) return ++m->depth, true;
    (void)ui_buf_add(out, m->s + m->i, m->end - m->i);
    m->i = m->end;
    return false;
}

static void command(UiMath *m, UiBuf *out) {
    if (!enter(m, out)) return;
    const size_t start = m->i++, name = m->i;
    while (m->i < m->end && is_letter(m->s[m->i])) m->i++;
    if (m->i == name && m->i < m->end) m->i++;
    size_t len = m->i - name;
    if (next(m) == '*' && is_letter(m->s[name])) m->i++;
    const UiMathName *known = len > 0 ? ui_math_name(m->s + name, len) : NULL;
    if (known)
        known->fn(m, out, known->text);
    else
        unknown(m, out, start);
    m->depth--;
}

static void script(UiMath *m, UiBuf *out) {
    const bool super = m->s[m->i++] == '^';
    UiBuf arg = { 0 };
    trim(out, 0);
    argument(m, &arg);
    ui_math_script(out, super, ui_buf_str(&arg), arg.len);
    ui_buf_free(&arg);
}

/* Returns false at the end of what is read. */
static bool step(UiMath *m, UiBuf *out, Until until) {
    const char c = m->s[m->i];
    if (c == '\\') {
        command(m, out);
        return !(m->ended && until == TO_ENV);
    }
    if (c == '^' || c == '_') {
        script(m, out);
        return true;
    }
    m->i++;
    if (c == '{') {
        expression(m, out, TO_BRACE);
    } else if (c == '}') {
        return until != TO_BRACE;
    } else if (c == ']' && until == TO_BRACKET) {
        return false;
    } else if (c == '&') {
        skip_space(m);
        if (m->env) trim(out, 0);
        (void)ui_buf_puts(out, m->env && out->len > 0 && last(out) != '\n' ? m->env->column : "");
    } else if (c == '\'') {
        (void)ui_buf_puts(out, "′");
    } else if (is_space(c) || c == '~') {
        if (out->len > 0) add_space(out);
    } else {
        (void)ui_buf_add(out, &c, 1);
    }
    return true;
}

static void expression(UiMath *m, UiBuf *out, Until until) {
    if (!enter(m, out)) return;
    while (m->i < m->end && step(m, out, until)) {
    }
    m->depth--;
}

bool ui_md_math(UiBuf *out, const char *s, size_t len) {
    UiMath m = { .s = s, .end = len };
    UiBuf text = { 0 };
    while (m.i < m.end) {
        expression(&m, &text, TO_END);
        m.ended = false;
    }
    trim(&text, 0);
    const bool ok = !text.failed && ui_buf_add(out, ui_buf_str(&text), text.len);
    ui_buf_free(&text);
    return ok;
}
