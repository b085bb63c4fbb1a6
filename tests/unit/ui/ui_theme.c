/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Themes: contrast, own colors, terminals with few colors, and the answers about the background. */
#include <math.h>

#include "tests/harness/qsf_test.h"
#include "ui/keys.h"
#include "ui/overlay.h"
#include "ui/theme_config.h"

/* 0xRRGGBB of a color from 16 to 255. */
static uint32_t rgb_of(int32_t color) {
    UiTheme t;
    char value[16], err[200];
    (void)ui_theme_begin(&t, "dark", UI_BACKGROUND_UNKNOWN);
    (void)snprintf(value, sizeof value, "%d", color);
    assert_true(ui_theme_set(&t, "text", value, err, sizeof err));
    return (uint32_t)(ui_theme_paint(&t, UI_STYLE_TEXT, UI_DEPTH_DIRECT).fg - UI_COLOR_RGB);
}

/* Relative luminance of WCAG 2.1. */
static double luminance(uint32_t rgb) {
    static const double weight[] = { 0.0722, 0.7152, 0.2126 };
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        const double c = (double)(rgb >> 8 * i & 255) / 255;
        sum += weight[i] * (c <= 0.03928 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static double contrast(uint32_t a, uint32_t b) {
    const double x = luminance(a), y = luminance(b);
    return x > y ? (x + 0.05) / (y + 0.05) : (y + 0.05) / (x + 0.05);
}

/* The least favourable backgrounds that are assumed; black and white are better. */
#define DARK  0x303030
#define LIGHT 0xeeeeee

static void test_contrast(void **state) {
    (void)state;
    UiTheme t;
    assert_true(contrast(0xffffff, 0) > 20.9 && contrast(0x767676, 0xffffff) > 4.5);
    for (int light = 0; light < 2; light++) {
        assert_true(ui_theme_begin(&t, light ? "light" : "dark", UI_BACKGROUND_UNKNOWN));
        for (int s = 0; s < UI_STYLE_COUNT; s++) {
            const UiPaint p = ui_theme_paint(&t, (UiStyle)s, UI_DEPTH_256);
            const bool own = p.fg == UI_COLOR_DEFAULT; /* the text of the terminal */
            const uint32_t fg = own ? (light ? 0x000000 : 0xffffff) : rgb_of(p.fg);
            const uint32_t bg = p.bg == UI_COLOR_DEFAULT ? (light ? LIGHT : DARK) : rgb_of(p.bg);
            if (p.fg >= 0 && p.fg < 16) fail_msg("%s: terminals redefine %d", ui_theme_role((size_t)s), p.fg);
            if (!own && p.attrs & UI_ATTR_DIM) fail_msg("%s: dim", ui_theme_role((size_t)s));
            if (contrast(fg, bg) < 4.5)
                fail_msg("%s %s: contrast %.2f", light ? "light" : "dark", ui_theme_role((size_t)s),
                         contrast(fg, bg));
        }
    }
    /* Without colors nothing has one; with eight, those of the terminal. */
    for (int s = 0; s < UI_STYLE_COUNT; s++) {
        UiPaint p = ui_theme_paint(&t, (UiStyle)s, UI_DEPTH_NONE);
        assert_true(p.fg == UI_COLOR_DEFAULT && p.bg == UI_COLOR_DEFAULT);
        p = ui_theme_paint(&t, (UiStyle)s, UI_DEPTH_8);
        assert_true(p.fg < 8 && p.bg < 8);
    }
}

static void test_choice(void **state) {
    (void)state;
    static const struct {
        const char *name;
        UiBackground background;
        int32_t user;
    } rows[] = {
        { "auto", UI_BACKGROUND_UNKNOWN, 6 }, { "auto", UI_BACKGROUND_DARK, 80 },
        { "auto", UI_BACKGROUND_LIGHT, 24 },  { "dark", UI_BACKGROUND_LIGHT, 80 },
        { "light", UI_BACKGROUND_DARK, 24 },  { "ansi", UI_BACKGROUND_DARK, 6 },
        { "mono", UI_BACKGROUND_DARK, -1 },
    };
    UiTheme t;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(ui_theme_begin(&t, rows[i].name, rows[i].background));
        assert_int_equal(ui_theme_paint(&t, UI_STYLE_USER, UI_DEPTH_256).fg, rows[i].user);
    }
    assert_int_equal(ui_theme_paint(&t, UI_STYLE_USER, UI_DEPTH_8).fg, -1);
    assert_int_equal(ui_theme_paint(&t, UI_STYLE_USER, UI_DEPTH_8).attrs, UI_ATTR_BOLD);
    assert_false(ui_theme_begin(&t, "other", UI_BACKGROUND_LIGHT));
    assert_int_equal(ui_theme_paint(&t, UI_STYLE_USER, UI_DEPTH_256).fg, 24);
}

static void test_own(void **state) {
    (void)state;
    static const struct {
        const char *value;
        int32_t fg, bg;
        unsigned attrs;
    } good[] = {
        { "cyan", 6, -1, 0 },
        { "bright-red on black bold", 9, 0, UI_ATTR_BOLD },
        { "underline 208", 208, -1, UI_ATTR_UNDERLINE },
        { "#FFaf00 on #000001 dim italic", UI_COLOR_RGB + 0xffaf00, UI_COLOR_RGB + 1,
          UI_ATTR_DIM | UI_ATTR_ITALIC },
        { "on 236", -1, 236, 0 },
        { "default", -1, -1, 0 },
        { "  reverse\tbold ", -1, -1, UI_ATTR_REVERSE | UI_ATTR_BOLD },
    };
    static const char *const bad[] = { "256",     "-1",         "#12345",
                                       "#12345g", "red blue",   "red on",
                                       "on bold", "pink",       "red on blue on green",
                                       "bright-", "bright-pink" };
    UiTheme t;
    char err[300];
    (void)ui_theme_begin(&t, "dark", UI_BACKGROUND_UNKNOWN);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(ui_theme_set(&t, "link", good[i].value, err, sizeof err));
        const UiStyleRow *r = &t.rows[UI_STYLE_LINK];
        assert_true(r->fg == good[i].fg && r->bg == good[i].bg && r->attrs == good[i].attrs);
        assert_int_equal(ui_theme_paint(&t, UI_STYLE_LINK, UI_DEPTH_NONE).attrs, good[i].attrs);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (ui_theme_set(&t, "link", bad[i], err, sizeof err)) fail_msg("%s", bad[i]);
    assert_false(ui_theme_set(&t, "linc", "red", err, sizeof err));
    assert_true(ui_theme_set(&t, "heading", "red", err, sizeof err));
    assert_int_equal(t.rows[UI_STYLE_H1].fg, 1);
    assert_int_equal(t.rows[UI_STYLE_H3].fg, 1);
    assert_false(ui_theme_check("light", NULL, NULL, err, sizeof err));
    assert_true(ui_theme_check("mine", NULL, NULL, err, sizeof err));
    assert_false(ui_theme_check("mine", "anwser", "red", err, sizeof err));
    assert_string_equal(err, "unknown role 'anwser': did you mean answer?");
    assert_false(ui_theme_check("mine", "base", "mine", err, sizeof err));
    assert_true(ui_theme_check("mine", "base", "light", err, sizeof err));
}

/* Each terminal gets the nearest color that it has. */
static void test_depths(void **state) {
    (void)state;
    UiTheme t;
    char err[300];
    (void)ui_theme_begin(&t, "ansi", UI_BACKGROUND_UNKNOWN);
    static const struct {
        const char *value;
        int32_t direct, all, sixteen, eight;
    } rows[] = {
        { "#ff8700", UI_COLOR_RGB + 0xff8700, 208, 3, 3 },
        { "208", UI_COLOR_RGB + 0xff8700, 208, 3, 3 },
        { "#0a0a0b", UI_COLOR_RGB + 0x0a0a0b, 232, 0, 0 },
        { "bright-red", UI_COLOR_RGB + 0xff0000, 9, 9, 1 },
        { "red", 1, 1, 1, 1 },
        { "default", -1, -1, -1, -1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(ui_theme_set(&t, "code", rows[i].value, err, sizeof err));
        assert_int_equal(ui_theme_paint(&t, UI_STYLE_CODE, UI_DEPTH_DIRECT).fg, rows[i].direct);
        assert_int_equal(ui_theme_paint(&t, UI_STYLE_CODE, UI_DEPTH_256).fg, rows[i].all);
        assert_int_equal(ui_theme_paint(&t, UI_STYLE_CODE, UI_DEPTH_16).fg, rows[i].sixteen);
        assert_int_equal(ui_theme_paint(&t, UI_STYLE_CODE, UI_DEPTH_8).fg, rows[i].eight);
    }
    assert_int_equal(rgb_of(16), 0);
    assert_int_equal(rgb_of(231), 0xffffff);
    assert_int_equal(rgb_of(232), 0x080808);
    assert_int_equal(rgb_of(255), 0xeeeeee);
    assert_int_equal(rgb_of(110), 0x87afd7);
}

static void test_answers(void **state) {
    (void)state;
    static const struct {
        const char *answer;
        UiBackground is;
    } rows[] = {
        { "\x1b]11;rgb:0000/0000/0000\a", UI_BACKGROUND_DARK },
        { "\x1b]11;rgb:ffff/ffff/dddd\x1b\\", UI_BACKGROUND_LIGHT },
        { "\x1b]11;rgba:1e1e/1e1e/2e2e/ffff\a", UI_BACKGROUND_DARK },
        { "\x1b]11;rgb:FD/f6/E3\a", UI_BACKGROUND_LIGHT },
        { "\x1b]11;rgb:f/f/f\a", UI_BACKGROUND_LIGHT },
        { "\x1b]11;rgb:0/0\a", UI_BACKGROUND_UNKNOWN },
        { "\x1b]11;rgb:x/0/0\a", UI_BACKGROUND_UNKNOWN },
        { "\x1b]10;rgb:0/0/0\a", UI_BACKGROUND_UNKNOWN },
        { "\x1b]11;", UI_BACKGROUND_UNKNOWN },
        { "\x1b]11;rgb", UI_BACKGROUND_UNKNOWN },
        { "\x1b]11;rgb:", UI_BACKGROUND_UNKNOWN },
        { "", UI_BACKGROUND_UNKNOWN },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *answer = rows[i].answer;
        if (ui_theme_answer(answer, strlen(answer)) != rows[i].is) fail_msg("%s", answer + 1);
    }
    assert_int_equal(ui_theme_colorfgbg("15;0"), UI_BACKGROUND_DARK);
    assert_int_equal(ui_theme_colorfgbg("0;default;15"), UI_BACKGROUND_LIGHT);
    assert_int_equal(ui_theme_colorfgbg("0;7"), UI_BACKGROUND_LIGHT);
    assert_int_equal(ui_theme_colorfgbg("7;8"), UI_BACKGROUND_DARK);
    assert_int_equal(ui_theme_colorfgbg("15;default"), UI_BACKGROUND_UNKNOWN);
    assert_int_equal(ui_theme_colorfgbg("15"), UI_BACKGROUND_UNKNOWN);
    assert_int_equal(ui_theme_colorfgbg(NULL), UI_BACKGROUND_UNKNOWN);
}

/* The actions of bytes as letters: R a reply, E a key of the input, ^ Esc; r and e: ended by the time. */
static const char *actions(UiKeys *k, const char *bytes) {
    static char out[80];
    size_t n = 0;
    UiKey key;
    for (; *bytes; bytes++) {
        for (bool any = ui_keys_feed(k, *bytes, &key); any; any = ui_keys_more(k, &key))
            out[n++] = key.action == UI_DO_REPLY ? 'R' : key.action == UI_DO_ESCAPE ? '^' : 'E';
    }
    if (ui_keys_wait_ms(k) >= 0)
        for (bool any = ui_keys_timeout(k, &key); any; any = ui_keys_more(k, &key))
            out[n++] = key.action == UI_DO_REPLY ? 'r' : key.action == UI_DO_ESCAPE ? '^' : 'e';
    out[n] = '\0';
    return out;
}

static void test_reply_keys(void **state) {
    (void)state;
    UiKeys k = { 0 };
    /* Nothing was asked: a key and what is typed. */
    assert_string_equal(actions(&k, "\x1b]11;a"), "EEEEE");
    k.replies = true;
    assert_string_equal(actions(&k, "a\x1b]11;rgb:0000/0000/0000\ab"), "ERE");
    assert_string_equal(actions(&k, "\x1b]11;rgba:ffff/ffff/ffff/ffff\x1b\\b"), "RE");
    assert_string_equal(actions(&k, "\x1b]"), "^e"); /* Alt-], which knows() would name */
    assert_string_equal(actions(&k, "\x1b]11;rgb:00"), "r");
    assert_string_equal(actions(&k, "\x1b[A"), "E");
    assert_string_equal(actions(&k, "x"), "E");
    ui_keys_free(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contrast), cmocka_unit_test(test_choice),  cmocka_unit_test(test_own),
        cmocka_unit_test(test_depths),   cmocka_unit_test(test_answers), cmocka_unit_test(test_reply_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
