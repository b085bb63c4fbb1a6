/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --calibration FILE: runs the model over a text, within --ram-budget, before the conversion. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/newfile.h"
#include "src/calibrate/calibrate.h"
#include "src/cli/signals.h"
#include "src/convert/convert.h"
#include "src/format/rows.h"

#define BUDGET_DEFAULT (900ull << 20)

static int parse_settings(const ConvertOptions *o, int threads, QSFSettings *s) {
    char why[512];
    qsf_settings_default(s);
    s->ram_budget = BUDGET_DEFAULT;
    s->threads = threads;
    if (!o->budget || !qsf_setting_set(s, qsf_setting_find("ram-budget"), o->budget, why, sizeof why))
        return QSF_EXIT_OK;
    qsf_cli_error(&convert_cli, "%s", why);
    return QSF_EXIT_USAGE;
}

int convert_check_calibration(const ConvertOptions *o) {
    QSFSettings s;
    if (!o->budget || o->calibration) return parse_settings(o, 1, &s);
    qsf_cli_error(&convert_cli, "--ram-budget requires --calibration");
    return QSF_EXIT_USAGE;
}

static void show_calibration(void *arg, uint64_t done, uint64_t total) {
    convert_progress_show(arg, (double)done / (double)total, "calibration");
}

static int run(const ConvertOptions *o, const char *model, int threads, QsfCalibration *out) {
    ConvertProgress progress;
    QsfErr err = { 0 };
    QsfCalibrateOptions c = { .model = model,
                              .text = o->calibration,
                              .cancel = &qsf_signal_cancel,
                              .progress = show_calibration,
                              .arg = &progress };
    int rc = parse_settings(o, threads, &c.settings);
    if (rc) return rc;
    convert_progress_begin(&progress, o);
    rc = qsf_calibrate(out, &c, &err);
    convert_progress_end(&progress);
    return rc ? convert_fail(&err) : QSF_EXIT_OK;
}

static void show_copy(void *arg, const QsfItem *item, uint64_t done, uint64_t total) {
    (void)item;
    convert_progress_show(arg, total > 0 ? (double)done / (double)total : 1, "copy for the calibration");
}

/* The engine cannot run every input directly (directories, for example). Writes a temporary QSF file with the
 * same weights next to the output, and runs that. */
static int run_copy(const ConvertOptions *o, const QsfSource *s, const char *copy, int threads,
                    QsfCalibration *out) {
    ConvertProgress progress;
    const QsfPackOptions p = { .flags = QSFF_PAGES | QSFF_LINES,
                               .threads = threads,
                               .cancel = &qsf_signal_cancel,
                               .progress = show_copy,
                               .progress_arg = &progress };
    QsfErr err = { 0 };
    if (!o->quiet)
        fprintf(stderr, "qsf-convert: copying %s to %s for the calibration; the copy is removed afterwards\n",
                o->input, copy);
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
        copy = qsf_newfile_part(base); /* if this process is killed, a later run removes it */
    }
    int rc = QSF_EXIT_RUNTIME;
    if (copy != NULL)
        rc = run_copy(o, s, copy, threads, out);
    else
        qsf_cli_error(&convert_cli, "out of memory");
    free(copy);
    free(base);
    return rc;
}
