/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tags that are tokens, and formats of messages: channels, recipients, kinds, elements. */
#include "tests/harness/qsf_test.h"

#include "tests/harness/think_rig.h"

/* ---- output as it is generated: tokens between { and }, with ~ the user-defined ones ---- */

typedef struct Out {
    char reasoning[512], answer[512];
} Out;

static void put(void *arg, bool reasoning, const char *text, size_t len) {
    Out *o = arg;
    char *dst = reasoning ? o->reasoning : o->answer;
    assert_true(strlen(dst) + len < sizeof o->answer);
    strncat(dst, text, len);
}

/* The length of the token at s, 0 for text: "{" and "}" are not part of it. */
static size_t token(const char *s) { return *s == '{' ? strcspn(s, "}") - 1 : 0; }

/* Feeds up to `most` tokens and bytes; returns what is left. */
static const char *feed(QsfThinkSplit *s, const char *script, size_t most, QsfThinkPut to, Out *out) {
    for (; *script != '\0' && most > 0; most--) {
        const size_t n = token(script);
        const bool user = n > 0 && script[1] == '~';
        if (n > 0)
            qsf_think_feed_token(s, script + 1 + user, n - user, !user, to, out);
        else
            qsf_think_feed(s, script, 1, to, out);
        script += n > 0 ? n + 2 : 1;
    }
    return script;
}

typedef struct Row {
    const char *prompt, *script, *reasoning, *answer;
    bool ended;
} Row;

/* Whole, and with cuts also cut anywhere: what follows the first part silently continues it. */
static void run(const QsfThink *t, const Row *row, bool cuts) {
    for (size_t at = 0; at < (cuts ? strlen(row->script) : 1); at++) {
        QsfThinkSplit s, again;
        Out out = { 0 };
        qsf_think_start(&s, t);
        feed(&s, row->prompt, 1000, NULL, NULL);
        again = s;
        const char *rest = feed(&s, row->script, at, put, &out);
        qsf_think_flush(&s, put, &out);
        feed(&again, row->script, at, NULL, NULL);
        feed(&again, rest, 1000, put, &out);
        qsf_think_flush(&again, put, &out);
        if (strcmp(out.reasoning, row->reasoning) != 0 || strcmp(out.answer, row->answer) != 0)
            fail_msg("%s cut at %zu: reasoning '%s', answer '%s'", row->script, at, out.reasoning,
                     out.answer);
        assert_int_equal(again.ended, row->ended);
    }
}

static void check(const QsfThink *t, const Row *rows, size_t n, bool cuts) {
    for (size_t i = 0; i < n; i++) run(t, &rows[i], cuts);
}
#define CHECK(t, rows)       check(t, rows, sizeof(rows) / sizeof *(rows), true)
#define CHECK_WHOLE(t, rows) check(t, rows, sizeof(rows) / sizeof *(rows), false)

/* ---- vocabularies ---- */

static const char *const harmony[] = { "<|start|>",     "<|message|>", "<|channel|>", "<|end|>",
                                       "<|constrain|>", "<|return|>",  "<|call|>",    NULL };
#define HARMONY                                                                                             \
    "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}<|channel|>final{% endif %}" \
    "<|message|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"

static const char *const solar[] = { "<|begin|>",          "<|end|>",
                                     "<|think|>",          "<|content|>",
                                     "<|tool_calls|>",     "<|tool_call:begin|>",
                                     "<|tool_call:name|>", "<|tool_call:args|>",
                                     "<|tool_call:end|>",  "<|flush|>",
                                     "<|calls|>",          NULL };
static const char *const kimi[] = { "<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", NULL };
static const char *const muse[] = { "<|start|>", "<|message|>", "<|eom|>", "<|eot|>", NULL };

/* ---- tags ---- */

#define CHATML "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|stop|>{% endfor %}"

static void only_tokens_are_tags(void **state) {
    static const char *const users[] = { "~<think>", "~</think>", "~x</think>y", "!<|x|>", NULL };
    static const char *const hidden[] = { "[THINK]", "[/THINK]", NULL };
    static const char *const gemma[] = { "<|channel>", "<channel|>", NULL };
    static const Row rows[] = {
        { "", "{~<think>}a</think>b{~</think>}c", "<think>a</think>b</think>", "c", false },
        { "", "<think>a{~</think>}c", "", "<think>a</think>c", false },
        { "", "{~<think>}a{~x</think>y}b{~</think>} c", "<think>ax</think>yb</think> ", "c", false },
        { "", "{~<think>}a{~</think>}{<|x|>}\n{<|x|>}c{<|x|>}d", "<think>a</think>\n", "cd", false },
        { "", "{~<think>}a{<|x|>}b", "<think>ab", "", false },
        /* Where tags are tokens, a block may follow in the answer. */
        { "", "{~<think>}a{~</think>}b{~<think>}c{~</think>}d", "<think>a</think><think>c</think>", "bd",
          false },
        { "", "b {~<think>}c{~</think>}\nd{~</think>}", "<think>c</think>\n", "b d</think>", false },
        { "", "b{~<think>}c{~</think>}\nd<think>e", "<think>c</think>", "b\nd<think>e", false },
        { "", "b{~<think>}c", "<think>c", "b", false },
    };
    static const Row hidden_rows[] = {
        { "", "{[THINK]}a[/THINK]b{[/THINK]}c", "[THINK]a[/THINK]b[/THINK]", "c", false },
        { "", "[THINK]a{[/THINK]}b", "", "[THINK]ab", false },
        { "", "a{[THINK]}b{[/THINK]}c", "[THINK]b[/THINK]", "ac", false },
    };
    static const Row gemma_rows[] = {
        { "", "{<|channel>}thought\na{<channel|>}b", "<|channel>thought\na<channel|>", "b", false },
        { "", "{<|channel>}thoughts<channel|>", "<|channel>thoughts<channel|>", "", false },
        { "", "<|channel>thought{<channel|>}b", "", "<|channel>thoughtb", false },
        { "", "{<|channel>}tho", "", "", false },
        { "", "\n{<|channel>}thx", "", "\nthx", false },
        { "", "{<|channel>}thought\na{<channel|>}b{<|channel>}thought\nc{<channel|>}d",
          "<|channel>thought\na<channel|><|channel>thought\nc<channel|>", "bd", false },
        { "", "b{<|channel>}thx{<|channel>}thou", "", "bthx", false },
    };
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, CHATML, users);
    CHECK(&r.think, rows);
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, CHATML, hidden);
    CHECK(&r.think, hidden_rows);
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, CHATML "{# <|channel>thought #}", gemma);
    CHECK(&r.think, gemma_rows);
    qsf_think_rig_close(&r);
}

static void tags_around_answers(void **state) {
    static const char *const none[] = { "<|stop|>", NULL };
    static const char *const tokens[] = { "~<answer>", "~</answer>", NULL };
    static const Row rows[] = {
        { "", "<think>a</think>\n<response>\nb\n</response>\n", "<think>a</think>\n", "b", false },
        { "", "<response>b</response>", "", "b", false },
        { "", "<think>a</think><response> b </response> c", "<think>a</think>", "b </response> c", false },
        { "", "<think>a</think>b</response>", "<think>a</think>", "b</response>", false },
        { "", "<think>a</think><response>b\n\n</resp", "<think>a</think>", "b\n\n</resp", false },
        { "", "<think>a</think><response>b\n \nc", "<think>a</think>", "b\n \nc", false },
        { "", "b <response>c</response>", "", "b <response>c</response>", false },
    };
    static const Row token_rows[] = {
        { "", "<think>a</think>\n{~<answer>}\nb</answer>\n{~</answer>}", "<think>a</think>\n", "b</answer>",
          false },
    };
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, CHATML "{# <think> <response> #}", none);
    CHECK_WHOLE(&r.think, rows);
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, CHATML "{# <think> #}", tokens);
    CHECK_WHOLE(&r.think, token_rows);
    qsf_think_rig_close(&r);
}

/* ---- messages ---- */

#define A "<|channel|>analysis<|message|>"

static void channels(void **state) {
    static const Row rows[] = {
        { "",
          "{<|channel|>}analysis{<|message|>}hm{<|end|>}{<|start|>}assistant{<|channel|>}final{<|message|>}"
          "42",
          A "hm\n\n", "42", false },
        { "", "{<|channel|>}final{<|message|>}42{<|return|>}", "", "42", false },
        { "", "{<|message|>}42", "", "42", false },
        { "", "plain <|channel|>analysis", "", "plain <|channel|>analysis", false },
        { "",
          "{<|channel|>}analysis{<|message|>}<|end|>a{<|end|>}{<|start|>}assistant{<|channel|>}analysis{<|"
          "message|>}b{<|"
          "end|>}{<|start|>}assistant{<|channel|>}commentary{<|message|>}c{<|end|>}{<|start|>}assistant{<|"
          "message|>}42",
          A "<|end|>a\n\n" A "b\n\n<|channel|>commentary<|message|>c\n\n", "42", false },
        { "",
          "{<|channel|>}commentary{<|message|>}a{<|end|>}{<|start|>}assistant{<|channel|>}final{<|message|"
          ">}b",
          "<|channel|>commentary<|message|>a\n\n", "b", false },
        { "",
          "{<|channel|>}final{<|message|>}1{<|end|>}{<|start|>}assistant{<|channel|>}analysis{<|message|>}"
          "a{<|end|>}{<|"
          "start|>}assistant{<|channel|>}final{<|message|>}2",
          A "a\n\n", "1\n\n2", false },
        { "", "{<|channel|>}commentary to=functions.f {<|constrain|>}json{<|message|>}{x}{<|call|>}", "",
          "[tool call to=functions.f] ", false },
        { "{<|start|>}assistant", " to=functions.f{<|channel|>}commentary json{<|message|>}[1]{<|call|>}", "",
          "[tool call to=functions.f] [1]", false },
        { "", "{<|channel|>}analysis to=python code{<|message|>}1+1{<|call|>}", "",
          "[tool call to=python] 1+1", false },
        { "", "{<|channel|>}commentary to=assistant{<|channel|>}analysis{<|message|>}a", A "a", "", false },
        { "", "{<|channel|>}final{<|constrain|>}json{<|message|>}[]", "", "[]", false },
        { "", "{<|channel|>}analysis{<|message|>}a{<|end|>}{<|start|>}user{<|message|>}b", A "a", "", true },
        /* Incomplete heads. */
        { "", "{<|channel|>}anal", "", "", false },
        { "", "{<|channel|>}analysis{<|message|>}a{<|end|>}{<|start|>}assist", A "a", "", false },
        { "", "{<|channel|>}analysis{<|message|>}a{<|end|>}42", A "a\n\n", "42", false },
    };
    /* What cannot be a head is an answer. */
    static const Row odd[] = {
        { "",
          "{<|channel|>}analysis{<|message|>}a{<|end|>}{<|start|>}assistant{<|channel|>}final 42{<|return|>}",
          A "a\n\n", "assistantfinal 42", false },
        { "", "{<|channel|>}final{<|message|>}1{<|end|>}{<|start|>}two{<|return|>}", "", "1\n\ntwo", false },
    };
    static const char *const users[] = { "~<|start|>", "~<|message|>", "~<|channel|>", "~<|end|>", NULL };
    static const Row user_rows[] = {
        { "", "{~<|channel|>}analysis{~<|message|>}hm{~<|end|>}{~<|start|>}assistant{~<|message|>}42",
          A "hm\n\n", "42", false },
    };
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, HARMONY, harmony);
    assert_int_equal(r.think.format, QSF_THINK_HARMONY);
    CHECK(&r.think, rows);
    CHECK_WHOLE(&r.think, odd);
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, NULL, harmony);
    assert_int_equal(r.think.format, QSF_THINK_HARMONY);
    CHECK(&r.think, rows);
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, HARMONY, users);
    CHECK(&r.think, user_rows);
    qsf_think_rig_close(&r);
    /* Another template for the same vocabulary. */
    qsf_think_rig_open(&r, CHATML "{# <think> #}", harmony);
    assert_int_equal(r.think.format, QSF_THINK_TAGS);
    qsf_think_rig_close(&r);
}

static void recipients(void **state) {
    static const Row rows[] = {
        { "",
          "{<|start|>}assistant to=self{<|message|>}hm{<|eom|>}{<|start|>}assistant "
          "to=user{<|message|>}42{<|eot|>}",
          " to=self<|message|>hm\n\n", "42", false },
        { "", "{<|start|>}assistant to=f{<|message|>}<x>", "", "[tool call to=f] <x>", false },
    };
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, NULL, muse);
    CHECK(&r.think, rows);
    qsf_think_rig_close(&r);
}

static void blocks(void **state) {
    static const Row rows[] = {
        { "", "{<|think|>}hm{<|end|>}{<|begin|>}assistant{<|content|>}42{<|flush|>}", "<|think|>hm\n\n", "42",
          false },
        { "", "{<|think|>}{<|end|>}{<|begin|>}assistant{<|content|>}42", "<|think|>\n\n", "42", false },
        { "", "{<|content|>}1{<|end|>}{<|begin|>}assistant{<|content|>}2", "", "1\n\n2", false },
        { "",
          "{<|tool_calls|>}{<|tool_call:begin|>}a1{<|tool_call:name|>}f{<|tool_call:args|>}[1]{<|"
          "tool_call:end|>}{<|tool_"
          "call:begin|>}b2{<|tool_call:name|>}g{<|tool_call:args|>}[]{<|tool_call:end|>}{<|calls|>}",
          "", "[tool call to=f] [1]\n\n[tool call to=g] []", false },
        { "", "{<|think|>}hm{<|end|>}{<|begin|>}user{<|content|>}42", "<|think|>hm", "", true },
    };
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, NULL, solar);
    CHECK(&r.think, rows);
    qsf_think_rig_close(&r);
}

#define K "<|open|>think<|sep|>"

static void elements(void **state) {
    static const char open[] = "{<|open|>}think{<|sep|>}";
    static const Row rows[] = {
        { "",
          "{<|open|>}think{<|sep|>}hm{<|close|>}think{<|sep|>}{<|open|>}response{<|sep|>}42{<|close|>}"
          "response{<|sep|>}{<|"
          "close|>}message{<|sep|>}",
          K "hm\n\n", "42", false },
        { open, "hm{<|close|>}think{<|sep|>}\n{<|open|>}response{<|sep|>}4 <|sep|>2", "hm\n\n", "4 <|sep|>2",
          false },
        { open, "hm{<|open|>}response{<|sep|>}42", "hm\n\n", "42", false },
        { open, "hm{<|close|>}thi", "hm", "", false },
        { "",
          "{<|open|>}response{<|sep|>}42{<|close|>}response{<|sep|>}{<|open|>}tools{<|sep|>}{<|open|>}call "
          "tool=\"f\" "
          "index=\"1\"{<|sep|>}{<|open|>}argument key=\"k\" "
          "type=\"string\"{<|sep|>}v{<|close|>}argument{<|sep|>}{<|close|>}"
          "call{<|sep|>}{<|close|>}tools{<|sep|>}",
          "", "42\n\n[tool call to=f] {\"k\": \"v\"}", false },
        { "",
          "{<|open|>}tools{<|sep|>}{<|open|>}call tool=\"f\" index=\"1\"{<|sep|>}{<|open|>}argument "
          "key=\"a&quot;b &amp; c\" type=\"string\"{<|sep|>}x \"y\"\\\n\x01z{<|close|>}argument{<|sep|>}"
          "{<|open|>}argument key=\"n\" type=\"number\"{<|sep|>}3{<|close|>}argument{<|sep|>}"
          "{<|close|>}call{<|sep|>}"
          "{<|open|>}call tool=\"g\" index=\"2\"{<|sep|>}{<|close|>}call{<|sep|>}"
          "{<|open|>}call tool=\"h\" index=\"3\"{<|sep|>}{<|open|>}json type=\"object\"{<|sep|>}"
          "[\"v\"]{<|close|>}json{<|sep|>}{<|close|>}call{<|sep|>}{<|close|>}tools{<|sep|>}",
          "",
          "[tool call to=f] {\"a\\\"b & c\": \"x \\\"y\\\"\\\\\\n\\u0001z\", \"n\": 3}\n\n"
          "[tool call to=g] {}\n\n"
          "[tool call to=h] [\"v\"]",
          false },
        { "",
          "{<|open|>}response{<|sep|>}42{<|close|>}response{<|sep|>}{<|open|>}message "
          "role=\"user\"{<|sep|>}x",
          "", "42", true },
    };
    static const Row odd[] = { { open, "hm{<|close|>}think42", "hm\n\n", "42", false } };
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, NULL, kimi);
    CHECK(&r.think, rows);
    CHECK_WHOLE(&r.think, odd);
    qsf_think_rig_close(&r);
}

/* ---- prompts ---- */

/* The prompt as text. */
static const char *encode(const QsfThinkRig *r, const QsfMsg *msgs, size_t n, bool go_on,
                          QsfThinkPrompt *where) {
    static QsfStrbuf text;
    QsfIds ids = { 0 };
    QsfErr e = { 0 };
    qsf_strbuf_free(&text);
    qsf_test_expect_ok(qsf_think_encode(&r->think, r->tmpl, r->tok, msgs, n,
                                        go_on ? QSF_CHAT_CONTINUE : QSF_CHAT_GENERATE, &ids, where, &e),
                       &e);
    qsf_test_expect_ok(qsf_chat_show(r->tok, &ids, &text, NULL, &e), &e);
    qsf_ids_free(&ids);
    return qsf_strbuf_str(&text);
}

#define MSG(r, text) \
    { .role = (r), .content = (text), .len = sizeof(text) - 1 }

static void expect_end(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    if (n < k || strcmp(text + n - k, end) != 0) fail_msg("'%s' does not end in '%s'", text, end);
}

static void prompts_end_inside_messages(void **state) {
    static const QsfMsg ask[] = { MSG("user", "Hi<|start|>assistant<|channel|>analysis<|message|>") };
    static const struct {
        const char *more, *opened;
        bool heading;
        const char *script, *reasoning, *answer;
    } rows[] = {
        { "", "", true, "{<|channel|>}final{<|message|>}1", "", "1" },
        { "", "", true, "assist", "", "assist" },
        { "<|channel|>analysis<|message|>", A, false, "a{<|end|>}b", "a\n\n", "b" },
        { "<|channel|>", "", true, "final{<|message|>}1", "", "1" },
        { "<|channel|>final<|message|>", "", false, "1", "", "1" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QsfThinkRig r;
        QsfThinkPrompt where;
        Out out = { 0 };
        char template[500];
        snprintf(template, sizeof template, "%s%s", HARMONY, rows[i].more);
        qsf_think_rig_open(&r, template, harmony);
        encode(&r, ask, 1, false, &where);
        assert_string_equal(where.opened, rows[i].opened);
        assert_int_equal(where.split.heading, rows[i].heading);
        feed(&where.split, rows[i].script, 1000, put, &out);
        qsf_think_flush(&where.split, put, &out);
        assert_string_equal(out.reasoning, rows[i].reasoning);
        assert_string_equal(out.answer, rows[i].answer);
        qsf_think_rig_close(&r);
    }
}

static void continuing(void **state) {
    static const char exact[] = "\x0E<|channel|>\x0F"
                                "analysis\x0E<|message|>\x0F"
                                "a<|end|>\x0E<|end|>\x0F";
    static const QsfMsg cut[] = { MSG("user", "Hi"),
                                  { .role = "assistant",
                                    .content = "",
                                    .reasoning = "x",
                                    .reasoning_len = 1,
                                    .exact = exact,
                                    .exact_len = sizeof exact - 1 } };
    static const QsfMsg plain[] = { MSG("user", "Hi"), MSG("assistant", "42") };
    static const QsfMsg thought[] = {
        MSG("user", "Hi"),
        { .role = "assistant", .content = "42", .len = 2, .reasoning = A "a\n\nb\n\n", .reasoning_len = 36 }
    };
    static const QsfMsg open[] = { MSG("user", "Hi"),
                                   { .role = "assistant", .reasoning = A "a", .reasoning_len = 31 } };
    QsfThinkPrompt where;
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, HARMONY, harmony);
    expect_end(encode(&r, cut, 2, true, &where),
               "⟦<|start|>⟧assistant⟦<|channel|>⟧analysis⟦<|message|>⟧a<|end|>⟦<|end|>⟧");
    assert_true(where.exact);
    expect_end(encode(&r, plain, 2, true, &where), "⟦<|start|>⟧assistant⟦<|channel|>⟧final⟦<|message|>⟧42");
    assert_int_equal(where.split.part, QSF_PART_ANSWER);
    expect_end(encode(&r, thought, 2, true, &where),
               "⟦<|start|>⟧assistant⟦<|channel|>⟧analysis⟦<|message|>⟧a\n\n"
               "b⟦<|end|>⟧⟦<|start|>⟧assistant⟦<|channel|>⟧final⟦<|"
               "message|>⟧42");
    expect_end(encode(&r, open, 2, true, &where), "⟦<|start|>⟧assistant⟦<|channel|>⟧analysis⟦<|message|>⟧a");
    assert_true(qsf_think_inside(&where.split));
    assert_string_equal(where.opened, "");
    qsf_think_rig_close(&r);
    /* A vocabulary without these tokens: its reasoning and its text. */
    qsf_think_rig_open(&r, CHATML, kimi + 3);
    expect_end(encode(&r, cut, 2, true, &where), "Hi<|stop|>");
    assert_false(where.exact);
    qsf_think_rig_close(&r);
    /* Without a template. */
    qsf_think_rig_open(&r, NULL, harmony);
    assert_string_equal(encode(&r, cut, 2, true, &where),
                        "Hi⟦<|channel|>⟧analysis⟦<|message|>⟧a<|end|>⟦<|end|>⟧");
    qsf_think_rig_close(&r);
}

/* ---- ends ---- */

static int32_t find(const QsfThinkRig *r, const char *text) {
    return qsf_tokenizer_find(r->tok, text, strlen(text));
}

static int32_t turn_end(const QsfThinkRig *r) {
    int32_t id;
    QsfErr e = { 0 };
    qsf_test_expect_ok(qsf_chat_turn_end(r->tmpl, r->tok, &id, &e), &e);
    return id;
}

static void messages_do_not_end_turns(void **state) {
    static const char *const phi[] = { "<|end|>", "<|return|>", NULL };
    static const char element[] =
        "{% for m in messages %}<|open|>response<|sep|>{{ m.content }}<|close|>response<|sep|>"
        "<|end_of_msg|>{% endfor %}";
    QsfThinkRig r;
    (void)state;
    qsf_think_rig_open(&r, HARMONY, harmony);
    assert_false(qsf_tokenizer_is_eog(r.tok, find(&r, "<|end|>")));
    assert_true(qsf_tokenizer_is_eog(r.tok, find(&r, "<|return|>")));
    assert_true(qsf_tokenizer_is_eog(r.tok, find(&r, "<|call|>")));
    assert_int_equal(turn_end(&r), -1);
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, "{% for m in messages %}{{ m.content }}<|end|>{% endfor %}", solar);
    assert_false(qsf_tokenizer_is_eog(r.tok, find(&r, "<|end|>")));
    assert_true(qsf_tokenizer_is_eog(r.tok, find(&r, "<|flush|>")));
    assert_int_equal(turn_end(&r), -1);
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, "{% for m in messages %}{{ m.content }}<|end|>{% endfor %}", phi);
    assert_true(qsf_tokenizer_is_eog(r.tok, find(&r, "<|end|>")));
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, element, kimi);
    assert_int_equal(turn_end(&r), -1);
    qsf_think_rig_close(&r);
    qsf_think_rig_open(&r, element, kimi + 2);
    assert_int_equal(turn_end(&r), -1);
    qsf_think_rig_close(&r);
}

/* ---- exact text ---- */

static void exact_text(void **state) {
    static const char *const tokens[] = { "<|a|>", "~<b>", "~  ", NULL };
    static char scratch[QSF_PIECE_MAX + 8];
    QsfThinkRig r;
    QsfStrbuf b = QSF_STRBUF_INIT;
    bool special;
    (void)state;
    qsf_think_rig_open(&r, NULL, tokens);
    const int32_t ids[] = { 256, 'x', '<', 'b', '>', 257, 258, 0xC3, 0xA4, 256 }, plain[] = { 'x', 258 },
                  bad[] = { 0x0E };
    assert_true(qsf_exact_add(r.tok, ids, 10, false, scratch, sizeof scratch, &b, &special));
    assert_true(special);
    assert_string_equal(qsf_strbuf_str(&b), "\x0E<|a|>\x0Fx<b>\x0E<b>\x0F  \xC3\xA4\x0E<|a|>\x0F");
    assert_true(qsf_exact_fits(r.tok, qsf_strbuf_str(&b), b.len));
    for (size_t cut = 1; cut < b.len; cut++) (void)qsf_exact_fits(r.tok, qsf_strbuf_str(&b), cut);
    qsf_strbuf_clear(&b);
    assert_true(qsf_exact_add(r.tok, plain, 2, false, scratch, sizeof scratch, &b, &special));
    assert_false(special);
    assert_false(qsf_exact_add(r.tok, bad, 1, false, scratch, sizeof scratch, &b, &special));
    assert_false(qsf_exact_fits(r.tok, "\x0E<|c|>\x0F", 7));
    assert_false(qsf_exact_fits(r.tok, "\x0E<|a|>", 6));
    assert_false(qsf_exact_fits(r.tok, "a\x0F", 2));
    qsf_strbuf_free(&b);
    qsf_think_rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_tokens_are_tags),
        cmocka_unit_test(tags_around_answers),
        cmocka_unit_test(channels),
        cmocka_unit_test(recipients),
        cmocka_unit_test(blocks),
        cmocka_unit_test(elements),
        cmocka_unit_test(prompts_end_inside_messages),
        cmocka_unit_test(continuing),
        cmocka_unit_test(messages_do_not_end_turns),
        cmocka_unit_test(exact_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
