/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bad metadata of each family: every numeric key of every case of an architecture gets values that a damaged
 * or foreign file could have, and every kind of tensor is missing once. The model opens, or the message names
 * the key or a tensor. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

#define MAX_KEYS 256
#define KEY_CAP  128

static QsfLedger ledger;
static uint64_t held;  /* by the source of the case */
static unsigned n_bad; /* messages that name neither, and other surprises */

static void complain(const char *name, const char *what, const char *msg) {
    if (n_bad++ < 20000) print_message("%s: %s: %s\n", name, what, msg);
}

/* ---- cases ---- */

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

/* Calls fn for each case; in a quick run for every third. Returns how many. */
static unsigned each_case(void (*fn)(const char *name, const char *path)) {
    static char names[512][64];
    const char *dir = qsf_test_data("architectures");
    char root[512], path[1024];
    size_t n = 0;
    unsigned seen = 0;
    if (dir == NULL) return 0;
    snprintf(root, sizeof root, "%s", dir);
    DIR *d = opendir(root);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL && n < 512;)
        if (e->d_name[0] != '.' && strlen(e->d_name) < sizeof names[0]) strcpy(names[n++], e->d_name);
    closedir(d);
    qsort(names, n, sizeof names[0], by_name);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s/model.gguf", root, names[i]);
        if ((qsf_test_quick() && i % 3 != 0) || access(path, R_OK) != 0) continue;
        fn(names[i], path);
        seen++;
    }
    return seen;
}

static bool opens(const char *path) {
    QsfModel m;
    QsfErr err = { 0 };
    if (qsf_model_open(&m, path, NULL, &ledger, &err) != QSF_OK) return false;
    qsf_model_close(&m);
    return true;
}

/* ---- keys ---- */

static const char *const ints[] = { "int:0", "int:1",       "int:-1",         "int:3",
                                    "int:7", "int:1000003", "int:4294967295", "int:9223372036854775807" };
static const char *const floats[] = { "float:0", "float:-1", "float:nan", "float:inf", "float:1e30" };
static const char *const foreign[] = { "str:x", "bool:true" };

/* Keys that each case gets although its file may not have them. */
static const char *const added[] = { "attention.key_length",
                                     "attention.value_length",
                                     "rope.dimension_count",
                                     "expert_count",
                                     "expert_used_count",
                                     "attention.sliding_window",
                                     "vocab_size" };

static bool names_a_tensor(const QsfSource *s, const char *msg) {
    for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++)
        if (strstr(msg, qsf_source_tensor(s, i)->name) != NULL) return true;
    return strstr(msg, "tensor '") != NULL;
}

/* Evaluates a few tokens of a model that was accepted: whatever comes out, the program survives. */
static void evaluate(const char *path, const char *const *overrides) {
    static const int32_t ids[] = { 1, 2, 3, 4, 5, 6 };
    QsfErr err = { 0 };
    QsfRig r;
    const QsfRigOptions o = {
        .path = path, .overrides = overrides, .batch = 4, .ctx = 16, .level = QK_LEVEL_UNKNOWN
    };
    if (qsf_rig_open(&r, &o, &err) != QSF_OK) return;
    (void)qsf_forward_eval(r.fwd, ids, 6, NULL, NULL, &err);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

/* In a quick run nothing is evaluated, with sanitizers every fifth of the models. */
static bool evaluates(void) {
    static unsigned n;
    const char *san = getenv("QSF_SAN");
    return !qsf_test_quick() && (san == NULL || *san == '\0' || n++ % 5 == 0);
}

static void try_override(const char *name, const char *path, const QsfSource *src, const char *key,
                         const char *value) {
    char spec[KEY_CAP + 64];
    snprintf(spec, sizeof spec, "%s=%s", key, value);
    const char *const overrides[] = { spec, NULL };
    QsfModel m;
    QsfErr err = { 0 };
    if (qsf_model_open(&m, path, overrides, &ledger, &err) == QSF_OK) {
        qsf_model_close(&m);
        if (evaluates()) evaluate(path, overrides);
    } else if (err.code != QSF_E_MODEL ||
               (strstr(err.msg, strchr(key, '.') + 1) == NULL && !names_a_tensor(src, err.msg))) {
        complain(name, spec, err.msg);
    }
    if (ledger.total != held) complain(name, spec, "memory remains in the ledger");
}

static void try_values(const char *name, const char *path, const QsfSource *src, const char *key,
                       bool is_float) {
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) try_override(name, path, src, key, ints[i]);
    for (size_t i = 0; is_float && i < sizeof floats / sizeof *floats; i++)
        try_override(name, path, src, key, floats[i]);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        try_override(name, path, src, key, foreign[i]);
    try_override(name, path, src, key, "null");
}

/* Lists the keys of the architecture; returns how many. */
static size_t list_keys(const QsfSource *src, char keys[MAX_KEYS][KEY_CAP], bool *is_float) {
    const char *arch;
    QsfErr err = { 0 };
    size_t n = 0, len;
    if (qsf_meta_str(src, "general.architecture", &arch, NULL, &err) != QSF_OK || arch == NULL) return 0;
    len = strlen(arch);
    for (size_t i = 0; i < qsf_meta_count(src) && n < MAX_KEYS; i++) {
        QsfMetaType type, elem;
        uint64_t count;
        const char *key = qsf_meta_at(src, i, &type, &elem, &count);
        if (strncmp(key, arch, len) != 0 || key[len] != '.' || strlen(key) >= KEY_CAP) continue;
        if (type == QSF_META_ARRAY) type = elem;
        is_float[n] = type == QSF_META_F32 || type == QSF_META_F64;
        strcpy(keys[n++], key);
    }
    for (size_t i = 0; i < sizeof added / sizeof *added && n < MAX_KEYS; i++) {
        is_float[n] = false;
        snprintf(keys[n++], KEY_CAP, "%s.%s", arch, added[i]);
    }
    return n;
}

static void bad_keys(const char *name, const char *path) {
    static char keys[MAX_KEYS][KEY_CAP];
    static bool is_float[MAX_KEYS];
    QsfSource *src;
    QsfErr err = { 0 };
    if (!opens(path)) return; /* an architecture that is not supported */
    qsf_test_expect_ok(qsf_source_open(&src, path, &ledger, &err), &err);
    const size_t n = list_keys(src, keys, is_float);
    held = ledger.total;
    for (size_t i = 0; i < n; i++) try_values(name, path, src, keys[i], is_float[i]);
    qsf_source_close(src);
}

static void test_bad_keys(void **state) {
    (void)state;
    n_bad = 0;
    if (each_case(bad_keys) == 0) skip();
    assert_int_equal(n_bad, 0);
}

/* ---- tensors ---- */

/* A writable copy of a model file. */
typedef struct Copy {
    const char *path;
    char *data;
    size_t len;
    int fd;
} Copy;

static void copy_open(Copy *c, const char *path) {
    struct stat st;
    int in = open(path, O_RDONLY);
    assert_true(in >= 0 && fstat(in, &st) == 0);
    c->len = (size_t)st.st_size;
    c->data = malloc(c->len);
    assert_true(c->data != NULL && read(in, c->data, c->len) == (ssize_t)c->len);
    close(in);
    c->path = qsf_test_tmp("renamed.gguf");
    c->fd = open(c->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(c->fd >= 0 && write(c->fd, c->data, c->len) == (ssize_t)c->len);
}

static void copy_close(Copy *c) {
    close(c->fd);
    unlink(c->path);
    free(c->data);
}

/* Returns where the name of a tensor lies in the file: 8 bytes with its length come before it (ggml-org/ggml
 * docs/gguf.md). */
static size_t find_name(const Copy *c, const char *name) {
    unsigned char pattern[8 + 128] = { 0 };
    const size_t n = strlen(name);
    assert_true(n < 128);
    pattern[0] = (unsigned char)n;
    memcpy(pattern + 8, name, n);
    const char *at = memmem(c->data, c->len, pattern, 8 + n);
    assert_non_null(at);
    return (size_t)(at - c->data) + 8;
}

/* Is it the first tensor of its kind: of those with the same name in other blocks? */
static bool is_first(const QsfSource *src, uint64_t i) {
    const char *name = qsf_source_tensor(src, i)->name,
               *kind = strncmp(name, "blk.", 4) ? NULL : strchr(name + 4, '.');
    for (uint64_t k = 0; kind != NULL && k < i; k++) {
        const char *other = qsf_source_tensor(src, k)->name;
        if (!strncmp(other, "blk.", 4) && !strcmp(strchr(other + 4, '.'), kind)) return false;
    }
    return true;
}

/* Without the first, a file has the form that the second belongs to: its tensors are the missing ones. */
static const char *const forms[][2] = {
    { "attn_qkv.", "attn_q." },
    { "attn_q_a.", "attn_q." },
    { "attn_kv_b.", "attn_k_b." },
    { "ffn_gate_inp.", "ffn_gate." },
    { "ffn_gate_up_exps.", "ffn_up_exps." },
    { "ssm_f_b.", "ssm_f_a." },
    { "ssm_g.", "ssm_g_a." },
    { "ssm_g_b.", "ssm_g_a." },
    { "ffn_up.", "ffn_gate." },
};

static bool names_other_form(const char *tensor, const char *msg) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strstr(tensor, forms[i][0]) != NULL && strstr(msg, forms[i][1]) != NULL) return true;
    return false;
}

/* Gives the tensor another last letter. */
static void without(const char *name, Copy *c, const char *tensor) {
    const size_t last = find_name(c, tensor) + strlen(tensor) - 1;
    const char other = c->data[last] == 'q' ? 'p' : 'q';
    char part[128];
    QsfModel m;
    QsfErr err = { 0 };
    snprintf(part, sizeof part, "%.*s", (int)strlen(tensor) - 1, tensor);
    assert_int_equal(pwrite(c->fd, &other, 1, (off_t)last), 1);
    if (qsf_model_open(&m, c->path, NULL, &ledger, &err) == QSF_OK) {
        qsf_model_close(&m);
        if (strstr(tensor, ".nextn.") == NULL) complain(name, tensor, "its absence was accepted");
    } else if (err.code != QSF_E_MODEL ||
               (strstr(err.msg, part) == NULL && !names_other_form(tensor, err.msg))) {
        complain(name, tensor, err.msg);
    }
    assert_int_equal(pwrite(c->fd, c->data + last, 1, (off_t)last), 1);
}

static void missing_tensors(const char *name, const char *path) {
    Copy c;
    QsfSource *src;
    QsfErr err = { 0 };
    if (!opens(path)) return;
    qsf_test_expect_ok(qsf_source_open(&src, path, &ledger, &err), &err);
    copy_open(&c, path);
    for (uint64_t i = 0; i < qsf_source_n_tensors(src); i++)
        if (is_first(src, i)) without(name, &c, qsf_source_tensor(src, i)->name);
    copy_close(&c);
    qsf_source_close(src);
}

static void test_missing_tensors(void **state) {
    (void)state;
    n_bad = 0;
    if (each_case(missing_tensors) == 0) skip();
    assert_int_equal(n_bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bad_keys),
                                        cmocka_unit_test(test_missing_tensors) };
    qsf_ledger_init(&ledger, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
