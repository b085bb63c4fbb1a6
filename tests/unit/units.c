/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The main of the programs of unit tests: runs the test that has the name of the program, which is a symbolic
 * link for each test, or the one given as the first argument. */
#include "tests/unit/units.h"

#include <stdio.h>
#include <string.h>

static QsfUnitTest *units;

void qsf_unit_test_add(QsfUnitTest *unit) {
    unit->next = units;
    units = unit;
}

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    const char *name = argc > 1 ? argv[1] : slash != NULL ? slash + 1 : argv[0];
    for (const QsfUnitTest *u = units; u != NULL; u = u->next)
        if (strcmp(u->name, name) == 0) return u->run();
    fprintf(stderr, "no test is called %s; there are:\n", name);
    for (const QsfUnitTest *u = units; u != NULL; u = u->next) fprintf(stderr, "  %s\n", u->name);
    return 2;
}
