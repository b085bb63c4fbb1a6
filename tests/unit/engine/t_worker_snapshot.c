/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Snapshots of a chat: after a restart it gives the answers of one that was never stopped, reuses as much of
 * the conversation, and survives damaged files, full disks and requests that come while it saves. */
#include "tests/harness/qsf_test.h"

#include <poll.h>
#include <sys/stat.h>

#include "tests/harness/gguf_build.h"
#include "tests/harness/worker_rig.h"

enum { TURNS = 4, TEXT = 4096, EVICTING_CTX = 96 };

static char llama[256], mamba[256], folder[256], snap[300];

typedef struct Turn {
    char text[TEXT];
    uint32_t reused, prompt;
} Turn;

/* A conversation as the chat keeps it. */
typedef struct Talk {
    QSFMessage m[2 * TURNS + 4];
    char content[2 * TURNS + 4][TEXT];
    size_t n;
    const char *path, *from; /* of the snapshot, and of another conversation */
    uint64_t limit;
} Talk;

static void add(Talk *t, const char *role, const char *text) {
    snprintf(t->content[t->n], TEXT, "%s", text);
    t->m[t->n] = (QSFMessage){ .role = role, .content = t->content[t->n], .len = strlen(t->content[t->n]) };
    t->n++;
}

static off_t size_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static const char *policy = "", *template = ""; /* policy: of eviction, with a short context */

static QSFWorker *start(const char *model) {
    QSFSettings s = qsf_rig_settings();
    s.params.max_tokens = policy[0] != '\0' ? 4 : 20; /* few enough to evict nothing */
    snprintf(s.eviction, sizeof s.eviction, "%s", policy);
    if (policy[0] != '\0') s.ctx = EVICTING_CTX;
    if (template[0] != '\0') s.ctx = 1024;
    snprintf(s.chat_template, sizeof s.chat_template, "%s", template);
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, model, &s);
    return w;
}

static uint64_t submit(QSFWorker *w, const Talk *t) {
    const QSFRequest r = {
        .messages = t->m,
        .n_messages = t->n,
        .snapshot = t->path,
        .snapshot_from = t->from,
        .snapshot_limit = t->limit,
    };
    uint64_t id = qsf_worker_submit(w, &r);
    assert_true(id > 0);
    return id;
}

/* Asks and answers: the text becomes a message. Notices are appended to said, which may be NULL. */
static Turn ask(QSFWorker *w, Talk *t, const char *question, char *said) {
    Turn turn = { 0 };
    QSFEvent e;
    add(t, "user", question);
    const uint64_t id = submit(w, t);
    do {
        qsf_rig_wait(w, &e);
        if (e.type == QSF_EVENT_NOTICE && said != NULL) strcat(said, e.text);
        if (e.type != QSF_EVENT_TEXT) continue;
        assert_true(strlen(turn.text) + e.text_len < TEXT);
        strcat(turn.text, e.text);
    } while (e.request != id || (e.type != QSF_EVENT_DONE && e.type != QSF_EVENT_ERROR));
    if (e.type != QSF_EVENT_DONE) fail_msg("%s", e.text);
    turn.reused = e.reused_tokens;
    turn.prompt = e.prompt_tokens;
    add(t, "assistant", turn.text);
    return turn;
}

static const char *const questions[TURNS] = { "a the in b c d e f g h i j k l m n o p q r s t u v w x y z",
                                              "the second", "a b c", "in the end" };

/* A chat that is never stopped, and has no snapshot. */
static void uninterrupted(const char *model, Turn out[TURNS]) {
    Talk t = { 0 };
    QSFWorker *w = start(model);
    for (int i = 0; i < TURNS; i++) out[i] = ask(w, &t, questions[i], NULL);
    qsf_worker_stop(w);
}

static void expect_same(const Turn *is, const Turn *expected) {
    assert_string_equal(is->text, expected->text);
    assert_int_equal(is->prompt, expected->prompt);
}

static void a_restart_changes_nothing(void **state) {
    static Turn expected[TURNS], turn;
    const char *const models[] = { llama, mamba };
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        Talk t = { .path = snap };
        off_t before = 0;
        unlink(snap);
        uninterrupted(models[k], expected);
        for (int i = 0; i < TURNS; i++) {
            char said[1000] = "";
            QSFWorker *w = start(models[k]);
            turn = ask(w, &t, questions[i], said);
            expect_same(&turn, &expected[i]);
            assert_int_equal(turn.reused, expected[i].reused);
            assert_string_equal(said, "");
            qsf_worker_stop(w);
            assert_true(size_of(snap) > before);
            before = size_of(snap);
        }
        struct stat st;
        assert_int_equal(stat(snap, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
}

/* Also when it has become longer than its context. */
static void what_was_evicted_stays_evicted(void **state) {
    static Turn expected[TURNS], turn;
    const char *const policies[] = { "sliding", "h2o", "snapkv" };
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        Talk t = { .path = snap }, live = { 0 };
        policy = policies[k];
        unlink(snap);
        QSFWorker *w = start(llama);
        for (int i = 0; i < TURNS; i++) expected[i] = ask(w, &live, questions[0], NULL);
        qsf_worker_stop(w);
        for (int i = 0; i < TURNS; i++) {
            w = start(llama);
            turn = ask(w, &t, questions[0], NULL);
            expect_same(&turn, &expected[i]);
            assert_int_equal(turn.reused, expected[i].reused);
            qsf_worker_stop(w);
        }
        assert_true(turn.reused > EVICTING_CTX);
    }
    policy = "";
}

/* The same prompt again, and one that differs late: both are common in a chat. */
static void retries_and_branches_reuse_it(void **state) {
    Talk t = { .path = snap };
    Turn turn, first, other;
    (void)state;
    unlink(snap);
    QSFWorker *w = start(llama);
    first = ask(w, &t, questions[0], NULL);
    ask(w, &t, questions[1], NULL);
    qsf_worker_stop(w);
    Talk again = { .path = snap };
    w = start(llama);
    turn = ask(w, &again, questions[0], NULL); /* /retry of the first answer */
    expect_same(&turn, &first);
    assert_int_equal(turn.reused, turn.prompt - 1);
    qsf_worker_stop(w);
    again.n = 2;
    w = start(llama);
    other = ask(w, &again, "another branch", NULL);
    assert_true(other.reused > 20);
    qsf_worker_stop(w);
    Talk plain = { 0 };
    w = start(llama);
    ask(w, &plain, questions[0], NULL);
    turn = ask(w, &plain, "another branch", NULL);
    assert_string_equal(turn.text, other.text);
    assert_true(turn.reused <= other.reused); /* the file has the line's beginning, too */
    qsf_worker_stop(w);
}

/* A recurrent model has a state before the last token of the prompt: the same prompt continues there, in the
 * same process and in another one, and so does the next turn, after the prompt. */
static void a_recurrent_retry_reuses_it(void **state) {
    Turn turn, first;
    (void)state;
    unlink(snap);
    QSFWorker *w = NULL;
    for (int i = 0; i < 4; i++) {
        Talk t = { .path = snap };
        if (i % 2 == 0) w = start(mamba);
        turn = ask(w, &t, questions[0], NULL);
        if (i == 0) first = turn;
        expect_same(&turn, &first);
        assert_int_equal(turn.reused, i == 0 ? 0 : turn.prompt - 1);
        if (i % 2 == 0) continue;
        if (i == 3) assert_true(ask(w, &t, questions[1], NULL).reused >= turn.prompt);
        qsf_worker_stop(w);
    }
}

#define SYSTEM "a b c d e f g h i j k l m n o p q r s t u v w x y z"

/* Conversations that begin with the same system prompt share it, in memory and from the file of another one,
 * also after many turns, and give the answers that they give alone. */
static void a_system_prompt_is_shared(void **state) {
    static const char *const others[] = { "the first", "\n\nin the", "1 2 3" };
    static Turn alone, turn;
    char second[320];
    (void)state;
    template = "chatml";
    snprintf(second, sizeof second, "%s/second.qsfsnap", folder);
    for (int turns = 1; turns <= TURNS; turns += TURNS - 1) {
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            for (int restart = 0; restart < 2; restart++) {
                Talk t = { .path = snap }, other = { .path = second, .from = snap }, fresh = { 0 };
                unlink(snap);
                unlink(second);
                QSFWorker *w = start(mamba);
                add(&fresh, "system", SYSTEM);
                alone = ask(w, &fresh, others[i], NULL);
                assert_int_equal(alone.reused, 0);
                qsf_worker_stop(w);
                w = start(mamba);
                add(&t, "system", SYSTEM);
                add(&other, "system", SYSTEM);
                for (int k = 0; k < turns; k++) ask(w, &t, questions[k], NULL);
                if (restart) qsf_worker_stop(w);
                if (restart) w = start(mamba);
                turn = ask(w, &other, others[i], NULL);
                expect_same(&turn, &alone);
                assert_true(turn.reused >= strlen(SYSTEM) / 2 && turn.reused < turn.prompt - 2);
                qsf_worker_stop(w);
            }
        }
    }
    unlink(second);
    template = "";
}

static void patch(off_t at) {
    FILE *f = fopen(snap, "r+e");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_true(fputc(c ^ 0x40, f) != EOF);
    assert_int_equal(fclose(f), 0);
}

/* Damage is told once and repaired; another model or setting is not worth a word. */
static void damage_costs_time_only(void **state) {
    static Turn expected[TURNS], turn;
    Talk t = { .path = snap };
    char said[1000] = "";
    (void)state;
    unlink(snap);
    uninterrupted(llama, expected);
    QSFWorker *w = start(llama);
    ask(w, &t, questions[0], NULL);
    qsf_worker_stop(w);
    patch(size_of(snap) / 2);
    w = start(llama);
    turn = ask(w, &t, questions[1], said);
    expect_same(&turn, &expected[1]);
    assert_int_equal(turn.reused, 0);
    assert_non_null(strstr(said, "the snapshot is damaged; the conversation is evaluated again"));
    qsf_worker_stop(w);
    said[0] = '\0';
    w = start(llama);
    turn = ask(w, &t, questions[2], said);
    expect_same(&turn, &expected[2]);
    assert_int_equal(turn.reused, expected[2].reused);
    assert_string_equal(said, "");
    qsf_worker_stop(w);
    w = start(mamba);
    turn = ask(w, &t, "x", said);
    assert_int_equal(turn.reused, 0);
    assert_string_equal(said, "");
    qsf_worker_stop(w);
    Talk more = { .path = snap };
    w = start(mamba); /* it is the snapshot of this model now */
    memcpy(&more, &t, sizeof t);
    for (size_t i = 0; i < more.n; i++) more.m[i].content = more.content[i];
    turn = ask(w, &more, "y", said);
    assert_true(turn.reused > 0);
    qsf_worker_stop(w);
}

/* The first notice that is not about a request, within a minute. */
static void expect_notice(QSFWorker *w, const char *part) {
    QSFEvent e;
    qsf_rig_wait(w, &e);
    assert_int_equal(e.type, QSF_EVENT_NOTICE);
    assert_int_equal(e.request, 0);
    if (strstr(e.text, part) == NULL) fail_msg("no '%s' in '%s'", part, e.text);
}

static void what_cannot_be_saved_is_told_once(void **state) {
    static Turn expected[TURNS], turn;
    Talk t = { .path = snap, .limit = 1000 }, nowhere = { .path = "/proc/none/x.qsfsnap" };
    char said[1000] = "";
    QSFEvent e;
    (void)state;
    unlink(snap);
    uninterrupted(llama, expected);
    QSFWorker *w = start(llama);
    turn = ask(w, &t, questions[0], said);
    expect_same(&turn, &expected[0]);
    expect_notice(w, "it would exceed its limit");
    turn = ask(w, &t, questions[1], said);
    expect_same(&turn, &expected[1]);
    assert_string_equal(said, "");
    assert_int_equal(size_of(snap), 0);
    ask(w, &nowhere, questions[0], said);
    expect_notice(w, "/proc/none/x.qsfsnap");
    while (qsf_worker_next(w, &e)) fail_msg("another event: %s", e.text);
    qsf_worker_stop(w);
}

/* Two conversations share the limit; the older one goes. */
static void the_oldest_is_dropped(void **state) {
    char second[310];
    Talk a = { .path = snap }, b = { .path = second };
    (void)state;
    snprintf(second, sizeof second, "%s/second.qsfsnap", folder);
    unlink(snap);
    QSFWorker *w = start(llama);
    ask(w, &a, questions[0], NULL);
    ask(w, &b, questions[0], NULL); /* waits until the first one is saved */
    qsf_worker_stop(w);
    assert_true(size_of(snap) > 0 && size_of(second) > 0);
    b.limit = (uint64_t)size_of(snap) + (uint64_t)size_of(second);
    w = start(llama);
    ask(w, &b, questions[1], NULL);
    qsf_worker_stop(w);
    assert_int_equal(size_of(snap), 0);
    assert_true(size_of(second) > 0);
    unlink(second);
}

/* No waiting between the end of an answer and the next question, and none before the end. */
static void questions_may_come_while_it_saves(void **state) {
    static Turn expected[TURNS], turn;
    Talk t = { .path = snap };
    (void)state;
    unlink(snap);
    uninterrupted(llama, expected);
    QSFWorker *w = start(llama);
    for (int i = 0; i < TURNS - 1; i++) {
        turn = ask(w, &t, questions[i], NULL);
        expect_same(&turn, &expected[i]);
        if (i == 0) {
            QSFSettings s;
            qsf_worker_settings(w, &s);
            s.threads = 1;
            qsf_worker_replan(w, &s);
        }
    }
    qsf_worker_stop(w);
    w = start(llama);
    turn = ask(w, &t, questions[TURNS - 1], NULL);
    expect_same(&turn, &expected[TURNS - 1]);
    assert_int_equal(turn.reused, expected[TURNS - 1].reused);
    qsf_worker_stop(w);
}

/* After /kv type the next answer differs from that of a new prompt: the snapshot stays what it was. */
static void a_converted_cache_is_not_saved(void **state) {
    Talk t = { .path = snap };
    char said[1000] = "";
    QSFSettings s;
    (void)state;
    unlink(snap);
    QSFWorker *w = start(llama);
    ask(w, &t, questions[0], NULL);
    qsf_worker_stop(w);
    const off_t before = size_of(snap);
    w = start(llama);
    ask(w, &t, questions[0], NULL);
    qsf_worker_settings(w, &s);
    snprintf(s.kv, sizeof s.kv, "q8");
    qsf_worker_replan(w, &s);
    ask(w, &t, questions[1], said);
    qsf_worker_stop(w);
    assert_string_equal(said, "");
    t.n = 0;
    w = start(llama); /* with the first type */
    assert_true(ask(w, &t, questions[0], NULL).reused > 0);
    qsf_worker_stop(w);
    assert_true(size_of(snap) >= before);
}

/* What an answer had when the chat ended is kept, too. */
static void a_chat_that_ends_in_an_answer_is_saved(void **state) {
    Talk t = { .path = snap };
    QSFEvent e;
    (void)state;
    unlink(snap);
    QSFWorker *w = start(llama);
    qsf_rig_set_max(w, 0);
    add(&t, "user", questions[0]);
    submit(w, &t);
    do qsf_rig_wait(w, &e);
    while (e.type != QSF_EVENT_TEXT);
    qsf_worker_stop(w);
    assert_true(size_of(snap) > 0);
    w = start(llama);
    t.n = 0;
    Turn turn = ask(w, &t, questions[0], NULL);
    assert_int_equal(turn.reused, turn.prompt - 1);
    qsf_worker_stop(w);
}

static int setup(void **state) {
    (void)state;
    unsetenv("QSF_CPU_MASK");
    snprintf(llama, sizeof llama, "%s", qsf_test_tmp("llama.gguf"));
    snprintf(mamba, sizeof mamba, "%s", qsf_test_tmp("mamba.gguf"));
    snprintf(folder, sizeof folder, "%s", qsf_test_tmp("snapshots"));
    snprintf(snap, sizeof snap, "%s/chat.qsfsnap", folder);
    const QsfTinySpec spec = { .ctx = 512, .letters = true }; /* texts without NUL */
    return mkdir(folder, 0700) != 0 || qsf_test_write_tiny_llama(llama, &spec) != 0 ||
           qsf_test_write_tiny_mamba(mamba, 3) != 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(snap);
    unlink(llama);
    unlink(mamba);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_changes_nothing),
        cmocka_unit_test(what_was_evicted_stays_evicted),
        cmocka_unit_test(retries_and_branches_reuse_it),
        cmocka_unit_test(a_recurrent_retry_reuses_it),
        cmocka_unit_test(a_system_prompt_is_shared),
        cmocka_unit_test(damage_costs_time_only),
        cmocka_unit_test(what_cannot_be_saved_is_told_once),
        cmocka_unit_test(the_oldest_is_dropped),
        cmocka_unit_test(questions_may_come_while_it_saves),
        cmocka_unit_test(a_converted_cache_is_not_saved),
        cmocka_unit_test(a_chat_that_ends_in_an_answer_is_saved),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
