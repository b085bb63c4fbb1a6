/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion of the values of settings: words, and numbers that mean something. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "qsf_cli.h"
#include "ui/app.h"
#include "ui/complete_internal.h"

static void put(UiCompletion *c, const char *value, size_t n, const char *word, size_t len) {
    char text[80], help[100] = "";
    size_t end = 0;
    while (end < n && value[end] != ' ') end++;
    (void)snprintf(text, sizeof text, "%.*s", (int)end, value);
    if (end < n) (void)snprintf(help, sizeof help, "%.*s", (int)(n - end - 1), value + end + 1);
    if (ui_complete_fits(c, text, NULL, word, len)) ui_complete_add(c, text, "", help);
}

static void number(UiCompletion *c, unsigned long n, const char *help, const char *word, size_t len) {
    char text[24];
    (void)snprintf(text, sizeof text, "%lu", n);
    if (ui_complete_fits(c, text, NULL, word, len)) ui_complete_add(c, text, "", help);
}

static void threads(UiCompletion *c, const char *word, size_t len) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (long n = 1; n <= cpus && n <= 256; n++) number(c, (unsigned long)n, "", word, len);
}

static void contexts(UiCompletion *c, const UiApp *a, const char *word, size_t len) {
    const unsigned long train = a ? a->stats.ctx_train : 0;
    for (unsigned long n = 512; train > 0 && n < train; n *= 2) number(c, n, "", word, len);
    if (train > 0) number(c, train, "what the model was trained for", word, len);
}

void ui_complete_values(UiCompletion *c, const UiApp *a, const char *setting, const char *word, size_t len) {
    const char *p = qsf_cli_values(setting);
    for (size_t n; p && *p; p += n + (p[n] == '|')) {
        n = strcspn(p, "|");
        if (*p != '@') put(c, p, n, word, len);
    }
    if (strcmp(setting, "threads") == 0) threads(c, word, len);
    if (strcmp(setting, "ctx") == 0) contexts(c, a, word, len);
}
