/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers that have to match a grammar, through the engine: reasoning before them, the limit of tokens,
 * answers that continue, grammars of requests, refusals. */
#include "tests/harness/qsf_test.h"

#include "src/base/json.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/worker_rig.h"

#define TURNS "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<end>{% endfor %}"
#define PLAIN "{% if add_generation_prompt %}<|assistant|>{% endif %}"

static char path[256];

static QSFWorker *worker_of(const QSFSettings *s) {
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, path, s);
    return w;
}

static QSFWorker *worker_with(const char *script, const char *template) {
    QsfTinySpec spec = { .chat_template = template };
    snprintf(path, sizeof path, "%s", qsf_test_tmp("hold.gguf"));
    assert_int_equal(qsf_test_write_script_llama(path, script, &spec), 0);
    QSFSettings s = qsf_rig_settings();
    s.params.ignore_eos = false;
    return worker_of(&s);
}

static QSFWorker *tiny_worker(uint64_t budget) {
    snprintf(path, sizeof path, "%s", qsf_test_tmp("hold.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(path, NULL), 0);
    QSFSettings s = qsf_rig_settings();
    s.params.ignore_eos = false;
    s.ram_budget = budget;
    return worker_of(&s);
}

static void done(QSFWorker *w) {
    qsf_worker_stop(w);
    unlink(path);
}

/* Sets a row of the settings and the limit of tokens. */
static void set(QSFWorker *w, const char *name, const char *value, int32_t max) {
    QSFSettings s = { 0 };
    char err[300];
    qsf_worker_get_params(w, &s.params);
    s.params.grammar_kind = QSF_GRAMMAR_NONE;
    assert_int_equal(qsf_setting_set(&s, qsf_setting_find(name), value, err, sizeof err), 0);
    s.params.max_tokens = max;
    qsf_worker_set_params(w, &s.params);
}

static QsfSeen *ask(QSFWorker *w, const char *last) {
    QSFMessage m[2] = { { .role = "user", .content = "go", .len = 2 }, { .role = "assistant" } };
    QSFRequest r = { .messages = m, .n_messages = last != NULL ? 2 : 1, .continue_last = last != NULL };
    m[1].content = last;
    m[1].len = last != NULL ? strlen(last) : 0;
    return qsf_rig_finish(w, qsf_worker_submit(w, &r));
}

static void expect_json(const QsfSeen *s, const char *before) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    if (s->end.type != QSF_EVENT_DONE) fail_msg("%s", s->end_text);
    qsf_strbuf_adds(&b, before);
    qsf_strbuf_adds(&b, s->text);
    QsfJson *v = qsf_json_parse(b.data, b.len, &e);
    if (v == NULL) fail_msg("%s: %s", b.data, e.msg);
    assert_false(s->end.grammar_cut);
    qsf_json_free(v);
    qsf_strbuf_free(&b);
}

/* The thought is what the script has; then the grammar chooses among its words. */
static void reasoning_is_free(void **state) {
    (void)state;
    QSFWorker *w = worker_with("<think> _deep _thought </think> <0x0A> _Hello _world", TURNS PLAIN);
    set(w, "regex", "Hello( world)?", 0);
    QsfSeen *s = ask(w, NULL);
    assert_string_equal(s->reasoning, "<think> deep thought</think>\n ");
    assert_string_equal(s->text, "Hello world");
    assert_int_equal(s->end.stop, QSF_STOP_EOS);
    set(w, "regex", "Hello|deep", 0);
    assert_string_equal(ask(w, NULL)->text, "Hello");
    done(w);
}

/* What looks like the beginning of a tag is answer as soon as the grammar has taken it: no line feed
 * between reasoning and answer can come inside it. White space that the grammar asks for is answer. */
static void tags_do_not_begin_answers(void **state) {
    (void)state;
    QSFWorker *w = worker_with("<think> _deep </think> < <0x0A> <0x0A> <0x0A> +<th +Hello +in>", TURNS PLAIN);
    set(w, "regex", "<(Hello|\\n)", 0);
    assert_string_equal(ask(w, NULL)->text, "<\n");
    set(w, "regex", "<Hello", 0);
    assert_string_equal(ask(w, NULL)->text, "<Hello");
    set(w, "regex", "<thin>", 0);
    assert_string_equal(ask(w, NULL)->text, "<thin>");
    set(w, "regex", "\\n\\n\\nHello", 0);
    assert_string_equal(ask(w, NULL)->text, "\n\n\nHello");
    done(w);
}

/* An answer may have to begin with a space: after reasoning, where one that the grammar does not take is
 * dropped, and after a prompt, where this tokenizer drops the first one. */
static void a_space_may_come_first(void **state) {
    (void)state;
    QSFWorker *w = worker_with("<think> _deep </think> _Hello +_world", TURNS PLAIN);
    const char *const expressions[] = { " Hello", " ?Hello", " (Hello|world)( world)?", " {1,2}Hello" };
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        set(w, "regex", expressions[i], 0);
        QsfSeen *s = ask(w, NULL);
        if (s->end.type != QSF_EVENT_DONE) fail_msg("%s: %s", expressions[i], s->end_text);
        assert_string_equal(s->text, " Hello");
        assert_false(s->end.grammar_cut);
    }
    set(w, "regex", "Hello", 0); /* the space is not a part of the answer */
    assert_string_equal(ask(w, NULL)->text, "Hello");
    done(w);
    w = worker_with("_Hello +_world", TURNS PLAIN);
    for (int32_t max = 0; max < 4; max++) {
        set(w, "regex", " Hello", max);
        QsfSeen *s = ask(w, NULL);
        if (s->end.type != QSF_EVENT_DONE) fail_msg("at most %d tokens: %s", max, s->end_text);
        if (s->end.grammar_cut != (max == 1)) fail_msg("at most %d tokens: '%s'", max, s->text);
        if (max != 1) assert_string_equal(s->text, " Hello");
    }
    set(w, "regex", "Hello", 0);
    assert_string_equal(ask(w, NULL)->text, "Hello");
    done(w);
}

/* A token that closes the reasoning must not bring text of an answer that the grammar has not chosen. */
static void closing_tags_end_tokens(void **state) {
    (void)state;
    QSFWorker *w = worker_with("_deep </think >Hello _world", TURNS
                               "{% if add_generation_prompt %}<|assistant|><think>{% endif %}{# </think> #}");
    set(w, "regex", "Hello|world|deep", 60);
    QsfSeen *s = ask(w, NULL);
    if (s->end.type != QSF_EVENT_DONE) fail_msg("%s", s->end_text);
    assert_int_equal(strncmp(s->reasoning, "<think>deep</think>", 19), 0);
    assert_null(strchr(s->reasoning, 'H'));
    if (strcmp(s->text, "Hello") != 0 && strcmp(s->text, "world") != 0) assert_string_equal(s->text, "deep");
    assert_false(s->end.grammar_cut);
    done(w);
}

#define MESSAGES                                                                              \
    "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor " \
    "%}<|start|>assistant"
#define THOUGHT          "!<|channel|> analysis !<|message|> deep !<|end|> !<|start|> assistant "
#define CHANNELS(answer) THOUGHT "!<|channel|> final !<|message|> " answer " !<|return|> +!<|call|>"

/* Messages with channels: the heads and the reasoning are free, and the grammar chooses among the words of
 * the last message; what does not match makes way for what does. */
static void channels_are_free(void **state) {
    (void)state;
    QSFWorker *w = worker_with(CHANNELS("Hello _world"), MESSAGES);
    set(w, "regex", "(Hello|deep)( world)?", 0);
    QsfSeen *s = ask(w, NULL);
    assert_string_equal(s->reasoning, "<|channel|>analysis<|message|>deep\n\n");
    assert_string_equal(s->text, "Hello world");
    assert_int_equal(s->end.stop, QSF_STOP_EOS);
    assert_false(s->end.grammar_cut);
    set(w, "regex", "Hello|deep", 0);
    s = ask(w, NULL);
    assert_string_equal(s->text, "Hello");
    assert_int_equal(s->end.stop, QSF_STOP_EOS);
    set(w, "regex", " world", 0); /* nothing to choose */
    s = ask(w, NULL);
    assert_string_equal(s->reasoning, "<|channel|>analysis<|message|>deep\n\n");
    assert_string_equal(s->text, " world");
    set(w, "json-schema", "any", 40);
    s = ask(w, NULL);
    assert_string_equal(s->reasoning, "<|channel|>analysis<|message|>deep\n\n");
    expect_json(s, "");
    for (int32_t max = 9; max < 13; max++) { /* a limit inside or just after the heads */
        set(w, "regex", "(Hello|deep){1,3}", max);
        s = ask(w, NULL);
        assert_int_equal(s->end.type, QSF_EVENT_DONE);
        assert_true(s->end.tokens <= (uint32_t)max);
        assert_int_equal(s->end.grammar_cut, s->text[0] == '\0');
    }
    done(w);
}

/* A model that has no reasoning, only the head of its answer; and formats with other heads. */
static void heads_are_free(void **state) {
    (void)state;
    static const struct {
        const char *script, *template, *reasoning;
    } rows[] = {
        { "!<|channel|> final !<|message|> Hello _world !<|return|> +!<|end|> +!<|call|> +!<|start|>",
          MESSAGES, "" },
        { "_to=self !<|message|> deep !<|eom|> !<|start|> assistant !<|message|> Hello _world !<|eot|>",
          "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|eom|>{% endfor "
          "%}<|start|>assistant",
          " to=self<|message|>deep\n\n" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QSFWorker *w = worker_with(rows[i].script, rows[i].template);
        for (int k = 0; k < 2; k++) {
            set(w, "regex", k ? "Hello" : "Hello world", 30);
            const QsfSeen *s = ask(w, NULL);
            if (s->end.type != QSF_EVENT_DONE) fail_msg("row %zu: %s", i, s->end_text);
            assert_string_equal(s->reasoning, rows[i].reasoning);
            assert_string_equal(s->text, k ? "Hello" : "Hello world");
            assert_false(s->end.grammar_cut);
        }
        done(w);
    }
}

static const char schema[] =
    "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\"}, \"b\": {\"type\": "
    "\"integer\"}, \"c\": {\"const\": \"\xF0\x9F\xA6\x89\"}}, \"required\": [\"a\", \"b\", \"c\"]}";

static QsfSeen *ask_schema(QSFWorker *w, const char *text, uint32_t max) {
    QSFMessage m = { .role = "user", .content = "go", .len = 2 };
    QSFRequest r = { .messages = &m, .n_messages = 1, .max_tokens = max, .grammar_kind = QSF_GRAMMAR_SCHEMA };
    r.grammar = text;
    r.grammar_len = strlen(text);
    return qsf_rig_finish(w, qsf_worker_submit(w, &r));
}

/* A model of random weights never ends an object by itself: the limit does, at every length that has room. */
static void the_limit_closes(void **state) {
    (void)state;
    QSFWorker *w = tiny_worker(QSF_RIG_BUDGET);
    uint32_t closed = 0;
    for (uint32_t n = 4; n < 64; n += 6) {
        QsfSeen *s = ask_schema(w, schema, n);
        if (s->end.type != QSF_EVENT_DONE) fail_msg("%s", s->end_text);
        assert_true(s->end.tokens <= n);
        if (s->end.grammar_cut) {
            assert_true(closed == 0 && s->end.stop == QSF_STOP_LENGTH);
            continue;
        }
        closed++;
        expect_json(s, "");
        assert_non_null(strstr(s->text, "\xF0\x9F\xA6\x89"));
    }
    assert_true(closed > 3 && closed < 10);
    set(w, "json-schema", "any", 30);
    expect_json(ask(w, NULL), "");
    done(w);
}

static void answers_continue(void **state) {
    (void)state;
    QSFWorker *w = tiny_worker(QSF_RIG_BUDGET);
    set(w, "json-schema", "any", 30);
    expect_json(ask(w, "{\"x\": [1, \"y"), "{\"x\": [1, \"y");
    QsfSeen *s = ask(w, "[1,, ");
    assert_int_equal(s->end.type, QSF_EVENT_ERROR);
    assert_non_null(strstr(s->end_text, "to be continued does not match"));
    done(w);
}

/* A token that the owner chooses instead. */
static void branches_match(void **state) {
    (void)state;
    QSFWorker *w = worker_with("Hello _world Hello", TURNS PLAIN);
    QSFMessage m = { .role = "user", .content = "go", .len = 2 };
    set(w, "regex", "Hello (world|deep)(Hello)?", 0);
    assert_string_equal(ask(w, NULL)->text, "Hello worldHello");
    int32_t ids[2];
    assert_int_equal(qsf_worker_token_ids(w, 0, ids, 2), 2);
    QSFRequest r = { .messages = &m, .n_messages = 1, .branch = 2, .branch_id = ids[1] };
    assert_string_equal(qsf_rig_finish(w, qsf_worker_submit(w, &r))->text, "Hello worldHello");
    r.branch_id = ids[0];
    QsfSeen *s = qsf_rig_finish(w, qsf_worker_submit(w, &r));
    assert_int_equal(s->end.type, QSF_EVENT_ERROR);
    assert_non_null(strstr(s->end_text, "does not match the grammar"));
    done(w);
}

static void wrong_grammars(void **state) {
    (void)state;
    QSFWorker *w = tiny_worker(QSF_RIG_BUDGET);
    QsfSeen *s = ask_schema(w, "{\"not\": {}}", 20);
    assert_int_equal(s->end.type, QSF_EVENT_ERROR);
    assert_non_null(strstr(s->end_text, "#/not: the keyword not is not supported"));
    set(w, "grammar", "/nowhere/g.gbnf", 20);
    assert_non_null(strstr(ask(w, NULL)->end_text, "/nowhere/g.gbnf: No such file"));
    set(w, "only", "(", 20);
    assert_non_null(strstr(ask(w, NULL)->end_text, "only: character 1: the group is not closed"));
    set(w, "regex", "[ab]{3}", 20);
    assert_int_equal(strlen(ask(w, NULL)->text), 3);
    QSFParams p = { .grammar_kind = QSF_GRAMMAR_REGEX, .grammar = "a(?=b)" };
    char err[300];
    assert_int_equal(qsf_grammar_check(&p, 0, err, sizeof err), 2);
    assert_non_null(strstr(err, "lookahead"));
    done(w);
}

/* Memory for a grammar that fitted beside the plan is in every later one, so that a smaller budget holds. */
static void a_smaller_budget_counts_it(void **state) {
    (void)state;
    const QSFTextSize none = { 0 };
    QSFWorker *w = tiny_worker(QSF_RIG_BUDGET);
    const uint64_t before = qsf_worker_text_budget(w, &none, 0);
    set(w, "regex", "[ab]{3}", 20);
    assert_int_equal(strlen(ask(w, NULL)->text), 3);
    const uint64_t with = qsf_worker_text_budget(w, &none, 0);
    print_message("%llu and %llu MB\n", (unsigned long long)before >> 20, (unsigned long long)with >> 20);
    assert_true(before > 0 && with >= before + (3u << 20));
    done(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasoning_is_free),
        cmocka_unit_test(tags_do_not_begin_answers),
        cmocka_unit_test(closing_tags_end_tokens),
        cmocka_unit_test(channels_are_free),
        cmocka_unit_test(heads_are_free),
        cmocka_unit_test(the_limit_closes),
        cmocka_unit_test(answers_continue),
        cmocka_unit_test(branches_match),
        cmocka_unit_test(a_space_may_come_first),
        cmocka_unit_test(wrong_grammars),
        cmocka_unit_test(a_smaller_budget_counts_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
