/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: any lines as code of the language that the first byte chooses. Runs cover each line, and the
 * state after it does not depend on how many of them fit. */
#include <stdlib.h>
#include <string.h>

#include "ui/code/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const UiLexer *x, UiCodeState *st, const char *line, size_t len) {
    UiCodeRun runs[32], one[1];
    UiCodeState again = *st;
    size_t at = 0, n = ui_code_line(x, st, line, len, runs, 32);
    for (size_t i = 0; i < n; i++) {
        if (runs[i].at != at || runs[i].len == 0 || runs[i].kind >= UI_CODE_CLASSES) abort();
        if (i > 0 && runs[i].kind == runs[i - 1].kind) abort();
        at += runs[i].len;
    }
    if (at != len || ui_code_line(x, &again, line, len, one, 1) != (len > 0)) abort();
    if (memcmp(st, &again, sizeof again) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t languages = 0;
    UiCodeState st = { 0 };
    while (ui_code_lexers[languages]) languages++;
    if (size == 0) return 0;
    const UiLexer *x = ui_code_lexers[data[0] % languages];
    (void)ui_code_lexer((const char *)data, size);
    for (size_t at = 1; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        const size_t len = end ? (size_t)(end - data) - at : size - at;
        check(x, &st, (const char *)data + at, len);
        at += len + 1;
    }
    return 0;
}
