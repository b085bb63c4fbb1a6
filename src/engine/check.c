/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/check.h"

#include <stdio.h>
#include <string.h>

#include "src/chat/chat.h"
#include "src/file/dirhint.h"
#include "src/file/hf/pytorch.h"

int qsf_check_weights(const QsfModel *m, QsfErr *err) {
    if (!m->vocab_only) return QSF_OK;
    char hint[QSF_DIR_HINT] = "";
    const char *path = qsf_source_path(m->src), *slash = strrchr(path, '/');
    if (qsf_pytorch_in(path, slash != NULL ? (size_t)(slash - path) + 1 : 0))
        return qsf_err_set(err, QSF_E_MODEL, "%s: the weights beside this vocabulary are " QSF_PYTORCH_ADVICE,
                           path);
    if (qsf_source_from_dir(m->src)) qsf_dir_hint(path, slash != NULL ? (size_t)(slash - path) + 1 : 0, hint);
    return qsf_err_set(err, QSF_E_MODEL, "%s: contains a vocabulary but no weights: it can only tokenize%s",
                       path, hint);
}

/* Copies general.architecture to foreign when the table has no row for it. */
static int find_foreign(const QsfSource *src, char *foreign, size_t cap, QsfErr *err) {
    const char *name;
    int rc = qsf_meta_str(src, "general.architecture", &name, NULL, err);
    const bool known = rc != QSF_OK || name == NULL || qsf_family_find(name) != NULL;
    snprintf(foreign, cap, "%s", known ? "" : name);
    return rc;
}

static int check_text(const QsfSource *src, QsfLedger *ledger, QsfErr *err) {
    QsfTokenizer *tok = NULL;
    QsfChatTemplate *t = NULL;
    int32_t turn_end;
    int rc = qsf_tokenizer_open(&tok, src, ledger, err);
    if (rc == QSF_OK) rc = qsf_chat_template_open(&t, src, tok, NULL, NULL, 0, err);
    if (rc == QSF_OK) rc = qsf_chat_turn_end(t, tok, &turn_end, err);
    qsf_chat_template_close(t);
    qsf_tokenizer_close(tok);
    return rc;
}

int qsf_check_source(QsfSource *src, bool to_convert, char *foreign, size_t cap, QsfLedger *ledger,
                     QsfErr *err) {
    QsfModel m;
    int rc = find_foreign(src, foreign, cap, err);
    if (rc == QSF_OK && *foreign == '\0') {
        rc = qsf_model_of_source(&m, src, to_convert, ledger, err);
        if (rc != QSF_OK) return rc;
        rc = qsf_check_weights(&m, err);
        qsf_model_close(&m);
    }
    return rc == QSF_OK ? check_text(src, ledger, err) : rc;
}

int qsf_check_meta(const QsfSource *meta, char *foreign, size_t cap, QsfLedger *ledger, QsfErr *err) {
    QsfHparams hp;
    int rc = find_foreign(meta, foreign, cap, err);
    if (rc == QSF_OK && *foreign == '\0') rc = qsf_hparams_of_meta(&hp, meta, false, NULL, err);
    return rc == QSF_OK ? check_text(meta, ledger, err) : rc;
}
