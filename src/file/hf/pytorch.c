/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Looks for files of transformers' older format. */
#include "src/file/hf/pytorch.h"

#include <stdio.h>
#include <unistd.h>

bool qsf_pytorch_in(const char *dir, size_t len) {
    static const char *const names[] = { "pytorch_model.bin", "pytorch_model.bin.index.json" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[4096];
        const int n = len < sizeof name ? snprintf(name, sizeof name, "%.*s%s", (int)len, dir, names[i]) : -1;
        if (n > 0 && (size_t)n < sizeof name && access(name, F_OK) == 0) return true;
    }
    return false;
}
