/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a model as QSF: options for qsf_pack, progress on stderr, report on stdout. With --calibration FILE
 * the model runs over a text before, within --ram-budget. */
#include "src/convert/convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/cpus.h"
#include "src/base/newfile.h"
#include "src/cli/signals.h"
#include "src/convert/calibrate/calibrate.h"
#include "src/convert/calibrate/tensor_uses.h"
#include "src/engine/habits/file.h"
#include "src/engine/model_info.h"
#include "src/file/i2s.h"
#include "src/file/rows.h"

/* Formats --i2s-flavor as an override of metadata; false without it. */
enum { SPEC_BYTES = 64 };
static bool flavor_spec(const ConvertOptions *o, char *buf, size_t cap) {
    if (o->i2s_flavor != NULL) (void)snprintf(buf, cap, QSF_I2S_KEY "=str:%s", o->i2s_flavor);
    return o->i2s_flavor != NULL;
}

/* ---- --calibration ---- */

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

/* Checks --ram-budget before any slow work starts. Prints its own error message and returns an exit code. */
static int check_calibration(const ConvertOptions *o) {
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

/* Runs the input over the text in o->calibration. Prints its own error message and returns an exit code;
 * on success the caller frees *out with qsf_calibration_free. */
static int calibrate(const ConvertOptions *o, int threads, QsfCalibration *out) {
    Show show = { .text = o->calibration };
    QsfErr err = { 0 };
    char spec[SPEC_BYTES];
    const char *const overrides[] = { flavor_spec(o, spec, sizeof spec) ? spec : NULL, NULL };
    QsfCalibrateOptions c = { .model = o->input,
                              .text = o->calibration,
                              .overrides = overrides,
                              .cancel = &qsf_signal_cancel,
                              .progress = show_calibration,
                              .notice = show_notice,
                              .arg = &show };
    int rc = parse_settings(o, threads, &c.settings);
    if (rc) return rc;
    memcpy(c.settings.lora, o->lora.lora, sizeof c.settings.lora);
    convert_progress_begin(&show.progress, o);
    qsf_signals_end_at_once(true); /* no file has been made */
    rc = qsf_calibrate(out, &c, &err);
    qsf_signals_end_at_once(false);
    convert_progress_end(&show.progress);
    return rc ? convert_fail(&err) : QSF_EXIT_OK;
}

/* ---- conversion ---- */

int convert_fail(const QsfErr *err) {
    int sig = atomic_load(&qsf_signal_cancel);
    if (err->code == QSF_E_INTERRUPTED && sig) return 128 + sig;
    qsf_cli_error_text(&convert_cli, err->msg);
    return err->code;
}

int convert_print(QsfStrbuf *b) {
    int rc = qsf_strbuf_ok(b) ? QSF_EXIT_OK : QSF_EXIT_RUNTIME;
    if (rc)
        qsf_cli_error(&convert_cli, "out of memory");
    else if (fwrite(qsf_strbuf_str(b), 1, b->len, stdout) != b->len || fflush(stdout)) {
        if (errno != EPIPE) qsf_cli_error(&convert_cli, "stdout: %s", strerror(errno));
        rc = QSF_EXIT_RUNTIME;
    }
    qsf_strbuf_free(b);
    return rc;
}

/* ---- options */

static int parse_count(const char *option, const char *value, double maximum, double *out) {
    char *end;
    *out = strtod(value, &end);
    if (end != value && !*end && *out > 0 && *out <= maximum) return QSF_EXIT_OK;
    qsf_cli_error(&convert_cli, "--%s: \"%s\" is not a number above 0 and up to %.0f", option, value,
                  maximum);
    return QSF_EXIT_USAGE;
}

static int parse_compress(const char *word, uint8_t *codec) {
    *codec = QSF_COMPRESS_AUTO;
    if (word == NULL || strcmp(word, "auto") == 0) return QSF_EXIT_OK;
    for (*codec = 0; *codec < QSFF_COMPRESSIONS && strcmp(word, qsf_codec_name(*codec)); ++*codec) {
    }
    if (*codec < QSFF_COMPRESSIONS && qsf_codec_built(*codec)) return QSF_EXIT_OK;
    if (*codec < QSFF_COMPRESSIONS)
        qsf_cli_error(&convert_cli, "--compress: this build was configured without %s", word);
    else
        qsf_cli_error(&convert_cli, "--compress: \"%s\" must be one of: none, lz4, lz4hc, zstd, auto", word);
    return QSF_EXIT_USAGE;
}

static int parse_options(const ConvertOptions *o, const QsfSource *s, QsfPackOptions *p) {
    QsfErr err = { 0 };
    double n = qsf_cpu_count(), mb = 0;
    /* The float weights of a directory are too large to run, so they are quantized; the types in a file were
     * chosen when it was made, so they are kept. */
    const char *type = o->type ? o->type : o->target || qsf_source_is_directory(s) ? "mixed" : "keep";
    if (qsf_pack_type_parse(&p->type, type, &err)) return convert_fail(&err);
    if (o->rule && strcmp(o->rule, "search") && strcmp(o->rule, "minmax")) {
        qsf_cli_error(&convert_cli, "--rule: \"%s\" must be one of: search, minmax", o->rule);
        return QSF_EXIT_USAGE;
    }
    if (o->experts && strcmp(o->experts, "together") && strcmp(o->experts, "stacked")) {
        qsf_cli_error(&convert_cli, "--experts: \"%s\" must be one of: together, stacked", o->experts);
        return QSF_EXIT_USAGE;
    }
    if (o->layout && strcmp(o->layout, "x16") && strcmp(o->layout, "rows")) {
        qsf_cli_error(&convert_cli, "--layout: \"%s\" must be one of: x16, rows", o->layout);
        return QSF_EXIT_USAGE;
    }
    if (o->target && p->type.how == QSF_PACK_KEEP) {
        qsf_cli_error(&convert_cli, "--target-size cannot be combined with --quant-type keep");
        return QSF_EXIT_USAGE;
    }
    p->type.rule = o->rule && !strcmp(o->rule, "minmax") ? QSF_RULE_MINMAX : QSF_RULE_SEARCH;
    if (parse_compress(o->compress, &p->codec)) return QSF_EXIT_USAGE;
    if (o->threads && parse_count("threads", o->threads, 256, &n)) return QSF_EXIT_USAGE;
    if (n < 1) n = 1;
    if (o->target && parse_count("target-size", o->target, 1e9, &mb)) return QSF_EXIT_USAGE;
    p->by_use = o->by_use;
    p->stacked = o->experts && !strcmp(o->experts, "stacked");
    p->x16 = !o->layout || !strcmp(o->layout, "x16");
    if (check_calibration(o)) return QSF_EXIT_USAGE;
    p->threads = (int)n;
    p->target = (uint64_t)(mb * 1048576);
    return QSF_EXIT_OK;
}

static void show_item(void *arg, const QsfItem *item, uint64_t done, uint64_t total) {
    char name[QSF_ITEM_NAME];
    convert_progress_show(arg, total > 0 ? (double)done / (double)total : 1, qsf_item_name(item, name));
}

static int pack(const ConvertOptions *o, const QsfSource *s, QsfPackOptions *p) {
    ConvertProgress progress;
    QsfPackReport report = { 0 };
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    convert_progress_begin(&progress, o);
    p->progress = show_item;
    p->progress_arg = &progress;
    int rc = qsf_pack(s, o->output, p, &report, &err);
    convert_progress_end(&progress);
    if (rc)
        rc = convert_fail(&err);
    else if (!o->quiet) {
        convert_put_report(&b, s, &report, p->calibration, o);
        rc = convert_print(&b);
    }
    qsf_pack_report_free(&report);
    return rc;
}

static int read_uses(QsfSource *s, QsfUses *uses) {
    QsfLedger ledger;
    QsfErr err = { 0 };
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_uses_of_source(uses, s, &ledger, &err);
    qsf_ledger_destroy(&ledger);
    return rc ? convert_fail(&err) : QSF_EXIT_OK;
}

/* The file of what was learned of the model, for --experts-by-use learned. */
static int find_learned(const ConvertOptions *o, const QsfSource *s, char path[QSF_PATH_MAX],
                        QsfPackOptions *p) {
    QsfErr err = { 0 };
    uint64_t model = 0;
    if (o->by_use == NULL || strcmp(o->by_use, "learned") != 0) return QSF_EXIT_OK;
    if (qsf_model_identity(s, &model, &err) != QSF_OK) return convert_fail(&err);
    p->by_use = path;
    if (qsf_habits_path(path, model) && access(path, R_OK) == 0) return QSF_EXIT_OK;
    qsf_cli_error(&convert_cli,
                  "--experts-by-use learned: nothing is known yet of %s: run it first with a budget "
                  "that does not hold all experts",
                  qsf_source_path(s));
    return QSF_EXIT_USAGE;
}

static int convert(const ConvertOptions *o, QsfSource *s) {
    char learned[QSF_PATH_MAX];
    QsfPackOptions p = { .flags = QSFF_PAGES | QSFF_LINES, .dry = o->dry, .cancel = &qsf_signal_cancel };
    QsfCalibration c = { 0 };
    QsfUses uses = { 0 };
    int rc = parse_options(o, s, &p);
    if (!rc) rc = find_learned(o, s, learned, &p);
    if (!rc) rc = convert_check_input(o, s);
    if (!rc) rc = read_uses(s, &uses);
    if (uses.tensor != NULL) p.uses = &uses;
    if (!rc && o->calibration) {
        rc = calibrate(o, p.threads, &c);
        p.calibration = &c;
    }
    if (!rc) rc = pack(o, s, &p);
    qsf_calibration_free(&c);
    qsf_uses_free(&uses);
    return rc;
}

static int convert_source(const ConvertOptions *o, QsfSource *s) {
    if (qsf_source_n_tensors(s)) return convert(o, s);
    qsf_cli_error(&convert_cli, "%s: is %s and has no weights", o->input, qsf_source_format(s));
    return QSF_EXIT_MODEL;
}

int convert_qsf(const ConvertOptions *o) { return convert_with_source(o, convert_source); }

/* Applies --i2s-flavor. */
static int choose_flavor(const ConvertOptions *o, QsfSource *s, QsfErr *err) {
    char spec[SPEC_BYTES];
    return flavor_spec(o, spec, sizeof spec) ? qsf_source_override(s, spec, err) : QSF_OK;
}

int convert_with_source(const ConvertOptions *o, int (*run)(const ConvertOptions *o, QsfSource *s)) {
    QsfLedger ledger;
    QsfSource *s;
    QsfAdapterSet *adapters = NULL;
    ConvertMerged merged = { 0 };
    ConvertOptions own = *o;
    QsfErr err = { 0 };
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_source_open(&s, o->input, &ledger, &err);
    if (rc)
        rc = convert_fail(&err);
    else {
        rc = choose_flavor(o, s, &err) ? convert_fail(&err)
                                       : convert_merge(o, s, &ledger, &adapters, &merged);
        if (!rc) rc = convert_check_output(o, s, adapters);
        own.merged = &merged;
        if (!rc) rc = run(&own, s);
        qsf_source_close(s);
        qsf_adapters_close(adapters);
    }
    qsf_ledger_destroy(&ledger);
    return rc;
}
