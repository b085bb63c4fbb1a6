/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compares the codes of a QSF header with the program of the model: the metadata decides, but a different
 * header belongs to another model, or is damaged. */
#ifndef QSF_MODEL_HEADER_H
#define QSF_MODEL_HEADER_H

#include "src/model/model.h"

/* Checks that the activation, normalization and position encoding that the header of a QSF file names occur in m->prog.
 * QSF_E_MODEL names file, byte offset and code. Other formats have no header to check. */
int qsf_header_check(const QsfModel *m, QsfErr *err);

#endif
