/* SPDX-License-Identifier: GPL-3.0-or-later */
/* This process, where nothing but POSIX is known: not where its program is, nor what its parent is. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "qsf_system.h"
#include "src/base/platform.h"

bool qsf_program_path(char *out, size_t cap) {
    (void)out, (void)cap;
    return false;
}

bool qsf_program_again(char *out, size_t cap) { return qsf_program_path(out, cap); }

uint64_t qsf_parent_bytes(bool *same) {
    *same = false;
    return 0;
}

bool qsf_os_random(void *p, size_t n) {
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool ok = fd >= 0 && read(fd, p, n) == (ssize_t)n;
    if (fd >= 0) close(fd);
    return ok;
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
