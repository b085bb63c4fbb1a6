/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rejects models that the other programs cannot open, before a conversion and in --verify. */
#include "src/convert/convert.h"
#include "src/engine/model_info.h"

enum { ARCH_NAME_MAX = 64 };

static void warn(const char *message) { fprintf(stderr, "qsf-convert: warning: %s\n", message); }

/* A model of an unsupported architecture is converted all the same: a later version may be able to run it. */
static void warn_unsupported(const char *path, const char *arch) {
    QsfErr text = { 0 }; /* replaces control characters in the name */
    if (*arch == '\0') return;
    qsf_err_set(&text, QSF_E_MODEL,
                "%s: this version cannot run architecture '%s'; its tensors were not checked", path, arch);
    warn(text.msg);
}

int convert_check_input(const ConvertOptions *o, QsfSource *s) {
    QsfLedger ledger;
    QsfErr err = { 0 };
    char unsupported[ARCH_NAME_MAX];
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_check_source(s, true, unsupported, sizeof unsupported, &ledger, &err);
    qsf_ledger_destroy(&ledger);
    warn_unsupported(o->input, unsupported);
    if (rc != QSF_E_MODEL) return rc ? convert_fail(&err) : QSF_EXIT_OK;
    if (!o->force) {
        qsf_cli_error(&convert_cli, "%s; use --force to convert it anyway", err.msg);
        return rc;
    }
    warn(err.msg);
    return QSF_EXIT_OK;
}

int convert_check_file(const char *path, QsfLedger *ledger, QsfErr *err) {
    QsfSource *s;
    char unsupported[ARCH_NAME_MAX];
    int rc = qsf_source_open(&s, path, ledger, err);
    if (rc) return rc;
    rc = qsf_check_source(s, false, unsupported, sizeof unsupported, ledger, err);
    qsf_source_close(s);
    warn_unsupported(path, unsupported);
    return rc;
}

int convert_check_meta(void *arg, const QsfSource *meta, QsfErr *err) {
    char unsupported[ARCH_NAME_MAX];
    int rc = qsf_check_meta(meta, unsupported, sizeof unsupported, arg, err);
    warn_unsupported(qsf_source_path(meta), unsupported);
    return rc;
}
