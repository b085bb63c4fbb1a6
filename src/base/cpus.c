/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/cpus.h"

#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/platform.h"

int qsf_cpus_in_set(const QsfCpuSet *s) {
    int n = 0;
    for (unsigned i = 0; i < QSF_CPUS_MAX / 64; i++) n += __builtin_popcountll(s->bit[i]);
    return n;
}

void qsf_cpus_read(QsfCpus *out, const char *root, const QsfCpuSet *allowed) {
    QsfCpuSet own;
    *out = (QsfCpus){ .quota = qsf_cpu_quota_below(root) };
    if (allowed == NULL || qsf_cpus_in_set(allowed) == 0) {
        qsf_os_allowed_cpus(&own);
        allowed = &own;
    }
    out->cpus = qsf_cpus_in_set(allowed);
    qsf_os_cpu_kinds(out, root, allowed);
    out->limit = out->cpus;
    if (out->quota > 0 && out->quota < out->cpus)
        out->limit = (int)out->quota + (out->quota > (int)out->quota);
    if (out->limit < 1) out->limit = 1;
}

int qsf_cpu_count(void) {
    QsfCpuSet own;
    qsf_os_allowed_cpus(&own);
    const int n = qsf_cpus_in_set(&own);
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
