/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which files of a repository are a model, and which one is meant. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "get/list.h"
#include "src/base/strbuf.h"

#include "src/base/paths.h"

#define NAMES_SHOWN 12

static bool ends(const char *s, const char *end) {
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcasecmp(s + n - m, end) == 0;
}

/* Is word in name, without a letter or digit beside it? In any case. */
static bool has_word(const char *name, const char *word) {
    const size_t n = strlen(word);
    for (const char *p = name; n > 0 && *p; p++) {
        if (strncasecmp(p, word, n) != 0) continue;
        const bool left = p == name || !isalnum((unsigned char)p[-1]), right = !isalnum((unsigned char)p[n]);
        /* Q4_0 is not Q4_0_4_4, and K_M is not Q4_K_M. */
        if (left && right && (p == name || p[-1] != '_') && p[n] != '_') return true;
    }
    return false;
}

/* Parts of models that are not models: projectors for pictures, importance matrices, adapters. */
static bool is_aside(const char *path) {
    static const char *const words[] = { "mmproj", "imatrix", "lora", "adapter" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(qsf_path_name(path), words[i])) return true;
    return false;
}

/* The number N of "-00001-of-0000N.gguf"; *stem: length before it. 0: not the name of a shard. */
static unsigned shard(const char *path, unsigned *index, size_t *stem) {
    const size_t n = strlen(path), tail = strlen("-00001-of-00003.gguf");
    unsigned total;
    int end = 0;
    if (n <= tail || !ends(path, ".gguf")) return 0;
    if (sscanf(path + n - tail, "-%5u-of-%5u.gguf%n", index, &total, &end) != 2) return 0;
    if (end != 0 && (size_t)end != tail) return 0;
    *stem = n - tail;
    return *index > 0 && *index <= total ? total : 0;
}

static bool add_part(GetChoice *c, const GetList *l, size_t i) {
    size_t *parts = realloc(c->parts, (c->n + 1) * sizeof *parts);
    if (!parts) return false;
    parts[c->n++] = i;
    c->parts = parts;
    c->bytes += l->items[i].bytes;
    return true;
}

static GetChoice *new_choice(GetChoices *out) {
    GetChoice *items = realloc(out->items, (out->n + 1) * sizeof *items);
    if (!items) return NULL;
    out->items = items;
    out->items[out->n] = (GetChoice){ 0 };
    return &out->items[out->n++];
}

/* File i, with the shards that follow it; the list is sorted. Shards without the first one, or with one
 * missing, are not a model. */
static bool add_file(GetChoices *out, const GetList *l, size_t i) {
    unsigned index, other;
    size_t stem, other_stem;
    const char *path = l->items[i].path;
    const unsigned total = shard(path, &index, &stem);
    if (total > 0 && index != 1) return true;
    for (unsigned k = 1; k < total; k++) {
        if (i + k >= l->n || shard(l->items[i + k].path, &other, &other_stem) != total || other != k + 1 ||
            other_stem != stem || memcmp(l->items[i + k].path, path, stem) != 0)
            return true;
    }
    GetChoice *c = new_choice(out);
    for (unsigned k = 0; c && k < (total ? total : 1); k++)
        if (!add_part(c, l, i + k)) return false;
    return c != NULL;
}

/* What a model with safetensors weights consists of, in the top folder. */
static bool is_folder_part(const char *path) {
    static const char *const plain[] = { ".json", ".safetensors", ".model", ".jinja", ".tiktoken" };
    if (strchr(path, '/')) return false;
    if (strcmp(path, "merges.txt") == 0 || strcmp(path, "vocab.txt") == 0) return true;
    if (strncmp(path, "consolidated", 12) == 0)
        return false; /* the same weights again, in the maker's own layout */
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (ends(path, plain[i])) return true;
    return false;
}

static bool add_folder(GetChoices *out, const GetList *l) {
    bool config = false, weights = false;
    for (size_t i = 0; i < l->n; i++) {
        config = config || strcmp(l->items[i].path, "config.json") == 0;
        weights = weights || (is_folder_part(l->items[i].path) && ends(l->items[i].path, ".safetensors"));
    }
    if (!config || !weights) return true;
    GetChoice *c = new_choice(out);
    for (size_t i = 0; c && i < l->n; i++)
        if (is_folder_part(l->items[i].path) && !add_part(c, l, i)) return false;
    if (c) c->folder = true;
    return c != NULL;
}

static int larger(const void *a, const void *b) {
    const uint64_t x = ((const GetChoice *)a)->bytes, y = ((const GetChoice *)b)->bytes;
    return x < y ? 1 : x > y ? -1 : 0;
}

static bool collect(GetChoices *out, const GetList *l) {
    for (size_t i = 0; i < l->n; i++) {
        const char *p = l->items[i].path;
        if ((ends(p, ".gguf") || ends(p, ".qsf")) && !is_aside(p) && !add_file(out, l, i)) return false;
    }
    return out->n > 0 || add_folder(out, l);
}

/* The file that is called what, of any kind; l->n if there is none. */
static size_t named(const GetList *l, const char *what) {
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i].path, what) == 0) return i;
    for (size_t i = 0; i < l->n; i++)
        if (strcasecmp(qsf_path_name(l->items[i].path), what) == 0) return i;
    return l->n;
}

static int names_error(const GetList *l, const GetChoices *c, const char *what, bool several, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    size_t shown = 0;
    for (size_t i = 0; i < c->n && shown < NAMES_SHOWN; i++) {
        const char *path = l->items[c->items[i].parts[0]].path;
        if (several && !has_word(path, what)) continue;
        qsf_strbuf_addf(&b, "%s%s", shown++ ? ", " : "", c->items[i].folder ? "safetensors" : path);
    }
    if (several)
        qsf_err_set(err, QSF_E_MODEL, "several files are \"%s\": %s", what, qsf_strbuf_str(&b));
    else if (c->n == 0)
        qsf_err_set(err, QSF_E_MODEL,
                    "the repository has no model: no .gguf file, and no safetensors with a config.json");
    else
        qsf_err_set(err, QSF_E_MODEL, "the repository has no file or type \"%s\"; it has %s", what,
                    qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
    return QSF_E_MODEL;
}

static int choose_by_name(const GetList *l, const char *what, GetChoices *out, QsfErr *err) {
    size_t found = 0;
    const size_t file = named(l, what);
    if (file < l->n) {
        for (size_t i = 0; i < out->n; i++)
            for (size_t k = 0; !out->items[i].folder && k < out->items[i].n; k++)
                if (out->items[i].parts[k] == file) return out->chosen = i, QSF_OK;
        GetChoice *c = new_choice(out);
        if (!c || !add_part(c, l, file)) return qsf_err_memory(err, "the list of models");
        out->chosen = out->n - 1;
        return QSF_OK;
    }
    for (size_t i = 0; i < out->n; i++) {
        if (!has_word(l->items[out->items[i].parts[0]].path, what)) continue;
        if (found++ == 0) out->chosen = i;
    }
    return found == 1 ? QSF_OK : names_error(l, out, what, found > 1, err);
}

int get_choose(const GetList *l, const char *what, uint64_t room, GetChoices *out, QsfErr *err) {
    *out = (GetChoices){ 0 };
    if (!collect(out, l)) return qsf_err_memory(err, "the list of models");
    if (out->n > 0) qsort(out->items, out->n, sizeof *out->items, larger);
    if (*what) return choose_by_name(l, what, out, err);
    if (out->n == 0) return names_error(l, out, what, false, err);
    while (out->chosen + 1 < out->n && out->items[out->chosen].bytes > room) out->chosen++;
    return QSF_OK;
}

void get_choices_free(GetChoices *c) {
    for (size_t i = 0; i < c->n; i++) free(c->items[i].parts);
    free(c->items);
    *c = (GetChoices){ 0 };
}
