/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Snapshots: a conversation that was saved and loaded computes the logits of one that was never stopped; what
 * is damaged, foreign or cut is refused, and never changes a logit. */
#include "tests/harness/qsf_test.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "src/base/clock.h"
#include "src/base/crc32.h"
#include "src/engine/snapshot/snapshot.h"
#include "tests/harness/gguf_build.h"

enum { N = 60, VOCAB_MAX = 4096, LONG = 1500 };

static const char *model_path, *snap_path;
static atomic_int cancel;

typedef struct Chat {
    QsfRuntime rt;
    QsfTimeline t;
    QsfSnapKey key;
} Chat;

static void open_chat(Chat *c, const char *path, uint32_t ctx, uint64_t pin, int threads, const char *kv) {
    QsfErr err = { 0 };
    QsfRuntimeOptions o = { .cancel = &cancel };
    c->key = (QsfSnapKey){ 0 };
    qsf_settings_default(&o.settings);
    o.settings.ctx = ctx;
    o.settings.pin = pin;
    o.settings.threads = threads;
    o.settings.ram_budget += qsf_rss_bytes(); /* many models one after the other, also in an emulator */
    if (kv != NULL) snprintf(o.settings.kv, sizeof o.settings.kv, "%s", kv);
    qsf_test_expect_ok(qsf_runtime_open(&c->rt, path, &o, &err), &err);
    qsf_test_expect_ok(qsf_timeline_init(&c->t, &c->rt, &err), &err);
    qsf_test_expect_ok(qsf_snapshot_key(&c->key, &c->rt, &err), &err);
}

static void open_tiny(Chat *c) { open_chat(c, model_path, 128, UINT64_MAX, 1, NULL); }

static void close_chat(Chat *c) {
    qsf_timeline_free(&c->t);
    qsf_runtime_close(&c->rt);
}

static void fill(int32_t *ids, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) ids[i] = (int32_t)((i * 7919u + 11) % 250);
}

static uint32_t prefill(Chat *c, const int32_t *ids, uint32_t n) {
    QsfErr err = { 0 };
    uint32_t reused = 0;
    qsf_test_expect_ok(qsf_timeline_prefill(&c->t, ids, n, &reused, &err), &err);
    return reused;
}

static void save(Chat *c, uint32_t to) {
    QsfErr err = { 0 };
    const QsfSnapSave o = { .to = to };
    qsf_test_expect_ok(qsf_snapshot_save(&c->t, snap_path, &c->key, &o, &err), &err);
}

static uint32_t load(Chat *c, const int32_t *ids, uint32_t n) {
    QsfErr err = { 0 };
    uint32_t loaded = 0;
    qsf_test_expect_ok(qsf_snapshot_load(&c->t, snap_path, &c->key, ids, n, &loaded, NULL, &err), &err);
    return loaded;
}

static void expect_logits(Chat *c, const float *expected) {
    assert_memory_equal(qsf_forward_logits(c->rt.fwd), expected, c->rt.model.hp.n_vocab * sizeof(float));
}

/* The logits after ids[0..n) of a conversation that was never stopped. */
static void uninterrupted(const char *path, uint32_t ctx, const int32_t *ids, uint32_t n, float *logits) {
    Chat c;
    open_chat(&c, path, ctx, UINT64_MAX, 1, NULL);
    assert_true(c.rt.model.hp.n_vocab <= VOCAB_MAX);
    prefill(&c, ids, n);
    memcpy(logits, qsf_forward_logits(c.rt.fwd), c.rt.model.hp.n_vocab * sizeof *logits);
    close_chat(&c);
}

static off_t size_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* ---- saving and loading ---- */

static void what_was_saved_continues(void **state) {
    Chat c;
    int32_t ids[N];
    float logits[VOCAB_MAX];
    struct stat st;
    (void)state;
    fill(ids, N);
    uninterrupted(model_path, 128, ids, N, logits);
    unlink(snap_path);
    open_tiny(&c);
    assert_int_equal(load(&c, ids, N), 0); /* no file */
    prefill(&c, ids, 21);
    save(&c, 0);
    prefill(&c, ids, 50); /* appended */
    const off_t before = size_of(snap_path);
    save(&c, 0);
    assert_true(size_of(snap_path) > before);
    const off_t whole = size_of(snap_path);
    save(&c, 0); /* nothing new */
    assert_int_equal(size_of(snap_path), whole);
    close_chat(&c);
    assert_int_equal(stat(snap_path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    for (int i = 0; i < 4; i++) { /* other contexts, streamed weights, threads */
        open_chat(&c, model_path, i & 1 ? 256 : 64, i & 2 ? 0 : UINT64_MAX, 1 + i % 3, NULL);
        assert_int_equal(load(&c, ids, N), 50);
        assert_int_equal(prefill(&c, ids, N), 50);
        expect_logits(&c, logits);
        assert_int_equal(c.rt.ledger.refused_frozen, 0);
        close_chat(&c);
    }
}

static void a_common_prefix_is_enough(void **state) {
    Chat c;
    int32_t ids[N], other[N];
    float logits[VOCAB_MAX];
    (void)state;
    fill(ids, N);
    memcpy(other, ids, sizeof ids);
    for (uint32_t i = 37; i < N; i++) other[i] = (ids[i] + 1) % 250;
    uninterrupted(model_path, 128, other, N, logits);
    unlink(snap_path);
    open_tiny(&c);
    prefill(&c, ids, 55);
    save(&c, 0);
    close_chat(&c);
    open_tiny(&c);
    assert_int_equal(load(&c, other, N), 37);
    assert_int_equal(load(&c, other, N), 0); /* the timeline has it already */
    assert_int_equal(prefill(&c, other, N), 37);
    expect_logits(&c, logits);
    save(&c, 0); /* a branch replaces what differs */
    close_chat(&c);
    open_tiny(&c);
    assert_int_equal(load(&c, ids, N), 37);
    assert_int_equal(load(&c, other, N), N - 1);
    prefill(&c, other, N);
    expect_logits(&c, logits);
    close_chat(&c);
}

static void only_the_prompt_is_saved(void **state) {
    Chat c;
    int32_t ids[N];
    (void)state;
    fill(ids, N);
    unlink(snap_path);
    open_tiny(&c);
    prefill(&c, ids, 50);
    save(&c, 30);
    close_chat(&c);
    open_tiny(&c);
    assert_int_equal(load(&c, ids, N), 30);
    assert_int_equal(load(&c, ids + 1, N - 1), 0);
    close_chat(&c);
}

/* With 2 bits a conversation continues where its recent positions are held. */
static void recent_positions_are_saved(void **state) {
    enum { ALL = 200 };
    Chat c;
    int32_t ids[ALL];
    float logits[VOCAB_MAX];
    (void)state;
    fill(ids, ALL);
    open_chat(&c, model_path, 256, UINT64_MAX, 1, "q2");
    prefill(&c, ids, ALL);
    memcpy(logits, qsf_forward_logits(c.rt.fwd), c.rt.model.hp.n_vocab * sizeof *logits);
    close_chat(&c);
    unlink(snap_path);
    open_chat(&c, model_path, 256, UINT64_MAX, 1, "q2");
    assert_true(c.key.state_bytes > 0);
    prefill(&c, ids, 90);
    save(&c, 0);
    prefill(&c, ids, 150);
    save(&c, 0);
    close_chat(&c);
    for (int i = 0; i < 4; i++) {
        const uint32_t changed = i < 2 ? ALL : 120; /* the second half is of another conversation */
        if (changed < ALL) ids[changed]++;
        open_chat(&c, model_path, i & 1 ? 256 : 220, i & 1 ? 0 : UINT64_MAX, 1 + i % 3, "q2");
        assert_int_equal(load(&c, ids, ALL), changed < ALL ? 90 : 150);
        if (changed < ALL) ids[changed]--;
        prefill(&c, ids, ALL);
        expect_logits(&c, logits);
        close_chat(&c);
    }
}

/* A change in the middle of a long text continues at an older state, and one of its end at a newer one; what
 * other conversations begin with is always there. */
static void older_states_are_kept(void **state) {
    enum { ALL = 6000, LEAD = 70 };
    static const uint32_t changed[] = { ALL - 1, 5000, 3000, 1500, LEAD, LEAD - 1 };
    static int32_t ids[ALL];
    float logits[VOCAB_MAX];
    char mamba[256];
    Chat c;
    (void)state;
    snprintf(mamba, sizeof mamba, "%s", qsf_test_tmp("states.gguf"));
    assert_int_equal(qsf_test_write_tiny_mamba(mamba, 3), 0);
    fill(ids, ALL);
    unlink(snap_path);
    open_chat(&c, mamba, 8192, UINT64_MAX, 1, NULL);
    qsf_timeline_lead(&c.t, LEAD);
    prefill(&c, ids, ALL);
    save(&c, 0);
    close_chat(&c);
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        const uint32_t at = changed[i], n = at + 20 < ALL ? at + 20 : ALL;
        ids[at]++;
        uninterrupted(mamba, 8192, ids, n, logits);
        open_chat(&c, mamba, 8192, UINT64_MAX, 1, NULL);
        const uint32_t loaded = load(&c, ids, n);
        print_message("changed at %u: %u\n", at, loaded);
        assert_true(loaded <= at && loaded >= (at >= ALL / 2 ? at / 2 : at >= LEAD ? LEAD : 0));
        assert_int_equal(prefill(&c, ids, n), loaded);
        expect_logits(&c, logits);
        close_chat(&c);
        ids[at]--;
    }
    unlink(mamba);
}

/* Half of the file at most is waste. */
static void waste_is_bounded(void **state) {
    Chat c;
    int32_t ids[N];
    float logits[VOCAB_MAX];
    (void)state;
    fill(ids, N);
    unlink(snap_path);
    open_tiny(&c);
    prefill(&c, ids, N);
    save(&c, 0);
    const off_t once = size_of(snap_path);
    for (int i = 0; i < 20; i++) {
        for (uint32_t k = 20; k < N; k++) ids[k] = (ids[k] + 1) % 250;
        prefill(&c, ids, N);
        save(&c, 0);
        assert_true(size_of(snap_path) <= 3 * once);
    }
    close_chat(&c);
    uninterrupted(model_path, 128, ids, N, logits);
    open_tiny(&c);
    assert_int_equal(load(&c, ids, N), N - 1);
    prefill(&c, ids, N);
    expect_logits(&c, logits);
    close_chat(&c);
}

static bool at_once(void *arg) { return --*(int *)arg < 0; }

static void a_stopped_save_changes_nothing(void **state) {
    Chat c;
    int32_t ids[N];
    QsfErr err = { 0 };
    (void)state;
    fill(ids, N);
    unlink(snap_path);
    open_tiny(&c);
    for (int rows = 0; rows < 3; rows++) { /* a new file, then one that exists */
        QsfSnapSave o = { .stop = at_once, .arg = &rows };
        int left = rows;
        o.arg = &left;
        prefill(&c, ids, 50);
        qsf_test_expect_ok(qsf_snapshot_save(&c.t, snap_path, &c.key, &o, &err), &err);
        assert_int_equal(size_of(snap_path), 0);
    }
    prefill(&c, ids, 20);
    save(&c, 20);
    const off_t before = size_of(snap_path);
    int left = 1;
    const QsfSnapSave o = { .stop = at_once, .arg = &left };
    prefill(&c, ids, N);
    qsf_test_expect_ok(qsf_snapshot_save(&c.t, snap_path, &c.key, &o, &err), &err);
    assert_int_equal(size_of(snap_path), before);
    close_chat(&c);
    open_tiny(&c);
    assert_int_equal(load(&c, ids, N), 20);
    close_chat(&c);
}

/* ---- refusals ---- */

static void expect_refused(Chat *c, const int32_t *ids, QsfSnapKind kind, const char *part) {
    QsfErr err = { 0 };
    uint32_t loaded = 1;
    QsfSnapKind is;
    assert_int_equal(qsf_snapshot_load(&c->t, snap_path, &c->key, ids, N, &loaded, &is, &err), QSF_E_MODEL);
    qsf_test_expect_err(&err, QSF_E_MODEL, part);
    assert_int_equal(loaded, 0);
    assert_int_equal(is, kind);
}

static void write_file(const char *path, const void *data, size_t len) {
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static uint8_t *read_file(const char *path, size_t *len) {
    *len = (size_t)size_of(path);
    uint8_t *data = malloc(*len);
    FILE *f = fopen(path, "re");
    assert_true(data != NULL && f != NULL);
    assert_int_equal(fread(data, 1, *len, f), *len);
    (void)fclose(f);
    return data;
}

static void others_are_refused(void **state) {
    Chat c;
    int32_t ids[N];
    QsfErr err = { 0 };
    const QsfSnapSave o = { 0 };
    (void)state;
    fill(ids, N);
    unlink(snap_path);
    open_tiny(&c);
    prefill(&c, ids, 50);
    save(&c, 0);
    c.key.model++;
    expect_refused(&c, ids, QSF_SNAP_OTHER, "another model");
    close_chat(&c);
    open_chat(&c, model_path, 128, UINT64_MAX, 1, "f32");
    expect_refused(&c, ids, QSF_SNAP_OTHER, "other settings");
    prefill(&c, ids, 40);
    save(&c, 0); /* replaced */
    assert_int_equal(load(&c, ids, N), 0);
    prefill(&c, ids, 1);
    qsf_timeline_prefill(&c.t, ids + 1, 1, NULL, &err);
    assert_int_equal(load(&c, ids, N), 40);
    close_chat(&c);

    size_t len;
    uint8_t *data = read_file(snap_path, &len);
    open_tiny(&c);
    data[8] = 3; /* a newer format */
    write_file(snap_path, data, len);
    expect_refused(&c, ids, QSF_SNAP_ALIEN, "format 3");
    prefill(&c, ids, 50);
    assert_int_equal(qsf_snapshot_save(&c.t, snap_path, &c.key, &o, &err), QSF_E_MODEL);
    write_file(snap_path, "my text, not a snapshot\n", 24);
    expect_refused(&c, ids, QSF_SNAP_ALIEN, "is not a snapshot");
    err = (QsfErr){ 0 };
    assert_int_equal(qsf_snapshot_save(&c.t, snap_path, &c.key, &o, &err), QSF_E_MODEL);
    assert_int_equal(size_of(snap_path), 24);
    close_chat(&c);
    free(data);
}

/* Loads what is there; whether it is refused or taken, the logits are those of the tokens. */
static void check_damage(Chat *c, const int32_t *ids, const float *logits) {
    QsfErr err = { 0 };
    uint32_t loaded;
    static const int32_t none[] = { 249, 3 };
    prefill(c, none, 1); /* forget what the last file gave */
    int rc = qsf_snapshot_load(&c->t, snap_path, &c->key, ids, N, &loaded, NULL, &err);
    assert_true(rc == QSF_OK || rc == QSF_E_MODEL);
    if (loaded == 0 && c->t.n_ids <= 1) return; /* the text is evaluated */
    prefill(c, ids, N);
    expect_logits(c, logits);
}

static void patch(size_t at, uint8_t value) {
    int fd = open(snap_path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &value, 1, (off_t)at), 1);
    close(fd);
}

/* What a file tells that ends after `len` bytes of a good one. */
static QsfSnapKind told_of_cut(Chat *c, const int32_t *ids, const uint8_t *data, size_t len,
                               uint32_t *loaded) {
    QsfErr err = { 0 };
    QsfSnapKind kind;
    write_file(snap_path, data, len);
    prefill(c, (const int32_t[]){ 249 }, 1);
    const int rc = qsf_snapshot_load(&c->t, snap_path, &c->key, ids, N, loaded, &kind, &err);
    assert_int_equal(rc, kind == QSF_SNAP_DAMAGED ? QSF_E_MODEL : QSF_OK);
    assert_true(kind == QSF_SNAP_OURS || strstr(err.msg, "damaged") != NULL);
    return kind;
}

/* Whole segments before the end of a cut file count; without one the file is damaged. It is replaced. */
static void a_cut_is_told(void **state) {
    Chat c;
    int32_t ids[N];
    size_t len;
    uint32_t loaded;
    QsfErr err = { 0 };
    const QsfSnapSave o = { 0 };
    (void)state;
    fill(ids, N);
    unlink(snap_path);
    open_tiny(&c);
    prefill(&c, ids, 20);
    save(&c, 0);
    const size_t first = (size_t)size_of(snap_path);
    prefill(&c, ids, 36);
    save(&c, 0);
    uint8_t *data = read_file(snap_path, &len);
    assert_int_equal(told_of_cut(&c, ids, data, len, &loaded), QSF_SNAP_OURS);
    assert_int_equal(told_of_cut(&c, ids, data, first, &loaded), QSF_SNAP_OURS);
    assert_int_equal(told_of_cut(&c, ids, data, QSF_SNAP_HEADER, &loaded), QSF_SNAP_DAMAGED);
    assert_int_equal(told_of_cut(&c, ids, data, first / 2, &loaded), QSF_SNAP_DAMAGED);
    assert_int_equal(told_of_cut(&c, ids, data, first - 1, &loaded), QSF_SNAP_DAMAGED);
    assert_int_equal(loaded, 0);
    assert_int_equal(told_of_cut(&c, ids, data, first + 1, &loaded), QSF_SNAP_CUT);
    assert_int_equal(told_of_cut(&c, ids, data, len - 1, &loaded), QSF_SNAP_CUT);
    assert_int_equal(loaded, 20);
    data[len - 1] ^= 1;
    assert_int_equal(told_of_cut(&c, ids, data, len, &loaded), QSF_SNAP_CUT);
    qsf_test_expect_ok(qsf_snapshot_save(&c.t, snap_path, &c.key, &o, &err), &err);
    free(data);
    data = read_file(snap_path, &len);
    assert_int_equal(told_of_cut(&c, ids, data, len, &loaded), QSF_SNAP_OURS);
    assert_int_equal(loaded, 20);
    /* While another program adds to it, its end is not there yet. */
    const int fd = open(snap_path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    data = realloc(data, len + 1);
    assert_non_null(data);
    data[len] = 'S';
    assert_int_equal(told_of_cut(&c, ids, data, len + 1, &loaded), QSF_SNAP_OURS);
    close(fd);
    assert_int_equal(told_of_cut(&c, ids, data, len + 1, &loaded), QSF_SNAP_CUT);
    free(data);
    close_chat(&c);
}

static void damage_is_found(void **state) {
    Chat c;
    int32_t ids[N];
    float logits[VOCAB_MAX];
    size_t len;
    (void)state;
    fill(ids, N);
    uninterrupted(model_path, 128, ids, N, logits);
    unlink(snap_path);
    open_tiny(&c);
    prefill(&c, ids, 20);
    save(&c, 0);
    prefill(&c, ids, 36);
    save(&c, 0);
    uint8_t *data = read_file(snap_path, &len);
    for (size_t at = 0; at < len; at += at < 800 || at + 64 > len ? 1 : 13) {
        patch(at, data[at] ^ (uint8_t)(1u << at % 8));
        check_damage(&c, ids, logits);
        patch(at, data[at]);
    }
    for (size_t cut = len; cut-- > 0; cut -= cut < 40 ? cut : 40) {
        assert_int_equal(truncate(snap_path, (off_t)cut), 0);
        check_damage(&c, ids, logits);
    }
    free(data);
    close_chat(&c);
}

static void put32(uint8_t *p, uint32_t v) {
    for (unsigned i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

/* Numbers that a file with correct checksums may contain. */
static void lengths_are_not_trusted(void **state) {
    static const uint32_t values[] = { 0, 1, 4, 5, 16, 17, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF };
    Chat c;
    int32_t ids[N];
    float logits[VOCAB_MAX];
    size_t len;
    (void)state;
    fill(ids, N);
    uninterrupted(model_path, 128, ids, N, logits);
    unlink(snap_path);
    open_tiny(&c);
    prefill(&c, ids, 36);
    save(&c, 0);
    uint8_t *data = read_file(snap_path, &len);
    uint8_t *head = data + QSF_SNAP_HEADER;
    for (unsigned field = 4; field < 36; field += 4)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            uint8_t old[40];
            memcpy(old, head, sizeof old);
            put32(head + field, values[i]);
            put32(head + 36, qsf_crc32(0, head, 36));
            put32(data + len - 4, qsf_crc32(0, head, 36)); /* the end repeats it */
            write_file(snap_path, data, len);
            check_damage(&c, ids, logits);
            memcpy(head, old, sizeof old);
        }
    /* The first row of each cache, with the checksum of the table. */
    const size_t table = c.key.n_caches * 4 + 36 * 4;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        put32(head + 36, qsf_crc32(0, head, 36));
        put32(data + len - 4, qsf_crc32(0, head, 36));
        put32(head + 40, values[i]);
        put32(head + 40 + table, qsf_crc32(0, head + 40, table));
        write_file(snap_path, data, len);
        check_damage(&c, ids, logits);
    }
    free(data);
    close_chat(&c);
}

/* ---- room ---- */

static void the_oldest_are_dropped(void **state) {
    char dir[256], path[3][300];
    uint8_t kb[1000] = { 0 };
    (void)state;
    snprintf(dir, sizeof dir, "%s", qsf_test_tmp("snapshots"));
    assert_int_equal(mkdir(dir, 0700), 0);
    for (int i = 0; i < 3; i++) {
        const struct timespec t[2] = { { .tv_sec = 1000 + i }, { .tv_sec = 1000 + i } };
        snprintf(path[i], sizeof path[i], "%s/%d.qsfsnap", dir, i);
        write_file(path[i], kb, sizeof kb);
        assert_int_equal(utimensat(AT_FDCWD, path[i], t, 0), 0);
    }
    assert_true(qsf_snapshot_make_room(path[2], 1000, 4000));
    assert_int_equal(size_of(path[0]), 1000);
    assert_true(qsf_snapshot_make_room(path[2], 1000, 3999));
    assert_int_equal(size_of(path[0]), 0);
    assert_int_equal(size_of(path[1]), 1000);
    assert_false(qsf_snapshot_make_room(path[2], 1000, 1999));
    assert_int_equal(size_of(path[1]), 0);
    assert_int_equal(size_of(path[2]), 1000); /* never its own */
    assert_true(qsf_snapshot_default_limit(path[2]) > 0);
    unlink(path[2]);
    assert_int_equal(rmdir(dir), 0);
}

/* ---- every kind of cache ---- */

static const char *const kinds[] = { "llama",          "gemma3",     "gpt-oss",       "cohere2",
                                     "deepseek2_lite", "minicpm3",   "mamba",         "mamba2",
                                     "jamba",          "falcon-h1",  "granitehybrid", "lfm2",
                                     "rwkv7",          "qwen3next",  "rwkv6",         "glm-dsa",
                                     "kimi-linear",    "deepseek32", "exaone4_swa" };

/* Saved twice, long after the window has moved on; then loaded whole, and up to the middle. */
static void one_kind(const char *name) {
    static int32_t ids[LONG];
    static float logits[VOCAB_MAX];
    char path[300], part[128];
    Chat c;
    snprintf(part, sizeof part, "architectures/%s/model.gguf", name);
    const char *found = qsf_test_data(part);
    if (found == NULL) return;
    snprintf(path, sizeof path, "%s", found);
    const uint32_t n = qsf_test_quick() && strcmp(name, "gemma3") != 0 ? 150 : LONG;
    fill(ids, n);
    uninterrupted(path, 2048, ids, n, logits);
    unlink(snap_path);
    open_chat(&c, path, 2048, UINT64_MAX, 1, NULL);
    prefill(&c, ids, n / 2);
    save(&c, 0);
    prefill(&c, ids, n - 20);
    save(&c, 0);
    close_chat(&c);
    open_chat(&c, path, 3072, 0, 2, NULL);
    assert_int_equal(load(&c, ids, n), n - 20);
    assert_int_equal(prefill(&c, ids, n), n - 20);
    expect_logits(&c, logits);
    close_chat(&c);
    open_chat(&c, path, 2048, UINT64_MAX, 1, NULL);
    assert_int_equal(load(&c, ids, n / 2 + 1), n / 2);
    assert_int_equal(prefill(&c, ids, n), n / 2);
    expect_logits(&c, logits);
    close_chat(&c);
}

static void every_kind_of_cache(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        print_message("%s\n", kinds[i]);
        one_kind(kinds[i]);
    }
}

static int setup(void **state) {
    static char model[256], snap[256];
    (void)state;
    unsetenv("QSF_CPU_MASK");
    snprintf(model, sizeof model, "%s", qsf_test_tmp("snapshot.gguf"));
    snprintf(snap, sizeof snap, "%s", qsf_test_tmp("chat.qsfsnap"));
    model_path = model;
    snap_path = snap;
    return qsf_test_write_tiny_llama(model, NULL);
}

static int teardown(void **state) {
    (void)state;
    unlink(snap_path);
    return unlink(model_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_saved_continues),
        cmocka_unit_test(recent_positions_are_saved),
        cmocka_unit_test(older_states_are_kept),
        cmocka_unit_test(a_common_prefix_is_enough),
        cmocka_unit_test(only_the_prompt_is_saved),
        cmocka_unit_test(waste_is_bounded),
        cmocka_unit_test(a_stopped_save_changes_nothing),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(a_cut_is_told),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(lengths_are_not_trusted),
        cmocka_unit_test(the_oldest_are_dropped),
        cmocka_unit_test(every_kind_of_cache),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
