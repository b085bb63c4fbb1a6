/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Markdown as a flat list of blocks and runs: the only file that uses md4c. */
#include "ui/md/parse.h"

#include <md4c.h>
#include <stdlib.h>
#include <string.h>

#include "ui/md/entity.h"
#include "ui/md/split.h"
#include "ui/md/url.h"

#define UI_MD_BYTES ((size_t)64 << 20)

/* Blocks, boxes and runs of a text of len bytes. More come only from tables whose rows lack most of their
 * cells: two bytes of such a row may be thousands of empty cells. */
#define PARTS_MAX(len) (256 + 4 * (len))

typedef struct Parse {
    UiMdDoc *d;
    const char *text;   /* (len) what md4c reads */
    const char *source; /* the text without what was prepared */
    size_t len, keep;
    bool ascii, all;                            /* all: nothing follows what is kept */
    size_t parts;                               /* made so far */
    uint32_t box;                               /* the innermost open one */
    unsigned deeper;                            /* open ones that are part of it, because of UI_MD_NEST */
    long block;                                 /* the block that gets text, -1 = none */
    bool placed;                                /* where that block is is known */
    bool empty_item;                            /* nothing is in the item that was opened last */
    size_t end;                                 /* of the source that is in runs */
    bool at_line;                               /* end is the start of a line */
    unsigned bold, italic, mono, strike, image; /* open spans */
    uint16_t link, image_link;
    uint32_t table; /* its block */
    size_t math;    /* formulas that are in runs */
    size_t hidden;  /* the end of the last one: text and lines before it are a part of it */
    size_t seen;    /* the end of what md4c has passed */
} Parse;

static bool count_part(Parse *p) { return ++p->parts <= PARTS_MAX(p->len); }

static UiMdBlock *add_block(Parse *p, UiMdKind kind) {
    UiMdDoc *d = p->d;
    if (!count_part(p) || !ui_md_grow((void **)&d->blocks, &d->cap_blocks, d->n_blocks, sizeof *d->blocks))
        return NULL;
    UiMdBlock *b = &d->blocks[d->n_blocks];
    *b = (UiMdBlock){ .kind = (uint8_t)kind, .box = p->box, .off = (uint32_t)p->end };
    b->run = (uint32_t)d->n_runs;
    p->block = (long)d->n_blocks++;
    p->empty_item = p->placed = false;
    return b;
}

static UiMdBox *add_box(Parse *p, UiMdBoxKind kind) {
    UiMdDoc *d = p->d;
    if (!count_part(p) || !ui_md_grow((void **)&d->boxes, &d->cap_boxes, d->n_boxes, sizeof *d->boxes))
        return NULL;
    UiMdBox *box = &d->boxes[d->n_boxes];
    *box = (UiMdBox){ .kind = (uint8_t)kind, .parent = p->box };
    if (d->n_boxes > 0) box->depth = (uint8_t)(d->boxes[p->box].depth + 1);
    p->box = (uint32_t)d->n_boxes++;
    return box;
}

static bool add_link(Parse *p, size_t off, uint16_t *link) {
    UiMdDoc *d = p->d;
    if (!ui_md_grow((void **)&d->links, &d->cap_links, d->n_links, sizeof *d->links)) return false;
    d->links[d->n_links] = (UiMdLink){ (uint32_t)off, (uint32_t)(d->own.len - off) };
    *link = d->n_links <= UINT16_MAX ? (uint16_t)d->n_links : 0;
    d->n_links++;
    return true;
}

/* ---- where blank lines are ---- */

/* The next line that is not blank: where a block without text is, about. */
static size_t next_line(const Parse *p) {
    size_t i = p->end;
    if (!p->at_line && p->end > 0) {
        while (i < p->keep && p->text[i] != '\n') i++;
    }
    while (i < p->keep && strchr(" \t\n>\r", p->text[i])) i++;
    return i;
}

static void place(Parse *p, UiMdBlock *b, size_t at) {
    p->placed = true;
    b->off = (uint32_t)at;
    b->blank = at > p->end && p->d->n_blocks > 1 && ui_md_blank_between(p->text, p->end, at, p->at_line);
}

/* ---- text ---- */

static uint8_t style_of(const Parse *p) {
    return (uint8_t)((p->bold ? UI_MD_BOLD : 0) | (p->italic ? UI_MD_ITALIC : 0) |
                     (p->mono ? UI_MD_MONO : 0) | (p->strike ? UI_MD_STRIKE : 0) |
                     (p->image ? UI_MD_IMAGE : 0));
}

/* Text that md4c took apart at characters that could have been marks is put together again. */
static bool extends(const UiMdRun *last, const UiMdRun *run) {
    return last->style == run->style && last->link == run->link && last->off + last->len == run->off &&
           !(run->style & (UI_MD_OWN | UI_MD_HARD | UI_MD_SOFT));
}

static bool add_run(Parse *p, size_t off, size_t len, uint8_t style) {
    UiMdDoc *d = p->d;
    /* md4c has no paragraphs in the items of a tight list. */
    if (p->block < 0 && !add_block(p, UI_MD_PARAGRAPH)) return false;
    UiMdBlock *b = &d->blocks[p->block];
    UiMdRun run = { (uint32_t)off, (uint32_t)len, p->image ? p->image_link : p->link, style };
    if (b->n > 0 && extends(&d->runs[d->n_runs - 1], &run)) {
        d->runs[d->n_runs - 1].len += (uint32_t)len;
        return true;
    }
    if (!count_part(p) || !ui_md_grow((void **)&d->runs, &d->cap_runs, d->n_runs, sizeof *d->runs))
        return false;
    d->runs[d->n_runs++] = run;
    b->n++;
    return true;
}

static bool add_own(Parse *p, const char *s, size_t len, uint8_t style) {
    const size_t off = p->d->own.len;
    return ui_buf_add(&p->d->own, s, len) && add_run(p, off, len, (uint8_t)(style | UI_MD_OWN));
}

/* Text at an offset of the source is about to be added. */
static bool cover(Parse *p, size_t off, size_t len) {
    if (p->block < 0 && !add_block(p, UI_MD_PARAGRAPH)) return false;
    UiMdBlock *b = &p->d->blocks[p->block];
    if (!p->placed) place(p, b, off);
    if (off + len > p->end) {
        p->end = off + len;
        p->at_line = false;
    }
    return true;
}

/* Text at an offset of the source, as far as it is kept. */
static bool add_source(Parse *p, size_t off, size_t len) {
    if (off >= p->keep) return true;
    if (len > p->keep - off) len = p->keep - off;
    return cover(p, off, len) && add_run(p, off, len, style_of(p));
}

/* Text of the source outside of links: URLs in it are links. */
static bool add_urls(Parse *p, size_t off, size_t len) {
    size_t from = 0, at = 0, n;
    while (p->link == 0 && (n = ui_md_url(p->text + off, len, from, &at)) > 0) {
        const char *url = p->text + off + at;
        const size_t own = p->d->own.len;
        if (at > from && !add_source(p, off + from, at - from)) return false;
        if ((*url == 'w' && !ui_buf_puts(&p->d->own, "http://")) || !ui_buf_add(&p->d->own, url, n) ||
            !add_link(p, own, &p->link))
            return false;
        const bool ok = add_source(p, off + at, n);
        p->link = 0;
        if (!ok) return false;
        from = at + n;
    }
    return from == len || add_source(p, off + from, len - from);
}

/* The end of a line of code or HTML. */
static bool end_line(Parse *p) {
    size_t i = p->end;
    while (i < p->keep && p->text[i] != '\n') i++;
    p->end = i < p->keep ? i + 1 : i;
    p->at_line = true;
    return add_own(p, "\n", 1, UI_MD_SOFT);
}

static bool in_source(const Parse *p, const char *s) { return s >= p->text && s < p->text + p->len; }

static bool add_entity(Parse *p, const char *s, size_t len) {
    char text[UI_MD_ENTITY_MAX];
    const size_t off = (size_t)(s - p->text), n = ui_md_entity(s, len, p->ascii, text);
    if (n == 0 || off + len > p->keep) return add_source(p, off, len);
    return cover(p, off, len) && add_own(p, text, n, style_of(p));
}

/* Bytes of a formula as they are in the source; marks of quotes at the start of its lines are blanks. */
static bool formula_source(const Parse *p, size_t off, size_t len, UiBuf *out) {
    const UiMdPrepared *prepared = &p->d->prepared;
    const char *hidden = ui_buf_str(&prepared->text) + off, *s = p->source + ui_md_to_source(prepared, off);
    bool ok = ui_buf_reserve(out, len);
    for (size_t i = 0; ok && i < len; i++) ok = ui_buf_add(out, hidden[i] == '>' ? " " : s + i, 1);
    return ok;
}

/* A formula as text: of several lines where it has rows. */
static bool add_formula(Parse *p, const UiMdMath *m) {
    UiBuf text = { 0 }, latex = { 0 };
    const bool raw = p->ascii || !m->closed;
    bool ok = raw ? formula_source(p, m->off, m->len, &text)
                  : formula_source(p, m->in, m->in_len, &latex) &&
                        ui_md_math(&text, ui_buf_str(&latex), latex.len);
    ui_buf_free(&latex);
    ok = ok && cover(p, m->off, m->len < p->keep - m->off ? m->len : p->keep - m->off);
    for (size_t i = 0; ok && i < text.len;) {
        const char *s = ui_buf_str(&text) + i, *nl = memchr(s, '\n', text.len - i);
        const size_t n = nl ? (size_t)(nl - s) : text.len - i;
        ok = add_own(p, s, n, style_of(p)) && (!nl || add_own(p, "\n", 1, UI_MD_HARD));
        i += n + 1;
    }
    ui_buf_free(&text);
    return ok;
}

/* Text in which formulas may be. */
static bool add_formulas(Parse *p, size_t off, size_t len) {
    const UiMdPrepared *prepared = &p->d->prepared;
    const size_t end = off + len;
    p->seen = end;
    if (off < p->hidden) off = p->hidden;
    while (off < end) {
        while (p->math < prepared->n_math && prepared->math[p->math].off < off) p->math++;
        const UiMdMath *m = p->math < prepared->n_math ? &prepared->math[p->math] : NULL;
        const size_t to = m && m->off < end ? m->off : end;
        if (to > off && !(p->image == 0 ? add_urls(p, off, to - off) : add_source(p, off, to - off)))
            return false;
        if (to == end || to >= p->keep) return true;
        if (!add_formula(p, m)) return false;
        p->hidden = off = m->off + m->len;
    }
    return true;
}

static bool add_text(Parse *p, MD_TEXTTYPE type, const char *s, size_t len) {
    /* Line breaks are not in the source: they belong to the text before them. */
    const bool kept = in_source(p, s) ? (size_t)(s - p->text) < p->keep : p->all || p->end < p->keep;
    const bool lines = p->block >= 0 && (p->d->blocks[p->block].kind == UI_MD_CODE ||
                                         p->d->blocks[p->block].kind == UI_MD_HTML);
    if (!kept) return true;
    if (lines && len == 1 && *s == '\n') return end_line(p);
    if (type == MD_TEXT_BR || (type == MD_TEXT_HTML && !lines && ui_md_is_br(s, len)))
        return add_own(p, "\n", 1, UI_MD_HARD);
    if (type == MD_TEXT_SOFTBR && p->seen < p->hidden) return true;
    if (type == MD_TEXT_SOFTBR) return add_own(p, "\n", 1, UI_MD_SOFT);
    if (type == MD_TEXT_NULLCHAR)
        return add_own(p, p->ascii ? "?" : "\xef\xbf\xbd", p->ascii ? 1 : 3, style_of(p));
    if (!in_source(p, s)) return type == MD_TEXT_NORMAL || add_own(p, s, len, style_of(p));
    const size_t off = (size_t)(s - p->text);
    if (type == MD_TEXT_ENTITY) return add_entity(p, s, len);
    return type == MD_TEXT_NORMAL && !lines ? add_formulas(p, off, len) : add_source(p, off, len);
}

/* An attribute of md4c, appended to own. */
static bool add_attribute(Parse *p, const MD_ATTRIBUTE *a) {
    char text[UI_MD_ENTITY_MAX];
    if (!a->text) return true;
    for (size_t i = 0; a->substr_offsets[i] < a->size; i++) {
        const char *s = a->text + a->substr_offsets[i];
        size_t len = a->substr_offsets[i + 1] - a->substr_offsets[i], n = 0;
        if (a->substr_types[i] == MD_TEXT_ENTITY) n = ui_md_entity(s, len, false, text);
        if (!ui_buf_add(&p->d->own, n ? text : s, n ? n : len)) return false;
    }
    return true;
}

/* ---- what md4c calls; other than 0 ends it ---- */

/* A quote, a list or an item. */
static int enter_box(Parse *p, MD_BLOCKTYPE type, const void *detail) {
    const UiMdBoxKind kind = type == MD_BLOCK_QUOTE ? UI_MD_QUOTE
                             : type == MD_BLOCK_LI  ? UI_MD_ITEM
                                                    : UI_MD_LIST;
    if (type == MD_BLOCK_LI) p->empty_item = true;
    p->block = -1;
    if (p->deeper > 0 || p->d->boxes[p->box].depth >= UI_MD_NEST) {
        p->deeper++;
        return 0;
    }
    UiMdBox *box = add_box(p, kind);
    if (!box) return -1;
    if (type == MD_BLOCK_UL) {
        box->tight = ((const MD_BLOCK_UL_DETAIL *)detail)->is_tight != 0;
    } else if (type == MD_BLOCK_OL) {
        const MD_BLOCK_OL_DETAIL *ol = detail;
        box->ordered = true;
        box->number = ol->start;
        box->tight = ol->is_tight != 0;
    } else if (type == MD_BLOCK_LI) {
        const MD_BLOCK_LI_DETAIL *li = detail;
        UiMdBox *list = &p->d->boxes[box->parent];
        box->ordered = list->ordered;
        box->number = list->number + list->count++;
        box->task = li->is_task != 0;
        box->done = box->task && li->task_mark != ' ';
    }
    return 0;
}

static int leave_box(Parse *p, MD_BLOCKTYPE type) {
    if (type == MD_BLOCK_LI && p->empty_item) { /* only its mark is shown */
        UiMdBlock *b = add_block(p, UI_MD_PARAGRAPH);
        if (!b) return -1;
        place(p, b, next_line(p));
    }
    p->block = -1;
    if (p->deeper > 0)
        p->deeper--;
    else
        p->box = p->d->boxes[p->box].parent;
    return 0;
}

static int enter_code(Parse *p, const MD_BLOCK_CODE_DETAIL *detail) {
    UiMdBlock *b = add_block(p, UI_MD_CODE);
    if (!b) return -1;
    b->fenced = detail->fence_char != 0;
    b->number = (uint32_t)++p->d->n_codes;
    b->info = (uint32_t)p->d->own.len;
    if (!add_attribute(p, &detail->info)) return -1;
    b->info_len = (uint32_t)(p->d->own.len - b->info);
    if (!b->fenced) return 0;
    place(p, b, next_line(p));
    size_t i = b->off; /* past the opening fence: empty lines are code */
    while (i < p->keep && p->text[i] != '\n') i++;
    p->end = i < p->keep ? i + 1 : i;
    p->at_line = true;
    return 0;
}

static int enter_leaf(Parse *p, UiMdKind kind, unsigned level) {
    UiMdBlock *b = add_block(p, kind);
    if (!b) return -1;
    b->level = (uint8_t)level;
    if (kind == UI_MD_RULE || kind == UI_MD_HEADING) place(p, b, next_line(p));
    if (kind == UI_MD_RULE) {
        p->end = b->off;
        p->at_line = false;
        p->block = -1;
    }
    return 0;
}

static int enter_table(Parse *p, const MD_BLOCK_TABLE_DETAIL *t) {
    UiMdBlock *b = add_block(p, UI_MD_TABLE);
    if (!b) return -1;
    b->columns = t->col_count;
    b->rows = t->head_row_count + t->body_row_count;
    p->table = (uint32_t)p->block;
    place(p, b, next_line(p));
    return 0;
}

static int on_enter_block(MD_BLOCKTYPE type, void *detail, void *arg) {
    Parse *p = arg;
    switch (type) {
    case MD_BLOCK_QUOTE:
    case MD_BLOCK_UL:
    case MD_BLOCK_OL:
    case MD_BLOCK_LI: return enter_box(p, type, detail);
    case MD_BLOCK_HR: return enter_leaf(p, UI_MD_RULE, 0);
    case MD_BLOCK_H: return enter_leaf(p, UI_MD_HEADING, ((const MD_BLOCK_H_DETAIL *)detail)->level);
    case MD_BLOCK_CODE: return enter_code(p, detail);
    case MD_BLOCK_HTML: return enter_leaf(p, UI_MD_HTML, 0);
    case MD_BLOCK_P: return enter_leaf(p, UI_MD_PARAGRAPH, 0);
    case MD_BLOCK_TABLE: return enter_table(p, detail);
    case MD_BLOCK_TH:
    case MD_BLOCK_TD: return enter_leaf(p, UI_MD_CELL, (unsigned)((const MD_BLOCK_TD_DETAIL *)detail)->align);
    default: return 0;
    }
}

/* Its closing fence, or nothing if there is none. */
static void leave_code(Parse *p) {
    size_t i = p->end, n = 0;
    while (i < p->keep && strchr(" \t>", p->text[i])) i++;
    const char c = i < p->keep ? p->text[i] : '\0';
    while (i < p->keep && p->text[i] == c) i++, n++;
    while (i < p->keep && strchr(" \t\r", p->text[i])) i++;
    if (n < 3 || (c != '`' && c != '~') || (i < p->keep && p->text[i] != '\n')) return;
    p->end = i;
    p->at_line = false;
}

static int on_leave_block(MD_BLOCKTYPE type, void *detail, void *arg) {
    Parse *p = arg;
    (void)detail;
    if (type == MD_BLOCK_QUOTE || type == MD_BLOCK_UL || type == MD_BLOCK_OL || type == MD_BLOCK_LI)
        return leave_box(p, type);
    /* A paragraph without text is not kept. */
    if (type == MD_BLOCK_P && p->block >= 0 && p->d->blocks[p->block].n == 0) p->d->n_blocks--;
    if (type == MD_BLOCK_CODE && p->d->blocks[p->block].fenced) leave_code(p);
    p->block = -1;
    return 0;
}

static int on_enter_span(MD_SPANTYPE type, void *detail, void *arg) {
    Parse *p = arg;
    const size_t off = p->d->own.len;
    switch (type) {
    case MD_SPAN_STRONG: p->bold++; return 0;
    case MD_SPAN_EM: p->italic++; return 0;
    case MD_SPAN_CODE: p->mono++; return 0;
    case MD_SPAN_DEL: p->strike++; return 0;
    case MD_SPAN_A:
        return add_attribute(p, &((const MD_SPAN_A_DETAIL *)detail)->href) && add_link(p, off, &p->link) ? 0
                                                                                                         : -1;
    case MD_SPAN_IMG:
        if (p->image++ > 0) return 0;
        if (!add_attribute(p, &((const MD_SPAN_IMG_DETAIL *)detail)->src) ||
            !add_link(p, off, &p->image_link))
            return -1;
        return add_own(p, "", 0, style_of(p)) ? 0 : -1;
    default: return 0;
    }
}

static int on_leave_span(MD_SPANTYPE type, void *detail, void *arg) {
    Parse *p = arg;
    (void)detail;
    switch (type) {
    case MD_SPAN_STRONG: p->bold--; break;
    case MD_SPAN_EM: p->italic--; break;
    case MD_SPAN_CODE: p->mono--; break;
    case MD_SPAN_DEL: p->strike--; break;
    case MD_SPAN_A: p->link = 0; break;
    case MD_SPAN_IMG: p->image--; break;
    default: break;
    }
    return 0;
}

static int on_text(MD_TEXTTYPE type, const MD_CHAR *s, MD_SIZE len, void *arg) {
    return add_text(arg, type, s, len) ? 0 : -1;
}

/* ---- documents ---- */

static bool begin(Parse *p) {
    UiMdDoc *d = p->d;
    d->n_blocks = d->n_boxes = d->n_runs = d->n_links = d->n_codes = 0;
    ui_buf_clear(&d->own);
    p->box = 0;
    uint16_t none;
    return add_box(p, UI_MD_ROOT) && add_link(p, 0, &none);
}

/* The text as it is. */
static bool plain(Parse *p) {
    if (!begin(p) || !add_block(p, UI_MD_PARAGRAPH)) return false;
    for (size_t i = 0; i < p->keep;) {
        const char *nl = memchr(p->text + i, '\n', p->keep - i);
        const size_t to = nl ? (size_t)(nl - p->text) : p->keep;
        if ((to > i && !add_source(p, i, to - i)) || (nl && !add_own(p, "\n", 1, UI_MD_SOFT))) return false;
        i = nl ? to + 1 : to;
    }
    return true;
}

/* Offsets of what md4c read become offsets of the source. */
static void to_source(UiMdDoc *d) {
    if (d->prepared.n_added == 0) return;
    for (size_t i = 0; i < d->n_blocks; i++)
        d->blocks[i].off = (uint32_t)ui_md_to_source(&d->prepared, d->blocks[i].off);
    for (size_t i = 0; i < d->n_runs; i++) {
        UiMdRun *run = &d->runs[i];
        if (run->style & UI_MD_OWN) continue;
        const size_t end = ui_md_to_source(&d->prepared, (size_t)run->off + run->len);
        run->off = (uint32_t)ui_md_to_source(&d->prepared, run->off);
        run->len = (uint32_t)(end - run->off);
    }
}

bool ui_md_parse(UiMdDoc *d, const char *text, size_t len, size_t keep, bool ascii) {
    static const MD_PARSER parser = { .flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS,
                                      .enter_block = on_enter_block,
                                      .leave_block = on_leave_block,
                                      .enter_span = on_enter_span,
                                      .leave_span = on_leave_span,
                                      .text = on_text };
    Parse start = { .d = d, .source = text, .ascii = ascii, .block = -1, .at_line = true };
    if (!begin(&start)) return false;
    if (len == 0) return true;
    if (len <= UI_MD_BYTES && !ui_md_prepare(&d->prepared, text, len)) return false;
    start.all = keep >= len;
    start.keep = start.all ? len : keep;
    start.text = text;
    start.len = len;
    Parse p = start;
    p.text = ui_buf_str(&d->prepared.text);
    p.len = d->prepared.text.len;
    p.keep = p.all ? p.len : ui_md_from_source(&d->prepared, keep);
    if (len <= UI_MD_BYTES && md_parse(p.text, (MD_SIZE)p.len, &parser, &p) == 0) {
        to_source(d);
        return true;
    }
    if (plain(&start)) return true;
    d->n_blocks = 0;
    return false;
}
