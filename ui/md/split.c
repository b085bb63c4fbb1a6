/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An answer in parts. The rules are CommonMark's about what can continue a block; where they are not followed
 * to the end, parts are longer than they must be. */
#include "ui/md/split.h"

#include <stdlib.h>
#include <string.h>

/* A part longer than this ends before the next item of a list or after the next blank line. */
#define PART_SOFT 8192
/* And a part longer than this with the next line. */
#define PART_HARD 65536

typedef struct Line {
    const char *s;
    size_t len;
    bool complete;
} Line;

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static bool is_blank(const char *s, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (!is_space(s[i])) return false;
    }
    return true;
}

/* Bytes of a mark of a list item at the start of s, 0 = none. */
static size_t item_mark(const char *s, size_t len) {
    size_t n = 0;
    if (len > 0 && (*s == '-' || *s == '+' || *s == '*')) {
        n = 1;
    } else {
        while (n < len && n < 9 && s[n] >= '0' && s[n] <= '9') n++;
        if (n == 0 || n == len || (s[n] != '.' && s[n] != ')')) return 0;
        n++;
    }
    return n == len || is_space(s[n]) ? n : 0;
}

size_t ui_md_past_marks(const char *s, size_t len, bool *item) {
    size_t i = 0;
    *item = false;
    for (;;) {
        while (i < len && (is_space(s[i]) || s[i] == '>')) i++;
        const size_t n = item_mark(s + i, len - i);
        if (n == 0) return i;
        *item = true;
        i += n;
    }
}

size_t ui_md_fence(const char *text, size_t len, size_t *info) {
    size_t i = 0, n = 0;
    while (i < len && i < 3 && text[i] == ' ') i++;
    const char c = i < len ? text[i] : '\0';
    if (c != '`' && c != '~') return 0;
    while (i < len && text[i] == c) i++, n++;
    *info = i;
    if (n < 3 || (c == '`' && memchr(text + i, '`', len - i))) return 0;
    return n;
}

bool ui_md_blank_between(const char *s, size_t from, size_t to, bool at_line) {
    bool inside = at_line, blank = true;
    for (size_t i = from; i < to; i++) {
        if (s[i] == '\n') {
            if (inside && blank) return true;
            inside = blank = true;
        } else if (s[i] != ' ' && s[i] != '\t' && s[i] != '>' && s[i] != '\r') {
            blank = false;
        }
    }
    return false;
}

/* ---- HTML ---- */

static bool begins(const char *s, size_t len, const char *with) {
    const size_t n = strlen(with);
    if (len < n) return false;
    for (size_t i = 0; i < n; i++) {
        if ((s[i] >= 'A' && s[i] <= 'Z' ? s[i] | 32 : s[i]) != with[i]) return false;
    }
    return true;
}

static bool contains(const char *s, size_t len, const char *what) {
    for (size_t i = 0; i < len; i++) {
        if (begins(s + i, len - i, what)) return true;
    }
    return false;
}

/* What ends the HTML that begins at s; NULL: a blank line. */
static const char *html_end(const char *s, size_t len) {
    static const char *const kinds[][2] = {
        { "<script", "</script>" },     { "<pre", "</pre>" }, { "<style", "</style>" },
        { "<textarea", "</textarea>" }, { "<!--", "-->" },    { "<?", "?>" },
        { "<![cdata[", "]]>" },         { "<!", ">" },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (begins(s, len, kinds[i][0])) return kinds[i][1];
    }
    return NULL;
}

static void note_html(UiMdSplit *s, const char *text, size_t len) {
    if (!s->html_end && len > 0 && *text == '<') {
        s->html_end = html_end(text, len);
        s->html = s->html || !s->html_end; /* what has an end of its own does not last until a blank line */
    }
    if (s->html_end && contains(text, len, s->html_end)) s->html_end = NULL;
}

/* ---- parts ---- */

static bool begin_part(UiMdSplit *s, size_t off, UiMdPartKind kind) {
    if (s->n == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 4;
        UiMdPart *p = realloc(s->parts, cap * sizeof *p);
        if (!p) return false;
        s->parts = p;
        s->cap = cap;
    }
    s->parts[s->n++] = (UiMdPart){ .off = (uint32_t)off, .kind = (uint8_t)kind };
    s->text = s->list = s->html = false;
    s->html_end = NULL;
    s->lines = 0;
    return true;
}

/* Does a new part begin with this line? *sure: whatever follows in it. */
static bool cuts(const UiMdSplit *s, const Line *line, size_t *fence_len, bool *sure) {
    const size_t size = s->at - s->parts[s->n - 1].off, item = item_mark(line->s, line->len);
    size_t info;
    const char c = *line->s;
    *fence_len = !s->html && !s->html_end && !is_space(c) ? ui_md_fence(line->s, line->len, &info) : 0;
    *sure = line->complete || !(is_space(c) || strchr("-+*`~", c) || (c >= '0' && c <= '9'));
    if (*fence_len > 0) return true;
    if (!s->text) return false;
    if (size >= PART_HARD) return true;
    if (size >= PART_SOFT && (s->blank || item > 0)) return true;
    return s->blank && !s->html_end && !is_space(c) && !(item > 0 && s->list);
}

/* A line of text. false: it has to be looked at again, when there is more of it or memory. */
static bool text_line(UiMdSplit *s, const Line *line) {
    bool sure, item = false;
    size_t fence_len;
    if (is_blank(line->s, line->len)) {
        if (!line->complete) return false;
        s->blank = true;
        s->html = false;
        return true;
    }
    const bool cut = cuts(s, line, &fence_len, &sure);
    if (!sure) return false;
    const UiMdPartKind kind = fence_len > 0 ? UI_MD_PART_CODE : UI_MD_PART_TEXT;
    if (cut && s->text && !begin_part(s, s->at, kind)) return false;
    UiMdPart *part = &s->parts[s->n - 1];
    if (!s->text) part->blank = s->blank;
    if (!line->complete) return false;
    part->kind = (uint8_t)kind;
    s->text = true;
    s->blank = false;
    s->fence = *line->s;
    s->fence_len = (unsigned)fence_len;
    if (fence_len > 0) {
        part->off = (uint32_t)s->at; /* blank lines before it are not code */
        return true;
    }
    const size_t at = ui_md_past_marks(line->s, line->len, &item);
    s->list = s->list || item;
    note_html(s, line->s + at, line->len - at);
    return true;
}

static bool closes(const UiMdSplit *s, const Line *line) {
    size_t i = 0, n = 0;
    while (i < line->len && i < 3 && line->s[i] == ' ') i++;
    while (i < line->len && line->s[i] == s->fence) i++, n++;
    return n >= s->fence_len && is_blank(line->s + i, line->len - i);
}

static bool code_line(UiMdSplit *s, const Line *line) {
    if (!line->complete) return false;
    if (closes(s, line)) {
        if (!begin_part(s, s->at + line->len + 1, UI_MD_PART_TEXT)) return false;
        s->fence_len = 0;
        s->blank = false;
        return true;
    }
    if (s->lines == UI_MD_CODE_LINES) {
        if (!begin_part(s, s->at, UI_MD_PART_CODE)) return false;
        s->parts[s->n - 1].continues = s->text = true;
    }
    s->lines++;
    return true;
}

bool ui_md_split(UiMdSplit *s, const char *text, size_t len, bool closed) {
    if (s->n == 0 && !begin_part(s, 0, UI_MD_PART_TEXT)) return false;
    while (s->at < len) {
        const char *nl = memchr(text + s->at, '\n', len - s->at);
        const Line line = { text + s->at, (size_t)((nl ? nl : text + len) - (text + s->at)), nl || closed };
        if (!(s->fence_len > 0 ? code_line(s, &line) : text_line(s, &line)))
            return line.complete ? false : true;
        s->at += line.len + 1;
    }
    return true;
}

void ui_md_split_free(UiMdSplit *s) {
    free(s->parts);
    *s = (UiMdSplit){ 0 };
}

bool ui_md_spaced(UiBuf *b, const char *text, size_t len) {
    UiMdSplit s = { 0 };
    bool ok = ui_md_split(&s, text, len, true);
    size_t from = 0;
    for (size_t i = 0; ok && i < s.n; i++) {
        const UiMdPart *part = &s.parts[i];
        if (part->kind != UI_MD_PART_CODE || part->continues || part->off == 0) continue;
        ui_buf_add(b, text + from, part->off - from);
        ui_buf_puts(b, "\n");
        from = part->off;
    }
    ui_buf_add(b, text + from, len - from);
    ui_md_split_free(&s);
    return ok && !b->failed;
}
