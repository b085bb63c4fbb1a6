/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Adapters: huggingface/peft, src/peft/utils/constants.py. */
#include "src/file/dirhint.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/ascii.h"
#include "src/file/source_impl.h"

#define MAX_ENTRIES 10000

/* Is it a model in one file, or the first part of one? */
static bool is_model(const char *name) {
    if (name[0] == '.' || strncmp(name, "mmproj", 6) == 0) return false;
    if (strstr(name, "-of-") != NULL && strstr(name, "-00001-of-") == NULL) return false;
    return qsf_ends_with(name, ".gguf") || qsf_ends_with(name, ".qsf");
}

/* Finds the model file with the first name. */
static bool find_model(const char *dir, char best[256]) {
    DIR *d = opendir(dir);
    const struct dirent *e;
    best[0] = '\0';
    for (int i = 0; d != NULL && i < MAX_ENTRIES && (e = readdir(d)) != NULL; i++)
        if (is_model(e->d_name) && (best[0] == '\0' || strcmp(e->d_name, best) < 0))
            snprintf(best, 256, "%s", e->d_name);
    if (d != NULL) closedir(d);
    return best[0] != '\0';
}

static bool has(const char *dir, const char *name) {
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s%s", dir, name);
    return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

void qsf_dir_hint(const char *dir, size_t len, char *buf) {
    char path[4096], name[256];
    buf[0] = '\0';
    if (len == 0) dir = "./", len = 2;
    const int n = snprintf(path, sizeof path, "%.*s", (int)len, dir);
    if (n <= 0 || (size_t)n >= sizeof path) return;
    if (find_model(path, name))
        snprintf(buf, QSF_DIR_HINT, "; it contains %s: open that file", name);
    else if (has(path, "adapter_model.safetensors"))
        snprintf(buf, QSF_DIR_HINT,
                 "; it contains an adapter (adapter_model.safetensors): open its model, with this as --lora");
    else if (has(path, "adapter_config.json"))
        snprintf(buf, QSF_DIR_HINT,
                 "; adapter_config.json is that of an adapter, whose adapter_model.safetensors is missing");
    else if (has(path, "consolidated.safetensors"))
        snprintf(
            buf, QSF_DIR_HINT,
            "; consolidated.safetensors has other names of tensors and is not supported: get the files for "
            "transformers");
}

bool qsf_dir_has_weights(const char *dir) {
    static const char *const names[] = { QSF_WEIGHTS_FILE, QSF_WEIGHTS_INDEX };
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        char path[4096];
        int n = snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        found = n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
    }
    return found;
}

bool qsf_pytorch_in(const char *dir, size_t len) {
    static const char *const names[] = { "pytorch_model.bin", "pytorch_model.bin.index.json" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[4096];
        const int n = len < sizeof name ? snprintf(name, sizeof name, "%.*s%s", (int)len, dir, names[i]) : -1;
        if (n > 0 && (size_t)n < sizeof name && access(name, F_OK) == 0) return true;
    }
    return false;
}

int qsf_dir_missing(const char *dir, bool weights, QsfErr *err) {
    char prefix[4096], hint[QSF_DIR_HINT];
    const int n = snprintf(prefix, sizeof prefix, "%s/", dir);
    const size_t len = n > 0 && (size_t)n < sizeof prefix ? (size_t)n : 0;
    if (len > 0 && !qsf_dir_has_weights(dir) && qsf_pytorch_in(prefix, len))
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the weights in this directory are " QSF_PYTORCH_ADVICE
                           "; it has no tokenizer.json or tokenizer.model either",
                           dir);
    hint[0] = '\0';
    if (len > 0) qsf_dir_hint(prefix, len, hint);
    if (!weights || qsf_dir_has_weights(dir))
        return qsf_err_set(err, QSF_E_MODEL, "%s: is a directory without tokenizer.json or tokenizer.model%s",
                           dir, hint);
    return qsf_err_set(
        err, QSF_E_MODEL,
        "%s: is a directory without weights (model.safetensors, or model.safetensors.index.json and "
        "the files that it lists) and without tokenizer.json or tokenizer.model%s",
        dir, hint);
}
