/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The figures of --bench that compare decoding with the read speed. */
#include "tests/harness/qsf_test.h"

#include "src/run/breakdown.c"
#include "tests/harness/gguf_build.h"
#include "tests/harness/rig.h"

static char tiny[256];

/* The warning about the share of the read speed, for weights and a cache of the given MB. */
static const char *warning(double share, double weight_mb, double cache_mb) {
    static char text[512];
    RunBreakdown b = { .bandwidth = share };
    QsfStrbuf out = QSF_STRBUF_INIT;
    run_put_share_warning(&out, &b, weight_mb * 1048576, cache_mb * 1048576);
    snprintf(text, sizeof text, "%s", qsf_strbuf_str(&out));
    qsf_strbuf_free(&out);
    return text;
}

static void a_share_above_1_is_explained(void **state) {
    (void)state;
    assert_string_equal(warning(0, 5, 32), "");
    assert_string_equal(warning(0.7, 5, 32), "");
    assert_string_equal(warning(1, 5, 32), "");
    assert_non_null(strstr(warning(1.25, 5, 32), "warning: decoding used 125 % of the measured read speed"));
    assert_non_null(strstr(warning(1.25, 5, 32), "the weights (5.0 MB) fit in the CPU's cache"));
    assert_non_null(strstr(warning(1.25, 5000, 32), "--repeats"));
    assert_non_null(strstr(warning(1.25, 5, 0), "--repeats")); /* the cache size is unknown */
}

static void shares_come_from_both_speeds(void **state) {
    (void)state;
    QsfLayerStats layer = { .weight_bytes = 1000000000 };
    RunMeter m = { .n = 1, .sum = &layer };
    QsfModel none;
    QsfForwardStats s = { .decode_tokens = 1 };
    RunFigures f = { .decode_tps = 30 };
    memset(&none, 0, sizeof none);
    m.model = &none;
    RunBreakdown b = run_breakdown(&m, &s, &f, 60e9, 0, 1000000);
    assert_true(b.decode_gbps > 29.9 && b.decode_gbps < 30.1);
    assert_true(b.bandwidth > 0.499 && b.bandwidth < 0.501);
    b = run_breakdown(&m, &s, &f, 0, 0, 1000000); /* not measured */
    assert_true(b.bandwidth == 0 && b.read_gbps == 0);
}

static void reading_is_measured_where_weights_are_in_ram(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        QsfErr e = { 0 };
        QsfRig r;
        int32_t id = 1;
        QsfRigOptions o = { .path = tiny, .threads = threads, .level = QK_LEVEL_UNKNOWN };
        qsf_test_expect_ok(qsf_rig_open(&r, &o, &e), &e);
        qsf_test_expect_ok(qsf_forward_settle(r.fwd, NULL, NULL, &e), &e);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, &id, 1, NULL, NULL, &e), &e);
        assert_true(qsf_forward_read_speed(r.fwd) > 0);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, &id, 1, NULL, NULL, &e), &e); /* and the run continues */
        qsf_rig_close(&r);
        assert_int_equal(qsf_rig_leak(&r), 0);
        o.stream = true;
        qsf_test_expect_ok(qsf_rig_open(&r, &o, &e), &e);
        assert_true(qsf_forward_read_speed(r.fwd) == 0);
        qsf_rig_close(&r);
    }
}

static int setup(void **state) {
    (void)state;
    snprintf(tiny, sizeof tiny, "%s", qsf_test_tmp("breakdown.gguf"));
    return qsf_test_write_tiny_llama(tiny, NULL);
}

static int teardown(void **state) {
    (void)state;
    return unlink(tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_above_1_is_explained),
        cmocka_unit_test(shares_come_from_both_speeds),
        cmocka_unit_test(reading_is_measured_where_weights_are_in_ram),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
