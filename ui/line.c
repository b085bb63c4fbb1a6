/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat in line mode. */
#include "ui/line.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "qsf_chatlog.h"
#include "qsf_cli.h"
#include "qsf_decode.h"
#include "ui/flow.h"
#include "ui/guide.h"
#include "ui/input_plain.h"
#include "ui/line_events.h"
#include "ui/line_keys.h"
#include "ui/quoted.h"
#include "ui/typeahead.h"
#include "ui/ui_signals.h"

typedef struct Line {
    UiApp *app;
    UiBuf in; /* read but not used yet, as UTF-8 */
    QSFDecode decoder;
    size_t taken; /* bytes of it already returned */
    bool eof;
    UiLines lines;
    const char *script;   /* the file that is standard input, or NULL */
    unsigned line, first; /* lines of it so far; the number of the one that began the message */
    bool prompt;          /* standard input is a terminal: prompts are shown */
    bool quiet;           /* only answers, errors and what commands print */
    bool clean;           /* standard output is a terminal */
    QSFClean cleaner;
    UiFlow flow;     /* of an answer on a terminal */
    size_t newlines; /* held back at the end of the answer so far */
    bool named;      /* the name before an answer is the last thing on the line */
    bool thinking;   /* hidden reasoning was announced */
    bool leaving;    /* ^C again leaves */
    bool ended;
    bool broken; /* standard output cannot be written, which was reported */
    int status;
} Line;

static void end(Line *l, int status) {
    if (!l->ended) l->status = status;
    l->ended = true;
}

/* ---- output ---- */

/* A closed pipe is not reported as an error. */
static void out(Line *l, const char *s, size_t len) {
    qsf_cli_begin_output();
    while (len > 0 && !l->ended) {
        ssize_t n = write(STDOUT_FILENO, s, len);
        if (n > 0) {
            s += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
            (void)poll(&p, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            if (errno != EPIPE)
                fprintf(stderr, "qsf-chat: %s: %s\n", qsf_cli_stream(STDOUT_FILENO), strerror(errno));
            l->broken = true;
            end(l, 1);
        }
    }
}

/* Newlines are held back until text follows: the answer ends with exactly one. */
static void out_text(Line *l, const char *s, size_t len) {
    while (len > 0 && !l->ended) {
        size_t n = 0;
        while (n < len && s[n] == '\n') n++;
        l->newlines += n;
        s += n;
        len -= n;
        const char *nl = len > 0 ? memchr(s, '\n', len) : NULL;
        n = nl ? (size_t)(nl - s) : len;
        for (; n > 0 && l->newlines > 0; l->newlines--) out(l, "\n", 1);
        out(l, s, n);
        s += n;
        len -= n;
    }
}

static void out_clean(Line *l, const char *s, size_t len, bool last) {
    char *tmp = malloc(QSF_CLEAN_MAX(len));
    if (!tmp) return;
    ui_flow_add(&l->flow, tmp, qsf_clean(&l->cleaner, s, len, last, tmp));
    free(tmp);
}

static void out_word(void *arg, const char *s, size_t len) { out_text(arg, s, len); }

/* Cells of a line on a terminal; 0 = unknown, or not a terminal. */
static int columns_of(int fd) {
    struct winsize w;
    return ioctl(fd, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

/* The same for a line of text. */
static int width_of(const Line *l, int fd) {
    const int columns = columns_of(fd), most = l->app->text_width;
    return most > 0 && columns > most ? most : columns;
}

static void answer_begin(void *arg) {
    Line *l = arg;
    l->newlines = 0;
    l->thinking = false;
    l->cleaner = (QSFClean){ .ascii = l->app->chat.ascii };
    l->flow = (UiFlow){ .write = out_word, .arg = l, .width = l->clean ? width_of(l, STDOUT_FILENO) : 0 };
    if (!l->prompt || l->quiet) return;
    const char *name = l->app->stats.model_name[0] ? l->app->stats.model_name : "model";
    fprintf(stderr, "%s: ", name);
    l->named = true;
    l->flow.col = isatty(STDERR_FILENO) ? (int)qsf_text_width(name, strlen(name)) + 2 : 0;
}

static void answer_text(void *arg, const char *text, size_t len) {
    Line *l = arg;
    if (len > 0) l->named = false;
    if (l->clean)
        out_clean(l, text, len, false);
    else
        out_text(l, text, len);
}

/* Only on request; a terminal shows why there is no output yet. */
static void answer_thought(void *arg, const char *text, size_t len) {
    Line *l = arg;
    if (l->app->settings.show_thinking) {
        answer_text(arg, text, len);
    } else if (l->prompt && !l->quiet && !l->thinking) {
        fputs("(thinking)\n", stderr);
        l->thinking = true;
        l->named = false;
    }
}

static void answer_end(void *arg) {
    Line *l = arg;
    if (l->clean) out_clean(l, "", 0, true);
    ui_flow_end(&l->flow);
    out(l, "\n", 1);
    l->named = false;
    if (l->prompt && !l->quiet && l->app->stopping) fputs("[stopped]\n", stderr);
}

static void put_stderr(void *arg, const char *s, size_t len) {
    (void)arg;
    (void)fwrite(s, 1, len, stderr);
}

/* Broken at words; what commands print may have tables as wide as the terminal. */
static void say_lines(const Line *l, UiKind kind, const char *text, size_t len) {
    static const char head[] = "qsf-chat: ";
    UiFlow f = { .write = put_stderr,
                 .width = kind == UI_OUTPUT ? columns_of(STDERR_FILENO) : width_of(l, STDERR_FILENO) };
    ui_flow_add(&f, head, kind == UI_OUTPUT ? 0 : sizeof head - 1);
    ui_flow_add(&f, text, len);
    ui_flow_end(&f);
    fputc('\n', stderr);
}

static void said(void *arg, UiKind kind, const char *text) {
    Line *l = arg;
    if (l->quiet && kind == UI_NOTICE) return;
    char *clean = qsf_clean_dup(text, strlen(text), false);
    if (!clean) return;
    size_t len = strlen(clean);
    while (len > 0 && clean[len - 1] == '\n') len--;
    const bool hidden = ui_plain_hide();
    if (l->named) fputc('\n', stderr);
    l->named = false;
    say_lines(l, kind, clean, len);
    if (hidden) ui_plain_show();
    free(clean);
}

/* ---- input ---- */

static void show_prompt(const Line *l) {
    const char *prompt = l->quiet ? "" : l->lines.inside ? ". " : "> ";
    if (l->ended || l->app->quit) return;
    if (ui_plain_is_open())
        ui_plain_begin(prompt);
    else if (l->prompt)
        fputs(prompt, stderr);
}

/* Stops what runs; on a terminal nothing that was typed meanwhile is sent by itself. */
static bool stop(Line *l) {
    const bool source = ui_source_drop(l->app), any = ui_app_stop(l->app) || source;
    if (!any && !ui_download_stop(l->app)) return false;
    if (!l->prompt) return true;
    ui_line_keep_typed(l->app, ui_buf_str(&l->in) + l->taken, l->in.len - l->taken);
    l->taken = l->in.len;
    return true;
}

/* At the prompt of a terminal ^C empties the line first, and leaves when it is pressed again. */
static void interrupt(Line *l) {
    const UiDiscarded got = ui_plain_discard();
    const bool text = got == UI_DISCARDED_TEXT, again = l->leaving && !text;
    l->leaving = false;
    if (got == UI_DISCARDED_SEARCH || (!text && stop(l))) return;
    if (again || !l->prompt) {
        end(l, 130);
        return;
    }
    l->leaving = true;
    ui_line_end_echo();
    ui_app_print(l->app, UI_OUTPUT,
                 text ? "^C again, or ^D, leaves; Up brings the text back" : "^C again, or ^D, leaves");
    if (!ui_plain_is_open()) show_prompt(l);
}

static void on_signal(Line *l, int sig) {
    switch (sig) {
    case SIGTERM: end(l, 143); break;
    case SIGHUP: end(l, 128 + SIGHUP); break;
    case SIGINT: interrupt(l); break;
    case SIGWINCH: ui_plain_resized(); break;
    case SIGTSTP:
        ui_plain_release();
        ui_typeahead_restore();
        (void)raise(SIGSTOP);
        break;
    case SIGCONT:
        ui_typeahead_keep();
        ui_plain_take();
        break;
    default: break;
    }
}

static void take_signals(Line *l) {
    for (int sig; (sig = ui_signals_next()) != 0;) on_signal(l, sig);
}

/* Waits for input, the engine or a signal. */
static void wait_for(Line *l, bool input) {
    bool busy = ui_app_busy(l->app);
    struct pollfd fds[4] = {
        { .fd = ui_signals_fd(), .events = POLLIN },
        { .fd = l->app->engine.fd(l->app->engine.self), .events = POLLIN },
        { .fd = ui_download_fd(l->app), .events = POLLIN },
        { .fd = input ? STDIN_FILENO : -1, .events = POLLIN },
    };
    (void)poll(fds, 4, busy ? 250 : -1);
    take_signals(l);
    (void)ui_app_pump(l->app);
    if (busy) ui_app_tick(l->app, ui_now());
}

static bool works(const UiApp *a) { return ui_app_busy(a) || a->replanning || ui_download_running(a); }

static void finish_request(Line *l) {
    while (works(l->app) && !l->ended) wait_for(l, false);
}

static void read_more(Line *l) {
    char bytes[16384];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n > 0) {
        if (l->taken > 0) {
            memmove(l->in.data, l->in.data + l->taken, l->in.len - l->taken);
            l->in.len -= l->taken;
            l->taken = 0;
        }
        char text[QSF_DECODE_MAX(sizeof bytes)];
        ui_buf_add(&l->in, text, qsf_decode(&l->decoder, bytes, (size_t)n, false, text));
    } else if (n == 0) {
        char text[QSF_DECODE_MAX(0)];
        ui_buf_add(&l->in, text, qsf_decode(&l->decoder, "", 0, true, text));
        l->eof = true;
        if (l->decoder.damaged)
            fprintf(stderr, "qsf-chat: %s: %s\n", qsf_cli_stream(STDIN_FILENO), QSF_DECODE_DAMAGED);
    } else if (errno != EINTR && errno != EAGAIN) {
        fprintf(stderr, "qsf-chat: %s: %s\n", qsf_cli_stream(STDIN_FILENO), strerror(errno));
        end(l, 1);
    }
}

/* The next part of a line without its newline; false if there is none yet. *ends: it ends the line. */
static bool next_part(Line *l, const char **part, size_t *len, bool *ends) {
    const char *s = ui_buf_str(&l->in) + l->taken;
    const size_t have = l->in.len - l->taken;
    const char *nl = have > 0 ? memchr(s, '\n', have) : NULL;
    *part = s;
    *len = nl ? (size_t)(nl - s) : have;
    *ends = nl != NULL;
    l->taken += *len + (nl ? 1 : 0);
    return have > 0;
}

static void submit(Line *l) {
    UiLines *m = &l->lines;
    char *where = l->app->where;
    if (l->script) (void)snprintf(where, sizeof l->app->where, "%.280s:%u", l->script, l->first);
    if (m->cut.cut)
        ui_app_say_too_long(l->app, &m->cut.size, m->cut.limit);
    else if (m->text.failed)
        ui_app_say(l->app, UI_ERROR, "out of memory: the message was not sent");
    else
        (void)ui_app_submit(l->app, ui_buf_str(&m->text), m->text.len);
    (void)ui_app_pump(l->app);
    finish_request(l);
    where[0] = '\0';
}

static void end_line(Line *l) {
    l->line++;
    if (ui_lines_end_line(&l->lines)) submit(l);
    show_prompt(l);
}

static void take_lines(Line *l) {
    const char *part;
    size_t len;
    bool ends;
    while (!l->ended && !l->app->quit && next_part(l, &part, &len, &ends)) {
        if (ui_lines_at_start(&l->lines)) {
            l->lines.cut.limit = ui_app_text_room(l->app);
            l->first = l->line + 1;
        }
        ui_lines_add(&l->lines, part, len);
        if (ends) end_line(l);
    }
    if (l->eof && l->lines.begun && !l->ended && !l->app->quit) end_line(l);
}

/* A line that readline has edited; with newlines of its own it is one message. */
static void take_edited(Line *l) {
    UiBuf line = { 0 };
    const UiPlainRead got = ui_plain_read(&line);
    const int sig = got == UI_PLAIN_EDITOR ? ui_line_edit(l->app) : 0;
    if (sig != 0) end(l, 128 + sig);
    if (got == UI_PLAIN_END) l->eof = true;
    if (got == UI_PLAIN_LINE) {
        if (ui_lines_at_start(&l->lines)) l->lines.cut.limit = ui_app_text_room(l->app);
        ui_lines_add(&l->lines, ui_buf_str(&line), line.len);
        end_line(l);
    }
    ui_buf_free(&line);
}

static void run(Line *l) {
    show_prompt(l);
    while (!l->ended && !l->app->quit) {
        take_lines(l);
        if (l->eof || l->ended || l->app->quit) break;
        wait_for(l, true);
        struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
        if (l->ended || poll(&p, 1, 0) <= 0) continue;
        l->leaving = false;
        if (ui_plain_is_open())
            take_edited(l);
        else
            read_more(l);
    }
    if (l->eof && !l->ended && !l->app->quit) {
        take_lines(l);
        if (ui_lines_end(&l->lines)) submit(l);
        if (l->prompt) fputc('\n', stderr);
    }
}

/* JSON has no control characters, but may have others that a terminal must not get. */
static void write_event(void *arg, const char *text, size_t len) {
    Line *l = arg;
    char *clean = l->clean ? qsf_clean_dup(text, len, false) : NULL;
    if (clean)
        out(l, clean, strlen(clean));
    else if (!l->clean)
        out(l, text, len);
    free(clean);
}

static UiHooks text_hooks(Line *l) {
    return (UiHooks){ .arg = l,
                      .said = said,
                      .answer_begin = answer_begin,
                      .answer_thought = answer_thought,
                      .answer_text = answer_text,
                      .answer_end = answer_end };
}

/* Whether readline edits lines: on a terminal that can move its cursor, where the line can be seen. */
static bool edits(const Line *l, const UiLineOptions *o) {
    const char *term = getenv("TERM");
    const bool seen = isatty(STDERR_FILENO) == 1 || l->clean;
    return l->prompt && seen && !o->json && term && *term && strcmp(term, "dumb") != 0;
}

static void open_edit(Line *l, const UiLineOptions *o) {
    if (!edits(l, o)) return;
    char *history = qsf_history_path();
    ui_plain_open(l->app, history, isatty(STDERR_FILENO) == 1);
    free(history);
}

int ui_line_run(UiApp *a, const UiLineOptions *o) {
    Line l = { .app = a,
               .prompt = isatty(STDIN_FILENO) == 1,
               .clean = isatty(STDOUT_FILENO) == 1,
               .script = o->script };
    UiLineEvents events = {
        .app = a, .write = write_event, .arg = &l, .quiet = o->quiet, .top_logprobs = o->top_logprobs
    };
    l.quiet = o->quiet || o->json;
    a->hooks = o->json ? ui_line_events(&events) : text_hooks(&l);
    a->interactive = l.prompt;
    if (o->json) ui_line_events_begin(&events);
    (void)ui_signals_open(edits(&l, o));
    open_edit(&l, o);
    ui_typeahead_keep();
    bool loading = works(a);
    if (a->refused[0]) {
        ui_app_say(a, UI_ERROR, "%s", a->refused);
        end(&l, QSF_EXIT_MODEL);
    }
    finish_request(&l);
    /* Without the requested model no later command makes sense; the guide was not requested. */
    bool failed = loading && !a->model_ready && a->exit_code != 0;
    if (failed && !ui_guide_is(a->model_path)) end(&l, a->exit_code);
    a->started = true;
    if (!l.ended) run(&l);
    ui_plain_close();
    ui_typeahead_restore();
    ui_app_finish(a);
    ui_buf_free(&l.in);
    ui_buf_free(&l.lines.text);
    a->hooks = (UiHooks){ 0 };
    const int status = l.ended ? l.status : a->exit_code;
    if (status == 0) qsf_cli_begin_output();
    l.ended = l.broken; /* how it ended is said even where the program was stopped */
    if (o->json) ui_line_events_end(&events, status);
    return status;
}
