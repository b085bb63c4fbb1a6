/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: a damaged snapshot of a conversation. The input is a list of patches of a good file
 * (offset in two bytes, value in one), after a byte that says whether the checksums of headers and
 * tables are repaired, and whether it is of a cache of 2 bits, which has states, of one with an
 * eviction policy, or of a model with next-token blocks. Whatever is loaded, the logits must be those
 * of the tokens, unless where states belong, or what was evicted, was forged. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/bytes.h"
#include "src/base/crc32.h"
#include "src/engine/snapshot/snapshot.h"
#include "src/forward/nextn.h"
#include "tests/harness/gguf_build.h"

enum { N = 140, SAVED = 132, CTX = 96, HEAD = 40, FILE_MAX = 1 << 16, VOCAB_MAX = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A conversation with a type of the cache. */
typedef struct Target {
    QsfRuntime rt;
    QsfTimeline timeline;
    QsfSnapKey key;
    float logits[VOCAB_MAX];
    uint8_t good[FILE_MAX];
    size_t good_len;
} Target;

enum { PLAIN, STATES, LISTS, BLOCKS, TARGETS };
static Target targets[TARGETS];
static int32_t ids[N];

static void must(bool ok) {
    if (!ok) abort();
}

static void prefill(Target *t, const int32_t *of, size_t n) {
    must(qsf_timeline_prefill(&t->timeline, of, n, NULL, NULL) == QSF_OK);
}

static void save(Target *t, const char *path) {
    const QsfSnapSave o = { 0 };
    must(qsf_snapshot_save(&t->timeline, path, &t->key, &o, NULL) == QSF_OK);
}

/* A file of two segments. */
static void make_good(Target *t, const char *path) {
    prefill(t, ids, SAVED / 2);
    save(t, path);
    prefill(t, ids, SAVED);
    save(t, path);
    FILE *f = fopen(path, "rb");
    must(f != NULL);
    t->good_len = fread(t->good, 1, FILE_MAX, f);
    must(t->good_len > QSF_SNAP_HEADER && t->good_len < FILE_MAX);
    fclose(f);
}

static void close_all(void) {
    for (unsigned i = 0; i < TARGETS; i++) {
        qsf_timeline_free(&targets[i].timeline);
        qsf_runtime_close(&targets[i].rt);
    }
}

static void open_target(Target *t, const char *model, const char *path, const char *kv, const char *policy) {
    QsfRuntimeOptions o = { 0 };
    qsf_settings_default(&o.settings);
    o.settings.threads = 1;
    snprintf(o.settings.kv, sizeof o.settings.kv, "%s", kv);
    snprintf(o.settings.eviction, sizeof o.settings.eviction, "%s", policy);
    if (policy[0] != '\0') o.settings.ctx = CTX;
    o.may_draft = t == &targets[BLOCKS];
    if (o.may_draft) snprintf(o.settings.speculate, sizeof o.settings.speculate, "nextn");
    must(qsf_runtime_open(&t->rt, model, &o, NULL) == QSF_OK);
    must(qsf_timeline_init(&t->timeline, &t->rt, NULL) == QSF_OK &&
         qsf_snapshot_key(&t->key, &t->rt, NULL) == QSF_OK);
    make_good(t, path);
    prefill(t, ids, N);
    must(t->rt.model.hp.n_vocab <= VOCAB_MAX);
    memcpy(t->logits, qsf_forward_logits(t->rt.fwd), t->rt.model.hp.n_vocab * sizeof *t->logits);
    unlink(path);
}

static void prepare(void) {
    char dir[] = "/tmp/fuzz_snapshot.XXXXXX", model[64], path[64];
    must(mkdtemp(dir) != NULL);
    snprintf(model, sizeof model, "%s/m.gguf", dir);
    snprintf(path, sizeof path, "%s/s.qsfsnap", dir);
    for (int32_t i = 0; i < N; i++) ids[i] = (i * 7919 + 11) % 250;
    must(qsf_test_write_tiny_llama(model, NULL) == 0);
    atexit(close_all); /* what is mapped hides pointers from the leak check */
    open_target(&targets[PLAIN], model, path, "f16", "");
    open_target(&targets[STATES], model, path, "q2", "");
    open_target(&targets[LISTS], model, path, "f16", "h2o");
    must(qsf_test_write_tiny_nextn(model, &(QsfTinyNextn){ .announced = 2, .extra = 2 }) == 0);
    open_target(&targets[BLOCKS], model, path, "q8", "");
    must(targets[BLOCKS].rt.nextn != NULL);
    unlink(model);
    rmdir(dir);
}

static void put32(uint8_t *p, uint32_t v) {
    for (unsigned i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

/* Of a segment, whose table has `table` bytes. */
static void repair_segment(const Target *t, uint8_t *file, size_t at, size_t table) {
    uint8_t *head = file + at;
    put32(head + HEAD - 4, qsf_crc32(0, head, HEAD - 4));
    put32(head + HEAD + table, qsf_crc32(0, head + HEAD, table));
    const uint64_t bytes = qsf_get_le64(head + 24); /* the end repeats the checksum of the head */
    if (bytes >= 4 && bytes <= t->good_len - at) memcpy(head + bytes - 4, head + HEAD - 4, 4);
}

static size_t blocks_table(const Target *t) {
    size_t sum = 2;
    for (uint32_t i = 0; i < qsf_nextn_n(t->rt.nextn); i++)
        sum += 4 + qsf_forward_n_caches(qsf_nextn_pass(t->rt.nextn, i));
    return 4 * sum;
}

/* Of the first segment, and of the blocks that follow it. */
static void repair(const Target *t, uint8_t *file) {
    const bool lists = t == &targets[LISTS];
    const size_t n_states = t->key.state_bytes > 0, n = lists ? QSF_LISTS_WORDS + SAVED : SAVED / 2,
                 table = 4 * (t->key.n_caches + n_states + n);
    put32(file + QSF_SNAP_HEADER - 4, qsf_crc32(0, file, QSF_SNAP_HEADER - 4));
    if (t == &targets[BLOCKS])
        repair_segment(t, file, QSF_SNAP_HEADER + (size_t)qsf_get_le64(t->good + QSF_SNAP_HEADER + 24),
                       blocks_table(t));
    repair_segment(t, file, QSF_SNAP_HEADER, table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t file[FILE_MAX];
    static const int32_t other = 249;
    char path[64];
    uint32_t loaded;
    if (targets[0].rt.fwd == NULL) prepare();
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || size < 3) return fd < 0 ? 0 : close(fd);
    Target *t = &targets[(data[0] >> 2) % TARGETS];
    const bool forged = (t == &targets[STATES] || t == &targets[LISTS]) && (data[0] & 1) != 0;
    memcpy(file, t->good, t->good_len);
    for (size_t i = 3; i + 2 < size; i += 3)
        file[(data[i] | (size_t)data[i + 1] << 8) % t->good_len] = data[i + 2];
    if (data[0] & 1) repair(t, file);
    const size_t len = data[0] & 2 ? (data[1] | (size_t)data[2] << 8) % (t->good_len + 1) : t->good_len;
    if (write(fd, file, len) == (ssize_t)len) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        prefill(t, &other, 1);
        (void)qsf_snapshot_load(&t->timeline, path, &t->key, ids, N, &loaded, NULL, NULL);
        if (loaded > 0) {
            prefill(t, ids, N);
            must(forged || memcmp(qsf_forward_logits(t->rt.fwd), t->logits,
                                  t->rt.model.hp.n_vocab * sizeof *t->logits) == 0);
        }
    }
    close(fd);
    return 0;
}
