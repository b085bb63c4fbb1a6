/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion of the values of settings: words, and numbers that mean something. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ui/app.h"
#include "ui/complete_internal.h"

/* Values and what they mean, separated by |; the unit test checks that the settings accept them. */
static const struct {
    const char *setting, *values;
} known[] = {
    { "temperature", "0 always the most likely token" },
    { "top-k", "0 off" },
    { "top-p", "1 off" },
    { "min-p", "0 off" },
    { "repeat-penalty", "1 off" },
    { "repeat-last-n", "-1 all tokens" },
    { "quality", "1 everything is computed|0.9|0.8|0.7|0.6|0.5 about half of the weights for each "
                 "token|0.4|0.3|0.2|0.1" },
    { "seed", "random" },
    { "max-tokens", "0 until the end of the answer" },
    { "ignore-eos", "on|off" },
    { "allow-special", "on|off special tokens in messages are plain text" },
    { "ram-budget", "auto what is available|25% of available memory|50%|75%" },
    { "pin", "auto as much as the budget allows|0 stream every layer" },
    { "slots", "auto|1|2|3|4" },
    { "embedding",
      "auto resident if everything fits|resident in RAM|lru in the file, the last rows are kept" },
    { "io", "auto uring where it is available|uring|pread|mmap" },
    { "direct", "auto unless the file is cached|on bypass the page cache|off" },
    { "ctx", "auto" },
    { "batch", "auto" },
    { "threads", "auto one per CPU" },
    { "kv-type", "auto f16 if it fits|f32|f16|q8|q6|q4|q2" },
    { "k-type", "auto as kv-type|f32|f16|q8|q6|q4|q2" },
    { "v-type", "auto as kv-type|f32|f16|q8|q6|q4|q2" },
    { "eviction-policy",
      "none the answer ends when the context is full|sliding the oldest tokens leave|"
      "h2o what gets least attention leaves|snapkv the same, judged by the newest tokens" },
    { "eviction-window", "auto what the context holds" },
    { "protected-prefix", "auto the system prompt|0 nothing" },
    { "memory-threshold-mb", "0 off" },
    { "cpu-mask", "best|ref|sse42|avx2|avxvnni|avx512|avx512vnni|avx512vbmi|neon|dotprod|i8mm" },
    { "show-thinking", "on|off" },
    { "reasoning", "auto the model's default|off|on|low|medium|high" },
    { "reasoning-budget", "-1 no limit|0 no reasoning|512|2048|8192" },
};

static void put(UiCompletion *c, const char *value, size_t n, const char *word, size_t len) {
    char text[80], help[100] = "";
    size_t end = 0;
    while (end < n && value[end] != ' ') end++;
    (void)snprintf(text, sizeof text, "%.*s", (int)end, value);
    if (end < n) (void)snprintf(help, sizeof help, "%.*s", (int)(n - end - 1), value + end + 1);
    if (strncmp(text, word, len) == 0) ui_complete_add(c, text, "", help);
}

static void number(UiCompletion *c, unsigned long n, const char *help, const char *word, size_t len) {
    char text[24];
    (void)snprintf(text, sizeof text, "%lu", n);
    if (strncmp(text, word, len) == 0) ui_complete_add(c, text, "", help);
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
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *p = known[i].values;
        if (strcmp(known[i].setting, setting) != 0) continue;
        for (size_t n; *p; p += n + (p[n] == '|')) put(c, p, n = strcspn(p, "|"), word, len);
    }
    if (strcmp(setting, "threads") == 0) threads(c, word, len);
    if (strcmp(setting, "ctx") == 0) contexts(c, a, word, len);
}
