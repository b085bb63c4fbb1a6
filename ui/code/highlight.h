/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Syntax highlighting of code blocks, one line at a time. A state that is passed from line to line holds what
 * continues after the end of a line: comments, strings, heredocs, template literals. Text is any bytes,
 * including invalid UTF-8. Linear time, no allocation, no global state: any thread. */
#ifndef QSF_UI_CODE_HIGHLIGHT_H
#define QSF_UI_CODE_HIGHLIGHT_H

#include <stddef.h>
#include <stdint.h>

typedef enum UiCodeClass {
    UI_CODE_TEXT, /* names, operators, blanks */
    UI_CODE_KEYWORD,
    UI_CODE_TYPE,
    UI_CODE_STRING,
    UI_CODE_NUMBER,
    UI_CODE_COMMENT,
    UI_CODE_DIRECTIVE, /* preprocessor, decorators, attributes of Rust, entities of HTML */
    UI_CODE_FUNCTION,  /* a name before a parenthesis, the command of a shell */
    UI_CODE_KEY,       /* of JSON, YAML, TOML and CSS, attributes of HTML, variables of a shell */
    UI_CODE_ADDED,     /* lines of a diff */
    UI_CODE_REMOVED,
    UI_CODE_HUNK, /* "@@ -1,2 +1,3 @@" and the names of files in a diff */
    UI_CODE_CLASSES
} UiCodeClass;

/* Bytes [at, at + len) of a line. */
typedef struct UiCodeRun {
    size_t at, len;
    UiCodeClass kind;
} UiCodeRun;

#define UI_CODE_NEST 8 /* levels of template literals and command substitutions inside each other */

/* At the beginning of a block it is zeroed. Without padding: two states are the same if memcmp says so, and
 * then the lines below are the same too. The meaning of the fields is a matter of each lexer. */
typedef struct UiCodeState {
    uint8_t mode;  /* what the line begins in, 0 = plain code */
    uint8_t outer; /* the language around this one: script or style in HTML */
    uint8_t depth; /* levels of nest in use */
    uint8_t flag;
    uint8_t nest[UI_CODE_NEST]; /* open brackets of each level, at most 255 */
    uint16_t count, more;       /* lengths, levels of comments, lines left in a hunk */
    uint32_t tag, next_tag;     /* what ends a heredoc or a raw string, as a hash */
} UiCodeState;

typedef struct UiLexer UiLexer;

/* The lexer of the language that the info string of a fence names by its first word ("c", "C++", "python3
 * title=x", "{.rust}", "language-js"), whatever its case. NULL if it is unknown. */
const UiLexer *ui_code_lexer(const char *info, size_t len);
/* Splits a line without its newline into runs: in order, without gaps, none is empty, neighbours differ in
 * kind. Writes at most max of them (max > 0), the last possible one is the rest of the line as text, and
 * returns how many; the state becomes that of the next line in any case. */
size_t ui_code_line(const UiLexer *x, UiCodeState *state, const char *line, size_t len, UiCodeRun *runs,
                    size_t max);

#endif
