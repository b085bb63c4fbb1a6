/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures what each quality does to a model (qsf-run --calibrate-quality): how far its distributions are
 * from those of quality 1 on a text, when layers are skipped and when tokens end early, and chooses the
 * better of the two. The thread of the runtime. */
#ifndef QSF_MEASURE_QUALITY_MEASURE_H
#define QSF_MEASURE_QUALITY_MEASURE_H

#include "src/engine/quality/file.h"
#include "src/engine/runtime.h"

/* Tokens that are scored, at most, and the fewest that are enough. A text is evaluated in windows; the first
 * tokens of each are context. */
#define QSF_MEASURED_TOKENS  1024u
#define QSF_MEASURED_LEAST   64u
#define QSF_MEASURED_WINDOW  576u
#define QSF_MEASURED_CONTEXT 64u

typedef struct QsfQualityMeasure {
    QsfRuntime *rt;
    const int32_t *ids; /* (n), n_vocab of the model */
    size_t n;
    void (*progress)(void *arg, size_t done, size_t all); /* tokens; may be NULL */
    void *arg;
} QsfQualityMeasure;

/* Bytes that a measurement charges to TRANSCRIPT, at most, for vocabularies of up to four million tokens. */
#define QSF_MEASURED_BYTES (16u << 20)

/* Replaces the contents of the KV cache. Depends on the model, the text and the instruction set
 * only. QSF_E_USAGE: the text is too short, or the context; QSF_E_MODEL: an id outside the
 * vocabulary; errors of qsf_forward_eval. */
int qsf_quality_measure(const QsfQualityMeasure *p, QsfQualityTable *out, QsfErr *err);

#endif
