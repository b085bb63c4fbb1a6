/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Places of models. Where other programs keep theirs: huggingface/huggingface_hub (constants.py:
 * HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME), ggml-org/llama.cpp (common/common.cpp:
 * LLAMA_CACHE), lmstudio-ai/lmstudio-bug-tracker (issue 553: .lmstudio-home-pointer), ollama/ollama
 * (docs/faq.md: OLLAMA_MODELS; the folder of its service). */
#include "src/catalog/places.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/paths.h"
#include "src/base/platform.h"

const char *qsf_place_name(QsfPlaceKind kind) {
    static const char *const names[QSF_PLACE_N] = {
        [QSF_PLACE_FOLDER] = "folder",       [QSF_PLACE_HERE] = "current folder",
        [QSF_PLACE_OLLAMA] = "Ollama",       [QSF_PLACE_LM_STUDIO] = "LM Studio",
        [QSF_PLACE_LLAMA_CPP] = "llama.cpp", [QSF_PLACE_HUGGING_FACE] = "Hugging Face",
    };
    return (unsigned)kind < QSF_PLACE_N ? names[kind] : "";
}

bool qsf_places_add(QsfPlaces *p, QsfPlaceKind kind, const char *path) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->items[i].path, path) == 0) return true;
    if (p->n == p->cap) {
        const size_t cap = p->cap > 0 ? 2 * p->cap : 16;
        QsfPlace *more = realloc(p->items, cap * sizeof *more);
        if (more == NULL) return false;
        p->items = more;
        p->cap = cap;
    }
    p->items[p->n] = (QsfPlace){ kind, strdup(path) };
    return p->items[p->n].path != NULL && ++p->n > 0;
}

void qsf_places_free(QsfPlaces *p) {
    for (size_t i = 0; i < p->n; i++) free(p->items[i].path);
    free(p->items);
    *p = (QsfPlaces){ 0 };
}

/* A relative path would mean another folder after a change of directory. */
static bool add(QsfPlaces *p, QsfPlaceKind kind, const char *base, const char *sub) {
    char path[QSF_PATH_MAX], here[QSF_PATH_MAX];
    if (base == NULL || *base == '\0') return true;
    const char *home = getenv("HOME");
    if (base[0] == '~' && (base[1] == '/' || base[1] == '\0') && home != NULL) {
        if (!qsf_path_join(path, home, base + 1, sub)) return true;
    } else if (base[0] == '/') {
        if (!qsf_path_join(path, base, sub, "")) return true;
    } else {
        if (getcwd(here, sizeof here) == NULL || !qsf_path_join(path, here, "/", base) ||
            !qsf_path_join(here, path, sub, ""))
            return true;
        return qsf_places_add(p, kind, here);
    }
    return qsf_places_add(p, kind, path);
}

static const char *set(const char *name) {
    const char *v = getenv(name);
    return v != NULL && *v != '\0' ? v : NULL;
}

static bool add_hugging_face(QsfPlaces *p, const char *home) {
    const char *hub = set("HF_HUB_CACHE") != NULL ? set("HF_HUB_CACHE") : set("HUGGINGFACE_HUB_CACHE");
    const char *base = set("HF_HOME"), *cache = set("XDG_CACHE_HOME");
    if (hub != NULL) return add(p, QSF_PLACE_HUGGING_FACE, hub, "");
    if (base != NULL) return add(p, QSF_PLACE_HUGGING_FACE, base, "/hub");
    if (cache != NULL) return add(p, QSF_PLACE_HUGGING_FACE, cache, "/huggingface/hub");
    return add(p, QSF_PLACE_HUGGING_FACE, home, "/.cache/huggingface/hub");
}

static bool add_llama_cpp(QsfPlaces *p, const char *home) {
    const char *own = set("LLAMA_CACHE"), *cache = set("XDG_CACHE_HOME");
    char path[QSF_PATH_MAX];
    if (own != NULL) return add(p, QSF_PLACE_LLAMA_CPP, own, "");
    if (qsf_os_caches_folder() != NULL)
        return qsf_path_join(path, home, qsf_os_caches_folder(), "") &&
               add(p, QSF_PLACE_LLAMA_CPP, path, "/llama.cpp");
    if (cache != NULL) return add(p, QSF_PLACE_LLAMA_CPP, cache, "/llama.cpp");
    return add(p, QSF_PLACE_LLAMA_CPP, home, "/.cache/llama.cpp");
}

/* The first line of ~/.lmstudio-home-pointer is the home of LM Studio. */
static bool add_pointed(QsfPlaces *p, const char *home) {
    char path[QSF_PATH_MAX];
    if (!qsf_path_join(path, home, "/.lmstudio-home-pointer", "")) return true;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, path, sizeof path - 1) : -1;
    if (fd >= 0) close(fd);
    if (n <= 0) return true;
    path[n] = '\0';
    path[strcspn(path, "\r\n")] = '\0';
    return path[0] != '/' || add(p, QSF_PLACE_LM_STUDIO, path, "/models");
}

static bool add_lm_studio(QsfPlaces *p, const char *home) {
    return add_pointed(p, home) && add(p, QSF_PLACE_LM_STUDIO, home, "/.lmstudio/models") &&
           add(p, QSF_PLACE_LM_STUDIO, home, "/.cache/lm-studio/models");
}

/* The service has a user and a home of its own. */
static bool add_ollama(QsfPlaces *p, const char *home) {
    const char *own = set("OLLAMA_MODELS");
    if (own != NULL) return add(p, QSF_PLACE_OLLAMA, own, "");
    return (home == NULL || add(p, QSF_PLACE_OLLAMA, home, "/.ollama/models")) &&
           add(p, QSF_PLACE_OLLAMA, "/usr/share/ollama", "/.ollama/models") &&
           add(p, QSF_PLACE_OLLAMA, "/var/lib/ollama", "/.ollama/models");
}

bool qsf_places_find(QsfPlaces *p, const char *const *dirs) {
    char here[QSF_PATH_MAX];
    const char *home = set("HOME");
    for (size_t i = 0; dirs != NULL && dirs[i] != NULL; i++)
        if (!add(p, QSF_PLACE_FOLDER, dirs[i], "")) return false;
    if (getcwd(here, sizeof here) != NULL && !qsf_places_add(p, QSF_PLACE_HERE, here)) return false;
    return add_ollama(p, home) && (home == NULL || add_lm_studio(p, home)) && add_llama_cpp(p, home) &&
           add_hugging_face(p, home);
}
