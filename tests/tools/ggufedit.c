/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ggufedit IN.gguf OUT.gguf EDIT...: damages a valid file, for the scripts of the tests
 * (tests/harness/gguf_edit.h). */
#include <stdio.h>

#include "tests/harness/gguf_edit.h"

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: ggufedit IN.gguf OUT.gguf EDIT...\n"), 2;
    if (qsf_test_edit_gguf(argv[1], argv[2], (const char *const *)(argv + 3)) == 0) return 0;
    return fprintf(stderr, "ggufedit: cannot make %s\n", argv[2]), 1;
}
