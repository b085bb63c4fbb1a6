/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The output replaces the file at its path, which must not be one that is read. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "src/convert/convert.h"

#include "src/base/ascii.h"

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_file(const struct stat *out, const char *path) {
    struct stat in;
    return path != NULL && stat(path, &in) == 0 && is_same(&in, out);
}

/* The folder of a file, whose path is cut. */
static const char *folder_of(char *path) {
    char *slash = strrchr(path, '/');
    if (slash == NULL) return ".";
    slash[slash == path] = '\0';
    return path;
}

/* Besides weights, a directory has files of settings and of the tokenizer. Earlier outputs may be there. */
static bool is_in_directory(const char *output, const char *dir) {
    char path[PATH_MAX];
    struct stat in, folder;
    if (qsf_ends_with(output, ".gguf") || qsf_ends_with(output, ".qsf")) return false;
    const int n = snprintf(path, sizeof path, "%s", output);
    return n > 0 && (size_t)n < sizeof path && stat(dir, &in) == 0 && stat(folder_of(path), &folder) == 0 &&
           is_same(&in, &folder);
}

static bool is_of_source(const ConvertOptions *o, const struct stat *out, const QsfSource *s) {
    for (uint32_t i = 0; i < qsf_source_n_files(s); i++)
        if (is_file(out, qsf_source_file(s, i)->path)) return true;
    return qsf_source_from_dir(s) && is_in_directory(o->output, qsf_source_path(s));
}

int convert_check_output(const ConvertOptions *o, const QsfSource *s, const QsfAdapterSet *adapters) {
    struct stat out;
    if (o->output == NULL || o->dry || stat(o->output, &out) != 0) return QSF_EXIT_OK;
    bool is_input = is_of_source(o, &out, s) || is_file(&out, o->calibration) || is_file(&out, o->by_use);
    for (uint32_t i = 0; adapters != NULL && i < adapters->n; i++)
        is_input = is_input || is_of_source(o, &out, adapters->adapter[i].src);
    if (!is_input) return QSF_EXIT_OK;
    qsf_cli_error(&convert_cli, "%s: the output is an input file", o->output);
    return QSF_EXIT_USAGE;
}
