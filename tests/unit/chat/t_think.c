/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reasoning before answers: which tags, where the text is split, prompts that open a block or continue inside
 * one. */
#include "tests/harness/qsf_test.h"

#include "qsf_engine.h"
#include "tests/harness/think_rig.h"

/* ---- splitting ---- */

typedef struct Out {
    char reasoning[512], answer[512];
    bool answered;
} Out;

static void put(void *arg, bool reasoning, const char *text, size_t len) {
    Out *o = arg;
    assert_false(reasoning && o->answered);
    o->answered = !reasoning;
    char *dst = reasoning ? o->reasoning : o->answer;
    assert_true(strlen(dst) + len < sizeof o->answer);
    strncat(dst, text, len);
    /* Whole characters only. */
    assert_true(len > 0 && ((unsigned char)text[0] & 0xC0) != 0x80);
}

static const QsfThinkTags think = { "<think>", "</think>" };
static const QsfThinkTags odd = { "\xE2\x97\x81think\xE2\x96\xB7", "\xE2\x97\x81/think\xE2\x96\xB7" };

typedef struct Case {
    const QsfThinkTags *tags;
    QsfThinkState state;
    const char *text, *reasoning, *answer;
    size_t begun;
} Case;

static const Case cases[] = {
    /* clang-format off */
    { &think, QSF_THINK_START, "<think>a</think>\n\nb", "<think>a</think>\n\n", "b", 0 },
    { &think, QSF_THINK_START, "\n <think>\na\n</think> b </think> <think>", "\n <think>\na\n</think> ",
      "b </think> <think>", 0 },
    { &think, QSF_THINK_START, "<think>a</thin</think>", "<think>a</thin</think>", "", 0 },
    { &think, QSF_THINK_START, "<think>a</think><think>b</think>c", "<think>a</think><think>b</think>", "c", 0 },
    { &think, QSF_THINK_START, "<think>no end </th", "<think>no end </th", "", 0 },
    { &think, QSF_THINK_START, "  <thin", "", "  <thin", 0 },
    { &think, QSF_THINK_START, "\n\nplain <think>x</think>", "", "\n\nplain <think>x</think>", 0 },
    { &think, QSF_THINK_START, "<thinking>", "", "<thinking>", 0 },
    { &think, QSF_THINK_START, "</think>x", "", "</think>x", 0 },
    { &think, QSF_THINK_START, "", "", "", 0 },
    { &think, QSF_THINK_INSIDE, "a\n</think>\nb", "a\n</think>\n", "b", 0 },
    { &think, QSF_THINK_INSIDE, "<think>x</think>y", "<think>x</think>", "y", 0 },
    { &think, QSF_THINK_AFTER, "\n b", "\n ", "b", 0 },
    { &think, QSF_THINK_AFTER, "<b", "", "<b", 0 },
    { &think, QSF_THINK_ANSWER, "<think>a</think>", "", "<think>a</think>", 0 },
    { &odd, QSF_THINK_START,
      "\xE2\x97\x81think\xE2\x96\xB7\xE2\x97\x80\xE2\x97\x81/think\xE2\x96\xB7\xE2\x97\x81",
      "\xE2\x97\x81think\xE2\x96\xB7\xE2\x97\x80\xE2\x97\x81/think\xE2\x96\xB7", "\xE2\x97\x81", 0 },
    { &odd, QSF_THINK_START, "\xE2\x97\x82", "", "\xE2\x97\x82", 0 },
    { &think, QSF_THINK_INSIDE, "ink>\nb", "ink>\n", "b", 4 },
    { &think, QSF_THINK_INSIDE, "e way</think>b", "e way</think>", "b", 4 },
    { &think, QSF_THINK_INSIDE, "<</think>b", "<</think>", "b", 1 },
    { &think, QSF_THINK_INSIDE, "", "", "", 7 },
    { &odd, QSF_THINK_INSIDE, "think\xE2\x96\xB7 b", "think\xE2\x96\xB7 ", "b", 4 },
    /* clang-format on */
};

static QsfThinkTag text_tag(const char *text) {
    QsfThinkTag t = { .len = strlen(text) };
    memcpy(t.text, text, t.len);
    return t;
}

/* A vocabulary without tokens for the tags. */
static QsfThink text_tags(const QsfThinkTags *tags) {
    return (QsfThink){
        .format = QSF_THINK_TAGS, .tags = tags, .open = text_tag(tags->open), .close = text_tag(tags->close)
    };
}

/* In pieces of about `step` bytes, whole characters each. */
static void run(const Case *c, size_t step) {
    const QsfThink t = text_tags(c->tags);
    QsfThinkSplit s;
    Out out = { 0 };
    size_t len = strlen(c->text);
    qsf_think_start(&s, &t);
    s.state = c->state;
    qsf_think_feed(&s, c->tags->close, c->begun, NULL, NULL);
    for (size_t at = 0; at < len;) {
        size_t n = len - at < step ? len - at : step;
        while (at + n < len && ((unsigned char)c->text[at + n] & 0xC0) == 0x80) n++;
        qsf_think_feed(&s, c->text + at, n, put, &out);
        at += n;
    }
    qsf_think_flush(&s, put, &out);
    assert_string_equal(out.reasoning, c->reasoning);
    assert_string_equal(out.answer, c->answer);
}

static void any_cut_gives_the_same(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t step = 1; step <= 40; step++) run(&cases[i], step);
}

static void decided_text_is_not_held_back(void **state) {
    (void)state;
    const QsfThink t = text_tags(&think);
    QsfThinkSplit s;
    Out out = { 0 };
    qsf_think_start(&s, &t);
    qsf_think_feed(&s, "<think>abc<", 11, put, &out);
    assert_string_equal(out.reasoning, "<think>abc");
    qsf_think_feed(&s, "b", 1, put, &out);
    assert_string_equal(out.reasoning, "<think>abc<b");
    /* Endless white space does not hide a block. */
    char blank[200];
    memset(blank, '\n', sizeof blank);
    memset(&out, 0, sizeof out);
    qsf_think_start(&s, &t);
    qsf_think_feed(&s, blank, sizeof blank, put, &out);
    assert_int_equal(strlen(out.answer), sizeof blank);
}

static void displayed_text(void **state) {
    static const char *const bodies[][2] = {
        { "<think>\nso it is\n</think>\n\n", "so it is" },
        { "<think>\nso it", "so it" },
        { "[THINK]a[/THINK]", "a" },
        { "plain", "plain" },
        { "<think>\n\n</think>\n\n", "" },
        { "\n<think>a</think><think>b</think>", "a</think><think>b" },
        { "<think>", "" },
        { "", "" },
        { "a [/THINK]", "a [/THINK]" },
        { "<|channel|>analysis<|message|>a\n\nb\n\n", "a\n\nb" },
        { " to=self<|message|>a", "a" },
        { "<|think|>\n\n", "" },
        { "<|open|>think<|sep|>a <|close|>", "a <|close|>" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        size_t len;
        const char *body = qsf_reasoning_body(bodies[i][0], strlen(bodies[i][0]), &len);
        assert_int_equal(len, strlen(bodies[i][1]));
        assert_memory_equal(body, bodies[i][1], len);
    }
}

/* Without the tags of each block. */
static void displayed_blocks(void **state) {
    static const char *const bodies[][2] = {
        { "<think>\nplan\n</think>\n\n<think>\nsecret</think>", "plan\n\nsecret" },
        { "<think>plan</think><think>sec", "plan\n\nsec" },
        { "<think>a</think> b</think>", "a</think> b" },
        { "<think></think><think>b</think>\n", "b" },
        { "<|channel>thought\na<channel|><|channel>thought\nb<channel|>", "a\n\nb" },
        { "<|channel|>commentary<|message|>a\n\nb\n\n<|channel|>analysis<|message|>c\n\n", "a\n\nb\n\nc" },
        { " to=self<|message|>a\n\n to=self<|message|>b", "a\n\nb" },
        { "plain", "plain" },
        { " \n", "" },
        { "", "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char out[80];
        const size_t len = qsf_reasoning_plain(bodies[i][0], strlen(bodies[i][0]), out);
        assert_int_equal(len, strlen(bodies[i][1]));
        assert_memory_equal(out, bodies[i][1], len);
    }
    assert_int_equal(qsf_reasoning_plain(NULL, 0, NULL), 0);
}

/* ---- a vocabulary and a template ---- */

#define TURNS "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|stop|>{% endfor %}"
#define OPEN  "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
#define PLAIN "{% if add_generation_prompt %}<|assistant|>{% endif %}"

static const char *const vocabulary[] = { "<|user|>", "<|assistant|>", "<|stop|>",
                                          "~<think>", "~</think>",     NULL };
enum { USER = 256, ASSISTANT, STOP, THINK, UNTHINK };

static void the_vocabulary_decides_when_the_template_does_not(void **state) {
    static const char *const mistral[] = { "[THINK]", "[/THINK]", NULL }, *const none[] = { "~<b>", NULL };
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, TURNS PLAIN, vocabulary);
    assert_string_equal(r.think.tags->open, "<think>");
    assert_int_equal(r.think.open.mark[0], QSF_MARK_FIRST);
    assert_int_equal(r.think.open.mark[6], QSF_MARK_REST);
    assert_int_equal(r.think.close.mark[7], QSF_MARK_REST);
    qsf_think_detect(&r.think, r.tok, NULL, 0);
    assert_int_equal(r.think.format, QSF_THINK_NONE);
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, TURNS PLAIN, mistral);
    assert_string_equal(r.think.tags->open, "[THINK]");
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, TURNS PLAIN, none);
    assert_null(r.think.tags);
    qsf_think_rig_close(&r);
    /* Of the tags in the template, those that are tokens count. */
    qsf_think_rig_open(&r, "{# not <think> #}" TURNS PLAIN "{# [THINK] #}", mistral);
    assert_string_equal(r.think.tags->open, "[THINK]");
    qsf_think_rig_close(&r);
    /* A part of the tag is a token. */
    static const char *const gemma[] = { "<|channel>", "~<channel|>", NULL };
    qsf_think_rig_open(&r, TURNS PLAIN "{# <|channel>thought #}", gemma);
    assert_int_equal(r.think.open.mark[0], QSF_MARK_FIRST);
    assert_int_equal(r.think.open.mark[9], QSF_MARK_REST);
    assert_int_equal(r.think.open.mark[10], QSF_MARK_TEXT);
    qsf_think_rig_close(&r);
}

/* The ids as text with special tokens as <id>. */
static char *encode(const QsfThinkRig *r, const QsfMsg *msgs, size_t n, bool go_on, QsfThinkPrompt *where) {
    QsfIds ids = { 0 };
    QsfErr e = { 0 };
    static char text[1024];
    size_t len = 0;
    qsf_test_expect_ok(qsf_think_encode(&r->think, r->tmpl, r->tok, msgs, n,
                                        go_on ? QSF_CHAT_CONTINUE : QSF_CHAT_GENERATE, &ids, where, &e),
                       &e);
    for (size_t i = 0; i < ids.n; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, ids.data[i] < 256 ? "%c" : "{%d}",
                                ids.data[i]);
    qsf_ids_free(&ids);
    return text;
}

#define MSG(r, text) \
    { .role = (r), .content = (text), .len = sizeof(text) - 1 }
#define THOUGHT(t) .reasoning = (t), .reasoning_len = sizeof(t) - 1

static void prompts_that_open_a_block(void **state) {
    static const QsfMsg ask[] = { MSG("user", "Hi <think>") };
    QsfThinkPrompt where;
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, TURNS OPEN, vocabulary);
    assert_string_equal(encode(&r, ask, 1, false, &where), "{256}Hi <think>{258}{257}{259}\n");
    assert_int_equal(where.split.state, QSF_THINK_INSIDE);
    assert_string_equal(where.opened, "<think>\n");
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, TURNS PLAIN, vocabulary);
    encode(&r, ask, 1, false, &where);
    assert_int_equal(where.split.state, QSF_THINK_START);
    assert_string_equal(where.opened, "");
    qsf_think_rig_close(&r);
    /* Text typed by the user at the very end opens nothing. */
    qsf_think_rig_open(&r, "{% for m in messages %}{{ m.content }}{% endfor %}", vocabulary);
    assert_string_equal(encode(&r, ask, 1, false, &where), "Hi <think>");
    assert_int_equal(where.split.state, QSF_THINK_START);
    qsf_think_rig_close(&r);
}

/* The text to continue is in the prompt as the model wrote it, with its tags as tokens. */
static void continuing(void **state) {
    static const struct {
        QsfMsg last;
        const char *want;
        QsfThinkState state;
    } rows[] = {
        { { .role = "assistant", THOUGHT("<think>\nso <think> it") },
          "{259}\nso <think> it",
          QSF_THINK_INSIDE },
        { { .role = "assistant", THOUGHT("<think>a</thi") }, "{259}a</thi", QSF_THINK_INSIDE },
        { { .role = "assistant", THOUGHT("<think>") }, "{259}", QSF_THINK_INSIDE },
        { { .role = "assistant", THOUGHT("<think>\na\n</think>\n") }, "{259}\na\n{260}\n", QSF_THINK_AFTER },
        { { .role = "assistant", .content = "b", .len = 1, THOUGHT("<think>\na\n</think>\n\n") },
          "{259}\na\n{260}\n\nb",
          QSF_THINK_ANSWER },
        { { .role = "assistant", .content = "</think>", .len = 8, THOUGHT("<think>a</think>") },
          "{259}a{260}</think>",
          QSF_THINK_ANSWER },
        /* without tags, as clients of a server have it */
        { { .role = "assistant", THOUGHT("a <think>"), .thought = QSF_THOUGHT_OPEN },
          "{259}\na <think>",
          QSF_THINK_INSIDE },
        { { .role = "assistant", THOUGHT("a"), .thought = QSF_THOUGHT_CLOSED },
          "{259}\na\n{260}\n\n",
          QSF_THINK_AFTER },
        { { .role = "assistant", .content = "b", .len = 1, THOUGHT("a"), .thought = QSF_THOUGHT_CLOSED },
          "{259}\na\n{260}\n\nb",
          QSF_THINK_ANSWER },
    };
    static const char *const templates[] = { TURNS OPEN, TURNS PLAIN };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        QsfMsg msgs[] = { MSG("user", "Hi"), rows[i / 2].last };
        QsfThinkPrompt where;
        char want[200];
        QsfThinkRig r;
        qsf_think_rig_open(&r, templates[i % 2], vocabulary);
        snprintf(want, sizeof want, "{256}Hi{258}{257}%s", rows[i / 2].want);
        assert_string_equal(encode(&r, msgs, 2, true, &where), want);
        assert_int_equal(where.split.state, rows[i / 2].state);
        assert_string_equal(where.opened, "");
        qsf_think_rig_close(&r);
    }
}

/* Past reasoning is passed only to templates that ask for it. */
static void past_reasoning(void **state) {
    static const QsfMsg msgs[] = {
        MSG("user", "Hi"),
        { .role = "assistant", .content = "Yo", .len = 2, THOUGHT("<think>\nhm </think>\n") },
        MSG("user", "Bye")
    };
    QsfThinkPrompt where;
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, TURNS PLAIN, vocabulary);
    assert_string_equal(encode(&r, msgs, 3, false, &where), "{256}Hi{258}{257}Yo{258}{256}Bye{258}{257}");
    qsf_think_rig_close(&r);
    qsf_think_rig_open(
        &r,
        "{% for m in messages %}{% if m.reasoning_content is defined %}<think>{{ m.reasoning_content "
        "}}</think>"
        "{% endif %}{{ m.content }}<|stop|>{% endfor %}" PLAIN,
        vocabulary);
    assert_string_equal(encode(&r, msgs, 3, false, &where), "Hi{258}{259}hm{260}Yo{258}Bye{258}{257}");
    qsf_think_rig_close(&r);
}

/* ---- the end of a turn ---- */

static int32_t turn_end(const char *template, const char *const *tokens) {
    QsfThinkRig r;
    qsf_think_rig_open(&r, template, tokens);
    int32_t id, none = 0;
    QsfErr e = { 0 };
    qsf_test_expect_ok(qsf_chat_turn_end(r.tmpl, r.tok, &id, &e), &e);
    qsf_test_expect_ok(qsf_chat_turn_end(NULL, r.tok, &none, &e), &e);
    assert_int_equal(none, -1);
    qsf_think_rig_close(&r);
    return id;
}

static void the_template_ends_turns(void **state) {
    static const char *const other[] = { "<|user|>", "<|assistant|>", NULL };
    (void)state;
    assert_int_equal(turn_end(TURNS PLAIN, vocabulary), STOP);
    assert_int_equal(turn_end("{% for m in messages %}{{ m.content }}\n <|stop|>{% endfor %}", vocabulary),
                     STOP);
    /* The start of the next turn, where there is no other end marker. */
    assert_int_equal(turn_end("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}", other),
                     USER);
    /* Ordinary words, not tokens. */
    assert_int_equal(turn_end("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", other),
                     -1);
    /* No conversation of three messages can be rendered. */
    assert_int_equal(turn_end("{% if messages|length > 1 %}{{ raise_exception('no') }}{% endif %}<|stop|>",
                              vocabulary),
                     -1);
}

/* ---- published templates ---- */

static char *read_text(const char *path, size_t *len) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    char part[4096];
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) qsf_strbuf_add(&b, part, n);
    fclose(f);
    return qsf_strbuf_take(&b, len);
}

static void published_templates(void **state) {
    static const struct {
        const char *file, *open, *field;
    } rows[] = {
        { "Qwen-Qwen3-0.6B", "<think>", "reasoning_content" },
        { "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "<think>", NULL },
        { "deepseek-ai-DeepSeek-V3.2", "<think>", "reasoning_content" },
        { "mistralai-Ministral-3-14B-Reasoning-2512", "[THINK]", NULL },
        { "CohereLabs-c4ai-command-a-03-2025", "<|START_THINKING|>", NULL },
        { "Apertus-8B-Instruct", "<|inner_prefix|>", NULL },
        { "ByteDance-Seed-OSS", "<seed:think>", "reasoning_content" },
        { "gguf-exaone-deep-32b", "<thought>", NULL },
        { "ollama-gemma4_31b_chat_template", "<|channel>thought", "reasoning_content" },
        { "gguf-llama2-7b", NULL, NULL },
        { "cz-phi-3-small", NULL, NULL },
    };
    static const char *const tokens[] = { "!<|im_end|>", NULL };
    QsfLedger ledger;
    QsfTestVocab v = { 0 };
    QsfErr e = { 0 };
    (void)state;
    if (qsf_test_data("oracle/templates/README.md") == NULL) skip();
    qsf_ledger_init(&ledger, 0);
    qsf_tv_bpe(&v);
    qsf_tv_add(&v, tokens[0] + 1, 0, QSF_TOKEN_CONTROL);
    QsfTokenizer *tok = qsf_tv_open(&v, "gpt2", &ledger, &e);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[200];
        size_t len;
        QsfThink t;
        snprintf(name, sizeof name, "oracle/templates/templates/%s.jinja", rows[i].file);
        const char *path = qsf_test_data(name);
        if (path == NULL) fail_msg("%s is missing", name);
        char *text = read_text(path, &len);
        qsf_think_detect(&t, tok, text, len);
        const char *open = t.tags != NULL ? t.tags->open : "none", *field = qsf_think_field(text, len);
        if (strcmp(open, rows[i].open != NULL ? rows[i].open : "none") != 0) fail_msg("%s: %s", name, open);
        if (rows[i].field == NULL ? field != NULL : field == NULL || strcmp(field, rows[i].field) != 0)
            fail_msg("%s: reads %s", name, field != NULL ? field : "nothing");
        free(text);
    }
    qsf_tokenizer_close(tok);
    qsf_tv_free(&v);
    qsf_ledger_destroy(&ledger);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_gives_the_same),
        cmocka_unit_test(decided_text_is_not_held_back),
        cmocka_unit_test(displayed_text),
        cmocka_unit_test(displayed_blocks),
        cmocka_unit_test(the_vocabulary_decides_when_the_template_does_not),
        cmocka_unit_test(prompts_that_open_a_block),
        cmocka_unit_test(continuing),
        cmocka_unit_test(past_reasoning),
        cmocka_unit_test(the_template_ends_turns),
        cmocka_unit_test(published_templates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
