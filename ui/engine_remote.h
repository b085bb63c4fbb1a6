/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two engines behind one table: the worker of qsf_engine.h, and servers (qsf_remote.h). The name of the model
 * that is loaded chooses: "connect:URL#MODEL" is one of a server, anything else is a file. */
#ifndef QSF_UI_ENGINE_REMOTE_H
#define QSF_UI_ENGINE_REMOTE_H

#include "qsf_remote.h"
#include "ui/engine.h"

/* Zeroed but for both pointers the worker is in use. Owned by the caller, as both are. */
typedef struct UiEngines {
    QSFWorker *worker;
    QSFRemote *remote;
    UiEngine local;      /* that of the worker */
    bool on_server;      /* a model of a server is in use */
    uint64_t load;       /* id of the running load, 0 = none */
    bool load_on_server; /* where that loads */
    uint64_t unload;     /* id of the request that empties the worker, 0 = none */
    unsigned plans;      /* that were asked for while a server was in use: each ends in an event */
} UiEngines;

UiEngine ui_engine_both(UiEngines *e);

#endif
