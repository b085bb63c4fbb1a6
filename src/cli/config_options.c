/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The options of qsf-chat, qsf-run and qsf-serve besides the settings: one file is for all, so each has to
 * know the names of the others. tests/system/config.sh compares them with --help. */
#include "src/cli/config_options.h"

#include <string.h>

static const QsfConfigOption options[] = {
    { "model", 0, "connect" },
    { "model-dir", QSF_CONFIG_LIST, "" },
    { "system", QSF_CONFIG_TEXT, "system-file" },
    { "system-file", QSF_CONFIG_TEXT, "system" },
    { "stop", QSF_CONFIG_TEXT | QSF_CONFIG_LIST, "" },
    { "role", QSF_CONFIG_TEXT, "" },
    { "verbose", 0, "" },
    { "quiet", 0, "" },
    { "log-file", 0, "" },
    { "json", 0, "" },
    { "file", QSF_CONFIG_ONCE, "" },
    { "output", QSF_CONFIG_ONCE, "" },
    { "offline", 0, "" },
    { "override-kv", QSF_CONFIG_LIST, "" },
    { "i2s-flavor", 0, "" },
    /* qsf-chat */
    { "session", 0, "continue,no-save" },
    { "continue", 0, "session,no-save" },
    { "no-save", 0, "session,continue" },
    { "connect", 0, "" },
    { "no-snapshot", 0, "snapshot-limit" },
    { "snapshot-limit", 0, "no-snapshot" },
    { "plain", 0, "" },
    { "color", 0, "no-color" },
    { "no-color", 0, "color" },
    { "theme", 0, "" },
    { "notify", 0, "" },
    { "mouse", 0, "" },
    { "width", 0, "" },
    { "replay", QSF_CONFIG_ONCE, "" },
    { "script", QSF_CONFIG_ONCE, "" },
    { "list-sessions", QSF_CONFIG_ONCE, "" },
    { "list-models", QSF_CONFIG_ONCE, "" },
    { "print-session", QSF_CONFIG_ONCE, "" },
    /* qsf-run */
    { "prompt-cache", 0, "" },
    { "stats", 0, "" },
    { "fail-on-length", 0, "" },
    { "top-logprobs", QSF_CONFIG_ONCE, "" },
    { "no-bos", 0, "" },
    { "no-special", 0, "" },
    { "clean-spaces", 0, "" },
    { "repeats", 0, "" },
    { "stride", 0, "" },
    { "max-kl", 0, "" },
    { "jsonl", 0, "" },
    { "exact", 0, "" },
    { "prompt", QSF_CONFIG_ONCE, "" },
    { "interactive", QSF_CONFIG_ONCE, "" },
    { "bench", QSF_CONFIG_ONCE, "" },
    { "bench-text", QSF_CONFIG_ONCE, "" },
    { "inspect", QSF_CONFIG_ONCE, "" },
    { "plan", QSF_CONFIG_ONCE, "" },
    { "svg", QSF_CONFIG_ONCE, "" },
    { "show-prompt", QSF_CONFIG_ONCE, "" },
    { "render", QSF_CONFIG_ONCE, "" },
    { "now", QSF_CONFIG_ONCE, "" },
    { "match", QSF_CONFIG_ONCE, "" },
    { "tokenize", QSF_CONFIG_ONCE, "" },
    { "detokenize", QSF_CONFIG_ONCE, "" },
    { "parity", QSF_CONFIG_ONCE, "" },
    { "receipt", QSF_CONFIG_ONCE, "" },
    { "nextn", QSF_CONFIG_ONCE, "" },
    { "logits", QSF_CONFIG_ONCE, "" },
    { "perplexity", QSF_CONFIG_ONCE, "" },
    { "kl-save", QSF_CONFIG_ONCE, "" },
    { "kl-base", QSF_CONFIG_ONCE, "" },
    { "calibrate-quality", QSF_CONFIG_ONCE, "" },
    /* qsf-serve; api-key-file and timeout are options of qsf-chat, too: sections tell them apart */
    { "listen", 0, "" },
    { "api-key-file", 0, "" },
    { "queue", 0, "" },
    { "connections", 0, "" },
    { "timeout", 0, "" },
    { "body-limit", 0, "" },
    { "snapshots", 0, "" },
    { "snapshot-dir", 0, "" },
    { "allow-host", QSF_CONFIG_LIST, "" },
    { "allow-origin", QSF_CONFIG_LIST, "" },
    { "model-name", 0, "" },
    /* all */
    { "help", QSF_CONFIG_ONCE, "" },
    { "version", QSF_CONFIG_ONCE, "" },
    { "print-completion", QSF_CONFIG_ONCE, "" },
    { "config", QSF_CONFIG_ONCE, "" },
    { "no-config", QSF_CONFIG_ONCE, "" },
    { "print-config", QSF_CONFIG_ONCE, "" },
};

const QsfConfigOption *qsf_config_option(const char *name) {
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(options[i].name, name) == 0) return &options[i];
    return NULL;
}

bool qsf_config_program(const char *name) {
    return !strchr(name, ',') && qsf_config_in_list("qsf-chat,qsf-run,qsf-serve", name);
}

bool qsf_config_in_list(const char *list, const char *word) {
    const size_t len = strlen(word);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == len && strncmp(p, word, len) == 0) return true;
    return false;
}
