/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Formats the ledger as a table for users. */
#include "src/base/ledger.h"
#include "src/base/strbuf.h"

#define MIB 1048576.0

static void row(QsfStrbuf *b, const char *name, uint64_t used, uint64_t peak) {
    qsf_strbuf_addf(b, "%-28s %10.2f MB   peak %10.2f MB\n", name, (double)used / MIB, (double)peak / MIB);
}

static void regions(QsfStrbuf *b, const QsfLedger *l) {
    for (uint32_t i = 0; i < l->n_regions; i++) {
        const QsfRegion *r = &l->region[i];
        if (r->count == 0) continue;
        qsf_strbuf_addf(b, "  %-26s %10.2f MB   in %s", r->name, (double)r->bytes / MIB,
                        qsf_mem_cat_name(r->cat));
        if (r->count > 1) qsf_strbuf_addf(b, ", %lu mappings", (unsigned long)r->count);
        qsf_strbuf_addf(b, "\n");
    }
}

char *qsf_ledger_text(QsfLedger *l) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfLedger now;
    qsf_ledger_snapshot(l, &now);
    for (unsigned i = 0; i < QSF_MEM_N; i++)
        row(&b, qsf_mem_cat_name((QsfMemCat)i), now.used[i], now.peak[i]);
    row(&b, "sum", now.total, now.total_peak);
    if (now.limit != UINT64_MAX) qsf_strbuf_addf(&b, "%-28s %10.2f MB\n", "budget", (double)now.limit / MIB);
    regions(&b, &now);
    if (now.refused_frozen > 0)
        qsf_strbuf_addf(&b, "%llu allocations were refused while memory was frozen: please report this\n",
                        (unsigned long long)now.refused_frozen);
    return qsf_strbuf_take(&b, NULL);
}
