/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model converted to QSF without changes. */
#ifndef QSF_TESTS_QSF_MADE_H
#define QSF_TESTS_QSF_MADE_H

#include "src/convert/pack/pack.h"

static inline int qsf_test_carry(const QsfSource *s, const char *path, uint32_t flags, QsfErr *err) {
    const QsfPackOptions o = { .flags = flags };
    return qsf_pack(s, path, &o, NULL, err);
}

#endif
