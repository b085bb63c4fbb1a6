/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The languages, and how they are found by the info string of a fence. */
#include <string.h>

#include "ui/code/scan.h"

const UiLexer *const ui_code_lexers[] = {
    &ui_lexer_c,    &ui_lexer_cpp,  &ui_lexer_python, &ui_lexer_js,       &ui_lexer_ts,
    &ui_lexer_go,   &ui_lexer_rust, &ui_lexer_java,   &ui_lexer_shell,    &ui_lexer_console,
    &ui_lexer_sql,  &ui_lexer_json, &ui_lexer_yaml,   &ui_lexer_html,     &ui_lexer_css,
    &ui_lexer_diff, &ui_lexer_toml, &ui_lexer_make,   &ui_lexer_markdown, NULL,
};

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

/* Whether the name is one of a list separated by commas. */
static bool listed(const char *list, const char *name, size_t len) {
    while (*list) {
        size_t n = strcspn(list, ","), i = 0;
        while (i < n && i < len && lower(name[i]) == list[i]) i++;
        if (i == n && i == len) return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* The first word without what other programs put around it: "{.c .numberLines}", "language-c", "c:main.c". */
static size_t language(const char **info, size_t len) {
    static const char prefix[] = "language-";
    const char *p = *info, *end = p + len;
    while (p < end && (ui_is_blank(*p) || *p == '{' || *p == '.')) p++;
    if ((size_t)(end - p) >= sizeof prefix && memcmp(p, prefix, sizeof prefix - 1) == 0)
        p += sizeof prefix - 1;
    *info = p;
    while (p < end && (ui_is_word(*p) || *p == '+' || *p == '#' || *p == '-')) p++;
    return (size_t)(p - *info);
}

const UiLexer *ui_code_lexer(const char *info, size_t len) {
    size_t n = language(&info, len);
    for (size_t i = 0; n > 0 && ui_code_lexers[i]; i++) {
        if (listed(ui_code_lexers[i]->names, info, n)) return ui_code_lexers[i];
    }
    return NULL;
}

size_t ui_code_line(const UiLexer *x, UiCodeState *state, const char *line, size_t len, UiCodeRun *runs,
                    size_t max) {
    UiScan s = { .s = line, .len = len, .st = state, .x = x, .runs = runs, .max = max };
    x->line(&s);
    return s.n;
}
