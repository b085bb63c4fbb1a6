/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cores, kinds, quotas and numbers of threads, from made trees of sysfs and cgroups. */
#include <sys/stat.h>

#include "src/base/clock.h"
#include "src/base/cpus.h"
#include "tests/harness/qsf_test.h"

static char root[400];

static int setup(void **state) {
    (void)state;
    (void)snprintf(root, sizeof root, "%s.XXXXXX", qsf_test_tmp("cpus"));
    return mkdtemp(root) ? 0 : 1;
}

static int teardown(void **state) {
    char command[500];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

/* Writes a file below the root, with its folders. */
static void put(const char *name, const char *text) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        (void)mkdir(path, 0700);
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static void put_cpu(unsigned n, const char *name, const char *text) {
    char path[200];
    (void)snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/%s", n, name);
    put(path, text);
}

static QsfCpuSet cpus(unsigned first, unsigned last) {
    QsfCpuSet s = { 0 };
    for (unsigned n = first; n <= last; n++) qsf_cpu_add(&s, n);
    return s;
}

static QsfCpus look(unsigned first, unsigned last) {
    const QsfCpuSet s = cpus(first, last);
    QsfCpus c;
    qsf_cpus_read(&c, root, &s);
    return c;
}

static void expect_text(const QsfCpus *c, const char *want) {
    char text[120];
    qsf_cpus_text(c, text, sizeof text);
    assert_string_equal(text, want);
}

/* want: ascending, ends with 0. */
static void expect_widths(const QsfCpus *c, const int *want, int decode, int prefill) {
    QsfWidth w[QSF_WIDTHS];
    int d, p, n = qsf_cpus_widths(c, w, &d, &p);
    for (int i = 0; i < n; i++) {
        if (w[i].threads != want[i]) fail_msg("number %d is %d, not %d", i, w[i].threads, want[i]);
        assert_true(w[i].what[0] != '\0');
    }
    assert_int_equal(want[n], 0);
    assert_int_equal(w[d].threads, decode);
    assert_int_equal(w[p].threads, prefill);
}

/* A processor with 6 fast cores of two threads each, CPUs 0 to 11, and 8 slow ones. */
static void make_hybrid(void) {
    for (unsigned n = 0; n < 20; n++) {
        char list[24];
        if (n < 12)
            (void)snprintf(list, sizeof list, "%u-%u\n", n & ~1u, n | 1u);
        else
            (void)snprintf(list, sizeof list, "%u\n", n);
        put_cpu(n, "topology/core_cpus_list", list);
        put_cpu(n, "cpufreq/cpuinfo_max_freq", n < 12 ? n < 4 ? "5000000\n" : "4800000\n" : "3800000\n");
    }
}

static void test_intel_hybrid(void **state) {
    (void)state;
    make_hybrid();
    QsfCpus c = look(0, 19);
    expect_text(&c, "6 + 8 cores, 20 CPUs (cpufreq)"); /* favoured cores are of the same kind */
    put("sys/devices/cpu_core/cpus", "0-11\n");
    put("sys/devices/cpu_atom/cpus", "12-19\n");
    c = look(0, 19);
    expect_text(&c, "6 + 8 cores, 20 CPUs (cpu_core)");
    assert_true(c.n_kinds == 2 && c.kind[0].cores == 6 && c.kind[0].cpus == 12 && c.kind[1].cores == 8);
    assert_true(c.limit == 20 && c.cores == 14 && c.quota <= 0);
    expect_widths(&c, (const int[]){ 6, 10, 12, 14, 19, 20, 0 }, 6, 14);

    c = look(12, 19); /* taskset: the slow cores only */
    expect_text(&c, "8 cores");
    expect_widths(&c, (const int[]){ 4, 7, 8, 0 }, 8, 8);
    c = look(3, 3);
    expect_text(&c, "1 core");
    expect_widths(&c, (const int[]){ 1, 0 }, 1, 1);
    c = look(0, 3); /* two cores, both threads of each */
    expect_text(&c, "2 cores, 4 CPUs");
    expect_widths(&c, (const int[]){ 1, 2, 3, 4, 0 }, 2, 2);
}

/* Three kinds: a newer processor with cores for hardly any power. */
static void test_three_kinds(void **state) {
    (void)state;
    put("sys/devices/cpu_core/cpus", "0-3");
    put("sys/devices/cpu_atom/cpus", "4-7,10");
    put("sys/devices/cpu_lowpower/cpus", "8-9\n");
    QsfCpus c = look(0, 10);
    expect_text(&c, "4 + 5 + 2 cores (cpu_core)");
    expect_widths(&c, (const int[]){ 4, 6, 9, 10, 11, 0 }, 4, 11);
}

static void test_big_little(void **state) {
    (void)state;
    for (unsigned n = 0; n < 8; n++) put_cpu(n, "cpu_capacity", n < 4 ? "446\n" : "1024\n");
    QsfCpus c = look(0, 7);
    expect_text(&c, "4 + 4 cores (cpu_capacity)");
    expect_widths(&c, (const int[]){ 4, 7, 8, 0 }, 4, 8);
}

/* A virtual machine without these files; files that contain something else are ignored. */
static void test_nothing(void **state) {
    (void)state;
    QsfCpus c = look(0, 7);
    expect_text(&c, "8 cores");
    assert_string_equal(c.source, "");
    expect_widths(&c, (const int[]){ 4, 7, 8, 0 }, 8, 8);
    c = look(0, 1);
    expect_widths(&c, (const int[]){ 1, 2, 0 }, 2, 2);
    for (unsigned n = 0; n < 4; n++) {
        put_cpu(n, "topology/core_cpus_list", n == 0 ? "" : n == 1 ? "x" : n == 2 ? "9-7" : "0-");
        put_cpu(n, "cpu_capacity", n == 0 ? "" : "fast\n");
        put_cpu(n, "cpufreq/cpuinfo_max_freq", "-\n");
    }
    put("sys/devices/cpu_core/cpus", "\n");
    put("sys/devices/cpu_atom/cpus", "4-999999999999999999999\n");
    c = look(0, 3);
    expect_text(&c, "4 cores");
}

/* The tightest quota among a group and those that contain it, of both versions of cgroups. */
static void test_quota(void **state) {
    (void)state;
    assert_true(qsf_cpu_quota_below(root) <= 0);
    put("proc/self/cgroup", "0::/outer/inner\n");
    put("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
    assert_float_equal(qsf_cpu_quota_below(root), 1.5, 1e-9);
    QsfCpus c = look(0, 3);
    expect_text(&c, "4 cores, quota of 1.50 CPUs");
    assert_int_equal(c.limit, 2);
    expect_widths(&c, (const int[]){ 1, 2, 0 }, 2, 2);
    put("sys/fs/cgroup/outer/inner/cpu.max", "100000 100000\n");
    c = look(0, 3);
    expect_widths(&c, (const int[]){ 1, 0 }, 1, 1);
    put("sys/fs/cgroup/outer/inner/cpu.max", "5000 100000\n");
    c = look(0, 3);
    assert_int_equal(c.limit, 1);
    put("sys/fs/cgroup/outer/inner/cpu.max", "900000 100000\n");
    put("sys/fs/cgroup/outer/cpu.max", "900000 100000\n");
    c = look(0, 3);
    assert_int_equal(c.limit, 4);

    put("proc/self/cgroup", "3:cpu,cpuacct:/a/b\n0::/\n");
    put("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "250000\n");
    put("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    assert_float_equal(qsf_cpu_quota_below(root), 2.5, 1e-9);
    c = look(0, 3);
    assert_int_equal(c.limit, 3);
    static const char *const damaged[] = { "", "150000", "150000 0", "x 100000", "0 100000", "-1 100000" };
    put("proc/self/cgroup", "0::/bad\n");
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        put("sys/fs/cgroup/bad/cpu.max", damaged[i]);
        assert_true(qsf_cpu_quota_below(root) <= 0);
    }
}

/* This machine, whatever it is. */
static void test_here(void **state) {
    (void)state;
    QsfCpus c;
    QsfWidth w[QSF_WIDTHS];
    int d, p;
    qsf_cpus_read(&c, "", NULL);
    assert_int_equal(c.limit, qsf_cpu_count());
    const int n = qsf_cpus_widths(&c, w, &d, &p);
    assert_in_range(n, 1, QSF_WIDTHS);
    for (int i = 0; i < n; i++) assert_in_range(w[i].threads, 1, c.limit);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = { TEST(test_intel_hybrid), TEST(test_three_kinds),
                                        TEST(test_big_little),   TEST(test_nothing),
                                        TEST(test_quota),        TEST(test_here) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
