/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A scripted engine that implements ui/engine.h: records requests and emits the events that a test adds. */
#ifndef QSF_TESTS_FAKE_ENGINE_H
#define QSF_TESTS_FAKE_ENGINE_H

#include "ui/engine.h"

typedef struct FakeEvent {
    QSFEventType type;
    char text[200];
    QSFStop stop;
    int code;
    bool file, thinking, cut;
    uint32_t tokens, hidden;
} FakeEvent;

typedef struct FakeEngine {
    bool busy;
    uint64_t request; /* id of the last one */
    int n_loads, n_submits, n_cancels, n_answer_now, n_params, n_replans;
    char path[200];       /* of the last load */
    QSFSettings settings; /* of the last load */
    QSFSettings wanted;   /* of the last replan */
    QSFSettings in_force;
    QSFSettings advice; /* of the model that is loaded next */
    QSFParams params;
    int check_code; /* error for refused settings; 0 = none are refused */
    char check_text[200];
    int n_counts;
    QSFBudgetStep step[2];  /* smaller, larger */
    char roles[40];         /* of the last submit: one letter per message, s u a */
    char last_content[200]; /* of its last message */
    char snapshot[700];     /* "" = none */
    int n_aheads, n_aheads_stopped;
    char ahead[2000]; /* last message of the last one */
    char why_not_ahead[100];
    char reasoning[200]; /* of the last message that had any */
    const char *stop[8]; /* (n_stop) as passed: valid while the app does not change them */
    size_t n_stop;
    uint32_t max_tokens; /* of the last submit */
    bool go_on;
    uint32_t branch; /* of the last submit, and its other wishes */
    int32_t branch_id;
    bool score;
    int32_t given[16]; /* (n_tokens) */
    uint32_t n_tokens;
    QSFTokens tokens; /* (n) the rows from 0; those of answers of fake_tokens */
    QSFToken rows[16];
    QSFWhy why; /* of every token whose id it has */
    QSFStats stats;
    QSFLayerStats layers[80];
    uint32_t n_layers;
    QSFExpertBudget expert_budgets[QSF_EXPERT_BUDGETS];
    uint32_t n_expert_budgets, n_forgets;
    unsigned lacks;        /* bits of UiNeed */
    const char *effect_of; /* a setting that has this effect, or NULL */
    UiEffect effect;
    const UiEngineModel *models; /* (n_models) */
    size_t n_models;
    bool guesses;    /* its numbers of tokens are not exact */
    bool cut;        /* the next answer that ends had its reasoning cut, */
    uint32_t hidden; /* and that many tokens of more are hidden */
    FakeEvent events[64];
    int n_events, taken;
} FakeEngine;

/* f is zeroed first and must outlive the table. */
UiEngine fake_engine(FakeEngine *f);
void fake_loaded(FakeEngine *f);
void fake_text(FakeEngine *f, const char *text);
void fake_reasoning(FakeEngine *f, const char *text);
/* The request ends; the engine is idle again. It was thinking if reasoning that no closing tag
 * ends came last. */
void fake_done(FakeEngine *f, QSFStop stop, uint32_t tokens);
/* The last request has tokens of these texts, separated by '|': id 100 and on. The candidates of each are
 * itself with the probability p, and 7 others, 200 and on. */
void fake_tokens(FakeEngine *f, const char *texts, float p);
void fake_error(FakeEngine *f, int code, const char *text);
/* The same for a model file that could not be read. */
void fake_read_error(FakeEngine *f, const char *text);
/* A replan is handled; with code 0 the requested plan is in effect. */
void fake_plan(FakeEngine *f, int code, const char *text);

#endif
