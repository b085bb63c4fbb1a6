/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is sent of an answer: events of a stream in pieces of any size, whole answers, errors; and the memory
 * that they are charged for. */
#include "serve/job.h"

#include "src/base/json.h"
#include "tests/harness/qsf_test.h"

static ServeJob *begin(ServeMemory *memory, bool stream) {
    ServeRequest r = { .chat = true, .stream = stream, .usage = stream };
    ServeJob *job = serve_job_new(&r, NULL, 0, memory);
    assert_non_null(job);
    job->state = SERVE_RUNNING;
    job->head = (ServeHead){ .chat = true, .id = 1, .created = 2, .model = "m\"" };
    return job;
}

static void write_text(ServeJob *job, const char *text) {
    qsf_strbuf_adds(&job->text, text);
    job->shown = job->text.len;
    assert_true(serve_job_charge(job));
}

static void end(ServeJob *job) {
    job->state = SERVE_ENDED;
    job->end = (ServeEnd){ .finish = "stop", .prompt_tokens = 3, .cached_tokens = 1, .tokens = 4, .seed = 5 };
}

/* Appends what there is, in pieces; true: that was all. */
static bool read_all(ServeJob *job, size_t piece, QsfStrbuf *out) {
    char buf[4096];
    for (;;) {
        const long n = serve_job_read(job, buf, piece);
        if (n <= 0) return n < 0;
        qsf_strbuf_add(out, buf, (size_t)n);
    }
}

/* Adds the contents of the deltas of all events to text; returns their number without [DONE]. */
static size_t read_events(const QsfStrbuf *b, QsfStrbuf *text) {
    size_t n = 0;
    for (const char *at = qsf_strbuf_str(b), *stop; *at != '\0'; at = stop + 2) {
        QsfErr e = { 0 };
        stop = strstr(at, "\n\n");
        assert_non_null(stop);
        assert_memory_equal(at, "data: ", 6);
        assert_null(memchr(at, '\n', (size_t)(stop - at)));
        if (strncmp(at, "data: [DONE]", 12) == 0) {
            assert_string_equal(stop, "\n\n");
            break;
        }
        QsfJson *j = qsf_json_parse(at + 6, (size_t)(stop - at) - 6, &e);
        assert_non_null(j);
        const QsfJson *choice = qsf_json_at(qsf_json_get(j, "choices"), 0);
        const char *s = qsf_json_string(qsf_json_get(qsf_json_get(choice, "delta"), "content"), NULL);
        if (s != NULL) qsf_strbuf_adds(text, s);
        qsf_json_free(j);
        n++;
    }
    return n;
}

/* Of two answers the first one is kept for the client, whatever was sent of it; the sums count both. */
static void test_two(void **state) {
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        ServeMemory memory = { .limit = 1 << 20 };
        ServeJob *job = begin(&memory, stream);
        QsfStrbuf out = QSF_STRBUF_INIT;
        job->request.n = 2;
        write_text(job, "one ");
        if (stream) assert_false(read_all(job, 4096, &out));
        write_text(job, "two");
        end(job);
        job->state = SERVE_RUNNING;
        serve_job_next(job);
        assert_true(serve_job_charge(job));
        assert_int_equal(job->text.len, 0);
        assert_int_equal(job->head.index, 1);
        assert_int_equal(serve_job_ready(job), stream);
        write_text(job, "three");
        end(job);
        job->end.prompt_tokens = job->end.cached_tokens = 9;
        serve_job_sum(job);
        assert_int_equal(job->end.tokens, 8);
        assert_int_equal(job->end.prompt_tokens, 3);
        assert_int_equal(job->end.cached_tokens, 1);
        if (stream)
            assert_true(read_all(job, 4096, &out));
        else
            serve_job_whole(job, &out);
        static const char *const texts[] = { "\"one ", "two\"", "\"index\": 1", "three" };
        const char *at = qsf_strbuf_str(&out);
        for (size_t i = 0; i < 4; i++) {
            if (strstr(at, texts[i]) == NULL) fail_msg("no %s in %s", texts[i], qsf_strbuf_str(&out));
            at = strstr(at, texts[i]);
        }
        job->error.status = 500;
        assert_false(serve_job_failed(job)); /* something was sent */
        qsf_strbuf_free(&out);
        serve_job_release(job);
        assert_int_equal(memory.used, 0);
    }
}

static void test_stream(void **state) {
    static const size_t pieces[] = { 1, 7, 4096 };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        ServeMemory memory = { .limit = 1 << 20 };
        ServeJob *job = begin(&memory, true);
        QsfStrbuf out = QSF_STRBUF_INIT, text = QSF_STRBUF_INIT;
        assert_false(serve_job_ready(job));
        assert_false(read_all(job, pieces[i], &out));
        assert_int_equal(out.len, 0);
        write_text(job, "one \"\n");
        assert_true(serve_job_ready(job));
        assert_false(read_all(job, pieces[i], &out));
        write_text(job, "two ");
        write_text(job, "three\xF0\x9F\x98\x80"); /* together: the reader was slow */
        end(job);
        assert_true(read_all(job, pieces[i], &out));
        assert_int_equal(read_events(&out, &text), 4); /* two texts, the end, usage */
        assert_string_equal(qsf_strbuf_str(&text), "one \"\ntwo three\xF0\x9F\x98\x80");
        assert_non_null(strstr(out.data, "\"finish_reason\": \"stop\""));
        assert_non_null(strstr(out.data, "\"cached_tokens\": 1"));
        qsf_strbuf_free(&out);
        qsf_strbuf_free(&text);
        assert_true(memory.used > 0);
        serve_job_release(job);
        assert_int_equal(memory.used, 0);
    }
}

/* Clients that ask for it see how much of their prompt was read, and the counts of the answer. */
static void test_counts(void **state) {
    ServeMemory memory = { .limit = 1 << 20 };
    ServeJob *job = begin(&memory, true);
    QsfStrbuf out = QSF_STRBUF_INIT;
    (void)state;
    job->counts = (ServeCounts){ .reading = true, .prompt = 100, .cached = 10, .done = 40, .ms = 7 };
    assert_false(serve_job_ready(job)); /* not asked for */
    job->request.progress = job->request.timings = true;
    assert_true(serve_job_ready(job));
    assert_false(read_all(job, 4096, &out));
    assert_non_null(strstr(out.data, "\"delta\": {\"role\": \"assistant\"}"));
    assert_non_null(strstr(out.data,
                           "\"prompt_progress\": {\"total\": 100, \"cache\": 10, \"processed\": 40, "
                           "\"time_ms\": 7}}\n\n"));
    assert_false(serve_job_ready(job)); /* nothing more was read */
    job->counts = (ServeCounts){ .prompt = 100, .cached = 10, .done = 3, .tps = 2.5 };
    write_text(job, "x");
    assert_false(read_all(job, 4096, &out));
    assert_non_null(strstr(out.data, "\"timings\": {\"cache_n\": 10, \"prompt_n\": 90, \"predicted_n\": 3, "
                                     "\"predicted_per_second\": 2.500}}\n\n"));
    end(job);
    assert_true(read_all(job, 4096, &out));
    qsf_strbuf_free(&out);
    serve_job_release(job);
}

/* A large piece is cut between characters. */
static void test_large(void **state) {
    ServeMemory memory = { .limit = 4 << 20 };
    ServeJob *job = begin(&memory, true);
    QsfStrbuf out = QSF_STRBUF_INIT, text = QSF_STRBUF_INIT, want = QSF_STRBUF_INIT;
    (void)state;
    for (unsigned i = 0; i < 20000; i++) qsf_strbuf_adds(&want, i % 7 == 0 ? "x" : "\xE2\x82\xAC");
    write_text(job, qsf_strbuf_str(&want));
    end(job);
    assert_true(read_all(job, 4096, &out));
    assert_true(read_events(&out, &text) > 4);
    assert_string_equal(qsf_strbuf_str(&text), qsf_strbuf_str(&want));
    qsf_strbuf_free(&out);
    qsf_strbuf_free(&text);
    qsf_strbuf_free(&want);
    serve_job_release(job);
}

static void test_whole(void **state) {
    ServeMemory memory = { .limit = 1 << 20 };
    ServeJob *job = begin(&memory, false);
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    (void)state;
    write_text(job, "text");
    qsf_strbuf_adds(&job->plain, "thought");
    end(job);
    serve_job_whole(job, &b);
    QsfJson *j = qsf_json_parse(b.data, b.len, &e);
    const QsfJson *m = qsf_json_get(qsf_json_at(qsf_json_get(j, "choices"), 0), "message");
    assert_string_equal(qsf_json_string(qsf_json_get(m, "content"), NULL), "text");
    assert_string_equal(qsf_json_string(qsf_json_get(m, "reasoning_content"), NULL), "thought");
    assert_string_equal(qsf_json_string(qsf_json_get(j, "model"), NULL), "m\"");
    qsf_json_free(j);
    qsf_strbuf_free(&b);
    serve_error_set(&job->error, 503, "c", NULL, "a\x1b %s", "b\nc");
    serve_job_whole(job, &b);
    assert_non_null(strstr(b.data, "\"message\": \"a? b\\nc\", \"type\": \"server_error\""));
    qsf_strbuf_free(&b);
    serve_job_release(job);
}

static void test_broken(void **state) {
    ServeMemory memory = { .limit = 1 << 20 };
    ServeJob *job = begin(&memory, true);
    QsfStrbuf out = QSF_STRBUF_INIT;
    (void)state;
    write_text(job, "begun");
    assert_false(read_all(job, 4096, &out));
    job->state = SERVE_ENDED;
    serve_error_set(&job->error, 500, NULL, NULL, "it broke");
    assert_true(read_all(job, 4096, &out));
    assert_non_null(strstr(out.data, "data: {\"error\": {\"message\": \"it broke\""));
    assert_string_equal(out.data + out.len - 14, "data: [DONE]\n\n");
    qsf_strbuf_free(&out);
    serve_job_release(job);
}

static void test_room(void **state) {
    ServeMemory memory = { .limit = 64 };
    ServeJob *job = begin(&memory, true);
    (void)state;
    qsf_strbuf_adds(&job->text, "short");
    assert_true(serve_job_charge(job));
    for (int i = 0; i < 30; i++) qsf_strbuf_adds(&job->text, "much longer");
    assert_false(serve_job_charge(job));
    assert_true(memory.used <= memory.limit);
    serve_job_release(job);
    assert_int_equal(memory.used, 0);
    assert_false(serve_memory_take(&memory, 65));
    assert_true(serve_memory_take(&memory, 64) && !serve_memory_take(&memory, 1));
    serve_memory_give(&memory, 64);
    assert_int_equal(memory.used, 0);
}

/* Clients do not learn where files are. */
static void test_paths(void **state) {
    static const char *const texts[][2] = {
        { "/x/models/guide.qsf: the prompt has 9 tokens", "guide: the prompt has 9 tokens" },
        { "cannot read '/x/models/guide.qsf'", "cannot read 'guide'" },
        { "/x/models/guide.qsf/part-1.safetensors: short", "guide/part-1.safetensors: short" },
        { "/x/models/guide.qsf2: bad", "guide.qsf2: bad" },
        { "chat template /usr/share/qsf/templates/chatml.jinja has no place",
          "chat template chatml.jinja has no place" },
        { "template /a b/c d e/f.jinja writes calls: a/b", "template f.jinja writes calls: a/b" },
        { "/a/b c /d/e f (/g h/i)", "b c e f (i)" },
        { "#/properties/a: 1/2 of / and a/b", "#/properties/a: 1/2 of / and a/b" },
        { "/tmp/", "/tmp/" },
        { "", "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        QsfStrbuf b = QSF_STRBUF_INIT;
        serve_reply_hide_paths(&b, texts[i][0], "/x/models/guide.qsf", "guide");
        assert_string_equal(qsf_strbuf_str(&b), texts[i][1]);
        qsf_strbuf_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two),    cmocka_unit_test(test_paths),  cmocka_unit_test(test_stream),
        cmocka_unit_test(test_large),  cmocka_unit_test(test_counts), cmocka_unit_test(test_whole),
        cmocka_unit_test(test_broken), cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
