/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The settings table: every row parses what it prints, and refuses values outside its range with a message
 * that names it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "qsf_engine.h"
#include "src/engine/number.h"

static int set(QSFSettings *s, const char *name, const char *value, char *err) {
    const QSFSetting *row = qsf_setting_find(name);
    assert_non_null(row);
    err[0] = '\0';
    return qsf_setting_set(s, row, value, err, 256);
}

static void defaults_are_the_documented_ones(void **state) {
    (void)state;
    QSFSettings s;
    qsf_settings_default(&s);
    assert_true(s.params.temperature == 0.7f && s.params.top_p == 0.9f && s.params.min_p == 0.0f);
    assert_true(s.params.repeat_penalty == 1.0f);
    assert_int_equal(s.params.top_k, 40);
    assert_int_equal(s.params.repeat_last_n, 64);
    assert_int_equal(s.params.max_tokens, 0);
    assert_false(s.params.seed_set);
    assert_int_equal(s.ram_budget, 200u << 20);
    assert_true(s.pin == UINT64_MAX);
    assert_string_equal(s.kv, "auto");
    assert_string_equal(s.io, "auto");
    assert_string_equal(s.direct, "auto");
    assert_int_equal(s.slots, 0);
}

/* The settings that can change between two tokens are exactly these, and are copied without the others. */
static void live_plans(void **state) {
    (void)state;
    static const char *const replan[][2] = {
        { "ram-budget", "25%" },
        { "pin", "3M" },
        { "threads", "3" },
        { "slots", "4" },
        { "embedding", "resident" },
        { "io", "pread" },
        { "direct", "off" },
        { "ctx", "99" },
        { "kv-type", "f32" },
        { "k-type", "q8" },
        { "v-type", "f16" },
        { "eviction-policy", "h2o" },
        { "eviction-window", "512" },
        { "protected-prefix", "9" },
        { "memory-threshold-mb", "77" },
        { "expert-ahead", "on" },
        { "speculate", "off" },
        { "draft-model", "/tmp/none.gguf" },
        { "lora", "/tmp/none:0.5,/tmp/a\\,b" },
        { "control-vector", "/tmp/none:-2" },
    };
    static const char *const other[][2] = { { "batch", "99" }, { "cpu-mask", "ref" }, { "top-k", "7" } };
    char err[256], text[QSF_SETTING_TEXT], want[QSF_SETTING_TEXT];
    size_t n = 0;
    QSFSettings from, to, defaults;
    qsf_settings_default(&from);
    qsf_settings_default(&to);
    qsf_settings_default(&defaults);
    for (size_t i = 0; i < qsf_setting_count(); i++)
        n += (qsf_setting_at(i)->flags & QSF_SETTING_REPLAN) != 0;
    assert_int_equal(n, sizeof replan / sizeof replan[0]);
    for (size_t i = 0; i < n; i++) assert_int_equal(set(&from, replan[i][0], replan[i][1], err), 0);
    for (size_t i = 0; i < 3; i++) assert_int_equal(set(&from, other[i][0], other[i][1], err), 0);
    from.pin++; /* not whole kilobytes */
    const QSFSetting *unset = qsf_setting_find("pin");
    for (size_t i = 0; i < qsf_setting_count(); i++)
        if (qsf_setting_at(i) == unset) from.user_set &= ~((QSFSettingSet)1 << i);
    qsf_settings_take(&to, &from, QSF_SETTING_REPLAN);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        qsf_setting_get(&to, row, text, sizeof text);
        qsf_setting_get(row->flags & QSF_SETTING_REPLAN ? &from : &defaults, row, want, sizeof want);
        assert_string_equal(text, want);
        assert_int_equal(qsf_setting_user_set(&to, row), row->flags & QSF_SETTING_REPLAN && row != unset);
    }
    assert_true(to.pin == (3u << 20) + 1 && to.ram_percent == 25 && to.ram_budget == 0);
}

/* As adapters do, which are applied one after the other. */
static void scales_of_one_file_add_up(void **state) {
    static const char *const rows[] = { "lora", "control-vector" };
    (void)state;
    QSFSettings s;
    char err[256], text[QSF_SETTING_TEXT];
    for (size_t i = 0; i < 2; i++) {
        const QSFSetting *row = qsf_setting_find(rows[i]);
        qsf_settings_default(&s);
        assert_int_equal(set(&s, rows[i], "/none/a:0.5,/none/b:2,/none/a:0.25", err), 0);
        assert_int_equal(qsf_setting_add(&s, row, "/none/a:0.25", err, sizeof err), 0);
        qsf_setting_get(&s, row, text, sizeof text);
        assert_string_equal(text, "/none/a,/none/b:2");
        assert_int_equal(qsf_setting_add(&s, row, "/none/b:2", err, sizeof err), 0);
        qsf_setting_get(&s, row, text, sizeof text);
        assert_string_equal(text, "/none/a,/none/b:4");
        assert_int_equal(qsf_setting_add(&s, row, "/none/b:-1e6", err, sizeof err), 0);
        assert_int_equal(qsf_setting_add(&s, row, "/none/b:-5", err, sizeof err), 2);
        assert_non_null(strstr(err, "the scales of '/none/b' add up to more than 1000000"));
    }
}

/* kv-type is for both, whatever was set before. */
static void kv_type_takes_back_k_and_v(void **state) {
    (void)state;
    QSFSettings s;
    char err[256];
    qsf_settings_default(&s);
    assert_int_equal(set(&s, "k-type", "q8", err), 0);
    assert_int_equal(set(&s, "v-type", "f32", err), 0);
    assert_string_equal(s.kv, "auto");
    assert_int_equal(set(&s, "kv-type", "f16", err), 0);
    assert_true(strcmp(s.kv, "f16") == 0 && strcmp(s.k, "auto") == 0 && strcmp(s.v, "auto") == 0);
    assert_int_equal(set(&s, "kv-type", "f17", err), 2);
    assert_int_equal(set(&s, "k-type", "q8", err), 0);
    assert_true(strcmp(s.kv, "f16") == 0 && strcmp(s.k, "q8") == 0);
}

static void every_row_reads_back_its_text(void **state) {
    (void)state;
    char text[QSF_SETTING_TEXT], again[QSF_SETTING_TEXT], err[256];
    QSFSettings s, t;
    qsf_settings_default(&s);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        assert_true(row->help[0] != '\0');
        const unsigned when = row->flags &
                              ~(unsigned)(QSF_SETTING_LIST | QSF_SETTING_MORE | QSF_SETTING_HERE);
        assert_true(when == QSF_SETTING_LIVE || when == QSF_SETTING_RELOAD ||
                    (when & ~(unsigned)QSF_SETTING_CHANGES) == QSF_SETTING_REPLAN);
        assert_ptr_equal(qsf_setting_find(row->name), row);
        qsf_setting_get(&s, row, text, sizeof text);
        qsf_settings_default(&t);
        assert_int_equal(qsf_setting_set(&t, row, text, err, sizeof err), 0);
        qsf_setting_get(&t, row, again, sizeof again);
        assert_string_equal(text, again);
    }
    assert_null(qsf_setting_at(qsf_setting_count()));
}

static void names_and_aliases(void **state) {
    (void)state;
    assert_string_equal(qsf_setting_find("top_p")->name, "top-p");
    assert_string_equal(qsf_setting_find("topp")->name, "top-p");
    assert_string_equal(qsf_setting_find("n-predict")->name, "max-tokens");
    assert_string_equal(qsf_setting_find("tokens")->name, "max-tokens");
    assert_string_equal(qsf_setting_find("ctx_size")->name, "ctx");
    assert_string_equal(qsf_setting_find("temp")->name, "temperature");
    assert_null(qsf_setting_find("tempe"));
    assert_null(qsf_setting_find("top-pp"));
    assert_null(qsf_setting_find("predict,n-predict"));
    assert_null(qsf_setting_find(""));
}

typedef struct Case {
    const char *name, *value, *reads;
} Case; /* reads NULL: refused */

static void values(void **state) {
    (void)state;
    static const Case cases[] = {
        { "temperature", "0", "0" },
        { "temperature", "1.5", "1.5" },
        { "temperature", "5", "5" },
        { "temperature", ".25", "0.25" },
        { "temperature", "2e-1", "0.2" },
        { "temperature", "5.1", NULL },
        { "temperature", "-0.1", NULL },
        { "temperature", "nan", NULL },
        { "temperature", "inf", NULL },
        { "temperature", "0,7", NULL },
        { "temperature", "", NULL },
        { "temperature", "1x", NULL },
        { "temperature", " 1", NULL },
        { "temperature", "1e400", NULL },
        { "temperature", "0x1", NULL },
        { "top-p", "1", "1" },
        { "top-p", "0", NULL },
        { "top-p", "0.0001", "0.0001" },
        { "top-p", "1.01", NULL },
        { "min-p", "0", "0" },
        { "min-p", "0.05", "0.05" },
        { "min-p", "2", NULL },
        { "repeat-penalty", "1.1", "1.1" },
        { "repeat-penalty", "0", NULL },
        { "repeat-penalty", "10.5", NULL },
        { "top-k", "0", "0" },
        { "top-k", "1000000", "1000000" },
        { "top-k", "1000001", NULL },
        { "top-k", "-1", NULL },
        { "top-k", "4.5", NULL },
        { "top-k", "99999999999999999999", NULL },
        { "repeat-last-n", "-1", "-1" },
        { "repeat-last-n", "-2", NULL },
        { "seed", "18446744073709551615", "18446744073709551615" },
        { "seed", "18446744073709551616", NULL },
        { "seed", "random", "random" },
        { "seed", "-1", NULL },
        { "seed", "7", "7" },
        { "max-tokens", "256", "256" },
        { "max-tokens", "-1", NULL },
        { "ignore-eos", "on", "on" },
        { "ignore-eos", "off", "off" },
        { "ignore-eos", "perhaps", NULL },
        { "ram-budget", "200", "200M" },
        { "ram-budget", "1.5G", "1536M" },
        { "ram-budget", "64K", "64K" },
        { "ram-budget", "25%", "25%" },
        { "ram-budget", "auto", "auto" },
        { "ram-budget", "2G", "2G" },
        { "ram-budget", "0", NULL },
        { "ram-budget", "101%", NULL },
        { "ram-budget", "-5", NULL },
        { "ram-budget", "lots", NULL },
        { "ram-budget", "1e30G", NULL },
        { "ram-budget", "5Q", NULL },
        { "pin", "0", "0" },
        { "pin", "auto", "auto" },
        { "pin", "10M", "10M" },
        { "pin", "10%", NULL },
        { "ctx", "2048", "2048" },
        { "ctx", "auto", "auto" },
        { "ctx", "-5", NULL },
        { "ctx", "99999999", NULL },
        { "threads", "2", "2" },
        { "threads", "auto", "auto" },
        { "threads", "300", NULL },
        { "kv-type", "f16", "f16" },
        { "kv-type", "F32", "f32" },
        { "kv-type", "q8", "q8" },
        { "k-type", "Q8", "q8" },
        { "k-type", "q6", "q6" },
        { "v-type", "Q4", "q4" },
        { "v-type", "q2", "q2" },
        { "k-type", "q3", NULL },
        { "v-type", "auto", "auto" },
        { "v-type", "q5", NULL },
        { "kv-type", "q5", NULL },
        { "slots", "1", "1" },
        { "slots", "4", "4" },
        { "slots", "auto", "auto" },
        { "slots", "5", NULL },
        { "slots", "-1", NULL },
        { "embedding", "RESIDENT", "resident" },
        { "embedding", "lru", "lru" },
        { "embedding", "auto", "auto" },
        { "embedding", "clustered", NULL },
        { "embedding", "", NULL },
        { "io", "uring", "uring" },
        { "io", "PREAD", "pread" },
        { "io", "mmap", "mmap" },
        { "io", "auto", "auto" },
        { "io", "aio", NULL },
        { "io", "", NULL },
        { "io", "uringuring", NULL },
        { "direct", "on", "on" },
        { "direct", "Off", "off" },
        { "direct", "auto", "auto" },
        { "direct", "yes", NULL },
        { "cpu-mask", "avx2", "avx2" },
        { "cpu-mask", "best", "best" },
        { "cpu-mask", "mmx", NULL },
        { "template", "chatml", "chatml" },
        { "template", "model", "model" },
        { "template", "a\nb", NULL },
    };
    char text[QSF_SETTING_TEXT], err[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const Case *c = &cases[i];
        QSFSettings s, before;
        memset(&s, 0, sizeof s);
        qsf_settings_default(&s);
        before = s;
        int rc = set(&s, c->name, c->value, err);
        if (c->reads == NULL) {
            if (rc != 2) fail_msg("%s accepted '%s'", c->name, c->value);
            assert_non_null(strstr(err, c->name));
            assert_memory_equal(&s, &before, sizeof s);
            continue;
        }
        if (rc != 0) fail_msg("%s", err);
        qsf_setting_get(&s, qsf_setting_find(c->name), text, sizeof text);
        assert_string_equal(text, c->reads);
    }
}

static void refusals_name_the_range(void **state) {
    (void)state;
    QSFSettings s;
    char err[256];
    qsf_settings_default(&s);
    assert_int_equal(set(&s, "temp", "9", err), 2);
    assert_string_equal(err, "temperature takes a number from 0 to 5, not '9'");
    assert_int_equal(set(&s, "top-k", "x", err), 2);
    assert_string_equal(err, "top-k takes a whole number from 0 to 1000000, not 'x'");
    assert_int_equal(set(&s, "ctx", "x", err), 2);
    assert_string_equal(err, "ctx takes a whole number from 1 to 16777216, or auto, not 'x'");
    assert_int_equal(set(&s, "temperature", "\033[2J", err), 2);
    assert_null(strchr(err, '\033'));
    assert_int_equal(set(&s, "ignore-eos", NULL, err), 0); /* the option without a value */
    assert_true(s.params.ignore_eos);
    assert_int_equal(set(&s, "io", "aio", err), 2);
    assert_string_equal(err, "io takes auto, uring, pread or mmap, not 'aio'");
    assert_int_equal(set(&s, "slots", "9", err), 2);
    assert_string_equal(err, "slots takes a whole number from 1 to 4, or auto, not '9'");
}

static void lists(void **state) {
    (void)state;
    QSFSettings s;
    char err[256], text[QSF_SETTING_TEXT];
    const QSFSetting *bias = qsf_setting_find("logit-bias"), *ban = qsf_setting_find("ban");
    qsf_settings_default(&s);
    assert_int_equal(qsf_setting_add(&s, bias, "a=1", err, sizeof err), 0);
    assert_int_equal(qsf_setting_add(&s, bias, ", ==-2.5", err, sizeof err), 0); /* the token ", =" */
    assert_int_equal(qsf_setting_add(&s, bias, "#12=-inf", err, sizeof err), 0);
    assert_int_equal(qsf_setting_add(&s, bias, "\\#12=3", err, sizeof err), 0); /* the text "#12" */
    assert_int_equal(qsf_setting_add(&s, bias, "a=4", err, sizeof err), 0);
    qsf_setting_get(&s, bias, text, sizeof text);
    assert_string_equal(text, "\\, ==-2.5,#12=-inf,\\#12=3,a=4");
    assert_false(qsf_setting_remove(&s, bias, "b"));
    assert_true(qsf_setting_remove(&s, bias, ", ="));
    assert_true(qsf_setting_remove(&s, bias, "#12=7"));
    assert_true(qsf_setting_remove(&s, bias, "a"));
    qsf_setting_get(&s, bias, text, sizeof text);
    assert_string_equal(text, "\\#12=3");
    /* a backslash is one item, however it came into the list */
    assert_int_equal(qsf_setting_add(&s, ban, "\\", err, sizeof err), 0);
    assert_int_equal(qsf_setting_add(&s, ban, "x", err, sizeof err), 0);
    qsf_setting_get(&s, ban, text, sizeof text);
    assert_string_equal(text, "\\\\,x");
    assert_int_equal(qsf_setting_set(&s, ban, "x,\\", err, sizeof err), 0);
    assert_int_equal(qsf_setting_add(&s, ban, "y", err, sizeof err), 0);
    qsf_setting_get(&s, ban, text, sizeof text);
    assert_string_equal(text, "x,\\\\,y");
    assert_true(qsf_setting_remove(&s, ban, "\\"));
    assert_int_equal(qsf_setting_set(&s, ban, "off", err, sizeof err), 0);
    for (size_t i = 0; i < 400; i++) {
        char item[16];
        snprintf(item, sizeof item, "#%zu=1", i);
        if (qsf_setting_add(&s, bias, item, err, sizeof err) != 0) break;
        assert_true(i < 300); /* it is full some time, and says so */
    }
    assert_non_null(strstr(err, "1023 bytes"));
    static const char *const wrong[] = { "a",        "=1",    "a=",   "a=x",
                                         "a=1e9",    "#=1",   "#x=1", "#99999999999=1",
                                         "a=1,,b=2", "a\nb=1" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        qsf_settings_default(&s);
        assert_int_equal(set(&s, "logit-bias", wrong[i], err), 2);
        assert_int_equal(set(&s, "logit-bias", "off", err), 0);
    }
    assert_int_equal(set(&s, "ban", "a,\\n,#5,\\off", err), 0);
    assert_true(qsf_setting_remove(&s, ban, "\\n") && qsf_setting_remove(&s, ban, "off"));
    qsf_setting_get(&s, ban, text, sizeof text);
    assert_string_equal(text, "a,#5");
    assert_int_equal(qsf_setting_add(&s, ban, "off", err, sizeof err), 0);
    assert_string_equal(s.params.ban, "");
    assert_int_equal(qsf_setting_add(&s, qsf_setting_find("top-k"), "7", err, sizeof err), 0);
    assert_int_equal(set(&s, "samplers", "top_k;temp", err), 0);
    assert_int_equal(set(&s, "samplers", "top_k,top-k", err), 2);
    assert_non_null(strstr(err, "'top-k' comes twice"));
    assert_int_equal(set(&s, "samplers", "top_kk", err), 2);
    assert_non_null(strstr(err, "'top_kk' is unknown"));
}

static void percent_and_size_exclude_each_other(void **state) {
    (void)state;
    QSFSettings s;
    char err[256];
    qsf_settings_default(&s);
    assert_int_equal(set(&s, "ram-budget", "25%", err), 0);
    assert_int_equal(s.ram_percent, 25);
    assert_int_equal(s.ram_budget, 0);
    assert_int_equal(set(&s, "ram-budget", "300", err), 0);
    assert_int_equal(s.ram_percent, 0);
    assert_int_equal(s.ram_budget, 300u << 20);
}

static void floats_print_shortest(void **state) {
    (void)state;
    static const float probes[] = { 0.0f, 0.1f, 0.7f, 0.95f, 1.0f, 1.1f, 3.14159274f, 1e-5f, 123456.0f };
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        char text[64];
        const char *end;
        double v;
        qsf_number_print(probes[i], text, sizeof text);
        assert_true(qsf_number_parse(text, &v, &end) && *end == '\0');
        assert_true((float)v == probes[i]);
        assert_true(strlen(text) <= 10);
    }
}

/* No protected positions are another value than those that the engine chooses. */
static void no_prefix_is_not_auto(void **state) {
    (void)state;
    QSFSettings s;
    char err[256], text[QSF_SETTING_TEXT];
    const QSFSetting *row = qsf_setting_find("protected-prefix");
    qsf_settings_default(&s);
    qsf_setting_get(&s, row, text, sizeof text);
    assert_string_equal(text, "auto");
    static const char *const values[] = { "0", "7", "auto" };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(qsf_setting_set(&s, row, values[i], err, sizeof err), 0);
        qsf_setting_get(&s, row, text, sizeof text);
        assert_string_equal(text, values[i]);
    }
    assert_int_equal(s.protected_prefix, 0);
    assert_int_equal(qsf_setting_set(&s, row, "-1", err, sizeof err), 2);
}

static void what_excludes_each_other(void **state) {
    static const struct {
        const char *quality, *policy;
        int rc;
    } rows[] = { { "1", "none", 0 },      { "0.5", "none", 0 }, { "1", "h2o", 0 },
                 { "0.5", "sliding", 2 }, { "0.99", "h2o", 2 }, { "0.01", "snapkv", 2 } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QSFSettings s;
        char err[400] = "";
        qsf_settings_default(&s);
        assert_int_equal(qsf_setting_set(&s, qsf_setting_find("quality"), rows[i].quality, err, sizeof err),
                         0);
        assert_int_equal(qsf_setting_set(&s, qsf_setting_find("eviction"), rows[i].policy, err, sizeof err),
                         0);
        assert_int_equal(qsf_settings_check(&s, err, sizeof err), rows[i].rc);
        assert_int_equal(qsf_settings_check(&s, NULL, 0), rows[i].rc);
        assert_true((err[0] != '\0') == (rows[i].rc != 0));
        if (rows[i].rc != 0) assert_non_null(strstr(err, rows[i].policy));
    }
    assert_int_equal(qsf_settings_check(NULL, NULL, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_excludes_each_other),
        cmocka_unit_test(defaults_are_the_documented_ones),
        cmocka_unit_test(every_row_reads_back_its_text),
        cmocka_unit_test(scales_of_one_file_add_up),
        cmocka_unit_test(kv_type_takes_back_k_and_v),
        cmocka_unit_test(names_and_aliases),
        cmocka_unit_test(values),
        cmocka_unit_test(refusals_name_the_range),
        cmocka_unit_test(lists),
        cmocka_unit_test(percent_and_size_exclude_each_other),
        cmocka_unit_test(floats_print_shortest),
        cmocka_unit_test(live_plans),
        cmocka_unit_test(no_prefix_is_not_auto),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
