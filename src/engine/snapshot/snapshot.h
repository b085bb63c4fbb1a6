/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Snapshots: the KV cache and the recurrent states of a conversation in a file, so that the tokens of an
 * earlier run need not be evaluated again. They change no token: what is loaded has the bits that evaluating
 * would give, or, where an eviction policy has chosen, those of the conversation that was saved. A snapshot
 * is only a copy: what is damaged or does not fit is refused, and the text is evaluated. Between two answers,
 * by the thread that generates. */
#ifndef QSF_ENGINE_SNAPSHOT_SNAPSHOT_H
#define QSF_ENGINE_SNAPSHOT_SNAPSHOT_H

#include "src/engine/snapshot/file.h"
#include "src/engine/timeline.h"

/* Fills the key of the model and the settings of a runtime. key->model is kept, unless it is 0: finding it
 * reads the model. QSF_E_MODEL, QSF_E_RUNTIME: the model cannot be read. */
int qsf_snapshot_key(QsfSnapKey *key, const QsfRuntime *rt, QsfErr *err);

/* Brings as many of ids[0..n - 1) into the timeline as the file has, if these are more than the
 * timeline shares with ids. *loaded = positions that were loaded, 0 = none. Codes: QSF_E_MODEL when
 * the file is refused, QSF_E_RUNTIME, QSF_E_BUDGET, QSF_E_INTERRUPTED (rt->cancel); the timeline may
 * be shorter than before then, but is valid. *kind (may be NULL) tells more about the file; DAMAGED:
 * it must be replaced (fresh). CUT, with QSF_OK: the same, err says why, and what is complete was used. */
int qsf_snapshot_load(QsfTimeline *t, const char *path, const QsfSnapKey *key, const int32_t *ids, size_t n,
                      uint32_t *loaded, QsfSnapKind *kind, QsfErr *err);

typedef struct QsfSnapSave {
    uint32_t to;    /* save positions [0, to); 0 = all */
    bool fresh;     /* write a new file: nothing in the old one is trusted */
    uint64_t limit; /* bytes of the file, and of all snapshots in its folder if `prune`; 0 = no limit */
    bool prune;     /* drop the oldest other snapshots (*.qsfsnap) until the folder is below the limit */
    bool (*stop)(void *arg); /* give up? may be NULL */
    void *arg;
} QsfSnapSave;

/* Saves the timeline: appends what the file does not have, or writes a new file in its place. A file that is
 * not a snapshot is not touched (QSF_E_MODEL). QSF_E_RUNTIME: cannot write, no room, over the limit. A save
 * that was stopped is not an error, and leaves what was there before. Not synced to the disk: what a power
 * failure damages is found by its checksums. */
int qsf_snapshot_save(QsfTimeline *t, const char *path, const QsfSnapKey *key, const QsfSnapSave *o,
                      QsfErr *err);

/* Returns the bytes that snapshots in the folder of path may use by default: 4 GiB, at most a
 * tenth of what is free. */
uint64_t qsf_snapshot_default_limit(const char *path);
/* Makes room for `bytes` more: removes the oldest snapshots of the folder of path, except path, until all of
 * them have at most limit - bytes. Returns whether that is so and the disk has room. */
bool qsf_snapshot_make_room(const char *path, uint64_t bytes, uint64_t limit);

#endif
