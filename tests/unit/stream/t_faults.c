/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Read errors at places all over a model file, with every back end: the answer ends with an error that names
 * the file and the byte offset, the worker survives, and when the disk works again the next answer is that of
 * an undisturbed run. */
#include "tests/harness/qsf_test.h"

#include <errno.h>
#include <poll.h>

#include "qsf_engine.h"
#include "src/base/clock.h"
#include "src/base/file.h"
#include "src/file/source.h"
#include "src/stream/io.h"
#include "tests/harness/gguf_build.h"

static char path[256];
static QsfLedger ledger;
static QsfSource *src; /* of path: where all tensors are */

/* --- a worker and its reports --- */

typedef struct Reply {
    QSFEventType type;
    int code;
    char text[4096], why[600];
} Reply;

static Reply *reply_to(QSFWorker *w, uint64_t id) {
    static Reply r;
    QSFEvent e = { 0 };
    memset(&r, 0, sizeof r);
    assert_true(id > 0);
    while (e.type != QSF_EVENT_LOADED && e.type != QSF_EVENT_DONE && e.type != QSF_EVENT_ERROR) {
        while (!qsf_worker_next(w, &e)) {
            struct pollfd p = { .fd = qsf_worker_fd(w), .events = POLLIN };
            assert_int_equal(poll(&p, 1, 60000), 1);
        }
        size_t have = strlen(r.text);
        if (e.type == QSF_EVENT_TEXT) snprintf(r.text + have, sizeof r.text - have, "%s", e.text);
        if (e.type == QSF_EVENT_ERROR) snprintf(r.why, sizeof r.why, "%s", e.text);
    }
    r.type = e.type;
    r.code = e.code;
    return &r;
}

static Reply *ask(QSFWorker *w, const char *text) {
    const QSFMessage m = { .role = "user", .content = text, .len = strlen(text) };
    const QSFRequest r = { .messages = &m, .n_messages = 1 };
    return reply_to(w, qsf_worker_submit(w, &r));
}

static QSFSettings settings(const char *io, const char *direct, uint64_t pin) {
    QSFSettings s;
    qsf_settings_default(&s);
    snprintf(s.io, sizeof s.io, "%s", io);
    snprintf(s.direct, sizeof s.direct, "%s", direct);
    s.threads = 2;
    s.ctx = 128;
    s.pin = pin;
    s.ram_budget = qsf_rss_bytes() + (256u << 20); /* generous: sanitizers keep freed memory resident */
    s.params.temperature = 0;
    s.params.max_tokens = 3;
    s.params.ignore_eos = true;
    return s;
}

static QSFWorker *start(const QSFSettings *s) {
    char why[256] = "";
    QSFWorker *w = qsf_worker_start(s, why, sizeof why);
    if (w == NULL) fail_msg("%s", why);
    return w;
}

static void load(QSFWorker *w, const QSFSettings *s) {
    Reply *r = reply_to(w, qsf_worker_load(w, path, s));
    if (r->type != QSF_EVENT_LOADED) fail_msg("%s", r->why);
}

/* --- faults --- */

typedef struct Fault {
    uint64_t off;
    int error; /* errno value, 0 = the file seems to end there */
} Fault;

/* The message names the file and a byte at most one read before the fault. */
static void check_message(const Reply *r, const Fault *f) {
    static const char words[] = "byte offset ";
    const char *at = strstr(r->why, words);
    assert_int_equal(r->type, QSF_EVENT_ERROR);
    if (strstr(r->why, path) == NULL || at == NULL)
        fail_msg("the message has neither file nor place: %s", r->why);
    uint64_t said = strtoull(at + strlen(words), NULL, 10);
    if (said > f->off || f->off - said > (8u << 20) || (f->error == 0 && said != f->off))
        fail_msg("fault at %llu, but: %s", (unsigned long long)f->off, r->why);
    if (f->error != 0) assert_non_null(strstr(r->why, strerror(f->error)));
    assert_int_equal(r->code, 1);
}

/* A matrix other than the embedding: its bytes are read for every token, or once when they are pinned. */
static bool is_streamed(const QsfTensor *t) {
    return t->n_dims == 2 && strcmp(t->name, "token_embd.weight") != 0;
}

/* The fault has ended. A read that was in flight until then may still report its error, once. */
static void ask_again(QSFWorker *w, uint64_t off, const char *want) {
    Reply *r = ask(w, "x y z");
    if (r->type == QSF_EVENT_ERROR) r = ask(w, "x y z");
    if (r->type != QSF_EVENT_DONE) fail_msg("after a fault at %llu: %s", (unsigned long long)off, r->why);
    assert_string_equal(r->text, want);
}

/* One answer with the fault, one without; true when the first failed. */
static bool disturb(QSFWorker *w, const Fault *f, const char *want) {
    qsf_file_inject_fault(f->off, f->error);
    Reply *r = ask(w, "x y z");
    qsf_file_inject_fault(UINT64_MAX, 0);
    bool failed = r->type == QSF_EVENT_ERROR;
    if (failed)
        check_message(r, f);
    else
        assert_string_equal(r->text, want);
    ask_again(w, f->off, want);
    return failed;
}

static void undisturbed(QSFWorker *w, char want[4096]) {
    Reply *r = ask(w, "x y z");
    assert_int_equal(r->type, QSF_EVENT_DONE);
    snprintf(want, 4096, "%s", r->text);
}

static const struct Way {
    const char *io, *direct;
} ways[] = {
    { "pread", "off" }, { "pread", "on" }, { "uring", "off" }, { "uring", "on" }, { "mmap", "auto" },
};

/* The first, the last and some byte between of every tensor, with everything streamed. */
static void faults_while_streaming(void **state) {
    (void)state;
    char want[4096];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        QSFSettings s = settings(ways[i].io, ways[i].direct, 0);
        QSFWorker *w = start(&s);
        load(w, &s);
        undisturbed(w, want);
        unsigned failed = 0, asked = 0;
        for (uint64_t t = 0; t < qsf_source_n_tensors(src); t++) {
            const QsfTensor *x = qsf_source_tensor(src, t);
            const uint64_t at[] = { 0, x->bytes / 3 + t, x->bytes - 1 };
            for (size_t k = 0; k < 3; k++, asked++) {
                const Fault f = { x->offset + at[k], (t + k) % 2 == 0 ? EIO : 0 };
                bool hit = disturb(w, &f, want);
                if (!hit && is_streamed(x))
                    fail_msg("%s, direct %s: byte %llu of %s failed without being detected", ways[i].io,
                             ways[i].direct, (unsigned long long)at[k], x->name);
                failed += hit;
            }
        }
        printf("%s, direct %s: %u of %u faults seen\n", ways[i].io, ways[i].direct, failed, asked);
        qsf_worker_stop(w);
    }
}

/* The same while rows are pinned in the background during the first answer. Once they are pinned, a fault has
 * no effect. */
static void faults_while_pinning(void **state) {
    (void)state;
    char want[4096];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        QSFSettings s = settings(ways[i].io, ways[i].direct, UINT64_MAX);
        QSFWorker *w = start(&s);
        load(w, &s);
        undisturbed(w, want);
        for (uint64_t t = 0; t < qsf_source_n_tensors(src); t += 2) {
            const QsfTensor *x = qsf_source_tensor(src, t);
            const Fault f = { x->offset + x->bytes / 2, t % 4 == 0 ? EIO : 0 };
            qsf_file_inject_fault(f.off, f.error);
            Reply *r = reply_to(w, qsf_worker_load(w, path, &s));
            if (r->type == QSF_EVENT_LOADED) r = ask(w, "x y z");
            qsf_file_inject_fault(UINT64_MAX, 0);
            if (r->type == QSF_EVENT_ERROR)
                check_message(r, &f);
            else
                assert_false(is_streamed(x));
            QSFStats st;
            qsf_worker_stats(w, &st);
            if (st.state == QSF_STATE_EMPTY) load(w, &s);
            ask_again(w, f.off, want);
            const Fault late = { f.off, EIO };
            assert_false(disturb(w, &late, want) && is_streamed(x));
        }
        qsf_worker_stop(w);
    }
}

/* Metadata and vocabulary: loading fails, and works the next time. */
static void faults_while_opening(void **state) {
    (void)state;
    QSFSettings s = settings("auto", "auto", 0);
    QSFWorker *w = start(&s);
    uint64_t end = UINT64_MAX;
    for (uint64_t t = 0; t < qsf_source_n_tensors(src); t++)
        if (qsf_source_tensor(src, t)->offset < end) end = qsf_source_tensor(src, t)->offset;
    for (uint64_t off = 0; off < end; off += 97) {
        const Fault f = { off, off % 2 == 0 ? EIO : 0 };
        qsf_file_inject_fault(f.off, f.error);
        Reply *r = reply_to(w, qsf_worker_load(w, path, &s));
        qsf_file_inject_fault(UINT64_MAX, 0);
        if (off + 32 < end) assert_int_equal(r->type, QSF_EVENT_ERROR); /* followed by padding */
        if (r->type == QSF_EVENT_ERROR && strstr(r->why, path) == NULL)
            fail_msg("the message has no file: %s", r->why);
        load(w, &s);
    }
    assert_int_equal(ask(w, "x y z")->type, QSF_EVENT_DONE);
    qsf_worker_stop(w);
}

static int setup(void **state) {
    (void)state;
    QsfErr err = { 0 };
    unsetenv("QSF_CPU_MASK");
    snprintf(path, sizeof path, "%s", qsf_test_tmp("faults.gguf"));
    const QsfTinySpec spec = { .hidden = 128, .ffn = 384, .vocab = 400, .wtype = 8 };
    if (qsf_test_write_tiny_llama(path, &spec) != 0) return -1;
    qsf_ledger_init(&ledger, 0);
    return qsf_source_open(&src, path, &ledger, &err);
}

static int teardown(void **state) {
    (void)state;
    qsf_source_close(src);
    qsf_ledger_destroy(&ledger);
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_while_streaming),
        cmocka_unit_test(faults_while_pinning),
        cmocka_unit_test(faults_while_opening),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
