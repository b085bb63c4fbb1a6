/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests of /v1/responses: what they become is what /v1/chat/completions reads, within the memory that is
 * charged for it; and the events of their answers. */
#include "serve/responses.h"

#include "src/base/json.h"
#include "tests/harness/qsf_test.h"

/* The body without its NUL, so that a sanitizer notices reads past its end. */
static bool translate(const char *text, size_t len, QsfStrbuf *out, ServeError *e) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ServeMemory memory = { .used = len, .limit = 3 * len + 512 };
    size_t n = len, cap = len;
    char *body = malloc(len > 0 ? len : 1);
    assert_non_null(body);
    memcpy(body, text, len);
    const bool ok = serve_responses_replace(&body, &n, &cap, &memory, &lock, e);
    assert_true(ok == (e->status == 0));
    assert_int_equal(memory.used, cap);
    if (n > cap) fail_msg("%zu bytes of %zu: %s", n, len, text);
    if (ok) qsf_strbuf_add(out, body, n);
    free(body);
    return ok;
}

static void becomes(const char *text, const char *want) {
    QsfStrbuf out = QSF_STRBUF_INIT;
    ServeError e = { 0 };
    if (!translate(text, strlen(text), &out, &e)) fail_msg("%s: %s", text, e.message);
    assert_string_equal(qsf_strbuf_str(&out), want);
    qsf_strbuf_free(&out);
}

#define USER "{\"role\":\"user\",\"content\":\"a\"}"

static void test_input(void **state) {
    (void)state;
    becomes("{\"input\":\"a\"}", "{\"messages\":[" USER "]}");
    becomes("{\"instructions\":\"b\\n\", \"input\":[" USER "], \"model\": \"m\", \"stream\":true}",
            "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"system\",\"content\":\"b\\n\"}," USER
            "]}");
    /* Items of an answer are one message; calls without anything before them, too. */
    becomes("{\"input\":[" USER ",{\"type\":\"reasoning\",\"id\":\"r\",\"summary\":[],\"content\":["
            "{\"type\":\"reasoning_text\",\"text\":\"x\\\"\"},{\"type\":\"reasoning_text\",\"text\":\"y\"}]},"
            "{\"type\":\"message\",\"id\":\"m\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":["
            "{\"type\":\"output_text\",\"text\":\"t\"}]},"
            "{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"},"
            "{\"type\":\"function_call\",\"call_id\":\"2\",\"name\":\"g\",\"arguments\":\"{}\"},"
            "{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":\"o\"}]}",
            "{\"messages\":[" USER ",{\"role\":\"assistant\",\"reasoning_content\":\"x\\\"y\",\"content\":["
            "{\"type\":\"output_text\",\"text\":\"t\"}],\"tool_calls\":["
            "{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
            "{\"id\":\"2\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]},"
            "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"o\"}]}");
    becomes("{\"input\":[{\"type\":\"reasoning\",\"content\":[{\"text\":\"x\"}]}," USER "]}",
            "{\"messages\":[{\"role\":\"assistant\",\"reasoning_content\":\"x\",\"content\":\"\"}," USER
            "]}");
    becomes("{\"input\":[{\"type\":\"reasoning\",\"summary\":[]}," USER "]}", "{\"messages\":[" USER "]}");
    becomes("{\"input\":[{\"type\":\"function_call\",\"call_id\":\"\",\"name\":\"\",\"arguments\":\"\"}]}",
            "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"\",\"type\":\"function\","
            "\"function\":{\"name\":\"\",\"arguments\":\"\"}}]}]}");
}

static void test_fields(void **state) {
    (void)state;
    becomes("{\"input\":\"a\",\"max_output_tokens\":5,\"temperature\":0,\"truncation\":\"disabled\","
            "\"background\":false,\"previous_response_id\":null,\"stream_options\":{},\"store\":true}",
            "{\"max_completion_tokens\":5,\"temperature\":0,\"store\":true,\"messages\":[" USER "]}");
    becomes("{\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"strict\":true,\"parameters\":{\"a\":1}},"
            "{\"type\":\"function\",\"name\":\"g\",\"description\":null}],"
            "\"tool_choice\":{\"name\":\"f\",\"type\":\"function\"},\"input\":\"a\"}",
            "{\"messages\":[" USER "],\"tools\":["
            "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"a\":1},\"strict\":true}},"
            "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}],"
            "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}}");
    becomes("{\"input\":\"a\",\"text\":{\"verbosity\":\"low\",\"format\":{\"type\":\"json_schema\","
            "\"name\":\"n\",\"strict\":true,\"schema\":{}}},\"reasoning\":{\"effort\":\"low\",\"summary\":"
            "\"auto\"},\"include\":[\"message.output_text.logprobs\"],\"top_logprobs\":2}",
            "{\"messages\":[" USER "],\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
            "{\"schema\":{}}},\"reasoning_effort\":\"low\",\"top_logprobs\":2,\"logprobs\":true}");
    becomes("{\"input\":\"a\",\"text\":{\"format\":{\"type\":\"text\"}},\"tool_choice\":\"none\"}",
            "{\"messages\":[" USER "],\"tool_choice\":\"none\",\"response_format\":{\"type\":\"text\"}}");
}

static void test_refused(void **state) {
    static const struct {
        const char *text, *word;
    } rows[] = {
        { "{}", "input is missing" },
        { "[]", "not a JSON object" },
        { "", "empty" },
        { "{\"input\":1}", "input: expected a string" },
        { "{\"input\":[1]}", "input: expected an object" },
        { "{\"input\":[{\"role\":\"user\"}]}", "role and content" },
        { "{\"input\":[{\"type\":\"item_reference\",\"id\":\"x\"}]}", "item_reference" },
        { "{\"input\":[{\"type\":\"message\",\"role\":\"user\",\"content\":\"\",\"odd\":1}]}", "\"odd\"" },
        { "{\"input\":[{\"role\":\"user\",\"content\":\"\",\"role\":\"user\"}]}", "\"role\" occurs twice" },
        { "{\"input\":\"a\",\"reasoning\":{\"effort\":\"low\",\"effort\":\"low\"}}",
          "\"effort\" occurs twice" },
        { "{\"input\":[{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":1}]}", "call_id, name" },
        { "{\"input\":[{\"type\":\"function_call_output\",\"call_id\":\"1\"}]}", "call_id and output" },
        { "{\"input\":\"a\",\"input\":\"b\"}", "input: the field occurs twice" },
        { "{\"input\":\"a\",\"previous_response_id\":\"r\"}", "previous_response_id: this server keeps no" },
        { "{\"input\":\"a\",\"background\":true}", "background: " },
        { "{\"input\":\"a\",\"truncation\":\"auto\"}", "truncation: only disabled" },
        { "{\"input\":\"a\",\"messages\":[]}", "\"messages\" is not one of /v1/responses" },
        { "{\"input\":\"a\",\"include\":[\"x\"]}", "include: \"x\" is not supported" },
        { "{\"input\":\"a\",\"tools\":[{\"type\":\"web_search\",\"search_context_size\":\"low\"}]}",
          "tools: only tools of the type function" },
        { "{\"input\":\"a\",\"tools\":[{\"type\":\"function\",\"function\":{}}]}", "\"function\"" },
        { "{\"input\":\"a\",\"tools\":[{\"type\":\"function\"}]}", "tools: the name of a function" },
        { "{\"input\":\"a\",\"text\":{\"format\":{}}}", "text.format: the type is missing" },
        { "{\"input\":\"a\",\"instructions\":[]}", "instructions: expected a string" },
        { "{\"input\":\"a\"} x", "not JSON" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QsfStrbuf out = QSF_STRBUF_INIT;
        ServeError e = { 0 };
        const bool ok = translate(rows[i].text, strlen(rows[i].text), &out, &e);
        if (ok || e.status != 400 || strstr(e.message, rows[i].word) == NULL)
            fail_msg("%s: %s", rows[i].text, e.message);
        qsf_strbuf_free(&out);
    }
}

/* A part of a body is an error, never more. */
static void test_cut(void **state) {
    static const char text[] =
        "{\"input\":[{\"type\":\"reasoning\",\"content\":[{\"text\":\"x\"}]},{\"role\":\"assistant\","
        "\"content\":\"t\"}],\"tools\":[{\"type\":\"function\",\"name\":\"f\"}],\"include\":[]}";
    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++) {
        QsfStrbuf out = QSF_STRBUF_INIT;
        ServeError e = { 0 };
        assert_false(translate(text, n, &out, &e));
        qsf_strbuf_free(&out);
    }
}

static void renamed(const char *message, const char *param, const char *want, const char *want_param) {
    ServeError e = { 0 };
    serve_error_set(&e, 400, NULL, param, "%s", message);
    serve_responses_rename(&e);
    assert_string_equal(e.message, want);
    assert_string_equal(e.param, want_param);
}

static void test_names_in_errors(void **state) {
    (void)state;
    renamed("messages[3].content: odd", "messages[3].content", "input.content: odd", "input.content");
    renamed("max_completion_tokens: odd", "max_completion_tokens", "max_output_tokens: odd",
            "max_output_tokens");
    renamed("response_format: #/a: odd", "response_format", "text.format: #/a: odd", "text.format");
    renamed("response_format: json_schema is missing", "response_format", "text.format: schema is missing",
            "text.format");
    renamed("the body is not JSON: byte 9: expected odd", "", "the body is not JSON: expected odd", "");
    renamed("messagesx: odd", "top_k", "messagesx: odd", "top_k");
}

/* ---- events */

/* Every event has a name, its type and its number. Appends the types of all, and the texts of deltas. */
static void read_events(const QsfStrbuf *b, QsfStrbuf *types, QsfStrbuf *deltas) {
    int64_t n = 0;
    for (const char *at = qsf_strbuf_str(b), *stop; *at != '\0'; at = stop + 2, n++) {
        QsfErr err = { 0 };
        stop = strstr(at, "\n\n");
        assert_non_null(stop);
        assert_memory_equal(at, "event: response.", 16);
        const char *data = strstr(at, "\ndata: ");
        QsfJson *j = qsf_json_parse(data + 7, (size_t)(stop - data) - 7, &err);
        const char *type = qsf_json_string(qsf_json_get(j, "type"), NULL);
        const char *delta = qsf_json_string(qsf_json_get(j, "delta"), NULL);
        assert_non_null(type);
        assert_memory_equal(at + 7, type, strlen(type));
        assert_int_equal(qsf_json_int(qsf_json_get(j, "sequence_number"), -1), n);
        qsf_strbuf_addf(types, "%s ", type + 9);
        if (delta != NULL) qsf_strbuf_addf(deltas, "%s|", delta);
        qsf_json_free(j);
    }
}

static ServeJob *begin(ServeMemory *memory, bool stream) {
    ServeRequest r = { .chat = true, .stream = stream };
    ServeJob *job = serve_job_new(&r, NULL, 0, memory);
    assert_non_null(job);
    job->state = SERVE_RUNNING;
    job->head = (ServeHead){ .chat = true, .responses = true, .tool_choice = "auto", .id = 1, .model = "m" };
    return job;
}

static void add(ServeJob *job, QsfStrbuf *to, const char *text) {
    qsf_strbuf_adds(to, text);
    job->shown = job->text.len;
    assert_true(serve_job_charge(job));
}

static void add_calls(ServeJob *job) {
    for (int i = 0; i < 2; i++)
        qsf_strbuf_addf(&job->calls,
                        "{\"index\": %d, \"id\": \"c%d\", \"type\": \"function\", \"function\": {\"name\": "
                        "\"f\", \"arguments\": \"{\\\"a\\\": %d}\"}}, ",
                        i, i, i);
}

static void take_all(ServeJob *job, QsfStrbuf *out) {
    char buf[100];
    for (long n; (n = serve_job_read(job, buf, sizeof buf)) > 0;) qsf_strbuf_add(out, buf, (size_t)n);
}

#define OPEN  "output_item.added content_part.added "
#define CLOSE "content_part.done output_item.done "
#define CALLED \
    "output_item.added function_call_arguments.delta function_call_arguments.done output_item.done "

static void check_events(ServeJob *job, QsfStrbuf *out, const char *types, const char *deltas) {
    QsfStrbuf got = QSF_STRBUF_INIT, texts = QSF_STRBUF_INIT;
    take_all(job, out);
    read_events(out, &got, &texts);
    assert_string_equal(qsf_strbuf_str(&got), types);
    assert_string_equal(qsf_strbuf_str(&texts), deltas);
    qsf_strbuf_free(&got);
    qsf_strbuf_free(&texts);
    qsf_strbuf_free(out);
    serve_job_release(job);
}

static void test_events(void **state) {
    ServeMemory memory = { .limit = 1 << 20 };
    QsfStrbuf out = QSF_STRBUF_INIT;
    (void)state;
    ServeJob *job = begin(&memory, true);
    add(job, &job->plain, "why");
    take_all(job, &out);
    add(job, &job->text, "a\"");
    take_all(job, &out);
    add(job, &job->text, "b");
    add_calls(job);
    job->state = SERVE_ENDED;
    job->end = (ServeEnd){ .finish = "tool_calls" };
    check_events(job, &out,
                 "created in_progress " OPEN "reasoning_text.delta reasoning_text.done " CLOSE OPEN
                 "output_text.delta output_text.delta output_text.done " CLOSE CALLED CALLED "completed ",
                 "why|a\"|b|{\"a\": 0}|{\"a\": 1}|");
    job = begin(&memory, true); /* nothing was said */
    job->state = SERVE_ENDED;
    job->end = (ServeEnd){ .finish = "length" };
    check_events(job, &out, "created in_progress " OPEN "output_text.done " CLOSE "incomplete ", "");
    job = begin(&memory, true);
    add(job, &job->text, "a");
    take_all(job, &out);
    job->state = SERVE_ENDED;
    serve_error_set(&job->error, 503, "stopping", NULL, "the server is stopping");
    check_events(job, &out, "created in_progress " OPEN "output_text.delta failed ", "a|");
    assert_int_equal(memory.used, 0);
}

/* An event that does not fit is not sent: the stream ends with an error, and nothing follows. */
static void test_too_large(void **state) {
    ServeMemory memory = { .limit = 128 << 10 };
    QsfStrbuf out = QSF_STRBUF_INIT;
    (void)state;
    for (int ended = 0; ended < 2; ended++) {
        ServeJob *job = begin(&memory, true);
        add(job, &job->text, "a");
        for (int i = 0; i < 7500; i++) qsf_strbuf_adds(&job->logprobs[0], "{}, ");
        if (ended) take_all(job, &out);
        if (!ended) /* while it is written */
            for (int i = 0; i < 16000; i++) qsf_strbuf_adds(&job->logprobs[0], "{}, ");
        job->state = ended ? SERVE_ENDED : SERVE_RUNNING;
        job->end = (ServeEnd){ .finish = "stop" };
        take_all(job, &out);
        assert_string_equal(job->error.code, "answer_too_large");
        assert_non_null(strstr(qsf_strbuf_str(&out), "\"answer_too_large\""));
        job->state = SERVE_RUNNING;
        add(job, &job->text, "b");
        check_events(job, &out,
                     ended ? "created in_progress " OPEN "output_text.delta failed "
                           : "created in_progress failed ",
                     ended ? "a|" : "");
        assert_int_equal(memory.used, 0);
    }
}

static void test_whole(void **state) {
    ServeMemory memory = { .limit = 1 << 20 };
    QsfStrbuf out = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    (void)state;
    ServeJob *job = begin(&memory, false);
    add(job, &job->plain, "why");
    add_calls(job);
    job->state = SERVE_ENDED;
    job->end = (ServeEnd){ .finish = "tool_calls", .prompt_tokens = 3, .cached_tokens = 1, .tokens = 4 };
    serve_job_whole(job, &out);
    QsfJson *j = qsf_json_parse(qsf_strbuf_str(&out), out.len, &err);
    const QsfJson *output = qsf_json_get(j, "output"), *usage = qsf_json_get(j, "usage");
    assert_int_equal(qsf_json_size(output), 3); /* the reasoning and two calls, no message */
    assert_string_equal(qsf_json_string(qsf_json_get(qsf_json_at(output, 2), "call_id"), NULL), "c1");
    assert_string_equal(qsf_json_string(qsf_json_get(j, "status"), NULL), "completed");
    assert_int_equal(qsf_json_int(qsf_json_get(usage, "total_tokens"), 0), 7);
    qsf_json_free(j);
    qsf_strbuf_free(&out);
    serve_job_release(job);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input),   cmocka_unit_test(test_fields),
        cmocka_unit_test(test_cut),     cmocka_unit_test(test_names_in_errors),
        cmocka_unit_test(test_events),  cmocka_unit_test(test_whole),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
