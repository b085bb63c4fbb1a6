/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chat templates: the files of templates/, choosing one, and rendering messages to prompts whose special
 * tokens come from the template alone. */
#include "tests/harness/qsf_test.h"

#include "src/chat/chat.h"
#include "src/file/source.h"
#include "tests/harness/tiny_vocab.h"

typedef struct Rig {
    QsfLedger ledger;
    QsfSource *src;
    QsfTokenizer *tok;
} Rig;

/* A vocabulary of the oracle with another template (NULL: its own); false (with a "skip:" line) without the
 * data. */
static bool rig_open(Rig *r, const char *vocabulary, const char *template) {
    char relative[200];
    QsfErr e = { 0 };
    snprintf(relative, sizeof relative, "oracle/tokenizers/vocab/ggml-vocab-%s.gguf", vocabulary);
    const char *path = qsf_test_data(relative);
    if (path == NULL) return false;
    qsf_ledger_init(&r->ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&r->src, path, &r->ledger, &e), &e);
    if (template != NULL) {
        QsfStrbuf spec = QSF_STRBUF_INIT;
        qsf_strbuf_addf(&spec, "tokenizer.chat_template=str:%s", template);
        qsf_test_expect_ok(qsf_source_override(r->src, qsf_strbuf_str(&spec), &e), &e);
        qsf_strbuf_free(&spec);
    }
    qsf_test_expect_ok(qsf_tokenizer_open(&r->tok, r->src, &r->ledger, &e), &e);
    return true;
}

static void rig_close(Rig *r) {
    qsf_tokenizer_close(r->tok);
    qsf_source_close(r->src);
    qsf_ledger_destroy(&r->ledger);
}

static QsfChatTemplate *open_template(const Rig *r, const char *name) {
    QsfChatTemplate *t;
    QsfErr e = { 0 };
    char notice[200] = "x";
    qsf_test_expect_ok(qsf_chat_template_open(&t, r->src, r->tok, name, notice, sizeof notice, &e), &e);
    assert_string_equal(notice, "");
    return t;
}

#define MSG(r, text) \
    { .role = (r), .content = (text), .len = sizeof(text) - 1 }

#define BAR "\xEF\xBD\x9C" /* DeepSeek's tokens */
#define LOW "\xE2\x96\x81"

/* --- the files --- */

static void test_files(void **state) {
    static const QsfMsg msgs[] = { MSG("system", "Be kind."), MSG("user", "Hi"), MSG("assistant", "Yo."),
                                   MSG("user", "Bye") };
    static const struct {
        const char *name, *text;
    } files[] = {
        { "chatml",
          "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
          "Yo.<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n" },
        { "llama2", "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi [/INST] Yo. </s><s>[INST] Bye [/INST]" },
        { "llama3.jinja",
          "<s><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|><|start_header_id|>user"
          "<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nYo.<|eot_id|>"
          "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
          "<|start_header_id|>assistant<|end_header_id|>\n\n" },
        { "mistral-v1", "<s>[INST] Be kind.\n\nHi [/INST] Yo.</s>[INST] Bye [/INST]" },
        { "mistral-v3", "<s>[INST] Hi[/INST] Yo.</s>[INST] Be kind.\n\nBye[/INST]" },
        { "mistral-tekken", "<s>[INST]Hi[/INST]Yo.</s>[INST]Be kind.\n\nBye[/INST]" },
        { "gemma",
          "<s><start_of_turn>user\nBe kind.\n\nHi<end_of_turn>\n<start_of_turn>model\nYo.<end_of_turn>\n"
          "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n" },
        { "phi3", "<|system|>\nBe "
                  "kind.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nYo.<|end|>\n<|user|>\nBye<|end|>\n"
                  "<|assistant|>\n" },
        { "zephyr",
          "<|system|>\nBe "
          "kind.</s>\n<|user|>\nHi</s>\n<|assistant|>\nYo.</s>\n<|user|>\nBye</s>\n<|assistant|>\n" },
        { "alpaca", "Be kind.\n\n### Instruction:\nHi\n\n### Response:\nYo.</s>\n\n### "
                    "Instruction:\nBye\n\n### Response:\n" },
        { "phi4", "<|im_start|>system<|im_sep|>Be kind.<|im_end|><|im_start|>user<|im_sep|>Hi<|im_end|>"
                  "<|im_start|>assistant<|im_sep|>Yo.<|im_end|><|im_start|>user<|im_sep|>Bye<|im_end|>"
                  "<|im_start|>assistant<|im_sep|>" },
        { "vicuna", "Be kind.\n\nUSER: Hi\nASSISTANT: Yo.</s>\nUSER: Bye\nASSISTANT:" },
        { "deepseek", "<s>Be kind.<" BAR "User" BAR ">Hi<" BAR "Assistant" BAR ">Yo.<" BAR "end" LOW "of" LOW
                      "sentence" BAR "><" BAR "User" BAR ">Bye<" BAR "Assistant" BAR ">" },
        { "granite", "<|start_of_role|>system<|end_of_role|>Be kind.<|end_of_text|>\n"
                     "<|start_of_role|>user<|end_of_role|>Hi"
                     "<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>Yo.<|end_of_text|>\n"
                     "<|start_of_role|>user"
                     "<|end_of_role|>Bye<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>" },
        { "command-r",
          "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Be kind.<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|>"
          "<|USER_TOKEN|>Hi<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Yo."
          "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Bye<|END_OF_TURN_TOKEN|>"
          "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>" },
        { "solar-open", "<|begin|>system<|content|>Be "
                        "kind.<|end|><|begin|>user<|content|>Hi<|end|><|begin|>assistant<|content|>Yo."
                        "<|end|><|begin|>user<|content|>Bye<|end|><|begin|>assistant" },
        { "falcon", "System: Be kind.\nUser: Hi\nFalcon: Yo.\nUser: Bye\nFalcon:" },
        { "bitnet", "System: Be kind.<|eot_id|>User: Hi<|eot_id|>Assistant: Yo.<|eot_id|>User: "
                    "Bye<|eot_id|>Assistant: " },
        { "guide",
          "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
          "Yo.<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n" },
        { "../templates/raw.jinja", "Be kind.\nHi\nYo.\nBye" },
    };
    Rig r;
    (void)state;
    if (!rig_open(&r, "llama-spm", NULL)) skip();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[1000];
        QsfRendered out = { 0 };
        QsfErr e = { 0 };
        bool by_path = files[i].name[0] == '.';
        snprintf(path, sizeof path, "%s/%s", getenv("QSF_DATADIR"), files[i].name + 3);
        QsfChatTemplate *t = open_template(&r, by_path ? path : files[i].name);
        assert_true(strncmp(qsf_chat_template_source(t), "{# ", 3) == 0);
        assert_null(strchr(qsf_chat_template_name(t), '.'));
        qsf_test_expect_ok(qsf_chat_render(t, msgs, 4, QSF_CHAT_GENERATE, &out, &e), &e);
        assert_string_equal(qsf_strbuf_str(&out.text), files[i].text);
        qsf_rendered_free(&out);
        qsf_chat_template_close(t);
    }
    rig_close(&r);
}

static void test_list(void **state) {
    static const char names[] =
        "alpaca\0bitnet\0chatml\0command-r\0deepseek\0falcon\0gemma\0gpt-oss\0granite\0guide\0"
        "llama2\0llama3\0mistral-tekken\0mistral-v1\0mistral-v3\0phi3\0phi4\0raw\0solar-open\0vicuna\0"
        "zephyr\0";
    char *list = qsf_chat_template_list();
    (void)state;
    assert_non_null(list);
    assert_memory_equal(list, names, sizeof names);
    free(list);
}

/* --- choosing --- */

static void test_choice(void **state) {
    Rig r;
    QsfErr e = { 0 };
    QsfChatTemplate *t = (QsfChatTemplate *)&r;
    char notice[300];
    (void)state;
    if (!rig_open(&r, "llama-spm", NULL)) skip();
    qsf_test_expect_ok(qsf_chat_template_open(&t, r.src, r.tok, NULL, notice, sizeof notice, &e), &e);
    assert_null(t); /* a base model */
    assert_non_null(strstr(notice, "no chat template"));
    assert_true(qsf_chat_is_base(r.tok));
    assert_null(open_template(&r, "raw"));
    assert_int_equal(qsf_chat_template_open(&t, r.src, r.tok, "nonsense", NULL, 0, &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, "alpaca, bitnet, chatml");
    assert_null(t);
    qsf_err_clear(&e);
    assert_int_equal(qsf_chat_template_open(&t, r.src, r.tok, "/", NULL, 0, &e), QSF_E_MODEL);
    qsf_chat_template_close(NULL);
    rig_close(&r);
}

static void test_model_template(void **state) {
    Rig r;
    (void)state;
    if (!rig_open(&r, "llama-spm", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"))
        skip();
    QsfChatTemplate *t = open_template(&r, NULL);
    assert_string_equal(qsf_chat_template_name(t), "model");
    assert_true(strncmp(qsf_chat_template_source(t), "{% for", 6) == 0);
    qsf_chat_template_close(t);
    rig_close(&r);
}

/* A template that does not compile, or fails when it runs, is replaced by the file of its family. */
static void test_replacement(void **state) {
    static const struct {
        const char *vocabulary, *template, *file;
    } cases[] = {
        { "llama-spm", "{% include 'x' %}<|im_start|>", "chatml" },
        { "llama-spm", "{{ messages|nope }} [INST]", "mistral-v1" },
        { "mistral-v3", "{{ messages|nope }} [INST]", "mistral-v3" },
        { "qwen2", "{{ messages|nope }} [INST]", "mistral-v1" },
        { "llama-spm", "{{ 1 // 0 }}<" BAR "User" BAR ">", "deepseek" },
        { "llama-spm", "{{ 1 // 0 }}<|START_OF_TURN_TOKEN|>", "command-r" },
        { "llama-spm", "{{ 1 // 0 }}<|start_of_role|>", "granite" },
        { "llama-spm", "{{ 1 // 0 }}<|im_start|>user<|im_sep|>", "phi4" },
        { "llama-spm", "{{ 1 // 0 }}<|channel|><|end|>", "gpt-oss" },
        { "llama-spm", "{{ 1 // 0 }}<|begin|><|end|>", "solar-open" },
        { "llama-spm", "{{ 1 // 0 }}ASSISTANT:", "vicuna" },
        { "llama-spm", "{{ 1 // 0 }}Falcon:", "falcon" },
        { "llama-spm", "{{ 1 // 0 }}<|eot_id|>", "bitnet" },
        /* fails only after an earlier answer */
        { "llama-spm", "{% if messages|length > 1 %}{{ 1 // 0 }}{% endif %}<|im_start|>", "chatml" },
        { "qwen2", "{% trans %}", "chatml" },
        { "mistral-v3", "{% trans %}", "mistral-v3" },
        { "llama-spm", "{{ messages.x.y }}<start_of_turn>", "gemma" },
        { "llama-bpe", "{% trans %}", "llama3" },
        { "phi-3", "{{ 1 // 0 }}", "phi3" },
        { "llama-spm", "{% trans %}", NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Rig r;
        QsfChatTemplate *t;
        QsfErr e = { 0 };
        char notice[300];
        if (!rig_open(&r, cases[i].vocabulary, cases[i].template)) continue;
        int rc = qsf_chat_template_open(&t, r.src, r.tok, NULL, notice, sizeof notice, &e);
        if (cases[i].file == NULL) {
            qsf_test_expect_err(&e, QSF_E_MODEL, "line 1: not supported: tag 'trans'");
            assert_int_equal(rc, QSF_E_MODEL);
            assert_null(t);
        } else {
            qsf_test_expect_ok(rc, &e);
            assert_string_equal(qsf_chat_template_name(t), cases[i].file);
            assert_non_null(strstr(notice, cases[i].file));
            assert_non_null(strstr(notice, "line 1: "));
        }
        qsf_chat_template_close(t);
        rig_close(&r);
    }
}

/* Families that only the vocabulary distinguishes, with a template of our own; every token of it typed. */
static void test_own_vocabularies(void **state) {
    static const struct {
        const char *model, *token, *file;
    } cases[] = { { "llama", "[INST]", "mistral-v3" },
                  { "gpt2", "[INST]", "mistral-tekken" },
                  { "gpt2", "<|start_of_role|>", "granite" },
                  { "llama", "<|im_start|>", "chatml" } };
    static const QsfTokenType types[] = { QSF_TOKEN_CONTROL, QSF_TOKEN_USER };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        static QsfTestVocab v;
        Rig r = { 0 };
        QsfErr e = { 0 };
        QsfChatTemplate *t;
        QsfIds ids = { 0 };
        const char *token = cases[i / 2].token;
        memset(&v, 0, sizeof v);
        if (strcmp(cases[i / 2].model, "llama") == 0)
            qsf_tv_spm(&v);
        else
            qsf_tv_bpe(&v);
        int32_t id = qsf_tv_add(&v, token, 0, types[i % 2]);
        qsf_gb_str(&v.gb, "tokenizer.chat_template", "{% trans %}");
        qsf_ledger_init(&r.ledger, 0);
        r.src = qsf_tv_source(&v, cases[i / 2].model, &r.ledger, &e);
        assert_non_null(r.src);
        qsf_test_expect_ok(qsf_tokenizer_open(&r.tok, r.src, &r.ledger, &e), &e);
        qsf_test_expect_ok(qsf_chat_template_open(&t, r.src, r.tok, NULL, NULL, 0, &e), &e);
        assert_string_equal(qsf_chat_template_name(t), cases[i / 2].file);
        const QsfMsg msg = { .role = "user", .content = token, .len = strlen(token) };
        for (unsigned allow = 0; allow <= QSF_CHAT_ALLOW_SPECIAL; allow += QSF_CHAT_ALLOW_SPECIAL) {
            size_t want = strcmp(token, "[INST]") == 0 ? 1 : 2, n = 0; /* the template's own */
            ids.n = 0;
            qsf_test_expect_ok(qsf_chat_encode(t, r.tok, &msg, 1, QSF_CHAT_GENERATE | allow, &ids, &e), &e);
            for (size_t k = 0; k < ids.n; k++) n += ids.data[k] == id;
            assert_int_equal(n, want + (allow != 0));
        }
        qsf_ids_free(&ids);
        qsf_chat_template_close(t);
        rig_close(&r);
        qsf_tv_free(&v);
    }
}

/* A placeholder written by a converter is not used, unless requested. */
static void test_placeholder(void **state) {
    static const char text[] =
        "{% for m in messages %}Human: {{ m.content }}\n\nBITNETAssistant: {% endfor %}";
    Rig r;
    QsfChatTemplate *t;
    QsfErr e = { 0 };
    char notice[300];
    (void)state;
    if (!rig_open(&r, "llama-bpe", text)) skip();
    qsf_test_expect_ok(qsf_chat_template_open(&t, r.src, r.tok, NULL, notice, sizeof notice, &e), &e);
    assert_string_equal(qsf_chat_template_name(t), "bitnet");
    assert_non_null(strstr(notice, "placeholder"));
    qsf_chat_template_close(t);
    t = open_template(&r, "model:default");
    assert_string_equal(qsf_chat_template_source(t), text);
    qsf_chat_template_close(t);
    rig_close(&r);
}

static void override(const Rig *r, const char *spec) {
    QsfErr e = { 0 };
    qsf_test_expect_ok(qsf_source_override(r->src, spec, &e), &e);
}

/* tokenizer.chat_template.NAME: by name, and in place of a missing unnamed one. */
static void test_variants(void **state) {
    static const char list[] = "model:rag\0model:default\0";
    Rig r;
    QsfErr e = { 0 };
    QsfChatTemplate *t;
    (void)state;
    if (!rig_open(&r, "llama-spm", NULL)) skip();
    override(&r, "tokenizer.chat_template.rag=str:rag {{ messages[0].content }}");
    char notice[300];
    qsf_test_expect_ok(qsf_chat_template_open(&t, r.src, r.tok, NULL, notice, sizeof notice, &e), &e);
    assert_string_equal(qsf_chat_template_source(t), "rag {{ messages[0].content }}");
    assert_non_null(strstr(notice, "using its first named one, model:rag"));
    qsf_chat_template_close(t);
    override(&r, "tokenizer.chat_template.default=str:plain");
    char *names = qsf_chat_template_variants(r.src);
    assert_memory_equal(names, list, sizeof list);
    free(names);
    static const char *const asked[][3] = { { NULL, "model", "plain" },
                                            { "model:default", "model:default", "plain" },
                                            { "model:rag", "model:rag", "rag {{ messages[0].content }}" },
                                            { "rag", "model:rag", "rag {{ messages[0].content }}" } };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        t = open_template(&r, asked[i][0]);
        assert_string_equal(qsf_chat_template_name(t), asked[i][1]);
        assert_string_equal(qsf_chat_template_source(t), asked[i][2]);
        qsf_chat_template_close(t);
    }
    assert_int_equal(qsf_chat_template_open(&t, r.src, r.tok, "model:tools", NULL, 0, &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, "model:rag, model:default");
    rig_close(&r);
}

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* Special tokens as variables: from the vocabulary, and from the configuration that contains the template. */
static void test_special_variables(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "Hi") };
    static const char source[] = "{{ bos_token }}|{{ eos_token }}|{{ unk_token }}|{{ pad_token is defined }}|"
                                 "{{ additional_special_tokens is defined }}";
    Rig r;
    QsfErr e = { 0 };
    QsfRendered out = { 0 };
    (void)state;
    if (!rig_open(&r, "llama-spm", source)) skip();
    QsfChatTemplate *t = open_template(&r, NULL);
    qsf_test_expect_ok(qsf_chat_render(t, msgs, 1, QSF_CHAT_GENERATE, &out, &e), &e);
    assert_string_equal(qsf_strbuf_str(&out.text), "<s>|</s>|<unk>|False|False");
    assert_int_equal(out.n_segs, 1); /* all of it is from the template */
    qsf_chat_template_close(t);
    override(&r, "tokenizer.ggml.padding_token_id=int:2");
    t = open_template(&r, NULL);
    qsf_test_expect_ok(qsf_chat_render(t, msgs, 1, QSF_CHAT_GENERATE, &out, &e), &e);
    assert_string_equal(qsf_strbuf_str(&out.text), "<s>|</s>|<unk>|True|False");
    qsf_chat_template_close(t);
    const char *path = qsf_test_tmp("config.json");
    write_file(path,
               "{\"eos_token\": {\"content\": \"<end>\"}, \"pad_token\": null, \"add_bos_token\": true,"
               "\"additional_special_tokens\": [\"<a>\", {\"content\": \"<b>\"}],"
               "\"chat_template\": \"{{ bos_token }}{{ eos_token }}{{ additional_special_tokens|join }}\"}");
    t = open_template(&r, path);
    qsf_test_expect_ok(qsf_chat_render(t, msgs, 1, QSF_CHAT_GENERATE, &out, &e), &e);
    assert_string_equal(qsf_strbuf_str(&out.text), "<s><end><a><b>");
    assert_int_equal(out.n_segs, 1);
    qsf_chat_template_close(t);
    remove(path);
    qsf_rendered_free(&out);
    rig_close(&r);
}

/* --- rendering --- */

static void expect_render(const char *template, const QsfMsg *msgs, size_t n, bool continue_last,
                          const char *text) {
    Rig r;
    QsfRendered out = { 0 };
    QsfErr e = { 0 };
    if (!rig_open(&r, "llama-spm", template)) skip();
    QsfChatTemplate *t = open_template(&r, NULL);
    qsf_test_expect_ok(qsf_chat_render(t, msgs, n,
                                       QSF_CHAT_GENERATE | (continue_last ? QSF_CHAT_CONTINUE : 0), &out, &e),
                       &e);
    assert_string_equal(qsf_strbuf_str(&out.text), text);
    size_t end = 0;
    for (size_t i = 0; i < out.n_segs; end += out.segs[i++].len) {
        assert_int_equal(out.segs[i].off, end);
        assert_true(i == 0 || out.segs[i].trusted != out.segs[i - 1].trusted);
    }
    assert_int_equal(end, out.text.len);
    qsf_rendered_free(&out);
    qsf_chat_template_close(t);
    rig_close(&r);
}

#define SIMPLE                                                                                        \
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt " \
    "%}<assistant>{% endif %}"
#define TRIMS                                                                                              \
    "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}</>{% endfor %}{% if add_generation_prompt " \
    "%}<assistant>{% endif %}"
/* As in Llama 2: its past turns have an additional space. */
#define SPACES                                                                                     \
    "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %} {{ " \
    "m.content }} "                                                                                \
    "{% endif %}{% endfor %}"
#define NO_SYSTEM "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" SIMPLE
#define IGNORES_SYSTEM \
    "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
#define ONLY_USERS \
    "{% for m in messages if m.role == 'user' %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"

static void test_continue(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "Hi"), MSG("assistant", " Hi Hi ") };
    static const QsfMsg empty[] = { MSG("user", "Hi"), MSG("assistant", "") };
    (void)state;
    expect_render(SIMPLE, msgs, 2, true, "<user>Hi</><assistant> Hi Hi ");
    expect_render(TRIMS, msgs, 2, true, "<user>Hi</><assistant> Hi Hi "); /* exactly as written */
    expect_render(SPACES, msgs, 2, true, "[INST] Hi [/INST] Hi Hi ");
    expect_render(SIMPLE, msgs, 2, false, "<user>Hi</><assistant> Hi Hi </><assistant>");
    expect_render(SIMPLE, msgs, 1, true, "<user>Hi</><assistant>"); /* the last message is from the user */
    expect_render(SIMPLE, empty, 2, true, "<user>Hi</><assistant>");
    expect_render(ONLY_USERS, msgs, 2, true, "<user>Hi</><assistant> Hi Hi ");
}

/* Text to be continued follows the same ids as when it was generated, so that the KV cache is reused. */
static void test_continue_ids(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "Hi"), MSG("assistant", " Hello there") };
    static const char *const names[] = { "llama2", "chatml", "mistral-v1", "vicuna", "gemma" };
    Rig r;
    QsfErr e = { 0 };
    (void)state;
    if (!rig_open(&r, "llama-spm", NULL)) skip();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        QsfIds turn = { 0 }, on = { 0 };
        QsfChatTemplate *t = open_template(&r, names[i]);
        qsf_test_expect_ok(qsf_chat_encode(t, r.tok, msgs, 1, QSF_CHAT_GENERATE, &turn, &e), &e);
        qsf_test_expect_ok(qsf_chat_encode(t, r.tok, msgs, 2, QSF_CHAT_CONTINUE, &on, &e), &e);
        assert_true(on.n > turn.n);
        assert_memory_equal(on.data, turn.data, turn.n * sizeof *on.data);
        qsf_ids_free(&turn);
        qsf_ids_free(&on);
        qsf_chat_template_close(t);
    }
    rig_close(&r);
}

static void test_system_refused(void **state) {
    static const QsfMsg msgs[] = { MSG("system", "Be kind."), MSG("user", "Hi") };
    static const QsfMsg blank[] = { MSG("system", " "), MSG("user", "Hi") };
    (void)state;
    expect_render(NO_SYSTEM, msgs, 2, false, "<user>Be kind.\n\nHi</><assistant>");
    expect_render(IGNORES_SYSTEM, msgs, 2, false, "<user>Be kind.\n\nHi</><assistant>");
    expect_render(IGNORES_SYSTEM, blank, 2, false, "<user>Hi</><assistant>");
    expect_render(SIMPLE, msgs, 2, false, "<system>Be kind.</><user>Hi</><assistant>");
}

static void test_raise(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "Hi"), MSG("user", "Ho") };
    Rig r;
    QsfRendered out = { 0 };
    QsfErr e = { 0 };
    (void)state;
    if (!rig_open(&r, "llama-spm",
                  "{% if messages|length > 1 %}{{ raise_exception('roles must alternate') }}{% endif %}x"))
        skip();
    QsfChatTemplate *t = open_template(&r, NULL);
    assert_int_equal(qsf_chat_render(t, msgs, 2, QSF_CHAT_GENERATE, &out, &e), QSF_E_RUNTIME);
    assert_non_null(
        strstr(e.msg, ".gguf: the model's chat template refuses these messages: roles must alternate"));
    qsf_rendered_free(&out);
    qsf_chat_template_close(t);
    rig_close(&r);
}

/* --- token ids --- */

/* A vocabulary and the template file of its family. */
static const struct {
    const char *vocabulary, *file;
} kinds[] = { { "llama-spm", "llama2" },      { "llama-bpe", "llama3" },      { "phi-3", "phi3" },
              { "llama-bpe", "chatml" },      { "llama-spm", "zephyr" },      { "llama-spm", "alpaca" },
              { "phi-3", "mistral" },         { "qwen2", "chatml" },          { "mistral-v1", "mistral-v1" },
              { "mistral-v3", "mistral-v3" }, { "deepseek-llm", "deepseek" }, { "gpt-2", "vicuna" } };

static QsfIds encode(const Rig *r, const QsfChatTemplate *t, const QsfMsg *msgs, size_t n,
                     bool continue_last) {
    QsfIds ids = { 0 };
    QsfErr e = { 0 };
    unsigned flags = continue_last ? QSF_CHAT_CONTINUE : QSF_CHAT_GENERATE;
    qsf_test_expect_ok(qsf_chat_encode(t, r->tok, msgs, n, flags, &ids, &e), &e);
    return ids;
}

/* Contents without special tokens: the same ids as encoding the whole text in one piece, and one BOS. */
static void test_whole_text(void **state) {
    static const QsfMsg msgs[] = { MSG("system", "Be kind,\n be short."),
                                   MSG("user", " Don't  say \xF0\x9F\x98\x80 caf\xC3\xA9"),
                                   MSG("assistant", "Hello  there\n\n"),
                                   MSG("user", "12345 <b> | [x] \xE4\xBD\xA0") };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        Rig r;
        QsfRendered text = { 0 };
        QsfErr e = { 0 };
        if (!rig_open(&r, kinds[i].vocabulary, NULL)) continue;
        QsfChatTemplate *t = open_template(&r, kinds[i].file);
        QsfIds ids = encode(&r, t, msgs, 4, false), whole = { 0 };
        qsf_test_expect_ok(qsf_chat_render(t, msgs, 4, QSF_CHAT_GENERATE, &text, &e), &e);
        size_t bos_len;
        int32_t bos = qsf_tokenizer_bos(r.tok);
        const char *bos_text = qsf_tokenizer_raw(r.tok, bos, &bos_len);
        bool has_bos = strncmp(qsf_strbuf_str(&text.text), bos_text, bos_len) == 0;
        qsf_test_expect_ok(qsf_tokenizer_encode(r.tok, qsf_strbuf_str(&text.text), text.text.len,
                                                QSF_TOK_SPECIAL | (has_bos ? 0 : QSF_TOK_BOS), &whole, &e),
                           &e);
        assert_int_equal(ids.n, whole.n);
        assert_memory_equal(ids.data, whole.data, ids.n * sizeof *ids.data);
        bool begins = has_bos || qsf_tokenizer_adds_bos(r.tok);
        assert_int_equal(ids.data[0] == bos, begins);
        assert_int_not_equal(ids.data[1], bos);
        qsf_ids_free(&ids);
        qsf_ids_free(&whole);
        qsf_rendered_free(&text);
        qsf_chat_template_close(t);
        rig_close(&r);
    }
}

static size_t count_control(const Rig *r, const QsfIds *ids) {
    size_t n = 0;
    for (size_t i = 0; i < ids->n; i++) {
        QsfTokenType type = qsf_tokenizer_type(r->tok, ids->data[i]);
        n += type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_UNKNOWN ||
             qsf_tokenizer_is_eog(r->tok, ids->data[i]);
    }
    return n;
}

static size_t count_id(const QsfIds *ids, int32_t id) {
    size_t n = 0;
    for (size_t i = 0; i < ids->n; i++) n += ids->data[i] == id;
    return n;
}

/* Is the text of this token chat markup, regardless of its type in the vocabulary? */
static bool is_structure(const Rig *r, int32_t id) {
    size_t len;
    const char *raw = qsf_tokenizer_raw(r->tok, id, &len);
    QsfTokenType type = qsf_tokenizer_type(r->tok, id);
    return type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_UNKNOWN ||
           (type == QSF_TOKEN_USER && len > 4 && memcmp(raw, "<|", 2) == 0 &&
            memcmp(raw + len - 2, "|>", 2) == 0);
}

/* Types the text of token id as the user's message, alone and twice within other text: the token may not
 * appear more often than in a conversation without it (want), and the structure may not change. With allow it
 * must appear. */
static void type_token(const Rig *r, const QsfChatTemplate *t, const QsfIds *want, int32_t id, bool within,
                       bool allow) {
    size_t len;
    const char *raw = qsf_tokenizer_raw(r->tok, id, &len);
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    if (within) qsf_strbuf_adds(&b, "so\n");
    qsf_strbuf_add(&b, raw, len);
    if (within) {
        qsf_strbuf_adds(&b, " and ");
        qsf_strbuf_add(&b, raw, len);
    }
    QsfMsg msg = { .role = "user", .content = qsf_strbuf_str(&b), .len = b.len };
    QsfIds ids = { 0 };
    unsigned flags = QSF_CHAT_GENERATE | (allow ? QSF_CHAT_ALLOW_SPECIAL : 0);
    qsf_test_expect_ok(qsf_chat_encode(t, r->tok, &msg, 1, flags, &ids, &e), &e);
    bool same = count_control(r, &ids) == count_control(r, want) && count_id(&ids, id) == count_id(want, id);
    bool more = count_id(&ids, id) > count_id(want, id);
    if (allow ? !more : !same)
        fail_msg("'%.*s' %s a token", (int)len, raw, allow ? "did not become" : "became");
    qsf_ids_free(&ids);
    qsf_strbuf_free(&b);
}

/* Every special token of several vocabularies, typed by the user. */
static void test_typed_tokens(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        Rig r;
        size_t tried = 0;
        if (!rig_open(&r, kinds[i].vocabulary, NULL)) continue;
        QsfChatTemplate *t = open_template(&r, kinds[i].file);
        const QsfMsg plain = MSG("user", "Hi");
        QsfIds want = encode(&r, t, &plain, 1, false);
        for (uint32_t id = 0; id < qsf_tokenizer_n_vocab(r.tok); id++) {
            if (!is_structure(&r, (int32_t)id)) continue;
            type_token(&r, t, &want, (int32_t)id, false, false);
            type_token(&r, t, &want, (int32_t)id, true, false);
            if (tried % 16 == 0) type_token(&r, t, &want, (int32_t)id, true, true);
            tried++;
        }
        printf("%s with %s: %zu special tokens typed\n", kinds[i].vocabulary, kinds[i].file, tried);
        assert_true(tried > 0);
        qsf_ids_free(&want);
        qsf_chat_template_close(t);
        rig_close(&r);
    }
}

/* --allow-special: contents are treated like the template's own text, and there is only one BOS. */
static void test_allow_special(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "<s>[INST] Hi </s>") };
    Rig r;
    QsfErr e = { 0 };
    (void)state;
    if (!rig_open(&r, "llama-spm", NULL)) skip();
    for (int i = 0; i < 2; i++) {
        QsfIds ids = { 0 };
        unsigned flags = QSF_CHAT_GENERATE | (i ? QSF_CHAT_ALLOW_SPECIAL : 0);
        qsf_test_expect_ok(qsf_chat_encode(NULL, r.tok, msgs, 1, flags, &ids, &e), &e);
        assert_int_equal(count_id(&ids, qsf_tokenizer_bos(r.tok)), 1);
        assert_int_equal(count_id(&ids, qsf_tokenizer_eos(r.tok)), i);
        qsf_ids_free(&ids);
    }
    rig_close(&r);
}

/* A displayed prompt: tokens of the template are marked, the same text in a message is not. */
static void test_show(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "Hi <|eot_id|> \xF0\x9F\x98\x80 caf\xC3\xA9") };
    Rig r;
    QsfErr e = { 0 };
    QsfStrbuf b = QSF_STRBUF_INIT;
    size_t special;
    (void)state;
    if (!rig_open(&r, "llama-bpe", NULL)) skip();
    QsfChatTemplate *t = open_template(&r, "llama3");
    QsfIds ids = encode(&r, t, msgs, 1, false);
    qsf_test_expect_ok(qsf_chat_show(r.tok, &ids, &b, &special, &e), &e);
    assert_string_equal(qsf_strbuf_str(&b),
                        "\u27e6<|begin_of_text|>\u27e7\u27e6<|start_header_id|>\u27e7user"
                        "\u27e6<|end_header_id|>\u27e7\n\nHi <|eot_id|> \xF0\x9F\x98\x80 caf\xC3\xA9"
                        "\u27e6<|eot_id|>\u27e7\u27e6<|start_header_id|>\u27e7assistant"
                        "\u27e6<|end_header_id|>\u27e7\n\n");
    assert_int_equal(special, 6);
    qsf_strbuf_free(&b);
    qsf_ids_free(&ids);
    qsf_chat_template_close(t);
    rig_close(&r);
}

/* 10 MB in one message: more than a template may generate by itself, but not more than it may copy from a
 * message. */
static void test_big_message(void **state) {
    size_t len = (size_t)10 << 20;
    char *big = malloc(len);
    Rig r;
    QsfErr e = { 0 };
    QsfRendered out = { 0 };
    (void)state;
    assert_non_null(big);
    memset(big, 'x', len);
    big[len / 2] = '\0';
    const QsfMsg msgs[] = { { .role = "user", .content = big, .len = len } };
    if (!rig_open(&r, "llama-spm", NULL)) {
        free(big);
        skip();
    }
    QsfChatTemplate *t = open_template(&r, "llama3");
    qsf_test_expect_ok(qsf_chat_render(t, msgs, 1, QSF_CHAT_GENERATE, &out, &e), &e);
    assert_true(out.text.len > len);
    assert_non_null(memmem(out.text.data, out.text.len, big + len / 2 - 100, 200));
    qsf_rendered_free(&out);
    qsf_chat_template_close(t);
    rig_close(&r);
    free(big);
}

/* Halves of a token on both sides of a boundary do not become one; a role cannot inject one. */
static void test_borders(void **state) {
    static const QsfMsg half[] = { MSG("user", "_start|>"), MSG("user", "<|eot") },
                        role[] = { MSG("<|eot_id|>", "x") };
    Rig r;
    (void)state;
    if (!rig_open(&r, "llama-bpe", "{% for m in messages %}<|im{{ m.content }}_id|>{{ m.role }}{% endfor %}"))
        skip();
    QsfChatTemplate *t = open_template(&r, NULL);
    QsfIds ids = encode(&r, t, half, 2, false);
    assert_int_equal(count_control(&r, &ids), 1); /* BOS */
    qsf_ids_free(&ids);
    ids = encode(&r, t, role, 1, false);
    assert_int_equal(count_control(&r, &ids), 1);
    qsf_ids_free(&ids);
    qsf_chat_template_close(t);
    rig_close(&r);
}

/* The ids of a longer conversation start with those of its beginning (the KV cache remains valid). */
static void test_prefix(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "Hi"), MSG("assistant", "Hello there"), MSG("user", "Bye") };
    Rig r;
    (void)state;
    if (!rig_open(&r, "llama-bpe", NULL)) skip();
    QsfChatTemplate *t = open_template(&r, "llama3");
    QsfIds open = encode(&r, t, msgs, 2, true), all = encode(&r, t, msgs, 3, false);
    assert_true(open.n < all.n);
    assert_memory_equal(open.data, all.data, open.n * sizeof *open.data);
    qsf_ids_free(&open);
    qsf_ids_free(&all);
    qsf_chat_template_close(t);
    rig_close(&r);
}

/* An answer continues what it answers, the next message begins a line. */
static void test_without_template(void **state) {
    static const QsfMsg msgs[] = { MSG("user", "Once <s>"), MSG("assistant", "upon"), MSG("user", "A time") };
    Rig r;
    QsfErr e = { 0 };
    QsfIds want = { 0 };
    (void)state;
    if (!rig_open(&r, "llama-spm", NULL)) skip();
    QsfIds ids = encode(&r, NULL, msgs, 3, false);
    qsf_test_expect_ok(qsf_tokenizer_encode(r.tok, "Once <s>upon\nA time", 19, QSF_TOK_BOS, &want, &e), &e);
    assert_int_equal(ids.n, want.n);
    assert_memory_equal(ids.data, want.data, ids.n * sizeof *ids.data);
    assert_int_equal(count_control(&r, &ids), 1);
    qsf_ids_free(&ids);
    qsf_ids_free(&want);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_model_template),
        cmocka_unit_test(test_replacement),
        cmocka_unit_test(test_own_vocabularies),
        cmocka_unit_test(test_placeholder),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_special_variables),
        cmocka_unit_test(test_continue),
        cmocka_unit_test(test_continue_ids),
        cmocka_unit_test(test_system_refused),
        cmocka_unit_test(test_raise),
        cmocka_unit_test(test_whole_text),
        cmocka_unit_test(test_typed_tokens),
        cmocka_unit_test(test_allow_special),
        cmocka_unit_test(test_show),
        cmocka_unit_test(test_big_message),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_without_template),
    };
    const char *dir = getenv("QSF_SRCDIR");
    setenv("QSF_DATADIR", dir == NULL ? "." : dir, 0);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1); /* ignores the templates of the user who runs this */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
