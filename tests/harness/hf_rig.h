/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model directory under construction, for the tests of safetensors and config.json; a test must close
 * everything it opened. */
#ifndef QSF_TESTS_HF_RIG_H
#define QSF_TESTS_HF_RIG_H

#include "src/file/source.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/st_build.h"

static QsfLedger ledger;
static char dir[64];

static inline int setup(void **state) {
    (void)state;
    qsf_ledger_init(&ledger, 0);
    (void)snprintf(dir, sizeof dir, "/tmp/qsfhf.XXXXXX");
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static inline int teardown(void **state) {
    (void)state;
    const uint64_t left = ledger.total;
    qsf_test_remove_hf_dir(dir);
    qsf_ledger_destroy(&ledger);
    return left == 0 ? 0 : -1;
}

#endif
