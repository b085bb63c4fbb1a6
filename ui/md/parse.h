/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Markdown (CommonMark 0.30 with GitHub's tables, task lists, strike-through and bare URLs) as a flat list
 * of blocks, and of runs of text in one style. Source: the specifications at spec.commonmark.org and
 * github.github.com/gfm. Text is any bytes; what reaches a terminal was cleaned before (ui/transcript.h).
 * Linear memory; no recursion beyond that of md4c. One thread per document. */
#ifndef QSF_UI_MD_PARSE_H
#define QSF_UI_MD_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/buf.h"
#include "ui/md/prepare.h"

#define UI_MD_NEST 24 /* levels of quotes, lists and items that are distinguished; deeper ones are merged */

/* Styles of a run, or'ed. */
enum {
    UI_MD_BOLD = 1,
    UI_MD_ITALIC = 2,
    UI_MD_MONO = 4, /* `code` */
    UI_MD_STRIKE = 8,
    UI_MD_IMAGE = 16, /* its description; the image is UiMdRun.link */
    UI_MD_HARD = 32,  /* "\n", a hard line break */
    UI_MD_SOFT = 64,  /* "\n", the end of a line of the source */
    UI_MD_OWN = 128   /* the text is in UiMdDoc.own, not in the source */
};

/* Bytes [off, off + len) of the source or of UiMdDoc.own. */
typedef struct UiMdRun {
    uint32_t off, len;
    uint16_t link; /* UiMdDoc.links, 0 = none */
    uint8_t style;
} UiMdRun;

typedef enum UiMdBoxKind { UI_MD_ROOT, UI_MD_QUOTE, UI_MD_LIST, UI_MD_ITEM } UiMdBoxKind;

/* What contains blocks. Boxes are in order of their start; box 0 is the document. */
typedef struct UiMdBox {
    uint32_t parent; /* an index less than its own; the parent of an item is its list */
    uint32_t number; /* of an item, or the first one of an ordered list */
    uint32_t count;  /* of a list: items */
    uint8_t kind;    /* UiMdBoxKind */
    uint8_t depth;   /* of box 0: 0 */
    bool ordered;    /* list and item */
    bool tight;      /* of a list: no blank lines between its items */
    bool task, done; /* of an item: "[ ]" or "[x]" */
} UiMdBox;

typedef enum UiMdKind {
    UI_MD_PARAGRAPH, /* also of an item without text: no runs */
    UI_MD_HEADING,
    UI_MD_RULE,
    UI_MD_CODE,  /* lines, each followed by a run UI_MD_SOFT */
    UI_MD_HTML,  /* the same, to be shown as text */
    UI_MD_TABLE, /* no runs; followed by rows * columns blocks UI_MD_CELL, the first row is the header */
    UI_MD_CELL
} UiMdKind;

typedef enum UiMdAlign { UI_MD_DEFAULT, UI_MD_LEFT, UI_MD_CENTER, UI_MD_RIGHT } UiMdAlign;

typedef struct UiMdBlock {
    uint8_t kind;            /* UiMdKind */
    uint8_t level;           /* of a heading: 1 to 6; of a cell: UiMdAlign */
    bool blank;              /* a blank line is before it */
    bool fenced;             /* code between fences, not only indented */
    uint32_t box;            /* what it is in */
    uint32_t run, n;         /* runs [run, run + n) */
    uint32_t off;            /* where it is in the source: at its first text, or before it if it has none */
    uint32_t rows;           /* of a table */
    uint32_t columns;        /* of a table */
    uint32_t number;         /* of code: 1 for the first block of the document */
    uint32_t info, info_len; /* of code: the words after the fence, in UiMdDoc.own */
} UiMdBlock;

/* A URL in UiMdDoc.own. */
typedef struct UiMdLink {
    uint32_t off, len;
} UiMdLink;

typedef struct UiMdDoc {
    UiMdBlock *blocks; /* (n_blocks) */
    UiMdBox *boxes;    /* (n_boxes), at least 1 */
    UiMdRun *runs;     /* (n_runs) */
    UiMdLink *links;   /* (n_links), at least 1: that of run.link == 0 is empty */
    size_t n_blocks, n_boxes, n_runs, n_links;
    size_t cap_blocks, cap_boxes, cap_runs, cap_links;
    size_t n_codes; /* blocks of code */
    UiBuf own;
    UiMdPrepared prepared; /* the text, as md4c read it */
} UiMdDoc;

/* Formulas (ui/md/math.h) become text that can be read; with ascii, which cannot show it, they stay as they
 * are in the source, but nothing in them is a mark.
 *
 * Parses text[0..len) into d, which is zeroed or holds an earlier document whose memory is used again. Only
 * what is in text[0..keep) becomes blocks and runs: what follows helps to parse it (definitions of links,
 * ends of constructs). ascii: characters of entities become "?" where they are not ASCII. A text that md4c
 * cannot parse, or whose result would be much larger than itself, is one paragraph, as it is. false without
 * memory: the document is empty then. */
bool ui_md_parse(UiMdDoc *d, const char *text, size_t len, size_t keep, bool ascii);
/* Releases its memory and zeroes it. */
void ui_md_free(UiMdDoc *d);
/* The text of a run of a document parsed from text; valid until the document changes. */
const char *ui_md_text(const UiMdDoc *d, const char *text, const UiMdRun *run);

/* A block of code. */
typedef struct UiMdCode {
    unsigned number;  /* 1 for the first one, as on the screen */
    const char *info; /* the words after the fence, "" for none; valid in the call, as text is */
    size_t info_len;
    size_t lang_len;  /* bytes of the first word of info: the language */
    const char *text; /* the lines, each with its newline; no fences, no indentation of the block */
    size_t len;
} UiMdCode;

/* Calls fn for each block of code of text, in order, until fn returns false. Returns the number of calls; 0
 * also without memory. */
size_t ui_md_codes(const char *text, size_t len, bool (*fn)(void *arg, const UiMdCode *code), void *arg);

#endif
