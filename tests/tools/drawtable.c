/* SPDX-License-Identifier: GPL-3.0-or-later */
/* drawtable FILE.md HEADER [key=value ...]: draws the table of a document whose first line begins with HEADER
 * as SVG on stdout: a row for each of its rows, a mark for each value (tools/pictures).
 *
 * Keys, in order: title, note; label=COLUMNS (numbers from 1; empty cells mean the cell above; default 1);
 * nth=N of the tables with this header; by=COLUMN whose text says of which series a row has the values, rows
 * with the same label being one; repeat=N columns after which the table has more rows beside these; then for
 * each panel panel=HEADING, log=1 for a logarithmic scale, and series=NAME=COLUMN. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/svg/chart.h"

#define COLUMNS_MOST 24
#define ROWS_MOST    64
#define PANELS_MOST  3
#define SERIES_MOST  4
#define LINE_MOST    4096

typedef struct Series {
    char name[60];
    unsigned column;
    double value[ROWS_MOST];
} Series;

typedef struct Panel {
    const char *heading;
    bool logarithmic;
    Series series[SERIES_MOST];
    unsigned n;
} Panel;

typedef struct Table {
    const char *title, *note;
    unsigned label[4], n_label, by, repeat, nth;
    Panel panel[PANELS_MOST];
    unsigned n_panels;
    char rows[ROWS_MOST][120]; /* labels */
    unsigned n;
    char above[COLUMNS_MOST][120]; /* the last cells that were not empty */
} Table;

static _Noreturn void fail(const char *what, const char *why) {
    fprintf(stderr, "drawtable: %s: %s\n", what, why);
    exit(1);
}

/* ---- the description ---- */

static unsigned column(const char *text, const char *key) {
    char *end;
    const unsigned long v = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || v < 1 || v > COLUMNS_MOST) fail(key, "is not a column");
    return (unsigned)v;
}

static void add_series(Table *t, const char *value) {
    const char *eq = strrchr(value, '=');
    if (t->n_panels == 0 || eq == NULL) fail(value, "needs a panel, a name and a column");
    Panel *p = &t->panel[t->n_panels - 1];
    if (p->n == SERIES_MOST) fail(value, "too many series");
    Series *s = &p->series[p->n++];
    snprintf(s->name, sizeof s->name, "%.*s", (int)(eq - value), value);
    s->column = column(eq + 1, value);
}

static void take(Table *t, const char *arg) {
    const char *value = strchr(arg, '=');
    if (value == NULL) fail(arg, "is not key=value");
    const size_t n = (size_t)(value++ - arg);
    if (strncmp(arg, "title", n) == 0) {
        t->title = value;
    } else if (strncmp(arg, "note", n) == 0) {
        t->note = value;
    } else if (strncmp(arg, "label", n) == 0) {
        char one[8];
        for (t->n_label = 0; *value != '\0' && t->n_label < 4; value += *value == ',') {
            snprintf(one, sizeof one, "%.*s", (int)strcspn(value, ","), value);
            t->label[t->n_label++] = column(one, arg);
            value += strcspn(value, ",");
        }
    } else if (strncmp(arg, "nth", n) == 0) {
        t->nth = column(value, arg);
    } else if (strncmp(arg, "by", n) == 0) {
        t->by = column(value, arg);
    } else if (strncmp(arg, "repeat", n) == 0) {
        t->repeat = column(value, arg);
    } else if (strncmp(arg, "panel", n) == 0 && t->n_panels < PANELS_MOST) {
        t->panel[t->n_panels++].heading = value;
    } else if (strncmp(arg, "log", n) == 0 && t->n_panels > 0) {
        t->panel[t->n_panels - 1].logarithmic = true;
    } else if (strncmp(arg, "series", n) == 0) {
        add_series(t, value);
    } else {
        fail(arg, "unknown, or too many");
    }
}

/* ---- the table ---- */

/* Splits a line of a table; cells lose emphasis. Returns how many there are. */
static unsigned split(char *line, char *cell[COLUMNS_MOST]) {
    unsigned n = 0;
    char *at = line + 1;
    while (n < COLUMNS_MOST && *at != '\0' && *at != '\n') {
        char *end = at + strcspn(at, "|\n"), *to = at + strspn(at, " ");
        const bool more = *end == '|';
        *end = '\0';
        for (char *e = end; e > to && e[-1] == ' ';) *--e = '\0';
        cell[n++] = to;
        for (char *c = to; *c != '\0'; c++)
            if (*c != '*' && *c != '`') *to++ = *c;
        *to = '\0';
        at = more ? end + 1 : end;
    }
    return n;
}

static unsigned row_of(Table *t, const char *label) {
    if (t->by > 0 && t->n > 0 && strcmp(t->rows[t->n - 1], label) == 0) return t->n - 1;
    if (t->n == ROWS_MOST) fail(label, "too many rows");
    const size_t len = strlen(label);
    if (len >= sizeof t->rows[0]) fail(label, "is too long");
    memcpy(t->rows[t->n], label, len + 1);
    return t->n++;
}

static void take_row(Table *t, char *const *cell, unsigned n) {
    char label[400] = "";
    for (unsigned i = 0; i < n; i++)
        if (*cell[i] != '\0') snprintf(t->above[i], sizeof t->above[i], "%s", cell[i]);
    for (unsigned i = 0; i < t->n_label && t->label[i] <= n; i++) {
        const size_t at = strlen(label);
        snprintf(label + at, sizeof label - at, "%s%s", i > 0 ? ", " : "", t->above[t->label[i] - 1]);
    }
    const unsigned row = row_of(t, label);
    for (unsigned p = 0; p < t->n_panels; p++)
        for (unsigned k = 0; k < t->panel[p].n; k++) {
            Series *s = &t->panel[p].series[k];
            if (s->column > n) fail(s->name, "the table has fewer columns");
            if (t->by > 0 && strncmp(cell[t->by - 1], s->name, strlen(s->name)) != 0) continue;
            s->value[row] = strtod(cell[s->column - 1], NULL);
        }
}

static void read_table(Table *t, const char *path, const char *header) {
    char line[LINE_MOST], *cell[COLUMNS_MOST];
    static char beside[ROWS_MOST][LINE_MOST];
    unsigned seen = 0, rows = 0;
    FILE *f = fopen(path, "r");
    if (f == NULL) fail(path, "cannot be read");
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, header, strlen(header)) == 0 && ++seen == t->nth) break;
    if (seen < t->nth || fgets(line, sizeof line, f) == NULL) fail(header, "there is no such table");
    while (rows < ROWS_MOST && fgets(line, sizeof line, f) != NULL && *line == '|')
        memcpy(beside[rows++], line, sizeof line);
    fclose(f);
    for (unsigned from = 0, more = 1; more; from += t->repeat) {
        more = 0;
        for (unsigned i = 0; i < rows; i++) {
            char copy[LINE_MOST];
            memcpy(copy, beside[i], sizeof copy);
            const unsigned n = split(copy, cell);
            if (n <= from) continue;
            take_row(t, cell + from, n - from);
            more = t->repeat > 0 && n > from + t->repeat;
        }
    }
}

/* ---- the picture ---- */

#define WIDTH   800.0
#define LABELS  190.0 /* pixels for the names of rows */
#define GAP     34.0  /* between panels */
#define TOP     122.0
#define STEP    21.0
#define NUMBER  46.0 /* for the number after a row */
#define KEY_GAP 22.0

static const QsfInk ink[SERIES_MOST] = { QSF_INK_BLUE, QSF_INK_ORANGE, QSF_INK_GREEN, QSF_INK_PURPLE };
static const QsfMark mark[SERIES_MOST] = { QSF_MARK_CIRCLE, QSF_MARK_SQUARE, QSF_MARK_DIAMOND,
                                           QSF_MARK_CIRCLE };

/* 1, 2 and 5 times powers of ten from lo to hi, or powers of ten alone if these are more than n. */
static unsigned log_ticks(double lo, double hi, unsigned n, double out[QSF_TICKS_MOST]) {
    static const int leading[] = { 1, 2, 5 };
    for (unsigned per = 3;; per = 1) {
        unsigned count = 0;
        for (int e = -6; e <= 9; e++)
            for (unsigned k = 0; k < per; k++) {
                double v = leading[k];
                for (int i = 0; i < e; i++) v *= 10;
                for (int i = 0; i > e; i--) v /= 10;
                if (v >= lo && v <= hi && count++ < QSF_TICKS_MOST) out[count - 1] = v;
            }
        if (count <= n || per == 1) return count < QSF_TICKS_MOST ? count : QSF_TICKS_MOST;
    }
}

static QsfScale draw_scale(QsfStrbuf *b, const Panel *p, const QsfChartFrame *f, unsigned n) {
    double ticks[QSF_TICKS_MOST], least = INFINITY, most = 0;
    char label[QSF_NUMBER_BYTES];
    for (unsigned k = 0; k < p->n; k++)
        for (unsigned i = 0; i < n; i++) {
            const double v = p->series[k].value[i];
            if (v > 0 && v < least) least = v;
            most = v > most ? v : most;
        }
    if (!(most > 0)) fail(p->heading, "there are no numbers");
    QsfScale s = { .from = f->x, .to = f->x + f->w - NUMBER, .logarithmic = p->logarithmic };
    unsigned count;
    if (p->logarithmic) {
        s.lo = least / 1.2;
        s.hi = most;
        count = log_ticks(s.lo, s.hi, (unsigned)(f->w / 50), ticks);
    } else {
        count = qsf_ticks(most, 5, ticks);
        while (count > 1 && ticks[count - 1] > most) count--;
        s.hi = most;
    }
    for (unsigned i = 0; i < count; i++) {
        const double x = qsf_scale_at(&s, ticks[i]);
        const QsfSvgText t = {
            x, f->y + f->h + 15, QSF_CHART_SMALL, QSF_INK_FAINT, QSF_ANCHOR_MIDDLE, false
        };
        qsf_svg_line(b, QSF_INK_GRID, (QsfPoint){ x, f->y }, (QsfPoint){ x, f->y + f->h });
        qsf_svg_number(ticks[i], label);
        qsf_svg_text(b, &t, label);
    }
    return s;
}

/* The number of the first series: beside its mark if no other one is near, else after the last mark. */
static void draw_number(QsfStrbuf *b, const Panel *p, const QsfScale *s, unsigned row, double y, double end) {
    char label[QSF_NUMBER_BYTES];
    const double v = p->series[0].value[row], x = qsf_scale_at(s, v);
    if (!(v > 0)) return;
    qsf_svg_number(v, label);
    const double w = qsf_svg_width(label, QSF_CHART_SMALL);
    bool free = x < end;
    for (unsigned k = 1; k < p->n; k++) {
        const double other = qsf_scale_at(s, p->series[k].value[row]);
        if (p->series[k].value[row] > 0 && other > x - 1 && other < x + w + 24) free = false;
    }
    const QsfSvgText t = { (free ? x : end) + 10, y + 4, QSF_CHART_SMALL, QSF_INK_TEXT,
                           QSF_ANCHOR_START,      false };
    qsf_svg_rect(b, QSF_INK_PAGE, t.x - 2, y - 6, w + 4, 12);
    qsf_svg_text(b, &t, label);
}

static void draw_row(QsfStrbuf *b, const Panel *p, const QsfScale *s, unsigned row, double y) {
    double from = INFINITY, to = 0;
    for (unsigned k = 0; k < p->n; k++) {
        const double v = p->series[k].value[row], x = qsf_scale_at(s, v);
        if (!(v > 0)) continue;
        from = x < from ? x : from;
        to = x > to ? x : to;
    }
    if (to > from) qsf_svg_line(b, QSF_INK_GRAY, (QsfPoint){ from, y }, (QsfPoint){ to, y });
    for (unsigned k = p->n; k-- > 0;) {
        const double v = p->series[k].value[row];
        if (!(v > 0) || (k > 0 && v == p->series[0].value[row])) continue;
        qsf_svg_mark(b, ink[k], mark[k], (QsfPoint){ qsf_scale_at(s, v), y });
    }
    draw_number(b, p, s, row, y, to);
}

static void draw_panel(QsfStrbuf *b, const Table *t, const Panel *p, const QsfChartFrame *f) {
    const QsfSvgText heading = { f->x, f->y - 10, QSF_CHART_HEADING, QSF_INK_TEXT, QSF_ANCHOR_START, true };
    char text[200];
    qsf_svg_fit(p->heading, heading.size * 1.12, f->w + GAP - 8, text, sizeof text);
    qsf_svg_text(b, &heading, text);
    const QsfScale s = draw_scale(b, p, f, t->n);
    for (unsigned i = 0; i < t->n; i++) {
        const double y = f->y + STEP * (i + 0.5);
        qsf_svg_line(b, QSF_INK_GRID, (QsfPoint){ f->x, y }, (QsfPoint){ f->x + f->w, y });
        draw_row(b, p, &s, i, y);
    }
}

/* Marks and names of the series; their numbers are those of the first one. */
static void draw_key(QsfStrbuf *b, const Panel *p) {
    double x = 16;
    for (unsigned k = 0; k < p->n; k++) {
        const QsfSvgText t = { x + 12, 78, QSF_CHART_LABEL, QSF_INK_TEXT, QSF_ANCHOR_START, false };
        qsf_svg_mark(b, ink[k], mark[k], (QsfPoint){ x + 4, 74 });
        qsf_svg_text(b, &t, p->series[k].name);
        x = t.x + qsf_svg_width(p->series[k].name, t.size) + KEY_GAP;
    }
    char text[120];
    const QsfSvgText t = { WIDTH - 16, 78, QSF_CHART_SMALL, QSF_INK_FAINT, QSF_ANCHOR_END, false };
    snprintf(text, sizeof text, "numbers: %s", p->series[0].name);
    if (p->n > 1) qsf_svg_text(b, &t, text);
}

/* What explains a name goes first where there is little room. */
static void drop_brackets(char *text) {
    char *open = strstr(text, " ("), *close = open != NULL ? strchr(open, ')') : NULL;
    if (close != NULL) memmove(open, close + 1, strlen(close + 1) + 1);
}

static void draw(QsfStrbuf *b, const Table *t) {
    char text[400], fitted[400];
    const double h = STEP * t->n, all = WIDTH - 16 - LABELS - 16;
    const double w = (all - GAP * (t->n_panels - 1)) / t->n_panels;
    snprintf(text, sizeof text, "%u rows, from %s to %s. The table in the document has the numbers.", t->n,
             t->rows[0], t->rows[t->n - 1]);
    qsf_svg_begin(b, WIDTH, TOP + h + 30, t->title, text);
    qsf_chart_title(b, 16, WIDTH - 32, t->title, t->note);
    draw_key(b, &t->panel[0]);
    for (unsigned i = 0; i < t->n; i++) {
        const double y = TOP + STEP * (i + 0.5);
        const QsfSvgText name = { 16 + LABELS - 10, y + 4,          QSF_CHART_LABEL,
                                  QSF_INK_TEXT,     QSF_ANCHOR_END, false };
        snprintf(text, sizeof text, "%s", t->rows[i]);
        if (qsf_svg_width(text, name.size * 1.04) > LABELS - 10) drop_brackets(text);
        qsf_svg_fit(text, name.size * 1.04, LABELS - 10, fitted, sizeof fitted);
        qsf_svg_text(b, &name, fitted);
    }
    for (unsigned p = 0; p < t->n_panels; p++) {
        const QsfChartFrame f = { 16 + LABELS + (w + GAP) * p, TOP, w, h };
        draw_panel(b, t, &t->panel[p], &f);
    }
    qsf_svg_end(b);
}

int main(int argc, char **argv) {
    static Table t = { .title = "", .note = "", .label = { 1 }, .n_label = 1, .nth = 1 };
    QsfStrbuf svg = QSF_STRBUF_INIT;
    if (argc < 3) fail("usage", "drawtable FILE.md HEADER [key=value ...]");
    for (int i = 3; i < argc; i++) take(&t, argv[i]);
    if (t.n_panels == 0 || t.panel[0].n == 0) fail("usage", "there is no panel with a series");
    read_table(&t, argv[1], argv[2]);
    if (t.n == 0) fail(argv[2], "the table has no rows");
    draw(&svg, &t);
    if (!qsf_strbuf_ok(&svg)) fail("svg", "out of memory");
    if (fwrite(svg.data, 1, svg.len, stdout) != svg.len || fflush(stdout) != 0)
        fail("stdout", "cannot be written");
    qsf_strbuf_free(&svg);
    return 0;
}
