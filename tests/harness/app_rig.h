/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen on a scripted engine, for the tests of ui/. In a header, because other tests do
 * not link ui/. */
#ifndef QSF_TESTS_APP_RIG_H
#define QSF_TESTS_APP_RIG_H

#include "tests/harness/fake_engine.h"
#include "tests/harness/qsf_test.h"
#include "ui/app.h"

/* A chat whose model is loaded. */
typedef struct Fixture {
    FakeEngine engine;
    UiApp app;
} Fixture;

static inline void say(Fixture *x, const char *text) { (void)ui_app_submit(&x->app, text, strlen(text)); }

static inline void answer(Fixture *x, const char *text) {
    fake_text(&x->engine, text);
    fake_done(&x->engine, QSF_STOP_EOS, 3);
    ui_app_pump(&x->app);
}

static inline int setup(void **state) {
    Fixture *x = calloc(1, sizeof *x);
    QSFSettings s;
    char dir[400];
    (void)snprintf(dir, sizeof dir, "%s.XXXXXX", qsf_test_tmp("sessions"));
    if (!x || !mkdtemp(dir)) return 1;
    setenv("XDG_DATA_HOME", dir, 1);
    ui_settings_default(&s);
    ui_app_init(&x->app, fake_engine(&x->engine), &s);
    x->app.full_screen = x->app.interactive = true;
    ui_app_load(&x->app, "tiny.gguf");
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    *state = x;
    return 0;
}

static inline int teardown(void **state) {
    Fixture *x = *state;
    ui_app_free(&x->app);
    free(x);
    return 0;
}

static inline const char *last_text(const Fixture *x) {
    const UiItem *it = ui_transcript_last(&x->app.chat);
    return it ? ui_buf_str(&it->raw) : "";
}

static inline const char *last_said(const Fixture *x, UiKind kind) {
    const UiItem *it = ui_transcript_last_of(&x->app.chat, kind);
    return it ? ui_buf_str(&it->raw) : "";
}

#endif
