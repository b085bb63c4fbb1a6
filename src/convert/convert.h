/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-convert's own types: its options, and one function per mode. */
#ifndef QSF_CONVERT_CONVERT_H
#define QSF_CONVERT_CONVERT_H

#include "qsf_cli.h"
#include "src/base/strbuf.h"
#include "src/requantize/calibration.h"
#include "src/requantize/pack.h"

typedef enum ConvertMode { CONVERT_FILE, CONVERT_VERIFY, CONVERT_INSPECT } ConvertMode;

typedef struct ConvertOptions {
    ConvertMode mode;
    const char *input, *output; /* of --verify and --inspect: input alone */
    const char *type, *rule, *target, *layout, *compress, *threads, *calibration, *budget;
    bool json, quiet, dry, force;
} ConvertOptions;

extern const QSFCli convert_cli;

/* Each returns an exit code and has printed its message. */
int convert_file(const ConvertOptions *o);
int convert_verify(const ConvertOptions *o);
int convert_inspect(const ConvertOptions *o);

/* Opens the input for run, which returns an exit code, and closes it. */
int convert_with_source(const ConvertOptions *o, int (*run)(const ConvertOptions *o, QsfSource *s));
/* "qsf-convert: message"; returns the exit code of err (130 or 143 when a signal was the cause). */
int convert_fail(const QsfErr *err);
/* Writes b to stdout and frees it. */
int convert_print(QsfStrbuf *b);
/* "Q4_K", "f16", ...: what a quantization code stands for. */
const char *convert_code_name(uint8_t code, char *buf, size_t cap);

/* --- progress.c: one line on stderr that is written over, on a terminal only --- */
typedef struct ConvertProgress {
    bool on;
    uint64_t begun, shown; /* ns */
} ConvertProgress;

void convert_progress_begin(ConvertProgress *p, const ConvertOptions *o);
/* The part done, from 0 to 1, the time that is left, and what, if it is time for it. */
void convert_progress_show(ConvertProgress *p, double part, const char *what);
void convert_progress_end(const ConvertProgress *p);

/* --- check.c: a model that qsf-run would not open --- */
/* Before s is converted. With --force a model that cannot be opened is a warning. Exit code; has printed its message. */
int convert_check_input(const ConvertOptions *o, QsfSource *s);
/* The QSF file at path; codes and messages of qsf_check_source. */
int convert_check_file(const char *path, QsfLedger *ledger, QsfErr *err);
/* For qsf_verify_fd_meta; arg is the ledger. */
int convert_check_meta(void *arg, const QsfSource *meta, QsfErr *err);

/* --- calibrate.c --- */
/* --ram-budget and --threads, before anything takes time. Exit code. */
int convert_check_calibration(const ConvertOptions *o);
/* Runs the model that s is over o->calibration. Exit code; on 0 the caller frees *out. */
int convert_calibrate(const ConvertOptions *o, const QsfSource *s, int threads, QsfCalibration *out);

/* --- report.c: what became of each tensor; c: what the layers are worth, or NULL --- */
void convert_put_report(QsfStrbuf *b, const QsfSource *s, const QsfPackReport *r, const QsfCalibration *c,
                        const ConvertOptions *o);

#endif
