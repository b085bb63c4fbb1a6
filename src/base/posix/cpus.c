/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CPUs where only their number is known: cores of one kind, without SMT. */
#include <string.h>
#include <unistd.h>

#include "src/base/platform.h"

void qsf_os_allowed_cpus(QsfCpuSet *out) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    memset(out, 0, sizeof *out);
    for (unsigned n = 0; n == 0 || (long)n < online; n++) qsf_cpu_add(out, n);
}

void qsf_os_cpu_kinds(QsfCpus *c, const char *root, const QsfCpuSet *allowed) {
    (void)root;
    c->cores = qsf_cpus_in_set(allowed);
    c->n_kinds = 1;
    c->kind[0] = (QsfCpuKind){ c->cores, c->cores };
    c->source = "";
}

uint64_t qsf_os_cache_bytes(void) { return 0; }
