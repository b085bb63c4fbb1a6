/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Included before the first line of every unit test, by the compiler (src_flags in the Makefile). The tests
 * of a folder are linked into one program, because linking costs more than compiling a test. So each main is
 * a function of its file, which joins a list before the main of units.c runs. */
#ifndef QSF_TESTS_UNITS_H
#define QSF_TESTS_UNITS_H

/* A test: the name of its file without .c, and its main, whose result is the exit status. */
typedef struct QsfUnitTest {
    const char *name;
    int (*run)(void);
    struct QsfUnitTest *next; /* set by qsf_unit_test_add */
} QsfUnitTest;

/* Adds a test, which the caller keeps, to the list. For constructors: one thread, nothing is allocated. */
void qsf_unit_test_add(QsfUnitTest *unit);

#ifdef QSF_UNIT /* the name, from the Makefile; units.c is compiled without */
#define QSF_UNIT_QUOTE(name) #name
#define QSF_UNIT_TEXT(name)  QSF_UNIT_QUOTE(name)

#define main unit_main
static int unit_main(void);

__attribute__((constructor)) static void unit_join(void) {
    static QsfUnitTest unit = { QSF_UNIT_TEXT(QSF_UNIT), unit_main, 0 };
    qsf_unit_test_add(&unit);
}
#endif

#endif
