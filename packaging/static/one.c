/* SPDX-License-Identifier: GPL-3.0-or-later */
/* main() of the static programs: one file with several names (hard links), of which most is kernels.
 * mk/static.mk names the main() of each program as it is called here. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int qsf_chat_main(int argc, char **argv);
int qsf_run_main(int argc, char **argv);
int qsf_convert_main(int argc, char **argv);
int qsf_serve_main(int argc, char **argv) __attribute__((weak)); /* only where libmicrohttpd is */
int qsf_get_main(int argc, char **argv) __attribute__((weak));   /* only where libcurl is */

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
} programs[] = { { "qsf-chat", qsf_chat_main },
                 { "qsf-run", qsf_run_main },
                 { "qsf-convert", qsf_convert_main },
                 { "qsf-serve", qsf_serve_main },
                 { "qsf-get", qsf_get_main } };

#define N (sizeof programs / sizeof *programs)

/* The number of the program that the last part of path names, N if it names none. After an update a
 * process that still runs has " (deleted)" at the end. */
static size_t named(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const size_t len = strcspn(name, " ");
    for (size_t i = 0; i < N; i++)
        if (programs[i].main && strlen(programs[i].name) == len && strncmp(name, programs[i].name, len) == 0)
            return i;
    return N;
}

/* The name of the file comes first: it is the same behind a symbolic link of another name. */
int main(int argc, char **argv) {
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    size_t i = named(self);
    if (i == N && argc > 0) i = named(argv[0]);
    return programs[i < N ? i : 0].main(argc, argv);
}
