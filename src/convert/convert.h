/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Types and functions of qsf-convert: its options, and one function per mode. */
#ifndef QSF_CONVERT_CONVERT_H
#define QSF_CONVERT_CONVERT_H

#include "qsf_cli.h"
#include "src/base/ledger.h"
#include "src/base/strbuf.h"
#include "src/convert/pack/calibration.h"
#include "src/convert/pack/pack.h"
#include "src/model/adapter.h"

typedef enum ConvertMode { CONVERT_FILE, CONVERT_VERIFY, CONVERT_INSPECT, CONVERT_GGUF } ConvertMode;

/* Adapters that were merged into the input; paths belong to the adapters. */
typedef struct ConvertMerged {
    struct {
        const char *path;
        float scale;
        uint32_t tensors; /* that it changes */
    } adapter[QSF_ADAPTERS_MAX];
    uint32_t n, tensors;          /* adapters; tensors that any of them changes */
    char notice[QSF_ERR_MSG_MAX]; /* a sentence about what is not in the output; "": nothing */
} ConvertMerged;

typedef struct ConvertOptions {
    ConvertMode mode;
    const char *input, *output; /* --verify and --inspect have no output */
    const char *type, *rule, *target, *layout, *experts, *by_use, *compress, *threads, *calibration, *budget,
        *i2s_flavor;
    QSFSettings lora;            /* only its lora counts */
    const ConvertMerged *merged; /* for the report; NULL: none */
    bool json, quiet, dry, force, offline;
} ConvertOptions;

extern const QSFCli convert_cli;

/* Run one mode. Each prints its own error message and returns an exit code. */
int convert_qsf(const ConvertOptions *o);
int convert_verify(const ConvertOptions *o);
int convert_inspect(const ConvertOptions *o);
int convert_gguf(const ConvertOptions *o);

/* Opens the input, calls run, and closes the input. Returns the exit code of run or of the failed open. */
int convert_with_source(const ConvertOptions *o, int (*run)(const ConvertOptions *o, QsfSource *s));
/* merge.c: puts the adapters of the options into the matrices of s, and fills *merged. *set is NULL, or the
 * caller closes it after s. Prints its own error message and returns an exit code. */
int convert_merge(const ConvertOptions *o, QsfSource *s, QsfLedger *ledger, QsfAdapterSet **set,
                  ConvertMerged *merged);
/* Appends what was merged to a report: lines, or with --json members and a comma; nothing if none. */
void convert_put_merged(QsfStrbuf *b, const ConvertOptions *o);
/* output.c: checks that the output, if there is one and it is written, does not replace a file that is read:
 * of s, of adapters (may be NULL), --calibration, --experts-by-use. Prints its own error message and returns
 * an exit code. */
int convert_check_output(const ConvertOptions *o, const QsfSource *s, const QsfAdapterSet *adapters);
/* Prints "qsf-convert: MESSAGE" and returns the exit code of err. After a signal, prints nothing and returns
 * 130 or 143. */
int convert_fail(const QsfErr *err);
/* Writes b to stdout and frees it. */
int convert_print(QsfStrbuf *b);
/* Returns the name of a quantization code ("Q4_K", "f16", ...); buf may hold it. */
const char *convert_code_name(uint8_t code, char *buf, size_t cap);

/* --- report.c: one status line on stderr, redrawn in place; nothing unless stderr is a terminal --- */
typedef struct ConvertProgress {
    bool on;
    uint64_t started, shown; /* ns */
} ConvertProgress;

/* Starts the clock. The line is shown unless o is quiet or stderr is not a terminal. */
void convert_progress_begin(ConvertProgress *p, const ConvertOptions *o);
/* Shows the fraction done (0 to 1), the estimated time left and what. Does nothing if the line was redrawn in
 * the last 200 ms. */
void convert_progress_show(ConvertProgress *p, double fraction, const char *what);
/* Removes the line. */
void convert_progress_end(const ConvertProgress *p);

/* --- inspect.c: models that qsf-run cannot open --- */
/* Checks s before its conversion. With --force, a model that cannot be opened only causes a warning. Prints
 * its own error message and returns an exit code. */
int convert_check_input(const ConvertOptions *o, QsfSource *s);

/* Appends the report of a conversion: layer scores if c is not NULL, one row per tensor, and the totals. */
void convert_put_report(QsfStrbuf *b, const QsfSource *s, const QsfPackReport *r, const QsfCalibration *c,
                        const ConvertOptions *o);

#endif
