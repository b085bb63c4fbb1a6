/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lexer of templates. */
#include "src/jinja/lex.h"

#include <string.h>

#include "src/base/unicode.h"
#include "src/base/utf8.h"

void qsf_j_lex_init(QsfJLexer *lx, const char *s, size_t len) {
    *lx = (QsfJLexer){ .s = s, .len = len, .line = 1, .line_starting = true };
}

static bool is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

size_t qsf_j_space(const char *s, size_t len) {
    uint32_t cp = 0;
    size_t n = qsf_utf8_next(s, len, &cp);
    return n > 0 && is_space(cp) ? n : 0;
}

size_t qsf_j_rstrip(const char *s, size_t len) {
    while (len > 0) {
        size_t at = len - 1;
        while (at > 0 && len - at < 4 && ((unsigned char)s[at] & 0xC0) == 0x80) at--;
        if (qsf_j_space(s + at, len - at) != len - at) break;
        len = at;
    }
    return len;
}

static int lex_error(const QsfJLexer *lx, QsfErr *err, const char *what) {
    return qsf_err_set(err, QSF_E_MODEL, "line %u: %s", (unsigned)lx->line, what);
}

/* Moves to `to`, counting lines. */
static void advance(QsfJLexer *lx, size_t to) {
    while (lx->pos < to) lx->line += lx->s[lx->pos++] == '\n';
}

static bool at_text(const QsfJLexer *lx, size_t pos, const char *text) {
    size_t n = strlen(text);
    return lx->len - pos >= n && memcmp(lx->s + pos, text, n) == 0;
}

static size_t skip_space(const QsfJLexer *lx, size_t pos) {
    size_t n;
    while (pos < lx->len && (n = qsf_j_space(lx->s + pos, lx->len - pos)) > 0) pos += n;
    return pos;
}

/* Position after a closing delimiter at pos (after its sign) and the white space that it strips. */
static void close_tag(QsfJLexer *lx, size_t after, char sign, bool trims) {
    if (sign == '-')
        after = skip_space(lx, after);
    else if (trims && sign != '+' && after < lx->len && lx->s[after] == '\n')
        after++;
    advance(lx, after);
    lx->line_starting = lx->s[after - 1] == '\n';
}

/* Whether `word` and a closing %} are at pos, as in {% raw %}; *after is the position after it, *sign its
 * sign. */
static bool raw_tag(const QsfJLexer *lx, size_t pos, const char *word, size_t *after, char *sign) {
    pos = skip_space(lx, pos);
    if (!at_text(lx, pos, word)) return false;
    pos = skip_space(lx, pos + strlen(word));
    *sign = 0;
    if (pos < lx->len && (lx->s[pos] == '-' || lx->s[pos] == '+')) *sign = lx->s[pos++];
    if (!at_text(lx, pos, "%}")) return false;
    *after = pos + 2;
    return true;
}

/* The text before a tag after lstrip_blocks and the sign of the tag. */
static size_t strip_before(const QsfJLexer *lx, const char *text, size_t len, char sign, bool variable) {
    if (sign == '-') return qsf_j_rstrip(text, len);
    if (sign == '+' || variable) return len;
    size_t start = len;
    while (start > 0 && text[start - 1] != '\n') start--;
    if (start == 0 && !lx->line_starting) return len;
    return qsf_j_rstrip(text + start, len - start) == 0 ? start : len;
}

static char sign_at(const QsfJLexer *lx, size_t pos) {
    return pos < lx->len && (lx->s[pos] == '-' || lx->s[pos] == '+') ? lx->s[pos] : 0;
}

static int skip_comment(QsfJLexer *lx, QsfErr *err) {
    const char *end = memmem(lx->s + lx->pos, lx->len - lx->pos, "#}", 2);
    if (end == NULL) return lex_error(lx, err, "comment without its end #}");
    size_t at = (size_t)(end - lx->s);
    char sign = at > lx->pos ? lx->s[at - 1] : 0;
    close_tag(lx, at + 2, sign, true);
    return QSF_OK;
}

/* Enters the tag at `at`: a comment is skipped, otherwise the mode changes. */
static int open_tag(QsfJLexer *lx, size_t at, QsfErr *err) {
    char kind = lx->s[at + 1], raw_sign;
    size_t after_sign = at + 2 + (sign_at(lx, at + 2) != 0), after;
    advance(lx, after_sign);
    lx->line_starting = false;
    if (kind == '#') return skip_comment(lx, err);
    if (kind == '%' && raw_tag(lx, lx->pos, "raw", &after, &raw_sign) && raw_sign != '+') {
        close_tag(lx, after, raw_sign, false);
        lx->mode = QSF_JL_RAW;
        return QSF_OK;
    }
    lx->mode = kind == '{' ? QSF_JL_VAR : QSF_JL_BLOCK;
    lx->pending = kind == '{' ? QSF_JT_VAR_BEGIN : QSF_JT_BLOCK_BEGIN;
    lx->n_open = 0;
    return QSF_OK;
}

static int lex_data(QsfJLexer *lx, QsfJToken *out, QsfErr *err) {
    size_t at = lx->pos;
    while (at < lx->len && !(lx->s[at] == '{' && at + 1 < lx->len && strchr("{%#", lx->s[at + 1]) != NULL &&
                             lx->s[at + 1] != '\0'))
        at++;
    *out = (QsfJToken){ QSF_JT_DATA, lx->line, lx->s + lx->pos, at - lx->pos };
    if (at == lx->len) {
        advance(lx, at);
        return QSF_OK;
    }
    out->len = strip_before(lx, out->p, out->len, sign_at(lx, at + 2), lx->s[at + 1] == '{');
    return open_tag(lx, at, err);
}

static int lex_raw(QsfJLexer *lx, QsfJToken *out, QsfErr *err) {
    for (size_t at = lx->pos; at + 1 < lx->len; at++) {
        size_t after;
        char sign, end_sign;
        if (!at_text(lx, at, "{%")) continue;
        sign = sign_at(lx, at + 2);
        if (!raw_tag(lx, at + 2 + (sign != 0), "endraw", &after, &end_sign)) continue;
        *out = (QsfJToken){ QSF_JT_DATA, lx->line, lx->s + lx->pos, at - lx->pos };
        out->len = strip_before(lx, out->p, out->len, sign, false);
        close_tag(lx, after, end_sign, true);
        lx->mode = QSF_JL_DATA;
        return QSF_OK;
    }
    return lex_error(lx, err, "raw block without its end {% endraw %}");
}

/* Whether the end of the current tag is at pos. */
static bool lex_end(QsfJLexer *lx, QsfJToken *out) {
    bool block = lx->mode == QSF_JL_BLOCK;
    char sign = sign_at(lx, lx->pos);
    if (sign == '+' && !block) return false;
    size_t at = lx->pos + (sign != 0);
    if (!at_text(lx, at, block ? "%}" : "}}")) return false;
    *out = (QsfJToken){ block ? QSF_JT_BLOCK_END : QSF_JT_VAR_END, lx->line, lx->s + lx->pos, 2 };
    close_tag(lx, at + 2, sign, block);
    lx->mode = QSF_JL_DATA;
    return true;
}

/* Digits with single underscores between them, starting at pos; returns the position after them. */
static size_t digits(const QsfJLexer *lx, size_t pos, const char *set) {
    while (pos < lx->len) {
        size_t skip = lx->s[pos] == '_' ? 1 : 0;
        if (pos + skip >= lx->len || lx->s[pos + skip] == '\0' || strchr(set, lx->s[pos + skip]) == NULL)
            break;
        pos += skip + 1;
    }
    return pos;
}

static void lex_number(QsfJLexer *lx, QsfJToken *out) {
    static const char dec[] = "0123456789";
    size_t start = lx->pos, p = digits(lx, start, dec), q;
    out->type = QSF_JT_INT;
    bool after_dot = start > 0 && lx->s[start - 1] == '.'; /* a.0.1 is two subscripts */
    if (!after_dot && p + 1 < lx->len && lx->s[p] == '.' && lx->s[p + 1] >= '0' && lx->s[p + 1] <= '9') {
        p = digits(lx, p + 1, dec);
        out->type = QSF_JT_FLOAT;
    }
    if (!after_dot && p < lx->len && (lx->s[p] | 32) == 'e') {
        q = p + 1 + (sign_at(lx, p + 1) != 0);
        if (q < lx->len && lx->s[q] >= '0' && lx->s[q] <= '9') {
            p = digits(lx, q, dec);
            out->type = QSF_JT_FLOAT;
        }
    }
    if (out->type == QSF_JT_INT && lx->s[start] == '0' && start + 1 < lx->len) {
        char base = (char)(lx->s[start + 1] | 32);
        const char *set = base == 'x'   ? "0123456789abcdefABCDEF"
                          : base == 'o' ? "01234567"
                          : base == 'b' ? "01"
                                        : "";
        q = *set == 0 ? start : digits(lx, start + 2, set);
        if (q > start + 2)
            p = q;
        else
            p = digits(lx, start, "0");
    }
    out->p = lx->s + start;
    out->len = p - start;
    lx->pos = p;
}

/* Length of a character that is allowed in a name. */
static size_t name_char(const char *s, size_t len) {
    uint32_t cp = 0;
    size_t n = qsf_utf8_next(s, len, &cp);
    if (n == 0) return 0;
    if (cp < 128) return (cp | 32) - 'a' < 26u || cp - '0' < 10u || cp == '_' ? n : 0;
    const char *cat = qsf_unicode_category(cp);
    return strchr("LNM", cat[0]) != NULL ? n : 0;
}

static int lex_string(QsfJLexer *lx, QsfJToken *out, QsfErr *err) {
    char quote = lx->s[lx->pos];
    size_t p = lx->pos + 1;
    while (p < lx->len && lx->s[p] != quote) p += lx->s[p] == '\\' ? 2 : 1;
    if (p >= lx->len) return lex_error(lx, err, "string without its end");
    *out = (QsfJToken){ QSF_JT_STRING, lx->line, lx->s + lx->pos + 1, p - lx->pos - 1 };
    advance(lx, p + 1);
    return QSF_OK;
}

/* Maintains the stack of open brackets. */
static int balance(QsfJLexer *lx, char c, QsfErr *err) {
    static const char pairs[] = "()[]{}";
    const char *at = strchr(pairs, c);
    if (at == NULL) return QSF_OK;
    if ((at - pairs) % 2 == 0) {
        if (lx->n_open == QSF_J_NESTING) return lex_error(lx, err, "brackets nested too deep");
        lx->open[lx->n_open++] = at[1];
        return QSF_OK;
    }
    if (lx->n_open > 0 && lx->open[lx->n_open - 1] == c) {
        lx->n_open--;
        return QSF_OK;
    }
    return qsf_err_set(err, QSF_E_MODEL, "line %u: unexpected '%c'", (unsigned)lx->line, c);
}

static int lex_operator(QsfJLexer *lx, QsfJToken *out, QsfErr *err) {
    static const char *const two[] = { "//", "**", "==", "!=", ">=", "<=" };
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        if (!at_text(lx, lx->pos, two[i])) continue;
        *out = (QsfJToken){ QSF_JT_OP, lx->line, two[i], 2 };
        lx->pos += 2;
        return QSF_OK;
    }
    char c = lx->s[lx->pos];
    if (c == '\0' || strchr("+-/*%~[](){}><=.:|,;", c) == NULL)
        return qsf_err_set(err, QSF_E_MODEL, "line %u: unexpected character '%c'", (unsigned)lx->line, c);
    *out = (QsfJToken){ QSF_JT_OP, lx->line, lx->s + lx->pos, 1 };
    lx->pos++;
    return balance(lx, c, err);
}

static int lex_expression(QsfJLexer *lx, QsfJToken *out, QsfErr *err) {
    advance(lx, skip_space(lx, lx->pos));
    if (lx->pos >= lx->len)
        return lex_error(lx, err,
                         lx->mode == QSF_JL_BLOCK ? "tag without its end %}" : "tag without its end }}");
    if (lx->n_open == 0 && lex_end(lx, out)) return QSF_OK;
    char c = lx->s[lx->pos];
    *out = (QsfJToken){ .line = lx->line };
    if (c == '"' || c == '\'') return lex_string(lx, out, err);
    if (c >= '0' && c <= '9') {
        lex_number(lx, out);
        return QSF_OK;
    }
    size_t p = lx->pos, n;
    while (p < lx->len && (n = name_char(lx->s + p, lx->len - p)) > 0) p += n;
    if (p == lx->pos) return lex_operator(lx, out, err);
    *out = (QsfJToken){ QSF_JT_NAME, lx->line, lx->s + lx->pos, p - lx->pos };
    lx->pos = p;
    return QSF_OK;
}

int qsf_j_lex_next(QsfJLexer *lx, QsfJToken *out, QsfErr *err) {
    for (;;) {
        if (lx->pending != QSF_JT_EOF) {
            *out = (QsfJToken){ lx->pending, lx->line, "", 0 };
            lx->pending = QSF_JT_EOF;
            return QSF_OK;
        }
        if (lx->mode == QSF_JL_VAR || lx->mode == QSF_JL_BLOCK) return lex_expression(lx, out, err);
        if (lx->mode == QSF_JL_DATA && lx->pos >= lx->len) {
            *out = (QsfJToken){ QSF_JT_EOF, lx->line, "", 0 };
            return QSF_OK;
        }
        int rc = lx->mode == QSF_JL_RAW ? lex_raw(lx, out, err) : lex_data(lx, out, err);
        if (rc != QSF_OK || out->len > 0) return rc;
    }
}
