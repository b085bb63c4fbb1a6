/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Included before the first line of every unit test and of every tool of test scripts, by the compiler
 * (src_flags in the Makefile). Several are linked into one program (mk/units.mk), because linking costs more
 * than compiling. So each main is a function of its file, which joins a list before the main of units.c
 * runs. */
#ifndef QSF_TESTS_UNITS_H
#define QSF_TESTS_UNITS_H

/* A test or a tool: the name of its file without .c, and its main, whose result is the exit status. */
typedef struct QsfMain {
    const char *name;
    int (*run)(int argc, char **argv);
    struct QsfMain *next; /* set by qsf_main_add */
} QsfMain;

/* Adds a test or a tool, which the caller keeps, to the list. For constructors: one thread, nothing is
 * allocated. */
void qsf_main_add(QsfMain *unit);

#define QSF_UNIT_QUOTE(name) #name
#define QSF_UNIT_TEXT(name)  QSF_UNIT_QUOTE(name)

#ifdef QSF_UNIT /* the name, from the Makefile; units.c is compiled without */
#define main unit_main
static int unit_main(void);

static int unit_run(int argc, char **argv) {
    (void)argc;
    (void)argv;
    return unit_main();
}

__attribute__((constructor)) static void unit_join(void) {
    static QsfMain unit = { QSF_UNIT_TEXT(QSF_UNIT), unit_run, 0 };
    qsf_main_add(&unit);
}
#endif

#ifdef QSF_TOOL /* the same for a tool, whose main has arguments */
#define main tool_main
static int tool_main(int argc, char **argv);

__attribute__((constructor)) static void tool_join(void) {
    static QsfMain tool = { QSF_UNIT_TEXT(QSF_TOOL), tool_main, 0 };
    qsf_main_add(&tool);
}
#endif

#endif
