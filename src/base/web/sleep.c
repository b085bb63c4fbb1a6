/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memory.atomic.wait32 and notify. */
#include <limits.h>
#include <math.h>

#include <emscripten/threading.h>

#include "src/base/platform.h"

void qsf_os_sleep(atomic_uint *word, unsigned seen) { emscripten_futex_wait(word, seen, INFINITY); }

void qsf_os_wake(atomic_uint *word, bool all) { emscripten_futex_wake(word, all ? INT_MAX : 1); }
