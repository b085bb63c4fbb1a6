/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whole frames on a canvas at the important sizes, and at all small ones. */
#include "tests/harness/fake_engine.h"
#include "tests/harness/qsf_test.h"
#include "ui/heat.h"
#include "ui/screen.h"
#include "ui/statuspane.h"

static FakeEngine engine;
static UiApp app;
static UiScreen screen;
static const UiMenu no_menu = { .chosen = -1 };

static int setup(void **state) {
    (void)state;
    QSFSettings s;
    qsf_settings_default(&s);
    ui_app_init(&app, fake_engine(&engine), &s);
    app.full_screen = app.interactive = true;
    ui_screen_init(&screen, &app, true);
    ui_app_load(&app, "tiny.gguf");
    fake_loaded(&engine);
    ui_app_pump(&app);
    QSFStats *st = &engine.stats;
    st->state = QSF_STATE_DECODE;
    st->decode_tps = 3.42;
    st->prefill_tps = 41;
    st->prefill_total = st->prefill_done = 180;
    st->out_tokens = 195;
    st->max_tokens = 512;
    st->ctx_used = 1311;
    st->ctx_size = 4096;
    st->budget = (uint64_t)200 << 20;
    st->rss = (uint64_t)193 << 20;
    st->peak_rss = (uint64_t)195 << 20;
    st->mem[0] = (QSFMemRow){ "weights", (uint64_t)127 << 20, (uint64_t)127 << 20 };
    st->mem[1] = (QSFMemRow){ "KV cache", (uint64_t)60 << 20, (uint64_t)60 << 20 };
    st->mem[2] = (QSFMemRow){ "logits", 0, 100 };
    st->n_mem = 3;
    st->token_p = 0.62;
    st->token_entropy = 1.83;
    st->threads = 2;
    st->prefill_threads = 3;
    (void)snprintf(st->template_name, sizeof st->template_name, "chatml");
    ui_app_submit(&app, "why does a double buffer hide disk latency?", 43);
    fake_text(&engine, "While layer 7 is computed from buffer A, the reader fills buffer B.");
    ui_app_pump(&app);
    ui_app_tick(&app, 1);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    ui_screen_free(&screen);
    ui_app_free(&app);
    return 0;
}

static UiBuf shot;

/* The frame as text. */
static const char *frame(const char *typed, int cols, int rows) {
    UiInputView in = {
        .prompt = "> ", .text = typed, .len = strlen(typed), .point = strlen(typed), .menu = &no_menu
    };
    ui_screen_draw(&screen, &in, rows, cols);
    ui_buf_clear(&shot);
    for (int row = 0; row < rows; row++) {
        ui_canvas_text(&screen.canvas, row, &shot);
        ui_buf_puts(&shot, "\n");
    }
    return ui_buf_str(&shot);
}

#define HAS(text, part)                                       \
    do {                                                      \
        if (!strstr(text, part)) print_message("%s\n", text); \
        assert_non_null(strstr(text, part));                  \
    } while (0)

static void test_wide(void **state) {
    (void)state;
    const char *s = frame("next", 100, 30);
    HAS(s, " qsf-chat  tiny  chatml");
    HAS(s, "2 threads");
    HAS(s, "STATE   writing");
    HAS(s, "decode   3.42 t/s");
    HAS(s, "prefill  41.0 t/s");
    HAS(s, "195/512");
    HAS(s, "eta 1m33s");
    HAS(s, "CTX 1311/4096 ");
    HAS(s, "32%");
    HAS(s, "RAM 187/200 MB ");
    HAS(s, "weights                  127");
    HAS(s, "KV cache");
    assert_null(strstr(s, "logits"));
    HAS(s, "RSS 193  peak 195 MB");
    HAS(s, "*temperature .70");
    HAS(s, "entropy 1.83 b  p(token) 0.62");
    HAS(s, "│ why does a double buffer hide");
    HAS(s, "\n> next\n");
    HAS(s, "F1 help");
    assert_null(strstr(s, "IO  "));
    engine.stats.streamed_bytes = 1000;
    engine.stats.io_gbps = 2.2;
    engine.stats.stall = 0.08;
    engine.stats.bytes_per_token = 341 * 1048576.0;
    (void)snprintf(engine.stats.io_name, sizeof engine.stats.io_name, "io_uring, direct");
    engine.stats.recent_peak_rss = (uint64_t)194 << 20; /* the budget was larger before */
    ui_app_tick(&app, 2);
    s = frame("", 100, 30);
    HAS(s, "RSS 193  peak 194 (195) MB");
    HAS(s, "IO  2.20 GB/s  stall 8%");
    HAS(s, "341 MB/tok  io_uring, direct");
    /* Many memory owners never push the sampling line out: the small ones are combined. */
    for (uint32_t i = 0; i < QSF_STATS_MEM; i++)
        engine.stats.mem[i] = (QSFMemRow){ i == 7 ? "great" : "small", (uint64_t)(i == 7 ? 90 : 1) << 20, 0 };
    engine.stats.n_mem = QSF_STATS_MEM;
    ui_app_tick(&app, 3);
    s = frame("", 100, 30);
    HAS(s, "great                   90.0");
    HAS(s, "others");
    HAS(s, "seed random");
    HAS(s, "p(token) 0.62");
}

static void test_strip(void **state) {
    (void)state;
    const char *s = frame("", 80, 24);
    HAS(s, " writing 3.42 t/s out 195/512 eta 1m33s │ ctx 1311/4096 32% │ RAM 187/200 MB 94%\n");
    HAS(s, "*T .70 p .90 k 40 │ H 1.83b p 0.62");
    HAS(s, "F1 help");
    screen.pane = false;
    assert_null(strstr(frame("", 80, 24), "RAM 187"));
}

static void test_line(void **state) {
    (void)state;
    const char *s = frame("and if", 40, 12);
    HAS(s, "you> why does a double buffer hide disk\n     latency?\n");
    HAS(s, "ai > While layer 7");
    HAS(s, "\n3.42t/s 195/512 ctx32% RAM187/200 T.70\n");
    HAS(s, "\n> and if\n");
    assert_null(strstr(s, "F1 help"));
}

/* While experts are left out, every form of the status says it. */
static void test_limits(void **state) {
    (void)state;
    app.settings.params.expert_top = 2;
    HAS(frame("", 100, 44), "experts     2\n");
    engine.stats.experts = 8;
    engine.stats.expert_top = 2;
    engine.stats.expert_drop = 0.1f;
    ui_app_tick(&app, 2);
    HAS(frame("", 100, 44), "experts     2 of 8, weight 0.1");
    HAS(frame("", 80, 24), "k 40 │ experts 2 │ weight 0.1 │ H ");
    HAS(frame("", 40, 12), "RAM187/200 E2");
    app.settings.params.expert_top = 0;
    engine.stats.expert_top = 0;
    ui_app_tick(&app, 2);
    HAS(frame("", 100, 44), "experts  weight 0.1");
    engine.stats.expert_drop = 0;
    ui_app_tick(&app, 2);
    assert_null(strstr(frame("", 100, 44), "experts"));
}

/* The time left is known before the speed is. */
static void test_prefill(void **state) {
    (void)state;
    QSFStats *st = &engine.stats;
    st->state = QSF_STATE_PREFILL;
    st->prefill_done = 0;
    st->prefill_total = 300;
    st->prefill_tps = 0;
    st->prefill_left = 75;
    ui_app_tick(&app, 10);
    HAS(frame("", 100, 30), " - t/s  eta 1m15s");
    HAS(frame("", 100, 30), "  3 threads  "); /* those of prompts */
    HAS(frame("", 80, 24), " reading 0/300 eta 1m15s");
    HAS(frame("", 40, 12), "reading 0/300 ctx32% RAM187/200 1m15s");
}

/* The model answers while weights are still being loaded into RAM. */
static void test_pinning(void **state) {
    (void)state;
    QSFStats *st = &engine.stats;
    st->pin_done = (uint64_t)60 << 20;
    st->pin_total = (uint64_t)515 << 20;
    ui_app_tick(&app, 10);
    assert_true(ui_app_pinning(&app));
    assert_true(ui_app_pin_left(&app) < 0);
    st->pin_done = (uint64_t)120 << 20;
    ui_app_tick(&app, 12);
    const char *s = frame("", 100, 30);
    HAS(s, "STATE   writing");
    HAS(s, "pinning 120/515 MB           13s");
    HAS(s, "23%");
    HAS(s, "seed random");
    HAS(frame("", 80, 24), " pinning 120/515 MB 13s │ *T .70");
    HAS(frame("", 40, 12), "\n3.42t/s 195/512 pinning 120/515 MB");
    st->state = QSF_STATE_IDLE;
    ui_app_tick(&app, 12.1);
    HAS(frame("", 40, 12), "\npinning 120/515 MB ctx32% RAM187/200\n");
    st->pin_done = st->pin_total;
    ui_app_tick(&app, 13);
    assert_false(ui_app_pinning(&app));
    assert_null(strstr(frame("", 100, 30), "pinning"));
    /* The engine's total progress counts, that of an earlier plan does not. */
    st->pin_done = (uint64_t)10 << 20;
    st->pin_total = (uint64_t)20 << 20;
    ui_app_tick(&app, 14);
    assert_true(ui_app_pin_left(&app) < 0);
}

/* n layers and the head; every second one streams and the third one stalled. */
static void streams(uint32_t n) {
    engine.n_layers = n + 1;
    for (uint32_t i = 0; i <= n; i++)
        engine.layers[i] = (QSFLayerStats){ .weight_bytes = 1000,
                                            .pinned_bytes = i % 2 ? 500 : 1000,
                                            .compute_ns = 900,
                                            .wait_ns = i == 3   ? 800
                                                       : i == 5 ? 100
                                                                : 5 };
    engine.stats.n_layers = n;
    engine.stats.layer = 5;
    engine.stats.streamed_bytes = 1000;
    ui_app_tick(&app, 20);
}

static void test_heat(void **state) {
    (void)state;
    uint32_t worst[2];
    streams(8);
    const char *s = frame("", 100, 30);
    HAS(s, "│  █▄█▄█▄█▄█ pinned");
    HAS(s, "│     ! ▲    ! = waited");
    HAS(s, "seed random");
    assert_int_equal(ui_heat_worst(engine.layers, 9, worst, 2), 2);
    assert_int_equal(worst[0], 3);
    assert_int_equal(worst[1], 5);
    assert_int_equal(ui_heat_worst(engine.layers, 0, worst, 2), 0);
    /* More layers than cells: three per cell. */
    streams(70);
    s = frame("", 100, 30);
    HAS(s, "│  ▆▅▆▅▆▅▆▅▆▅▆▅▆▅▆▅▆▅▆▅▆▅▆▆ pinned");
    /* The lower half of a small window shows the settings. */
    s = frame("", 100, 20);
    assert_null(strstr(s, "pinned"));
    HAS(s, "SAMPLE");
    screen.canvas.unicode = false;
    streams(8);
    s = frame("", 100, 30);
    HAS(s, "|  #=#=#=#=# pinned");
    HAS(s, "|     ! ^    ! = waited");
    for (const char *p = s; *p; p++) assert_true((unsigned char)*p < 0x80);
}

/* Of a sparse model the cells show the experts in memory, and a row the hits. */
static void test_experts(void **state) {
    QSFExpertInfo *x = &engine.stats.expert;
    (void)state;
    streams(8);
    for (uint32_t i = 0; i < 8; i++) {
        engine.layers[i].experts = 64;
        engine.layers[i].experts_in = 8 * i;
    }
    *x = (QSFExpertInfo){ .bytes = (uint64_t)3456 << 20, .n = 512, .resident = 256, .expected_hits = 0.65 };
    ui_app_tick(&app, 21);
    const char *s = frame("", 100, 30);
    HAS(s, "experts 65% hit, 1728/3456 MB");
    HAS(s, "│  ·▁▂▃▄▅▆▇█ experts");
    HAS(s, "p(token) 0.62");
    x->uses = 100;
    x->hits = 0.71;
    ui_app_tick(&app, 22);
    HAS(frame("", 100, 30), "experts 71% hit, 1728/3456 MB");
    HAS(frame("", 80, 24), "MB/tok 71% hit ");
    x->resident = 512; /* all of them */
    ui_app_tick(&app, 23);
    s = frame("", 100, 30);
    assert_null(strstr(s, "experts"));
    HAS(s, "pinned");
}

static void test_ascii(void **state) {
    (void)state;
    screen.canvas.unicode = false;
    const char *s = frame("", 100, 30);
    for (const char *p = s; *p; p++) assert_true((unsigned char)*p < 0x80);
    HAS(s, "[####");
    HAS(s, "| why does");
}

/* No size crashes, and the cursor is always inside. */
static void test_all_sizes(void **state) {
    (void)state;
    engine.stats.pin_total = 100;
    streams(32);
    for (int rows = 1; rows < 34; rows++) {
        for (int cols = 1; cols < 130; cols += cols < 24 ? 1 : 7) {
            for (int help = 0; help < 2; help++) {
                screen.pager.open = screen.pager.help = help;
                (void)frame("some text\nof two lines that is longer than most", cols, rows);
                assert_true(screen.canvas.cursor_row < rows);
                assert_true(screen.canvas.cursor_col <= cols);
            }
        }
    }
    screen.pager.open = false;
    HAS(frame("abc", 20, 5), "> abc");
    HAS(frame("abc", 12, 3), "> abc");
}

static void test_queue_and_flash(void **state) {
    (void)state;
    ui_app_submit(&app, "and what if\nit is slow?", 23);
    HAS(frame("", 80, 24), "\n queued 1: and what if it is slow?");
    HAS(frame("", 80, 24), " Up takes it back\n");
    for (int i = 2; i <= 5; i++) ui_app_submit(&app, "more", 4);
    HAS(frame("", 80, 24), "\n queued 2: more");
    HAS(frame("", 80, 24), "\n queued 3 of 5: more");
    HAS(frame("", 80, 24), " /queue lists them");
    HAS(frame("", 100, 30), "\n queued 5: more");
    HAS(frame("", 40, 12), "\n queued 1 of 5: and what if");
    ui_screen_flash(&screen, "hello %d", 5);
    HAS(frame("", 80, 24), "─ hello 5 ─");
}

/* Tokens of what is typed, the room for it, and the time until the first token. */
static void test_typed(void **state) {
    (void)state;
    HAS(frame("and if", 80, 24), " 7 tokens, room for 2,785 ");
    assert_null(strstr(frame("and if", 80, 24), "first token")); /* an answer is being generated */
    assert_null(strstr(frame("and if", 40, 12), "room for"));
    assert_null(strstr(frame("/stats", 80, 24), "room for"));
    assert_null(strstr(frame("", 80, 24), "room for"));
    fake_done(&engine, QSF_STOP_EOS, 3);
    ui_app_pump(&app);
    app.read_tps = 0.5;
    HAS(frame("and if", 80, 24), " (first token in about 14s) ");
}

static void test_input_rows(void **state) {
    (void)state;
    int row, col;
    UiInputView in = { .prompt = "> ", .text = "abcdefgh", .len = 8, .point = 8, .menu = &no_menu };
    assert_int_equal(ui_input_rows(&in, 20, &row, &col), 1);
    assert_int_equal(col, 10);
    /* A full row moves the cursor to the next one. */
    assert_int_equal(ui_input_rows(&in, 10, &row, &col), 2);
    assert_int_equal(row, 1);
    assert_int_equal(col, 0);
    in.text = "a\nb";
    in.len = in.point = 3;
    assert_int_equal(ui_input_rows(&in, 10, &row, &col), 2);
    assert_int_equal(row, 1);
    assert_int_equal(col, 3);
    in.text = "双\x1b[";
    in.len = 5;
    in.point = 3;
    assert_int_equal(ui_input_rows(&in, 10, &row, &col), 1);
    assert_int_equal(col, 4);
    HAS(frame("a\x1b[31mb", 80, 24), "> a^[[31mb");
    /* It grows up to a third of the screen. */
    const char *s = frame("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12", 80, 24);
    assert_null(strstr(s, "  4\n"));
    HAS(s, "  5\n");
    HAS(s, "  12\n");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_prefill, setup, teardown),
        T(test_wide),
        T(test_strip),
        T(test_line),
        T(test_limits),
        T(test_pinning),
        T(test_heat),
        T(test_experts),
        T(test_ascii),
        T(test_all_sizes),
        T(test_queue_and_flash),
        T(test_typed),
        T(test_input_rows),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    ui_buf_free(&shot);
    return rc;
}
