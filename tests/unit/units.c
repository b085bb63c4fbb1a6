/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The main of the programs of unit tests and of tools: runs the one that has the name of the program, which
 * is a symbolic link for each of them, or the one given as the first argument. */
#include "tests/unit/units.h"

#include <stdio.h>
#include <string.h>

static QsfMain *units;

void qsf_main_add(QsfMain *unit) {
    unit->next = units;
    units = unit;
}

static const QsfMain *find(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    for (const QsfMain *u = units; u != NULL; u = u->next)
        if (strcmp(u->name, name) == 0) return u;
    return NULL;
}

int main(int argc, char **argv) {
    const QsfMain *u = find(argv[0]);
    if (u != NULL) return u->run(argc, argv);
    if (argc > 1 && (u = find(argv[1])) != NULL) return u->run(argc - 1, argv + 1);
    fprintf(stderr, "nothing is called %s; there are:\n", argc > 1 ? argv[1] : argv[0]);
    for (u = units; u != NULL; u = u->next) fprintf(stderr, "  %s\n", u->name);
    return 2;
}
