/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Links and strike-through: which URLs and terminals, and which rows are written again. */
#include "tests/harness/qsf_test.h"
#include "ui/overlay.h"

static const char *const *environment; /* name, value, ..., NULL */

static const char *env(const char *name) {
    for (size_t i = 0; environment[i]; i += 2) {
        if (strcmp(environment[i], name) == 0) return environment[i + 1];
    }
    return NULL;
}

static bool links(const char *const *with) {
    environment = with;
    return ui_overlay_links(env);
}

#define ENV(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void test_terminals(void **state) {
    (void)state;
    assert_true(links(ENV("TERM", "xterm-kitty")));
    assert_false(links(ENV("TERM", "xterm-256color")));
    assert_true(links(ENV("TERM", "xterm-256color", "VTE_VERSION", "7200")));
    assert_false(links(ENV("VTE_VERSION", "4800")));
    assert_false(links(ENV("VTE_VERSION", "7200", "TMUX", "/tmp/x")));
    assert_true(links(ENV("TERM_PROGRAM", "tmux", "TERM_PROGRAM_VERSION", "3.4", "TMUX", "x")));
    assert_false(links(ENV("TERM_PROGRAM", "tmux", "TERM_PROGRAM_VERSION", "3.3a", "TMUX", "x")));
    assert_false(links(ENV("TERM", "xterm-kitty", "FORCE_HYPERLINK", "0")));
    assert_true(links(ENV("FORCE_HYPERLINK", "1")));
}

static void test_urls(void **state) {
    (void)state;
    static const char *const good[] = { "http://a", "HTTPS://a.b/c?d=e", "mailto:a@b" };
    static const char *const bad[] = { "",           "http://",       "javascript:x", "file:///etc",
                                       "http://a b", "http://a\x1b\\" };
    for (size_t i = 0; i < 3; i++) assert_true(ui_canvas_may_link(good[i], strlen(good[i])));
    for (size_t i = 0; i < 6; i++) assert_false(ui_canvas_may_link(bad[i], strlen(bad[i])));
}

/* A row is written again when it changes, and renewed when a link leaves it. */
static void test_rows(void **state) {
    (void)state;
    UiCanvas c = { 0 };
    UiOverlay o = { 0 };
    UiBuf out = { 0 };
    UiPaint paints[UI_STYLE_COUNT] = { 0 };
    bool renew;
    paints[UI_STYLE_LINK] = (UiPaint){ UI_COLOR_DEFAULT, UI_COLOR_DEFAULT, UI_ATTR_UNDERLINE };
    assert_true(ui_canvas_resize(&c, 1, 10));
    UiInk ink = { .style = UI_STYLE_LINK, .link = ui_canvas_link(&c, "http://a") };
    (void)ui_canvas_ink(&c, 0, 2, 10, ink, "text", 4);
    assert_true(ui_overlay_row(&o, &c, 0, false, &renew) && !renew);
    ui_overlay_write(&c, 0, paints, &out);
    assert_non_null(strstr(ui_buf_str(&out), "\x1b[1;3H\x1b[0;4m\x1b]8;id="));
    assert_non_null(strstr(ui_buf_str(&out), ";http://a\x1b\\text\x1b]8;;\x1b\\"));
    static const struct {
        int32_t fg, bg;
        const char *code;
    } rows[] = {
        { 6, UI_COLOR_DEFAULT, "0;4;36m" },
        { 14, 1, "0;4;96;41m" },
        { 208, 236, "0;4;38;5;208;48;5;236m" },
        { UI_COLOR_RGB + 0x0a14ff, 12, "0;4;38;2;10;20;255;104m" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ui_buf_clear(&out);
        paints[UI_STYLE_LINK] = (UiPaint){ rows[i].fg, rows[i].bg, UI_ATTR_UNDERLINE };
        ui_overlay_write(&c, 0, paints, &out);
        assert_non_null(strstr(ui_buf_str(&out), rows[i].code));
    }
    assert_false(ui_overlay_row(&o, &c, 0, false, &renew) || renew);
    assert_true(ui_overlay_row(&o, &c, 0, true, &renew) && !renew);
    assert_true(ui_canvas_resize(&c, 1, 10));
    assert_false(ui_overlay_row(&o, &c, 0, false, &renew));
    assert_true(renew);
    ui_overlay_free(&o);
    ui_canvas_free(&c);
    ui_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terminals),
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
