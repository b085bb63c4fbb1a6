/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages to text with segments, with a workaround for templates that refuse a system message. */
#include <stdlib.h>
#include <string.h>

#include "qsf_engine.h"
#include "src/text/chat_impl.h"
#include "src/text/think.h"

void qsf_rendered_free(QsfRendered *r) {
    qsf_strbuf_free(&r->text);
    free(r->segs);
    *r = (QsfRendered){ 0 };
}

/* Appends a segment, or extends the last one. */
static int add_segment(QsfRendered *r, size_t len, bool trusted, QsfErr *err) {
    size_t off = r->n_segs == 0 ? 0 : r->segs[r->n_segs - 1].off + r->segs[r->n_segs - 1].len;
    if (len == 0) return QSF_OK;
    if (r->n_segs > 0 && r->segs[r->n_segs - 1].trusted == trusted) {
        r->segs[r->n_segs - 1].len += len;
        return QSF_OK;
    }
    if (r->n_segs == r->cap_segs) {
        size_t cap = r->cap_segs < 16 ? 16 : r->cap_segs * 2;
        QsfSegment *segs = realloc(r->segs, cap * sizeof *segs);
        if (segs == NULL) return qsf_err_memory(err, "rendered messages");
        r->segs = segs;
        r->cap_segs = cap;
    }
    r->segs[r->n_segs++] = (QsfSegment){ off, len, trusted };
    return QSF_OK;
}

int qsf_rendered_add(QsfRendered *r, const char *text, size_t len, bool trusted, QsfErr *err) {
    if (len > 0) qsf_strbuf_add(&r->text, text, len);
    if (!qsf_strbuf_ok(&r->text)) return qsf_err_memory(err, "rendered messages");
    return add_segment(r, len, trusted, err);
}

/* Moves the text to *out and converts runs to segments. */
static int take_output(QsfJinjaOut *o, QsfRendered *out, QsfErr *err) {
    size_t end = o->text.len, at = 0;
    int rc = QSF_OK;
    qsf_strbuf_clear(&out->text);
    out->n_segs = 0;
    qsf_strbuf_add(&out->text, qsf_strbuf_str(&o->text), end);
    if (!qsf_strbuf_ok(&out->text)) return qsf_err_memory(err, "rendered messages");
    for (size_t i = 0; i < o->n_runs && rc == QSF_OK; i++) {
        size_t stop = o->runs[i].end;
        rc = add_segment(out, stop - at, o->runs[i].tag == QSF_J_TEXT, err);
        at = stop;
    }
    return rc;
}

/* --- variables --- */

/* Roles are part of the format (templates build <|role|> from them), so the known ones count as the
 * template's own text; all others are data. */
static QsfJTag role_tag(const char *role) {
    static const char *const known[] = { "system", "user", "assistant", "tool", "developer" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(role, known[i]) == 0) return QSF_J_TEXT;
    return QSF_J_DATA;
}

static QsfJVal text_value(QsfJMem *m, const char *s) { return qsf_j_str(m, s, strlen(s), QSF_J_TEXT); }

/* field: the name by which the template reads reasoning, or NULL. */
static QsfJVal message_value(QsfJMem *m, const QsfMsg *msg, const char *field) {
    QsfJVal d = qsf_j_dict(m, QSF_J_DICT, 3);
    if (d.type != QSF_J_DICT) return d;
    const char *content = msg->content == NULL ? "" : msg->content;
    qsf_j_dict_add(m, d.u.d, text_value(m, "role"),
                   qsf_j_str(m, msg->role, strlen(msg->role), role_tag(msg->role)));
    qsf_j_dict_add(m, d.u.d, text_value(m, "content"), qsf_j_str(m, content, msg->len, QSF_J_DATA));
    if (field == NULL || msg->reasoning_len == 0) return d;
    size_t len;
    const char *body = qsf_reasoning_body(msg->reasoning, msg->reasoning_len, &len);
    qsf_j_dict_add(m, d.u.d, text_value(m, field), qsf_j_str(m, body, len, QSF_J_DATA));
    return d;
}

typedef struct Request {
    const QsfChatTemplate *t;
    const QsfMsg *msgs; /* (n) */
    size_t n;
    bool generation; /* add_generation_prompt */
    bool open_end;   /* continue the last message */
    QsfReason reason;
} Request;

static void set_variables(const Request *q, QsfJinjaVars *v) {
    QsfJMem *m = qsf_jinja_vars_mem(v);
    QsfJVal list = qsf_j_list(m, QSF_J_LIST, q->n);
    const char *field = qsf_think_field(q->t->source, q->t->source_len);
    for (size_t i = 0; i < q->n && list.type == QSF_J_LIST; i++)
        qsf_j_append(m, list.u.l, message_value(m, &q->msgs[i], field));
    qsf_jinja_set(v, "messages", list);
    qsf_jinja_set(v, "tools", qsf_j_none());
    qsf_jinja_set(v, "documents", qsf_j_none());
    qsf_jinja_set(v, "add_generation_prompt", qsf_j_bool(q->generation));
    qsf_chat_reason_bind(q->reason, v);
    qsf_chat_vars_bind(q->t, v);
}

/* --- one rendering --- */

/* The result of a rendering that did not fail, and the reason why one did. */
typedef struct Outcome {
    bool raised; /* the template called raise_exception */
    bool memory; /* memory ran out, so another rendering must not be used instead */
} Outcome;

static size_t content_bytes(const Request *q) {
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++) n += q->msgs[i].len + q->msgs[i].reasoning_len;
    return n;
}

static int render_once(const Request *q, QsfRendered *out, Outcome *oc, QsfErr *err) {
    QsfJinjaOut o = { 0 };
    QsfErr e = { 0 };
    QsfJinjaLimits limits = qsf_jinja_limits_for(content_bytes(q));
    QsfJinjaVars *v = qsf_jinja_vars_new(&limits);
    *oc = (Outcome){ .memory = v == NULL };
    if (v == NULL) return qsf_err_memory(err, "rendered messages");
    set_variables(q, v);
    int rc = qsf_jinja_render(q->t->jinja, v, &o, &e);
    if (rc != QSF_OK && !o.raised) qsf_err_prefix(&e, "chat template %s", q->t->name);
    if (rc != QSF_OK && !o.raised && q->t->model != NULL) qsf_err_prefix(&e, "%s", q->t->model);
    oc->raised = o.raised;
    oc->memory = qsf_jinja_vars_mem(v)->failed || e.memory;
    rc = rc == QSF_OK ? take_output(&o, out, err) : qsf_err_pass(err, &e);
    qsf_jinja_out_free(&o);
    qsf_jinja_vars_free(v);
    return rc;
}

/* A message to be continued follows a new assistant's turn unchanged, because it was generated that way and
 * the KV cache still holds it. Templates trim past messages, add white space before them, or omit them. */
static int render_request(const Request *q, QsfRendered *out, bool *memory, QsfErr *err) {
    Request turn = *q;
    Outcome oc;
    turn.n -= q->open_end;
    turn.generation = q->generation || q->open_end;
    int rc = render_once(&turn, out, &oc, err);
    const QsfMsg *last = &q->msgs[turn.n];
    if (rc == QSF_OK && q->open_end) rc = qsf_rendered_add(out, last->content, last->len, false, err);
    *memory = oc.memory || err->memory;
    return rc;
}

/* One message, and an exchange followed by another: templates treat earlier answers differently. */
int qsf_chat_try(const QsfChatTemplate *t, bool *raised, QsfErr *err) {
    static const QsfMsg hello[] = { { .role = "user", .content = "Hello", .len = 5 },
                                    { .role = "assistant", .content = "Hi", .len = 2 },
                                    { .role = "user", .content = "Bye", .len = 3 } };
    int rc = QSF_OK;
    *raised = false;
    for (size_t n = 1; n <= 3 && rc == QSF_OK && !*raised; n += 2) {
        Request q = { .t = t, .msgs = hello, .n = n, .generation = true };
        QsfRendered r = { 0 };
        Outcome oc;
        rc = render_once(&q, &r, &oc, err);
        *raised = oc.raised;
        qsf_rendered_free(&r);
    }
    return rc;
}

/* --- templates without a system message --- */

static bool blank(const QsfMsg *m) {
    for (size_t i = 0; i < m->len; i++)
        if (strchr(" \t\r\n", m->content[i]) == NULL || m->content[i] == '\0') return false;
    return true;
}

/* Whether the text contains the first line of m. */
static bool shows(const QsfRendered *r, const QsfMsg *m) {
    size_t from = 0, to;
    while (from < m->len && strchr(" \t\r\n", m->content[from]) != NULL) from++;
    for (to = from; to < m->len && to - from < 64 && m->content[to] != '\n' && m->content[to] != '\r';) to++;
    while (to > from && m->content[to - 1] == ' ') to--;
    return to == from ||
           (r->text.len > 0 && memmem(r->text.data, r->text.len, m->content + from, to - from) != NULL);
}

/* Adds the system message before the first user message, in a copy of the messages. */
static int render_merged(const Request *q, QsfRendered *out, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfMsg *msgs = malloc(q->n * sizeof *msgs);
    size_t user = 1;
    while (user < q->n && strcmp(q->msgs[user].role, "user") != 0) user++;
    if (msgs == NULL || user == q->n) {
        if (msgs == NULL) return qsf_err_memory(err, "rendered messages");
        free(msgs);
        return qsf_err_set(err, QSF_E_RUNTIME, "no user message to prepend the system message to");
    }
    qsf_strbuf_add(&b, q->msgs[0].content, q->msgs[0].len);
    qsf_strbuf_adds(&b, "\n\n");
    qsf_strbuf_add(&b, q->msgs[user].content, q->msgs[user].len);
    memcpy(msgs, q->msgs + 1, (q->n - 1) * sizeof *msgs);
    msgs[user - 1] = (QsfMsg){ .role = "user", .content = qsf_strbuf_str(&b), .len = b.len };
    Request merged = *q;
    merged.msgs = msgs;
    merged.n--;
    bool memory;
    int rc = qsf_strbuf_ok(&b) ? render_request(&merged, out, &memory, err)
                               : qsf_err_memory(err, "rendered messages");
    qsf_strbuf_free(&b);
    free(msgs);
    return rc;
}

int qsf_chat_render(const QsfChatTemplate *t, const QsfMsg *msgs, size_t n, unsigned flags, QsfRendered *out,
                    QsfErr *err) {
    bool open_end = (flags & QSF_CHAT_CONTINUE) && n > 0 && strcmp(msgs[n - 1].role, "assistant") == 0;
    Request q = { .t = t, .msgs = msgs, .n = n, .open_end = open_end, .reason = flags / QSF_CHAT_REASON };
    q.generation = (flags & QSF_CHAT_GENERATE) && !open_end;
    QsfErr first = { 0 }, again = { 0 };
    bool memory;
    int rc = render_request(&q, out, &memory, &first);
    bool system = !memory && n > 1 && strcmp(msgs[0].role, "system") == 0 && !blank(&msgs[0]);
    if (!system || (rc == QSF_OK && shows(out, &msgs[0]))) return qsf_err_pass(err, &first);
    QsfRendered merged = { 0 };
    int rc2 = render_merged(&q, &merged, &again);
    if (rc2 != QSF_OK) {
        qsf_rendered_free(&merged);
        return qsf_err_pass(err, again.memory ? &again : &first);
    }
    qsf_rendered_free(out);
    *out = merged;
    return QSF_OK;
}
