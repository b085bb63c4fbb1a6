/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The owner's thread waits in the event loop of its worker, not for a descriptor. */
#include "src/base/wake.h"

#include <emscripten.h>
#include <emscripten/threading.h>

int qsf_wake_open(QsfWake *w, QsfErr *err) {
    (void)err;
    w->fd[0] = w->fd[1] = -1;
    return QSF_OK;
}

void qsf_wake_close(QsfWake *w) { (void)w; }

/* clang-format off */
EM_JS(void, page_events, (void), { Module.onEvents(); })
/* clang-format on */

/* Does not wait for the owner, who may want the lock that the caller has. */
void qsf_wake_signal(QsfWake *w) {
    (void)w;
    emscripten_async_run_in_main_runtime_thread(EM_FUNC_SIG_V, page_events);
}

void qsf_wake_clear(QsfWake *w) { (void)w; }
