/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Snapshots of conversations with an eviction policy: one that was saved and loaded continues as one that was
 * never stopped, also through later evictions; other policies and damage are refused. */
#include "tests/harness/qsf_test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "src/base/crc32.h"
#include "src/engine/snapshot/snapshot.h"
#include "src/kv/list.h"
#include "tests/harness/gguf_build.h"

enum { CTX = 160, PROMPT = 410, SAVED = 430, LAST = 850, N = 900, VOCAB = 300, HEAD = 40 };

static const char *model_path, *snap_path;
static atomic_int cancel;
static int32_t ids[N];

typedef struct Chat {
    QsfRuntime rt;
    QsfTimeline t;
    QsfSnapKey key;
} Chat;

typedef struct Way {
    const char *policy, *kv;
    uint32_t window, ctx;
} Way;

static const Way ways[] = {
    { "sliding", "f16", 0, CTX }, { "sliding", "q2", 64, CTX }, { "h2o", "f16", 0, CTX },
    { "h2o", "q8", 64, CTX },     { "snapkv", "f16", 0, CTX },  { "snapkv", "q2", 64, CTX },
    { "h2o", "f16", 0, 1024 }, /* nothing evicted yet */
};
enum { WAYS = sizeof ways / sizeof *ways };

static void open_chat(Chat *c, const Way *w, uint64_t pin, int threads) {
    QsfErr err = { 0 };
    QsfRuntimeOptions o = { .cancel = &cancel };
    c->key = (QsfSnapKey){ 0 };
    qsf_settings_default(&o.settings);
    o.settings.ctx = w->ctx;
    o.settings.pin = pin;
    o.settings.threads = threads;
    o.settings.eviction_window = w->window;
    o.settings.protected_prefix = 20;
    snprintf(o.settings.eviction, sizeof o.settings.eviction, "%s", w->policy);
    snprintf(o.settings.kv, sizeof o.settings.kv, "%s", w->kv);
    qsf_test_expect_ok(qsf_runtime_open(&c->rt, model_path, &o, &err), &err);
    qsf_test_expect_ok(qsf_timeline_init(&c->t, &c->rt, &err), &err);
    qsf_test_expect_ok(qsf_snapshot_key(&c->key, &c->rt, &err), &err);
    assert_int_equal(c->rt.model.hp.n_vocab, VOCAB);
}

static void close_chat(Chat *c) {
    qsf_timeline_free(&c->t);
    qsf_runtime_close(&c->rt);
}

static uint32_t prefill(Chat *c, const int32_t *of, uint32_t n) {
    QsfErr err = { 0 };
    uint32_t reused = 0;
    qsf_test_expect_ok(qsf_timeline_prefill(&c->t, of, n, &reused, &err), &err);
    return reused;
}

/* A prompt, and an answer token by token. */
static void converse(Chat *c) {
    prefill(c, ids, PROMPT);
    for (uint32_t n = PROMPT + 1; n <= SAVED; n++) assert_int_equal(prefill(c, ids, n), n - 1);
}

static void save(Chat *c) {
    QsfErr err = { 0 };
    const QsfSnapSave o = { 0 };
    qsf_test_expect_ok(qsf_snapshot_save(&c->t, snap_path, &c->key, &o, &err), &err);
}

static uint32_t load(Chat *c, const int32_t *of, uint32_t n) {
    QsfErr err = { 0 };
    uint32_t loaded = 0;
    qsf_test_expect_ok(qsf_snapshot_load(&c->t, snap_path, &c->key, of, n, &loaded, NULL, &err), &err);
    return loaded;
}

static const float *logits(const Chat *c) { return qsf_forward_logits(c->rt.fwd); }

static off_t size_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* Both conversations continue alike: the rest of the tokens in prompts, then back to `back`, and on. */
static void continue_both(Chat *a, Chat *b, uint32_t back) {
    int32_t other[N];
    memcpy(other, ids, sizeof ids);
    for (uint32_t i = back; i < N; i++) other[i] = (ids[i] + 1) % 250;
    for (uint32_t n = SAVED + 5; n < SAVED + 40; n++) {
        assert_int_equal(prefill(a, ids, n), prefill(b, ids, n));
        assert_memory_equal(logits(a), logits(b), VOCAB * sizeof(float));
    }
    const int32_t *of = back < N ? other : ids;
    for (uint32_t n = LAST - 360; n <= LAST; n += 120) {
        assert_int_equal(prefill(a, of, n), prefill(b, of, n));
        assert_memory_equal(logits(a), logits(b), VOCAB * sizeof(float));
    }
}

static void what_was_saved_continues(void **state) {
    (void)state;
    for (unsigned w = 0; w < WAYS; w++) {
        Chat a, b;
        unlink(snap_path);
        open_chat(&a, &ways[w], UINT64_MAX, 1);
        converse(&a);
        save(&a);
        const off_t size = size_of(snap_path);
        assert_true(size > 0);
        save(&a); /* nothing new */
        assert_int_equal(size_of(snap_path), size);
        for (int i = 0; i < 3; i++) {
            if (i > 0) {
                open_chat(&a, &ways[w], UINT64_MAX, 1);
                converse(&a);
            }
            open_chat(&b, &ways[w], i & 1 ? 0 : UINT64_MAX, 1 + i);
            assert_int_equal(load(&b, ids, N), SAVED);
            assert_int_equal(load(&b, ids, N), 0); /* it is there */
            assert_int_equal(b.t.n_ids, SAVED);
            assert_memory_equal(b.t.ids, ids, SAVED * sizeof *ids);
            continue_both(&a, &b, i == 0 ? N : i == 1 ? SAVED + 30 : SAVED - 3);
            assert_int_equal(b.rt.ledger.refused_frozen, 0);
            save(&b); /* what came later replaces it */
            close_chat(&a);
            close_chat(&b);
            open_chat(&b, &ways[w], UINT64_MAX, 1);
            if (i == 0) assert_int_equal(load(&b, ids, N), LAST);
            converse(&b);
            save(&b);
            close_chat(&b);
        }
    }
}

/* A conversation that differs before the last eviction, or is short, is evaluated. */
static void branches_are_evaluated(void **state) {
    Chat a, b;
    int32_t other[N];
    (void)state;
    memcpy(other, ids, sizeof ids);
    other[100]++;
    for (unsigned w = 0; w < WAYS - 1; w++) {
        unlink(snap_path);
        open_chat(&a, &ways[w], UINT64_MAX, 1);
        converse(&a);
        save(&a);
        close_chat(&a);
        open_chat(&a, &ways[w], UINT64_MAX, 1);
        open_chat(&b, &ways[w], UINT64_MAX, 1);
        assert_int_equal(load(&b, ids, 90), 0);
        assert_int_equal(load(&b, other, N), 0);
        assert_int_equal(b.t.n_ids, 0);
        prefill(&a, other, N);
        prefill(&b, other, N);
        assert_memory_equal(logits(&a), logits(&b), VOCAB * sizeof(float));
        close_chat(&a);
        close_chat(&b);
    }
}

static void expect_other(Chat *c) {
    QsfErr err = { 0 };
    uint32_t loaded = 1;
    QsfSnapKind is;
    assert_int_equal(qsf_snapshot_load(&c->t, snap_path, &c->key, ids, N, &loaded, &is, &err), QSF_E_MODEL);
    qsf_test_expect_err(&err, QSF_E_MODEL, "other settings (eviction, context)");
    assert_int_equal(loaded, 0);
    assert_int_equal(is, QSF_SNAP_OTHER);
}

static void other_policies_are_refused(void **state) {
    static const Way others[] = { { "h2o", "f16", 0, CTX },
                                  { "none", "f16", 0, CTX },
                                  { "sliding", "f16", 64, CTX },
                                  { "sliding", "f16", 0, 176 } };
    Chat c;
    (void)state;
    unlink(snap_path);
    open_chat(&c, &ways[0], UINT64_MAX, 1);
    converse(&c);
    save(&c);
    close_chat(&c);
    for (unsigned i = 0; i < 4; i++) {
        open_chat(&c, &others[i], UINT64_MAX, 1);
        expect_other(&c);
        close_chat(&c);
    }
    /* Rows do not have the weights that H2O needs; without a policy they are enough. */
    unlink(snap_path);
    open_chat(&c, &ways[0], UINT64_MAX, 1);
    prefill(&c, ids, 100);
    save(&c);
    close_chat(&c);
    open_chat(&c, &others[0], UINT64_MAX, 1);
    expect_other(&c);
    close_chat(&c);
    open_chat(&c, &others[1], UINT64_MAX, 1);
    assert_int_equal(load(&c, ids, 120), 100);
    close_chat(&c);
}

/* ---- damage ---- */

static uint8_t *read_file(size_t *len) {
    *len = (size_t)size_of(snap_path);
    uint8_t *data = malloc(*len);
    FILE *f = fopen(snap_path, "re");
    assert_true(data != NULL && f != NULL);
    assert_int_equal(fread(data, 1, *len, f), *len);
    (void)fclose(f);
    return data;
}

static void write_file(const uint8_t *data, size_t len) {
    assert_int_equal(qsf_test_write_file(snap_path, data, len), 0);
}

/* Whatever is there, it is refused, or continues as it should. */
static void check_damage(Chat *c, const float *expected) {
    static const int32_t none[] = { 249 };
    QsfErr err = { 0 };
    uint32_t loaded;
    prefill(c, none, 1);
    int rc = qsf_snapshot_load(&c->t, snap_path, &c->key, ids, N, &loaded, NULL, &err);
    assert_true(rc == QSF_OK || rc == QSF_E_MODEL);
    assert_true(loaded == 0 || loaded == SAVED);
    if (loaded == 0) return;
    prefill(c, ids, SAVED + 1);
    assert_memory_equal(logits(c), expected, VOCAB * sizeof(float));
}

static void damage_is_found(void **state) {
    const char *san = getenv("QSF_SAN"); /* sanitizers: a tenth of the places, each takes ten times as long */
    const size_t slow = san != NULL && strcmp(san, "yes") == 0 ? 10 : 1;
    (void)state;
    for (unsigned w = 1; w < 4; w += 2) {
        Chat c;
        float expected[VOCAB];
        size_t len;
        unlink(snap_path);
        open_chat(&c, &ways[w], UINT64_MAX, 1);
        converse(&c);
        save(&c);
        prefill(&c, ids, SAVED + 1);
        memcpy(expected, logits(&c), sizeof expected);
        uint8_t *data = read_file(&len);
        const size_t dense = QSF_SNAP_HEADER + HEAD + 4 * (QSF_LISTS_WORDS + 4);
        for (size_t at = 0; at < len; at += at < dense || at + 32 > len ? 1 : 241 * slow) {
            data[at] ^= (uint8_t)(1u << at % 8);
            write_file(data, len);
            check_damage(&c, expected);
            data[at] ^= (uint8_t)(1u << at % 8);
        }
        for (size_t cut = 0; cut < len; cut += 701 * slow) {
            write_file(data, cut);
            check_damage(&c, expected);
        }
        free(data);
        close_chat(&c);
    }
}

static void put32(uint8_t *p, uint32_t v) {
    for (unsigned i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

/* Numbers with correct checksums: of the description and the sizes of lists in the table, and of the first
 * entries. Only memory is at stake here: such a file is not damaged by accident. */
static void numbers_are_not_trusted(void **state) {
    static const uint32_t values[] = { 0, 1, 4, 27, 431, 0x7FFFFFFF, 0xFFFFFFFF };
    (void)state;
    for (unsigned w = 0; w < WAYS; w += 3) {
        Chat c;
        QsfErr err = { 0 };
        uint32_t loaded;
        size_t len;
        unlink(snap_path);
        open_chat(&c, &ways[w], UINT64_MAX, 1);
        converse(&c);
        save(&c);
        uint8_t *data = read_file(&len), *head = data + QSF_SNAP_HEADER;
        const uint32_t n_states = head[16], fields = QSF_LISTS_WORDS + c.key.n_caches + n_states;
        const size_t table = 4 * (fields + SAVED);
        uint8_t *entries = head + HEAD + table + 4;
        uint32_t words[QSF_LISTS_WORDS], first[QSF_MAX_LAYERS];
        qsf_forward_lists(c.rt.fwd, words);
        qsf_forward_lists_first(c.rt.fwd, first);
        const uint64_t cache = qsf_forward_lists_bytes(c.rt.fwd, 0, words, first, SAVED);
        for (unsigned field = 0; field < fields + 6; field++)
            for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
                static const int32_t none[] = { 249 };
                uint8_t *at = field < fields ? head + HEAD + 4 * field : entries + 4 * (field - fields),
                        old[4];
                memcpy(old, at, 4);
                put32(at, values[i]);
                put32(head + HEAD + table, qsf_crc32(0, head + HEAD, table));
                put32(entries + cache, qsf_crc32(0, entries, (size_t)cache));
                write_file(data, len);
                prefill(&c, none, 1);
                (void)qsf_snapshot_load(&c.t, snap_path, &c.key, ids, N, &loaded, NULL, &err);
                prefill(&c, ids, SAVED + 40);
                prefill(&c, ids, N);
                memcpy(at, old, 4);
                put32(head + HEAD + table, qsf_crc32(0, head + HEAD, table));
                put32(entries + cache, qsf_crc32(0, entries, (size_t)cache));
            }
        free(data);
        close_chat(&c);
    }
}

static int setup(void **state) {
    static char model[512], snap[512];
    const QsfTinySpec spec = { .ctx = CTX };
    (void)state;
    snprintf(model, sizeof model, "%s", qsf_test_tmp("lists.gguf"));
    snprintf(snap, sizeof snap, "%s", qsf_test_tmp("lists.qsfsnap"));
    model_path = model;
    snap_path = snap;
    for (uint32_t i = 0; i < N; i++) ids[i] = (int32_t)((i * 7919u + i / 13 + 11) % 250);
    return qsf_test_write_tiny_llama(model_path, &spec);
}

static int teardown(void **state) {
    (void)state;
    unlink(snap_path);
    return unlink(model_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_saved_continues),   cmocka_unit_test(branches_are_evaluated),
        cmocka_unit_test(other_policies_are_refused), cmocka_unit_test(damage_is_found),
        cmocka_unit_test(numbers_are_not_trusted),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
