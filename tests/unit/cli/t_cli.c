/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf_cli.h: every valid and every invalid way of writing an option. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qsf_cli.h"

enum { OPT_NAME, OPT_FLAG };

static const QSFCliOption options[] = {
    { "name", "nom,label", 'N', "TEXT", "a name", OPT_NAME },
    { "flag", "", 'f', NULL, "a switch", OPT_FLAG },
};
static const QSFCli cli = {
    .program = "t", .usage = "Usage: t\n", .summary = "test", .options = options, .n_options = 2
};

typedef struct Seen {
    char name[64];
    int flags;
} Seen;

static int on_option(void *arg, int id, const char *value, char *err, size_t cap) {
    Seen *s = arg;
    if (id == OPT_FLAG) return s->flags++, 0;
    if (!strcmp(value, "bad")) return snprintf(err, cap, "is bad"), 2;
    snprintf(s->name, sizeof s->name, "%s", value);
    return 0;
}

typedef struct Run {
    Seen seen;
    QSFSettings settings;
    QSFCliResult res;
    char err[512];
    int rc;
    char *argv[16];
} Run;

static Run parse(const char *line) {
    static char words[256];
    Run r = { 0 };
    int argc = 0;
    snprintf(words, sizeof words, "t %s", line);
    for (char *save, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) r.argv[argc++] = w;
    qsf_settings_default(&r.settings);
    r.rc = qsf_cli_parse(&cli, argc, r.argv, &r.settings, on_option, &r.seen, &r.res, r.err, sizeof r.err);
    return r;
}

static void forms(void **state) {
    (void)state;
    const char *const lines[] = { "--name x -f", "--name=x --flag", "-N x -f",   "-Nx -f", "-fN x",
                                  "-fNx",        "--label x -f",    "--nom=x -f" };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        Run r = parse(lines[i]);
        assert_int_equal(r.rc, 0);
        assert_string_equal(r.seen.name, "x");
        assert_int_equal(r.seen.flags, 1);
        assert_int_equal(r.res.n_positional, 0);
    }
}

static void settings_and_positionals(void **state) {
    (void)state;
    Run r = parse(
        "one --temperature 0.25 two --ram-budget=1.5G --ignore-eos --io mmap --direct=off --slots 2 -- --x");
    assert_int_equal(r.rc, 0);
    assert_true(r.settings.params.temperature == 0.25f);
    assert_true(r.settings.ram_budget == (uint64_t)3 << 29);
    assert_true(r.settings.params.ignore_eos);
    assert_string_equal(r.settings.io, "mmap");
    assert_string_equal(r.settings.direct, "off");
    assert_int_equal(r.settings.slots, 2);
    assert_int_equal(r.res.n_positional, 3);
}

static void errors_name_the_option(void **state) {
    (void)state;
    const struct {
        const char *line, *words;
    } bad[] = {
        { "--nmae x", "--name" },
        { "--zzzzzzzzzz", "--zzzzzzzzzz" },
        { "-z", "-z" },
        { "--name", "--name" },
        { "-N", "-N" },
        { "--flag=1", "--flag" },
        { "--name bad", "--name" },
        { "--temperature hot", "temperature" },
        { "--top-p 2", "top-p" },
        { "--ram-budget 12x", "ram-budget" },
        { "--io disk", "io" },
        { "--slots 5", "slots" },
        { "--nam x", "--nam" },
        { "--temperature", "--temperature" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Run r = parse(bad[i].line);
        assert_int_equal(r.rc, 2);
        if (!strstr(r.err, bad[i].words))
            fail_msg("%s: \"%s\" lacks \"%s\"", bad[i].line, r.err, bad[i].words);
    }
}

/* Options of other programs: what to do instead. */
static void foreign(void **state) {
    (void)state;
    const char *const cases[][2] = {
        { "-ngl 99 m", "unknown option -ngl: everything is computed on the CPU" },
        { "--n-gpu-layers=99 m", "unknown option --n-gpu-layers: everything is computed on the CPU" },
        { "-fa m", "unknown option -fa: there is nothing to choose" },
        { "-hf a/b", "unknown option -hf: write hf:OWNER/NAME" },
        { "-ctk q8_0 m", "unknown option -ctk: use --k-type" },
        { "-p x", "unknown option -p: qsf-run -p TEXT" },
        { "--port 8080", "unknown option --port: use qsf-serve --listen" },
        { "-nfoo", "max-tokens takes" },
        { "-c", "option -c needs a value" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Run r = parse(cases[i][0]);
        assert_int_equal(r.rc, 2);
        if (strncmp(r.err, cases[i][1], strlen(cases[i][1])) != 0) fail_msg("%s: %s", cases[i][0], r.err);
        assert_false(r.res.done);
    }
    assert_int_equal(parse("-fN x -n 5").rc, 0);
}

static void nearest_name(void **state) {
    (void)state;
    const char *const names[] = { "temperature", "threads", "template" };
    assert_string_equal(qsf_nearest("temprature", names, 3), "temperature");
    assert_string_equal(qsf_nearest("thread", names, 3), "threads");
    assert_null(qsf_nearest("xyz", names, 3));
}

static void sizes(void **state) {
    (void)state;
    uint64_t bytes;
    uint32_t percent;
    assert_true(qsf_parse_size("200", &bytes, &percent) && bytes == 200ull << 20 && !percent);
    assert_true(qsf_parse_size("1.5G", &bytes, &percent) && bytes == 3ull << 29);
    assert_true(qsf_parse_size("25%", &bytes, &percent) && bytes == 0 && percent == 25);
    assert_true(qsf_parse_size("auto", &bytes, &percent) && bytes == 0 && percent == 0);
    const char *const bad[] = {
        "", "x", "-1", "1.5.2G", "101%", "0%", "99999999999G", "12MBs", "nan", "inf"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (qsf_parse_size(bad[i], &bytes, &percent)) fail_msg("\"%s\" was accepted", bad[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),
        cmocka_unit_test(settings_and_positionals),
        cmocka_unit_test(errors_name_the_option),
        cmocka_unit_test(nearest_name),
        cmocka_unit_test(foreign),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
