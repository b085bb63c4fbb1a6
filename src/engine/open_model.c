/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/open_model.h"

#define MIB (1ull << 20)
/* Vocabularies of today take up to 50 MB while they are read. */
#define LEAST (64 * MIB)

int qsf_open_model(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base, QsfErr *err) {
    const QsfPlanFacts facts = { .resident = base };
    const uint64_t budget = qsf_settings_budget(&o->settings, qsf_planning_memory(&facts));
    const uint64_t left = budget > base ? budget - base : 0, limit = left > LEAST ? left : LEAST;
    qsf_ledger_set_limit(&r->ledger, budget > 0 ? limit : 0);
    const int rc = qsf_model_open(&r->model, path, o->overrides, &r->ledger, err);
    qsf_ledger_set_limit(&r->ledger, 0);
    if (rc != QSF_E_BUDGET) return rc;
    qsf_err_clear(err);
    return qsf_err_set(err, QSF_E_BUDGET,
                       "%s: opening it takes more than %llu MB for headers and vocabulary: raise %s", path,
                       (unsigned long long)(limit / MIB),
                       qsf_option_name(QSF_OPTION_BUDGET, o->settings.commands));
}
