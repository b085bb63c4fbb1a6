/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each quality does to a model, as qsf-run --calibrate-quality measured it: a small text file per model
 * in $XDG_STATE_HOME/qsf/quality (docs/QUALITY.md). The file is not trusted. One thread. */
#ifndef QSF_ENGINE_QUALITY_FILE_H
#define QSF_ENGINE_QUALITY_FILE_H

#include "src/base/paths.h"
#include "src/plan/quality.h"

/* Qualities 1 / QSF_QUALITY_TENTHS and so on, but not 1. */
#define QSF_QUALITY_TENTHS  10u
#define QSF_QUALITY_CHOICES (QSF_QUALITY_TENTHS - 1)

/* One quality. With exit = 0, what is skipped; otherwise as in QsfQuality. */
typedef struct QsfQualityChoice {
    uint32_t exit;
    float margin, full;
    QsfBlockSet skip;
    float kl;         /* mean KL(quality 1 || this quality) of a token, nats */
    float perplexity; /* divided by that of quality 1 */
} QsfQualityChoice;

typedef struct QsfQualityTable {
    uint64_t model; /* qsf_model_identity */
    uint32_t n_blocks, n_tokens;
    QsfQualityChoice row[QSF_QUALITY_CHOICES]; /* row[i]: quality (i + 1) / QSF_QUALITY_TENTHS */
} QsfQualityTable;

/* Returns the row for a quality below 1: that of the largest calibrated one that is not above it; of the
 * lowest if there is none. */
const QsfQualityChoice *qsf_quality_choice(const QsfQualityTable *c, float quality);
/* Sets what a row leaves out. q->value stays. */
void qsf_quality_choice_apply(const QsfQualityChoice *row, const QsfModel *m, QsfQuality *q);

/* Writes the path of a model's file to out; false if neither XDG_STATE_HOME nor HOME is set, or it is
 * too long. */
bool qsf_quality_file_path(char out[QSF_PATH_MAX], uint64_t model);
/* Does the folder of these files exist? Finding the identity of a model takes 66 reads,
 * which is a second on a slow disk. */
bool qsf_quality_file_any(void);
/* Reads a file. *found is false if there is none. QSF_E_MODEL, with line and what was expected: it is damaged
 * or belongs to a model with another identity or number of blocks; QSF_E_RUNTIME: it cannot be read. */
int qsf_quality_file_read(const char *path, uint64_t model, uint32_t n_blocks, QsfQualityTable *out,
                          bool *found, QsfErr *err);
/* Creates or replaces it, and its folder, readable by the user only. QSF_E_RUNTIME. */
int qsf_quality_file_write(const char *path, const QsfQualityTable *c, QsfErr *err);

#endif
