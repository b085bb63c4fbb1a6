/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of the engine used by the chat, as a table: the worker of qsf_engine.h, a server
 * (qsf_remote.h), or a scripted one in tests. Each function has the contract of the qsf_worker_ function of
 * the same name; the others are described here. */
#ifndef QSF_UI_ENGINE_H
#define QSF_UI_ENGINE_H

#include "qsf_engine.h"

/* What an engine may be unable to do. */
typedef enum UiNeed {
    UI_NEEDS_NOTHING,
    UI_NEEDS_MEMORY, /* a plan for the memory of this process */
    UI_NEEDS_TOKENS, /* the tokens of answers, their probabilities and candidates */
    UI_NEEDS_PROMPT, /* the template, and the prompt that it makes */
    UI_NEEDS_CLOSE,  /* reasoning can be ended */
    UI_NEEDS_RESUME, /* reasoning that was cut can be continued */
    UI_NEEDS         /* how many there are */
} UiNeed;

/* What a setting does. */
typedef enum UiEffect {
    UI_EFFECT_USUAL,   /* as its row says */
    UI_EFFECT_SENT,    /* with the next answer */
    UI_EFFECT_OWN,     /* nothing as long as it is not set: the engine has its own value */
    UI_EFFECT_REFUSED, /* nothing: the engine has refused it */
    UI_EFFECT_NONE     /* nothing with this engine */
} UiEffect;

/* A model that the engine can load without a file. */
typedef struct UiEngineModel {
    const char *name; /* valid until another model is loaded */
    uint32_t ctx;     /* tokens, 0 = not known */
    uint64_t bytes;   /* 0 = not known */
    bool loaded;
} UiEngineModel;

typedef struct UiEngine {
    void *self;
    uint64_t (*load)(void *self, const char *path, const QSFSettings *s);
    uint64_t (*submit)(void *self, const QSFRequest *r);
    bool (*ahead)(void *self, const QSFRequest *r);
    void (*cancel)(void *self);
    void (*answer_now)(void *self);
    /* The parameters are in force now; s->user_set says which of them the user has set. */
    void (*set_params)(void *self, const QSFSettings *s);
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
    bool (*has)(void *self, UiNeed need);
    UiEffect (*effect)(void *self, const QSFSetting *row);
    /* false: there is none with this index. */
    bool (*model)(void *self, size_t i, UiEngineModel *out);
    /* Are the numbers of tokens of the last answer exact? */
    bool (*counted)(void *self);
} UiEngine;

/* The real one; w stays owned by the caller. */
UiEngine ui_engine_worker(QSFWorker *w);

#endif
