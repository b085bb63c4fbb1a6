/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cores of Apple's processors: sysctl(3), hw.perflevel0 is the fastest kind. There are no affinity masks. */
#include <stdio.h>
#include <string.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "src/base/platform.h"

/* 0: there is no such number. */
static uint64_t number(const char *name) {
    union {
        uint32_t small;
        uint64_t large;
    } v = { 0 };
    size_t n = sizeof v;
    if (sysctlbyname(name, &v, &n, NULL, 0) != 0) return 0;
    return n == sizeof v.small ? v.small : n == sizeof v.large ? v.large : 0;
}

static int level_number(unsigned level, const char *what) {
    char name[64];
    snprintf(name, sizeof name, "hw.perflevel%u.%s", level, what);
    const uint64_t v = number(name);
    return v <= QSF_CPUS_MAX ? (int)v : 0;
}

void qsf_os_allowed_cpus(QsfCpuSet *out) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    memset(out, 0, sizeof *out);
    for (unsigned n = 0; n == 0 || (long)n < online; n++) qsf_cpu_add(out, n);
}

/* Slower kinds than the last one count as that. */
static void add_level(QsfCpus *c, unsigned level) {
    const int cores = level_number(level, "physicalcpu"), cpus = level_number(level, "logicalcpu");
    if (cores == 0) return;
    if (c->n_kinds < QSF_CPU_KINDS) c->n_kinds++;
    c->kind[c->n_kinds - 1].cores += cores;
    c->kind[c->n_kinds - 1].cpus += cpus > cores ? cpus : cores;
    c->cores += cores;
}

/* root is for systems whose numbers are files. */
void qsf_os_cpu_kinds(QsfCpus *c, const char *root, const QsfCpuSet *allowed) {
    const uint64_t levels = number("hw.nperflevels"), cores = number("hw.physicalcpu");
    const int cpus = qsf_cpus_in_set(allowed);
    (void)root;
    for (unsigned i = 0; i < levels && i < 2 * QSF_CPU_KINDS; i++) add_level(c, i);
    c->source = c->n_kinds > 0 ? "perflevel" : "";
    if (c->n_kinds > 0) return;
    c->n_kinds = 1; /* Intel */
    c->cores = cores > 0 && cores <= (uint64_t)cpus ? (int)cores : cpus;
    c->kind[0] = (QsfCpuKind){ c->cores, cpus };
}

uint64_t qsf_os_cache_bytes(void) {
    const uint64_t l3 = number("hw.l3cachesize");
    return l3 > 0 ? l3 : number("hw.perflevel0.l2cachesize");
}
