/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the header of a model tells: the planner's own arithmetic, and a prediction from rates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_models.h"
#include "src/base/clock.h"
#include "src/base/utf8.h"
#include "src/catalog/rates.h"
#include "src/engine/events.h"
#include "src/engine/model_info.h"
#include "src/engine/predict.h"
#include "src/engine/worker_impl.h"
#include "src/model/purpose.h"
#include "src/plan/options.h"

#define HEADER_MOST (64ull << 20)
#define MIB         (1ull << 20)

/* The message of an error without the file's name, which is in the list already. */
static void refuse(QSFModelFacts *out, const char *path, const char *message) {
    const size_t n = strlen(path);
    if (strncmp(message, path, n) == 0 && message[n] == ':') message += n + 1 + (message[n + 1] == ' ');
    if (strncmp(message, "is ", 3) == 0) message += 3;
    (void)snprintf(out->verdict, sizeof out->verdict, "not supported: %s", message);
    out->verdict[qsf_utf8_clean(out->verdict, strlen(out->verdict), false)] = '\0';
}

/* "llama 1.1B Q4_0": the last word is the type. */
static void describe(const QsfModel *m, QSFModelFacts *out) {
    char text[100];
    qsf_model_summary(m, text, sizeof text);
    char *blank = strrchr(text, ' ');
    if (blank != NULL) *blank++ = '\0';
    (void)snprintf(out->arch, sizeof out->arch, "%.39s", text);
    (void)snprintf(out->type, sizeof out->type, "%.23s", blank != NULL ? blank : "");
}

/* ---- the speed ---- */

typedef struct Keys {
    char disk[QSF_RATE_NAME], compute[QSF_RATE_NAME];
} Keys;

static void keys_of(const QsfModel *m, const QsfPlan *p, const char *type, Keys *k) {
    const QsfFile *f = qsf_source_n_files(m->src) > 0 ? qsf_source_file(m->src, 0) : NULL;
    (void)snprintf(k->disk, sizeof k->disk, "disk-%llu", f != NULL ? (unsigned long long)f->dev : 0ull);
    (void)snprintf(k->compute, sizeof k->compute, "compute-%s-%d", type, p->threads);
}

/* What is not remembered is measured. */
static void find_rates(const QsfModel *m, const QsfPlan *p, const Keys *k, QsfLedger *ledger,
                       QsfPrediction *out) {
    QsfRates r;
    QsfErr err = { 0 };
    qk_table table;
    QsfPool *pool = NULL;
    qsf_rates_read(&r);
    double disk = qsf_rates_get(&r, k->disk), compute = qsf_rates_get(&r, k->compute);
    if (disk <= 0 || compute <= 0) {
        qk_table_init(&table, qk_cpu_best());
        (void)qsf_pool_create(&pool, p->threads, ledger, &err);
        qsf_predict(out, p, m, &table, pool);
        qsf_pool_destroy(pool);
        if (disk <= 0) disk = out->disk_bps;
        if (compute <= 0) compute = out->compute_bps;
        qsf_rates_put(&r, k->disk, disk);
        qsf_rates_put(&r, k->compute, compute);
        qsf_rates_write(&r);
    }
    qsf_predict_from(out, p->disk_bytes, p->active_bytes, disk, compute);
    if (disk <= 0 || compute <= 0) out->tps = 0;
}

static void say_streams(const QsfModel *m, const QsfPlan *p, QsfLedger *ledger, QSFModelFacts *out) {
    Keys k;
    QsfPrediction guess = { 0 };
    const double share = p->active_bytes > 0 ? (double)p->streamed_bytes / (double)p->active_bytes : 1;
    const double percent = share * 100 < 1 ? 1 : share * 100;
    keys_of(m, p, out->type, &k);
    find_rates(m, p, &k, ledger, &guess);
    if (guess.tps > 0)
        (void)snprintf(out->verdict, sizeof out->verdict, "streams %.0f %%, about %.*f tok/s", percent,
                       guess.tps < 9.95 ? 1 : 0, guess.tps);
    else
        (void)snprintf(out->verdict, sizeof out->verdict, "streams %.0f %%", percent);
}

/* ---- the plan ---- */

static void plan(const QsfModel *m, const QSFSettings *s, const QsfPlanFacts *facts, uint64_t freed,
                 QsfLedger *ledger, QSFModelFacts *out) {
    QsfPlanOptions o;
    QsfPlan p;
    QsfErr err = { 0 };
    qsf_plan_options_first(&o, s, facts,
                           (QsfPlanMemory){ qsf_available_bytes() + freed, qsf_limit_below("") });
    int rc = qsf_plan_make(&p, m, &o, &err);
    out->usable = rc == QSF_OK;
    if (rc == QSF_E_BUDGET) {
        (void)snprintf(out->verdict, sizeof out->verdict, "needs a budget of %llu MB",
                       (unsigned long long)(qsf_plan_smallest(m, &o) / MIB));
    } else if (rc != QSF_OK) {
        refuse(out, qsf_source_path(m->src), err.msg);
    } else {
        if (p.streamed_bytes == 0)
            (void)snprintf(out->verdict, sizeof out->verdict, "fits");
        else
            say_streams(m, &p, ledger, out);
        qsf_plan_free(&p);
    }
}

/* Opens the source first: files that are not language models are named as what they are. */
static int open_model(QsfModel *m, const char *path, QsfLedger *ledger, QsfErr *err) {
    int rc = qsf_model_open(m, path, NULL, ledger, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_check_weights(m, err);
    if (rc != QSF_OK) qsf_model_close(m);
    return rc;
}

void qsf_model_facts(const QSFModelEntry *e, const QSFSettings *s, uint64_t freed, QSFModelFacts *out) {
    QsfModel m;
    QsfErr err = { 0 };
    QsfLedger ledger;
    const uint64_t resident = qsf_rss_bytes();
    *out = (QSFModelFacts){ .usable = false };
    if (e->problem != NULL) {
        refuse(out, e->path, e->problem);
        return;
    }
    qsf_ledger_init(&ledger, HEADER_MOST);
    int rc = open_model(&m, e->path, &ledger, &err);
    if (rc == QSF_E_BUDGET) {
        out->usable = true; /* its own plan may have more */
        (void)snprintf(out->verdict, sizeof out->verdict,
                       "not looked into: its header is larger than %llu MB",
                       (unsigned long long)(HEADER_MOST / MIB));
    } else if (rc != QSF_OK) {
        refuse(out, e->path, err.msg);
    } else {
        const QsfPlanFacts facts = { .resident = resident,
                                     .stack_bytes = QSF_ENGINE_STACK,
                                     .tokenizer_bytes = qsf_tokenizer_estimate(m.src),
                                     .meta_bytes = ledger.used[QSF_MEM_META],
                                     .transcript_bytes = 2 * QSF_EVENTS_HARD };
        describe(&m, out);
        qsf_ledger_set_limit(&ledger, 0);
        plan(&m, s, &facts, freed, &ledger, out);
        qsf_model_close(&m);
    }
    qsf_ledger_destroy(&ledger);
}
