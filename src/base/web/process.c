/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A module in a page: it has no program, no parent and no folders. */
#include <unistd.h>

#include "qsf_system.h"
#include "src/base/platform.h"

#define ENTROPY_MAX 256u /* bytes that getentropy gives at a time */

bool qsf_program_path(char *out, size_t cap) { return (void)out, (void)cap, false; }

bool qsf_program_again(char *out, size_t cap) { return (void)out, (void)cap, false; }

uint64_t qsf_parent_bytes(bool *same) { return *same = false, 0; }

bool qsf_os_random(void *p, size_t n) {
    for (size_t at = 0; at < n; at += ENTROPY_MAX)
        if (getentropy((char *)p + at, n - at < ENTROPY_MAX ? n - at : ENTROPY_MAX) != 0) return false;
    return true;
}

static uint64_t own_key[2];
static void make_key(void) { (void)qsf_os_random(own_key, sizeof own_key); }

void qsf_os_process_key(uint64_t key[2]) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_key);
    key[0] = own_key[0];
    key[1] = own_key[1];
}

const char *qsf_os_caches_folder(void) { return NULL; }

void qsf_os_tame_heap(void) {}

void qsf_os_trim_heap(void) {}
