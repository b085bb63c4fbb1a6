/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An answer in parts that can be parsed one by one: what is before the end of a part never changes when text
 * is appended. Where parts begin depends on the text only, not on the pieces in which it arrives. A part is
 * text for md4c, or lines of fenced code at the top level, at most UI_MD_CODE_LINES of them. One thread. */
#ifndef QSF_UI_MD_SPLIT_H
#define QSF_UI_MD_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/buf.h"

#define UI_MD_CODE_LINES 64 /* of a part of a long block of code */

typedef enum UiMdPartKind { UI_MD_PART_TEXT, UI_MD_PART_CODE } UiMdPartKind;

typedef struct UiMdPart {
    uint32_t off;       /* its start; it ends where the next one begins */
    uint32_t rows;      /* on the screen (ui/md/answer.h) */
    uint32_t code;      /* blocks of code that begin before it */
    uint32_t state;     /* of code that continues: the state of highlighting there (ui/md/answer.h) */
    uint8_t kind;       /* UiMdPartKind */
    bool continues;     /* the code of the part before it */
    bool blank;         /* a blank line is before its text */
    bool ends_in_block; /* its last block is a table or code */
} UiMdPart;

/* Where splitting is. A zeroed one begins. */
typedef struct UiMdSplit {
    UiMdPart *parts; /* (n); the last one is open */
    size_t n, cap;
    size_t at;            /* start of the first line that was not looked at */
    bool blank;           /* the line before it is blank */
    bool text;            /* the open part has a line that is not blank */
    bool list;            /* it has one that may begin an item of a list */
    bool html;            /* it may be in HTML that ends with a blank line */
    const char *html_end; /* it may be in HTML that ends with this, NULL = no */
    char fence;           /* of an open block of code: '`' or '~' */
    unsigned fence_len, lines;
} UiMdSplit;

/* Continues with text[0..len), which begins with the text of the calls before. closed: nothing follows.
 * false without memory: to be called again. */
bool ui_md_split(UiMdSplit *s, const char *text, size_t len, bool closed);
void ui_md_split_free(UiMdSplit *s);
/* Appends text, with a blank line before each block of code that is a part: md4c takes a fence after a row of
 * a table as another row. Parsed as a whole, it has the blocks of its parts. false without memory. */
bool ui_md_spaced(UiBuf *b, const char *text, size_t len);
/* The number of fence characters of a line, "```c": 3 or more, or 0. It may be indented by up to 3 blanks;
 * *info is the offset of what follows them. */
size_t ui_md_fence(const char *line, size_t len, size_t *info);
/* The offset past the indentation, the marks of quotes and those of list items of a line; *item: there are
 * some of the latter. */
size_t ui_md_past_marks(const char *line, size_t len, bool *item);
/* Is there a blank line in s[from..to)? The first line and the last one belong to the blocks around, except
 * that at_line says that s[from] is the start of a line. */
bool ui_md_blank_between(const char *s, size_t from, size_t to, bool at_line);

#endif
