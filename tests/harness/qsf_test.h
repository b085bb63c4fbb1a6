/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What every unit test includes first: cmocka with its prerequisites, locations of files. */
#ifndef QSF_TESTS_QSF_TEST_H
#define QSF_TESTS_QSF_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/err.h"

/* Path of a scratch file of this process: $TMPDIR (or /tmp), the process id and name. Static storage, four
 * paths in turn. The test removes the file. */
const char *qsf_test_tmp(const char *name);
/* Path below $QSF_TEST_DATA, else $QSF_SRCDIR/../shared; NULL (with a "skip:" line) if it does not exist.
 * Static storage, valid until the next call. */
const char *qsf_test_data(const char *relative);
/* The processor time of this process and all its threads: that of a computation depends little on what else
 * the machine does. */
uint64_t qsf_test_cpu_ns(void);
/* make check skips long parts, make check-all does not ($QSF_TEST_QUICK). */
bool qsf_test_quick(void);
/* Whether an emulator runs the tests ($QSF_EMULATOR): its times say nothing, and it lacks some system calls.
 * Prints what is left out then, as a "skip:" line. */
bool qsf_test_emulated(const char *left_out);
/* Fails the test, printing the message, unless err has this code and its message contains part. */
void qsf_test_expect_err(const QsfErr *err, int code, const char *part);
/* Fails the test, printing the message, unless rc is QSF_OK. */
void qsf_test_expect_ok(int rc, const QsfErr *err);

#endif
