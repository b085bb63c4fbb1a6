/* SPDX-License-Identifier: GPL-3.0-or-later */
/* HTML and XML, with scripts and styles. */
#include <string.h>

#include "ui/code/scan.h"

/* What a line begins in, unless UiCodeState.outer says that it is a script or a style: those use mode
 * themselves. */
enum {
    CONTENT,
    COMMENT,
    CDATA,
    DOCTYPE,
    TAG,  /* more: what its content will be */
    VALUE /* flag: the quote */
};
enum { NONE, SCRIPT, STYLE }; /* outer, and more */

static void through(UiScan *s, const char *end, UiCodeClass kind, uint8_t mode) {
    s->st->mode = ui_scan_through(s, end, kind) ? CONTENT : mode;
}

static void comment(UiScan *s) { through(s, "-->", UI_CODE_COMMENT, COMMENT); }
static void cdata(UiScan *s) { through(s, "]]>", UI_CODE_STRING, CDATA); }
static void doctype(UiScan *s) { through(s, ">", UI_CODE_DIRECTIVE, DOCTYPE); }

static size_t name_length(const UiScan *s, size_t from) {
    size_t n = from;
    for (char c; (c = ui_scan_peek(s, n)) != '\0' && (ui_is_word(c) || strchr("-:.@#*", c));) n++;
    return n - from;
}

/* The content of <script> and <style> is another language, lexed from its initial state. */
static void end_tag(UiScan *s) {
    UiCodeState *st = s->st;
    const uint8_t outer = (uint8_t)st->more;
    ui_scan_take(s, 1, UI_CODE_TEXT);
    *st = (UiCodeState){ .outer = outer };
}

static void value(UiScan *s) {
    if (!ui_scan_string(s, (char)s->st->flag, '\0', NULL)) return;
    s->st->mode = TAG;
    s->st->flag = 0;
}

static void tag(UiScan *s) {
    const char c = ui_scan_peek(s, 0);
    const size_t n = name_length(s, 0);
    if (c == '>') {
        end_tag(s);
    } else if (c == '"' || c == '\'') {
        s->st->mode = VALUE;
        s->st->flag = (uint8_t)c;
        ui_scan_take(s, 1, UI_CODE_STRING);
        value(s);
    } else if (n > 0) {
        ui_scan_take(s, n, ui_scan_before(s) == '=' ? UI_CODE_STRING : UI_CODE_KEY);
    } else {
        if (ui_scan_is(s, "/>")) s->st->more = NONE;
        ui_scan_take(s, 1, UI_CODE_TEXT);
    }
}

static void open_tag(UiScan *s) {
    const size_t before = ui_scan_peek(s, 1) == '/' || ui_scan_peek(s, 1) == '?' ? 2 : 1;
    const size_t n = name_length(s, before);
    if (n == 0) {
        ui_scan_take(s, 1, UI_CODE_TEXT);
        return;
    }
    s->st->mode = TAG;
    s->st->more = before == 2                                 ? NONE
                  : n == 6 && ui_scan_is_nocase(s, "<script") ? SCRIPT
                  : n == 5 && ui_scan_is_nocase(s, "<style")  ? STYLE
                                                              : NONE;
    ui_scan_take(s, before, UI_CODE_TEXT);
    ui_scan_take(s, n, UI_CODE_KEYWORD);
}

/* &amp; and &#10; */
static void entity(UiScan *s) {
    size_t n = 1;
    while (n < 32 && (ui_is_word(ui_scan_peek(s, n)) || ui_scan_peek(s, n) == '#')) n++;
    const bool is = n > 1 && ui_scan_peek(s, n) == ';';
    ui_scan_take(s, is ? n + 1 : 1, is ? UI_CODE_DIRECTIVE : UI_CODE_TEXT);
}

static void content(UiScan *s) {
    if (ui_scan_is(s, "<!--"))
        comment(s);
    else if (ui_scan_is(s, "<![CDATA["))
        cdata(s);
    else if (ui_scan_is(s, "<!"))
        doctype(s);
    else if (ui_scan_peek(s, 0) == '<')
        open_tag(s);
    else if (ui_scan_peek(s, 0) == '&')
        entity(s);
    else
        ui_scan_take(s, 1, UI_CODE_TEXT);
}

/* Up to the tag that ends it, or the end of the line. */
static void embedded(UiScan *s) {
    const UiLexer *html = s->x;
    const size_t len = s->len, from = s->at;
    const bool script = s->st->outer == SCRIPT;
    for (; s->at < len; s->at++) {
        if (ui_scan_is_nocase(s, script ? "</script" : "</style")) break;
    }
    const bool ended = s->at < len;
    s->len = s->at;
    s->at = from;
    s->x = script ? &ui_lexer_js : &ui_lexer_css;
    s->x->line(s);
    s->len = len;
    s->x = html;
    if (ended) *s->st = (UiCodeState){ 0 };
}

static void line(UiScan *s) {
    static void (*const modes[])(UiScan *) = {
        [CONTENT] = content, [COMMENT] = comment, [CDATA] = cdata,
        [DOCTYPE] = doctype, [TAG] = tag,         [VALUE] = value,
    };
    while (!ui_scan_end(s)) {
        if (s->st->outer != NONE)
            embedded(s);
        else
            modes[s->st->mode](s);
    }
}

const UiLexer ui_lexer_html = {
    .names = "html,htm,xhtml,xml,svg,vue,svelte,xsl,xslt,rss,plist",
    .line = line,
};
