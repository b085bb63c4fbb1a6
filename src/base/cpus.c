/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"

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

static void read_affinity(QsfCpuSet *out) {
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

static int count(const QsfCpuSet *s) {
    int n = 0;
    for (unsigned i = 0; i < QSF_CPUS_MAX / 64; i++) n += __builtin_popcountll(s->bit[i]);
    return n;
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

static void read_kinds(QsfCpus *c, const char *root, const QsfCpuSet *allowed) {
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
    c->cores = count(&cores);
    c->source = source < N_SOURCES ? sources[source].name : "";
}

void qsf_cpus_read(QsfCpus *out, const char *root, const QsfCpuSet *allowed) {
    QsfCpuSet own;
    *out = (QsfCpus){ .quota = qsf_cpu_quota_below(root) };
    if (allowed == NULL || count(allowed) == 0) {
        read_affinity(&own);
        allowed = &own;
    }
    out->cpus = count(allowed);
    read_kinds(out, root, allowed);
    out->limit = out->cpus;
    if (out->quota > 0 && out->quota < out->cpus)
        out->limit = (int)out->quota + (out->quota > (int)out->quota);
    if (out->limit < 1) out->limit = 1;
}

int qsf_cpu_count(void) {
    QsfCpuSet own;
    read_affinity(&own);
    const int n = count(&own);
    const double quota = qsf_cpu_quota_below("");
    if (quota <= 0 || quota >= n) return n;
    return (int)quota + (quota > (int)quota);
}

void qsf_cpus_text(const QsfCpus *c, char *dst, size_t cap) {
    size_t n = 0;
    for (int i = 0; i < c->n_kinds && n < cap; i++)
        n += (size_t)snprintf(dst + n, cap - n, "%s%d", i == 0 ? "" : " + ", c->kind[i].cores);
    if (n < cap) n += (size_t)snprintf(dst + n, cap - n, " core%s", c->cores == 1 ? "" : "s");
    if (n < cap && c->cpus != c->cores) n += (size_t)snprintf(dst + n, cap - n, ", %d CPUs", c->cpus);
    if (n < cap && c->n_kinds > 1) n += (size_t)snprintf(dst + n, cap - n, " (%s)", c->source);
    if (n < cap && c->quota > 0) snprintf(dst + n, cap - n, ", quota of %.2f CPUs", c->quota);
}

/* ---- numbers of threads ---- */

/* Inserts a number, unless it is there or out of range. */
static void put_width(const QsfCpus *c, QsfWidth out[QSF_WIDTHS], int *n, int threads, const char *what) {
    int at = 0;
    if (threads > c->limit) {
        threads = c->limit;
        what = c->limit < c->cpus ? "CPU quota" : what;
    }
    while (at < *n && out[at].threads < threads) at++;
    if (threads < 1 || *n == QSF_WIDTHS || (at < *n && out[at].threads == threads)) return;
    memmove(&out[at + 1], &out[at], (size_t)(*n - at) * sizeof *out);
    out[at] = (QsfWidth){ threads, what };
    ++*n;
}

static int index_of(const QsfWidth *w, int n, int threads) {
    int best = 0;
    for (int i = 0; i < n; i++)
        if (w[i].threads <= threads) best = i;
    return best;
}

int qsf_cpus_widths(const QsfCpus *c, QsfWidth out[QSF_WIDTHS], int *decode, int *prefill) {
    int n = 0, cores = 0;
    put_width(c, out, &n, c->kind[0].cores, c->n_kinds > 1 ? "fastest cores" : "all cores");
    put_width(c, out, &n, c->cores, "all cores");
    put_width(c, out, &n, c->cpus, "all CPUs");
    put_width(c, out, &n, c->kind[0].cpus, "fastest cores, SMT");
    put_width(c, out, &n, c->limit - 1, "one CPU left free");
    for (int i = 0; i + 1 < c->n_kinds; i++) {
        cores += c->kind[i].cores;
        put_width(c, out, &n, cores, "without the slowest cores");
    }
    /* Other programs may be busy, and memory may be the limit long before all cores read it. */
    put_width(c, out, &n, (c->limit + 1) / 2, "half of the CPUs");
    if (c->limit <= 4) put_width(c, out, &n, 1, "one thread");
    *decode = index_of(out, n, c->kind[0].cores);
    *prefill = index_of(out, n, c->cores);
    return n;
}
