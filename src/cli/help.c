/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --help: implements qsf_cli_print_help of qsf_cli.h. A terminal gets lines that are broken between words at
 * its width; anything else gets a line per option. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "qsf_cli.h"
#include "qsf_text.h"

#define LEFT   28 /* the column of the descriptions */
#define NARROW 64 /* below this width they are on rows of their own, */
#define INDENT 8  /* from this column on */
#define WIDEST 100

typedef struct Page {
    FILE *to;
    size_t width;  /* of a row; SIZE_MAX: not a terminal */
    size_t indent; /* of the rows that continue a line */
    size_t column; /* that is written next */
} Page;

static size_t width_of(FILE *to) {
    struct winsize ws;
    if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &ws) != 0 || ws.ws_col < 20) return SIZE_MAX;
    return ws.ws_col < WIDEST ? ws.ws_col : WIDEST;
}

static void new_row(Page *p, size_t indent) {
    fprintf(p->to, "\n%*s", (int)indent, "");
    p->column = indent;
}

/* A word longer than a row is not broken. */
static void put_word(Page *p, const char *word, size_t len) {
    const bool fits = p->width == SIZE_MAX || p->column + 1 + len < p->width;
    if (p->column > p->indent) {
        if (fits)
            p->column += (size_t)fprintf(p->to, " ");
        else
            new_row(p, p->indent);
    }
    p->column += fwrite(word, 1, len, p->to);
}

static void put_words(Page *p, const char *s, size_t len) {
    for (size_t i = 0, n; (i += strspn(s + i, " \n")) < len; i += n) {
        n = strcspn(s + i, " \n");
        put_word(p, s + i, n);
    }
}

/* Lines that do not fit continue below the end of their own indentation. A paragraph that is not indented is
 * broken at other places as a whole. */
static void put_text(Page *p, const char *s) {
    for (size_t len; *s; s += len + (s[len] == '\n')) {
        len = strcspn(s, "\n");
        const size_t blanks = strspn(s, " ");
        p->column = p->indent = 0;
        if (p->width == SIZE_MAX || len < p->width) {
            fwrite(s, 1, len, p->to);
        } else {
            const char *end = s + len;
            while (blanks == 0 && end[0] == '\n' && end[1] != '\n' && end[1] != ' ' && end[1])
                end += 1 + strcspn(end + 1, "\n");
            len = (size_t)(end - s);
            p->column = (size_t)fprintf(p->to, "%*s", (int)blanks, "");
            p->indent = p->column;
            put_words(p, s, len);
        }
        fputc('\n', p->to);
    }
}

static void put_row(Page *p, char short_name, const char *name, const char *aliases, const char *arg,
                    const char *help) {
    char left[96], also[128] = "";
    int n = snprintf(left, sizeof left, short_name ? "  -%c, " : "      ", short_name);
    snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s", name, arg ? " " : "", arg ? arg : "");
    const size_t len = strlen(left);
    p->indent = p->width < NARROW ? INDENT : LEFT;
    p->column = len;
    fputs(left, p->to);
    if (len >= p->indent || p->width < NARROW)
        new_row(p, p->indent);
    else
        p->column += (size_t)fprintf(p->to, "%*s", (int)(p->indent - len), "");
    put_words(p, help, strlen(help));
    size_t at = 0;
    for (const char *a = aliases; a && *a && at < sizeof also;) {
        const size_t one = strcspn(a, ",");
        at += (size_t)snprintf(also + at, sizeof also - at, "%s--%.*s", at ? " " : "(also ", (int)one, a);
        a += one + (a[one] == ',');
    }
    if (at) put_words(p, strcat(also, ")"), strlen(also));
    fputc('\n', p->to);
}

void qsf_cli_print_help(const QSFCli *cli, FILE *to) {
    Page p = { .to = to, .width = width_of(to) };
    put_text(&p, cli->usage);
    fputc('\n', to);
    put_text(&p, cli->summary);
    fputs("\nOptions:\n", to);
    const QSFCliOption *o;
    for (size_t i = 0; (o = qsf_cli_option_at(cli, i)); i++)
        put_row(&p, o->short_name, o->name, o->aliases, o->arg, o->help);
    if (!cli->no_settings) {
        fputs("\nModel, memory and sampling:\n", to);
        for (size_t i = 0; i < qsf_setting_count(); i++) {
            const QSFSetting *r = qsf_setting_at(i);
            put_row(&p, r->short_name, r->name, r->aliases, r->arg, r->help);
        }
    }
    if (cli->epilogue) {
        fputc('\n', to);
        put_text(&p, cli->epilogue);
    }
}
