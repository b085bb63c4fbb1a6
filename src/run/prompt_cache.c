/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --prompt-cache: a snapshot of the conversation in a file that the user names. It only saves time: whatever
 * is wrong with it is reported, and the prompt is evaluated. */
#include "src/base/clock.h"
#include "src/engine/quality/quality.h"
#include "src/engine/snapshot/snapshot.h"
#include "src/run/run.h"

static void report(const QsfErr *err, const char *what) {
    if (err->code != QSF_E_INTERRUPTED) qsf_cli_error(&run_cli, "%s%s", err->msg, what);
}

/* SnapKV chooses at the end of each prompt, so an answer after an earlier run's prompt is not
 * that after one prompt. */
static int check_policy(const QsfRuntime *rt, QsfErr *err) {
    if (qsf_evict_parse(rt->settings.eviction) != QSF_EVICT_SNAPKV) return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME,
                       "no snapshot: what snapkv evicts depends on where the prompts of earlier runs ended");
}

void run_cache_load(RunCache *c, const char *path, QsfTimeline *t, const QSFParams *p, const QsfIds *ids) {
    QsfErr err = { 0 };
    QsfSnapKind kind = QSF_SNAP_MISSING;
    uint32_t loaded;
    *c = (RunCache){ .path = path };
    if (path == NULL) return;
    const uint64_t start = qsf_now_ns();
    int rc = check_policy(t->rt, &err);
    if (rc == QSF_OK) rc = qsf_snapshot_key(&c->key, t->rt, &err);
    if (rc == QSF_OK && !qsf_quality_measures(t->rt, p))
        rc = qsf_snapshot_load(t, path, &c->key, ids->data, ids->n, &loaded, &kind, &err);
    c->load_ns = qsf_now_ns() - start;
    c->fresh = kind == QSF_SNAP_OTHER || kind == QSF_SNAP_DAMAGED;
    t->last_apart = rc != QSF_E_RUNTIME && qsf_forward_state_bytes(t->rt->fwd) > 0 &&
                    !qsf_forward_evicts(t->rt->fwd);
    if (rc == QSF_OK) return;
    report(&err, c->fresh ? "; the prompt is evaluated, and the file replaced" : "; the prompt is evaluated");
    if (kind == QSF_SNAP_ALIEN || rc == QSF_E_RUNTIME) c->path = NULL;
}

void run_cache_save(const RunCache *c, QsfTimeline *t) {
    QsfErr err = { 0 };
    QsfForwardStats s;
    const QsfSnapSave o = { .fresh = c->fresh };
    qsf_forward_stats(t->rt->fwd, &s);
    if (c->path != NULL && s.reliefs > 0 && s.evictions > 0) {
        qsf_cli_error(&run_cli, "no snapshot: memory was short, and the KV cache was made smaller");
        return;
    }
    if (c->path != NULL && qsf_snapshot_save(t, c->path, &c->key, &o, &err) != QSF_OK) report(&err, "");
}
