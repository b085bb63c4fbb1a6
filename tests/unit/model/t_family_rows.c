/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of families with a builder of their own name only what that reads: without a field of its row, a model
 * is refused, or its program or what it looks for in the file is another one. */
#include <dirent.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/model/family.h"
#include "src/model/family/families.h"
#include "src/model/model.h"
#include "tests/harness/qsf_test.h"

enum { MAX_CASES = 512, MAX_FIELDS = 64 };

typedef struct Field {
    const char *name;
    size_t at, bytes;
} Field;

#define FIELD(name) \
    { #name, offsetof(QsfDense, name), sizeof(((QsfDense *)NULL)->name) }

static const Field fields[] = {
    FIELD(embed_sqrt),
    FIELD(embed_norm),
    FIELD(embed_plain_norm),
    FIELD(embed_is_head),
    FIELD(positions),
    FIELD(logit_scale),
    FIELD(logit_cap),
    FIELD(granite_scales),
    FIELD(norms),
    FIELD(branches),
    FIELD(no_norm_weights),
    FIELD(rms_bias),
    FIELD(sub_norms),
    FIELD(post_eps),
    FIELD(ffn_norm),
    FIELD(qk_norm),
    FIELD(clamp_qkv),
    FIELD(temperature),
    FIELD(scores_by_dim),
    FIELD(scores_27b),
    FIELD(score_cap),
    FIELD(gate),
    FIELD(maybe_gate),
    FIELD(value_scale),
    FIELD(alibi),
    FIELD(alibi_default),
    FIELD(alibi_blocks),
    FIELD(rope),
    FIELD(sections),
    FIELD(rope_alpha),
    FIELD(half_rope),
    FIELD(fixed_rope),
    FIELD(rope_blocks),
    FIELD(rope_period),
    FIELD(rope_not_first),
    FIELD(window_period),
    FIELD(window_not_first),
    FIELD(window_default),
    FIELD(window_size),
    FIELD(window_needed),
    FIELD(window_zero),
    FIELD(pattern_needed),
    FIELD(window_blocks),
    FIELD(window_rope),
    FIELD(act),
    FIELD(gated),
    FIELD(fused_up),
    FIELD(half_ffn),
    FIELD(moe),
    FIELD(unused),
};
enum { N_FIELDS = sizeof fields / sizeof *fields };
_Static_assert(sizeof fields / sizeof *fields <= 64, "one flag each");

static QsfLedger ledger;

/* The builders of their own whose traits are QsfDense: the common one reads every field. */
static bool has_own_builder(const QsfFamily *f) {
    void (*const builders[])(QsfBuilder *) = { qsf_family_arctic,     qsf_family_grok,   qsf_family_llama4,
                                               qsf_family_minimax_m3, qsf_family_talkie, qsf_family_minicpm };
    for (size_t i = 0; i < sizeof builders / sizeof *builders; i++)
        if (f->build == builders[i]) return true;
    return false;
}

static bool is_set(const void *row, const Field *f) {
    static const char zero[sizeof(QsfDense)];
    return memcmp((const char *)row + f->at, zero, f->bytes) != 0;
}

/* ---- what a row builds ---- */

static const QsfTensor *find(void *arg, const char *name) { return qsf_source_find_tensor(arg, name); }

static void put_ropes(QsfStrbuf *out, const QsfProgram *p) {
    for (uint32_t i = 0; i < p->n_ropes; i++) {
        QsfRopeTable r = p->rope[i];
        r.freq = r.freq_long = NULL; /* in the arena */
        qsf_strbuf_add(out, (const char *)&r, sizeof r);
        qsf_strbuf_add(out, (const char *)p->rope[i].freq, r.n_rot / 2 * sizeof(double));
    }
}

/* The program as bytes; the message of a refusal. */
static void build(const QsfModel *model, const QsfFamily *family, QsfStrbuf *out) {
    QsfErr err = { 0 };
    QsfModel m = { .src = model->src, .hp = model->hp, .borrowed = true };
    m.hp.arch = family;
    qsf_arena_init(&m.arena, &ledger, QSF_MEM_META, "program", 4096);
    if (qsf_model_build(&m, &(QsfTensorSet){ find, m.src }, &err) != QSF_OK) {
        qsf_strbuf_adds(out, err.msg);
    } else {
        qsf_program_put_text(out, &m);
        qsf_program_put_json(out, &m);
        for (uint32_t i = 0; i < m.prog.n_steps; i++)
            qsf_strbuf_add(out, (const char *)&m.prog.step[i].u, sizeof m.prog.step[i].u);
        put_ropes(out, &m.prog);
    }
    qsf_reads_put_json(out, &m.reads);
    qsf_arena_destroy(&m.arena);
}

/* ---- all cases ---- */

/* Whether the field has an effect in any case of the row. */
static bool effect[256][MAX_FIELDS], seen[256];

static void check_case(const char *path) {
    QsfModel m;
    QsfErr err = { 0 };
    QsfStrbuf whole = QSF_STRBUF_INIT, other = QSF_STRBUF_INIT;
    if (qsf_model_open(&m, path, NULL, &ledger, &err) != QSF_OK) return;
    unsigned row = 0;
    while (qsf_family_at(row) != m.hp.arch) row++;
    assert_true(row < 256);
    if (!has_own_builder(m.hp.arch)) {
        qsf_model_close(&m);
        return;
    }
    seen[row] = true;
    build(&m, m.hp.arch, &whole);
    for (size_t i = 0; i < N_FIELDS; i++) {
        QsfDense traits = *(const QsfDense *)m.hp.arch->traits;
        QsfFamily family = *m.hp.arch;
        if (!is_set(&traits, &fields[i])) continue;
        memset((char *)&traits + fields[i].at, 0, fields[i].bytes);
        family.traits = &traits;
        other.len = 0;
        build(&m, &family, &other);
        effect[row][i] |= other.len != whole.len || memcmp(other.data, whole.data, whole.len) != 0;
    }
    qsf_strbuf_free(&whole);
    qsf_strbuf_free(&other);
    qsf_model_close(&m);
}

static void test_rows(void **state) {
    (void)state;
    const char *dir = qsf_test_data("architectures");
    char root[512], path[1024];
    if (dir == NULL) skip();
    snprintf(root, sizeof root, "%s", dir);
    qsf_ledger_init(&ledger, 0);
    DIR *d = opendir(root);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || strlen(e->d_name) > 64) continue;
        snprintf(path, sizeof path, "%s/%.64s/model.gguf", root, e->d_name);
        if (access(path, R_OK) == 0) check_case(path);
    }
    closedir(d);
    unsigned silent = 0;
    for (unsigned row = 0; qsf_family_at(row) != NULL; row++)
        for (size_t i = 0; seen[row] && i < N_FIELDS; i++) {
            const QsfFamily *f = qsf_family_at(row);
            if (!is_set(f->traits, &fields[i]) || effect[row][i]) continue;
            print_message("%s: .%s has no effect\n", f->name, fields[i].name);
            silent++;
        }
    assert_int_equal(silent, 0);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

/* Every byte that a row sets is part of a field of the list. */
static void test_fields(void **state) {
    (void)state;
    for (unsigned row = 0; qsf_family_at(row) != NULL; row++) {
        if (!has_own_builder(qsf_family_at(row))) continue;
        QsfDense rest = *(const QsfDense *)qsf_family_at(row)->traits;
        for (size_t i = 0; i < N_FIELDS; i++) memset((char *)&rest + fields[i].at, 0, fields[i].bytes);
        const char *bytes = (const char *)&rest;
        for (size_t k = 0; k < sizeof rest; k++)
            if (bytes[k] != 0) fail_msg("%s: byte %zu is in no field", qsf_family_at(row)->name, k);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = { cmocka_unit_test(test_fields), cmocka_unit_test(test_rows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
