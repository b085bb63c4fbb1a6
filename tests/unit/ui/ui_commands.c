/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of commands: lookup, prefixes, the nearest name, completion; and keys, blocks, history. */
#include "tests/harness/qsf_test.h"
#include "ui/commands.h"
#include "ui/complete.h"
#include "ui/help.h"
#include "ui/history.h"
#include "ui/keys.h"
#include "ui/quoted.h"

static const char *looked_up(const char *word, bool prefix) {
    const QSFSetting *row;
    bool several;
    const UiCommand *c = ui_command_lookup(word, prefix, &row, &several);
    return c ? c->name : row ? row->name : several ? "several" : "none";
}

static void test_lookup(void **state) {
    (void)state;
    assert_string_equal(looked_up("help", false), "help");
    assert_string_equal(looked_up("?", false), "help");
    assert_string_equal(looked_up("bye", false), "quit");
    assert_string_equal(looked_up("regen", false), "retry");
    assert_string_equal(looked_up("temp", false), "temperature");
    assert_string_equal(looked_up("top_p", false), "top-p");
    assert_string_equal(looked_up("hel", false), "none");
    assert_string_equal(looked_up("hel", true), "help");
    assert_string_equal(looked_up("s", true), "several");
    assert_string_equal(looked_up("sy", true), "system");
    assert_string_equal(looked_up("tempe", true), "temperature");
    assert_string_equal(looked_up("exitfoo", true), "none");
    assert_string_equal(looked_up("", true), "none");
}

static void test_nearest(void **state) {
    (void)state;
    assert_string_equal(ui_command_nearest("retyr"), "retry");
    assert_string_equal(ui_command_nearest("tempreature"), "temperature");
    assert_string_equal(ui_command_nearest("mo"), "model"); /* the beginning of a name */
    assert_null(ui_command_nearest("zzzzzzzzzzzzz"));
}

static bool is_paste(const char *bytes) {
    UiKeys k = { 0 };
    return ui_keys_are_paste(&k, bytes, strlen(bytes));
}

/* A terminal that does not mark pastes: one read with a line, its end and more text. */
static void test_unmarked_paste(void **state) {
    (void)state;
    assert_true(is_paste("one\rtwo\rthree\r"));
    assert_true(is_paste("one\ntwo"));
    assert_true(is_paste("\tindented\r\nmore"));
    assert_false(is_paste("one\r"));
    assert_false(is_paste("one\r\r"));
    assert_false(is_paste("\rone"));
    assert_false(is_paste("one\r\x04"));
    assert_false(is_paste("one\r\x1b[A\r"));
    assert_false(is_paste("\x1b[200~one\rtwo\x1b[201~"));
    UiKeys k = { 0 };
    UiKey out;
    ui_keys_begin_paste(&k);
    for (const char *p = "one\rtwo\rthree"; *p; p++) assert_false(ui_keys_feed(&k, *p, &out));
    assert_true(ui_keys_wait_ms(&k) < 100);
    assert_true(ui_keys_timeout(&k, &out));
    assert_true(out.paste);
    assert_string_equal(ui_buf_str(&k.paste), "one\rtwo\rthree");
    ui_keys_free(&k);
}

/* Every row is complete, and no name or alias occurs twice. */
static void test_table(void **state) {
    (void)state;
    for (size_t i = 0; i < ui_command_count(); i++) {
        const UiCommand *c = ui_command_at(i);
        assert_ptr_equal(ui_command_find(c->name), c);
        assert_true(strlen(c->help) > 5);
        assert_non_null(c->run);
        char list[80];
        (void)snprintf(list, sizeof list, "%s", c->aliases);
        for (char *a = strtok(list, ","); a; a = strtok(NULL, ",")) {
            assert_ptr_equal(ui_command_find(a), c);
            assert_null(qsf_setting_find(a));
        }
    }
    assert_null(ui_command_at(ui_command_count()));
}

static UiCompletion completion;

static const char *completed(const char *line) {
    static char common[300];
    if (!ui_complete(&completion, NULL, line, strlen(line))) return "";
    size_t n = ui_complete_common(&completion);
    (void)snprintf(common, sizeof common, "%.*s%.*s", (int)completion.from, line, (int)n,
                   completion.choices[0].text);
    return common;
}

static void test_complete(void **state) {
    (void)state;
    char line[400];
    assert_string_equal(completed("/he"), "/help ");
    assert_string_equal(completed("/se"), "/se");
    assert_int_equal(completion.n, 4); /* set, search, seed and sessions */
    assert_string_equal(completed("/set tempe"), "/set temperature ");
    assert_string_equal(completed("/show pl"), "/show plan");
    assert_string_equal(completed("/help qui"), "/help quit");
    assert_string_equal(completed("/io u"), "/io uring");
    assert_string_equal(completed("/io d"), "/io direct ");
    assert_string_equal(completed("/io direct of"), "/io direct off");
    assert_string_equal(completed("/io pread of"), "");
    assert_string_equal(completed("/budget a"), "/budget auto");
    assert_string_equal(completed("/threads a"), "/threads auto");
    assert_string_equal(completed("/set io p"), "/set io pread");
    assert_string_equal(completed("/set io pread x"), "");
    assert_string_equal(completed("/kv po"), "/kv policy ");
    assert_string_equal(completed("/model hf:ggml-org/gpt"), "/model hf:ggml-org/gpt-oss-20b-GGUF");
    assert_string_equal(completed("/model hf:none"), "");
    assert_string_equal(completed("/kv policy s"), "/kv policy s");
    assert_int_equal(completion.n, 2); /* sliding and snapkv */
    assert_string_equal(completed("/kv policy sl"), "/kv policy sliding");
    assert_string_equal(completed("/kv type f1"), "/kv type f16");
    assert_string_equal(completed("/kv k-type q8"), "/kv k-type q8");
    assert_string_equal(completed("/kv q2"), "/kv q2");
    assert_string_equal(completed("/quality 0.5"), "/quality 0.5");
    assert_string_equal(completed("/context a"), "/context auto");
    assert_string_equal(completed("/reasoning hi"), "/reasoning high");
    assert_string_equal(completed("/thinking h"), "/thinking hide");
    assert_string_equal(completed("/template o"), "/template off");
    assert_string_equal(completed("/set template ra"), "/set template raw");
    assert_string_equal(completed("/eviction-policy h"), "/eviction-policy h2o");
    assert_string_equal(completed("/system o"), "/system off");
    assert_string_equal(completed("/stop o"), "/stop off");
    assert_string_equal(completed("hello /he"), "");
    assert_string_equal(completed("//he"), "");
    assert_string_equal(completed("/set temperature 1"), "");
    (void)snprintf(line, sizeof line, "%s", qsf_test_tmp("uicomplete.gguf"));
    FILE *f = fopen(line, "w");
    assert_non_null(f);
    fclose(f);
    char want[500], typed[500];
    (void)snprintf(want, sizeof want, "/model %s", line);
    (void)snprintf(typed, sizeof typed, "/model %.*s", (int)strlen(line) - 6, line);
    assert_string_equal(completed(typed), want);
    remove(line);
    ui_complete_free(&completion);
}

/* After /model there are the names that /models shows. */
static void test_models(void **state) {
    static UiApp app;
    char dir[400], path[500];
    (void)state;
    (void)snprintf(dir, sizeof dir, "%s.XXXXXX", qsf_test_tmp("models"));
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/unlikely-7b-Q4_K_M.gguf", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("GGUF", f);
    fclose(f);
    const char *const dirs[] = { dir, NULL };
    app.model_dirs = dirs;
    (void)ui_complete(&completion, &app, "/model unlik", 12);
    assert_int_equal(completion.n, 1);
    assert_string_equal(completion.choices[0].text, "unlikely-7b-Q4_K_M");
    (void)ui_complete(&completion, &app, "/model 7b-q4", 12);
    assert_int_equal(completion.n, 1);
    ui_complete_free(&completion);
    remove(path);
    remove(dir);
}

/* Every command whose help names arguments that are known offers them. */
static void test_every_argument(void **state) {
    (void)state;
    static const char *const free_text[] = { "new",   "search", "edit",     "undo",   "forget", "save",
                                             "model", "load",   "sessions", "rename", "delete", "save-code",
                                             "role",  "why",    "redo",     "branch", "goto",   "compact" };
    char line[80];
    for (size_t i = 0; i < ui_command_count(); i++) {
        const UiCommand *c = ui_command_at(i);
        bool open = c->args[0] == '\0';
        for (size_t k = 0; k < sizeof free_text / sizeof *free_text; k++)
            open = open || strcmp(c->name, free_text[k]) == 0;
        (void)snprintf(line, sizeof line, "/%s ", c->name);
        if (!open && !ui_complete(&completion, NULL, line, strlen(line))) fail_msg("nothing for %s", line);
        for (const UiWord *w = c->arg.words; w && w->word; w++)
            assert_true(!w->setting || w->setting[0] == '@' || qsf_setting_find(w->setting));
        assert_true(!c->arg.setting || qsf_setting_find(c->arg.setting));
    }
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        (void)snprintf(line, sizeof line, "/set %s ", qsf_setting_at(i)->name);
        const char *arg = qsf_setting_at(i)->arg;
        const bool sentence = arg && strcmp(arg, "TEXT") == 0;
        if (!sentence && !ui_complete(&completion, NULL, line, strlen(line)))
            fail_msg("nothing for %s", line);
    }
    ui_complete_free(&completion);
}

/* A word offered by Tab is accepted by the setting. */
static void test_values(void **state) {
    (void)state;
    char line[80], err[300];
    int n = 0;
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        (void)snprintf(line, sizeof line, "/set %s ", row->name);
        if (strcmp(row->name, "template") == 0 || !ui_complete(&completion, NULL, line, strlen(line)))
            continue;
        for (size_t k = 0; k < completion.n; k++, n++) {
            QSFSettings s;
            qsf_settings_default(&s);
            assert_int_equal(qsf_setting_set(&s, row, completion.choices[k].text, err, sizeof err), 0);
        }
    }
    assert_true(n > 20);
    ui_complete_free(&completion);
}

static void test_help_width(void **state) {
    (void)state;
    for (int width = 24; width < 120; width += 7) {
        UiBuf b = { 0 };
        ui_help_all(&b, true, width);
        assert_non_null(strstr(ui_buf_str(&b), "/export"));
        for (const char *p = ui_buf_str(&b); *p && width >= 50; p += strcspn(p, "\n"), p += *p == '\n')
            assert_true(strcspn(p, "\n") <= (size_t)width || strchr(p, '|') != NULL);
        ui_buf_free(&b);
    }
}

/* ---- """ blocks ---- */

static bool feed(UiLines *l, const char *line) { return ui_lines_feed(l, line, strlen(line)); }

static void assert_block(const UiLines *l, const char *want) {
    const char *text = ui_buf_str(&l->text);
    size_t len = l->text.len;
    ui_quoted_strip(&text, &len);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(text, want, len);
}

static void test_blocks(void **state) {
    (void)state;
    UiLines l = { 0 };
    assert_true(feed(&l, "plain \"\"\""));
    assert_block(&l, "plain \"\"\"");
    assert_true(feed(&l, "\"\"\"one line\"\"\""));
    assert_block(&l, "one line");
    assert_false(feed(&l, "\"\"\""));
    assert_false(feed(&l, "a"));
    assert_false(feed(&l, ""));
    assert_true(feed(&l, "\"\"\""));
    assert_block(&l, "a\n");
    assert_false(feed(&l, "\"\"\"begin"));
    assert_true(feed(&l, "end\"\"\""));
    assert_block(&l, "begin\nend");
    assert_true(feed(&l, "\"\"\"\"\"\""));
    assert_block(&l, "");
    static const char *const commands[] = { "/system", "/set system" };
    for (size_t i = 0; i < 2; i++) {
        char line[40];
        (void)snprintf(line, sizeof line, "%s \"\"\"Be", commands[i]);
        assert_false(feed(&l, line));
        assert_true(feed(&l, "brief\"\"\""));
        (void)snprintf(line, sizeof line, "%s \"\"\"Be\nbrief\"\"\"", commands[i]);
        assert_block(&l, line);
    }
    assert_true(feed(&l, "/system Be"));
    assert_true(feed(&l, "/search \"\"\"Be"));
    assert_false(feed(&l, "\"\"\"never"));
    assert_true(ui_lines_end(&l));
    assert_block(&l, "never");
    assert_false(ui_lines_end(&l));
    ui_buf_free(&l.text);
}

/* Of a message that is too long, its size and its end remain, in parts of any length. */
static void test_cut_block(void **state) {
    (void)state;
    UiLines l = { .cut.limit = 100 };
    static char line[400000];
    memset(line, 'x', sizeof line);
    assert_true(ui_lines_feed(&l, line, 100));
    assert_false(l.cut.cut);
    assert_false(feed(&l, "\"\"\"first"));
    for (int i = 0; i < 3; i++) {
        for (size_t at = 0; at < sizeof line; at += 1000) ui_lines_add(&l, line + at, 1000);
        assert_false(ui_lines_end_line(&l));
        assert_true(l.text.cap < 65536);
    }
    assert_false(feed(&l, "/command"));
    assert_true(feed(&l, "\"\"\"\r"));
    assert_true(l.cut.cut);
    assert_int_equal(l.cut.size.bytes, 8 + 3 * 400001 + 9 + 4);
    assert_int_equal(l.cut.size.longest, 400000);
    assert_true(feed(&l, "\xEF\xBB\xBFshort"));
    assert_false(l.cut.cut);
    assert_string_equal(ui_buf_str(&l.text), "short");
    ui_buf_free(&l.text);
}

/* A paste that is too long ends where its mark is. */
static void test_cut_paste(void **state) {
    (void)state;
    UiKeys k = { .cut.limit = 50 };
    UiKey key;
    bool done = false;
    for (const char *p = "\x1b[200~"; *p; p++) done = ui_keys_feed(&k, *p, &key);
    for (int i = 0; i < 40000 && !done; i++) done = ui_keys_feed(&k, 'p', &key);
    for (const char *p = "\x1b[201~"; *p && !done; p++) done = ui_keys_feed(&k, *p, &key);
    assert_true(done && key.paste && k.cut.cut);
    assert_int_equal(k.cut.size.bytes, 40000);
    assert_true(ui_keys_feed(&k, 'a', &key));
    assert_false(key.paste);
    ui_keys_free(&k);
}

/* ---- keys ---- */

/* Describes the bytes as keys: an action's number, or the bytes themselves for the input line. */
static const char *keyed(const char *bytes) {
    static char out[200];
    UiKeys k = { 0 };
    UiKey key;
    size_t n = 0;
    out[0] = '\0';
    for (; *bytes; bytes++) {
        if (!ui_keys_feed(&k, *bytes, &key)) continue;
        if (key.paste)
            n += (size_t)snprintf(out + n, sizeof out - n, "{%s}", ui_buf_str(&k.paste));
        else if (key.action != UI_DO_EDIT)
            n += (size_t)snprintf(out + n, sizeof out - n, "<%d>", (int)key.action);
        else
            n += (size_t)snprintf(out + n, sizeof out - n, "%.*s", (int)key.n, key.bytes);
    }
    if (ui_keys_wait_ms(&k) >= 0 && ui_keys_timeout(&k, &key))
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%d", key.paste ? "timeout paste " : "timeout ",
                              (int)key.action);
    ui_keys_free(&k);
    return out;
}

static void test_keys(void **state) {
    (void)state;
    char want[40];
    assert_string_equal(keyed("abc"), "abc");
    assert_string_equal(keyed("\x1b[A"), "\x1b[A");
    assert_string_equal(keyed("\x1b"
                              "b"),
                        "\x1b"
                        "b");
    (void)snprintf(want, sizeof want, "a<%d>b", UI_DO_PAGE_UP);
    assert_string_equal(keyed("a\x1b[5~b"), want);
    (void)snprintf(want, sizeof want, "<%d><%d><%d>", UI_DO_HELP, UI_DO_HELP, UI_DO_HELP);
    assert_string_equal(keyed("\x1bOP\x1b[11~\x1b[[A"), want);
    (void)snprintf(want, sizeof want, "<%d>", UI_DO_STOP);
    assert_string_equal(keyed("\x03"), want);
    (void)snprintf(want, sizeof want, "<%d>", UI_DO_NEWLINE);
    assert_string_equal(keyed("\x1b\r"), want);
    (void)snprintf(want, sizeof want,
                   "x"
                   "timeout %d",
                   UI_DO_ESCAPE);
    assert_string_equal(keyed("x\x1b"), want);
    (void)snprintf(want, sizeof want, "<%d>", UI_DO_MESSAGE_UP);
    assert_string_equal(keyed("\x1b\x1b[A"), want);
    assert_string_equal(keyed("\x1b[200~a\nb\x1b[A\x03\x1b[201~c"), "{a\nb\x1b[A\x03}c");
    assert_string_equal(keyed("\x1b[200~lost"), "timeout paste 0");
}

/* Reports of the mouse are keys of the screen, never of the input line. */
static void test_mouse(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        UiAction action;
    } cases[] = {
        { "\x1b[<64;10;5M", UI_DO_WHEEL_UP },   { "\x1b[<65;1;1M", UI_DO_WHEEL_DOWN },
        { "\x1b[<68;10;5M", UI_DO_WHEEL_UP },   { "\x1b[<0;3;4M", UI_DO_MOUSE },
        { "\x1b[<0;3;4m", UI_DO_MOUSE },        { "\x1b[<64;1;1m", UI_DO_MOUSE },
        { "\x1b[<99999999;1;1M", UI_DO_MOUSE }, { "\x1b[<;;M", UI_DO_MOUSE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        UiKeys k = { 0 };
        UiKey key = { 0 };
        const char *b = cases[i].bytes;
        bool any = false;
        for (; *b; b++) any = ui_keys_feed(&k, *b, &key);
        assert_true(any);
        assert_int_equal(key.action, cases[i].action);
        ui_keys_free(&k);
    }
}

/* Any bytes are parsed to keys, and none is too long. */
static void test_key_noise(void **state) {
    (void)state;
    UiKeys k = { 0 };
    UiKey key;
    unsigned r = 1;
    for (int i = 0; i < 200000; i++) {
        r = r * 1103515245u + 12345u;
        char c = (r >> 16) % 3 ? (char)(r >> 20) : "\x1b[O;~2"[(r >> 18) % 7];
        if (ui_keys_feed(&k, c, &key) && !key.paste) assert_in_range(key.n, 1, UI_KEY_BYTES);
    }
    ui_keys_free(&k);
}

/* ---- history ---- */

static char seen[10][60];
static int n_seen;

static void see(void *arg, const char *entry) {
    (void)arg;
    if (n_seen < 10) (void)snprintf(seen[n_seen++], sizeof seen[0], "%s", entry);
}

static void test_history(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("history");
    char copy[400];
    (void)snprintf(copy, sizeof copy, "%s", path);
    n_seen = 0;
    ui_history_read(copy, see, NULL);
    assert_int_equal(n_seen, 0);
    assert_true(ui_history_append(copy, "one"));
    assert_true(ui_history_append(copy, "two\nlines \\n \\"));
    assert_true(ui_history_append(copy, "#123"));
    ui_history_read(copy, see, NULL);
    assert_int_equal(n_seen, 3);
    assert_string_equal(seen[0], "one");
    assert_string_equal(seen[1], "two\nlines \\n \\");
    assert_string_equal(seen[2], "#123");
    remove(copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookup),         cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_table),          cmocka_unit_test(test_complete),
        cmocka_unit_test(test_every_argument), cmocka_unit_test(test_models),
        cmocka_unit_test(test_help_width),     cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_cut_block),      cmocka_unit_test(test_cut_paste),
        cmocka_unit_test(test_keys),           cmocka_unit_test(test_key_noise),
        cmocka_unit_test(test_mouse),          cmocka_unit_test(test_history),
        cmocka_unit_test(test_values),         cmocka_unit_test(test_unmarked_paste),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
