/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that are not language models, and models with a transformation that the engine does not do, are
 * refused by name; ordinary models are not. */
#include "tests/harness/qsf_test.h"

#include "src/engine/model_info.h"
#include "src/model/purpose.h"
#include "tests/harness/gguf_build.h"

static QsfLedger ledger;
static char model[4096]; /* path of a tiny llama */

/* Opens the model with up to two more keys; the error is in *e. */
static int open_with(const char *key, const char *more, QsfErr *e) {
    QsfModel m;
    qsf_err_clear(e);
    int rc = qsf_model_open(&m, model, (const char *const[3]){ key, more }, &ledger, e);
    if (rc == QSF_OK) qsf_model_close(&m);
    assert_int_equal(ledger.total, 0);
    return rc;
}

static void expect_refused(const char *key, const char *part) {
    QsfErr e = { 0 };
    open_with(key, NULL, &e);
    qsf_test_expect_err(&e, QSF_E_MODEL, part);
    assert_non_null(strstr(e.msg, "purpose.gguf: "));
}

static void expect_opened(const char *key, const char *more) {
    QsfErr e = { 0 };
    qsf_test_expect_ok(open_with(key, more, &e), &e);
}

static void test_transformations(void **state) {
    (void)state;
    expect_opened(NULL, NULL);
    expect_refused("prism.hadamard.version=int:1", "'prism.hadamard.version' announces a Hadamard rotation");
    expect_refused("prism.hadamard.transform=str:normalized-sylvester-walsh-hadamard", "Hadamard");
    expect_refused("prism.hadamard.enabled=bool:true", "Hadamard");
    expect_refused("hypura.turboquant.rotation_block_size=int:8", "a rotation");
    expect_refused("llama.attention.rotation.seed=int:-42", "a rotation");
    expect_refused("quarot.r1=bool:true", "QuaRot");
    expect_refused("SpinQuant.R3=bool:true", "SpinQuant");
    expect_refused("quip.codebook=str:E8P12", "QuIP");
    expect_refused("smoothquant.alpha=float:0.5", "smoothing");
    expect_refused("awq.scales=str:activations", "scaling (AWQ)");
    expect_refused("gptq.permutation=str:act-order", "a permutation");
    expect_refused("powerinfer.sparse_threshold=float:0.5", "PowerInfer");
    expect_refused("llama.adapters.count=int:3", "adapters");
    expect_refused("llama.tensor_data_layout=str:rows of 4", "layout of its tensors");
}

/* Says so, but there is nothing to do; or sounds like it. */
static void test_no_transformation(void **state) {
    (void)state;
    expect_opened("prism.hadamard.version=int:0", "prism.hadamard.enabled=bool:false");
    expect_opened("prism.hadamard.transform=str:none", "quant.rotation=str:");
    expect_opened("smoothquant.alpha=float:0", "llama.adapters.count=int:0");
    expect_opened("llama.tensor_data_layout=str:reference", "general.type=str:model");
    expect_opened("llama.tensor_data_layout=str:Meta AI original pth", "llama.rotary_pct=float:1");
    expect_opened("general.sampling.smoothing_factor=float:0.3", "tokenizer.ggml.rotation=int:1");
    expect_opened("quantize.imatrix.file=str:x", "imatrix.chunk_count=int:5");
    expect_opened("prism.hadamard.version=int:1", "prism.hadamard.version=null"); /* the user insists */
}

/* Checks a file of metadata alone, as it is opened for its vocabulary. */
static int check_meta(QsfGgufBuild *b, bool computation, QsfErr *e) {
    const char *path = qsf_test_tmp("purpose_meta.gguf");
    QsfSource *s;
    qsf_err_clear(e);
    assert_int_equal(qsf_gb_write(b, path), 0);
    qsf_gb_free(b);
    qsf_test_expect_ok(qsf_source_open(&s, path, &ledger, e), e);
    int rc = computation ? qsf_purpose_check_computation(s, e) : qsf_purpose_check(s, e);
    qsf_source_close(s);
    unlink(path);
    return rc;
}

static void test_lists(void **state) {
    static const char *const names[] = { "blk.0.ffn_down.weight" };
    QsfGgufBuild b = { 0 };
    QsfErr e = { 0 };
    (void)state;
    qsf_gb_strings(&b, "prism.hadamard.inverse_weight_names", names, 0);
    qsf_gb_str(&b, "filler", "so that the file is long enough");
    qsf_test_expect_ok(check_meta(&b, true, &e), &e);
    qsf_gb_strings(&b, "prism.hadamard.weight_names", names, 1);
    check_meta(&b, true, &e);
    qsf_test_expect_err(&e, QSF_E_MODEL, "'prism.hadamard.weight_names' announces");
}

static void test_kinds(void **state) {
    static const char *const rows[][3] = {
        { "general.type", "adapter", "an adapter (LoRA)" },
        { "general.type", "imatrix", "an importance matrix" },
        { "general.type", "mmproj", "the projector of a multimodal model" },
        { "adapter.type", "lora", "an adapter (LoRA)" },
        { "controlvector.model_hint", "llama", "a control vector" },
        { "imatrix.datasets", "wiki", "an importance matrix" },
    };
    QsfGgufBuild b = { 0 };
    QsfErr e = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qsf_gb_str(&b, rows[i][0], rows[i][1]);
        check_meta(&b, false, &e);
        qsf_test_expect_err(&e, QSF_E_MODEL, rows[i][2]);
        assert_non_null(strstr(e.msg, rows[i][0]));
    }
    expect_refused("general.type=str:adapter", "give the file of the model itself");
    expect_refused("general.type=str:tomorrow", "'general.type' is 'tomorrow', expected 'model'");
    expect_refused("general.type=int:1", "expected a string");
    expect_refused("general.architecture=str:controlvector", "a control vector");
    expect_refused("general.architecture=str:eagle3", "a draft head");
    expect_refused("general.architecture=str:nomic-bert", "an embedding model");
    expect_refused("general.architecture=str:llada", "a diffusion model");
    expect_refused("general.architecture=str:flux", "generates images");
    expect_refused("general.architecture=str:clip", "the projector of a multimodal model");
    expect_refused("general.architecture=str:unheard-of", "'unheard-of' (general.architecture)");
}

/* Version 1 of the formats orders nibbles differently; floats have no version. */
static void test_quantization_version(void **state) {
    QsfErr e = { 0 };
    (void)state;
    expect_opened("general.quantization_version=int:1", NULL);
    assert_int_equal(qsf_test_write_tiny_llama(model, &(QsfTinySpec){ .wtype = 2 }), 0);
    expect_opened("general.quantization_version=int:2", NULL);
    open_with("general.quantization_version=int:1", NULL, &e);
    qsf_test_expect_err(&e, QSF_E_MODEL, "only version 2");
    assert_int_equal(qsf_test_write_tiny_llama(model, NULL), 0);
}

static int setup(void **state) {
    (void)state;
    snprintf(model, sizeof model, "%s", qsf_test_tmp("purpose.gguf"));
    qsf_ledger_init(&ledger, 0);
    return qsf_test_write_tiny_llama(model, NULL);
}

static int teardown(void **state) {
    (void)state;
    qsf_ledger_destroy(&ledger);
    return unlink(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transformations),
        cmocka_unit_test(test_no_transformation),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_quantization_version),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
