/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory failures while a vocabulary is read (GGUF, tokenizer.json, tokenizer.model), text is encoded with it
 * and a chat template is compiled, tried and rendered (tests/harness/oom.h). */
#include "tests/harness/oom.h"

#include "src/chat/chat.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/tiny_vocab.h"

#if OWN_MALLOC

#define SP "\xE2\x96\x81"

static char path[256];
static const char *template; /* replaces the one of the file; NULL: none */

/* The result of a run. */
typedef struct Run {
    QsfLedger ledger;
    QsfSource *src;
    QsfTokenizer *tok;
    QsfChatTemplate *chat;
    QsfIds ids;
    QsfStrbuf shown;
    char notice[300];
    int32_t end;
} Run;

static int open_source(Run *r, QsfErr *err) {
    QsfStrbuf spec = QSF_STRBUF_INIT;
    int rc = qsf_source_open(&r->src, path, &r->ledger, err);
    if (rc != QSF_OK || template == NULL) return rc;
    qsf_strbuf_addf(&spec, "tokenizer.chat_template=str:%s", template);
    rc = qsf_strbuf_ok(&spec) ? qsf_source_override(r->src, qsf_strbuf_str(&spec), err)
                              : qsf_err_memory(err, "the test");
    qsf_strbuf_free(&spec);
    if (rc != QSF_OK) qsf_source_close(r->src);
    if (rc != QSF_OK) r->src = NULL;
    return rc;
}

static int open_tokenizer(Run *r, QsfErr *err) {
    return qsf_tokenizer_open(&r->tok, r->src, &r->ledger, err);
}

static int encode(Run *r, QsfErr *err) {
    static const char text[] = "the cat's 1234 hats,\n  tea ab";
    r->ids.n = 0;
    return qsf_tokenizer_encode(r->tok, text, strlen(text), 0, &r->ids, err);
}

static int open_template(Run *r, QsfErr *err) {
    return qsf_chat_template_open(&r->chat, r->src, r->tok, NULL, r->notice, sizeof r->notice, err);
}

/* An unknown name: the error lists all known names, or reports that memory was missing. */
static int no_template(Run *r, QsfErr *err) {
    QsfChatTemplate *none = NULL;
    int rc = qsf_chat_template_open(&none, r->src, r->tok, "nonsense", NULL, 0, err);
    if (rc != QSF_E_USAGE) return rc;
    if (none != NULL || strstr(err->msg, "one of: alpaca, bitnet,") == NULL ||
        strstr(err->msg, ", zephyr") == NULL)
        fail_msg("names are missing: %s", err->msg);
    return QSF_OK;
}

static int find_end(Run *r, QsfErr *err) { return qsf_chat_turn_end(r->chat, r->tok, &r->end, err); }

static int render(Run *r, QsfErr *err) {
    static const QsfMsg msgs[] = { { .role = "system", .content = "be <kind>", .len = 9 },
                                   { .role = "user", .content = "the hat", .len = 7 },
                                   { .role = "assistant", .content = "a cat", .len = 5 } };
    r->ids.n = 0;
    qsf_strbuf_clear(&r->shown);
    int rc = qsf_chat_encode(r->chat, r->tok, msgs, 3, QSF_CHAT_CONTINUE, &r->ids, err);
    return rc == QSF_OK ? qsf_chat_show(r->tok, &r->ids, &r->shown, NULL, err) : rc;
}

/* Runs a step, and repeats it if it fails: memory fails only once. */
static bool twice(Outcome *o, int number, int (*step)(Run *, QsfErr *), Run *r) {
    for (int i = 0; i < 2; i++) {
        QsfErr err = { 0 };
        if (step(r, &err) == QSF_OK) return true;
        failed_step(o, number, err.msg);
        if (!err.memory) fail_msg("step %d: not reported as lack of memory: %s", number, err.msg);
    }
    return false;
}

static void tell_ids(Outcome *o, const QsfIds *ids) {
    char number[16];
    for (size_t i = 0; i < ids->n; i++) {
        snprintf(number, sizeof number, "%d ", ids->data[i]);
        add_text(o, number);
    }
}

static void run_text(Outcome *o) {
    Run r = { .shown = QSF_STRBUF_INIT };
    qsf_ledger_init(&r.ledger, 0);
    bool ok = twice(o, 1, open_source, &r) && twice(o, 2, open_tokenizer, &r) && twice(o, 3, encode, &r);
    if (ok) tell_ids(o, &r.ids);
    ok = ok && twice(o, 4, open_template, &r) && twice(o, 5, find_end, &r) && twice(o, 6, render, &r) &&
         twice(o, 7, no_template, &r);
    if (ok) tell_ids(o, &r.ids);
    if (ok) add_text(o, qsf_strbuf_str(&r.shown));
    if (ok) add_text(o, r.notice); /* if another template were used instead, there would be a message */
    qsf_strbuf_free(&r.shown);
    qsf_ids_free(&r.ids);
    qsf_chat_template_close(r.chat);
    qsf_tokenizer_close(r.tok);
    qsf_source_close(r.src);
    assert_int_equal(r.ledger.total, 0);
    qsf_ledger_destroy(&r.ledger);
}

static void sweeps(void) {
    sweep(run_text, ALLOCATION, 10, 20000);
    sweep(run_text, ALLOCATIONS_FROM_THEN_ON, 10, 20000);
    sweep(run_text, MAPPING, 0, 2000);
}

static void sweep_file(const char *bytes, size_t n) {
    assert_int_equal(qsf_test_write_file(path, bytes, n), 0);
    sweeps();
}

static void write_bpe(void) {
    QsfTestVocab *v = calloc(1, sizeof *v);
    assert_non_null(v);
    qsf_tv_bpe(v);
    static const char *const made[] = { "th", "the", "at" };
    static const char *const merges[] = { "t h", "th e", "a t" };
    for (size_t i = 0; i < 3; i++) {
        qsf_tv_add(v, made[i], 0, QSF_TOKEN_NORMAL);
        qsf_tv_merge(v, merges[i]);
    }
    qsf_tv_add(v, "<end>", 0, QSF_TOKEN_CONTROL);
    qsf_gb_str(&v->gb, "general.architecture", "llama");
    qsf_gb_str(&v->gb, "tokenizer.ggml.model", "gpt2");
    qsf_gb_strings(&v->gb, "tokenizer.ggml.tokens", v->tokens, v->n);
    qsf_gb_array(&v->gb, "tokenizer.ggml.token_type", QSF_META_I32, v->n, v->types, v->n * sizeof *v->types);
    qsf_gb_strings(&v->gb, "tokenizer.ggml.merges", v->merges, v->n_merges);
    assert_int_equal(qsf_gb_write(&v->gb, path), 0);
    qsf_tv_free(v);
    free(v);
}

static void bytes_and_templates(void **state) {
    static const char *const templates[] = {
        "{% for m in messages %}{{ m['role'] + ': ' + m['content'] }}<end>{% endfor %}",
        /* No system role: system messages are added to those of the user. */
        "{% if messages[0].role == 'system' %}{{ raise_exception('none') }}{% endif %}{% macro say(m) -%}"
        "{{ m.content | trim | upper }}<end>{%- endmacro %}{% set ns = namespace(n=0) %}{% for m in "
        "messages %}"
        "{% set ns.n = ns.n + 1 %}[{{ ns.n }}{{ {'r': m.role} | tojson }}]{{ say(m) }}{% endfor %}",
        "{{ messages | unheard_of }}[INST]", /* a template file is used instead */
    };
    (void)state;
    write_bpe();
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        template = templates[i];
        sweeps();
    }
    template = NULL;
}

static void vocabulary_of_bytes(void **state) {
    static const char json[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"t\":0,\"h\":1,\"e\":2,\"\\u0120\":3,\"th\":4,\"1\":6,"
        "\"2\":7,\"12\":8,\"a\":9},"
        "\"merges\":[\"t "
        "h\",[\"1\",\"2\"]]},\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\","
        "\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":false},{\"type\":\"Split\","
        "\"pattern\":{\"Regex\":\"[ab]+\"},"
        "\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
        "]},\"added_tokens\":["
        "{\"id\":20,\"content\":\"<s>\",\"special\":true}],"
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":["
        "{\"SpecialToken\":{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}]}}";
    (void)state;
    sweep_file(json, sizeof json - 1);
}

static void vocabulary_of_characters(void **state) {
    static const char json[] = "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,"
                               "\"vocab\":{\"<unk>\":0,\"" SP "\":1,\"a\":2,"
                               "\"t\":3,\"" SP "t\":4,\"at\":5,\"<0x2C>\":6},\"merges\":[[\"" SP
                               "\",\"t\"],\"a t\"]},\"normalizer\":{\"type\":\"Sequence\","
                               "\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" SP
                               "\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
                               "\"content\":\"" SP "\"}]}}";
    (void)state;
    sweep_file(json, sizeof json - 1);
}

static void vocabulary_by_likelihood(void **state) {
    static const char json[] =
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0.0],[\"" SP
        "\",-2.5],[\"a\",-1],[\"t\",-1e0],"
        "[\"at\",-1.5]]},\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" SP
        "\",\"add_prefix_space\":true}}";
    (void)state;
    sweep_file(json, sizeof json - 1);
}

/* tokenizer.model: three pieces, the model type (2: BPE), no space prefix. */
static void vocabulary_of_sentencepiece(void **state) {
    static const char proto[] = "\x0A\x0E\x0A\x05<unk>\x15\0\0\0\0\x18\x02"
                                "\x0A\x0C\x0A\x03" SP "\x15\0\0\x80\xBF\x18\x01"
                                "\x0A\x0A\x0A\x01"
                                "a\x15\0\0\0\xC0\x18\x01"
                                "\x12\x02\x18\x02"
                                "\x1A\x02\x20";
    (void)state;
    sweep_file(proto, sizeof proto);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_templates),         cmocka_unit_test(vocabulary_of_bytes),
        cmocka_unit_test(vocabulary_of_characters),    cmocka_unit_test(vocabulary_by_likelihood),
        cmocka_unit_test(vocabulary_of_sentencepiece),
    };
    const char *dir = getenv("QSF_SRCDIR");
    setenv("QSF_DATADIR", dir == NULL ? "." : dir, 0);
    find_libc();
    snprintf(path, sizeof path, "%s", qsf_test_tmp("oom-text"));
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return rc;
}

#endif
