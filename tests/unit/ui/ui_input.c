/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The input line with raw key bytes: the menu, unassigned keys, and output in the pager. */
#include "tests/harness/app_rig.h"
#include "ui/commands.h"
#include "ui/screen.h"

static UiScreen screen;

static bool on_enter(void *arg, const char *text, size_t len) {
    (void)arg;
    return ui_screen_enter(&screen, text, len);
}

static void on_eof(void *arg) { (void)arg; }

static void on_editor(void *arg) {
    (void)arg;
    screen.editor = true;
}

static int begin(void **state) {
    /* As in the inputrc of many systems. */
    char path[400];
    (void)snprintf(path, sizeof path, "%s.inputrc", qsf_test_tmp("input"));
    FILE *f = fopen(path, "w");
    if (!f || fputs("\"\\e[2~\": quoted-insert\n", f) < 0 || fclose(f) != 0) return 1;
    setenv("INPUTRC", path, 1);
    if (setup(state) != 0) return 1;
    Fixture *x = *state;
    UiInputHooks hooks = { NULL, on_enter, on_eof, NULL, on_editor, &x->app, &x->app.folds };
    ui_screen_init(&screen, &x->app, true);
    ui_input_open(&hooks, NULL);
    return 0;
}

static int end(void **state) {
    ui_input_close();
    ui_screen_free(&screen);
    return teardown(state);
}

/* In one read. */
static void type(const char *bytes) {
    UiKeys keys = { .knows = ui_input_knows };
    UiKey k;
    for (; *bytes; bytes++) {
        for (bool any = ui_keys_feed(&keys, *bytes, &k); any; any = ui_keys_more(&keys, &k)) {
            k.more = bytes[1] != '\0';
            ui_screen_key(&screen, &k);
        }
    }
    for (bool any = ui_keys_timeout(&keys, &k); any; any = ui_keys_more(&keys, &k))
        ui_screen_key(&screen, &k);
    ui_keys_free(&keys);
}

static UiInputView view(void) {
    UiInputView v;
    ui_input_view(&v);
    return v;
}

static const char *frame(int cols, int rows) {
    static UiBuf shot;
    UiInputView v = view();
    ui_buf_clear(&shot);
    ui_screen_draw(&screen, &v, rows, cols);
    for (int i = 0; i < rows; i++) {
        ui_canvas_text(&screen.canvas, i, &shot);
        ui_buf_puts(&shot, "\n");
    }
    return ui_buf_str(&shot);
}

/* A slash alone shows all commands, Tab shows more of them. */
static void test_slash(void **state) {
    (void)state;
    assert_int_equal(view().menu->list.n, 0);
    type("/");
    assert_int_equal(view().menu->list.n, ui_command_count());
    type("\t");
    assert_true(view().menu->asked);
    assert_string_equal(view().text, "/");
    type("\x15");
    assert_int_equal(view().menu->list.n, 0);
}

static bool shown(int cols, int rows, const char *choice) {
    char line[80];
    (void)snprintf(line, sizeof line, "\n  %s", choice);
    return strstr(frame(cols, rows), line) != NULL;
}

/* What is one character on the screen is one for the cursor, too: emoji joined by U+200D, with skin tones,
 * flags, keycaps, letters with marks. */
static void test_clusters(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int cells;
    } all[] = {
        { "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", 2 },
        { "\U0001F469\U0001F3FB\u200D\u2764\uFE0F\u200D\U0001F48B\u200D\U0001F468\U0001F3FC", 2 },
        { "\U0001F1E9\U0001F1EA", 2 },
        { "1\uFE0F\u20E3", 2 },
        { "e\u0301", 1 },
        { "\u6F22", 2 },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t n = strlen(all[i].text);
        int row, col;
        type("a"), type(all[i].text), type("z");
        UiInputView v = view();
        assert_int_equal(v.len, n + 2);
        (void)frame(40, 12);
        assert_int_equal(screen.canvas.cursor_col, 4 + all[i].cells);
        type("\x1b[D");
        assert_int_equal(view().point, 1 + n);
        type("\x1b[D");
        assert_int_equal(view().point, 1);
        type("\x1b[C");
        assert_int_equal(view().point, 1 + n);
        type("\x7f");
        assert_string_equal(view().text, "az");
        type(all[i].text), type("\x02\x1b[3~"); /* back over it, Delete */
        assert_string_equal(view().text, "az");
        /* Forty of them wrap between each other. */
        type("\x05\x15");
        for (int k = 0; k < 40; k++) type(all[i].text);
        v = view();
        (void)ui_input_rows(&v, 39, &row, &col);
        assert_int_equal(row, (40 * all[i].cells + 2) / (39 - (39 - 2) % all[i].cells));
        type("\x05\x15");
    }
    /* Up keeps the column on the screen. */
    type("abcdef\x1b\r\u6F22\u6F22x\x1b[A");
    assert_int_equal(view().point, 5);
    type("\x1b[B");
    assert_int_equal(view().point, 7 + 7);
    type("\x15\x15\x15");
}

/* Esc removes the list at every size, also one that was not asked for; the next key shows it again. */
static void test_menu_leaves(void **state) {
    (void)state;
    static const int sizes[][2] = { { 100, 30 }, { 80, 24 }, { 40, 12 } };
    for (size_t i = 0; i < 3; i++)
        for (int asked = 0; asked < 2; asked++) {
            type("/io direct ");
            if (asked) type("\t");
            (void)frame(sizes[i][0], sizes[i][1]);
            assert_true(view().menu->list.n > 1);
            type("\x1b");
            assert_int_equal(view().menu->list.n, 0);
            assert_null(strstr(frame(sizes[i][0], sizes[i][1]), "\n  auto"));
            type("\x15");
        }
}

/* Tab pages through all commands, the last page included, and begins again; Shift-Tab goes back. */
static void test_menu_pages(void **state) {
    (void)state;
    static const int sizes[][2] = { { 100, 30 }, { 80, 24 }, { 40, 12 }, { 40, 8 }, { 30, 5 } };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int cols = sizes[k][0], rows = sizes[k][1];
        bool seen[64] = { false };
        size_t n_seen = 0;
        type("/");
        for (int tabs = 0; tabs < 60 && n_seen < ui_command_count(); tabs++) {
            for (size_t i = 0; i < ui_command_count(); i++) {
                char name[40];
                (void)snprintf(name, sizeof name, "/%s", ui_command_at(i)->name);
                if (seen[i] || !shown(cols, rows, name)) continue;
                seen[i] = true;
                n_seen++;
            }
            type("\t");
        }
        if (n_seen < ui_command_count()) fail_msg("%zu commands at %dx%d", n_seen, cols, rows);
        assert_string_equal(view().text, "/");
        type("\x15");
    }
    type("/\t");
    assert_true(shown(80, 24, "/budget"));
    type("\t");
    assert_false(shown(80, 24, "/budget"));
    type("\x1b[Z");
    assert_true(shown(80, 24, "/budget"));
    type("\x1b[Z");
    assert_true(shown(80, 24, "/undo"));
    assert_non_null(strstr(frame(80, 24), ", Tab: the first ones; arrows and Enter choose"));
}

/* Down walks through every choice for what is typed: each is on the screen, marked, in its turn. */
static size_t walk_menu(const char *typed, int cols, int rows) {
    char line[80], sign[60];
    type(typed);
    (void)frame(cols, rows);
    const size_t n = view().menu->list.n;
    for (size_t i = 0; i < n; i++) {
        type("\x1b[B");
        const char *s = frame(cols, rows);
        const UiChoice *choice = ui_menu_chosen(view().menu);
        assert_non_null(choice);
        assert_ptr_equal(choice, &view().menu->list.choices[i]);
        (void)snprintf(line, sizeof line, "\n> %.*s", (int)strcspn(choice->text, " "), choice->text);
        (void)snprintf(sign, sizeof sign, "\n  %zu of %zu", i + 1, n);
        if (!strstr(s, line)) fail_msg("%s: choice %zu is not shown at %dx%d:%s", typed, i, cols, rows, s);
        if (screen.menu_rows < (int)n && !strstr(s, sign)) fail_msg("no \"%zu of %zu\" in:%s", i + 1, n, s);
    }
    type("\x15");
    return n;
}

/* Every command, and every value of every setting. */
static void test_menu_walk(void **state) {
    (void)state;
    static const int sizes[][2] = { { 80, 24 }, { 40, 12 } };
    char line[80];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        assert_int_equal(walk_menu("/", sizes[k][0], sizes[k][1]), ui_command_count());
        assert_int_equal(walk_menu("/set ", sizes[k][0], sizes[k][1]), qsf_setting_count());
        for (size_t i = 0; i < qsf_setting_count(); i++) {
            (void)snprintf(line, sizeof line, "/set %s ", qsf_setting_at(i)->name);
            (void)walk_menu(line, sizes[k][0], sizes[k][1]);
        }
    }
}

/* PgUp and PgDn turn the page of a menu that was asked for, and scroll otherwise. */
static void test_menu_page_keys(void **state) {
    (void)state;
    type("/\t");
    assert_true(shown(80, 24, "/budget"));
    type("\x1b[6~");
    assert_false(shown(80, 24, "/budget"));
    type("\x1b[5~");
    assert_true(shown(80, 24, "/budget"));
    type("\x1b[B\x1b[6~");
    const UiChoice *choice = ui_menu_chosen(view().menu);
    assert_non_null(choice);
    assert_int_equal(choice - view().menu->list.choices, view().menu->first);
    assert_true(view().menu->first > 0);
    type("l"); /* the menu is again as while one types */
    assert_false(view().menu->asked);
    type("\x15");
}

/* A hint about a key leaves with the next one. */
static void test_brief_hint(void **state) {
    (void)state;
    type("text\x06");
    assert_non_null(strstr(frame(80, 24), "^F searches when the input line is empty"));
    type("x");
    assert_null(strstr(frame(80, 24), "^F searches"));
    type("\x15");
}

/* What begins no name is looked for inside of names, and then in their help. */
static void test_menu_filter(void **state) {
    (void)state;
    type("/port");
    assert_true(shown(80, 24, "/export"));
    type("\t\r");
    assert_string_equal(view().text, "/export ");
    type("\x15/clipboard");
    assert_true(shown(80, 24, "/copy"));
    type("\t");
    assert_string_equal(view().text, "/copy ");
    type("\x15/set penalty");
    assert_true(shown(80, 24, "repeat-penalty"));
    assert_true(shown(80, 24, "repeat-last-n")); /* its help names it */
    type("\x15/kv-type 16");
    assert_true(shown(80, 24, "f16"));
    type("\x15/system remove"); /* a text: its words are not searched for */
    (void)frame(80, 24);
    assert_int_equal(view().menu->list.n, 0);
    type("\x15");
}

/* The arrows choose, Enter puts the choice into the line and sends nothing, Esc and other keys leave it. */
static void test_menu_choice(void **state) {
    Fixture *x = *state;
    type("/");
    (void)frame(80, 24);
    type("\x1b[B\x1b[B");
    while (view().menu->chosen >= 0 && !strstr(frame(80, 24), "\n> /clear")) type("\x1b[B");
    type("\r");
    assert_string_equal(view().text, "/clear");
    assert_int_equal(view().menu->list.n, 0);
    type("\x15/kv ");
    (void)frame(80, 24);
    type("\x1b[A"); /* not asked for: the history */
    assert_string_equal(view().text, "/kv ");
    type("\t\x1b[A\x1b[A\r");
    assert_string_equal(view().text, "/kv q4");
    type("\x15/se\t");
    (void)frame(80, 24);
    type("\t\r"); /* all are shown already: the second one is chosen */
    assert_string_equal(view().text, "/seed ");
    type("\x15/\t\x1b[B");
    assert_true(view().menu->asked);
    type("\x1b");
    assert_false(view().menu->asked);
    assert_string_equal(view().text, "/");
    type("\x1b[Bl");
    assert_int_equal(view().menu->chosen, -1);
    assert_string_equal(view().text, "/l");
    type("\x15/temp 0.5\r");
    type("\x1b[A"); /* in the history the arrows stay there */
    assert_string_equal(view().text, "/temp 0.5");
    type("\x1b[B");
    assert_string_equal(view().text, "");
    assert_int_equal(x->app.settings.params.temperature * 10, 5);
}

/* Templates of the model, sessions with their first words; text of files is shown as marks. */
static void test_menu_texts(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "first");
    say(x, "Why is\nthe \xe2\x80\xae sky blue?");
    answer(x, "It scatters.");
    say(x, "/new rtl\xe2\x80\xaename");
    say(x, "another");
    answer(x, "one");
    type("/load ");
    const char *s = frame(80, 24);
    assert_non_null(strstr(s, "\n  first            Why is the <U+202E> sky blue?"));
    assert_non_null(strstr(s, "\n  rtl<U+202E>name  another"));
    assert_null(strstr(s, "\xe2\x80\xae"));
    type("rt\t");
    assert_string_equal(view().text, "/load rtl\xe2\x80\xaename");
    s = frame(80, 24);
    assert_non_null(strstr(s, "> /load rtl<U+202E>name"));
    assert_null(strstr(s, "\xe2\x80\xae")); /* in the title either */
    type("\x15/template model:");
    assert_non_null(strstr(frame(80, 24), "model:rag"));
    type("\x15\x12\xe2\x80\xae"); /* the prompt of a search */
    assert_null(strstr(frame(80, 24), "\xe2\x80\xae"));
    type("\x07");
}

static void test_unknown_keys(void **state) {
    (void)state;
    /* F10 to F12, Shift-Left, Shift-F1 as xterm and rxvt send it, Shift-F2, Insert, focus, Alt with F3 */
    static const char *const keys[] = { "\x1b[21~",  "\x1b[23~",   "\x1b[24~",      "\x1b[1;2D",
                                        "\x1b[1;2P", "\x1bO2P",    "\x1b[25~",      "\x1b[2~",
                                        "\x1b[I",    "\x1b\x1bOR", "\x1b[27;6;65~", "\x1b[5;2~" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        type(keys[i]);
        type("x");
        if (strcmp(view().text, "x") != 0) fail_msg("key %zu left '%s'", i, view().text);
        ui_input_set("", 0);
    }
    /* Assigned keys still work. */
    type("ac\x1b[D"
         "b\x1b[H<\x1b[F>");
    assert_string_equal(view().text, "<abc>");
}

/* Esc, and the bytes after it in the same read: a key of the input line, or Esc and what was typed. */
static void test_escape(void **state) {
    Fixture *x = *state;
    static const struct {
        const char *bytes, *text;
    } rows[] = {
        { "\x1b/sta", "/sta" },
        { "\x1b"
          "Hello",
          "Hello" },
        { "\x1b"
          "7 of 9",
          "7 of 9" },
        { "\x1b#1", "#1" },
        { "\x1bno", "no" },
        { "\x1b\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9" },
        { "\x1b\x1b/x", "/x" },
        { "\x1bOh", "Oh" },
        { "\x1b[x] done", "[x] done" },
        { "\x1b[", "[" },
        { "\x1bO", "O" },
        { "\x1b \"a", " \"a" },
        { "one two\x1b"
          "b\x1b"
          "b<",
          "<one two" },
        { "one\x1b\x7fx", "x" },
        { "one\x1b\x15x", "x" },
        { "a\x1b[\x1b[Db", "ab[" },
        { "a\x1b[7$b", "ab" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        type(rows[i].bytes);
        if (strcmp(view().text, rows[i].text) != 0) fail_msg("row %zu left '%s'", i, view().text);
        ui_input_set("", 0);
    }
    /* ^C is not swallowed. */
    say(x, "one");
    type("\x1b\x03");
    assert_int_equal(x->engine.n_cancels, 1);
}

/* ^C empties the line and keeps it in the history; only a second one at once leaves. */
static void test_stop_key(void **state) {
    Fixture *x = *state;
    type("half a thought\x03");
    assert_string_equal(view().text, "");
    assert_non_null(strstr(frame(80, 24), "^C again, or ^D, leaves; Up brings the text back"));
    type("\x1b[A");
    assert_null(strstr(frame(80, 24), "^C again"));
    assert_string_equal(view().text, "half a thought");
    type("\x03");
    assert_string_equal(view().text, "");
    assert_false(x->app.quit);
    type("\x1b[A\x1b[B"); /* nothing older comes back */
    assert_string_equal(view().text, "");
    for (size_t i = 0; i < 3; i++) {
        static const char *const others[] = { "x\x7f", "\x1b[5~", "\x1bOQ" };
        type("x\x7f\x03");
        assert_non_null(strstr(frame(80, 24), "^C again, or ^D, leaves"));
        type(others[i]);
        assert_null(strstr(frame(80, 24), "^C again"));
        type("\x03");
        assert_false(x->app.quit);
    }
    type("a\x12half"); /* a search: the line before it is back */
    type("\x03");
    assert_string_equal(view().text, "a");
    type("\x03\x1b[A");
    assert_string_equal(view().text, "a");
    type("\x15\x12half\x03"); /* with an empty line too: ^C has left the search, nothing else */
    assert_null(strstr(frame(80, 24), "^C again"));
    type("\x03");
    assert_false(x->app.quit);
    assert_non_null(strstr(frame(80, 24), " ^C again, or ^D, leaves "));
    type("\x03");
    assert_true(x->app.quit);
}

/* Up takes the last queued message back; ^C leaves the queue waiting in the input; Esc Esc sends the next one
 * now. */
static void test_queue(void **state) {
    Fixture *x = *state;
    type("one\rtwo\rthree\rfour\r");
    assert_int_equal(x->app.queue.n, 3);
    type("\x1b[A");
    assert_string_equal(view().text, "four");
    type("!\r");
    assert_string_equal(x->app.queue.items[2].text, "four!");
    type("/queue 2\r");
    assert_string_equal(view().text, "three");
    type("\x03");
    assert_int_equal(x->engine.n_cancels, 1);
    assert_string_equal(view().text, "three");
    fake_text(&x->engine, "an");
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 1);
    ui_app_pump(&x->app);
    assert_int_equal(x->engine.n_submits, 1);
    assert_non_null(strstr(frame(80, 24), "queued 1: two"));
    assert_non_null(strstr(frame(80, 24), " Enter sends the next"));
    type("\x15\r"); /* on the empty line */
    assert_string_equal(x->engine.last_content, "two");
    type("\x1b");
    assert_int_equal(x->engine.n_cancels, 1);
    assert_non_null(strstr(frame(80, 24), " Esc again stops the answer and sends the next message "));
    type("a\x7f\x1b"); /* another key: once more */
    assert_int_equal(x->engine.n_cancels, 1);
    type("\x1b");
    assert_int_equal(x->engine.n_cancels, 2);
    fake_text(&x->engine, "an");
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 1);
    ui_app_pump(&x->app);
    assert_string_equal(x->engine.last_content, "four!");
    type("five\rsix\r\x1b\x1b");
    assert_int_equal(x->engine.n_cancels, 3);
    type("\x03"); /* still stopping: it is held all the same */
    assert_string_equal(view().text, "five");
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 1);
    ui_app_pump(&x->app);
    assert_int_equal(x->engine.n_submits, 3);
}

/* n lines in one paste. */
static void paste_lines(int n) {
    UiBuf b = { 0 };
    for (int i = 1; i <= n; i++) ui_buf_printf(&b, "line %d\r", i); /* as terminals send it */
    ui_screen_paste(&screen, ui_buf_str(&b), b.len);
    ui_buf_free(&b);
}

/* A paste of more than 12 lines is one thing in the line, and is sent whole. */
static void test_folded_paste(void **state) {
    Fixture *x = *state;
    UiBuf text = { 0 };
    paste_lines(12);
    assert_non_null(strstr(frame(80, 40), "line 12"));
    ui_input_set("", 0);
    type("explain ");
    paste_lines(200);
    assert_non_null(strstr(frame(80, 24), "\n> explain [pasted 200 lines, 1,692 tokens]\n"));
    assert_int_equal(view().whole, 8 + 1692);
    type(" please");
    assert_non_null(strstr(frame(80, 24), "tokens] please\n"));
    ui_input_text(&text);
    assert_non_null(strstr(ui_buf_str(&text), "explain line 1\nline 2\n"));
    assert_non_null(strstr(ui_buf_str(&text), "\nline 200\n please"));
    /* ^C and back; a key deletes it at once, and undo brings it back. */
    type("\x03");
    assert_string_equal(view().text, "");
    type("\x1f\x05\x1b\x7f\x7f\x7f");
    assert_string_equal(view().text, "explain ");
    type("\x1f");
    assert_non_null(strstr(frame(80, 24), "\n> explain [pasted 200 lines, 1,692 tokens]\n"));
    type("\r");
    const char *sent = last_said(x, UI_USER);
    assert_memory_equal(sent, "explain line 1\n", 15);
    assert_int_equal(x->app.folds.bytes, 0);
    type("\x1b[A"); /* the history has the whole text */
    assert_memory_equal(view().text, "explain line 1\nline 2\n", 22);
    ui_input_set("", 0);
    /* Tab unfolds it. */
    paste_lines(13);
    assert_int_equal(view().len, UI_FOLD_BYTES);
    type("\t");
    assert_memory_equal(view().text, "line 1\nline 2\n", 14);
    /* Text from outside never stands for a paste. */
    ui_input_set("", 0);
    ui_screen_paste(&screen, "\xf4\x8f\xbf\x80", 4);
    assert_string_equal(view().text, "????");
    ui_input_set("", 0);
    /* More pastes than fold: the text itself. */
    for (int i = 0; i < UI_FOLDS; i++) paste_lines(13);
    paste_lines(13);
    ui_buf_clear(&text);
    ui_input_text(&text);
    assert_int_equal(text.len, (UI_FOLDS + 1) * 95);
    ui_buf_free(&text);
}

/* In a message of several lines the keys of readline work on the line, and again on the whole. */
static void test_lines(void **state) {
    (void)state;
    static const struct {
        const char *keys, *left;
    } rows[] = {
        { "one two\nthree four\x01|", "one two\n|three four" },
        { "one two\nthree four\x01\x01|", "|one two\nthree four" },
        { "one two\nthree four\x1b[H|", "one two\n|three four" },
        { "one two\nthree four\x1b[1~\x1b[1~|", "|one two\nthree four" },
        { "one\ntwo\nsix\x1b[A\x1b[A\x1b[H\x05|", "one|\ntwo\nsix" },
        { "one\ntwo\nsix\x1b[A\x1b[A\x1b[H\x1b[F\x1b[F|", "one\ntwo\nsix|" },
        { "one\ntwo\nsix\x1b[A\x01\x0b|", "one\n|\nsix" },
        { "one\ntwo\nsix\x1b[A\x01\x0b\x0b|", "one\n|" },
        { "one\ntwo\nsix\x1b[A\x01\x05\x0b|", "one\ntwo|six" },
        { "one\ntwo\x15|", "one\n|" },
        { "one\ntwo\x15\x15|", "|" },
        { "one\ntwo\x01\x15|", "one|two" },
        { "one\ntwo six\x17|", "one\ntwo |" },
        { "one\ntwo\x17|", "one\n|" },
        { "one\ntwo\x17\x17|", "one|" },
        { "one\ntwo\x15\x15\x19|", "one\ntwo|" },
        { "one\ntwo six\x1b[A|", "one|\ntwo six" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        type(rows[i].keys);
        if (strcmp(view().text, rows[i].left) != 0) fail_msg("row %zu left '%s'", i, view().text);
        ui_input_set("", 0);
    }
}

/* What ^C has cleared and what the editor has replaced comes back. */
static void test_undo(void **state) {
    (void)state;
    type("half\na thought\x03");
    assert_string_equal(view().text, "");
    type("\x1f");
    assert_string_equal(view().text, "half\na thought");
    assert_null(strstr(frame(80, 24), "^C again"));
    ui_input_replace("from\r\nan editor", 15);
    assert_string_equal(view().text, "from\nan editor");
    type("\x1f");
    assert_string_equal(view().text, "half\na thought");
    type("\x18\x05");
    assert_true(screen.editor);
    screen.editor = false;
    type("\x0f");
    assert_true(screen.editor);
}

/* The question at a full context: a digit that begins a message chooses nothing. */
static void test_question(void **state) {
    Fixture *x = *state;
    x->engine.stats.ctx_size = 200;
    say(x, "question1");
    answer(x, "answer1, which has forty-one characters.!");
    say(x, "question2");
    fake_text(&x->engine, "an answer that is not finished");
    fake_done(&x->engine, QSF_STOP_CONTEXT, 3);
    ui_app_pump(&x->app);
    assert_non_null(
        strstr(frame(80, 24), " context full: 1 forget  2 compact  3 enlarge  4 stop  5 policy "));
    assert_non_null(strstr(frame(40, 24), "\xe2\x94\x80 1 forget 2 compact 3 ctx 4 stop 5 kv "));
    assert_non_null(strstr(frame(20, 24), "\xe2\x94\x80 1 2 3 4 5 "));
    type("3 cats"); /* in one read, as from a paste */
    assert_string_equal(view().text, "3 cats");
    assert_null(strstr(frame(80, 24), "context full"));
    type("\x15");
    type("1"); /* typed: it needs Enter */
    assert_string_equal(view().text, "1");
    assert_non_null(strstr(frame(80, 24), " Enter: forget "));
    type(" more");
    assert_string_equal(view().text, "1 more");
    assert_int_equal(x->engine.n_submits, 2);
    type("\x15");
    type("1\r");
    assert_int_equal(x->engine.n_submits, 3);
    assert_true(x->engine.go_on);
    assert_string_equal(view().text, "");
    fake_done(&x->engine, QSF_STOP_CONTEXT, 1);
    ui_app_pump(&x->app);
    assert_null(strstr(frame(80, 24), "or 1"));
    type("4");
    assert_null(strstr(frame(80, 24), "context full"));
    assert_string_equal(view().text, "");
}

/* Short output is shown in the transcript after its command; output longer than the screen opens the pager,
 * and text typed there is not lost. */
static void test_pager(void **state) {
    Fixture *x = *state;
    (void)frame(80, 90);
    type("/set\r");
    assert_false(screen.pager.open);
    assert_int_equal(x->app.chat.items[x->app.chat.n - 2]->kind, UI_COMMAND);
    assert_non_null(strstr(frame(80, 90), "\n /set\n temperature"));
    say(x, "/clear");
    (void)frame(80, 12);
    type("/set\r");
    assert_true(screen.pager.open);
    const char *s = frame(80, 12);
    assert_non_null(strstr(s, " /set\n temperature"));
    assert_non_null(strstr(s, " of "));
    assert_null(strstr(s, "show-thinking"));
    for (int i = 0; i < 20; i++) type("\x1b[6~");
    s = frame(80, 12);
    assert_non_null(strstr(s, qsf_setting_at(qsf_setting_count() - 1)->name));
    assert_null(strstr(s, " temperature "));
    type("/SEED\r");
    assert_non_null(strstr(frame(80, 12), "not found: SEED"));
    type("\x1b\x1b[15~hi"); /* a key after Esc, so that it is one by itself */
    assert_false(screen.pager.open);
    assert_string_equal(view().text, "hi");
    assert_string_equal(last_said(x, UI_OUTPUT), "");
}

/* If the typed text exceeds the context, a line above the input says so, and Enter keeps the text there. */
static void test_too_long(void **state) {
    Fixture *x = *state;
    static char text[500];
    memset(text, 'a', sizeof text - 1);
    x->engine.stats.ctx_size = 200;
    x->engine.stats.ctx_train = 4096;
    ui_app_tick(&x->app, 1);
    ui_input_insert(text, 100);
    assert_null(strstr(frame(80, 24), "too long"));
    ui_input_insert(text, 300);
    assert_non_null(strstr(frame(80, 24), "tokens too long: /ctx 1024"));
    assert_non_null(strstr(frame(40, 12), "tokens too long: /ctx 1024"));
    assert_non_null(strstr(frame(28, 12), "tokens too long "));
    assert_null(strstr(frame(28, 12), "long:"));
    type("\r");
    assert_int_equal(view().len, 400);
    assert_non_null(strstr(frame(80, 24), "not sent, 201 tokens too long: /ctx 1024"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_slash, begin, end),
        cmocka_unit_test_setup_teardown(test_menu_leaves, begin, end),
        cmocka_unit_test_setup_teardown(test_clusters, begin, end),
        cmocka_unit_test_setup_teardown(test_menu_pages, begin, end),
        cmocka_unit_test_setup_teardown(test_menu_walk, begin, end),
        cmocka_unit_test_setup_teardown(test_menu_page_keys, begin, end),
        cmocka_unit_test_setup_teardown(test_menu_filter, begin, end),
        cmocka_unit_test_setup_teardown(test_brief_hint, begin, end),
        cmocka_unit_test_setup_teardown(test_menu_choice, begin, end),
        cmocka_unit_test_setup_teardown(test_menu_texts, begin, end),
        cmocka_unit_test_setup_teardown(test_unknown_keys, begin, end),
        cmocka_unit_test_setup_teardown(test_escape, begin, end),
        cmocka_unit_test_setup_teardown(test_stop_key, begin, end),
        cmocka_unit_test_setup_teardown(test_queue, begin, end),
        cmocka_unit_test_setup_teardown(test_folded_paste, begin, end),
        cmocka_unit_test_setup_teardown(test_lines, begin, end),
        cmocka_unit_test_setup_teardown(test_undo, begin, end),
        cmocka_unit_test_setup_teardown(test_question, begin, end),
        cmocka_unit_test_setup_teardown(test_pager, begin, end),
        cmocka_unit_test_setup_teardown(test_too_long, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
