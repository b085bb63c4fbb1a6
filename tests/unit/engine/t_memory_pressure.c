/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The monitor of memory, with made files of /proc and of memory cgroups, also damaged ones. */
#include <stdarg.h>
#include <sys/stat.h>

#include "src/base/clock.h"
#include "src/engine/memory_pressure.h"
#include "tests/harness/qsf_test.h"

#define MIB    1048576u
#define SECOND 1000000000u

static char root[400];

static int setup(void **state) {
    (void)state;
    (void)snprintf(root, sizeof root, "%s.XXXXXX", qsf_test_tmp("memory"));
    return mkdtemp(root) ? 0 : 1;
}

static int teardown(void **state) {
    char command[500];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

/* Writes a file below the root, with its folders; text NULL removes it. */
static void put(const char *name, const char *text) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        (void)mkdir(path, 0700);
    }
    if (!text) {
        (void)unlink(path);
        return;
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static uint64_t available(void) { return qsf_available_below(root); }

static void test_meminfo(void **state) {
    (void)state;
    assert_true(available() == UINT64_MAX);
    put("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n");
    assert_int_equal(available(), 2 * MIB);
    static const char *const damaged[] = { "", "MemAvailable:", "MemAvailable: many kB\n",
                                           "MemAvailable: -5 kB\n", "XMemAvailable: 5 kB\n" };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        put("proc/meminfo", damaged[i]);
        assert_true(available() == UINT64_MAX);
    }
    put("proc/meminfo", "MemAvailable: 99999999999999999999999999 kB\n");
    assert_true(available() == UINT64_MAX);
}

/* The tightest cgroup of the process and its ancestors; page cache that is not used counts as available. */
static void test_cgroups(void **state) {
    (void)state;
    put("proc/meminfo", "MemAvailable: 102400 kB\n");
    put("proc/self/cgroup", "0::/outer/inner\n");
    put("sys/fs/cgroup/outer/memory.max", "62914560\n");
    put("sys/fs/cgroup/outer/memory.current", "31457280\n");
    put("sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file 1048576\n");
    assert_int_equal(available(), 31 * MIB);
    put("sys/fs/cgroup/outer/inner/memory.max", "max\n");
    put("sys/fs/cgroup/outer/inner/memory.high", "41943040\n");
    put("sys/fs/cgroup/outer/inner/memory.current", "20971520\n");
    assert_int_equal(available(), 20 * MIB);
    put("sys/fs/cgroup/outer/inner/memory.current", "nothing\n"); /* as if it used none */
    assert_int_equal(available(), 31 * MIB);
    put("sys/fs/cgroup/outer/inner/memory.current", "104857600\n");
    assert_int_equal(available(), 0);
    put("proc/self/cgroup", "5:cpu:/x\n4:memory,blkio:/old\n");
    put("sys/fs/cgroup/memory/old/memory.limit_in_bytes", "10485760\n");
    put("sys/fs/cgroup/memory/old/memory.usage_in_bytes", "5242880\n");
    put("sys/fs/cgroup/memory/old/memory.stat", "total_inactive_file 1048576\n");
    assert_int_equal(available(), 6 * MIB);
    put("sys/fs/cgroup/memory/old/memory.limit_in_bytes", "9223372036854771712\n"); /* no limit */
    assert_int_equal(available(), 100 * MIB);
}

/* What the machine has: not what is free now, and never more than a cgroup allows. */
static void test_limit(void **state) {
    (void)state;
    put("proc/self/cgroup", "0::/whole/part\n");
    put("proc/meminfo", "MemAvailable: 1024 kB\n");
    assert_true(qsf_limit_below(root) == UINT64_MAX);
    put("proc/meminfo", "MemTotal: 102400 kB\nMemAvailable: 1024 kB\n");
    assert_int_equal(qsf_limit_below(root), 100 * MIB);
    put("sys/fs/cgroup/whole/memory.max", "62914560\n");
    put("sys/fs/cgroup/whole/memory.current", "62914560\n");
    assert_int_equal(qsf_limit_below(root), 60 * MIB);
    put("sys/fs/cgroup/whole/part/memory.high", "31457280\n");
    assert_int_equal(qsf_limit_below(root), 30 * MIB);
}

static void test_stall(void **state) {
    (void)state;
    assert_true(qsf_memory_stall_below(root) < 0);
    put("proc/pressure/memory", "some avg10=50.00 avg60=1.00 avg300=0.00 total=5\n"
                                "full avg10=12.34 avg60=0.50 avg300=0.00 total=3\n");
    assert_float_equal(qsf_memory_stall_below(root), 12.3, 1e-9);
    static const char *const damaged[] = { "full", "full avg10=", "full avg10=x", "full avg10=999.0", "" };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        put("proc/pressure/memory", damaged[i]);
        assert_true(qsf_memory_stall_below(root) < 0);
    }
}

static void test_levels(void **state) {
    (void)state;
    QsfPressure p;
    char note[200];
    setenv(QSF_PRESSURE_ROOT, root, 1);
    qsf_pressure_init(&p);
    unsetenv(QSF_PRESSURE_ROOT);
    p.root = root;
    put("proc/meminfo", "MemAvailable: 10240 kB\n");
    assert_int_equal(qsf_pressure_look(&p, 11 * MIB, 1), QSF_PRESSURE_LOW);
    assert_true(qsf_pressure_note(&p, 11, note, sizeof note) > 0);
    assert_string_equal(note, "10 MB available, threshold 11 MB");
    /* Not looked at again at once. */
    put("proc/meminfo", "MemAvailable: 102400 kB\n");
    assert_int_equal(qsf_pressure_look(&p, 11 * MIB, 2), QSF_PRESSURE_SAME);
    assert_int_equal(qsf_pressure_look(&p, 11 * MIB, SECOND), QSF_PRESSURE_AMPLE);
    qsf_pressure_wait(&p, SECOND);
    assert_int_equal(qsf_pressure_look(&p, 11 * MIB, SECOND + SECOND / 2), QSF_PRESSURE_SAME);
    /* Between low and ample, stalls decide. */
    assert_int_equal(qsf_pressure_look(&p, 70 * MIB, 3ull * SECOND), QSF_PRESSURE_SAME);
    put("proc/pressure/memory", "some avg10=20.00\nfull avg10=10.00 avg60=0\n");
    assert_int_equal(qsf_pressure_look(&p, 70 * MIB, 4ull * SECOND), QSF_PRESSURE_LOW);
    assert_int_equal(qsf_pressure_look(&p, 50 * MIB, 5ull * SECOND), QSF_PRESSURE_AMPLE);
    /* Unknown: nothing happens, and the reason is there. */
    put("proc/meminfo", "MemAvailable: what\n");
    assert_int_equal(qsf_pressure_look(&p, 70 * MIB, 6ull * SECOND), QSF_PRESSURE_SAME);
    assert_true(qsf_pressure_note(&p, 70, note, sizeof note) > 0);
    assert_non_null(strstr(note, "no number after MemAvailable"));
    assert_int_equal(qsf_pressure_note(&p, 0, note, sizeof note), 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = { T(test_meminfo), T(test_cgroups), T(test_limit), T(test_stall),
                                        T(test_levels) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
