/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The terminal through ncurses, the only file that uses it. */
#include "ui/term.h"

#ifndef NCURSES_WIDECHAR
#define NCURSES_WIDECHAR 1 /* declare functions for wide characters, also where _GNU_SOURCE has no meaning */
#endif
#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "ui/osc.h"
#include "ui/overlay.h"
#include "ui/own_data.h"
#include "ui/window.h"

/* Pastes are marked; the wheel sends no arrow keys, which would recall the history (xterm's ctlseqs:
 * alternate scroll, 1007). How that was set is saved and restored where the terminal can (XTSAVE, XTRESTORE);
 * the other terminals have it switched on. */
#define MODES_SAVE "\x1b[?1007s"
#define MODES_ON   "\x1b[?2004h\x1b[?1007l"
#define MODES_OFF  "\x1b[?2004l\x1b[?1007h\x1b[?1007r\x1b[?1006l\x1b[?1000l"
/* Presses of buttons and the wheel, as SGR reports. Terminals select text with Shift then. */
#define MOUSE_ON "\x1b[?1000h\x1b[?1006h"

/* An answer that comes later than this is not expected. */
#define LATE_SECONDS 1.0

#define UI_SIGNALS 65 /* numbers of Linux: 1 to 64 */

static struct {
    SCREEN *screen;
    bool open, mouse;
    UiDepth depth;
    bool own_default;     /* the terminal's own colors can be shown */
    double asked;         /* when its background was asked for without an answer, 0 = it was not */
    struct termios saved; /* the original state of the terminal */
    char restore[160];    /* bytes written by a fatal signal */
    volatile sig_atomic_t n_restore;
    sig_atomic_t n_kept;              /* of them, while the terminal is released */
    struct sigaction old[UI_SIGNALS]; /* of the signals in caught */
    bool caught[UI_SIGNALS];
    UiPaint paints[UI_STYLE_COUNT]; /* the styles */
    attr_t attrs[UI_STYLE_COUNT];
    attr_t italic, strike; /* what shows these attributes */
    bool links, strikes;   /* the terminal has links and strike-through */
    UiOverlay overlay;
    UiBuf over;       /* bytes of it */
    long typed_ahead; /* unread bytes that arrived while we did not control the terminal */
    size_t max_cells; /* of the screen */
    int rows, cols;   /* of the screen */
    bool cut;         /* the window is larger */
} term = { .max_cells = UI_CELLS_MAX };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void write_raw(const char *s, size_t n) {
    while (n > 0) {
        ssize_t k = write(STDOUT_FILENO, s, n);
        if (k <= 0 && errno != EINTR) return;
        if (k > 0) {
            s += k;
            n -= (size_t)k;
        }
    }
}

static void release_fatal(void) {
    for (int sig = 1; sig < UI_SIGNALS; sig++) {
        if (term.caught[sig]) sigaction(sig, &term.old[sig], NULL);
    }
}

/* Only calls that POSIX allows in a handler. The signal then has its default effect. */
static void on_fatal(int sig) {
    int n = term.n_restore;
    term.n_restore = 0;
    if (n > 0) {
        ssize_t ignored = write(STDOUT_FILENO, term.restore, (size_t)n);
        (void)ignored;
        tcsetattr(STDIN_FILENO, TCSANOW, &term.saved);
    }
    release_fatal();
    raise(sig);
}

/* Would it end the program? Real-time signals would, too. The others are handled by ui_signals.c. */
static bool is_fatal(int sig) {
    static const int others[] = { SIGKILL, SIGSTOP, SIGTSTP,  SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD,
                                  SIGURG,  SIGINT,  SIGWINCH, SIGTERM, SIGHUP,  SIGPIPE, SIGXFSZ };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i] == sig) return false;
    }
    return true;
}

/* A signal that the parent had ignored stays ignored. Numbers that the C library keeps for itself fail. */
static void catch_fatal(void) {
    struct sigaction sa = { .sa_handler = on_fatal, .sa_flags = SA_NODEFER };
    sigemptyset(&sa.sa_mask);
    sigaddset(&sa.sa_mask, SIGTTOU); /* tcsetattr does not stop a program in the background */
    for (int sig = 1; sig < UI_SIGNALS; sig++) {
        struct sigaction *old = &term.old[sig];
        term.caught[sig] = is_fatal(sig) && sigaction(sig, NULL, old) == 0 && old->sa_handler != SIG_IGN &&
                           sigaction(sig, &sa, NULL) == 0;
    }
}

static void append_cap(size_t *n, const char *s) {
    size_t len = s && s != (const char *)-1 ? strlen(s) : 0;
    if (*n + len < sizeof term.restore) {
        memcpy(term.restore + *n, s ? s : "", len);
        *n += len;
    }
}

/* Terminfo's strings without their padding marks ($<5>), ready for write(). */
static void prepare_restore(void) {
    static const char *const names[] = { "sgr0", "cnorm", "rmcup" };
    size_t n = 0;
    append_cap(&n, MODES_OFF);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%s", names[i]);
        char *cap = tigetstr(name);
        if (cap && cap != (char *)-1 && !strstr(cap, "$<")) append_cap(&n, cap);
    }
    append_cap(&n, "\r\n");
    term.n_restore = (sig_atomic_t)n;
}

static attr_t curses_attrs(unsigned attrs) {
    attr_t a = A_NORMAL;
    a |= attrs & UI_ATTR_BOLD ? A_BOLD : 0;
    a |= attrs & UI_ATTR_DIM ? A_DIM : 0;
    a |= attrs & UI_ATTR_REVERSE ? A_REVERSE : 0;
    a |= attrs & UI_ATTR_UNDERLINE ? A_UNDERLINE : 0;
    a |= attrs & UI_ATTR_ITALIC ? term.italic : 0;
    return a;
}

/* A number of curses; other: the one to take where the terminal's own cannot be shown. */
static int curses_color(int32_t color, int other) {
    if (color == UI_COLOR_DEFAULT) return term.own_default ? -1 : other;
    return color >= UI_COLOR_RGB ? color - UI_COLOR_RGB : color;
}

/* The pair of a style: that of an earlier one with the same colors, or its own number and one. */
static short pair_of(int style) {
    const UiPaint *p = &term.paints[style];
    if (p->fg == UI_COLOR_DEFAULT && p->bg == UI_COLOR_DEFAULT) return 0;
    int i = 0;
    while (i < style && (term.paints[i].fg != p->fg || term.paints[i].bg != p->bg)) i++;
    if (i + 1 >= COLOR_PAIRS) return 0;
    if (i == style)
        init_extended_pair(i + 1, curses_color(p->fg, COLOR_WHITE), curses_color(p->bg, COLOR_BLACK));
    return (short)(i + 1);
}

void ui_term_theme(const UiTheme *t) {
    for (int i = 0; i < UI_STYLE_COUNT; i++) {
        term.paints[i] = ui_theme_paint(t, (UiStyle)i, term.depth);
        term.attrs[i] = curses_attrs(term.paints[i].attrs);
        if (term.depth != UI_DEPTH_NONE) term.attrs[i] |= (attr_t)COLOR_PAIR(pair_of(i));
    }
}

static bool has_cap(const char *name) {
    char copy[8];
    (void)snprintf(copy, sizeof copy, "%s", name);
    const char *cap = tigetstr(copy);
    return cap && cap != (char *)-1;
}

static const char *env_of(const char *name) { return getenv(name); }
static void prepare_attrs(void) {
    term.links = ui_overlay_links(env_of);
    term.strikes = has_cap("smxx");
    term.italic = has_cap("sitm") ? A_ITALIC : A_UNDERLINE;
    term.strike = term.strikes ? A_NORMAL : A_DIM;
}

/* Strike-through itself is drawn by the overlay. */
static attr_t attrs_of(const UiInk *ink) {
    const attr_t strike = ink->attrs & UI_ATTR_STRIKE ? term.strike : 0;
    return term.attrs[ink->style] | curses_attrs(ink->attrs) | strike;
}

/* COLORS is 2^24 where terminfo has direct colors, as in xterm-direct. */
static void prepare_colors(bool wanted) {
    UiTheme theme;
    const bool any = wanted && has_colors() && start_color() != ERR;
    term.depth = !any                ? UI_DEPTH_NONE
                 : COLORS >= 1 << 24 ? UI_DEPTH_DIRECT
                 : COLORS >= 256     ? UI_DEPTH_256
                 : COLORS >= 16      ? UI_DEPTH_16
                                     : UI_DEPTH_8;
    term.own_default = any && use_default_colors() == OK;
    (void)ui_theme_begin(&theme, "ansi", UI_BACKGROUND_UNKNOWN);
    ui_term_theme(&theme);
}

bool ui_term_ask(void) {
    if (!term.open || term.depth == UI_DEPTH_NONE || !ui_osc_answered(getenv("TERM"))) return false;
    term.asked = now();
    return ui_term_send(UI_OSC_BACKGROUND, sizeof UI_OSC_BACKGROUND - 1);
}

void ui_term_answered(void) { term.asked = 0; }

/* raw: ^C and ^Z are keys; nonl: Enter and ^J are different keys. */
static void set_modes(void) {
    raw();
    noecho();
    nonl();
    nodelay(stdscr, TRUE);
    leaveok(stdscr, FALSE);
    scrollok(stdscr, FALSE);
}

/* Input typed before the terminal was taken over has newlines where Enter was pressed. */
static void look_for_typed(void) {
    int n = 0;
    term.typed_ahead = ioctl(STDIN_FILENO, FIONREAD, &n) == 0 ? n : 0;
}

static bool described(const char *name) {
    int why;
    if (!name || setupterm(name, STDOUT_FILENO, &why) != OK) return false;
    del_curterm(cur_term);
    return true;
}

bool ui_term_described(void) {
    const char *name = getenv("TERM");
    return described(name) || (ui_own_terminals() && described(name));
}

/* newterm takes memory for a window of any size, or refuses it, and believes LINES and COLUMNS. A window that
 * is too large is opened at the size of the terminal's description; the size is set later. */
static void choose_size(void) {
    int rows, cols;
    use_env(FALSE);
    use_tioctl(!ui_term_size(&rows, &cols));
}

/* Newterm has set the scroll region for the size that it found. Setting it moves the cursor, to which the
 * shell returns at the end: the program's own screen begins only with the first refresh. */
static void set_scroll_region(void) {
    if (!change_scroll_region || !save_cursor || !restore_cursor) return;
    putp(save_cursor);
    putp(tparm(change_scroll_region, 0, LINES - 1));
    putp(restore_cursor);
}

/* Debian's ncurses-base lacks kitty, alacritty, foot and others, all compatible with xterm. */
static SCREEN *open_screen(char *notice, size_t cap) {
    const char *name = getenv("TERM");
    if (ui_term_described()) return newterm(name, stdout, stdin);
    if (!described("xterm-256color")) return NULL;
    (void)snprintf(notice, cap, "terminal '%.40s' is not in the terminfo database; using xterm-256color",
                   name ? name : "");
    return newterm("xterm-256color", stdout, stdin);
}

static void modes_on(void) {
    write_raw(MODES_ON, sizeof MODES_ON - 1);
    if (term.mouse) write_raw(MOUSE_ON, sizeof MOUSE_ON - 1);
}

bool ui_term_open(bool color, bool mouse, char *notice, char *err, size_t cap) {
    notice[0] = '\0';
    if (tcgetattr(STDIN_FILENO, &term.saved) != 0) {
        (void)snprintf(err, cap, "standard input is not a terminal: %s", strerror(errno));
        return false;
    }
    choose_size();
    term.screen = open_screen(notice, cap);
    if (!term.screen) {
        const char *name = getenv("TERM");
        (void)snprintf(err, cap, "terminal '%.40s' is not in the terminfo database", name ? name : "");
        return false;
    }
    set_modes();
    look_for_typed();
    prepare_attrs();
    prepare_colors(color);
    prepare_restore();
    catch_fatal();
    term.open = true;
    term.mouse = mouse;
    write_raw(MODES_SAVE, sizeof MODES_SAVE - 1);
    modes_on();
    ui_term_resized();
    set_scroll_region();
    return true;
}

/* The cursor is in the last line then, which is empty unless the terminal shows its screen of before. */
static void end_screen(void) {
    write_raw(MODES_OFF, sizeof MODES_OFF - 1);
    endwin();
    if (exit_ca_mode || !clr_eol) return;
    putp(clr_eol);
    (void)fflush(stdout);
}

void ui_term_close(void) {
    if (!term.open) return;
    term.open = false;
    end_screen();
    term.n_restore = 0;
    release_fatal();
    delscreen(term.screen);
    term.screen = NULL;
    ui_overlay_free(&term.overlay);
    ui_buf_free(&term.over);
    const bool late = term.asked > 0 && now() - term.asked < LATE_SECONDS;
    tcsetattr(STDIN_FILENO, late ? TCSAFLUSH : TCSADRAIN, &term.saved);
}

void ui_term_limit(size_t cells) { term.max_cells = cells; }

void ui_term_resized(void) {
    term.cut = ui_window_size(term.max_cells, &term.rows, &term.cols);
    resizeterm(term.rows, term.cols);
}

bool ui_term_size(int *rows, int *cols) {
    if (!term.open) return ui_window_size(term.max_cells, rows, cols);
    *rows = term.rows;
    *cols = term.cols;
    return term.cut;
}

/* If the C library computes another width for a cluster, the rest of its line would be shifted: only its
 * first character is shown then, or a question mark. */
static void show_cell(const UiCell *cell, int row, int col) {
    char text[UI_CELL_TEXT + 1];
    wchar_t wide[UI_CELL_TEXT + 1];
    memcpy(text, cell->text, cell->len);
    text[cell->len] = '\0';
    size_t n = mbstowcs(wide, text, UI_CELL_TEXT);
    if (n == (size_t)-1 || n == 0) {
        mvaddstr(row, col, "?");
        return;
    }
    wide[n] = L'\0';
    if (wcswidth(wide, n) != cell->width) {
        n = 1;
        wide[1] = L'\0';
        int w = wcwidth(wide[0]);
        if (w < 1 || w > cell->width) wide[0] = L'?';
    }
    mvaddwstr(row, col, wide);
}

static bool same_attrs(const UiInk *a, const UiInk *b) {
    return a->style == b->style && a->attrs == b->attrs;
}

static void show_row(const UiCanvas *c, int row) {
    const UiCell *cells = c->cells + (size_t)row * (size_t)c->cols;
    move(row, 0);
    for (int col = 0; col < c->cols;) {
        char run[512];
        size_t n = 0;
        int start = col;
        attrset((int)attrs_of(&cells[col].ink));
        /* Runs of ASCII in one style are written together. */
        while (col < c->cols && n < sizeof run - 1 && cells[col].len == 1 &&
               (unsigned char)cells[col].text[0] < 0x80 && same_attrs(&cells[col].ink, &cells[start].ink))
            run[n++] = cells[col++].text[0];
        if (n > 0) {
            mvaddnstr(row, start, run, (int)n);
            continue;
        }
        if (cells[col].width > 1) mvaddnstr(row, col, "  ", 2);
        if (cells[col].len > 0) show_cell(&cells[col], row, col);
        col += cells[col].width > 0 ? cells[col].width : 1;
    }
}

static int put_over(int c) {
    const char byte = (char)c;
    return ui_buf_add(&term.over, &byte, 1) ? c : EOF;
}

/* Bytes that curses does not know of: text, cursor and attributes are afterwards as it left them. */
static void show_over(void) {
    int row = 0, col = 0;
    getsyx(row, col);
    ui_buf_printf(&term.over, "\x1b[0m\x1b[%d;%dH", row + 1, col + 1);
    if (!term.over.failed) write_raw(ui_buf_str(&term.over), term.over.len);
}

void ui_term_show(const UiCanvas *c, bool again) {
    if (!term.open) return;
    if (again) clearok(curscr, TRUE);
    ui_buf_clear(&term.over);
    const int rows = c->rows < LINES ? c->rows : LINES;
    for (int row = 0; row < rows; row++) show_row(c, row);
    UiBuf over = { 0 };
    for (int row = 0; row < rows; row++) {
        bool renew;
        if (ui_overlay_row(&term.overlay, c, row, again, &renew))
            ui_overlay_write(c, row, term.paints, &over);
        if (renew) wredrawln(stdscr, row, 1);
    }
    attrset(A_NORMAL);
    if (c->cursor_row >= 0 && c->cursor_row < LINES && c->cursor_col < COLS) {
        move(c->cursor_row, c->cursor_col);
        curs_set(1);
    } else {
        curs_set(0);
    }
    wnoutrefresh(stdscr);
    doupdate();
    if (over.len > 0) {
        (void)vidputs(A_NORMAL, put_over); /* curses now knows that there are no attributes */
        (void)ui_buf_add(&term.over, ui_buf_str(&over), over.len);
        show_over();
    }
    ui_buf_free(&over);
}

bool ui_term_send(const char *bytes, size_t len) {
    if (term.open) write_raw(bytes, len);
    return term.open;
}

bool ui_term_links(void) { return term.links; }

bool ui_term_strikes(void) { return term.strikes; }

long ui_term_read(char *buf, size_t cap) {
    ssize_t n = read(STDIN_FILENO, buf, cap);
    for (ssize_t i = 0; i < n && term.typed_ahead > 0; i++, term.typed_ahead--) {
        if (buf[i] == '\n') buf[i] = '\r';
        if (buf[i] == '\0') buf[i] = (char)term.saved.c_cc[VEOF]; /* which Linux kept as that */
    }
    if (n > 0) return (long)n;
    return n < 0 && (errno == EINTR || errno == EAGAIN) ? 0 : -1;
}

/* released: its modes were given back before, as by ^Z, but not by SIGSTOP. */
static void take_again(bool released) {
    reset_prog_mode();
    look_for_typed();
    if (released) write_raw(MODES_SAVE, sizeof MODES_SAVE - 1);
    modes_on();
    clearok(curscr, TRUE);
}

void ui_term_release(void) {
    if (!term.open) return;
    def_prog_mode();
    end_screen();
    term.n_kept = term.n_restore;
    term.n_restore = 0; /* a fatal signal finds the terminal restored */
}

void ui_term_take(void) {
    if (!term.open) return;
    term.n_restore = term.n_kept;
    take_again(true);
}

void ui_term_suspend(void) {
    struct sigaction dfl = { .sa_handler = SIG_DFL }, old;
    if (!term.open) return;
    sigemptyset(&dfl.sa_mask);
    ui_term_release();
    sigaction(SIGTSTP, &dfl, &old);
    kill(0, SIGTSTP);
    sigaction(SIGTSTP, &old, NULL);
    ui_term_take();
}

void ui_term_continued(void) {
    if (term.open) take_again(false);
}
