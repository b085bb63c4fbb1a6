/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The input line of the line mode: readline edits it on the terminal by itself. */
#include "ui/input_plain.h"

#include <readline/history.h>
#include <readline/readline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "ui/app.h"
#include "ui/complete.h"
#include "ui/flow.h"
#include "ui/input_internal.h"
#include "ui/term.h"

#define UI_LISTED 20 /* completions that one Tab lists */

static struct {
    const UiApp *app;
    UiCompletion list;
    UiBuf of;     /* the text that the list completes */
    size_t shown; /* of the list */
    char *line;   /* what was entered */
    char prompt[8];
    UiBuf held; /* the next lines, as far as they are known */
    int typed;  /* unread bytes that may have arrived while the terminal took lines, as during an answer */
    int end;    /* the key that ends the input, mostly ^D */
    bool open, active, ended, editor;
} plain;

/* ---- keys */

static int key_newline(int count, int key) {
    (void)count, (void)key;
    rl_insert_text("\n");
    return 0;
}

/* A backslash at the end of the line continues it. */
static int key_enter(int count, int key) {
    if (rl_end > 0 && rl_point == rl_end && rl_line_buffer[rl_end - 1] == '\\') {
        rl_delete_text(rl_end - 1, rl_end);
        rl_point = rl_end;
        return key_newline(1, '\n');
    }
    return rl_newline(count, key);
}

static void replace_word(const char *text, size_t len) {
    char *copy = ui_strdup_len(text, len);
    if (!copy) return;
    rl_begin_undo_group();
    rl_delete_text((int)plain.list.from, rl_point);
    rl_point = (int)plain.list.from;
    rl_insert_text(copy);
    rl_end_undo_group();
    free(copy);
}

static void put_out(void *arg, const char *s, size_t len) {
    (void)arg;
    (void)fwrite(s, 1, len, rl_outstream);
}

static void list_choice(const char *text, const char *help) {
    UiFlow f = { .write = put_out };
    int rows;
    rl_get_screen_size(&rows, &f.width);
    ui_flow_add(&f, text, strlen(text));
    if (*help) ui_flow_add(&f, "  ", 2);
    ui_flow_add(&f, help, strlen(help));
    ui_flow_add(&f, "\n", 1);
    ui_flow_end(&f);
}

/* A line for each, as many as one hears without losing the thread. */
static void list_more(void) {
    const UiCompletion *l = &plain.list;
    if (plain.shown >= l->n) plain.shown = 0;
    rl_crlf();
    for (size_t i = 0; i < UI_LISTED && plain.shown < l->n; i++, plain.shown++) {
        const UiChoice *o = &l->choices[plain.shown];
        char *text = qsf_clean_dup(o->text, strlen(o->text), true);
        char *help = qsf_clean_dup(o->help, strlen(o->help), true);
        list_choice(text ? text : "", help ? help : "");
        free(text);
        free(help);
    }
    if (plain.shown < l->n) fprintf(rl_outstream, "%zu more: Tab\n", l->n - plain.shown);
    rl_on_new_line();
}

/* Completes as far as all choices agree, then lists them. */
static int key_tab(int count, int key) {
    (void)count, (void)key;
    UiCompletion *l = &plain.list;
    const size_t point = (size_t)rl_point;
    const bool again = plain.of.len == point && point > 0 &&
                       memcmp(plain.of.data, rl_line_buffer, point) == 0;
    if (again && l->n > 1) {
        list_more();
        return 0;
    }
    plain.shown = 0;
    ui_buf_clear(&plain.of);
    if (!ui_complete(l, plain.app, rl_line_buffer, point)) return 0;
    const size_t common = ui_complete_common(l);
    const bool more = l->at == UI_TYPED_FIRST && common > point - l->from;
    if (more || l->n == 1) {
        replace_word(l->choices[0].text, common);
        return 0;
    }
    ui_buf_add(&plain.of, rl_line_buffer, point);
    list_more();
    return 0;
}

static int key_editor(int count, int key) {
    (void)count, (void)key;
    plain.editor = true;
    return 0;
}

static int set_up(void) {
    Keymap maps[] = { rl_get_keymap_by_name("emacs"), rl_get_keymap_by_name("vi-insert") };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        rl_bind_key_in_map('\r', key_enter, maps[i]);
        rl_bind_key_in_map('\n', key_enter, maps[i]); /* Enter that was typed during an answer */
        rl_bind_key_in_map('\t', key_tab, maps[i]);
        rl_bind_keyseq_in_map("\\C-o", key_editor, maps[i]);
        rl_bind_keyseq_in_map("\\C-x\\C-e", key_editor, maps[i]);
        rl_bind_keyseq_in_map("\\e\\C-m", key_newline, maps[i]);
        rl_bind_keyseq_in_map("\\e\\C-j", key_newline, maps[i]);
    }
    ui_input_set_variables(true);
    return 0;
}

/* ---- what was typed before */

/* Linux keeps the key that ends the input as a null byte while the terminal takes lines. */
static int get_byte(FILE *f) {
    const int c = rl_getc(f);
    if (plain.typed <= 0) return c;
    plain.typed--;
    return c == '\0' ? plain.end : c;
}

static void look_for_typed(void) {
    struct termios t;
    plain.end = tcgetattr(STDIN_FILENO, &t) == 0 ? t.c_cc[VEOF] : 0;
    if (ioctl(STDIN_FILENO, FIONREAD, &plain.typed) != 0) plain.typed = 0;
}

/* ---- what the line mode calls */

static void on_line(char *line) {
    rl_callback_handler_remove();
    plain.active = false;
    plain.ended = line == NULL;
    if (line) ui_input_remember(line);
    free(plain.line);
    plain.line = line;
}

void ui_plain_open(const UiApp *app, const char *history, bool on_stderr) {
    plain.app = app;
    plain.open = true;
    rl_instream = stdin;
    rl_outstream = on_stderr ? stderr : stdout;
    rl_getc_function = get_byte;
    ui_input_set_up();
    rl_startup_hook = set_up;
    ui_input_history_open(history, app);
    (void)ui_term_described(); /* then readline finds the description, too */
    rl_initialize();
    (void)set_up();
}

bool ui_plain_is_open(void) { return plain.open; }

/* Takes the next one of the lines that are held; NULL: there is none. */
static char *take_held(void) {
    UiBuf *b = &plain.held;
    if (b->len == 0) return NULL;
    const char *end = memchr(b->data, '\n', b->len);
    const size_t len = end ? (size_t)(end - b->data) : b->len, used = len + (end ? 1 : 0);
    char *line = ui_strdup_len(b->data, len);
    memmove(b->data, b->data + used, b->len - used);
    b->len -= used;
    return line;
}

static void install(void) {
    rl_callback_handler_install(plain.prompt, on_line);
    look_for_typed();
}

void ui_plain_begin(const char *prompt) {
    if (!plain.open || plain.active) return;
    plain.active = true;
    (void)snprintf(plain.prompt, sizeof plain.prompt, "%s", prompt);
    install();
    char *line = take_held();
    if (line) rl_insert_text(line);
    if (line) rl_redisplay();
    free(line);
}

void ui_plain_hold(const char *text, size_t len) { ui_buf_add(&plain.held, text, len); }

UiPlainRead ui_plain_read(UiBuf *line) {
    if (plain.active) rl_callback_read_char();
    const bool editor = plain.editor;
    plain.editor = false;
    if (plain.active) return editor ? UI_PLAIN_EDITOR : UI_PLAIN_MORE;
    if (plain.ended) return UI_PLAIN_END;
    ui_buf_clear(line);
    ui_buf_puts(line, plain.line ? plain.line : "");
    free(plain.line);
    plain.line = NULL;
    return UI_PLAIN_LINE;
}

bool ui_plain_hide(void) {
    if (plain.active) rl_clear_visible_line();
    return plain.active;
}

void ui_plain_show(void) {
    if (!plain.active) return;
    rl_on_new_line();
    rl_redisplay();
}

UiDiscarded ui_plain_discard(void) {
    if (plain.active && RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH)) {
        (void)rl_stuff_char('\x07'); /* ^G leaves it: the line is what it was */
        rl_callback_read_char();
        return UI_DISCARDED_SEARCH;
    }
    if (!plain.active || rl_end == 0) return UI_DISCARDED_NOTHING;
    rl_callback_sigcleanup();
    for (char *line; (line = take_held()) != NULL; free(line))
        if (ui_input_is_new(line)) add_history(line);
    if (ui_input_is_new(rl_line_buffer)) add_history(rl_line_buffer);
    rl_point = rl_end;
    rl_redisplay();
    plain.active = false;
    fputs("^C", rl_outstream);
    rl_crlf();
    rl_callback_handler_remove();
    install();
    plain.active = true;
    return UI_DISCARDED_TEXT;
}

void ui_plain_text(UiBuf *out) {
    if (plain.active) ui_buf_add(out, rl_line_buffer, (size_t)rl_end);
}

void ui_plain_replace(const char *text, size_t len) {
    char *copy = plain.active ? ui_strdup_len(text, len) : NULL;
    if (!copy) return;
    rl_begin_undo_group();
    rl_delete_text(0, rl_end);
    rl_point = 0;
    rl_insert_text(copy);
    rl_end_undo_group();
    free(copy);
}

void ui_plain_resized(void) {
    if (plain.active)
        rl_resize_terminal();
    else if (plain.open) /* without the prompt, which would be in the middle of the answer */
        rl_reset_screen_size();
}

void ui_plain_release(void) {
    if (plain.active) rl_deprep_terminal();
}

void ui_plain_take(void) {
    if (!plain.active) return;
    rl_prep_terminal(1);
    look_for_typed();
    rl_on_new_line();
    rl_redisplay();
}

void ui_plain_close(void) {
    if (!plain.open) return;
    if (plain.active) rl_callback_handler_remove();
    ui_input_history_close();
    ui_complete_free(&plain.list);
    ui_buf_free(&plain.of);
    ui_buf_free(&plain.held);
    free(plain.line);
    memset(&plain, 0, sizeof plain);
}
