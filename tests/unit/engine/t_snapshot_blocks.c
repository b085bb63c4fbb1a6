/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Next-token blocks in snapshots: after a resume they draft what they draft in a conversation that was never
 * stopped; files without them, with others or of an earlier format are read; what is damaged is refused. */
#include <stdlib.h>
#include <sys/stat.h>

#include "src/base/bytes.h"
#include "src/base/crc32.h"
#include "src/engine/snapshot/snapshot.h"
#include "src/forward/nextn.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"

enum { N = 60, SAVED = 50, DRAFTS = 6, VOCAB = 300, AT_VERSION = 8, SEGMENT_HEAD = 40 };

static const char *model_path, *snap_path;
static atomic_int cancel;
static int32_t ids[N];

typedef struct Chat {
    QsfRuntime rt;
    QsfTimeline t;
    QsfSnapKey key;
} Chat;

/* What follows: logits of the model, and drafts of its blocks. */
typedef struct Result {
    float logits[VOCAB];
    int32_t draft[DRAFTS];
    float margin;
} Result;

static void open_chat(Chat *c, const char *source, uint32_t ctx) {
    QsfErr err = { 0 };
    QsfRuntimeOptions o = { .cancel = &cancel, .may_draft = true };
    c->key = (QsfSnapKey){ 0 };
    qsf_settings_default(&o.settings);
    o.settings.ctx = ctx;
    o.settings.threads = 1;
    o.settings.ram_budget = 1ull << 30; /* sanitizers take some of it */
    snprintf(o.settings.speculate, sizeof o.settings.speculate, "%s", source);
    qsf_test_expect_ok(qsf_runtime_open(&c->rt, model_path, &o, &err), &err);
    qsf_test_expect_ok(qsf_timeline_init(&c->t, &c->rt, &err), &err);
    qsf_test_expect_ok(qsf_snapshot_key(&c->key, &c->rt, &err), &err);
    assert_int_equal(c->rt.nextn != NULL, strcmp(source, "nextn") == 0);
}

static void close_chat(Chat *c) {
    qsf_timeline_free(&c->t);
    qsf_runtime_close(&c->rt);
}

static void prefill(Chat *c, uint32_t n) {
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_timeline_prefill(&c->t, ids, n, NULL, &err), &err);
}

static void save(Chat *c, uint32_t to) {
    QsfErr err = { 0 };
    const QsfSnapSave o = { .to = to };
    qsf_test_expect_ok(qsf_snapshot_save(&c->t, snap_path, &c->key, &o, &err), &err);
}

static int try_load(Chat *c, uint32_t *loaded, QsfErr *err) {
    return qsf_snapshot_load(&c->t, snap_path, &c->key, ids, N, loaded, NULL, err);
}

static uint32_t load(Chat *c) {
    QsfErr err = { 0 };
    uint32_t loaded = 0;
    qsf_test_expect_ok(try_load(c, &loaded, &err), &err);
    return loaded;
}

/* Evaluates the rest and drafts. */
static void go_on(Chat *c, Result *r) {
    memset(r, 0, sizeof *r);
    prefill(c, N);
    memcpy(r->logits, qsf_forward_logits(c->rt.fwd), sizeof r->logits);
    if (c->rt.nextn == NULL) return;
    assert_true(qsf_nextn_ready(c->rt.nextn, NULL));
    assert_int_equal(qsf_nextn_draft(c->rt.nextn, 9, DRAFTS, 0, r->draft, &r->margin), DRAFTS);
}

static void uninterrupted(Result *r) {
    Chat c;
    open_chat(&c, "nextn", 128);
    go_on(&c, r);
    close_chat(&c);
}

/* A file of two segments, from a conversation with drafts of `source`. */
static void make_file(const char *source, uint32_t to) {
    Chat c;
    unlink(snap_path);
    open_chat(&c, source, 128);
    prefill(&c, 21);
    save(&c, 0);
    prefill(&c, SAVED);
    save(&c, to);
    close_chat(&c);
}

/* Have the blocks seen the conversation from its beginning? */
static bool blocks_have(const Chat *c, uint32_t n) { return qsf_nextn_can_save(c->rt.nextn, n); }

static off_t size_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static uint8_t *read_file(size_t *len) {
    *len = (size_t)size_of(snap_path);
    uint8_t *data = malloc(*len);
    FILE *f = fopen(snap_path, "re");
    assert_true(data != NULL && f != NULL);
    assert_int_equal(fread(data, 1, *len, f), *len);
    (void)fclose(f);
    return data;
}

static void write_file(const void *data, size_t len) {
    FILE *f = fopen(snap_path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* ---- tests ---- */

static void drafts_go_on(void **state) {
    Chat c;
    Result want, have;
    (void)state;
    uninterrupted(&want);
    make_file("nextn", 0);
    for (uint32_t ctx = 128; ctx <= 256; ctx *= 2) {
        open_chat(&c, "nextn", ctx);
        assert_int_equal(load(&c), SAVED);
        assert_true(blocks_have(&c, SAVED));
        assert_true(qsf_nextn_ready(c.rt.nextn, NULL));
        go_on(&c, &have);
        assert_memory_equal(&have, &want, sizeof want);
        save(&c, 0); /* appended, and read again */
        close_chat(&c);
        open_chat(&c, "nextn", ctx);
        assert_int_equal(load(&c), N - 1);
        go_on(&c, &have);
        assert_memory_equal(&have, &want, sizeof want);
        close_chat(&c);
        make_file("nextn", 0);
    }
}

/* Up to the last states that are in the file it makes no difference where a conversation is cut. */
static void a_part_is_enough(void **state) {
    Chat c;
    Result want, have;
    (void)state;
    make_file("nextn", 0);
    for (uint32_t same = 45; same > 5; same -= 20) {
        ids[same]++;
        uninterrupted(&want);
        open_chat(&c, "nextn", 128);
        assert_int_equal(load(&c), same);
        assert_true(blocks_have(&c, same));
        assert_int_equal(qsf_nextn_ready(c.rt.nextn, NULL), same == 45);
        go_on(&c, &have);
        assert_memory_equal(have.logits, want.logits, sizeof want.logits);
        if (same == 45) assert_memory_equal(&have, &want, sizeof want);
        close_chat(&c);
        ids[same]--;
    }
    make_file("nextn", 40); /* the states of 34 to 39 are kept */
    uninterrupted(&want);
    open_chat(&c, "nextn", 128);
    assert_int_equal(load(&c), 40);
    go_on(&c, &have);
    assert_memory_equal(&have, &want, sizeof want);
    close_chat(&c);
}

/* Files that have no blocks, or are read by a program that uses none. */
static void blocks_are_optional(void **state) {
    Chat c;
    Result want, have;
    (void)state;
    uninterrupted(&want);
    make_file("nextn", 0);
    const off_t with = size_of(snap_path);
    open_chat(&c, "off", 128);
    assert_int_equal(load(&c), SAVED);
    go_on(&c, &have);
    assert_memory_equal(have.logits, want.logits, sizeof want.logits);
    close_chat(&c);
    make_file("off", 0);
    assert_true(size_of(snap_path) < with);
    open_chat(&c, "nextn", 128);
    assert_int_equal(load(&c), SAVED);
    assert_false(blocks_have(&c, SAVED));
    go_on(&c, &have);
    assert_memory_equal(have.logits, want.logits, sizeof want.logits);
    assert_memory_not_equal(&have.margin, &want.margin, sizeof have.margin);
    save(&c, 0); /* blocks that have not seen the beginning are not saved */
    close_chat(&c);
    open_chat(&c, "nextn", 128);
    assert_int_equal(load(&c), N - 1);
    assert_false(blocks_have(&c, N - 1));
    close_chat(&c);
}

/* A file of the first version is read, and the next save rewrites it. */
static void the_first_version_is_read(void **state) {
    Chat c;
    Result want, have;
    size_t len;
    (void)state;
    uninterrupted(&want);
    make_file("off", 0);
    uint8_t *data = read_file(&len);
    data[AT_VERSION] = 1;
    qsf_put_le32(data + QSF_SNAP_HEADER - 4, qsf_crc32(0, data, QSF_SNAP_HEADER - 4));
    write_file(data, len);
    free(data);
    open_chat(&c, "nextn", 128);
    assert_int_equal(load(&c), SAVED);
    go_on(&c, &have);
    assert_memory_equal(have.logits, want.logits, sizeof want.logits);
    save(&c, 0);
    close_chat(&c);
    data = read_file(&len);
    assert_int_equal(qsf_get_le32(data + AT_VERSION), QSF_SNAP_VERSION);
    free(data);
    open_chat(&c, "nextn", 128);
    assert_int_equal(load(&c), N - 1);
    close_chat(&c);
}

/* Whatever is damaged: it is refused, or the blocks are left out, or nothing of it counts; the logits are
 * those of the tokens, and blocks that were read draft what they should. */
static void check_damage(const Result *want, unsigned *refused, unsigned *without) {
    Chat c;
    Result have;
    QsfErr err = { 0 };
    uint32_t loaded = 0;
    open_chat(&c, "nextn", 128);
    if (try_load(&c, &loaded, &err) != QSF_OK) {
        assert_int_equal(err.code, QSF_E_MODEL);
        assert_int_equal(loaded, 0);
        ++*refused;
    }
    const bool whole = loaded == 0 || blocks_have(&c, loaded);
    *without += !whole;
    go_on(&c, &have);
    assert_memory_equal(have.logits, want->logits, sizeof want->logits);
    if (whole) assert_memory_equal(&have, want, sizeof have);
    close_chat(&c);
}

static void damage_is_found(void **state) {
    Result want;
    size_t len, without_blocks;
    unsigned refused = 0, without = 0;
    (void)state;
    uninterrupted(&want);
    make_file("off", 0);
    free(read_file(&without_blocks));
    make_file("nextn", 0);
    uint8_t *good = read_file(&len), *bad = malloc(len);
    assert_non_null(bad);
    assert_true(len > without_blocks);
    const size_t step = qsf_test_quick() ? 997 : 211;
    for (size_t at = QSF_SNAP_HEADER; at < len; at += at < QSF_SNAP_HEADER + SEGMENT_HEAD ? 1 : step) {
        memcpy(bad, good, len);
        bad[at] ^= 0x10;
        write_file(bad, len);
        check_damage(&want, &refused, &without);
    }
    assert_true(refused > 3);
    /* The head and the end of the last segment, which is of blocks: it is not there then. */
    without = 0;
    for (size_t at = len - 8; at < len; at++) {
        memcpy(bad, good, len);
        bad[at] ^= 0x10;
        write_file(bad, len);
        check_damage(&want, &refused, &without);
    }
    assert_int_equal(without, 8);
    for (size_t n = len - 1; n > QSF_SNAP_HEADER; n -= n > 4 * step ? 4 * step : n) {
        write_file(good, n);
        check_damage(&want, &refused, &without);
    }
    free(good);
    free(bad);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drafts_go_on),        cmocka_unit_test(a_part_is_enough),
        cmocka_unit_test(blocks_are_optional), cmocka_unit_test(the_first_version_is_read),
        cmocka_unit_test(damage_is_found),
    };
    static char model[512], snap[512];
    const QsfTinyNextn k = { .announced = 2, .extra = 2 };
    snprintf(model, sizeof model, "%s", qsf_test_tmp("blocks.gguf"));
    snprintf(snap, sizeof snap, "%s", qsf_test_tmp("blocks.qsfsnap"));
    model_path = model;
    snap_path = snap;
    if (qsf_test_write_tiny_nextn(model, &k) != 0) return 1;
    for (int i = 0; i < N; i++) ids[i] = (i * 7919 + 11) % VOCAB;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
