/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/body.h"

#include <string.h>

#include "src/base/json.h"

/* The reasoning of past answers stays here: templates leave it out, and not every server knows a field for
 * it. */
static void put_messages(const QSFRequest *r, QsfStrbuf *b) {
    for (size_t i = 0; i < r->n_messages; i++) {
        const QSFMessage *m = &r->messages[i];
        qsf_strbuf_adds(b, i > 0 ? ", {\"role\": " : "{\"role\": ");
        qsf_json_put_string(b, m->role, strlen(m->role));
        qsf_strbuf_adds(b, ", \"content\": ");
        qsf_json_put_string(b, m->content ? m->content : "", m->content ? m->len : 0);
        qsf_strbuf_addc(b, '}');
    }
}

static int check_continues(const QsfKind *kind, const QSFRequest *r, QsfErr *err) {
    if (!r->continue_last) return QSF_OK;
    if (!kind->continues)
        return qsf_err_set(err, QSF_E_USAGE,
                           "this server is not known to continue an answer: /retry asks again instead");
    if (r->n_messages > 0 && r->messages[r->n_messages - 1].len == 0)
        return qsf_err_set(err, QSF_E_USAGE,
                           "a server continues the text of an answer, not its reasoning: /retry asks again");
    return QSF_OK;
}

int qsf_body_head(const char *model, QsfRemoteServer server, const QSFRequest *r, QsfStrbuf *b, QsfErr *err) {
    const QsfKind *kind = qsf_kind(server);
    const int rc = check_continues(kind, r, err);
    if (rc != QSF_OK) return rc;
    qsf_strbuf_adds(b, "{\"model\": ");
    qsf_json_put_string(b, model, strlen(model));
    qsf_strbuf_adds(b, ", \"stream\": true, \"messages\": [");
    put_messages(r, b);
    qsf_strbuf_addc(b, ']');
    if (r->continue_last) qsf_strbuf_adds(b, kind->continues);
    return qsf_strbuf_ok(b) ? QSF_OK : qsf_err_memory(err, "a request");
}
