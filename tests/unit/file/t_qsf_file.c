/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF files: a converted model is read back unchanged, every field damaged, truncated and extended files. */
#include "tests/harness/source_rig.h"

#include "src/file/dtype.h"
#include "src/file/qsf/fields.h"
#include "src/file/qsf/names.h"
#include "src/file/qsf/verify.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_made.h"

/* --- conversion --- */

static void carry(const char *gguf, const char *qsf, uint32_t flags) {
    QsfErr e = { 0 };
    uint64_t before = ledger.total;
    QsfSource *s = open_ok(gguf);
    qsf_test_expect_ok(qsf_test_carry(s, qsf, flags, &e), &e);
    qsf_source_close(s);
    assert_int_equal(ledger.total, before);
}

static void expect_same_tensors(const QsfSource *a, const QsfSource *b) {
    assert_int_equal(qsf_source_n_tensors(a), qsf_source_n_tensors(b));
    for (uint64_t i = 0; i < qsf_source_n_tensors(a); i++) {
        const QsfTensor *x = qsf_source_tensor(a, i), *y = qsf_source_find_tensor(b, x->name);
        assert_non_null(y);
        assert_int_equal(x->dtype, y->dtype);
        assert_int_equal(x->n_dims, y->n_dims);
        assert_memory_equal(x->ne, y->ne, sizeof x->ne);
        assert_int_equal(x->bytes, y->bytes);
        unsigned char *p = tensor_bytes(a, x), *q = tensor_bytes(b, y);
        assert_memory_equal(p, q, (size_t)x->bytes);
        free(p);
        free(q);
    }
}

static void array_bytes(const QsfSource *s, const QsfMetaEntry *e, unsigned char *out) {
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_file_pread(&s->files[0], out, (size_t)e->v.arr.bytes, e->v.arr.off, &err), &err);
}

static void expect_same_entry(const QsfSource *a, const QsfSource *b, const QsfMetaEntry *x) {
    const QsfMetaEntry *y = qsf_meta_find(&b->meta, x->key);
    assert_non_null(y);
    assert_int_equal(x->type, y->type);
    if (x->type == QSF_META_STRING) {
        assert_int_equal(x->v.str.len, y->v.str.len);
        assert_memory_equal(x->v.str.s, y->v.str.s, (size_t)x->v.str.len);
    } else if (x->type == QSF_META_ARRAY) {
        assert_int_equal(x->elem, y->elem);
        assert_int_equal(x->v.arr.count, y->v.arr.count);
        assert_int_equal(x->v.arr.bytes, y->v.arr.bytes);
        unsigned char *p = malloc((size_t)x->v.arr.bytes + 1), *q = malloc((size_t)x->v.arr.bytes + 1);
        array_bytes(a, x, p);
        array_bytes(b, y, q);
        assert_memory_equal(p, q, (size_t)x->v.arr.bytes);
        free(p);
        free(q);
    } else {
        assert_int_equal(x->v.u, y->v.u);
    }
}

/* All metadata of a is in b; additional entries of b are its own. */
static void expect_same_meta(const QsfSource *a, const QsfSource *b) {
    for (uint32_t i = 0; i < a->meta.n; i++) /* checksums depend on the file, whose offsets differ */
        if (strncmp(a->meta.e[i].key, "qsf.crc32.", 10) != 0) expect_same_entry(a, b, &a->meta.e[i]);
    for (uint32_t i = 0; i < b->meta.n; i++) {
        const char *key = b->meta.e[i].key;
        assert_true(qsf_meta_has(a, key) || strncmp(key, "qsf.", 4) == 0 ||
                    strcmp(key, "llama.rope.freq_base") == 0);
    }
}

static void expect_verified(const char *path, const QsfSource *s) {
    QsfErr e = { 0 };
    QsfVerifyReport r;
    qsf_test_expect_ok(qsf_verify_file(path, &ledger, &r, &e), &e);
    assert_int_equal(r.bytes, qsf_source_bytes(s));
    assert_int_equal(r.n_layers, 2);
    assert_true(r.n_tensors > 0);
}

static void test_round_trip(void **state) {
    (void)state;
    static const QsfTinySpec specs[] = {
        { .wtype = 0 },
        { .wtype = 1, .tied = true },
        { .wtype = 2, .biases = true, .rope_freqs = true },
        { .wtype = 8, .head_dim = 24, .chat_template = "{{ messages }}" },
    };
    static const uint32_t flags[] = { 0, QSFF_PAGES, QSFF_LINES, QSFF_PAGES | QSFF_LINES };
    const char *gguf = qsf_test_tmp("a.gguf"), *qsf = qsf_test_tmp("b.qsf"), *again = qsf_test_tmp("c.qsf");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        assert_int_equal(qsf_test_write_tiny_llama(gguf, &specs[i]), 0);
        carry(gguf, qsf, flags[i]);
        QsfSource *a = open_ok(gguf), *b = open_ok(qsf);
        assert_string_equal(qsf_source_format(b), "QSF v1");
        expect_same_tensors(a, b);
        expect_same_meta(a, b);
        expect_verified(qsf, b);
        for (uint64_t t = 0;
             t < qsf_source_n_tensors(b) && (flags[i] & QSFF_PAGES) && (flags[i] & QSFF_LINES); t++)
            if (strncmp(qsf_source_tensor(b, t)->name, "blk.", 4) == 0)
                assert_int_equal(qsf_source_tensor(b, t)->offset % 64, 0);
        carry(qsf, again, flags[i]); /* nothing is lost or duplicated from one QSF file to the next */
        QsfSource *c = open_ok(again);
        expect_same_tensors(b, c);
        expect_same_meta(b, c);
        assert_int_equal(b->meta.n, c->meta.n);
        qsf_source_close(a);
        qsf_source_close(b);
        qsf_source_close(c);
        unlink(again);
    }
    unlink(gguf);
    unlink(qsf);
}

/* --- every part of a small file, spelled out --- */

/* One layer, F16 matrices: 260 tokens, hidden 32. */
static void write_small(const char *qsf, uint32_t flags) {
    const QsfTinySpec spec = {
        .layers = 1, .hidden = 32, .heads = 2, .kv_heads = 1, .ffn = 48, .vocab = 260, .ctx = 64, .wtype = 1
    };
    const char *gguf = qsf_test_tmp("small.gguf");
    assert_int_equal(qsf_test_write_tiny_llama(gguf, &spec), 0);
    carry(gguf, qsf, flags);
    unlink(gguf);
}

static void test_places(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("p.qsf");
    write_small(path, QSFF_PAGES | QSFF_LINES);
    QsfImage m = load(path);
    QsfImageMap at = qsf_image_map(&m);
    assert_int_equal(at.index, 4096);
    assert_int_equal(at.meta, 8192);
    assert_int_equal(at.embed % 4096, 0);
    assert_true(at.embed >= at.meta + at.meta_len && at.embed - at.meta - at.meta_len < 4096);
    static const unsigned char embed[16] = {
        7, 0, 0, 0, 0, 0x41, 0, 0, 4, 1, 0, 0, 32, 0, 0, 0
    }; /* 260 x 32 in fp16 */
    assert_memory_equal(m.b + at.embed, embed, sizeof embed);
    const unsigned char *e = m.b + at.index;
    uint64_t layer = qsf_image_get(e, 8);
    assert_int_equal(layer, at.embed + 20480); /* 16 + 16640, rounded up to a multiple of 4096 */
    assert_int_equal(e[16], 7);                /* all matrices are fp16 */
    assert_int_equal(e[17], 0);
    assert_int_equal(qsf_image_get(e + 18, 2), 9);
    assert_int_equal(qsf_image_get(e + 20, 4), qsf_image_crc(&m, layer, qsf_image_get(e + 8, 4)));
    assert_int_equal(qsf_image_get(e + 8, 4), qsf_image_get(e + 12, 4));
    /* The attention norm: 48 zeros, its header, 32 floats; then Q, whose header ends at the
     * next multiple of 64. */
    static const unsigned char norm[16] = { 7, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0, 8, 0, 0, 0 };
    static const unsigned char q[16] = { 0, 0, 0, 0, 32, 0, 0, 0, 32, 0, 0, 0, 7, 0, 0, 0 };
    static const unsigned char zeros[48] = { 0 };
    assert_memory_equal(m.b + layer, zeros, sizeof zeros);
    assert_memory_equal(m.b + layer + 48, norm, sizeof norm);
    assert_memory_equal(m.b + layer + 64 + 128 + 48, q, sizeof q);
    /* The final section: 32 halves, no tied head, the norm in fp32, the head. */
    static const unsigned char exact[16] = { 32, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0, 8, 0, 0, 0 };
    static const unsigned char head[16] = { 26, 0, 0, 0, 4, 1, 0, 0, 32, 0, 0, 0, 7, 0, 0, 0 };
    assert_int_equal(m.b[at.last + 64], 0x00);
    assert_memory_equal(m.b + at.last + 112, exact, sizeof exact);
    assert_memory_equal(m.b + at.last + 128 + 128 + 48, head, sizeof head);
    assert_int_equal(m.len, at.last + 320 + 260 * 64);
    assert_int_equal(qsf_image_get(m.b + 92, 4), m.len);
    free(m.b);
    unlink(path);
}

/* Opens and verifies b as a file. Both agree on whether it is valid, or only the verifier, which checks more,
 * refuses it. Every refusal names the file and a place. */
static int try_image(const QsfImage *m, QsfErr *e) {
    const char *path = qsf_test_tmp("damaged.qsf");
    QsfSource *s;
    QsfErr v = { 0 };
    QsfVerifyReport r;
    assert_int_equal(qsf_test_write_file(path, m->b, m->len), 0);
    qsf_err_clear(e);
    int rc = qsf_source_open(&s, path, &ledger, e);
    if (rc == QSF_OK) qsf_source_close(s);
    assert_int_equal(ledger.total, 0);
    int rv = qsf_verify_file(path, &ledger, &r, &v);
    assert_int_equal(ledger.total, 0);
    unlink(path);
    if (rc != QSF_OK) {
        assert_int_equal(rc, QSF_E_MODEL);
        assert_non_null(strstr(e->msg, "damaged.qsf"));
        assert_int_equal(rv, QSF_E_MODEL);
    }
    if (rv != QSF_OK) {
        assert_int_equal(rv, QSF_E_MODEL);
        assert_non_null(strstr(v.msg, "damaged.qsf"));
        if (strstr(v.msg, "offset") == NULL && strstr(v.msg, "is missing") == NULL)
            fail_msg("the message has no place: %s", v.msg);
    }
    return rc != QSF_OK ? rc : rv;
}

static uint64_t random64(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

typedef struct Field {
    unsigned at, bytes;
    bool free; /* another value may be valid as well */
} Field;

/* A field set to 0, to its maximum and to random values, with old and with correct checksums. */
static void damage(QsfImage *m, const QsfImageMap *at, uint64_t base, const Field *f, uint64_t *seed) {
    unsigned char old[8];
    QsfErr e = { 0 };
    QsfImage copy = { malloc(m->len), m->len };
    assert_non_null(copy.b);
    memcpy(old, m->b + base + f->at, f->bytes);
    for (int k = 0; k < 6; k++) {
        memcpy(copy.b, m->b, m->len);
        qsf_image_put(copy.b + base + f->at, f->bytes,
                      k == 0   ? 0
                      : k == 1 ? UINT64_MAX
                               : random64(seed) >> (k == 5 ? 56 : 0));
        if (memcmp(copy.b + base + f->at, old, f->bytes) == 0) continue;
        if (try_image(&copy, &e) == QSF_OK)
            fail_msg("field %u of %u bytes at %llu: not detected", f->at, f->bytes, (unsigned long long)base);
        qsf_image_fix(&copy, at);
        if (try_image(&copy, &e) == QSF_OK && !f->free && memcmp(copy.b + base + f->at, old, f->bytes) != 0)
            fail_msg("field %u of %u bytes at %llu, with correct checksums: not detected", f->at, f->bytes,
                     (unsigned long long)base);
    }
    free(copy.b);
}

static void test_damaged_fields(void **state) {
    (void)state;
    static const Field header[] = {
        { 0, 4, false },   { 4, 4, false },   { 8, 4, false },  { 12, 4, true },  { 16, 4, false },
        { 20, 4, false },  { 24, 4, false },  { 28, 4, false }, { 32, 4, false }, { 36, 4, false },
        { 40, 4, false },  { 44, 4, false },  { 48, 1, false }, { 49, 1, true },  { 50, 1, true },
        { 51, 1, true },   { 52, 4, true },   { 56, 8, false }, { 64, 8, false }, { 72, 8, false },
        { 80, 4, false },  { 84, 4, false },  { 88, 4, true },  { 92, 4, false }, { 96, 4, true },
        { 100, 8, false }, { 108, 8, false }, { 116, 4, true }, { 120, 4, true }, { 124, 4, true },
    };
    static const Field index[] = { { 0, 8, false },  { 8, 4, false },  { 12, 4, false },
                                   { 16, 1, false }, { 17, 1, false }, { 18, 2, false },
                                   { 20, 4, true },  { 24, 4, true },  { 28, 4, false } };
    static const Field embed[] = { { 0, 1, false }, { 1, 1, false }, { 2, 2, false },
                                   { 4, 4, false }, { 8, 4, false }, { 12, 4, false } };
    static const Field tensor[] = { { 0, 4, false }, { 4, 4, false },  { 8, 4, false },
                                    { 12, 1, true }, { 13, 1, false }, { 14, 2, false } };
    const char *path = qsf_test_tmp("d.qsf");
    uint64_t seed = 7;
    write_small(path, 0);
    QsfImage m = load(path);
    unlink(path);
    QsfImageMap at = qsf_image_map(&m);
    uint64_t layer = qsf_image_get(m.b + at.index, 8);
    for (size_t i = 0; i < sizeof header / sizeof *header; i++) damage(&m, &at, 0, &header[i], &seed);
    for (size_t i = 0; i < sizeof index / sizeof *index; i++) damage(&m, &at, at.index, &index[i], &seed);
    for (size_t i = 0; i < sizeof embed / sizeof *embed; i++) damage(&m, &at, at.embed, &embed[i], &seed);
    for (size_t i = 0; i < sizeof tensor / sizeof *tensor; i++) damage(&m, &at, layer, &tensor[i], &seed);
    for (size_t i = 0; i < sizeof tensor / sizeof *tensor; i++)
        damage(&m, &at, at.last + 65, &tensor[i], &seed);
    damage(&m, &at, at.last, &(Field){ 64, 1, false }, &seed);
    free(m.b);
}

/* Any single bit, with old checksums: the verifier detects it, wherever it is. */
static void test_any_bit(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("e.qsf");
    QsfErr e = { 0 };
    uint64_t seed = 11;
    write_small(path, QSFF_PAGES | QSFF_LINES);
    QsfImage m = load(path);
    unlink(path);
    assert_int_equal(try_image(&m, &e), QSF_OK);
    for (int i = 0; i < 250; i++) {
        uint64_t bit = random64(&seed) % (8 * (i < 60 ? 128 : m.len));
        m.b[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (try_image(&m, &e) == QSF_OK) fail_msg("bit %llu: not detected", (unsigned long long)bit);
        m.b[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(m.b);
}

static void test_cut_and_longer(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("f.qsf");
    QsfErr e = { 0 };
    write_small(path, 0);
    QsfImage m = load(path), longer = { calloc(m.len + 5000, 1), 0 };
    unlink(path);
    for (size_t len = 4; len < m.len; len += len < 200 ? 7 : 3001) {
        QsfImage cut = { m.b, len };
        assert_int_equal(try_image(&cut, &e), QSF_E_MODEL);
    }
    memcpy(longer.b, m.b, m.len);
    for (size_t more = 1; more < 5000;
         more += 711) { /* garbage after the end, with correct size and checksums too */
        longer.len = m.len + more;
        qsf_image_put(longer.b + 92, 4, longer.len);
        QsfImageMap at = qsf_image_map(&longer);
        qsf_image_fix(&longer, &at);
        assert_int_equal(try_image(&longer, &e), QSF_E_MODEL);
    }
    free(longer.b);
    free(m.b);
}

/* Through a pipe, in small pieces. */
static void test_verify_pipe(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("g.qsf");
    QsfErr e = { 0 };
    QsfVerifyReport r;
    int fd[2];
    write_small(path, QSFF_PAGES | QSFF_LINES);
    QsfImage m = load(path);
    unlink(path);
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (size_t i = 0; i < m.len; i += 1013)
            if (write(fd[1], m.b + i, m.len - i < 1013 ? m.len - i : 1013) < 0) _exit(1);
        _exit(0);
    }
    close(fd[1]);
    qsf_test_expect_ok(qsf_verify_fd(fd[0], "<stdin>", &ledger, &r, &e), &e);
    assert_int_equal(r.bytes, m.len);
    assert_int_equal(r.n_tensors, 13); /* embedding, nine of the layer, the norm twice, the head */
    close(fd[0]);
    free(m.b);
}

int main(void) {
    qsf_ledger_init(&ledger, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_places),
        cmocka_unit_test(test_damaged_fields), cmocka_unit_test(test_any_bit),
        cmocka_unit_test(test_cut_and_longer), cmocka_unit_test(test_verify_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
