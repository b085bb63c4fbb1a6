/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen, on a scripted engine: queue, stop, retry, undo, continue, settings, sessions. */
#include "tests/harness/app_rig.h"
#include "ui/canvas.h"

static void test_turns(void **state) {
    Fixture *x = *state;
    assert_string_equal(x->engine.path, "tiny.gguf");
    say(x, "hello");
    assert_string_equal(x->engine.roles, "u");
    assert_string_equal(x->engine.last_content, "hello");
    answer(x, "hi there");
    assert_string_equal(last_text(x), "hi there");
    say(x, "  more \n");
    assert_string_equal(x->engine.roles, "uau");
    assert_string_equal(x->engine.last_content, "more");
}

static void test_queue(void **state) {
    Fixture *x = *state;
    UiQueue *q = &x->app.queue;
    size_t len;
    say(x, "one");
    assert_true(ui_app_submit(&x->app, "two", 3));
    assert_true(ui_app_submit(&x->app, "three", 5));
    assert_int_equal(q->n, 2);
    assert_int_equal(q->bytes, 8);
    say(x, "/queue");
    assert_string_equal(last_said(x, UI_OUTPUT), "1  two\n2  three");
    char *back = ui_queue_take(q, 0, &len);
    assert_string_equal(back, "two");
    free(back);
    assert_true(ui_app_submit(&x->app, "four", 4));
    assert_int_equal(x->engine.n_submits, 1);
    answer(x, "first");
    assert_int_equal(x->engine.n_submits, 2);
    assert_string_equal(x->engine.roles, "uau");
    assert_string_equal(x->engine.last_content, "three");
    answer(x, "second");
    assert_string_equal(x->engine.last_content, "four");
    assert_int_equal(q->n, 0);
}

/* Messages are removed or taken into the input by their number. */
static void test_queue_command(void **state) {
    Fixture *x = *state;
    UiApp *a = &x->app;
    say(x, "/queue");
    assert_string_equal(last_said(x, UI_OUTPUT), "no message is queued");
    say(x, "/queue 1");
    assert_string_equal(last_said(x, UI_ERROR), "/queue: no message is queued");
    say(x, "zero");
    say(x, "one");
    say(x, "two");
    say(x, "three");
    say(x, "/queue drop 2");
    assert_string_equal(a->queue.items[1].text, "three");
    say(x, "/queue 3");
    assert_string_equal(last_said(x, UI_ERROR), "/queue: '3' is not the number of a queued message: 1 to 2");
    say(x, "/queue drop");
    assert_string_equal(last_said(x, UI_ERROR), "/queue: '' is not the number of a queued message: 1 to 2");
    say(x, "/queue 1");
    assert_string_equal(ui_buf_str(&a->draft), "one");
    say(x, "/queue drop all");
    assert_int_equal(a->queue.n, 0);
    assert_int_equal(a->queue.bytes, 0);
}

/* A held queue sends nothing by itself; an empty line sends the next one, and then the rest follows. What was
 * taken out of it while the answer still stops goes back to its place. */
static void test_queue_held(void **state) {
    Fixture *x = *state;
    UiApp *a = &x->app;
    say(x, "one");
    say(x, "three");
    assert_true(ui_app_stop(a));
    a->queue.held = true;
    say(x, "two");
    assert_string_equal(a->queue.items[0].text, "two");
    a->queue.held = true;
    fake_text(&x->engine, "an");
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 1);
    ui_app_pump(a);
    assert_int_equal(x->engine.n_submits, 1);
    say(x, "");
    assert_string_equal(x->engine.last_content, "two");
    answer(x, "2");
    assert_string_equal(x->engine.last_content, "three");
    /* Sent now: the answer stops, and the next one goes out by itself. */
    say(x, "four");
    ui_app_send_next(a);
    assert_int_equal(x->engine.n_cancels, 2);
    fake_text(&x->engine, "3");
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 1);
    ui_app_pump(a);
    assert_string_equal(x->engine.last_content, "four");
}

/* The number of messages and their memory are limited. */
static void test_queue_limits(void **state) {
    Fixture *x = *state;
    UiApp *a = &x->app;
    static char big[40000];
    say(x, "one");
    for (int i = 0; i < UI_QUEUE_MAX; i++) assert_true(ui_app_submit(a, "more", 4));
    assert_false(ui_app_submit(a, "more", 4));
    say(x, "/queue drop all");
    memset(big, 'x', sizeof big);
    x->engine.stats.budget = (uint64_t)2 << 20;
    x->engine.stats.mem[0] = (QSFMemRow){ "weights", 1 << 20, 1 << 20 };
    x->engine.stats.n_mem = 1;
    const size_t room = ui_app_text_room(a);
    int n = 0;
    while (n < UI_QUEUE_MAX && ui_app_submit(a, big, sizeof big)) n++;
    assert_in_range(n, 2, 30);
    assert_true(ui_app_text_room(a) < room);
}

/* A larger window takes memory of the budget, as texts do, and is used as far as there is some. */
static void test_screen_room(void **state) {
    Fixture *x = *state;
    UiApp *a = &x->app;
    a->model_ready = false;
    assert_int_equal(ui_app_screen_room(a), UI_CELLS_MAX);
    ui_app_screen_has(a, UI_CELLS_ALWAYS + 1000, false);
    ui_app_load(a, "m.gguf");
    assert_int_equal(a->settings.owner_bytes, 1000 * 128);
    fake_loaded(&x->engine);
    ui_app_pump(a);
    ui_app_screen_has(a, UI_CELLS_ALWAYS + 1000, true);
    x->engine.stats.budget = (uint64_t)2 << 20;
    x->engine.stats.mem[0] = (QSFMemRow){ "weights", 1 << 20, 1 << 20 };
    x->engine.stats.n_mem = 1;
    const size_t room = ui_app_screen_room(a), text = ui_app_text_room(a);
    assert_in_range(room, UI_CELLS_ALWAYS + 8000, UI_CELLS_ALWAYS + 1000 + (1 << 20) / 128);
    ui_app_screen_has(a, UI_CELLS_ALWAYS + 5000, true);
    assert_int_equal(ui_app_screen_room(a), room);
    assert_true(ui_app_text_room(a) < text);
    x->engine.stats.budget = (uint64_t)1 << 20; /* nothing is free: it stays as it is */
    assert_int_equal(ui_app_screen_room(a), UI_CELLS_ALWAYS + 5000);
    ui_app_screen_has(a, 80 * 24, true);
    assert_int_equal(ui_app_screen_room(a), UI_CELLS_ALWAYS + 1000);
    /* The next plan finds the drawn screen in the program's memory. */
    ui_app_load(a, "n.gguf");
    assert_int_equal(a->settings.owner_bytes, 0);
}

static void test_stop_keeps(void **state) {
    Fixture *x = *state;
    assert_false(ui_app_stop(&x->app));
    say(x, "one");
    fake_text(&x->engine, "half an ans");
    ui_app_pump(&x->app);
    assert_true(ui_app_stop(&x->app));
    assert_int_equal(x->engine.n_cancels, 1);
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 2);
    ui_app_pump(&x->app);
    assert_string_equal(last_text(x), "half an ans");
    assert_string_equal(ui_transcript_last(&x->app.chat)->stop, "interrupted");
    say(x, "/continue");
    assert_true(x->engine.go_on);
    assert_string_equal(x->engine.roles, "ua");
    answer(x, "wer.");
    assert_string_equal(last_text(x), "half an answer.");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
}

static void test_stop_before_text(void **state) {
    Fixture *x = *state;
    say(x, "one");
    ui_app_stop(&x->app);
    fake_done(&x->engine, QSF_STOP_INTERRUPTED, 0);
    ui_app_pump(&x->app);
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 0);
    say(x, "two");
    assert_string_equal(x->engine.roles, "u");
    answer(x, "yes");
    say(x, "/retry");
    assert_string_equal(x->engine.roles, "u");
    assert_string_equal(x->engine.last_content, "two");
}

static void test_retry_after_failure(void **state) {
    Fixture *x = *state;
    say(x, "one");
    fake_error(&x->engine, 5, "prompt longer than the context");
    ui_app_pump(&x->app);
    assert_int_equal(x->app.exit_code, 5);
    assert_string_equal(last_said(x, UI_ERROR), "prompt longer than the context");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 0);
    say(x, "/retry");
    assert_string_equal(x->engine.roles, "u");
    assert_string_equal(x->engine.last_content, "one");
    answer(x, "fine");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
}

static void test_undo(void **state) {
    Fixture *x = *state;
    say(x, "one"), answer(x, "1");
    say(x, "two"), answer(x, "2");
    say(x, "three"), answer(x, "3");
    say(x, "/undo");
    assert_string_equal(last_text(x), "2");
    say(x, "/undo 2");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 0);
    x->app.exit_code = 0;
    say(x, "/undo");
    assert_int_equal(x->app.exit_code, 1);
    say(x, "/undo x");
    assert_non_null(strstr(last_said(x, UI_ERROR), "not 'x'"));
}

/* Kinds of displayed entries: u and a for messages, n, e, c and o for output of the program. */
static const char *shown(const Fixture *x) {
    static char kinds[100];
    size_t n = 0;
    for (size_t i = 0; i < x->app.chat.n && n < sizeof kinds - 1; i++)
        kinds[n++] = "uaneco"[x->app.chat.items[i]->kind];
    kinds[n] = '\0';
    return kinds;
}

/* Output between removed messages and after them is removed; earlier output is kept. */
static void test_undo_takes_notices(void **state) {
    Fixture *x = *state;
    ui_transcript_clear(&x->app.chat);
    say(x, "/temp 0.5");
    say(x, "one"), answer(x, "1");
    say(x, "/stats");
    say(x, "two");
    say(x, "/temp 0.6");
    answer(x, "2");
    say(x, "/nonsense");
    assert_string_equal(shown(x), "nuacouane");
    say(x, "/undo");
    assert_string_equal(shown(x), "nuacon");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "1 exchange"));
    /* A message that was not answered does not belong to the exchange before it. */
    say(x, "three");
    fake_error(&x->engine, 1, "read error");
    ui_app_pump(&x->app);
    assert_string_equal(shown(x), "nuaconue");
    say(x, "/undo");
    assert_string_equal(shown(x), "nuen");
    say(x, "/retry");
    assert_string_equal(x->engine.last_content, "three");
    answer(x, "3");
    say(x, "/stats");
    say(x, "/retry");
    answer(x, "4");
    assert_string_equal(last_text(x), "4");
}

static void test_settings(void **state) {
    Fixture *x = *state;
    say(x, "one");
    say(x, "/temp .25");
    assert_float_equal(x->engine.params.temperature, 0.25f, 1e-6);
    say(x, "/set parameter top_k 7");
    assert_int_equal(x->engine.params.top_k, 7);
    assert_int_equal(x->engine.n_loads, 1);
    say(x, "/set batch 1024");
    assert_int_equal(x->engine.n_loads, 1);
    answer(x, "1");
    assert_int_equal(x->engine.n_loads, 2);
    assert_int_equal(x->engine.settings.batch, 1024);
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    x->app.exit_code = 0;
    say(x, "/set temperature 9");
    assert_int_equal(x->app.exit_code, 1);
    assert_float_equal(x->engine.params.temperature, 0.25f, 1e-6);
}

static void test_setting_steps(void **state) {
    Fixture *x = *state;
    assert_string_equal(qsf_setting_at(x->app.knob)->name, "temperature");
    ui_app_knob_turn(&x->app, 1);
    assert_float_equal(x->engine.params.temperature, 0.75f, 1e-6);
    ui_app_knob_turn(&x->app, -3);
    assert_float_equal(x->engine.params.temperature, 0.6f, 1e-6);
    assert_string_equal(last_said(x, UI_NOTICE), "temperature 0.7 -> 0.6");
    ui_app_knob_turn(&x->app, -100);
    assert_float_equal(x->engine.params.temperature, 0, 0);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        ui_app_knob_choose(&x->app, 1);
        assert_true(qsf_setting_at(x->app.knob)->step > 0);
        ui_app_knob_turn(&x->app, -1000000);
        ui_app_knob_turn(&x->app, 1);
    }
    assert_int_equal(x->app.exit_code, 0);
}

static void test_commands_are_not_messages(void **state) {
    Fixture *x = *state;
    say(x, "/nonsense");
    assert_int_equal(x->engine.n_submits, 0);
    say(x, "/retyr");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/retry"));
    say(x, "//etc is a folder");
    assert_int_equal(x->engine.n_submits, 1);
    assert_string_equal(x->engine.last_content, "/etc is a folder");
    answer(x, "it is");
    say(x, "\"\"\"\n/a\n/b\n\"\"\"");
    assert_string_equal(x->engine.last_content, "/a\n/b");
}

/* Commands of other programs get a hint; a piped message that equals one is a message. */
/* In a command everything after a NUL would be lost. */
static void test_nul(void **state) {
    Fixture *x = *state;
    (void)ui_app_submit(&x->app, "/system be\0brief", 16);
    assert_non_null(strstr(last_said(x, UI_ERROR), "NUL"));
    assert_int_equal(x->app.system.len, 0);
    (void)ui_app_submit(&x->app, "a\0b", 3);
    assert_int_equal(ui_transcript_last(&x->app.chat)->kind, UI_ANSWER);
    assert_int_equal(ui_transcript_last_of(&x->app.chat, UI_USER)->raw.len, 3);
}

static void test_commands_of_others(void **state) {
    Fixture *x = *state;
    static const char *const leave[] = { "exit", "quit", ":q", " exit \n" };
    for (size_t i = 0; i < sizeof leave / sizeof *leave; i++) {
        say(x, leave[i]);
        assert_non_null(strstr(last_said(x, UI_NOTICE), "/quit"));
        say(x, "/clear");
    }
    say(x, ".help");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "/help"));
    assert_int_equal(x->engine.n_submits, 0);
    say(x, "/reset");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/clear"));
    say(x, "/yank");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/copy"));
    say(x, "/search");
    assert_null(strstr(last_said(x, UI_ERROR), "did you mean"));
    x->app.interactive = false;
    say(x, "exit");
    assert_int_equal(x->engine.n_submits, 1);
}

static void test_system(void **state) {
    Fixture *x = *state;
    say(x, "/system be brief");
    say(x, "hello");
    assert_string_equal(x->engine.roles, "su");
    answer(x, "hi");
    say(x, "/system off");
    say(x, "again");
    assert_string_equal(x->engine.roles, "uau");
}

/* The prompt so far, open after an answer; or with a message that is not sent. */
static void test_show_prompt(void **state) {
    Fixture *x = *state;
    say(x, "/show prompt");
    assert_non_null(strstr(last_said(x, UI_ERROR), "the conversation is empty"));
    say(x, "/system be brief");
    say(x, "/show prompt <s> what?");
    assert_string_equal(last_said(x, UI_OUTPUT), "system: be brief\nuser: <s> what?\nasked");
    assert_int_equal(x->engine.n_submits, 0);
    say(x, "hello");
    say(x, "/show prompt"); /* while the answer is generated */
    assert_string_equal(last_said(x, UI_OUTPUT), "system: be brief\nuser: hello\nasked");
    answer(x, "hi");
    say(x, "/show prompt");
    assert_string_equal(last_said(x, UI_OUTPUT), "system: be brief\nuser: hello\nassistant: hi\nopen");
    say(x, "/show prompts");
    assert_non_null(strstr(last_said(x, UI_ERROR), "template, prompt"));
    say(x, "/template");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "from the model file: model:rag"));
}

static void test_model_switch(void **state) {
    Fixture *x = *state;
    say(x, "hello");
    say(x, "/model other.gguf");
    assert_int_equal(x->engine.n_loads, 1);
    answer(x, "hi");
    assert_int_equal(x->engine.n_loads, 2);
    assert_string_equal(x->engine.path, "other.gguf");
    say(x, "typed while it loads");
    assert_int_equal(x->app.queue.n, 1);
    x->engine.stats.state = QSF_STATE_IDLE;
    fake_error(&x->engine, 3, "other.gguf: no such file");
    ui_app_pump(&x->app);
    /* The old model is still loaded and answers queued messages. */
    assert_string_equal(x->app.model_path, "tiny.gguf");
    assert_string_equal(x->engine.last_content, "typed while it loads");
    assert_int_equal(x->app.exit_code, 3);
}

/* Budget, threads and I/O take effect in the middle of an answer; refused changes are reverted, in the file
 * too. */
static void test_replan(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "replan");
    say(x, "one");
    say(x, "/budget 400");
    say(x, "/threads 1");
    say(x, "/io pread");
    say(x, "/io direct off");
    assert_int_equal(x->engine.n_loads, 1);
    assert_int_equal(x->engine.n_replans, 4);
    assert_int_equal(x->engine.wanted.ram_budget, (uint64_t)400 << 20);
    assert_int_equal(x->engine.wanted.threads, 1);
    assert_string_equal(x->engine.wanted.io, "pread");
    assert_string_equal(x->engine.wanted.direct, "off");
    fake_plan(&x->engine, 0, "400 MB: all 90 MB of weights pinned");
    ui_app_pump(&x->app);
    assert_string_equal(last_said(x, UI_NOTICE), "400 MB: all 90 MB of weights pinned");
    say(x, "/budget 5");
    fake_plan(&x->engine, 4,
              "5 MB is too little; the least:\nKV 44\nsum 49\nsmallest budget that works: 50 MB");
    ui_app_pump(&x->app);
    assert_string_equal(last_said(x, UI_ERROR), "5 MB is too little; smallest budget that works: 50 MB");
    assert_string_equal(last_said(x, UI_NOTICE), "ram-budget is 400M again");
    assert_int_equal(x->app.settings.ram_budget, (uint64_t)400 << 20);
    assert_true(ui_app_busy(&x->app));
    answer(x, "1");
    assert_string_equal(last_text(x), "1");
    /* After a failed load the previous plan is restored; with another model it is kept. */
    say(x, "/model other.gguf");
    assert_int_equal(x->engine.settings.ram_budget, (uint64_t)400 << 20);
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    say(x, "/set ctx 9999");
    x->engine.stats.state = QSF_STATE_EMPTY;
    fake_error(&x->engine, 4, "does not fit");
    ui_app_pump(&x->app);
    assert_int_equal(x->engine.settings.ram_budget, (uint64_t)400 << 20);
    ui_app_finish(&x->app);
    char text[8000] = "", path[500];
    (void)snprintf(path, sizeof path, "%s/qsf/sessions/replan.jsonl", getenv("XDG_DATA_HOME"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    const char *refused = strstr(text, "\"5M\"");
    assert_non_null(refused);
    assert_non_null(strstr(refused, "\"400M\""));
}

/* A model file that cannot be read ends the answer, not the chat. */
static void test_read_error(void **state) {
    Fixture *x = *state;
    say(x, "one");
    fake_text(&x->engine, "so f");
    fake_read_error(&x->engine, "tiny.gguf: read error at byte offset 4096: Input/output error");
    ui_app_pump(&x->app);
    assert_string_equal(last_text(x), "so f");
    assert_string_equal(ui_transcript_last(&x->app.chat)->stop, "error");
    assert_non_null(strstr(last_said(x, UI_ERROR), "offset 4096"));
    assert_non_null(strstr(last_said(x, UI_NOTICE), "/retry"));
    /* The engine lost the model: the next request reloads it. */
    x->engine.stats.state = QSF_STATE_EMPTY;
    say(x, "/retry");
    assert_string_equal(x->engine.roles, "u");
    answer(x, "so far");
    assert_string_equal(last_text(x), "so far");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 2);
    say(x, "/clear");
    say(x, "two");
    fake_error(&x->engine, 1, "tiny.gguf: produced invalid numbers");
    ui_app_pump(&x->app);
    assert_null(strstr(last_said(x, UI_NOTICE), "/retry"));
}

static void test_numbers(void **state) {
    Fixture *x = *state;
    QSFStats *s = &x->engine.stats;
    x->engine.n_layers = 3;
    x->engine.layers[1] = (QSFLayerStats){ .weight_bytes = 2 << 20,
                                           .pinned_bytes = 1 << 20,
                                           .read_bytes = 3 << 20,
                                           .wait_ns = 5000000,
                                           .compute_ns = 7000000 };
    x->engine.layers[2] = (QSFLayerStats){
        .weight_bytes = 2 << 20, .pinned_bytes = 2 << 20, .wait_ns = 1000000, .compute_ns = 1000000
    };
    s->streamed_bytes = 341u << 20;
    s->pinned_bytes = 100u << 20;
    s->pin_done = 40u << 20;
    s->pin_total = 100u << 20;
    s->bytes_read = 682u << 20;
    s->bytes_per_token = 341u << 20;
    s->embed_hits = 9;
    s->embed_misses = 2;
    s->mem[0] = (QSFMemRow){ "KV cache", 1 << 20, 2 << 20 };
    s->n_mem = 1;
    (void)snprintf(s->io_name, sizeof s->io_name, "pread, buffered");
    (void)snprintf(s->io_notice, sizeof s->io_notice, "io_uring is not allowed");
    say(x, "/stats");
    const char *said = last_said(x, UI_OUTPUT);
    assert_non_null(strstr(said, "682.0 MB read at 0.00 GB/s by pread, buffered\n"));
    assert_non_null(strstr(said, "341.0 MB per token, 341.0 MB planned\n"));
    assert_non_null(strstr(said, "slowest  layer 2: waited 5 ms, computed 7 ms; 3.0 MB read, 50 % pinned\n"));
    assert_non_null(strstr(said, "         head: waited 1 ms"));
    assert_non_null(strstr(said, "io_uring is not allowed\n"));
    assert_non_null(
        strstr(said, "\nthreads  4 + 4 cores (cpu_capacity)\n         4 for tokens; not measured: 4, 8"));
    say(x, "/budget");
    said = last_said(x, UI_OUTPUT);
    assert_non_null(strstr(said, "KV cache                 1.0 MB of     2.0 MB\n"));
    assert_non_null(strstr(said, "100.0 MB pinned (40.0 MB so far), 341.0 MB per token from disk\n"));
    assert_non_null(strstr(said, "9 from RAM, 2 from disk\n"));
    assert_non_null(strstr(said, "  a region of tiny.gguf\n"));
    assert_null(strstr(said, "memory of"));
}

/* Without a model, settings are kept for it; a model that failed to load is tried again with them. */
static void test_replan_without_model(void **state) {
    (void)state;
    FakeEngine e;
    UiApp a;
    QSFSettings s;
    qsf_settings_default(&s);
    ui_app_init(&a, fake_engine(&e), &s);
    a.full_screen = true;
    (void)ui_app_submit(&a, "/budget 300", 11);
    assert_int_equal(e.n_loads, 0);
    assert_int_equal(e.n_replans, 1);
    fake_plan(&e, 0, "no model is loaded: the next one gets it");
    ui_app_pump(&a);
    ui_app_load(&a, "big.gguf");
    assert_int_equal(e.settings.ram_budget, (uint64_t)300 << 20);
    fake_error(&e, 4, "too small");
    ui_app_pump(&a);
    (void)ui_app_submit(&a, "/budget 600", 11);
    assert_int_equal(e.n_loads, 2);
    assert_int_equal(e.settings.ram_budget, (uint64_t)600 << 20);
    ui_app_free(&a);
}

/* A batch that cannot be met: the engine has unloaded the model, and reloads it as before. */
static void test_reload_fails(void **state) {
    Fixture *x = *state;
    say(x, "/temp 0.2");
    say(x, "/set batch 1000");
    assert_int_equal(x->engine.n_loads, 2);
    say(x, "meanwhile");
    x->engine.stats.state = QSF_STATE_EMPTY;
    fake_error(&x->engine, 4, "smallest budget that works: 50 MB");
    ui_app_pump(&x->app);
    assert_int_equal(x->engine.n_loads, 3);
    assert_string_equal(x->engine.path, "tiny.gguf");
    assert_int_equal(x->engine.settings.batch, 0);
    assert_float_equal(x->engine.settings.params.temperature, 0.2f, 1e-6);
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    assert_string_equal(x->engine.last_content, "meanwhile");
    /* Repeated failure does not cause a loop. */
    fake_done(&x->engine, QSF_STOP_EOS, 0);
    ui_app_pump(&x->app);
    say(x, "/set batch 2000");
    for (int i = 0; i < 2; i++) {
        x->engine.stats.state = QSF_STATE_EMPTY;
        fake_error(&x->engine, 3, "the file is gone");
        ui_app_pump(&x->app);
    }
    assert_int_equal(x->engine.n_loads, 5);
    assert_false(ui_app_busy(&x->app));
}

/* ---- sessions ---- */

static Fixture *second(void) {
    Fixture *y = calloc(1, sizeof *y);
    QSFSettings s;
    assert_non_null(y);
    qsf_settings_default(&s);
    ui_app_init(&y->app, fake_engine(&y->engine), &s);
    y->app.full_screen = true;
    return y;
}

static void second_free(Fixture *y) {
    ui_app_free(&y->app);
    free(y);
}

static void test_session_replay(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "one");
    say(x, "/system be brief");
    say(x, "/temp 0.3");
    say(x, "a"), answer(x, "1");
    say(x, "b"), answer(x, "2");
    say(x, "/undo");
    say(x, "c"), answer(x, "half");
    say(x, "/continue"), answer(x, " and half");
    say(x, "/retry"), answer(x, "whole");
    say(x, "lost");
    fake_error(&x->engine, 1, "read error");
    ui_app_pump(&x->app);
    ui_app_finish(&x->app);

    Fixture *y = second();
    y->app.session.on = true;
    assert_true(ui_app_resume(&y->app, "one"));
    assert_int_equal(ui_transcript_count(&y->app.chat, NULL), 4);
    assert_string_equal(last_text(y), "whole");
    assert_string_equal(ui_buf_str(&y->app.system), "be brief");
    assert_float_equal(y->app.settings.params.temperature, 0.3f, 1e-6);
    /* It names its model, which is loaded. */
    assert_string_equal(y->engine.path, "tiny.gguf");
    assert_int_equal(y->engine.settings.text_bytes,
                     strlen("a") + strlen("1") + strlen("c") + strlen("whole") + strlen("lost"));
    fake_loaded(&y->engine);
    ui_app_pump(&y->app);
    say(y, "more");
    assert_string_equal(y->engine.roles, "suauau");
    second_free(y);
}

/* A model's recommendations are not inherited by the next model, nor saved in the file; explicit settings are
 * kept. */
static void test_advice(void **state) {
    Fixture *x = *state;
    char text[8000] = "", path[500];
    x->app.session.on = true;
    ui_session_use(&x->app.session, "advice");
    say(x, "/set top-k 40");
    x->engine.advice.params.temperature = 0.2f;
    x->engine.advice.params.top_k = 7;
    say(x, "/model other.gguf");
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    assert_non_null(strstr(last_said(x, UI_NOTICE), ", temperature 0.2"));
    assert_null(strstr(last_said(x, UI_NOTICE), "top-k"));
    assert_float_equal(x->engine.params.temperature, 0.2f, 1e-6);
    assert_int_equal(x->engine.params.top_k, 40);
    say(x, "a"), answer(x, "1");
    ui_app_finish(&x->app);
    (void)snprintf(path, sizeof path, "%s/qsf/sessions/advice.jsonl", getenv("XDG_DATA_HOME"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_null(strstr(text, "temperature"));
    assert_non_null(strstr(text, "\"top-k\"")); /* set explicitly, unlike the default here */
    qsf_settings_default(&x->engine.advice);
    say(x, "/model third.gguf");
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    assert_float_equal(x->engine.params.temperature, 0.7f, 1e-6);
    say(x, "/temp 0.9");
    x->engine.advice.params.temperature = 0.2f;
    say(x, "/model other.gguf");
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    assert_float_equal(x->app.settings.params.temperature, 0.9f, 1e-6);
}

/* The labels of answers stay, whichever models wrote them, and in a copy too. */
static void test_session_labels(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "labels");
    say(x, "a"), answer(x, "1");
    say(x, "/model other.gguf");
    fake_loaded(&x->engine);
    (void)snprintf(x->engine.stats.model_name, sizeof x->engine.stats.model_name, "Other Model");
    ui_app_pump(&x->app);
    say(x, "b"), answer(x, "2");
    say(x, "/save copy");
    say(x, "c");
    fake_text(&x->engine, "half");
    ui_app_pump(&x->app);
    ui_app_tick(&x->app, ui_now() + 10);
    ui_session_close(&x->app.session); /* as if it was killed */
    static const char *const names[] = { "labels", "copy" };
    for (size_t k = 0; k < 2; k++) {
        static const char *const want[] = { "tiny", "Other Model", "Other Model" };
        Fixture *y = second();
        assert_true(ui_app_resume(&y->app, names[k]));
        size_t n = 0;
        for (size_t i = 0; i < y->app.chat.n; i++)
            if (y->app.chat.items[i]->kind == UI_ANSWER)
                assert_string_equal(y->app.chat.items[i]->label, want[n++]);
        assert_int_equal(n, k == 0 ? 2 : 3);
        second_free(y);
    }
}

static void test_session_killed(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "killed");
    say(x, "a");
    fake_text(&x->engine, "half an");
    ui_app_pump(&x->app);
    ui_app_tick(&x->app, ui_now() + 10);
    ui_session_close(&x->app.session);

    Fixture *y = second();
    assert_true(ui_app_resume(&y->app, "killed"));
    assert_string_equal(last_text(y), "half an");
    assert_string_equal(ui_transcript_last(&y->app.chat)->stop, "interrupted");
    second_free(y);
}

static void test_session_stopped_program(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    ui_session_use(&x->app.session, "term");
    say(x, "a");
    fake_text(&x->engine, "so far");
    ui_app_pump(&x->app);
    ui_app_finish(&x->app);
    Fixture *y = second();
    assert_true(ui_app_resume(&y->app, "term"));
    assert_string_equal(last_text(y), "so far");
    second_free(y);
}

static void test_save_load_new(void **state) {
    Fixture *x = *state;
    say(x, "a"), answer(x, "1");
    say(x, "/save first");
    assert_string_equal(x->app.session.name, "first");
    say(x, "b"), answer(x, "2");
    say(x, "/new second");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 0);
    say(x, "c"), answer(x, "3");
    say(x, "/load first");
    assert_int_equal(ui_transcript_count(&x->app.chat, NULL), 4);
    assert_string_equal(last_text(x), "2");
    assert_int_equal(x->app.exit_code, 0);
    say(x, "/load nothing");
    assert_non_null(strstr(last_said(x, UI_ERROR), "no session nothing"));
    say(x, "/save ../x");
    assert_non_null(strstr(last_said(x, UI_ERROR), "name"));
    say(x, "/delete second"); /* /new began it, and /load left it */
    assert_string_equal(last_said(x, UI_NOTICE), "deleted session second");
    say(x, "/load second");
    assert_non_null(strstr(last_said(x, UI_ERROR), "no session second"));
    say(x, "/delete first");
    assert_non_null(strstr(last_said(x, UI_ERROR), "is open here"));
}

static void test_export(void **state) {
    Fixture *x = *state;
    char dir[400], cmd[500], text[400] = "";
    (void)snprintf(dir, sizeof dir, "%s.XXXXXX", qsf_test_tmp("export"));
    assert_non_null(mkdtemp(dir));
    say(x, "say \"hi\"\n\\o/"), answer(x, "hi\x01");
    (void)snprintf(cmd, sizeof cmd, "/export %s/a.json", dir);
    say(x, cmd);
    assert_int_equal(x->app.exit_code, 0);
    FILE *f = fopen(cmd + 8, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_non_null(strstr(text, "\"model\": \"tiny\""));
    say(x, cmd);
    assert_int_equal(x->app.exit_code, 1);
    assert_non_null(strstr(last_said(x, UI_ERROR), "exists"));
    x->app.exit_code = 0;
    (void)snprintf(cmd, sizeof cmd, "/export! %s/a.json", dir);
    say(x, cmd);
    (void)snprintf(cmd, sizeof cmd, "/export %s/a.md", dir);
    say(x, cmd);
    assert_int_equal(x->app.exit_code, 0);
    say(x, "/export x.doc");
    assert_int_equal(x->app.exit_code, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* /quality prints the table of the engine, or sets the quality, as the live keys do; it stays above 0. */
static void test_quality(void **state) {
    Fixture *x = *state;
    say(x, "/quality");
    assert_non_null(strstr(last_said(x, UI_OUTPUT), "quality 1\n"));
    say(x, "/quality 0.7");
    assert_true(x->app.settings.params.quality == 0.7f);
    say(x, "/quality 1.5");
    assert_non_null(strstr(last_said(x, UI_ERROR), "above 0 and at most 1"));
    say(x, "/quality 0");
    assert_true(x->app.settings.params.quality == 0.7f);
    while (strcmp(qsf_setting_at(x->app.knob)->name, "quality") != 0) ui_app_knob_choose(&x->app, 1);
    ui_app_knob_turn(&x->app, 1);
    assert_true(x->app.settings.params.quality == 0.75f);
    ui_app_knob_turn(&x->app, -100);
    assert_true(x->app.settings.params.quality == 0.05f);
    ui_app_knob_turn(&x->app, 100);
    assert_true(x->app.settings.params.quality == 1.0f);
}

/* A number that means auto is explained. */
static void test_zero_is_auto(void **state) {
    Fixture *x = *state;
    say(x, "/threads 0");
    assert_string_equal(last_said(x, UI_NOTICE), "threads is auto (0 is auto: the fastest number, measured)");
    say(x, "/slots 2");
    fake_plan(&x->engine, 0, "two slots");
    ui_app_pump(&x->app);
    say(x, "/slots 0");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "-> auto (0 is auto)"));
    say(x, "/threads auto");
    assert_string_equal(last_said(x, UI_NOTICE), "threads is auto");
}

/* Whichever comes second is refused, with the reason; a session that has one takes nothing from a command
 * line with the other. */
static void test_quality_and_policy(void **state) {
    Fixture *x = *state;
    x->app.session.on = true;
    x->app.settings.commands = true;
    ui_session_use(&x->app.session, "sliding");
    say(x, "/quality 0.5");
    say(x, "/kv policy sliding");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/quality 0.5 does not work with /kv policy sliding: "));
    assert_string_equal(x->app.settings.eviction, "none");
    say(x, "/quality 1");
    say(x, "/kv policy sliding");
    assert_string_equal(x->app.settings.eviction, "sliding");
    say(x, "/quality 0.25");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/quality 0.25 does not work with /kv policy sliding: "));
    assert_true(x->app.settings.params.quality == 1.0f && x->engine.params.quality == 1.0f);
    say(x, "a"), answer(x, "1");
    ui_app_finish(&x->app);

    Fixture *y = second();
    y->app.session.on = true;
    const QSFSetting *row = qsf_setting_find("quality");
    char err[300];
    assert_int_equal(qsf_setting_set(&y->app.given.settings, row, "0.5", err, sizeof err), 0);
    assert_true(ui_app_resume(&y->app, "sliding"));
    assert_string_equal(y->app.settings.eviction, "sliding");
    assert_true(y->app.settings.params.quality == 1.0f);
    second_free(y);
}

static bool was_said(const Fixture *x, UiKind kind, const char *text) {
    for (size_t i = 0; i < x->app.chat.n; i++)
        if (x->app.chat.items[i]->kind == kind && strcmp(ui_buf_str(&x->app.chat.items[i]->raw), text) == 0)
            return true;
    return false;
}

/* What answers have to match: one setting of four is on; what is wrong is refused at once. */
static void test_grammars(void **state) {
    Fixture *x = *state;
    say(x, "/regex (a");
    assert_non_null(strstr(last_said(x, UI_ERROR), "regex: character 1: the group is not closed"));
    assert_int_equal(x->app.settings.params.grammar_kind, QSF_GRAMMAR_NONE);
    say(x, "/grammar /nowhere/g.gbnf");
    assert_non_null(strstr(last_said(x, UI_ERROR), "/nowhere/g.gbnf: No such file"));
    say(x, "/regex a+");
    say(x, "/schema any");
    assert_non_null(strstr(last_said(x, UI_NOTICE), "json-schema"));
    assert_int_equal(x->app.settings.params.grammar_kind, QSF_GRAMMAR_SCHEMA);
    assert_string_equal(x->engine.params.grammar, "any");
    say(x, "/undo");
    assert_int_equal(x->app.settings.params.grammar_kind, QSF_GRAMMAR_NONE);
    say(x, "/only [bw]\\w+ the|a");
    assert_string_equal(x->app.settings.params.grammar, "[bw]\\w+ the|a");
    say(x, "/only off");
    assert_int_equal(x->app.settings.params.grammar_kind, QSF_GRAMMAR_NONE);
}

/* Limits for experts: of a sparse model only; another model that has none takes them back. */
static void test_expert_limits(void **state) {
    Fixture *x = *state;
    say(x, "/expert-top 2");
    assert_non_null(strstr(last_said(x, UI_ERROR), "expert-top 2: "));
    assert_non_null(strstr(last_said(x, UI_ERROR), " has no experts"));
    assert_int_equal(x->engine.params.expert_top, 0);
    x->engine.stats.experts = 8;
    say(x, "/expert-top 2");
    say(x, "/expert-drop 0.2");
    assert_int_equal(x->engine.params.expert_top, 2);
    assert_true(x->engine.params.expert_drop == 0.2f);
    say(x, "/kv policy sliding");
    assert_non_null(strstr(last_said(x, UI_ERROR), "expert-top 2 does not work with "));
    x->engine.stats.experts = 0;
    say(x, "/model other.gguf");
    fake_loaded(&x->engine);
    ui_app_pump(&x->app);
    assert_true(was_said(x, UI_NOTICE, "expert-top is 0: other.gguf has no experts"));
    assert_true(was_said(x, UI_NOTICE, "expert-drop is 0: other.gguf has no experts"));
    assert_int_equal(x->engine.params.expert_top, 0);
    assert_true(x->engine.params.expert_drop == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_expert_limits),
        T(test_grammars),
        T(test_turns),
        T(test_queue),
        T(test_queue_command),
        T(test_queue_held),
        T(test_queue_limits),
        T(test_screen_room),
        T(test_stop_keeps),
        T(test_stop_before_text),
        T(test_retry_after_failure),
        T(test_undo),
        T(test_undo_takes_notices),
        T(test_settings),
        T(test_setting_steps),
        T(test_quality),
        T(test_quality_and_policy),
        T(test_zero_is_auto),
        T(test_commands_are_not_messages),
        T(test_nul),
        T(test_commands_of_others),
        T(test_system),
        T(test_show_prompt),
        T(test_model_switch),
        T(test_replan),
        T(test_replan_without_model),
        T(test_read_error),
        T(test_numbers),
        T(test_reload_fails),
        T(test_session_replay),
        T(test_advice),
        T(test_session_labels),
        T(test_session_killed),
        T(test_session_stopped_program),
        T(test_save_load_new),
        T(test_export),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
