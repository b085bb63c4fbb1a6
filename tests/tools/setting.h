/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NAME=VALUE arguments of the tools: any setting of the programs. */
#ifndef QSF_TESTS_TOOLS_SETTING_H
#define QSF_TESTS_TOOLS_SETTING_H

#include <string.h>

#include "src/engine/runtime.h"

/* Sets what word says; fail, which does not return, is called with the reason if it cannot. */
static inline void tool_setting(QSFSettings *s, const char *word, void (*fail)(const char *why)) {
    char name[64], err[256] = "";
    const char *eq = strchr(word, '=');
    if (eq == NULL || (size_t)(eq - word) >= sizeof name) {
        fail(word);
        return;
    }
    memcpy(name, word, (size_t)(eq - word));
    name[eq - word] = '\0';
    const QSFSetting *row = qsf_setting_find(name);
    if (row == NULL || qsf_setting_set(s, row, eq + 1, err, sizeof err) != 0)
        fail(err[0] != '\0' ? err : word);
}

#endif
