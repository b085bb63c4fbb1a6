/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walking through the last answer token by token, branches, and styles by token. */
#include "tests/harness/app_rig.h"
#include "ui/branches.h"
#include "ui/screen.h"
#include "ui/tint.h"
#include "ui/token_ids.h"
#include "ui/walk.h"

/* An answer of four tokens, "one two three.", that the engine knows. */
static void talk(Fixture *x) {
    say(x, "hello");
    fake_tokens(&x->engine, "one| two| three|.|", 0.7f);
    answer(x, "one two three.");
}

static void test_walk(void **state) {
    Fixture *x = *state;
    UiWalk *w = &x->app.walk;
    assert_string_equal(ui_walk_step(&x->app, -1), "the last message is not an answer");
    talk(x);
    assert_null(ui_walk_step(&x->app, -1));
    assert_true(w->open && w->at == 3 && w->n == 4 && w->begin == 13);
    assert_int_equal(x->engine.n_submits, 1);
    assert_string_equal(ui_walk_step(&x->app, 1), "the last token");
    assert_null(ui_walk_step(&x->app, -1));
    assert_true(w->at == 2 && w->begin == 7 && w->token.id == 102);
    assert_int_equal(ui_walk_rows(&x->app), 8);
    assert_int_equal(ui_walk_row(&x->app, 1).id, 200);
    assert_null(ui_walk_step(&x->app, -1));
    assert_null(ui_walk_step(&x->app, -1));
    assert_string_equal(ui_walk_step(&x->app, -1), "the first token");
    for (int i = 0; i < 20; i++) ui_walk_move(&x->app, 1);
    assert_int_equal(w->row, 7);
    ui_walk_move(&x->app, -1);
    assert_int_equal(w->row, 6);
    ui_walk_close(&x->app);
    assert_int_equal(x->engine.n_submits, 1);
    assert_string_equal(last_text(x), "one two three.");
    assert_string_equal(x->engine.roles, "u"); /* nothing was asked */
}

/* A token that is not among the likeliest is the last row. */
static void test_an_unlikely_token(void **state) {
    Fixture *x = *state;
    talk(x);
    x->engine.rows[3].top[0].id = 150;
    assert_null(ui_walk_step(&x->app, -1));
    assert_int_equal(ui_walk_rows(&x->app), 9);
    assert_int_equal(ui_walk_row(&x->app, 8).id, 103);
    assert_int_equal(x->app.walk.row, 8);
}

static void test_branch(void **state) {
    Fixture *x = *state;
    talk(x);
    assert_null(ui_walk_step(&x->app, -1));
    assert_null(ui_walk_step(&x->app, -1));
    assert_string_equal(ui_walk_take(&x->app, 0), "the answer has this token: choose another one");
    assert_string_equal(ui_walk_take(&x->app, 8), "there is no such token");
    assert_null(ui_walk_take(&x->app, 2));
    assert_int_equal(x->engine.n_submits, 2);
    assert_true(x->engine.branch == 3 && x->engine.branch_id == 201 && !x->engine.go_on);
    assert_string_equal(x->engine.roles, "u");
    assert_false(x->app.walk.open);
    assert_string_equal(ui_walk_step(&x->app, -1), "the model is busy: ^C stops it");
    fake_tokens(&x->engine, "one| two| four", 0.7f);
    answer(x, "one two four");
    assert_string_equal(last_text(x), "one two four");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
    say(x, "next"); /* a question of its own */
    assert_int_equal(x->engine.branch, 0);
    answer(x, "A");
}

/* Of an answer that was not just written, or whose text is another one. */
static void test_evaluated_again(void **state) {
    Fixture *x = *state;
    talk(x);
    x->engine.tokens = (QSFTokens){ 0 };
    assert_null(ui_walk_step(&x->app, -1));
    assert_true(x->engine.score && x->app.running == UI_REQUEST_TOKENS && !x->app.walk.open);
    assert_string_equal(x->engine.roles, "ua");
    say(x, "/undo");
    assert_non_null(strstr(last_said(x, UI_ERROR), "the tokens of the answer are being evaluated"));
    fake_tokens(&x->engine, "one two| three.", 0.7f);
    fake_done(&x->engine, QSF_STOP_LENGTH, 2);
    ui_app_pump(&x->app);
    assert_true(x->app.walk.open && x->app.walk.at == 1 && x->app.walk.n == 2);
    ui_walk_close(&x->app);
    /* Stopped, and refused. */
    x->engine.tokens = (QSFTokens){ 0 };
    assert_null(ui_walk_step(&x->app, -1));
    assert_true(ui_app_stop(&x->app));
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 0);
    ui_app_pump(&x->app);
    assert_false(x->app.walk.open);
    assert_string_equal(last_said(x, UI_NOTICE), "stopped: the tokens of the answer are unknown");
    assert_null(ui_walk_step(&x->app, -1));
    fake_error(&x->engine, 2, "cannot be told");
    ui_app_pump(&x->app);
    assert_string_equal(last_said(x, UI_ERROR), "cannot be told");
    /* and that is not tried again */
    assert_non_null(strstr(ui_walk_step(&x->app, -1), "cannot be determined"));
    assert_false(ui_app_busy(&x->app));
    assert_string_equal(last_text(x), "one two three.");
    say(x, "still there?");
    assert_false(x->engine.score);
    answer(x, "yes");
}

/* The engine is asked for the tokens that the answer had: 100, 101, ... */
static void asked_for(Fixture *x, uint32_t n) {
    assert_null(ui_walk_step(&x->app, -1));
    assert_true(x->engine.score);
    assert_int_equal(x->engine.n_tokens, n);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(x->engine.given[i], 100 + i);
    fake_done(&x->engine, QSF_STOP_LENGTH, 0);
    ui_app_pump(&x->app);
    ui_walk_close(&x->app);
}

static void resume(Fixture *x, const char *name) {
    QSFSettings s;
    ui_app_finish(&x->app);
    ui_app_free(&x->app);
    ui_settings_default(&s);
    ui_app_init(&x->app, fake_engine(&x->engine), &s);
    x->app.session.on = x->app.full_screen = x->app.interactive = true;
    assert_true(ui_app_resume(&x->app, name));
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
}

/* Of an answer that another version replaced, that was cut, to which more was added, and of a session that is
 * resumed. */
static void test_known_tokens(void **state) {
    Fixture *x = *state;
    char said[100];
    x->app.session.on = true;
    ui_session_use(&x->app.session, "tokens");
    talk(x);
    say(x, "/retry");
    fake_tokens(&x->engine, "cut| off", 0.7f);
    fake_text(&x->engine, "cut off");
    fake_done(&x->engine, QSF_STOP_LENGTH, 2);
    ui_app_pump(&x->app);
    (void)ui_app_step_version(&x->app, -1, said, sizeof said);
    asked_for(x, 4);
    (void)ui_app_step_version(&x->app, 1, said, sizeof said);
    asked_for(x, 2);
    resume(x, "tokens");
    assert_string_equal(last_text(x), "cut off");
    asked_for(x, 2);
    say(x, "/continue");
    fake_tokens(&x->engine, "cut| off| here", 0.7f);
    fake_text(&x->engine, " here");
    fake_done(&x->engine, QSF_STOP_EOS, 1);
    ui_app_pump(&x->app);
    say(x, "more"), answer(x, "not known");
    asked_for(x, 0);
    say(x, "/undo");
    asked_for(x, 3);
    resume(x, "tokens");
    asked_for(x, 3);
    /* Another model has other tokens. */
    (void)snprintf(x->app.stats.model_name, sizeof x->app.stats.model_name, "other");
    (void)snprintf(x->engine.stats.model_name, sizeof x->engine.stats.model_name, "other");
    asked_for(x, 0);
}

static void test_ids_as_text(void **state) {
    static const int32_t ids[] = { 0, 31, 32, 1023, 1024, 262143, INT32_MAX };
    static const char *const bad[] = { "", "g", "Agg", "A A", "A\n", "////////B", "/////H" };
    UiBuf b = { 0 };
    size_t n = 0;
    (void)state;
    ui_token_ids_put(&b, ids, 7);
    assert_string_equal(ui_buf_str(&b), "AfgB/fggB///H//////B");
    int32_t *back = ui_token_ids_read(ui_buf_str(&b), &n);
    assert_int_equal(n, 7);
    assert_memory_equal(back, ids, sizeof ids);
    free(back);
    ui_buf_free(&b);
    assert_null(ui_token_ids_read(NULL, &n));
    for (size_t i = 0; i < sizeof bad / sizeof *bad - 1; i++) {
        assert_null(ui_token_ids_read(bad[i], &n));
        assert_int_equal(n, 0);
    }
}

static void test_texts_of_tokens(void **state) {
    Fixture *x = *state;
    static const char *const want[] = { "⟦<end>⟧", "\"\\xE2\\x82\"", "\"a\\n\"",
                                        "\"t7\"",  "⟦<unk> 203⟧",    "⟦204⟧" };
    static const int32_t ids[] = { 200, 201, 202, 7, 203, 204 };
    char text[100];
    for (size_t i = 0; i < 6; i++) {
        ui_walk_text(&x->app, ids[i], text, sizeof text);
        assert_string_equal(text, want[i]);
    }
    x->app.chat.ascii = true;
    ui_walk_text(&x->app, 200, text, sizeof text);
    assert_string_equal(text, "<<<end>>>");
}

static void test_styles(void **state) {
    Fixture *x = *state;
    UiTints t = { 0 };
    static const float p[] = { 0.95f, 0.6f, 0.2f, 0.01f }, bits[] = { 6, 3, 1, 0.2f };
    say(x, "levels");
    fake_tokens(&x->engine, "a|b|c|d", 0);
    for (int i = 0; i < 4; i++) x->engine.rows[i].p = p[i], x->engine.rows[i].entropy = bits[i];
    answer(x, "abcd");
    x->app.tint = UI_TINT_PROBABILITY;
    ui_tints_update(&t, &x->app);
    for (int i = 0; i < 4; i++) assert_int_equal(t.spans[i].style, UI_STYLE_SURE + i);
    x->app.tint = UI_TINT_ENTROPY;
    ui_tints_update(&t, &x->app);
    for (int i = 0; i < 4; i++) assert_int_equal(t.spans[i].style, UI_STYLE_GUESS - i);
    x->app.tint = UI_TINT_OFF;
    say(x, "hello");
    fake_tokens(&x->engine, "one|\x1b|two", 0.95f);
    answer(x, "one\x1btwo"); /* ESC is shown as two characters */
    ui_tints_update(&t, &x->app);
    assert_int_equal(t.item, 0);
    say(x, "/probs");
    assert_int_equal(x->engine.n_submits, 2);
    ui_tints_update(&t, &x->app);
    assert_int_equal(t.item, ui_walk_item(&x->app)->id);
    assert_int_equal(t.n, 3);
    assert_true(t.spans[0].end == 3 && t.spans[1].end == 5 && t.spans[2].end == 8);
    assert_int_equal(t.spans[0].style, UI_STYLE_SURE);
    assert_null(ui_walk_step(&x->app, -1));
    ui_tints_update(&t, &x->app);
    assert_true(t.spans[2].style == UI_STYLE_MATCH && t.cursor == 5);
    ui_walk_close(&x->app);
    say(x, "/probs off");
    ui_tints_update(&t, &x->app);
    assert_int_equal(t.item, 0);
    say(x, "/probs nonsense");
    assert_string_equal(last_said(x, UI_ERROR), "/probs expects off, probability or entropy, not 'nonsense'");
    x->engine.tokens = (QSFTokens){ 0 };
    say(x, "/probs entropy");
    assert_true(x->engine.score && x->app.running == UI_REQUEST_TOKENS);
    fake_tokens(&x->engine, "one\x1btwo", 0.95f);
    fake_done(&x->engine, QSF_STOP_LENGTH, 2);
    ui_app_pump(&x->app);
    assert_false(x->app.walk.open);
    ui_tints_update(&t, &x->app);
    assert_int_equal(t.spans[0].style, UI_STYLE_LIKELY);
    ui_tints_free(&t);
}

static const UiMenu no_menu = { .chosen = -1 };
static UiBuf shot;

static const char *frame(UiScreen *s, int cols, int rows) {
    UiInputView in = { .prompt = "> ", .text = "", .menu = &no_menu };
    ui_screen_draw(s, &in, rows, cols);
    ui_buf_clear(&shot);
    for (int row = 0; row < rows; row++) {
        ui_canvas_text(&s->canvas, row, &shot);
        ui_buf_puts(&shot, "\n");
    }
    return ui_buf_str(&shot);
}

static void key(UiScreen *s, UiAction action, const char *bytes) {
    UiKey k = { .action = action, .n = strlen(bytes) };
    memcpy(k.bytes, bytes, k.n);
    ui_screen_key(s, &k);
}

/* The style of the first cell with that text. */
static int style_at(const UiScreen *s, const char *text, int row_from) {
    const UiCanvas *c = &s->canvas;
    const size_t n = strlen(text);
    for (int i = row_from * c->cols; i + (int)n <= c->rows * c->cols; i++) {
        size_t k = 0;
        while (k < n && c->cells[i + (int)k].text[0] == text[k]) k++;
        if (k == n) return c->cells[i].ink.style;
    }
    return -1;
}

static void test_on_the_screen(void **state) {
    Fixture *x = *state;
    UiScreen s;
    ui_screen_init(&s, &x->app, true);
    say(x, "hello");
    fake_tokens(&x->engine, "**one**| two| three|.", 0.7f);
    answer(x, "**one** two three.");
    assert_null(strstr(frame(&s, 80, 24), "**one**"));
    key(&s, UI_DO_TOKEN_BACK, "\x1b,");
    key(&s, UI_DO_EDIT, "\x1b[D");
    const char *f = frame(&s, 80, 24);
    assert_non_null(strstr(f, "**one** two three."));
    assert_non_null(strstr(f, "token 3 of 4  70.0 %  1.00 bits"));
    assert_non_null(strstr(f, ">1 *  70.00 %  \"t102\""));
    assert_non_null(strstr(f, " 2     1.00 %  ⟦<end>⟧"));
    assert_int_equal(style_at(&s, " three", 0), UI_STYLE_MATCH);
    assert_int_equal(style_at(&s, "**one", 0), UI_STYLE_TEXT);
    key(&s, UI_DO_EDIT, "\x1b[B");
    f = frame(&s, 40, 12);
    assert_non_null(strstr(f, ">2     1.00 %"));
    /* Esc leaves it, and the answer is Markdown again. */
    key(&s, UI_DO_ESCAPE, "\x1b");
    f = frame(&s, 80, 24);
    assert_null(strstr(f, "token 3"));
    assert_null(strstr(f, "**one**"));
    /* That tokens are evaluated is not said any longer than they are. */
    x->engine.tokens = (QSFTokens){ 0 };
    key(&s, UI_DO_TOKEN_BACK, "\x1b,");
    assert_non_null(strstr(frame(&s, 80, 24), "are being evaluated"));
    fake_error(&x->engine, 1, "read error");
    ui_app_pump(&x->app);
    f = frame(&s, 80, 24);
    assert_non_null(strstr(f, "read error"));
    assert_null(strstr(f, "are being evaluated"));
    key(&s, UI_DO_TOKEN_BACK, "\x1b,");
    fake_tokens(&x->engine, "**one**| two| three|.", 0.7f);
    fake_done(&x->engine, QSF_STOP_LENGTH, 4);
    ui_app_pump(&x->app);
    ui_walk_close(&x->app);
    say(x, "/probs");
    (void)frame(&s, 80, 24);
    assert_int_equal(style_at(&s, "**one**", 0), UI_STYLE_LIKELY);
    key(&s, UI_DO_TOKEN_BACK, "\x1b,");
    key(&s, UI_DO_EDIT, "2");
    assert_true(x->engine.branch == 4 && x->engine.branch_id == 200);
    fake_done(&x->engine, QSF_STOP_EOS, 3);
    ui_app_pump(&x->app);
    ui_screen_free(&s);
    ui_buf_free(&shot);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_walk),          T(test_an_unlikely_token), T(test_branch),          T(test_evaluated_again),
        T(test_known_tokens),  T(test_ids_as_text),       T(test_texts_of_tokens), T(test_styles),
        T(test_on_the_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
