/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The conversation as one HTML file that needs nothing else. */
#include <stdlib.h>
#include <string.h>

#include "ui/export_internal.h"
#include "ui/html.h"

/* A page without scripts and anything loaded, even if the escaping had a fault. */
static const char head[] = "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n"
                           "<meta http-equiv=\"Content-Security-Policy\"\n"
                           "  content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                           "<meta name=\"color-scheme\" content=\"light dark\">\n";

/* The colors of code are those of the terminal's theme; the letters are in html.c. */
static const char style[] =
    "<style>\n"
    ":root { --back: #fff; --text: #1f2328; --faint: #59636e; --line: #d1d9e0; --soft: #f6f8fa;\n"
    "  --blue: #0550ae; --red: #b3261e; --green: #116329; --purple: #8250df; --cyan: #0a6c74; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  :root { --back: #0d1117; --text: #e6edf3; --faint: #9198a1; --line: #3d444d; --soft: #161b22;\n"
    "    --blue: #79c0ff; --red: #ff7b72; --green: #7ee787; --purple: #d2a8ff; --cyan: #76d9e6; }\n"
    "}\n"
    "body { max-width: 50rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word;\n"
    "  background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }\n"
    "header, h2 small, figcaption, summary { color: var(--faint); font-weight: normal; }\n"
    "h2 { font-size: 1rem; border-top: 1px solid var(--line); padding-top: 1rem; }\n"
    ".user h2 { color: var(--cyan); } .answer h2 { color: var(--green); }\n"
    ".plain { white-space: pre-wrap; }\n"
    "details { color: var(--faint); border-left: 3px solid var(--line); padding-left: 1rem; }\n"
    "blockquote { margin: 0; border-left: 3px solid var(--line); padding-left: 1rem; }\n"
    "figure { margin: 1rem 0; } figcaption { font-size: .8rem; }\n"
    "pre { background: var(--soft); border: 1px solid var(--line); padding: .7rem; margin: 0;\n"
    "  overflow-x: auto; }\n"
    "code, pre { font-family: ui-monospace, monospace; font-size: .9rem; }\n"
    ":not(pre) > code { background: var(--soft); padding: .1rem .3rem; }\n"
    "table { border-collapse: collapse; } th, td { border: 1px solid var(--line); padding: .2rem .6rem; }\n"
    ".left { text-align: left; } .center { text-align: center; } .right { text-align: right; }\n"
    ".task { list-style: none; } a { color: var(--blue); }\n"
    ".k { color: var(--purple); font-weight: bold; }\n"
    ".t, .y, .h { color: var(--cyan); } .s { color: var(--green); }\n"
    ".n { color: var(--red); } .c { color: var(--faint); font-style: italic; } .d { color: var(--purple); }\n"
    ".f { color: var(--blue); } .a { color: var(--green); } .r { color: var(--red); }\n"
    "</style>\n";

static void put_clean(UiBuf *b, const char *s, size_t len, bool one_line) {
    char *clean = qsf_clean_dup(s, len, one_line);
    b->failed = b->failed || !clean;
    if (clean) ui_html_text(b, clean, strlen(clean));
    free(clean);
}

static void put_word(UiBuf *b, const char *s) { put_clean(b, s, strlen(s), true); }

/* Text as it was written. */
static void put_plain(UiBuf *b, const char *s, size_t len) {
    ui_buf_puts(b, "<div class=\"plain\">");
    put_clean(b, s, len, false);
    ui_buf_puts(b, "</div>\n");
}

static unsigned put_markdown(UiBuf *b, const UiItem *it, unsigned first) {
    char *clean = qsf_clean_dup(ui_buf_str(&it->raw), it->raw.len, false);
    b->failed = b->failed || !clean;
    const unsigned n = clean ? ui_html_markdown(b, clean, strlen(clean), first) : 0;
    free(clean);
    return n;
}

static void put_title(const UiApp *a, UiBuf *b) {
    ui_buf_puts(b, "<title>");
    put_word(b, ui_export_title(a));
    ui_buf_puts(b, "</title>\n");
    ui_buf_puts(b, style);
    ui_buf_puts(b, "</head>\n<body>\n<h1>");
    put_word(b, ui_export_title(a));
    ui_buf_puts(b, "</h1>\n<header>");
    put_word(b, a->stats.model_name);
    ui_buf_puts(b, "</header>\n");
}

/* Returns the number of blocks of code. */
static unsigned put_message(UiBuf *b, const UiItem *it, unsigned first) {
    char when[32];
    unsigned n = 0;
    ui_export_time(it->time, when, sizeof when);
    ui_buf_puts(b,
                it->kind == UI_USER ? "<article class=\"user\">\n<h2>" : "<article class=\"answer\">\n<h2>");
    put_word(b, ui_export_speaker(it));
    ui_buf_puts(b, " <small>");
    if (it->number > 0) ui_buf_printf(b, "#%u ", it->number);
    ui_buf_printf(b, "%s</small></h2>\n", when);
    if (ui_item_thought(it)) {
        ui_buf_puts(b, "<details><summary>Thinking</summary>\n");
        ui_export_thought(b, it->thought, put_plain);
        ui_buf_puts(b, "</details>\n");
    }
    if (it->kind == UI_USER)
        put_plain(b, ui_buf_str(&it->raw), it->raw.len);
    else
        n = put_markdown(b, it, first);
    ui_buf_puts(b, "</article>\n");
    return n;
}

/* Code has its number on the screen: answers that the model no longer sees are counted, too. */
void ui_export_as_html(const UiApp *a, UiBuf *b) {
    unsigned first = 1;
    UiBuf unused = { 0 };
    ui_buf_puts(b, head);
    put_title(a, b);
    if (a->system.len > 0) {
        ui_buf_puts(b, "<article>\n<h2>System</h2>\n");
        put_plain(b, ui_buf_str(&a->system), a->system.len);
        ui_buf_puts(b, "</article>\n");
    }
    for (size_t i = 0; i < a->chat.n; i++) {
        const UiItem *it = a->chat.items[i];
        if (it->in_context) {
            first += put_message(b, it, first);
        } else if (it->kind == UI_ANSWER) {
            first += put_markdown(&unused, it, first);
            ui_buf_clear(&unused);
        }
    }
    ui_buf_puts(b, "</body>\n</html>\n");
    b->failed = b->failed || unused.failed;
    ui_buf_free(&unused);
}
