/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/open_model.h"

#include "src/base/clock.h"
#include "src/base/interrupt.h"
#include "src/engine/adapters.h"

#define MIB (1ull << 20)
/* Vocabularies of today take up to 50 MB while they are read. */
#define LEAST (64 * MIB)
/* What the next run may have more. */
#define JITTER MIB

static const char *budget_option(const QsfRuntimeOptions *o) {
    return qsf_option_name(QSF_OPTION_BUDGET, o->settings.commands);
}

uint64_t qsf_opening_budget(const QSFSettings *s, uint64_t base) {
    const QsfPlanFacts facts = { .resident = base };
    const QsfPlanMemory memory = qsf_planning_memory(&facts);
    const uint64_t budget = qsf_settings_budget(s, memory);
    const QsfPlanOptions automatic = { .available = memory.available };
    return budget > 0 ? budget : qsf_plan_auto_most(&automatic);
}

/* One attempt, while the ledger and the heap have no more than `room` beside the base. */
static int try_open(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base, uint64_t room,
                    QsfErr *err) {
    const QsfMemoryLimit before = qsf_memory_limit_begin(base + room);
    qsf_ledger_set_limit(&r->ledger, room > 0 ? room : 1);
    const int rc = qsf_model_open(&r->model, path, o->overrides, &r->ledger, err);
    qsf_ledger_set_limit(&r->ledger, 0);
    return qsf_memory_limit_end(&before, rc, path, budget_option(o), err);
}

static int refuse(const char *path, const QsfRuntimeOptions *o, uint64_t room, QsfErr *err) {
    qsf_err_clear(err);
    return qsf_err_set(err, QSF_E_BUDGET,
                       "%s: opening it takes more than %llu MB for headers and vocabulary: raise %s", path,
                       (unsigned long long)(room / MIB), budget_option(o));
}

/* What a second attempt may take: not what would stop the program. */
static uint64_t more_room(void) {
    const uint64_t available = qsf_available_bytes() / 4 * 3;
    return available < LEAST ? available : LEAST;
}

int qsf_open_model(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base,
                   uint64_t *opening, QsfErr *err) {
    const uint64_t budget = qsf_opening_budget(&o->settings, base), room = budget > base ? budget - base : 0,
                   more = more_room();
    *opening = 0;
    int rc = try_open(r, path, o, base, room, err);
    if (rc != QSF_E_BUDGET || more <= room) return rc == QSF_E_BUDGET ? refuse(path, o, room, err) : rc;
    qsf_err_clear(err);
    (void)qsf_peak_rss_reset();
    rc = try_open(r, path, o, base, more, err);
    if (rc == QSF_E_BUDGET) return refuse(path, o, more, err);
    *opening = qsf_recent_peak_rss_bytes() + JITTER;
    if (*opening <= budget) *opening = budget + 1; /* it was too little */
    return rc;
}

int qsf_open_part(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t budget, QsfOpenFn *fn,
                  QsfErr *err) {
    const QsfMemoryLimit before = qsf_memory_limit_begin(budget);
    const int rc = fn(r, path, o, err);
    return qsf_memory_limit_end(&before, rc, "the vocabulary and the chat template", budget_option(o), err);
}

int qsf_open_text(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base, QsfOpenFn *fn,
                  QsfErr *err) {
    const uint64_t budget = qsf_opening_budget(&o->settings, base), least = base + more_room();
    return qsf_open_part(r, path, o, budget > least ? budget : least, fn, err);
}

int qsf_open_adapters(QsfAdapterSet **out, QsfRuntime *r, const QSFSettings *s, const QsfAdapterSet *have,
                      uint64_t budget, QsfErr *err) {
    const QsfMemoryLimit before = qsf_memory_limit_begin(budget);
    const int rc = qsf_adapters_of_settings(out, &r->model, s, have, r->plan_options.exact, &r->ledger, err);
    return qsf_memory_limit_end(&before, rc, "the adapters", qsf_option_name(QSF_OPTION_BUDGET, s->commands),
                                err);
}
