/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/habits/habits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/heap.h"
#include "src/engine/model_info.h"
#include "src/engine/runtime.h"

#define EXPECT_FROM 32u  /* tokens from which a plan believes what is known */
#define COUNT_AS    128u /* tokens that what is known counts as among those of the running conversation */

static uint32_t count_experts(const QsfProgram *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_units; i++) n += p->unit[i].on_demand;
    return n / 2;
}

/* Reading the identity of a large model takes a moment. */
static bool find_path(QsfRuntime *r, char path[QSF_PATH_MAX], QsfErr *err) {
    QsfLearning *l = &r->learning;
    if (!l->found) l->found = qsf_model_identity(r->model.src, &l->model, err) == QSF_OK;
    return l->found && qsf_habits_path(path, l->model);
}

/* ---- the beginning ---- */

void qsf_learning_open(QsfRuntime *r) {
    QsfLearning *l = &r->learning;
    const uint32_t n = count_experts(&r->model.prog);
    char path[QSF_PATH_MAX];
    QsfErr err = { 0 };
    if (r->settings.no_learn || n == 0) return;
    l->on = pthread_mutex_init(&l->lock, NULL) == 0;
    if (!l->on || !qsf_habits_any() || !find_path(r, path, &err)) return;
    int rc = qsf_habits_init(&l->habits, n, &r->ledger, &err);
    if (rc == QSF_OK) rc = qsf_habits_read(&l->habits, path, l->model, &err);
    if (rc != QSF_OK) (void)snprintf(l->ignored, sizeof l->ignored, "%.500s", err.msg);
}

const uint32_t *qsf_learning_depth(const QsfRuntime *r) {
    const QsfHabits *h = &r->learning.habits;
    return h->tokens >= EXPECT_FROM ? h->depth : NULL;
}

void qsf_learning_begin(QsfRuntime *r) {
    QsfHabits *h = &r->learning.habits;
    uint32_t depth[QSF_EXPERT_DEPTHS];
    double uses = 0, known = 0;
    if (h->uses == NULL) return;
    for (uint32_t e = 0; e < h->n; e++) uses += h->uses[e];
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++) known += h->depth[i];
    const double part = h->tokens > 0 && known > 0 ? uses / h->tokens * COUNT_AS / known : 0;
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++) depth[i] = (uint32_t)(h->depth[i] * part + 0.5);
    if (h->tokens > 0) qsf_forward_learned(r->fwd, h->uses, h->n, h->tokens, depth);
    qsf_habits_free(h);
}

/* ---- saving ---- */

/* Adds n counts to what the file has by now. */
static int add_to_file(QsfRuntime *r, uint32_t *uses, uint32_t n, QsfErr *err) {
    const uint32_t tokens = qsf_forward_take_uses(r->fwd, uses, n);
    char path[QSF_PATH_MAX];
    QsfForwardStats s;
    QsfHabits h;
    QsfErr ignored = { 0 };
    if (r->learning.forget || !find_path(r, path, err)) return err->code;
    int rc = qsf_habits_init(&h, n, &r->ledger, err);
    if (rc != QSF_OK) return rc;
    (void)qsf_habits_read(&h, path, r->learning.model, &ignored); /* a damaged one is replaced */
    qsf_forward_stats(r->fwd, &s);
    qsf_habits_add(&h, uses, tokens, s.expert_depth);
    rc = qsf_habits_write(&h, path, r->learning.model, err);
    qsf_habits_free(&h);
    return rc;
}

static void save(QsfRuntime *r) {
    QsfLearning *l = &r->learning;
    const uint32_t n = count_experts(&r->model.prog);
    void *uses = NULL;
    QsfErr err = { 0 };
    int rc = qsf_heap_resize(&r->ledger, QSF_MEM_META, 0, n * sizeof(uint32_t), "habits", &uses, &err);
    if (rc != QSF_OK) return; /* next time */
    rc = add_to_file(r, uses, n, &err);
    (void)qsf_heap_resize(&r->ledger, QSF_MEM_META, n * sizeof(uint32_t), 0, "habits", &uses, NULL);
    l->forget = false;
    if (rc != QSF_E_RUNTIME) return;
    l->failed = true;
    (void)snprintf(l->note, sizeof l->note, "%.400s: the usage of experts is not kept for the next start",
                   err.msg);
}

void qsf_learning_save(QsfRuntime *r, uint32_t least) {
    QsfLearning *l = &r->learning;
    if (!l->on || l->failed || r->fwd == NULL || r->plan.expert_slots == 0) return;
    if (qsf_forward_take_uses(r->fwd, NULL, 0) < least) return;
    pthread_mutex_lock(&l->lock);
    save(r);
    pthread_mutex_unlock(&l->lock);
}

bool qsf_learning_take_note(QsfRuntime *r, char *dst, size_t cap) {
    if (r->learning.note[0] == '\0') return false;
    (void)snprintf(dst, cap, "%s", r->learning.note);
    r->learning.note[0] = '\0';
    return true;
}

void qsf_learning_close(QsfRuntime *r) {
    QsfLearning *l = &r->learning;
    qsf_learning_save(r, QSF_HABITS_LEAST);
    qsf_habits_free(&l->habits);
    if (l->on) pthread_mutex_destroy(&l->lock);
    l->on = false;
}

/* ---- forgetting ---- */

int qsf_learning_forget(QsfRuntime *r, QsfErr *err) {
    QsfLearning *l = &r->learning;
    char path[QSF_PATH_MAX];
    uint64_t model;
    if (count_experts(&r->model.prog) == 0) return qsf_err_set(err, QSF_E_USAGE, "the model has no experts");
    int rc = qsf_model_identity(r->model.src, &model, err);
    if (rc != QSF_OK || !qsf_habits_path(path, model)) return rc;
    if (l->on) pthread_mutex_lock(&l->lock);
    l->forget = l->on;
    if (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR)
        rc = qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", path, strerror(errno));
    if (l->on) pthread_mutex_unlock(&l->lock);
    return rc;
}
