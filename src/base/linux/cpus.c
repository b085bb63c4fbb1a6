/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cores and their kinds, from the affinity mask and the files that cpus.h names. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/platform.h"

#define TEXT_MAX    4096
#define SAME_KIND   0.8 /* of the fastest core's speed; favoured cores of one kind differ by less */
#define SPEEDS_MAX  16  /* different speeds; further ones are merged */
#define LIST_LEVELS 3   /* event_source devices of Intel's hybrid processors */

/* ---- files ---- */

/* Reads a short file below root. Returns false if it cannot be read. */
static bool read_text(const char *root, const char *path, char out[TEXT_MAX]) {
    char whole[PATH_MAX];
    int n = snprintf(whole, sizeof whole, "%s%s", root, path);
    int fd = n > 0 && (size_t)n < sizeof whole ? open(whole, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return false;
    ssize_t got;
    do got = read(fd, out, TEXT_MAX - 1);
    while (got < 0 && errno == EINTR);
    close(fd);
    out[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* Parses "0-5,8,10-11"; stops at the first thing that is none. Returns false if it has no number. */
static bool parse_list(const char *text, QsfCpuSet *out) {
    bool any = false;
    memset(out, 0, sizeof *out);
    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-' && end[1] >= '0' && end[1] <= '9') last = strtoul(end + 1, &end, 10);
        for (unsigned long n = first; n <= last && n < QSF_CPUS_MAX; n++) qsf_cpu_add(out, (unsigned)n);
        any = true;
        if (*end != ',') break;
        text = end + 1;
    }
    return any;
}

static bool read_list(const char *root, const char *path, QsfCpuSet *out) {
    char text[TEXT_MAX];
    return read_text(root, path, text) && parse_list(text, out);
}

/* Reads a number from a file of CPU n; 0 if there is none. */
static unsigned long cpu_number(const char *root, unsigned n, const char *name) {
    char path[96], text[TEXT_MAX];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/%s", n, name);
    return read_text(root, path, text) ? strtoul(text, NULL, 10) : 0;
}

/* ---- cores ---- */

void qsf_os_allowed_cpus(QsfCpuSet *out) {
    const size_t size = CPU_ALLOC_SIZE(QSF_CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(QSF_CPUS_MAX);
    memset(out, 0, sizeof *out);
    const bool known = set != NULL && sched_getaffinity(0, size, set) == 0;
    for (unsigned n = 0; known && n < QSF_CPUS_MAX; n++)
        if (CPU_ISSET_S(n, size, set)) qsf_cpu_add(out, n);
    CPU_FREE(set);
    if (known) return;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    for (unsigned n = 0; n == 0 || (long)n < online; n++) qsf_cpu_add(out, n);
}

/* Returns the CPU with the lowest number on the core of CPU n: n itself if that is not known. */
static unsigned core_of(const char *root, unsigned n) {
    static const char *const names[] = { "core_cpus_list", "thread_siblings_list" };
    char path[96];
    QsfCpuSet siblings;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/%s", n, names[i]);
        if (!read_list(root, path, &siblings) || !qsf_cpu_in(&siblings, n)) continue;
        for (unsigned k = 0; k < n; k++)
            if (qsf_cpu_in(&siblings, k)) return k;
        return n;
    }
    return n;
}

/* Ways to learn how fast CPU n is, in any unit; 0 = not known. The first that knows a CPU serves all. */
typedef struct Speeds {
    const char *root;
    bool listed[LIST_LEVELS];
    QsfCpuSet list[LIST_LEVELS];
} Speeds;

static const char *const list_path[LIST_LEVELS] = { "/sys/devices/cpu_core/cpus",
                                                    "/sys/devices/cpu_atom/cpus",
                                                    "/sys/devices/cpu_lowpower/cpus" };

/* The lists name kinds, not speeds: far enough apart to be told from each other. */
static unsigned long listed_speed(const Speeds *s, unsigned n) {
    for (unsigned i = 0; s->listed[0] && i < LIST_LEVELS; i++)
        if (s->listed[i] && qsf_cpu_in(&s->list[i], n)) return 4ul >> i;
    return 0;
}
static unsigned long capacity(const Speeds *s, unsigned n) { return cpu_number(s->root, n, "cpu_capacity"); }
static unsigned long frequency(const Speeds *s, unsigned n) {
    return cpu_number(s->root, n, "cpufreq/cpuinfo_max_freq");
}
static const struct {
    const char *name;
    unsigned long (*speed)(const Speeds *s, unsigned n);
} sources[] = { { "cpu_core", listed_speed }, { "cpu_capacity", capacity }, { "cpufreq", frequency } };
#define N_SOURCES (sizeof sources / sizeof *sources)

/* CPUs and cores of one speed. */
typedef struct Speed {
    unsigned long speed;
    QsfCpuKind n;
} Speed;

/* Finds or inserts a speed, the fastest first. */
static Speed *speed_of(Speed *all, size_t *n, unsigned long speed) {
    size_t at = 0;
    while (at < *n && all[at].speed > speed) at++;
    if (at < *n && all[at].speed == speed) return &all[at];
    if (*n == SPEEDS_MAX) return &all[at < *n ? at : *n - 1];
    memmove(&all[at + 1], &all[at], (*n - at) * sizeof *all);
    ++*n;
    all[at] = (Speed){ .speed = speed };
    return &all[at];
}

static void group(QsfCpus *c, const Speed *all, size_t n) {
    unsigned long first = 0; /* speed of the fastest core of the last kind */
    for (size_t i = 0; i < n; i++) {
        const bool other = c->n_kinds == 0 || (double)all[i].speed < SAME_KIND * (double)first;
        if (other && c->n_kinds < QSF_CPU_KINDS) {
            first = all[i].speed;
            c->n_kinds++;
        }
        c->kind[c->n_kinds - 1].cores += all[i].n.cores;
        c->kind[c->n_kinds - 1].cpus += all[i].n.cpus;
    }
}

/* Returns the first source that knows the speed of an allowed CPU; N_SOURCES if none does. */
static size_t find_source(const Speeds *s, const QsfCpuSet *allowed) {
    for (size_t i = 0; i < N_SOURCES; i++)
        for (unsigned n = 0; n < QSF_CPUS_MAX; n++)
            if (qsf_cpu_in(allowed, n) && sources[i].speed(s, n) > 0) return i;
    return N_SOURCES;
}

void qsf_os_cpu_kinds(QsfCpus *c, const char *root, const QsfCpuSet *allowed) {
    Speeds s = { .root = root };
    QsfCpuSet cores = { 0 };
    Speed all[SPEEDS_MAX + 1];
    size_t n_speeds = 0;
    for (unsigned i = 0; i < LIST_LEVELS; i++) s.listed[i] = read_list(root, list_path[i], &s.list[i]);
    const size_t source = find_source(&s, allowed);
    for (unsigned n = 0; n < QSF_CPUS_MAX; n++) {
        if (!qsf_cpu_in(allowed, n)) continue;
        const unsigned core = core_of(root, n);
        Speed *to = speed_of(all, &n_speeds, source < N_SOURCES ? sources[source].speed(&s, n) : 0);
        to->n.cpus++;
        to->n.cores += !qsf_cpu_in(&cores, core);
        qsf_cpu_add(&cores, core);
    }
    group(c, all, n_speeds);
    c->cores = qsf_cpus_in_set(&cores);
    c->source = source < N_SOURCES ? sources[source].name : "";
}

uint64_t qsf_os_cache_bytes(void) {
#ifdef _SC_LEVEL3_CACHE_SIZE /* not in musl */
    const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? (uint64_t)bytes : 0;
#else
    return 0;
#endif
}
