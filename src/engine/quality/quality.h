/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The quality of a running model: which layers its answers skip, and the plan that pins the others. The
 * thread of the runtime. */
#ifndef QSF_ENGINE_QUALITY_QUALITY_H
#define QSF_ENGINE_QUALITY_QUALITY_H

#include "src/engine/quality/file.h"
#include "src/engine/runtime.h"

/* Returns what parameters ask for: a quality of 0 is 1. */
QsfQualityWish qsf_quality_of(const QSFParams *p);
/* Limits for experts need experts: QSF_E_USAGE says which setting has no meaning for this model. */
int qsf_quality_fits(const QsfRuntime *r, const QSFParams *p, QsfErr *err);
/* Reads the importance of layers from a calibrated file, and what qsf-run --calibrate-quality has measured;
 * if that cannot be used, r->quality_notice says why. QSF_E_MODEL, QSF_E_RUNTIME. */
int qsf_quality_open(QsfRuntime *r, QsfErr *err);

/* Between two evals: chooses what qsf_forward_decode leaves out with this quality, from the file's importance
 * of layers, or from what the forward pass has measured so far. If other layers are skipped then, weights are
 * pinned around them; if there is no memory for that, the old plan stays in force; only the speed differs.
 * The ledger must not be frozen. Returns whether something has changed. */
bool qsf_runtime_quality(QsfRuntime *r, const QsfQualityWish *wish);
/* The same without a calibration: layers only. */
void qsf_runtime_choose_layers(const QsfRuntime *r, float value, QsfQuality *out);
/* Replaces the qualities of this model by those that were measured; without memory nothing changes. */
void qsf_quality_use(QsfRuntime *r, const QsfQualityTable *c);

/* What a quality means for a model. */
typedef struct QsfQualityRow {
    float value;
    uint32_t layers, n_layers;   /* computed, and all */
    uint32_t experts, n_experts; /* of those that a router chooses, used at most, and all; 0: the model has
                                    none */
    QsfExpertLimits limits;      /* in force */
    bool sketched;               /* the head is found with a sketch (plan/sketch.h) */
    uint64_t bytes;              /* of weights that a token multiplies */
    uint64_t streamed;           /* of weights that a token reads from disk */
    double tps, measured_tps;    /* predicted; in the last answer with this quality; 0 = not known */
    uint32_t exit;               /* a token may end before this layer, and `layers` is an average; 0: none */
    double kl, perplexity;       /* as calibrated (quality/file.h); perplexity 0: not known */
} QsfQualityRow;
/* Must the start of a conversation be evaluated here, to measure what matters for this quality? Then a
 * snapshot must not be loaded: other layers would be skipped. */
bool qsf_quality_measures(const QsfRuntime *r, const QSFParams *p);
/* Notes how long the tokens of an answer took. */
void qsf_quality_note(QsfRuntime *r, uint32_t tokens, uint64_t ns);
/* The row of the quality in force. */
void qsf_quality_now(const QsfRuntime *r, QsfQualityRow *row);
/* Writes what is left out: "quality 0.70: 17 of 22 layers, 6 of 8 experts"; "" if nothing is. */
void qsf_quality_describe(const QsfRuntime *r, char *dst, size_t cap);
/* Returns the table of all qualities, newline-terminated, malloc'ed; NULL when out of memory. */
char *qsf_quality_text(const QsfRuntime *r);

#endif
