/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Languages with the lexical structure of C. */
#include "ui/code/c_like.h"

#include <string.h>

/* What a line begins in (UiCodeState.mode). */
enum {
    CODE,
    COMMENT,      /* count: levels, in Rust */
    LINE_COMMENT, /* after a backslash at the end of the line */
    STRING,       /* flag: its quote */
    TEMPLATE,
    BACKQUOTE,
    TEXT_BLOCK,
    RAW,     /* of C++; tag: what is between parenthesis and quote */
    RAW_RUST /* count: number of # */
};

static bool has(const UiScan *s, unsigned flag) { return (s->x->flags & flag) != 0; }

/* Comments of Rust contain others. */
static void nested_comment(UiScan *s) {
    size_t at = s->at;
    while (at < s->len && s->st->count > 0) {
        bool two = at + 1 < s->len;
        if (two && s->s[at] == '*' && s->s[at + 1] == '/') {
            s->st->count--;
            at++;
        } else if (two && s->s[at] == '/' && s->s[at + 1] == '*' && s->st->count < UINT16_MAX) {
            s->st->count++;
            at++;
        }
        at++;
    }
    ui_scan_take_to(s, at, UI_CODE_COMMENT);
    s->st->mode = s->st->count > 0 ? COMMENT : CODE;
}

static void comment(UiScan *s) {
    if (has(s, UI_C_RUST))
        nested_comment(s);
    else
        s->st->mode = ui_scan_through(s, "*/", UI_CODE_COMMENT) ? CODE : COMMENT;
}

static void line_comment(UiScan *s) {
    const bool more = has(s, UI_C_DIRECTIVES) && s->len > 0 && s->s[s->len - 1] == '\\';
    s->st->mode = more ? LINE_COMMENT : CODE;
    ui_scan_rest(s, UI_CODE_COMMENT);
}

/* Strings end with their line, except in Rust, or after a backslash. */
static void string(UiScan *s) {
    bool escaped = false;
    const char quote = (char)s->st->flag;
    const bool closed = ui_scan_string(s, quote, '\\', &escaped);
    const bool more = !closed && (escaped || (quote == '"' && has(s, UI_C_RUST)));
    s->st->mode = more ? STRING : CODE;
    if (!more) s->st->flag = 0;
}

static void open_string(UiScan *s, size_t prefix) {
    s->st->flag = (uint8_t)ui_scan_peek(s, prefix);
    ui_scan_take(s, prefix + 1, UI_CODE_STRING);
    string(s);
}

/* Up to the end of the literal, or the beginning of code in it. More levels than the state has are text. */
static void template(UiScan *s) {
    UiCodeState *st = s->st;
    size_t at = s->at;
    st->mode = TEMPLATE;
    for (; at < s->len; at++) {
        char c = s->s[at];
        if (c == '\\') {
            at++;
        } else if (c == '`') {
            st->mode = CODE;
            ui_scan_take_to(s, at + 1, UI_CODE_STRING);
            return;
        } else if (c == '$' && at + 1 < s->len && s->s[at + 1] == '{' && st->depth < UI_CODE_NEST) {
            st->nest[st->depth++] = 0;
            st->mode = CODE;
            ui_scan_take_to(s, at + 2, UI_CODE_STRING);
            return;
        }
    }
    ui_scan_take_to(s, at, UI_CODE_STRING);
}

/* Braces of code in a template literal: the one that ends it returns to the text. */
static void brace(UiScan *s, char c) {
    UiCodeState *st = s->st;
    uint8_t *open = st->depth > 0 ? &st->nest[st->depth - 1] : NULL;
    if (open && c == '}' && *open == 0) {
        st->depth--;
        ui_scan_take(s, 1, UI_CODE_STRING);
        template(s);
        return;
    }
    if (open && c == '{' && *open < UINT8_MAX) ++*open;
    if (open && c == '}') --*open;
    ui_scan_take(s, 1, UI_CODE_TEXT);
}

/* )x" with the x of the state. */
static void raw(UiScan *s) {
    s->st->mode = RAW;
    for (size_t at = s->at; at < s->len; at++) {
        const char *p = memchr(s->s + at, ')', s->len - at);
        if (!p) break;
        at = (size_t)(p - s->s);
        size_t n = 0;
        while (n <= 16 && at + 1 + n < s->len && p[1 + n] != '"' && p[1 + n] != ')') n++;
        if (at + 1 + n < s->len && p[1 + n] == '"' && ui_scan_tag(p + 1, n) == s->st->tag) {
            s->st->mode = CODE;
            s->st->tag = 0;
            ui_scan_take_to(s, at + n + 2, UI_CODE_STRING);
            return;
        }
    }
    ui_scan_rest(s, UI_CODE_STRING);
}

/* prefix: bytes before the quote. */
static void open_raw(UiScan *s, size_t prefix) {
    size_t n = 0;
    while (n <= 16 && ui_scan_peek(s, prefix + 1 + n) != '(' && ui_scan_peek(s, prefix + 1 + n) != '\0') n++;
    if (ui_scan_peek(s, prefix + 1 + n) != '(') {
        open_string(s, prefix);
        return;
    }
    s->st->tag = ui_scan_tag(s->s + s->at + prefix + 1, n);
    ui_scan_take(s, prefix + n + 2, UI_CODE_STRING);
    raw(s);
}

/* "## with as many # as the state says. */
static void raw_rust(UiScan *s) {
    s->st->mode = RAW_RUST;
    for (size_t at = s->at; at < s->len; at++) {
        const char *p = memchr(s->s + at, '"', s->len - at);
        if (!p) break;
        at = (size_t)(p - s->s);
        size_t n = 0;
        while (n < s->st->count && at + 1 + n < s->len && p[1 + n] == '#') n++;
        if (n == s->st->count) {
            s->st->mode = CODE;
            s->st->count = 0;
            ui_scan_take_to(s, at + 1 + n, UI_CODE_STRING);
            return;
        }
        at += n;
    }
    ui_scan_rest(s, UI_CODE_STRING);
}

static bool open_raw_rust(UiScan *s, size_t prefix) {
    size_t n = 0;
    while (n < 255 && ui_scan_peek(s, prefix + n) == '#') n++;
    if (ui_scan_peek(s, prefix + n) != '"') return false;
    s->st->count = (uint16_t)n;
    ui_scan_take(s, prefix + n + 1, UI_CODE_STRING);
    raw_rust(s);
    return true;
}

/* A name that is the prefix of a string, such as u8 or br. */
static bool prefixed(UiScan *s, size_t n) {
    static const char *const c[] = { "L", "U", "u", "u8" };
    static const char *const cpp[] = { "LR", "R", "UR", "u8R", "uR" };
    static const char *const rust[] = { "b", "c" };
    static const char *const rust_raw[] = { "br", "cr", "r" };
    static const UiWords words[] = { UI_WORDS(c), UI_WORDS(cpp), UI_WORDS(rust), UI_WORDS(rust_raw) };
    const char *name = s->s + s->at, next = ui_scan_peek(s, n);
    if (n > 3 || (next != '"' && next != '\'' && next != '#')) return false;
    if (has(s, UI_C_RUST) && next != '\'' && ui_words_have(&words[3], name, n)) return open_raw_rust(s, n);
    if (next == '#') return false;
    if (has(s, UI_C_RAW) && next == '"' && ui_words_have(&words[1], name, n)) {
        open_raw(s, n);
        return true;
    }
    if (!(has(s, UI_C_RUST) && ui_words_have(&words[2], name, n)) &&
        !(has(s, UI_C_DIRECTIVES) && ui_words_have(&words[0], name, n)))
        return false;
    open_string(s, n);
    return true;
}

/* "Name" and "T", not "MAX_SIZE". */
static bool is_capital(const char *name, size_t n) {
    if (name[0] < 'A' || name[0] > 'Z') return false;
    for (size_t i = 1; i < n; i++) {
        if (name[i] >= 'a' && name[i] <= 'z') return true;
    }
    return n == 1;
}

static bool is_type(const UiScan *s, const char *name, size_t n) {
    return ui_words_have(&s->x->types, name, n) ||
           (has(s, UI_C_SUFFIX_T) && n > 2 && memcmp(name + n - 2, "_t", 2) == 0) ||
           (has(s, UI_C_CAPITAL) && is_capital(name, n));
}

/* fn and func, before a name whose parameters follow later: f<T>(). */
static bool declares(const char *p, size_t n) {
    return (n == 2 && memcmp(p, "fn", 2) == 0) || (n == 4 && memcmp(p, "func", 4) == 0);
}

/* UiScan.flag: the last keyword declares a function. */
static void name(UiScan *s) {
    const size_t n = ui_scan_word(s, has(s, UI_C_TEMPLATE) ? '$' : '\0');
    const char *p = s->s + s->at;
    const char next = ui_scan_peek(s, n), then = ui_scan_peek(s, n + 1);
    if (prefixed(s, n)) return;
    const bool member = has(s, UI_C_TEMPLATE) && ui_scan_before(s) == '.';
    const bool call = next == '(' || (next == ' ' && then == '(') || (s->flag && s->at == s->keyword + 1);
    if (!member && ui_words_have(&s->x->keywords, p, n)) {
        ui_scan_take(s, n, UI_CODE_KEYWORD);
        s->keyword = s->at;
        s->flag = declares(p, n);
    } else if (has(s, UI_C_RUST) && next == '!' && then != '=') {
        ui_scan_take(s, n + 1, UI_CODE_FUNCTION);
    } else {
        ui_scan_take(s, n, is_type(s, p, n) ? UI_CODE_TYPE : call ? UI_CODE_FUNCTION : UI_CODE_TEXT);
    }
}

/* #include <x>: the name of the file is a string. What else follows a directive is code. */
static void directive(UiScan *s) {
    size_t n = 1;
    while (ui_is_blank(ui_scan_peek(s, n))) n++;
    const size_t word = n;
    while (ui_is_alpha(ui_scan_peek(s, n))) n++;
    const bool include = n - word == 7 && memcmp(s->s + s->at + word, "include", 7) == 0;
    ui_scan_take(s, n, UI_CODE_DIRECTIVE);
    ui_scan_blanks(s);
    if (include && ui_scan_peek(s, 0) == '<') (void)ui_scan_through(s, ">", UI_CODE_STRING);
}

/* 'a' and '\n', but not 'static in Rust, nor the apostrophe of don't between tags. */
static void quote(UiScan *s) {
    if (has(s, UI_C_TEMPLATE) && ui_is_word(ui_scan_before(s))) {
        ui_scan_take(s, 1, UI_CODE_TEXT);
        return;
    }
    size_t n = 1;
    while (ui_is_word(ui_scan_peek(s, n)) && n < 64) n++;
    if (has(s, UI_C_RUST) && n > 1 && ui_scan_peek(s, n) != '\'')
        ui_scan_take(s, n, UI_CODE_TYPE);
    else
        open_string(s, 0);
}

/* Whether an expression may begin here: / is not a division then. */
static bool expects_value(const UiScan *s) {
    size_t at = s->at;
    while (at > 0 && s->at - at < 64 && ui_is_blank(s->s[at - 1])) at--;
    if (at == 0) return true;
    char c = s->s[at - 1];
    if (ui_is_word(c) || c == '$') return at == s->keyword;
    return c != '\0' && !strchr("<)]}\"'`", c);
}

/* UiScan.hint: no regular expression ends in the rest of the line, so that it is not searched again. */
static bool regex(UiScan *s) {
    bool set = false;
    if (s->hint || !expects_value(s)) return false;
    for (size_t n = 1;; n++) {
        char c = ui_scan_peek(s, n);
        if (c == '\0' && s->at + n >= s->len) break;
        if (c == '\\') n++;
        if (c == '[') set = true;
        if (c == ']') set = false;
        if (c != '/' || set) continue;
        for (n++; ui_is_alpha(ui_scan_peek(s, n));) n++;
        ui_scan_take(s, n, UI_CODE_STRING);
        return true;
    }
    s->hint = true;
    return false;
}

static void slash(UiScan *s) {
    char next = ui_scan_peek(s, 1);
    if (next == '/') {
        line_comment(s);
    } else if (next == '*') {
        s->st->count = has(s, UI_C_RUST) ? 1 : 0;
        ui_scan_take(s, 2, UI_CODE_COMMENT);
        comment(s);
    } else if (!has(s, UI_C_TEMPLATE) || !regex(s)) {
        ui_scan_take(s, 1, UI_CODE_TEXT);
    }
}

/* Length of #[derive(Debug)] at the cursor, through the bracket that closes it, or the rest of the line. */
static size_t attribute(const UiScan *s) {
    size_t n = 0, depth = 0;
    bool quoted = false;
    for (; s->at + n < s->len; n++) {
        const char c = ui_scan_peek(s, n);
        if (quoted && c == '\\') n++;
        if (c == '"') quoted = !quoted;
        if (!quoted && c == '[') depth++;
        if (!quoted && c == ']' && --depth == 0) return n + 1;
    }
    return s->len - s->at;
}

/* An attribute, also #![no_std], in Rust; a directive at the beginning of a line in C. */
static void hash(UiScan *s) {
    size_t n = 0;
    while (n < s->at && ui_is_blank(s->s[n])) n++;
    const char next = ui_scan_peek(s, 1);
    if (has(s, UI_C_RUST) && (next == '[' || (next == '!' && ui_scan_peek(s, 2) == '[')))
        ui_scan_take(s, attribute(s), UI_CODE_DIRECTIVE);
    else if (has(s, UI_C_DIRECTIVES) && n == s->at)
        directive(s);
    else
        ui_scan_take(s, 1, UI_CODE_TEXT);
}

static void backquote(UiScan *s) { s->st->mode = ui_scan_through(s, "`", UI_CODE_STRING) ? CODE : BACKQUOTE; }

static void text_block(UiScan *s) {
    bool closed = false;
    while (!ui_scan_end(s) && !closed) closed = ui_scan_string(s, '"', '\\', NULL) && ui_scan_is(s, "\"\"");
    if (closed) ui_scan_take(s, 2, UI_CODE_STRING);
    s->st->mode = closed ? CODE : TEXT_BLOCK;
}

static void double_quote(UiScan *s) {
    if (!has(s, UI_C_TEXT_BLOCK) || !ui_scan_is(s, "\"\"\"")) {
        open_string(s, 0);
        return;
    }
    ui_scan_take(s, 3, UI_CODE_STRING);
    text_block(s);
}

static bool decorator(UiScan *s) {
    if (!has(s, UI_C_DECORATOR) || ui_is_word(ui_scan_before(s)) || !ui_is_alpha(ui_scan_peek(s, 1)))
        return false;
    size_t n = 1;
    while (ui_is_word(ui_scan_peek(s, n)) || ui_scan_peek(s, n) == '.') n++;
    ui_scan_take(s, n, UI_CODE_DIRECTIVE);
    return true;
}

static void backtick(UiScan *s) {
    ui_scan_take(s, 1, has(s, UI_C_TEMPLATE | UI_C_BACKQUOTE) ? UI_CODE_STRING : UI_CODE_TEXT);
    if (has(s, UI_C_TEMPLATE)) template(s);
    if (has(s, UI_C_BACKQUOTE)) backquote(s);
}

static void code(UiScan *s) {
    const char c = ui_scan_peek(s, 0);
    if (ui_is_digit(c) || (c == '.' && ui_is_digit(ui_scan_peek(s, 1)) && ui_scan_before(s) != '.'))
        ui_scan_take(s, ui_scan_number(s), UI_CODE_NUMBER);
    else if (ui_is_word(c) || (c == '$' && has(s, UI_C_TEMPLATE)))
        name(s);
    else if (c == '/')
        slash(s);
    else if (c == '"')
        double_quote(s);
    else if (c == '\'')
        quote(s);
    else if (c == '`')
        backtick(s);
    else if (c == '{' || c == '}')
        brace(s, c);
    else if (c == '#')
        hash(s);
    else if (c != '@' || !decorator(s))
        ui_scan_take(s, 1, UI_CODE_TEXT);
}

void ui_c_like_line(UiScan *s) {
    static void (*const modes[])(UiScan *) = {
        [CODE] = code,         [COMMENT] = comment,     [LINE_COMMENT] = line_comment, [STRING] = string,
        [TEMPLATE] = template, [BACKQUOTE] = backquote, [TEXT_BLOCK] = text_block,     [RAW] = raw,
        [RAW_RUST] = raw_rust,
    };
    if (s->st->mode == LINE_COMMENT && s->len == 0) s->st->mode = CODE;
    if (s->st->mode == STRING && s->len == 0 && !has(s, UI_C_RUST)) s->st->mode = CODE;
    while (!ui_scan_end(s)) modes[s->st->mode](s);
}
