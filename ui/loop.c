/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The full-screen program's loop. */
#include "ui/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ui/compose/editor.h"
#include "ui/guide.h"
#include "ui/screen.h"
#include "ui/term.h"
#include "ui/theme_config.h"
#include "ui/ui_signals.h"

#define UI_FRAME_SECONDS (1.0 / 30)
#define UI_TICK_SECONDS  0.125 /* numbers of a busy engine */
#define UI_HOLD_SECONDS  0.1   /* for the answer of the terminal */
#define UI_CALM_SECONDS  1.5   /* they keep changing this long after its last event: memory is freed */

typedef struct Loop {
    UiApp *app;
    UiScreen screen;
    UiKeys keys;
    bool dirty;     /* something to draw */
    char theme[64]; /* what is shown, for this background */
    UiBackground background;
    double hold; /* nothing is drawn before this time, unless the terminal answers */
    double drawn, ticked;
    double calm;     /* nothing moves by itself after this time */
    double key_time; /* of the last byte, for a lone ESC */
    double ahead;    /* when the typed text is to be looked at again; 0 = after a key or an event */
    UiNotify notify;
    UiNotifyWatch watch;
    size_t max_cells; /* ui_term_limit */
    bool cut;         /* the window has more */
    int status;       /* exit status */
    bool ended;
} Loop;

static void end(Loop *l, int status) {
    l->ended = true;
    l->status = status;
}

static bool on_enter(void *arg, const char *text, size_t len) {
    Loop *l = arg;
    return ui_screen_enter(&l->screen, text, len);
}

static void on_eof(void *arg) {
    Loop *l = arg;
    l->app->quit = true;
}

static const char *on_tab(void *arg, const char *text, size_t len) {
    Loop *l = arg;
    return ui_guide_next(l->app, text, len);
}

static void on_editor(void *arg) {
    Loop *l = arg;
    l->screen.editor = true;
}

/* The window may have another size. The screen takes memory for its cells. */
static void fit_window(Loop *l) {
    l->max_cells = ui_app_screen_room(l->app);
    ui_term_limit(l->max_cells);
    ui_term_resized();
    l->screen.again = true;
}

/* While the editor has the terminal, the engine continues and its events are received. */
static int wait_for_editor(void *arg) {
    Loop *l = arg;
    struct pollfd fds[3] = {
        { .fd = ui_signals_fd(), .events = POLLIN },
        { .fd = l->app->engine.fd(l->app->engine.self), .events = POLLIN },
        { .fd = ui_download_fd(l->app), .events = POLLIN },
    };
    int pass = 0;
    (void)poll(fds, 3, ui_app_busy(l->app) ? (int)(UI_TICK_SECONDS * 1000) : -1);
    for (int sig; (sig = ui_signals_next()) != 0;) {
        if (sig != SIGTERM && sig != SIGHUP) continue;
        end(l, 128 + sig);
        pass = sig;
    }
    (void)ui_app_pump(l->app);
    ui_app_tick(l->app, ui_now());
    return pass;
}

static void run_editor(Loop *l) {
    UiEditor e = { .arg = l, .wait = wait_for_editor, .room = ui_app_text_room(l->app) };
    UiBuf draft = { 0 }, text = { 0 };
    ui_input_text(&draft);
    ui_term_release();
    if (ui_editor_run(&e, ui_buf_str(&draft), draft.len, &text))
        ui_input_replace(ui_buf_str(&text), text.len);
    else if (!l->ended)
        ui_app_say(l->app, UI_NOTICE, "%s", e.problem);
    ui_term_take();
    fit_window(l);
    ui_buf_free(&draft);
    ui_buf_free(&text);
}

/* Tells that an answer is finished, or takes the title of the window back. */
static void notify(Loop *l, bool key) {
    const UiNotifyTerm t = { getenv("TERM"), getenv("TERM_PROGRAM"), getenv("VTE_VERSION"), getenv("TMUX") };
    const UiItem *last = ui_transcript_last(&l->app->chat);
    const bool stopped = last && strcmp(last->stop, "interrupted") == 0;
    UiBuf b = { 0 };
    switch (ui_notify_watch(&l->watch, ui_app_writing(l->app), stopped, key, ui_now())) {
    case UI_NOTIFY_TELL:
        ui_notify_bytes(l->notify, &t, "the answer is finished", &b);
        ui_notify_title(&t, "qsf-chat: the answer is finished", &b);
        break;
    case UI_NOTIFY_TAKE_BACK: ui_notify_title(&t, NULL, &b); break;
    case UI_NOTIFY_NOTHING: break;
    }
    if (l->notify != UI_NOTIFY_OFF && b.len > 0) (void)ui_term_send(ui_buf_str(&b), b.len);
    ui_buf_free(&b);
}

/* It may be another terminal, as after screen -r, or one whose colors were changed. */
static void ask_again(Loop *l) { l->keys.replies = ui_term_ask() || l->keys.replies; }

/* After the shell had the terminal. */
static void taken_again(Loop *l) {
    ask_again(l);
    fit_window(l);
}

static void on_reply(Loop *l, const UiKey *k) {
    const UiBackground got = ui_theme_answer(k->bytes, k->n);
    ui_term_answered();
    if (got != UI_BACKGROUND_UNKNOWN) l->app->background = got;
    l->hold = 0;
}

static void on_key(Loop *l, const UiKey *k) {
    l->dirty = true;
    if (k->action == UI_DO_REPLY) {
        on_reply(l, k);
        return;
    }
    notify(l, true);
    if (k->paste && l->keys.cut.cut)
        ui_screen_paste_refused(&l->screen, &l->keys.cut.size);
    else if (k->paste)
        ui_screen_paste(&l->screen, ui_buf_str(&l->keys.paste), l->keys.paste.len);
    else
        ui_screen_key(&l->screen, k);
    if (k->paste) ui_buf_clear(&l->keys.paste);
    if (l->screen.suspend) {
        l->screen.suspend = false;
        ui_term_suspend();
        taken_again(l);
    }
    if (l->screen.editor) {
        l->screen.editor = false;
        run_editor(l);
    }
}

/* k, if there is one, and those that follow from the same bytes; more: others were read with them. */
static void on_keys(Loop *l, bool any, UiKey *k, bool more) {
    for (; any && !l->app->quit; any = ui_keys_more(&l->keys, k)) {
        k->more = more;
        on_key(l, k);
    }
}

static void read_keys(Loop *l) {
    char bytes[4096];
    UiKey k;
    long n = ui_term_read(bytes, sizeof bytes);
    if (n < 0) end(l, 128 + SIGHUP);
    l->key_time = ui_now();
    if (!l->keys.pasting) l->keys.cut.limit = ui_screen_room(&l->screen);
    if (n > 0 && ui_keys_are_paste(&l->keys, bytes, (size_t)n)) ui_keys_begin_paste(&l->keys);
    for (long i = 0; i < n && !l->app->quit; i++)
        on_keys(l, ui_keys_feed(&l->keys, bytes[i], &k), &k, i + 1 < n);
}

static void key_timeout(Loop *l, double now) {
    UiKey k;
    int wait = ui_keys_wait_ms(&l->keys);
    if (wait >= 0 && (now - l->key_time) * 1000 >= wait) on_keys(l, ui_keys_timeout(&l->keys, &k), &k, false);
}

static void on_signal(Loop *l, int sig) {
    static const UiKey stop = { .action = UI_DO_STOP };
    l->dirty = true;
    switch (sig) {
    case SIGTERM: end(l, 143); break;
    case SIGHUP: end(l, 128 + SIGHUP); break;
    case SIGINT: ui_screen_key(&l->screen, &stop); break;
    case SIGWINCH: fit_window(l); break;
    case SIGTSTP:
        ui_term_suspend();
        taken_again(l);
        break;
    case SIGCONT:
        ui_term_continued();
        taken_again(l);
        break;
    default: break;
    }
}

static void use_theme(Loop *l) {
    const UiApp *a = l->app;
    UiTheme theme;
    if (strcmp(l->theme, a->theme) == 0 && l->background == a->background) return;
    if (l->theme[0] && strcmp(l->theme, a->theme) != 0 && strcmp(a->theme, "auto") == 0) ask_again(l);
    ui_theme_make(&theme, a->config, a->theme, a->background);
    ui_term_theme(&theme);
    (void)snprintf(l->theme, sizeof l->theme, "%s", a->theme);
    l->background = a->background;
    l->screen.again = true;
}

/* The first frame waits a little for the answer, so that the colors do not change. */
static void ask_background(Loop *l) {
    l->app->background = ui_theme_colorfgbg(getenv("COLORFGBG"));
    l->keys.replies = ui_term_ask();
    if (l->keys.replies) l->hold = ui_now() + UI_HOLD_SECONDS;
}

#define MORE_CELLS 4096u /* a cut screen grows by as many at least: each time all of it is drawn */

static void measure(Loop *l, int *rows, int *cols) {
    if (l->cut && ui_app_screen_room(l->app) >= l->max_cells + MORE_CELLS) fit_window(l);
    const bool cut = ui_term_size(rows, cols);
    if (cut && !l->cut && l->max_cells < UI_CELLS_MAX)
        ui_screen_flash(&l->screen, "the RAM budget has no memory for all of this window: /budget raises it");
    l->cut = cut;
    ui_app_screen_has(l->app, (size_t)*rows * (size_t)*cols, true);
}

static void draw(Loop *l, double now) {
    UiInputView in;
    int rows, cols;
    use_theme(l);
    ui_input_view(&in);
    measure(l, &rows, &cols);
    ui_screen_draw(&l->screen, &in, rows, cols);
    ui_term_show(&l->screen.canvas, l->screen.again);
    ui_screen_shown(&l->screen);
    l->screen.again = false;
    l->dirty = false;
    l->drawn = now;
}

static double earlier(double a, double b) { return a < b ? a : b; }

/* Numbers change although there are no events. */
static bool moves(const Loop *l, double now) {
    return ui_app_busy(l->app) || ui_app_pinning(l->app) || now < l->calm;
}

/* Maximum milliseconds to sleep. */
static int wait_ms(const Loop *l, double now) {
    double until = now + 60 - (double)(time(NULL) % 60) + 0.05; /* the clock in the title */
    int key = ui_keys_wait_ms(&l->keys);
    if (l->dirty) until = l->hold > now ? l->hold : l->drawn + UI_FRAME_SECONDS;
    if (moves(l, now)) until = earlier(until, l->ticked + UI_TICK_SECONDS);
    if (key >= 0) until = earlier(until, l->key_time + key / 1000.0);
    if (l->screen.choosing && !l->screen.models.open) until = earlier(until, l->screen.choosing_until);
    if (l->screen.flash_until > now) until = earlier(until, l->screen.flash_until);
    if (l->ahead > 0) until = earlier(until, l->ahead);
    double ms = (until - now) * 1000 + 0.999;
    return ms <= 0 ? 0 : (int)ms;
}

static void wait(Loop *l) {
    double now = ui_now();
    struct pollfd fds[5] = {
        { .fd = STDIN_FILENO, .events = POLLIN },
        { .fd = ui_signals_fd(), .events = POLLIN },
        { .fd = l->app->engine.fd(l->app->engine.self), .events = POLLIN },
        { .fd = ui_screen_models_fd(&l->screen), .events = POLLIN },
        { .fd = ui_download_fd(l->app), .events = POLLIN },
    };
    bool flash = l->screen.flash_until > now;
    int n = poll(fds, 5, wait_ms(l, now));
    now = ui_now();
    if (n < 0 && errno != EINTR) end(l, 1);
    for (int sig; (sig = ui_signals_next()) != 0;) on_signal(l, sig);
    if (n > 0 && (fds[0].revents & POLLIN))
        read_keys(l);
    else if (n > 0 && (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
        end(l, 128 + SIGHUP);
    key_timeout(l, now);
    if (ui_screen_models_read(&l->screen, now)) l->dirty = true;
    const bool any = ui_app_pump(l->app);
    ui_screen_take_draft(&l->screen); /* /swap */
    notify(l, false);
    if (any) {
        l->dirty = true;
        l->calm = now + UI_CALM_SECONDS;
    }
    /* No event: the clock advanced or a short message expired. */
    if (n == 0 || (flash && l->screen.flash_until <= now)) l->dirty = true;
}

static void run(Loop *l) {
    UiInputView in;
    while (!l->ended && !l->app->quit) {
        double now = ui_now();
        ui_input_view(&in);
        l->ahead = ui_ahead_watch(l->app, in.text, in.len, now);
        if (now - l->ticked >= UI_TICK_SECONDS) {
            l->dirty = moves(l, now) || l->dirty;
            ui_app_tick(l->app, now);
            l->ticked = now;
        }
        if (l->dirty && now >= l->hold && now - l->drawn >= UI_FRAME_SECONDS) draw(l, now);
        wait(l);
    }
}

int ui_loop_run(UiApp *a, const UiLoopOptions *o, char *err, size_t cap) {
    char notice[400]; /* at least cap */
    Loop l = {
        .app = a, .dirty = true, .keys.knows = ui_input_knows, .notify = o->notify, .max_cells = UI_CELLS_MAX
    };
    if (!ui_term_open(o->color, o->mouse, notice, err, cap)) return -1;
    (void)ui_signals_open(true);
    ui_screen_init(&l.screen, a, o->unicode);
    ask_background(&l);
    l.screen.view.look.links = ui_term_links();
    l.screen.view.look.strike = ui_term_strikes();
    if (notice[0]) ui_app_say(a, UI_NOTICE, "%s", notice);
    if (a->refused[0]) ui_app_say(a, UI_ERROR, "%s", a->refused);
    char *history = qsf_history_path();
    UiInputHooks hooks = { &l, on_enter, on_eof, on_tab, on_editor, a, &a->folds };
    ui_input_open(&hooks, history);
    free(history);
    ui_screen_models_begin(&l.screen);
    ui_screen_take_draft(&l.screen); /* files of the command line */
    fit_window(&l);                  /* it may have changed before its signals were caught */
    run(&l);
    ui_app_finish(a);
    if (l.status == 0 && (a->session.unsaved || a->session.lost)) l.status = 1;
    notify(&l, true);
    if (l.status > 128) ui_input_keep(); /* the window was closed, or the connection to it was lost */
    ui_input_close();
    ui_term_close();
    ui_screen_free(&l.screen);
    ui_keys_free(&l.keys);
    return l.status;
}
