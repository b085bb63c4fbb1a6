/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of the background engine used by the chat, as a table: the chat itself uses the worker of
 * qsf_engine.h, tests use a scripted one. Each function has the contract of the qsf_worker_ function of the
 * same name. */
#ifndef QSF_UI_ENGINE_H
#define QSF_UI_ENGINE_H

#include "qsf_engine.h"

typedef struct UiEngine {
    void *self;
    uint64_t (*load)(void *self, const char *path, const QSFSettings *s);
    uint64_t (*submit)(void *self, const QSFRequest *r);
    bool (*ahead)(void *self, const QSFRequest *r);
    void (*cancel)(void *self);
    void (*answer_now)(void *self);
    void (*set_params)(void *self, const QSFParams *p);
    bool (*next)(void *self, QSFEvent *e);
    void (*replan)(void *self, const QSFSettings *s);
    void (*settings)(void *self, QSFSettings *out);
    void (*advise)(void *self, QSFSettings *s);
    void (*stats)(void *self, QSFStats *out);
    uint32_t (*layers)(void *self, QSFLayerStats *out, uint32_t max);
    uint32_t (*expert_budgets)(void *self, QSFExpertBudget *out, uint32_t max);
    int (*forget_experts)(void *self, char *err, size_t cap);
    char *(*describe)(void *self, const char *what);
    char *(*prompt)(void *self, const QSFRequest *r, char *err, size_t cap);
    int (*check)(void *self, const QSFSettings *s, char *err, size_t cap);
    int64_t (*count)(void *self, const QSFRequest *r);
    void (*budget_step)(void *self, const QSFSettings *s, bool more, QSFBudgetStep *out);
    uint64_t (*text_budget)(void *self, const QSFTextSize *size, uint64_t held);
    char *(*templates)(void *self);
    void (*tokens)(void *self, QSFTokens *out);
    uint32_t (*token_ids)(void *self, uint32_t first, int32_t *out, uint32_t max);
    uint32_t (*token_rows)(void *self, uint32_t first, QSFToken *out, uint32_t max);
    bool (*token_why)(void *self, uint32_t i, QSFWhy *out);
    size_t (*token_text)(void *self, int32_t id, char *dst, size_t cap, bool *special);
    int (*fd)(void *self);
} UiEngine;

/* The real one; w stays owned by the caller. */
UiEngine ui_engine_worker(QSFWorker *w);

#endif
