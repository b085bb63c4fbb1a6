/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Resident set, available memory and CPU quota, with cgroup limits. File formats: proc(5), cgroups(7),
 * Linux Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/platform.h"

#define TEXT_MAX 8192

/* Reads a small file into a string. Returns false if it cannot be read. */
static bool read_text(const char *path, char out[TEXT_MAX]) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t len = 0;
    while (len < TEXT_MAX - 1) {
        ssize_t n = read(fd, out + len, TEXT_MAX - 1 - len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        len += (size_t)n;
    }
    close(fd);
    out[len] = '\0';
    return len > 0;
}

/* Finds the line that starts with `key` and parses the number after it. */
static bool line_number(const char *text, const char *key, uint64_t *out) {
    size_t n = strlen(key);
    for (const char *p = text; p != NULL && *p != '\0'; p = strchr(p, '\n')) {
        if (*p == '\n') p++;
        if (strncmp(p, key, n) != 0) continue;
        p += n;
        while (*p == ' ' || *p == '\t') p++;
        if (!isdigit((unsigned char)*p)) return false;
        *out = strtoull(p, NULL, 10);
        return true;
    }
    return false;
}

static uint64_t proc_kib(const char *path, const char *key) {
    char text[TEXT_MAX];
    uint64_t v = 0;
    return read_text(path, text) && line_number(text, key, &v) ? v * 1024 : 0;
}

uint64_t qsf_rss_bytes(void) { return proc_kib("/proc/self/status", "VmRSS:"); }

uint64_t qsf_recent_peak_rss_bytes(void) {
    uint64_t v = proc_kib("/proc/self/status", "VmHWM:");
    struct rusage ru;
    if (v == 0 && getrusage(RUSAGE_SELF, &ru) == 0) v = (uint64_t)ru.ru_maxrss * 1024;
    return v;
}

bool qsf_os_reset_peak(void) {
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n;
    do n = write(fd, "5", 1);
    while (n < 0 && errno == EINTR);
    close(fd);
    return n == 1;
}

/* Reads the number in DIR/name. Returns false for "max", -1 and missing files. */
static bool cgroup_number(const char *dir, const char *name, uint64_t *out) {
    char path[PATH_MAX], text[TEXT_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof path && read_text(path, text) && line_number(text, "", out);
}

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Returns the limit of the memory cgroup at dir; UINT64_MAX if it has none. */
static uint64_t cgroup_limit(const char *dir, bool v2) {
    uint64_t limit, high;
    if (!cgroup_number(dir, v2 ? "memory.max" : "memory.limit_in_bytes", &limit)) limit = UINT64_MAX;
    if (v2 && cgroup_number(dir, "memory.high", &high)) limit = min_u64(limit, high);
    return limit >= INT64_MAX / 2 ? UINT64_MAX : limit; /* v1 writes "no limit" as a huge number */
}

/* Returns the headroom of the memory cgroup at dir: limit - usage + inactive page cache, which can be dropped
 * immediately. UINT64_MAX if it has no limit. */
static uint64_t cgroup_left(const char *dir, bool v2) {
    const uint64_t limit = cgroup_limit(dir, v2);
    uint64_t usage = 0, inactive = 0;
    if (limit == UINT64_MAX) return UINT64_MAX;
    cgroup_number(dir, v2 ? "memory.current" : "memory.usage_in_bytes", &usage);
    char path[PATH_MAX], text[TEXT_MAX];
    int n = snprintf(path, sizeof path, "%s/memory.stat", dir);
    if (n > 0 && (size_t)n < sizeof path && read_text(path, text))
        line_number(text, v2 ? "inactive_file " : "total_inactive_file ", &inactive);
    usage -= min_u64(usage, inactive);
    return limit - min_u64(limit, usage);
}

/* Reads /proc/self/cgroup, once for all controllers; "" if there is none. */
static void read_cgroups(const char *root, char text[TEXT_MAX]) {
    char file[PATH_MAX];
    int n = snprintf(file, sizeof file, "%s/proc/self/cgroup", root);
    if (n < 0 || (size_t)n >= sizeof file || !read_text(file, text)) text[0] = '\0';
}

/* Is name in the list of `bytes` bytes, whose words have commas between them? NULL: is the list empty? */
static bool lists(const char *list, size_t bytes, const char *name) {
    if (name == NULL) return bytes == 0;
    const size_t len = strlen(name);
    for (const char *end = list + bytes; list < end;) {
        const char *comma = memchr(list, ',', (size_t)(end - list)), *stop = comma != NULL ? comma : end;
        if ((size_t)(stop - list) == len && memcmp(list, name, len) == 0) return true;
        list = stop + 1;
    }
    return false;
}

/* Finds the path of this process below the mount point of a controller: the line "N:...,name,...:PATH" of
 * these groups, or "0::PATH" if name is NULL. "" if there is no such line. */
static void cgroup_path(const char *groups, const char *name, char out[PATH_MAX]) {
    out[0] = '\0';
    for (const char *line = groups; *line != '\0';) {
        const size_t bytes = strcspn(line, "\n");
        const char *list = memchr(line, ':', bytes), *end = line + bytes;
        const char *path = list == NULL ? NULL : memchr(list + 1, ':', (size_t)(end - list - 1));
        if (path != NULL && lists(list + 1, (size_t)(path - list - 1), name)) {
            snprintf(out, PATH_MAX, "%.*s", (int)(end - path - 1), path + 1);
            return;
        }
        line = *end == '\n' ? end + 1 : end;
    }
}

typedef uint64_t (*CgroupFn)(const char *dir, bool v2);

/* Returns the minimum of fn over the cgroup of this process, which is one of these groups, and all its
 * ancestors. Inside a container the path may not exist below the mount point; its existing ancestors (at
 * least the mount point) still count. */
static uint64_t cgroup_min(const char *root, const char *groups, const char *mount, const char *controller,
                           CgroupFn fn) {
    const bool v2 = controller == NULL;
    char path[PATH_MAX], dir[PATH_MAX];
    cgroup_path(groups, controller, path);
    if (strstr(path, "..") != NULL)
        path[0] = '\0'; /* outside our namespace: only the mount point is visible */
    uint64_t best = UINT64_MAX;
    for (;;) {
        int n = snprintf(dir, sizeof dir, "%s%s%s", root, mount, path);
        if (n > 0 && (size_t)n < sizeof dir) best = min_u64(best, fn(dir, v2));
        char *slash = strrchr(path, '/');
        if (slash == NULL) return best;
        *slash = '\0';
    }
}

/* Returns the minimum of a line of /proc/meminfo and of fn over all memory cgroups of this process. */
static uint64_t memory_min(const char *root, const char *line, CgroupFn fn) {
    char path[PATH_MAX], text[TEXT_MAX];
    uint64_t v = UINT64_MAX;
    int n = snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (n > 0 && (size_t)n < sizeof path && read_text(path, text) && line_number(text, line, &v))
        v = v < UINT64_MAX / 1024 ? v * 1024 : UINT64_MAX;
    read_cgroups(root, text);
    v = min_u64(v, cgroup_min(root, text, "/sys/fs/cgroup", NULL, fn));
    v = min_u64(v, cgroup_min(root, text, "/sys/fs/cgroup/unified", NULL, fn));
    return min_u64(v, cgroup_min(root, text, "/sys/fs/cgroup/memory", "memory", fn));
}

uint64_t qsf_available_below(const char *root) { return memory_min(root, "MemAvailable:", cgroup_left); }

uint64_t qsf_limit_below(const char *root) { return memory_min(root, "MemTotal:", cgroup_limit); }

uint64_t qsf_available_bytes(void) {
    uint64_t v = qsf_available_below("");
    if (v != UINT64_MAX) return v;
    long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

double qsf_memory_stall_below(const char *root) {
    char path[PATH_MAX], text[TEXT_MAX];
    int n = snprintf(path, sizeof path, "%s/proc/pressure/memory", root);
    if (n < 0 || (size_t)n >= sizeof path || !read_text(path, text)) return -1;
    const char *full = strstr(text, "full avg10=");
    if (full == NULL) return -1;
    full += strlen("full avg10=");
    if (!isdigit((unsigned char)*full)) return -1;
    uint64_t whole = strtoull(full, (char **)&full, 10);
    double tenth = *full == '.' && isdigit((unsigned char)full[1]) ? (full[1] - '0') / 10.0 : 0;
    return whole > 100 ? -1 : (double)whole + tenth;
}

/* Returns the CPU quota of the cgroup at dir in thousandths of a CPU; UINT64_MAX without a quota. */
static uint64_t cgroup_cpus(const char *dir, bool v2) {
    char path[PATH_MAX], text[TEXT_MAX];
    uint64_t quota, period = 0;
    if (v2) {
        int n = snprintf(path, sizeof path, "%s/cpu.max", dir);
        char *end;
        if (n < 0 || (size_t)n >= sizeof path || !read_text(path, text) || !isdigit((unsigned char)text[0]))
            return UINT64_MAX;
        quota = strtoull(text, &end, 10);
        period = strtoull(end, NULL, 10);
    } else if (!cgroup_number(dir, "cpu.cfs_quota_us", &quota) ||
               !cgroup_number(dir, "cpu.cfs_period_us", &period)) {
        return UINT64_MAX;
    }
    if (period == 0 || quota == 0 || quota > UINT64_MAX / 1000) return UINT64_MAX;
    return quota * 1000 / period > 0 ? quota * 1000 / period : 1;
}

double qsf_cpu_quota_below(const char *root) {
    static const struct {
        const char *mount, *controller; /* NULL: cgroup v2 */
    } at[] = { { "/sys/fs/cgroup", NULL },
               { "/sys/fs/cgroup/unified", NULL },
               { "/sys/fs/cgroup/cpu", "cpu" },
               { "/sys/fs/cgroup/cpu,cpuacct", "cpu" } };
    char groups[TEXT_MAX];
    read_cgroups(root, groups);
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        least = min_u64(least, cgroup_min(root, groups, at[i].mount, at[i].controller, cgroup_cpus));
    return least == UINT64_MAX ? 0 : (double)least / 1000;
}
