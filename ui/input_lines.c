/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys in a message of several lines, which for readline are one line; and which keys readline has. */
#include <readline/readline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/input.h"
#include "ui/input_internal.h"

/* The line in which the cursor is: [line_start(), line_end()). */
static int line_start(void) {
    int at = rl_point;
    while (at > 0 && rl_line_buffer[at - 1] != '\n') at--;
    return at;
}

static int line_end(void) {
    int at = rl_point;
    while (at < rl_end && rl_line_buffer[at] != '\n') at++;
    return at;
}

/* ---- clusters: what is one character on the screen may be several for readline ---- */

/* The end of the cluster at `at`. */
static int cluster_end(int at, int *cells) {
    return at + (int)qsf_text_grapheme(rl_line_buffer + at, (size_t)(rl_end - at), cells);
}

/* The beginning of the cluster that ends at `at`. An ASCII character begins one. */
static int cluster_before(int at) {
    int from = at > 0 ? at - 1 : 0, cells;
    while (from > 0 && ((unsigned char)rl_line_buffer[from] & 0x80)) from--;
    for (int next; (next = cluster_end(from, &cells)) < at && next > from;) from = next;
    return from;
}

static int key_forward(int count, int key);

static int key_backward(int count, int key) {
    if (count < 0) return key_forward(-count, key);
    for (; count > 0 && rl_point > 0; count--) rl_point = cluster_before(rl_point);
    return 0;
}

static int key_forward(int count, int key) {
    int cells;
    if (count < 0) return key_backward(-count, key);
    for (; count > 0 && rl_point < rl_end; count--) rl_point = cluster_end(rl_point, &cells);
    return 0;
}

static void remove_between(int from, int to) {
    if (from == to) return;
    if (rl_explicit_arg)
        rl_kill_text(from, to);
    else
        rl_delete_text(from, to);
    rl_point = from;
}

static int key_rubout(int count, int key) {
    const int to = rl_point;
    if (rl_insert_mode == 0 || count < 0 || to == 0) return rl_rubout(count, key);
    (void)key_backward(count, key);
    remove_between(rl_point, to);
    return 0;
}

static int key_delete(int count, int key) {
    const int from = rl_point;
    if (count < 0 || from == rl_end) return rl_delete(count, key);
    (void)key_forward(count, key);
    remove_between(from, rl_point);
    return 0;
}

/* To the same column, as far as the line has it. */
bool ui_input_move_line(int by) {
    const int start = line_start(), end = line_end();
    int column = 0, cells;
    if (by < 0 ? start == 0 : end == rl_end) return false;
    for (int at = start; at < rl_point; column += cells) at = cluster_end(at, &cells);
    rl_point = by < 0 ? start - 1 : end + 1;
    const int last = line_end();
    rl_point = line_start();
    for (int next; rl_point < last && column > 0; rl_point = next, column -= cells) {
        next = cluster_end(rl_point, &cells);
        if (cells > column) break;
    }
    return true;
}

static int key_home(int count, int key) {
    (void)count, (void)key;
    const int start = line_start();
    rl_point = rl_point > start ? start : 0;
    return 0;
}

static int key_end(int count, int key) {
    (void)count, (void)key;
    const int end = line_end();
    rl_point = rl_point < end ? end : rl_end;
    return 0;
}

/* Removes the text between the cursor and `to`; ^Y inserts it. */
static void kill_to(int to) {
    const int from = rl_point;
    if (from == to) return;
    rl_kill_text(from, to);
    rl_point = from < to ? from : to;
}

/* At the end of a line the first press joins the next line. */
static int key_kill(int count, int key) {
    const int end = line_end();
    if (rl_explicit_arg) return rl_kill_line(count, key);
    kill_to(rl_point < end             ? end
            : rl_last_func == key_kill ? rl_end
            : rl_point < rl_end        ? rl_point + 1
                                       : rl_point);
    return 0;
}

static int key_discard(int count, int key) {
    (void)count, (void)key;
    const int start = line_start();
    kill_to(rl_point > start ? start : rl_last_func == key_discard ? 0 : rl_point > 0 ? rl_point - 1 : 0);
    return 0;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* readline counts a newline as a letter of a word. */
static int key_word(int count, int key) {
    (void)key;
    int at = rl_point;
    for (; count > 0 && at > 0; count--) {
        if (rl_line_buffer[at - 1] == '\n') {
            at--;
            continue;
        }
        while (at > 0 && is_blank(rl_line_buffer[at - 1])) at--;
        while (at > 0 && !is_blank(rl_line_buffer[at - 1]) && rl_line_buffer[at - 1] != '\n') at--;
    }
    kill_to(at);
    return 0;
}

/* Every key of the function `from` calls `to` instead. */
static void replace(Keymap map, rl_command_func_t *from, rl_command_func_t *to) {
    char **keys = rl_invoking_keyseqs_in_map(from, map);
    for (size_t i = 0; keys && keys[i]; i++) {
        rl_bind_keyseq_in_map(keys[i], to, map);
        free(keys[i]);
    }
    free(keys);
}

/* Terminals send these whatever terminfo says. */
static void bind_unbound(Keymap map, const char *const *keys, rl_command_func_t *f) {
    for (; *keys; keys++) rl_bind_keyseq_if_unbound_in_map(*keys, f, map);
}

void ui_input_bind_lines(void) {
    static const char *const home[] = { "\\e[H", "\\eOH", "\\e[1~", "\\e[7~", NULL };
    static const char *const end[] = { "\\e[F", "\\eOF", "\\e[4~", "\\e[8~", NULL };
    static const char *const delete[] = { "\\e[3~", NULL };
    Keymap maps[] = { rl_get_keymap_by_name("emacs"), rl_get_keymap_by_name("vi-insert") };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        bind_unbound(maps[i], home, key_home);
        bind_unbound(maps[i], end, key_end);
        bind_unbound(maps[i], delete, key_delete);
        replace(maps[i], rl_forward_char, key_forward);
        replace(maps[i], rl_backward_char, key_backward);
        replace(maps[i], rl_rubout, key_rubout);
        replace(maps[i], rl_delete, key_delete);
        replace(maps[i], rl_beg_of_line, key_home);
        replace(maps[i], rl_end_of_line, key_end);
        replace(maps[i], rl_kill_line, key_kill);
        replace(maps[i], rl_unix_line_discard, key_discard);
        replace(maps[i], rl_unix_word_rubout, key_word);
    }
}

bool ui_input_knows(const char *seq, size_t n) {
    /* Arguments and marks, of which nothing is shown, completion by readline, which is not ours, searches
     * that take the text that follows, and a function that ends the line without sending it. */
    static rl_command_func_t *const useless[] = {
        rl_digit_argument,
        rl_set_mark,
        rl_tab_insert,
        rl_tilde_expand,
        rl_possible_completions,
        rl_complete,
        rl_insert_completions,
        rl_insert_comment,
        rl_noninc_reverse_search,
        rl_noninc_forward_search,
        rl_menu_complete,
        rl_do_lowercase_version,
    };
    char copy[8];
    int type = ISFUNC;
    if (rl_editing_mode == 0 || n >= sizeof copy) return false; /* in vi mode Esc is a separate key */
    (void)snprintf(copy, sizeof copy, "%.*s", (int)n, seq);
    rl_command_func_t *f = rl_function_of_keyseq(copy, rl_get_keymap(), &type);
    if (f == rl_do_lowercase_version && seq[n - 1] >= 'A' && seq[n - 1] <= 'Z') {
        copy[n - 1] = (char)(seq[n - 1] | 0x20);
        f = rl_function_of_keyseq(copy, rl_get_keymap(), &type);
    }
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++)
        if (f == useless[i]) return false;
    bool control = (unsigned char)seq[n - 1] < 0x20 && seq[n - 1] != '\b';
    return f != NULL && type == ISFUNC && !control;
}
