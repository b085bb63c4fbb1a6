/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --calibration FILE: runs the model over a text, within --ram-budget, before the conversion. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/newfile.h"
#include "src/cli/signals.h"
#include "src/convert/calibrate/calibrate.h"
#include "src/convert/convert.h"
#include "src/file/rows.h"

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

typedef struct Show {
    ConvertProgress progress;
    const char *text; /* its path */
} Show;

/* The model runs, and watches the flag; there may be a line on the terminal that must be cleared. */
static void show_calibration(void *arg, uint64_t done, uint64_t total) {
    qsf_signals_end_at_once(false);
    convert_progress_show(&((Show *)arg)->progress, (double)done / (double)total, "calibration");
}

static void show_notice(void *arg, const char *text) {
    qsf_cli_error(&convert_cli, "--calibration %s: %s", ((Show *)arg)->text, text);
}

int convert_calibrate(const ConvertOptions *o, int threads, QsfCalibration *out) {
    Show show = { .text = o->calibration };
    QsfErr err = { 0 };
    char spec[CONVERT_SPEC_BYTES];
    const char *const overrides[] = { convert_flavor_spec(o, spec, sizeof spec) ? spec : NULL, NULL };
    QsfCalibrateOptions c = { .model = o->input,
                              .text = o->calibration,
                              .overrides = overrides,
                              .cancel = &qsf_signal_cancel,
                              .progress = show_calibration,
                              .notice = show_notice,
                              .arg = &show };
    int rc = parse_settings(o, threads, &c.settings);
    if (rc) return rc;
    convert_progress_begin(&show.progress, o);
    qsf_signals_end_at_once(true); /* no file has been made */
    rc = qsf_calibrate(out, &c, &err);
    qsf_signals_end_at_once(false);
    convert_progress_end(&show.progress);
    return rc ? convert_fail(&err) : QSF_EXIT_OK;
}
