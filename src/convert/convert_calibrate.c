/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --calibration FILE: the model runs over a text within --ram-budget before it is packed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/newfile.h"
#include "src/calibrate/calibrate.h"
#include "src/cli/signals.h"
#include "src/convert/convert.h"
#include "src/format/rows.h"

#define BUDGET_DEFAULT (900ull << 20)

static int settings_of(const ConvertOptions *o, int threads, QSFSettings *s) {
    char why[512];
    qsf_settings_default(s);
    s->ram_budget = BUDGET_DEFAULT;
    s->threads = threads;
    if (!o->budget || !qsf_setting_set(s, qsf_setting_find("ram-budget"), o->budget, why, sizeof why)) return QSF_EXIT_OK;
    qsf_cli_error(&convert_cli, "%s", why);
    return QSF_EXIT_USAGE;
}

int convert_check_calibration(const ConvertOptions *o) {
    QSFSettings s;
    if (!o->budget || o->calibration) return settings_of(o, 1, &s);
    qsf_cli_error(&convert_cli, "--ram-budget is for the run of --calibration, which is not given");
    return QSF_EXIT_USAGE;
}

static void show(void *arg, uint64_t done, uint64_t all) {
    convert_progress_show(arg, (double)done / (double)all, "calibration");
}

static int run(const ConvertOptions *o, const char *model, int threads, QsfCalibration *out) {
    ConvertProgress progress;
    QsfErr err = {0};
    QsfCalibrateOptions c = {.model = model, .text = o->calibration, .cancel = &qsf_signal_cancel, .progress = show, .arg = &progress};
    int rc = settings_of(o, threads, &c.settings);
    if (rc) return rc;
    convert_progress_begin(&progress, o);
    rc = qsf_calibrate(out, &c, &err);
    convert_progress_end(&progress);
    return rc ? convert_fail(&err) : QSF_EXIT_OK;
}

static void show_copy(void *arg, const QsfItem *now, uint64_t done, uint64_t all) {
    (void)now;
    convert_progress_show(arg, all > 0 ? (double)done / (double)all : 1, "a copy to run");
}

/* What cannot be run where it lies becomes a file that can, beside the output. */
static int run_copy(const ConvertOptions *o, const QsfSource *s, const char *copy, int threads, QsfCalibration *out) {
    ConvertProgress progress;
    const QsfPackOptions p = {.flags = QSFF_PAGES | QSFF_LINES, .threads = threads, .cancel = &qsf_signal_cancel,
                              .progress = show_copy, .progress_arg = &progress};
    QsfErr err = {0};
    if (!o->quiet) fprintf(stderr, "qsf-convert: for the calibration %s is written as it is to %s, which is removed afterwards\n", o->input, copy);
    convert_progress_begin(&progress, o);
    int rc = qsf_pack(s, copy, &p, NULL, &err);
    convert_progress_end(&progress);
    if (rc) return convert_fail(&err);
    int held = qsf_newfile_hold(copy);
    rc = run(o, copy, threads, out);
    unlink(copy);
    if (held >= 0) close(held);
    return rc;
}

int convert_calibrate(const ConvertOptions *o, const QsfSource *s, int threads, QsfCalibration *out) {
    if (qsf_source_check_runs(s, NULL) == QSF_OK) return run(o, o->input, threads, out);
    size_t n = strlen(o->output) + sizeof ".calibration.18446744073709551615";
    char *base = malloc(n), *copy = NULL;
    if (base != NULL) {
        snprintf(base, n, "%s.calibration.%lld", o->output, (long long)getpid());
        copy = qsf_newfile_part(base); /* a later run for the same output removes it, if this one is killed */
    }
    int rc = QSF_EXIT_RUNTIME;
    if (copy != NULL) rc = run_copy(o, s, copy, threads, out);
    else qsf_cli_error(&convert_cli, "out of memory");
    free(copy);
    free(base);
    return rc;
}
