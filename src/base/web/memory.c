/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The linear memory, which is all the memory that this program has. It never shrinks, so its size is its
 * peak. */
#include "src/base/clock.h"
#include "src/base/platform.h"
#include "src/base/web/web.h"

#define WASM_PAGE 65536u

static uint64_t memory_limit = UINT64_MAX;

void qsf_web_memory_limit(uint64_t bytes) { memory_limit = bytes; }

uint64_t qsf_rss_bytes(void) { return (uint64_t)__builtin_wasm_memory_size(0) * WASM_PAGE; }

uint64_t qsf_recent_peak_rss_bytes(void) { return qsf_rss_bytes(); }

bool qsf_os_reset_peak(void) { return false; }

uint64_t qsf_available_bytes(void) {
    const uint64_t now = qsf_rss_bytes();
    return now < memory_limit ? memory_limit - now : 0;
}

uint64_t qsf_available_below(const char *root) { return (void)root, qsf_available_bytes(); }

uint64_t qsf_limit_below(const char *root) { return (void)root, memory_limit; }

double qsf_memory_stall_below(const char *root) { return (void)root, -1; }

double qsf_cpu_quota_below(const char *root) { return (void)root, 0; }
