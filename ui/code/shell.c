/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shells (sh, bash, zsh), and the transcript of a session in one. */
#include "ui/code/scan.h"

#include <string.h>

static const char *const keywords[] = { "case",   "coproc", "do",   "done",     "elif", "else",
                                        "esac",   "fi",     "for",  "function", "if",   "in",
                                        "select", "then",   "time", "until",    "while" };
/* After these comes a name or a word, not a command. */
static const char *const names_follow[] = { "case", "for", "function", "in", "select" };

/* What a line begins in. */
enum {
    CODE,
    SINGLE, /* '...'; flag: in $'...' a backslash takes the next character along */
    DOUBLE,
    HEREDOC /* tag: the word that ends it, next_tag: of one after it; more: bit 0 and 1, with leading tabs */
};

/* Bit of UiCodeState.flag while no quote uses it: the line continues one that ended in a backslash. */
#define GOES_ON 2

/* UiScan.flag: what a word is. UiScan.hint: "in" is a keyword. UiScan.keyword: open parentheses of the
 * line. */
enum {
    ARGUMENT,
    COMMAND,
    VALUE /* of an assignment: a command may follow it */
};

static void no_command(UiScan *s) {
    if (s->flag == COMMAND) s->flag = ARGUMENT;
}

static bool ends_word(char c) { return c == '\0' || ui_is_blank(c) || strchr(";&|()<>\"'`$", c) != NULL; }

/* Length of $x, ${x}, $1, $@ at the cursor, 0 if it is none. ${ that does not end is the rest of the line. */
static size_t variable(const UiScan *s) {
    const char next = ui_scan_peek(s, 1);
    if (next == '{') {
        const size_t end = ui_scan_find(s, "}");
        return (end < s->len ? end + 1 : end) - s->at;
    }
    if (next != '\0' && strchr("@*#?$!-0123456789", next)) return 2;
    size_t n = 1;
    while (ui_is_word(ui_scan_peek(s, n))) n++;
    return n > 1 ? n : 0;
}

/* Text between double quotes, up to the next variable, substitution or the end. */
static void in_double(UiScan *s) {
    UiCodeState *st = s->st;
    size_t at = s->at, n;
    st->mode = DOUBLE;
    while (at < s->len && s->s[at] != '"' && s->s[at] != '$') at += s->s[at] == '\\' ? 2 : 1;
    ui_scan_take_to(s, at, UI_CODE_STRING);
    if (ui_scan_end(s)) return;
    if (s->s[s->at] == '"') {
        ui_scan_take(s, 1, UI_CODE_STRING);
        st->mode = CODE;
    } else if (ui_scan_is(s, "$(") && st->depth < UI_CODE_NEST) {
        st->nest[st->depth++] = 0;
        st->mode = CODE;
        ui_scan_take(s, 2, UI_CODE_STRING);
        s->flag = COMMAND;
    } else if ((n = variable(s)) > 0) {
        ui_scan_take(s, n, UI_CODE_KEY);
    } else {
        ui_scan_take(s, 1, UI_CODE_STRING);
    }
}

static void in_single(UiScan *s) {
    const bool closed = ui_scan_string(s, '\'', s->st->flag ? '\\' : '\0', NULL);
    s->st->mode = closed ? CODE : SINGLE;
    if (closed) s->st->flag = 0;
}

static void open_single(UiScan *s, bool escapes) {
    s->st->flag = escapes;
    ui_scan_take(s, escapes ? 2 : 1, UI_CODE_STRING);
    in_single(s);
}

/* <<WORD, <<-WORD, <<'WORD': what follows this line is text. At most two in a line. */
static void heredoc(UiScan *s) {
    UiCodeState *st = s->st;
    size_t n = 2, len = 0;
    char word[64];
    const bool tabs = ui_scan_peek(s, n) == '-';
    n += tabs;
    while (ui_scan_peek(s, n) == ' ') n++;
    const char first = ui_scan_peek(s, n);
    if (!ui_is_alpha(first) && first != '_' && first != '\'' && first != '"' && first != '\\') {
        ui_scan_take(s, 2, UI_CODE_TEXT);
        return;
    }
    ui_scan_take(s, n, UI_CODE_TEXT);
    for (n = 0; len < sizeof word; n++) {
        char c = ui_scan_peek(s, n);
        if (c == '\'' || c == '"' || c == '\\') continue;
        if (ends_word(c)) break;
        word[len++] = c;
    }
    ui_scan_take(s, n, UI_CODE_STRING);
    uint32_t *tag = st->tag == 0 ? &st->tag : &st->next_tag;
    *tag = ui_scan_tag(word, len);
    if (tabs) st->more |= tag == &st->tag ? 1 : 2;
}

/* A line of a heredoc, or the one that ends it. */
static void in_heredoc(UiScan *s) {
    UiCodeState *st = s->st;
    size_t from = s->at;
    while (st->more & 1 && from < s->len && s->s[from] == '\t') from++;
    const bool last = ui_scan_tag(s->s + from, s->len - from) == st->tag;
    ui_scan_rest(s, UI_CODE_STRING);
    if (!last) return;
    st->tag = st->next_tag;
    st->next_tag = 0;
    st->more >>= 1;
    if (st->tag == 0) st->mode = CODE;
}

/* Brackets in $(...) between quotes: the one that ends it returns to the text. */
static void parenthesis(UiScan *s, char c) {
    UiCodeState *st = s->st;
    uint8_t *open = st->depth > 0 ? &st->nest[st->depth - 1] : NULL;
    if (c == '(') {
        const bool numbers = ui_scan_peek(s, 1) == '(' || ui_scan_before(s) == '(';
        s->flag = numbers ? ARGUMENT : COMMAND;
        s->keyword++;
    } else {
        s->flag = s->keyword == 0 ? COMMAND : ARGUMENT; /* after a pattern of case */
        s->keyword -= s->keyword > 0;
    }
    if (open && c == ')' && *open == 0) {
        st->depth--;
        s->flag = ARGUMENT;
        ui_scan_take(s, 1, UI_CODE_STRING);
        in_double(s);
        return;
    }
    if (open && c == '(' && *open < UINT8_MAX) ++*open;
    if (open && c == ')') --*open;
    ui_scan_take(s, 1, UI_CODE_TEXT);
}

/* NAME=, NAME+= and NAME[i]= where a command may begin: the length of the name, otherwise 0. */
static size_t assignment(const UiScan *s) {
    size_t n = ui_scan_word(s, '\0'), after = n;
    if (n == 0 || ui_is_digit(ui_scan_peek(s, 0))) return 0;
    if (ui_scan_peek(s, after) == '[') {
        while (after < n + 64 && ui_scan_peek(s, after) != ']') after++;
        after++;
    }
    after += ui_scan_peek(s, after) == '+';
    return ui_scan_peek(s, after) == '=' ? n : 0;
}

static bool all_digits(const char *p, size_t n) {
    size_t i = 0;
    while (i < n && ui_is_digit(p[i])) i++;
    return i == n;
}

static void word(UiScan *s) {
    static const UiWords follow = UI_WORDS(names_follow);
    const bool command = s->flag == COMMAND;
    size_t n = command ? assignment(s) : 0;
    if (n > 0) {
        ui_scan_take(s, n, UI_CODE_KEY);
        ui_scan_take_to(s, ui_scan_find(s, "=") + 1, UI_CODE_TEXT);
        s->flag = VALUE;
        return;
    }
    while (s->at + n < s->len && !ends_word(ui_scan_peek(s, n))) n += ui_scan_peek(s, n) == '\\' ? 2 : 1;
    const char *p = s->s + s->at;
    if (n > s->len - s->at) n = s->len - s->at;
    const bool in = s->hint && n == 2 && memcmp(p, "in", 2) == 0;
    const bool keyword = in || (command && ui_words_have(&s->x->keywords, p, n));
    ui_scan_take(s, n,
                 keyword                          ? UI_CODE_KEYWORD
                 : command && !strchr("[{}!", *p) ? UI_CODE_FUNCTION
                 : all_digits(p, n)               ? UI_CODE_NUMBER
                                                  : UI_CODE_TEXT);
    const bool follows = keyword && ui_words_have(&follow, p, n);
    s->hint = (s->hint && !in) || (follows && !in);
    if (s->flag == VALUE) return;
    s->flag = (keyword && !follows) || (command && n == 1 && strchr("{!", *p)) ? COMMAND : ARGUMENT;
}

static bool begins_word(const UiScan *s) {
    const char c = ui_scan_before(s);
    return c == '\0' || ui_is_blank(c) || strchr(";&|(", c) != NULL;
}

static void dollar(UiScan *s) {
    const size_t n = variable(s);
    if (ui_scan_peek(s, 1) == '\'') {
        open_single(s, true);
    } else if (ui_scan_is(s, "$(")) {
        ui_scan_take(s, 1, UI_CODE_TEXT);
        return; /* the parenthesis begins a command */
    } else {
        ui_scan_take(s, n > 0 ? n : 1, n > 0 ? UI_CODE_KEY : UI_CODE_TEXT);
    }
    no_command(s);
}

static void symbol(UiScan *s, char c) {
    if (ui_scan_is(s, "<<<")) {
        ui_scan_take(s, 3, UI_CODE_TEXT);
    } else if (ui_scan_is(s, "<<")) {
        heredoc(s);
    } else if (c == '>' || c == '<') { /* 2>&1 */
        ui_scan_take(s, ui_scan_peek(s, 1) == '&' ? 2 : 1, UI_CODE_TEXT);
    } else {
        ui_scan_take(s, 1, UI_CODE_TEXT);
        s->hint = false;
        s->flag = c == ';' || c == '&' || c == '|' || c == '`' ? COMMAND : ARGUMENT;
    }
}

static void code(UiScan *s) {
    const char c = ui_scan_peek(s, 0);
    if (ui_is_blank(c)) {
        ui_scan_blanks(s);
        if (s->flag == VALUE) s->flag = COMMAND;
    } else if (c == '#' && begins_word(s)) {
        ui_scan_rest(s, UI_CODE_COMMENT);
    } else if (c == '\'') {
        open_single(s, false);
        no_command(s);
    } else if (c == '"') {
        no_command(s);
        ui_scan_take(s, 1, UI_CODE_STRING);
        in_double(s);
    } else if (c == '$') {
        dollar(s);
    } else if (c == '(' || c == ')') {
        parenthesis(s, c);
    } else if (ends_word(c)) {
        symbol(s, c);
    } else {
        word(s);
    }
}

static void shell(UiScan *s) {
    static void (*const modes[])(
        UiScan *) = { [CODE] = code, [SINGLE] = in_single, [DOUBLE] = in_double, [HEREDOC] = in_heredoc };
    UiCodeState *st = s->st;
    s->flag = st->mode == CODE && !(st->flag & GOES_ON) ? COMMAND : ARGUMENT;
    if (st->mode == CODE) st->flag = 0;
    while (!ui_scan_end(s)) modes[st->mode](s);
    if (st->mode == CODE && s->len > 0 && s->s[s->len - 1] == '\\') st->flag = GOES_ON;
    if (st->mode == CODE && st->tag != 0) st->mode = HEREDOC;
    if (st->mode != HEREDOC) st->tag = st->next_tag = st->more = 0;
}

/* Length of "$ ", "% " or "user@host:~# " at the beginning of a line, 0 if it has none. */
static size_t prompt(const UiScan *s) {
    size_t n = 0;
    while (n < s->len && n < 80 && !strchr("$#%", s->s[n])) n++;
    const bool named = n > 0 && memchr(s->s, '@', n);
    const char c = n < s->len ? s->s[n] : '\0';
    if ((n > 0 && !named) || (c == '#' && !named) || !c || !strchr("$#%", c)) return 0;
    return n + 1 < s->len && s->s[n + 1] == ' ' ? n + 2 : 0;
}

/* Lines with a prompt are input, and what they do not end; everything else is output. */
static void console(UiScan *s) {
    const bool inside = s->st->mode != CODE || (s->st->flag & GOES_ON);
    const size_t n = inside ? 0 : prompt(s);
    ui_scan_take(s, n, UI_CODE_DIRECTIVE);
    if (inside || n > 0)
        shell(s);
    else
        ui_scan_rest(s, UI_CODE_TEXT);
}

const UiLexer ui_lexer_shell = {
    .names = "shell,sh,bash,zsh,ksh,dash,ash",
    .line = shell,
    .keywords = UI_WORDS(keywords),
};

const UiLexer ui_lexer_console = {
    .names = "console,shell-session,shellsession,sh-session,terminal",
    .line = console,
    .keywords = UI_WORDS(keywords),
};
