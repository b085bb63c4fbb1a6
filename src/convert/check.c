/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the other programs would refuse to open is neither converted nor called whole. */
#include "src/convert/convert.h"
#include "src/engine/check.h"

enum { ARCH_NAME_MAX = 64 };

static void warn(const char *message) { fprintf(stderr, "qsf-convert: warning: %s\n", message); }

/* Architectures are carried over before they can be run. */
static void warn_foreign(const char *path, const char *foreign) {
    QsfErr text = {0}; /* makes the name fit to be shown */
    if (*foreign == '\0') return;
    qsf_err_set(&text, QSF_E_MODEL, "%s: this version cannot run the architecture '%s'; its tensors were not checked",
                path, foreign);
    warn(text.msg);
}

int convert_check_input(const ConvertOptions *o, QsfSource *s) {
    QsfLedger ledger;
    QsfErr err = {0};
    char foreign[ARCH_NAME_MAX];
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_check_source(s, true, foreign, sizeof foreign, &ledger, &err);
    qsf_ledger_destroy(&ledger);
    warn_foreign(o->input, foreign);
    if (rc != QSF_E_MODEL) return rc ? convert_fail(&err) : QSF_EXIT_OK;
    if (!o->force) {
        qsf_cli_error(&convert_cli, "%s; --force converts it anyway", err.msg);
        return rc;
    }
    warn(err.msg);
    return QSF_EXIT_OK;
}

int convert_check_file(const char *path, QsfLedger *ledger, QsfErr *err) {
    QsfSource *s;
    char foreign[ARCH_NAME_MAX];
    int rc = qsf_source_open(&s, path, ledger, err);
    if (rc) return rc;
    rc = qsf_check_source(s, false, foreign, sizeof foreign, ledger, err);
    qsf_source_close(s);
    warn_foreign(path, foreign);
    return rc;
}

int convert_check_meta(void *arg, const QsfSource *meta, QsfErr *err) {
    char foreign[ARCH_NAME_MAX];
    int rc = qsf_check_meta(meta, foreign, sizeof foreign, arg, err);
    warn_foreign(qsf_source_path(meta), foreign);
    return rc;
}
