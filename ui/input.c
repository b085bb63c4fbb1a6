/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The input line of the full screen. Only the files ui/input*.c use readline. How to run it inside a screen
 * program (callback handler, own getc, own redisplay, output to nowhere) is known from
 * profanity-im/profanity. */
#include "ui/input.h"

#include <readline/history.h>
#include <readline/readline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app.h"
#include "ui/buf.h"
#include "ui/input_internal.h"
#include "ui/quoted.h"

#define UI_PROMPT "> "

static struct {
    UiInputHooks hooks;
    FILE *nowhere;
    const char *bytes; /* fed and not read yet */
    size_t n;
    UiMenu menu;
    bool ended;
} input;

/* ---- what readline calls ---- */

/* Never blocks: only called while there are bytes, and ^G (abort) ends functions that ask for more. */
static int next_byte(FILE *f) {
    (void)f;
    if (input.n == 0) return 7;
    input.n--;
    return (unsigned char)*input.bytes++;
}

static int bytes_waiting(void) { return input.n > 0; }

static void no_redisplay(void) {}

static void no_prepare(int meta) { (void)meta; }

static void no_deprepare(void) {}

/* The text of a line with its pastes: line itself if it has none, else in whole. */
static const char *whole_text(const char *line, size_t *len, UiBuf *whole) {
    if (!input.hooks.folds || !ui_folds_any(line, *len)) return line;
    ui_folds_expand(input.hooks.folds, line, *len, whole);
    *len = whole->len;
    return ui_buf_str(whole);
}

/* Enter was accepted, or the input ended. */
static void on_line(char *line) {
    UiBuf whole = { 0 };
    size_t len = line ? strlen(line) : 0;
    if (!line) {
        input.ended = true;
        return;
    }
    const char *text = whole_text(line, &len, &whole);
    ui_input_remember(text);
    if (text != line) ui_folds_keep(input.hooks.folds, "", 0);
    ui_buf_free(&whole);
    free(line);
}

static void replace_word(const char *text, size_t len) {
    char *copy = ui_strdup_len(text, len);
    if (!copy) return;
    rl_begin_undo_group();
    rl_delete_text((int)input.menu.list.from, rl_point);
    rl_point = (int)input.menu.list.from;
    rl_insert_text(copy);
    rl_end_undo_group();
    free(copy);
}

/* Enter puts the choice into the line; false: there is none. */
static bool take_choice(void) {
    const UiChoice *o = ui_menu_chosen(&input.menu);
    if (o) replace_word(o->text, strlen(o->text));
    return o != NULL;
}

/* While the user walks through the history, the arrows stay there. */
static bool in_history(void) { return where_history() < history_length; }

/* ---- keys ---- */

static int key_enter(int count, int key) {
    if (take_choice()) return 0;
    ui_menu_forget(&input.menu);
    /* A backslash at the end of the line continues it. */
    if (rl_end > 0 && rl_point == rl_end && rl_line_buffer[rl_end - 1] == '\\') {
        rl_delete_text(rl_end - 1, rl_end);
        rl_point = rl_end;
        rl_insert_text("\n");
        return 0;
    }
    if (ui_quoted_open(rl_line_buffer, (size_t)rl_end)) {
        rl_insert_text("\n");
        return 0;
    }
    UiBuf whole = { 0 };
    size_t len = (size_t)rl_end;
    const char *text = whole_text(rl_line_buffer, &len, &whole);
    const bool taken = !whole.failed && input.hooks.enter(input.hooks.arg, text, len);
    ui_buf_free(&whole);
    if (!taken) return 0;
    return rl_newline(count, key);
}

static int key_newline(int count, int key) {
    (void)count, (void)key;
    rl_insert_text("\n");
    return 0;
}

/* Tab beside a paste puts its text into the line. */
static bool unfold(void) {
    const UiFolds *f = input.hooks.folds;
    int at = rl_point, i = f ? ui_fold_at(rl_line_buffer + at, (size_t)(rl_end - at)) : -1;
    if (f && i < 0 && at >= UI_FOLD_BYTES) {
        at -= UI_FOLD_BYTES;
        i = ui_fold_at(rl_line_buffer + at, UI_FOLD_BYTES);
    }
    if (i < 0 || !f->items[i].text) return false;
    rl_begin_undo_group();
    rl_delete_text(at, at + UI_FOLD_BYTES);
    rl_point = at;
    rl_insert_text(f->items[i].text);
    rl_end_undo_group();
    return true;
}

/* Completes as far as all choices agree; if they do not, shows them, and then page after page. */
static int key_tab(int count, int key) {
    (void)count, (void)key;
    if (unfold()) return 0;
    const char *line = input.hooks.tab ? input.hooks.tab(input.hooks.arg, rl_line_buffer, (size_t)rl_end)
                                       : NULL;
    if (line) {
        rl_replace_line(line, 0);
        rl_point = rl_end;
        ui_menu_forget(&input.menu);
        return 0;
    }
    UiMenu *m = &input.menu;
    if (m->asked && m->list.n > 1) {
        ui_menu_turn(m, 1);
        return 0;
    }
    if (!ui_complete(&m->list, input.hooks.app, rl_line_buffer, (size_t)rl_point)) {
        ui_menu_forget(m);
        return 0;
    }
    size_t common = ui_complete_common(&m->list);
    const bool begins = m->list.at == UI_TYPED_FIRST;
    bool more = (begins && common > (size_t)rl_point - m->list.from) || m->list.n == 1;
    if (more)
        replace_word(m->list.choices[0].text, common);
    else if (!ui_menu_pages(m)) /* all of them are on the screen already */
        ui_menu_choose(m, 1);
    m->asked = m->used = m->list.n > 1;
    return 0;
}

static int key_backtab(int count, int key) {
    (void)count, (void)key;
    if (input.menu.asked && input.menu.list.n > 1) ui_menu_turn(&input.menu, -1);
    return 0;
}

/* In a message over several lines the arrows move between lines before they switch to the history. */
static int key_up(int count, int key) {
    if (input.menu.list.n > 0 && input.menu.asked) {
        ui_menu_choose(&input.menu, -1);
        return 0;
    }
    return ui_input_move_line(-1) ? 0 : rl_get_previous_history(count, key);
}

static int key_down(int count, int key) {
    if (input.menu.list.n > 0 && (input.menu.asked || !in_history())) {
        ui_menu_choose(&input.menu, 1);
        return 0;
    }
    return ui_input_move_line(1) ? 0 : rl_get_next_history(count, key);
}

static int key_editor(int count, int key) {
    (void)count, (void)key;
    input.hooks.editor(input.hooks.arg);
    return 0;
}

/* ---- setting up ---- */

static void bind_keys(void) {
    Keymap maps[] = { rl_get_keymap_by_name("emacs"), rl_get_keymap_by_name("vi-insert") };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        rl_bind_key_in_map('\r', key_enter, maps[i]);
        rl_bind_key_in_map('\n', key_newline, maps[i]);
        rl_bind_key_in_map('\t', key_tab, maps[i]);
        rl_bind_keyseq_in_map("\\C-x\\C-e", key_editor, maps[i]);
        rl_bind_keyseq_in_map("\\e[A", key_up, maps[i]);
        rl_bind_keyseq_in_map("\\eOA", key_up, maps[i]);
        rl_bind_keyseq_in_map("\\e[B", key_down, maps[i]);
        rl_bind_keyseq_in_map("\\eOB", key_down, maps[i]);
        rl_bind_keyseq_in_map("\\e[Z", key_backtab, maps[i]);
    }
    rl_bind_key_in_map('\r', key_enter, rl_get_keymap_by_name("vi-command"));
}

static int set_variables(void) {
    bind_keys();
    ui_input_set_variables(false);
    return 0;
}

void ui_input_open(const UiInputHooks *hooks, const char *history) {
    input.hooks = *hooks;
    input.menu.chosen = -1;
    input.nowhere = fopen("/dev/null", "r+e");
    rl_instream = input.nowhere ? input.nowhere : stdin;
    rl_outstream = input.nowhere ? input.nowhere : stderr;
    ui_input_set_up();
    rl_getc_function = next_byte;
    rl_input_available_hook = bytes_waiting;
    rl_redisplay_function = no_redisplay;
    rl_prep_term_function = no_prepare;
    rl_deprep_term_function = no_deprepare;
    rl_inhibit_completion = 0;
    rl_startup_hook = set_variables;
    ui_input_history_open(history, hooks->app);
    rl_initialize();
    (void)set_variables();
    rl_callback_handler_install(UI_PROMPT, on_line);
}

void ui_input_close(void) {
    if (!input.hooks.enter) return;
    rl_callback_handler_remove();
    ui_input_history_close();
    if (input.nowhere) fclose(input.nowhere);
    rl_instream = stdin;
    rl_outstream = stdout;
    ui_menu_free(&input.menu);
    memset(&input, 0, sizeof input);
}

/* While a command is typed, its choices are shown automatically; those of a file only after Tab. */
static void menu_update(void) {
    UiMenu *m = &input.menu;
    ui_menu_key_done(m);
    const bool shown = rl_end > 0 && (rl_line_buffer[0] == '/' || m->asked);
    if (!shown || RL_ISSTATE(RL_STATE_ISEARCH)) {
        ui_menu_forget(m);
        return;
    }
    bool asked = m->asked;
    ui_menu_fill(m, input.hooks.app, rl_line_buffer, (size_t)rl_point);
    m->asked = asked;
    /* The word is complete: there is nothing to choose. */
    size_t typed = (size_t)rl_point > m->list.from ? (size_t)rl_point - m->list.from : 0;
    const bool begins = m->list.at == UI_TYPED_FIRST;
    if (m->list.n == 1 && begins && strlen(m->list.choices[0].text) <= typed + 1) m->list.n = 0;
    if (m->list.n == 0) ui_menu_shut(m);
}

/* An unassigned function key or similar. readline would drop its first bytes and insert the rest. */
static bool unknown_key(const char *bytes, size_t n) {
    char seq[64];
    int type = ISFUNC;
    size_t at = n > 2 && bytes[1] == '\x1b' ? 1 : 0; /* Alt with such a key */
    if (n < at + 3 || bytes[at] != '\x1b' || (bytes[at + 1] != '[' && bytes[at + 1] != 'O')) return false;
    (void)snprintf(seq, sizeof seq, "%.*s", (int)n, bytes);
    return !rl_function_of_keyseq(seq, rl_get_keymap(), &type) || type == ISKMAP;
}

void ui_input_feed(const char *bytes, size_t n) {
    if (unknown_key(bytes, n)) return;
    input.bytes = bytes;
    input.n = n;
    while (input.n > 0 && !input.ended) rl_callback_read_char();
    input.n = 0;
    if (input.ended) {
        input.ended = false;
        input.hooks.eof(input.hooks.arg);
    }
    menu_update();
}

/* In Emacs mode readline would treat it as the Meta prefix of the next key. */
void ui_input_escape(void) {
    if (rl_editing_mode == 0 || RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH)) ui_input_feed("\x1b", 1);
}

/* Text from outside as that of the line: newlines are \n. malloc'ed, NULL without memory. */
static char *line_text(const char *text, size_t len) {
    char *copy = ui_strdup_len(text, len);
    size_t to = 0;
    if (!copy) return NULL;
    for (size_t i = 0; i < len; i++) {
        if (copy[i] == '\r') {
            if (i + 1 < len && copy[i + 1] == '\n') continue;
            copy[to++] = '\n';
        } else if (copy[i] != '\0') {
            copy[to++] = copy[i];
        }
    }
    copy[to] = '\0';
    ui_folds_clean(copy, to);
    return copy;
}

void ui_input_insert(const char *text, size_t len) {
    char *copy = line_text(text, len);
    if (!copy) return;
    rl_insert_text(copy);
    rl_last_func = NULL; /* the key before was not the last change */
    free(copy);
    menu_update();
}

void ui_input_insert_folded(const char *text, size_t len, int64_t tokens, bool about) {
    UiFold fold = { .text = line_text(text, len), .tokens = tokens, .about = about };
    char mark[UI_FOLD_BYTES + 1] = "";
    if (!fold.text) return;
    fold.len = strlen(fold.text);
    fold.lines = ui_fold_lines(fold.text, fold.len);
    if (!input.hooks.folds || !ui_folds_add(input.hooks.folds, fold, mark)) {
        rl_insert_text(fold.text);
        free(fold.text);
    } else {
        rl_insert_text(mark);
    }
    rl_last_func = NULL;
    menu_update();
}

void ui_input_text(UiBuf *out) {
    UiBuf whole = { 0 };
    size_t len = (size_t)rl_end;
    const char *text = whole_text(rl_line_buffer, &len, &whole);
    ui_buf_add(out, text, len);
    ui_buf_free(&whole);
}

void ui_input_keep(void) {
    UiBuf text = { 0 };
    ui_input_text(&text);
    if (!text.failed) ui_input_remember(ui_buf_str(&text));
    ui_buf_free(&text);
}

void ui_input_replace(const char *text, size_t len) {
    char *copy = line_text(text, len);
    if (!copy) return;
    if (RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH)) ui_input_feed("\x07", 1);
    rl_begin_undo_group();
    rl_delete_text(0, rl_end);
    rl_point = 0;
    rl_insert_text(copy);
    rl_end_undo_group();
    rl_last_func = NULL;
    free(copy);
    menu_update();
}

void ui_input_set(const char *text, size_t len) {
    char *copy = ui_strdup_len(text, len);
    if (!copy) return;
    /* Leaves searches and half-typed key sequences too. */
    rl_callback_sigcleanup();
    rl_clear_message();
    rl_maybe_unsave_line(); /* what Down after the newest entry would bring back */
    rl_free_undo_list();
    using_history();
    rl_replace_line(copy, 1);
    rl_point = rl_end;
    rl_mark = 0;
    free(copy);
    ui_menu_forget(&input.menu);
}

UiDiscarded ui_input_discard(void) {
    if (RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH)) {
        ui_input_feed("\x07", 1);
        return UI_DISCARDED_SEARCH;
    }
    if (rl_end == 0) return UI_DISCARDED_NOTHING;
    /* An entry of the history that was recalled and not changed is there already. */
    HIST_ENTRY *recalled = current_history();
    bool same = recalled && strcmp(recalled->line, rl_line_buffer) == 0;
    const bool new = !same &&ui_input_is_new(rl_line_buffer);
    const int len = rl_end;
    char *copy = ui_strdup_len(rl_line_buffer, (size_t)len);
    ui_input_set("", 0);
    UiBuf whole = { 0 };
    size_t whole_len = (size_t)len;
    if (copy && new) add_history(whole_text(copy, &whole_len, &whole));
    ui_buf_free(&whole);
    using_history();
    if (copy) rl_add_undo(UNDO_DELETE, 0, len, copy); /* which owns it */
    return UI_DISCARDED_TEXT;
}

void ui_input_view(UiInputView *v) {
    *v = (UiInputView){ .prompt = UI_PROMPT, .text = rl_line_buffer ? rl_line_buffer : "" };
    if (rl_display_prompt && *rl_display_prompt) v->prompt = rl_display_prompt;
    v->len = rl_end > 0 ? (size_t)rl_end : 0;
    v->point = rl_point > 0 ? (size_t)rl_point : 0;
    v->menu = &input.menu;
    v->folds = input.hooks.folds;
    v->whole = v->len;
    if (v->folds) v->whole = ui_folds_size(v->folds, v->text, v->len, &v->pasted);
}

void ui_input_menu_page(size_t rows) { input.menu.page = rows; }

bool ui_input_menu_turn(int by) {
    if (!input.menu.asked || input.menu.list.n == 0) return false;
    ui_menu_turn(&input.menu, by);
    input.menu.used = false; /* the line does not get this key */
    return true;
}

bool ui_input_menu_leave(void) {
    if (!input.menu.asked && input.menu.list.n == 0) return false;
    ui_menu_forget(&input.menu); /* until the next key */
    return true;
}
