/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A remote engine: the request for an answer, and what has to be asked before it. */
#include <stdlib.h>
#include <string.h>

#include "qsf_request.h"
#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/remote/remote_impl.h"

#define TOLD (QSF_ON(LLAMA) | QSF_ON(QSF)) /* that their reasoning ends */

/* ---- a copy of the request */

void qsf_remote_asked_free(QSFRemote *r) {
    QsfRemoteAsked *q = &r->asked;
    qsf_strbuf_free(&q->head);
    qsf_strbuf_free(&q->text);
    qsf_strbuf_free(&q->thought);
    qsf_strbuf_free(&q->grammar);
    for (size_t i = 0; i < q->n_stop; i++) free(q->stop[i]);
    free(q->stop);
    *q = (QsfRemoteAsked){ 0 };
}

static bool ends_with(const char *text, size_t len, const char *end) {
    const size_t n = strlen(end);
    while (len > 0 && (unsigned char)text[len - 1] <= ' ') len--;
    return len >= n && memcmp(text + len - n, end, n) == 0;
}

/* The answer that is continued, and its reasoning as servers know it. */
static bool copy_last(QsfRemoteAsked *to, const QSFMessage *m) {
    char *plain = malloc(m->reasoning_len + 1);
    if (!plain) return false;
    qsf_strbuf_add(&to->thought, plain, qsf_reasoning_plain(m->reasoning, m->reasoning_len, plain));
    free(plain);
    qsf_strbuf_add(&to->text, m->content ? m->content : "", m->content ? m->len : 0);
    to->closed = m->len > 0 || ends_with(m->reasoning, m->reasoning_len, "</think>");
    return qsf_strbuf_ok(&to->thought) && qsf_strbuf_ok(&to->text);
}

static QsfBodyLast last_of(const QsfRemoteAsked *q) {
    return (QsfBodyLast){ .text = qsf_strbuf_str(&q->text),
                          .len = q->text.len,
                          .thought = qsf_strbuf_str(&q->thought),
                          .thought_len = q->thought.len,
                          .closed = q->closed,
                          .tagged = q->tagged };
}

static bool copy_request(QSFRemote *r, const QSFRequest *q, QsfErr *err) {
    QsfRemoteAsked *to = &r->asked;
    qsf_remote_asked_free(r);
    to->max_tokens = q->max_tokens;
    to->go_on = q->continue_last && q->n_messages > 0;
    to->grammar_kind = q->grammar_kind;
    if (q->grammar_kind) qsf_strbuf_add(&to->grammar, q->grammar, q->grammar_len);
    to->stop = q->n_stop > 0 ? calloc(q->n_stop, sizeof *to->stop) : NULL;
    bool ok = q->n_stop == 0 || to->stop;
    for (; ok && to->n_stop < q->n_stop; to->n_stop++)
        ok = (to->stop[to->n_stop] = strdup(q->stop[to->n_stop])) != NULL;
    if (ok && to->go_on) ok = copy_last(to, &q->messages[q->n_messages - 1]);
    qsf_body_begin(r->now.model, q, &to->head);
    if (!ok || !qsf_strbuf_ok(&to->head) || !qsf_strbuf_ok(&to->grammar))
        return qsf_err_memory(err, "a request"), false;
    const QsfBodyLast last = last_of(to);
    r->answer.thinking = to->go_on && last.thought_len > 0 && !last.closed; /* its tag is there already */
    return !to->go_on || qsf_body_check(r->now.server, &last, err) == QSF_OK;
}

uint64_t qsf_remote_submit(QSFRemote *r, const QSFRequest *q) {
    QsfErr err = { 0 };
    if (r->job != QSF_JOB_NONE || !r->now.model || q->score || q->branch > 0) return 0;
    qsf_remote_answer_begin(r);
    r->request++;
    r->wait_said = 0;
    r->job_begun = r->answer.asked = qsf_now_ns();
    if (!copy_request(r, q, &err) || !qsf_remote_ask(r, &err)) qsf_remote_fail(r, &err);
    return r->request;
}

/* ---- sending it */

static bool send(QSFRemote *r, QsfErr *err) {
    QsfRemoteAsked *q = &r->asked;
    QsfStrbuf body = QSF_STRBUF_INIT;
    const QsfBodyLast last = last_of(q);
    const QsfFieldInput in = { .settings = &r->settings,
                               .server = r->now.server,
                               .refused = r->now.refused,
                               .stop = (const char *const *)q->stop,
                               .n_stop = q->n_stop,
                               .tokens = &r->now.tokens,
                               .max_tokens = q->max_tokens,
                               .spent = r->answer.spent,
                               .grammar_kind = q->grammar_kind,
                               .grammar = qsf_strbuf_str(&q->grammar),
                               .grammar_len = q->grammar.len };
    qsf_strbuf_add(&body, qsf_strbuf_str(&q->head), q->head.len);
    qsf_body_end(r->now.server, q->go_on ? &last : NULL, &body);
    bool ok = qsf_fields_put(&in, &body, &q->sent, err) == QSF_OK;
    qsf_strbuf_addc(&body, '}');
    if (ok && !qsf_strbuf_ok(&body)) ok = qsf_err_memory(err, "a request") == QSF_OK;
    ok = ok &&
         qsf_remote_start(r, QSF_JOB_ANSWER, &r->now.url, r->now.url.base, "/chat/completions", &body, err);
    qsf_strbuf_free(&body);
    return ok;
}

/* ---- tokens of biases */

static bool look_up(QSFRemote *r, QsfErr *err) {
    const QSFSettingItem *item = &r->asked.lookup;
    QsfStrbuf body = QSF_STRBUF_INIT;
    qsf_token_question(r->now.server, r->now.model, item->text, item->len, &body);
    const bool ok = qsf_strbuf_ok(&body) && qsf_remote_start(r, QSF_JOB_TOKENS, &r->now.url, r->now.url.root,
                                                             "/tokenize", &body, err);
    qsf_strbuf_free(&body);
    return ok;
}

static void note_lost(QSFRemote *r) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    r->asked.looked_up = false;
    qsf_biases_lost(&r->settings, r->now.server, &r->now.tokens, &b);
    if (b.len > 0) qsf_remote_note(r, "%s", qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
}

bool qsf_remote_ask(QSFRemote *r, QsfErr *err) {
    if (qsf_biases_missing(&r->settings, r->now.server, &r->now.tokens, &r->asked.lookup))
        return look_up(r, err);
    if (r->asked.looked_up) note_lost(r);
    return send(r, err);
}

void qsf_remote_tokens_end(QSFRemote *r) {
    QsfErr err = { 0 };
    const QSFSettingItem *item = &r->asked.lookup;
    const char *reply = r->headed && r->head.status == 200 ? qsf_strbuf_str(&r->body) : NULL;
    r->asked.looked_up = true;
    const int rc = qsf_token_texts_add(&r->now.tokens, item->text, item->len, reply, r->body.len, &err);
    if (rc != QSF_OK || !qsf_remote_ask(r, &err)) qsf_remote_fail(r, &err);
}

/* ---- the answer now */

/* llama.cpp and qsf-serve end the reasoning of an answer that they write; earlier versions do not know the
 * path. */
static bool tell(QSFRemote *r) {
    static const char path[] = "/chat/completions/control";
    const char *id = r->answer.delta.id;
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (!(TOLD & (1u << r->now.server)) || !*id || r->answer.told) return false;
    qsf_strbuf_adds(&b, "{\"action\": \"reasoning_end\", \"id\": ");
    qsf_json_put_string(&b, id, strlen(id));
    qsf_strbuf_adds(&b, ", \"model\": ");
    qsf_json_put_string(&b, r->now.model, strlen(r->now.model));
    qsf_strbuf_addc(&b, '}');
    r->control_ok = false;
    r->answer.told = qsf_strbuf_ok(&b) && qsf_remote_start_beside(r, &r->control, path, &b);
    qsf_strbuf_free(&b);
    return r->answer.told;
}

static bool says_success(const char *json, size_t len) {
    QsfErr ignored = { 0 };
    QsfJson *root = qsf_json_parse(json, len, &ignored);
    const bool ok = qsf_json_bool(qsf_json_get(root, "success"), false);
    qsf_json_free(root);
    return ok;
}

static void send_closed(QSFRemote *r) {
    QsfErr err = { 0 };
    QsfRemoteAsked *q = &r->asked;
    q->tagged = r->answer.split.state == QSF_INLINE_INSIDE;
    q->go_on = q->closed = true;
    q->tries = 0;
    qsf_remote_answer_split(r);
    if (!send(r, &err)) qsf_remote_fail(r, &err);
}

bool qsf_remote_close(QSFRemote *r) {
    r->answer.close = false;
    if (tell(r)) return false;
    send_closed(r);
    return true;
}

/* The reply is one small frame. Where it is anything but a success, there is another way. */
void qsf_remote_close_tick(QSFRemote *r) {
    QsfPipeFrame f;
    QsfChildGot got = QSF_CHILD_NOTHING;
    if (r->control.pid == 0) return;
    while ((got = qsf_child_next(&r->control, &f)) == QSF_CHILD_FRAME && f.kind != QSF_REPLY_END)
        if (f.kind == QSF_REPLY_DATA) r->control_ok = r->control_ok || says_success(f.body, f.len);
    if (got == QSF_CHILD_NOTHING) return;
    qsf_child_stop(&r->control);
    r->answer.told_at = r->answer.reasoning_pieces;
    r->answer.told_ns = qsf_now_ns();
    if (!r->control_ok && r->job == QSF_JOB_ANSWER && r->answer.thinking) send_closed(r);
}

static bool can_close(const QSFRemote *r) {
    const QsfKind *kind = qsf_kind(r->now.server);
    return kind->closes || (kind->continues && r->answer.split.state == QSF_INLINE_INSIDE);
}

bool qsf_remote_closes(const QSFRemote *r) { return r->now.model && can_close(r); }

void qsf_remote_answer_now(QSFRemote *r) {
    if ((r->job != QSF_JOB_ANSWER && r->job != QSF_JOB_TOKENS) || !can_close(r)) return;
    if (r->job == QSF_JOB_ANSWER && r->answer.thinking)
        (void)qsf_remote_close(r);
    else
        r->answer.close = true;
}

bool qsf_remote_resumes(const QSFRemote *r) { return r->now.model && qsf_kind(r->now.server)->resumes; }
