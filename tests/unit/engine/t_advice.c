/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sampling values recommended by a model apply where the user set nothing, and only there. */
#include "tests/harness/qsf_test.h"

#include "src/engine/model_info.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/worker_rig.h"

static char tiny[256];

static void state_row(QSFSettings *s, const char *name, const char *value) {
    char err[256];
    assert_int_equal(qsf_setting_set(s, qsf_setting_find(name), value, err, sizeof err), 0);
}

static QSFSettings advice_with(const char *const *specs) {
    QsfLedger l;
    QsfSource *src;
    QsfErr e = { 0 };
    QSFSettings advice;
    qsf_ledger_init(&l, 0);
    qsf_test_expect_ok(qsf_source_open(&src, tiny, &l, &e), &e);
    for (; *specs != NULL; specs++) qsf_test_expect_ok(qsf_source_override(src, *specs, &e), &e);
    qsf_model_defaults_read(src, &advice);
    qsf_source_close(src);
    qsf_ledger_destroy(&l);
    return advice;
}

static void an_explicit_row_is_known(void **state) {
    (void)state;
    char err[256];
    QSFSettings s;
    const QSFSetting *row = qsf_setting_find("temperature");
    qsf_settings_default(&s);
    for (size_t i = 0; i < qsf_setting_count(); i++)
        assert_false(qsf_setting_user_set(&s, qsf_setting_at(i)));
    assert_int_not_equal(qsf_setting_set(&s, row, "9", err, sizeof err), 0);
    assert_false(qsf_setting_user_set(&s, row)); /* it was refused */
    state_row(&s, "temp", "0.7");
    assert_true(qsf_setting_user_set(&s, row)); /* the default, but set explicitly */
    assert_false(qsf_setting_user_set(&s, qsf_setting_find("top-k")));
}

static void everything_available(void **state) {
    (void)state;
    static const char *const specs[] = { "general.sampling.temp=float:0.6",
                                         "general.sampling.top_k=int:20",
                                         "general.sampling.top_p=float:0.95",
                                         "general.sampling.min_p=float:0.05",
                                         "general.sampling.penalty_repeat=float:1.1",
                                         "general.sampling.penalty_last_n=int:-1",
                                         "general.sampling.sequence=str:dry;top_k;typ_p;nucleus;temp",
                                         NULL };
    char order[QSF_SETTING_TEXT];
    QSFSettings s = advice_with(specs);
    qsf_setting_get(&s, qsf_setting_find("samplers"), order, sizeof order);
    assert_string_equal(order, "dry,top-k,typical,top-p,temperature");
    assert_true(s.params.temperature == 0.6f && s.params.top_p == 0.95f && s.params.min_p == 0.05f);
    assert_true(s.params.repeat_penalty == 1.1f);
    assert_int_equal(s.params.top_k, 20);
    assert_int_equal(s.params.repeat_last_n, -1);
}

/* Each is a separate hint: an invalid one does not affect the others. */
static void invalid_values_are_ignored(void **state) {
    (void)state;
    static const char *const specs[] = { "general.sampling.temp=float:-1",
                                         "general.sampling.top_k=float:2.5",
                                         "general.sampling.top_p=str:high",
                                         "general.sampling.min_p=float:7",
                                         "general.sampling.penalty_repeat=int:2",
                                         "general.sampling.penalty_last_n=int:99999999999",
                                         "general.sampling.sequence=str:top_k;infill",
                                         NULL };
    QSFSettings s = advice_with(specs), d;
    qsf_settings_default(&d);
    assert_true(s.params.temperature == d.params.temperature && s.params.top_p == d.params.top_p);
    assert_true(s.params.min_p == d.params.min_p && s.params.repeat_penalty == 2.0f);
    assert_int_equal(s.params.top_k, d.params.top_k);
    assert_int_equal(s.params.repeat_last_n, d.params.repeat_last_n);
    assert_int_equal(s.params.samplers[0], 0);
    for (uint32_t k = 0; k < 4; k++) {
        /* NaN, both infinities, the largest */
        static const uint32_t odd[] = { 0x7fc00000, 0x7f800000, 0xff800000, 0x7f7fffff };
        QsfGgufBuild b = { 0 };
        const char *path = qsf_test_tmp("odd.gguf");
        QsfLedger l;
        QsfSource *src;
        QsfErr e = { 0 };
        qsf_gb_str(&b, "general.architecture", "llama");
        qsf_gb_raw(&b, "general.sampling.temp", QSF_META_F32, &odd[k], sizeof odd[k]);
        assert_int_equal(qsf_gb_write(&b, path), 0);
        qsf_gb_free(&b);
        qsf_ledger_init(&l, 0);
        qsf_test_expect_ok(qsf_source_open(&src, path, &l, &e), &e);
        qsf_model_defaults_read(src, &s);
        assert_true(s.params.temperature == d.params.temperature);
        qsf_source_close(src);
        qsf_ledger_destroy(&l);
    }
}

static void a_word_precedes_it(void **state) {
    (void)state;
    static const char *const specs[] = { "general.sampling.temp=float:0.2", "general.sampling.top_k=int:5",
                                         NULL };
    static const char *const none[] = { NULL };
    QSFSettings advice = advice_with(specs), s;
    qsf_settings_default(&s);
    state_row(&s, "temperature", "0.7");
    s.params.max_tokens = -1; /* a program's own mark: not a value that a model recommends */
    qsf_model_defaults_apply(&s, &advice);
    assert_true(s.params.temperature == 0.7f);
    assert_int_equal(s.params.top_k, 5);
    assert_int_equal(s.params.max_tokens, -1);
    assert_false(qsf_setting_user_set(&s, qsf_setting_find("top-k")));
    /* The next model recommends nothing. */
    advice = advice_with(none);
    qsf_model_defaults_apply(&s, &advice);
    assert_int_equal(s.params.top_k, 40);
    assert_true(s.params.temperature == 0.7f);
}

static void the_worker_returns_it(void **state) {
    (void)state;
    static const char *const specs[] = { "general.sampling.temp=float:0.25",
                                         "general.sampling.sequence=str:top_k;infill", NULL };
    QSFSettings rig = qsf_rig_settings(), s;
    QSFWorker *w = qsf_rig_worker();
    qsf_settings_default(&s);
    qsf_worker_model_defaults(w, &s);
    assert_true(s.params.temperature == 0.7f);
    qsf_worker_override(w, specs);
    qsf_rig_load(w, tiny, &rig);
    qsf_worker_model_defaults(w, &s);
    assert_true(s.params.temperature == 0.25f);
    char *text = qsf_worker_describe(w, "model");
    assert_non_null(strstr(text, "recommends      temperature 0.25\n"));
    assert_non_null(strstr(text, "general.sampling.sequence: samplers: 'infill' is unknown"));
    free(text);
    qsf_rig_finish(w, qsf_worker_unload(w));
    qsf_worker_model_defaults(w, &s);
    assert_true(s.params.temperature == 0.7f);
    qsf_worker_stop(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_explicit_row_is_known),   cmocka_unit_test(everything_available),
        cmocka_unit_test(invalid_values_are_ignored), cmocka_unit_test(a_word_precedes_it),
        cmocka_unit_test(the_worker_returns_it),
    };
    (void)snprintf(tiny, sizeof tiny, "%s", qsf_test_tmp("advice.gguf"));
    if (qsf_test_write_tiny_llama(tiny, NULL) != 0) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
