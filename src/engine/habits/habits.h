/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sparse model whose experts do not all fit learns which of them are used: what was chosen for the tokens
 * of answers is added to a file (file.h) now and then, between two passes, and when the model is closed. With
 * the next start the experts that were used most are the first to be read, and the plan knows how many hits
 * to expect. No result depends on it, and no failure is one of the model. */
#ifndef QSF_ENGINE_HABITS_HABITS_H
#define QSF_ENGINE_HABITS_HABITS_H

#include <pthread.h>

#include "src/engine/habits/file.h"

#define QSF_HABITS_LEAST 16u /* tokens that are worth a file */
#define QSF_HABITS_SOON  64u /* tokens that are not to be lost when the program is killed */

struct QsfRuntime;

/* One per runtime. Zeroed it does nothing. */
typedef struct QsfLearning {
    pthread_mutex_t lock; /* of the file and `forget`; exists while `on` */
    bool on;
    bool found; /* the identity of the model, below */
    uint64_t model;
    bool forget;       /* what was counted since the last save */
    bool failed;       /* to write: `note` is set, and it is not tried again */
    QsfHabits habits;  /* as read; the uses until the weights are open */
    char ignored[512]; /* why a file was not used, or "" */
    char note[512];    /* why nothing can be written, or "" */
} QsfLearning;

/* The model is open, the plan is not made yet: reads what is known, unless the settings forbid it or the
 * model has no experts. */
void qsf_learning_open(struct QsfRuntime *r);
/* What the plan may expect: expert_depth of its options. */
const uint32_t *qsf_learning_depth(const struct QsfRuntime *r);
/* The weights are open, nothing was evaluated: gives them what is known. */
void qsf_learning_begin(struct QsfRuntime *r);
/* Between two passes: writes what was chosen for `least` tokens or more. Fast without as many. */
void qsf_learning_save(struct QsfRuntime *r, uint32_t least);
/* Takes the note about a failure to write, once: dst gets a sentence. */
bool qsf_learning_take_note(struct QsfRuntime *r, char *dst, size_t cap);
/* Saves, and frees everything. */
void qsf_learning_close(struct QsfRuntime *r);
/* Removes the file, and forgets what was counted and is not written yet. Any thread, while the runtime is
 * open. QSF_E_USAGE: the model has no experts; QSF_E_RUNTIME. */
int qsf_learning_forget(struct QsfRuntime *r, QsfErr *err);

#endif
