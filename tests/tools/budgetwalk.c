/* SPDX-License-Identifier: GPL-3.0-or-later */
/* budgetwalk MODEL TOKENS GROUP BUDGET...: writes the ids of a greedy answer. The budget (MB) changes after
 * every second token, in the order given, again and again; the first one is that of the load. GROUP is the
 * memory cgroup of this process, whose limit follows: it is raised before the budget, and lowered when the
 * lower budget is in force; "" = none. The peak of the resident set is not larger than the largest budget. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf.h"

typedef struct Walk {
    QSFEngine *engine;
    QSFConfig *config;
    const char *group;
    size_t budget[64], n, at; /* in MB; the one in force, or that comes into force before the next token */
    size_t limit;
    unsigned tokens, changes;
    int failed;
} Walk;

static int put(const char *group, const char *file, size_t mb) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", group, file);
    FILE *f = fopen(path, "we");
    if (f == NULL) return -1;
    const int n = fprintf(f, "%zu", mb << 20);
    return fclose(f) == 0 && n > 0 ? 0 : -1;
}

/* Version 2, or version 1, where the limit with swap is never below the one without. */
static void set_limit(Walk *w, size_t mb) {
    static const char *const v1[] = { "memory.limit_in_bytes", "memory.memsw.limit_in_bytes" };
    const int up = mb > w->limit;
    w->limit = mb;
    if (*w->group == '\0' || put(w->group, "memory.max", mb) == 0) return;
    (void)put(w->group, v1[up], mb); /* not with every kernel */
    if (put(w->group, v1[!up], mb) == 0 || !up) return;
    fprintf(stderr, "budgetwalk: the limit of the group does not become %zu MB\n", mb);
    w->failed = 1;
}

static void on_token(int id, const char *text, void *arg) {
    Walk *w = arg;
    (void)text;
    if (id < 0) return;
    printf("%d\n", id);
    w->tokens++;
    if (w->tokens % 2 == 0) { /* the last change is in force */
        if (qsf_ram_budget(w->engine) != w->budget[w->at]) {
            fprintf(stderr, "budgetwalk: %zu MB instead of %zu MB\n", qsf_ram_budget(w->engine),
                    w->budget[w->at]);
            w->failed = 1;
        }
        if (w->budget[w->at] < w->limit) set_limit(w, w->budget[w->at]);
        return;
    }
    w->at = (w->at + 1) % w->n;
    w->changes++;
    if (w->budget[w->at] > w->limit) set_limit(w, w->budget[w->at]);
    qsf_config_set_ram_budget(w->config, w->budget[w->at]);
}

int main(int argc, char **argv) {
    Walk w = { 0 };
    if (argc < 5 || argc > 4 + 64)
        return fprintf(stderr, "usage: budgetwalk MODEL TOKENS GROUP BUDGET...\n"), 2;
    w.group = argv[3];
    for (int i = 4; i < argc; i++) w.budget[w.n++] = strtoul(argv[i], NULL, 10);
    w.limit = w.budget[0];
    w.config = qsf_config_default();
    qsf_config_set_ram_budget(w.config, w.budget[0]);
    qsf_config_set_threads(w.config, 2);
    qsf_config_set_max_seq_len(w.config, 256);
    qsf_config_set_kv_types(w.config, "f16", "f16");
    w.engine = qsf_load(argv[1], w.config);
    int rc = w.engine == NULL ? 1
                              : qsf_generate(w.engine, "a b c d e f g", (int)strtol(argv[2], NULL, 10), 0, 1,
                                             on_token, &w);
    if (rc != 0) fprintf(stderr, "budgetwalk: %s\n", qsf_error());
    fprintf(stderr, "%u tokens, %u changes\n", w.tokens, w.changes);
    qsf_free(w.engine);
    qsf_config_free(w.config);
    return rc != 0 ? rc : w.failed;
}
