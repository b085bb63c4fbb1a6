/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the program of a model does with each tensor: which ones can be quantized and interleaved,
 * in what order they are used, and which layers cannot be compressed. For the converter, which
 * does not know names of tensors. */
#ifndef QSF_CONVERT_CALIBRATE_TENSOR_USES_H
#define QSF_CONVERT_CALIBRATE_TENSOR_USES_H

#include "src/convert/pack/items.h"
#include "src/model/model.h"

/* The same for a source, which stays the caller's. out is empty if this version does not know the
 * architecture or cannot run the model: then the types of tensors decide. QSF_E_RUNTIME, QSF_E_BUDGET. */
int qsf_uses_of_source(QsfUses *out, QsfSource *s, QsfLedger *ledger, QsfErr *err);
void qsf_uses_free(QsfUses *u); /* *u may be zeroed */

#endif
