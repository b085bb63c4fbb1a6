/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/body.h"

#include <string.h>

#include "src/base/json.h"

int qsf_body_check(QsfRemoteServer server, const QsfBodyLast *last, QsfErr *err) {
    const QsfKind *kind = qsf_kind(server);
    if (!kind->continues)
        return qsf_err_set(err, QSF_E_USAGE,
                           "this server is not known to continue an answer: /retry asks again instead");
    if (last->len > 0 || last->tagged || (last->closed ? kind->closes != NULL : kind->resumes)) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE,
                       "%s continues the text of an answer, not its reasoning: /retry asks again",
                       kind->name);
}

static void put_message(const char *role, const char *text, size_t len, bool first, QsfStrbuf *b) {
    qsf_strbuf_adds(b, first ? "{\"role\": " : ", {\"role\": ");
    qsf_json_put_string(b, role, strlen(role));
    qsf_strbuf_adds(b, ", \"content\": ");
    qsf_json_put_string(b, text ? text : "", text ? len : 0);
}

/* The reasoning of past answers stays here: templates leave it out, and not every server knows a field for
 * it. */
void qsf_body_begin(const char *model, const QSFRequest *r, QsfStrbuf *b) {
    const size_t n = r->n_messages - (r->continue_last && r->n_messages > 0);
    qsf_strbuf_adds(b, "{\"model\": ");
    qsf_json_put_string(b, model, strlen(model));
    qsf_strbuf_adds(b, ", \"stream\": true, \"messages\": [");
    for (size_t i = 0; i < n; i++) {
        const QSFMessage *m = &r->messages[i];
        put_message(m->role, m->content, m->len, i == 0, b);
        qsf_strbuf_addc(b, '}');
    }
}

static void put_thought(const QsfBodyLast *last, const char *names, QsfStrbuf *b) {
    for (size_t n; names && last->thought_len > 0 && *names; names += n + (names[n] == ',')) {
        n = strcspn(names, ",");
        qsf_strbuf_addf(b, ", \"%.*s\": ", (int)n, names);
        qsf_json_put_string(b, last->thought, last->thought_len);
    }
}

/* As models write it that no template prepares. */
static void put_tagged(const QsfBodyLast *last, bool first, QsfStrbuf *b) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    qsf_strbuf_adds(&text, "<think>\n");
    qsf_strbuf_add(&text, last->thought, last->thought_len);
    if (last->closed) qsf_strbuf_adds(&text, "\n</think>\n\n");
    qsf_strbuf_add(&text, last->text, last->len);
    put_message("assistant", qsf_strbuf_str(&text), text.len, first, b);
    if (!qsf_strbuf_ok(&text)) b->failed = true;
    qsf_strbuf_free(&text);
}

void qsf_body_end(QsfRemoteServer server, const QsfBodyLast *last, QsfStrbuf *b) {
    const QsfKind *kind = qsf_kind(server);
    const bool first = b->len > 0 && b->data[b->len - 1] == '[';
    if (!last) {
        qsf_strbuf_addc(b, ']');
        return;
    }
    if (last->tagged)
        put_tagged(last, first, b);
    else
        put_message("assistant", last->text, last->len, first, b);
    if (!last->tagged) put_thought(last, kind->thought, b);
    qsf_strbuf_adds(b, "}]");
    qsf_strbuf_adds(b, last->len == 0 && last->closed && !last->tagged ? kind->closes : kind->continues);
}
