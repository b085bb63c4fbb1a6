/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens files and reads them back, for the tests of writers. */
#ifndef QSF_TESTS_SOURCE_RIG_H
#define QSF_TESTS_SOURCE_RIG_H

#include "src/file/source.h"
#include "tests/harness/qsf_image.h"
#include "tests/harness/qsf_test.h"

static QsfLedger ledger;

static inline QsfSource *open_ok(const char *path) {
    QsfErr e = { 0 };
    QsfSource *s;
    qsf_test_expect_ok(qsf_source_open(&s, path, &ledger, &e), &e);
    return s;
}

/* The whole file; the caller frees .b. */
static inline QsfImage load(const char *path) {
    QsfImage m = qsf_image_load(path);
    assert_non_null(m.b);
    return m;
}

/* The caller frees them. */
static inline unsigned char *tensor_bytes(const QsfSource *s, const QsfTensor *t) {
    QsfErr e = { 0 };
    unsigned char *b = malloc((size_t)t->bytes);
    assert_non_null(b);
    qsf_test_expect_ok(qsf_file_pread(qsf_source_file(s, t->file), b, (size_t)t->bytes, t->offset, &e), &e);
    return b;
}

#endif
