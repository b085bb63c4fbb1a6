/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The part of the background engine that the chat uses, as a table of functions: the chat itself runs
 * on the worker of qsf_engine.h, tests run it on a scripted one. Each function means exactly what
 * the qsf_worker_ function of its name means. */
#ifndef QSF_UI_ENGINE_H
#define QSF_UI_ENGINE_H

#include "qsf_engine.h"

typedef struct UiEngine {
    void *self;
    uint64_t (*load)(void *self, const char *path, const QSFSettings *s);
    uint64_t (*submit)(void *self, const QSFRequest *r);
    void (*cancel)(void *self);
    void (*set_params)(void *self, const QSFParams *p);
    bool (*next)(void *self, QSFEvent *e);
    void (*replan)(void *self, const QSFSettings *s);
    void (*settings)(void *self, QSFSettings *out);
    void (*advise)(void *self, QSFSettings *s);
    void (*stats)(void *self, QSFStats *out);
    uint32_t (*layers)(void *self, QSFLayerStats *out, uint32_t max);
    char *(*describe)(void *self, const char *what);
    char *(*prompt)(void *self, const QSFRequest *r, char *err, size_t cap);
    int (*check)(void *self, const QSFSettings *s, char *err, size_t cap);
    int64_t (*count)(void *self, const QSFRequest *r);
    char *(*templates)(void *self);
    int (*fd)(void *self);
} UiEngine;

/* The real one; w stays owned by the caller. */
UiEngine ui_engine_worker(QSFWorker *w);

#endif
