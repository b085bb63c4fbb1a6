/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages as values of a template, and one rendering of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_engine.h"
#include "src/chat/chat_impl.h"
#include "src/chat/think.h"

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

/* --- values --- */

/* Roles are part of the format (templates build <|role|> from them), so the known ones count as the
 * template's own text; all others are data. */
static QsfJTag role_tag(const char *role) {
    static const char *const known[] = { "system", "user", "assistant", "tool", "developer" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(role, known[i]) == 0) return QSF_J_TEXT;
    return QSF_J_DATA;
}

static QsfJVal text_value(QsfJMem *m, const char *s) { return qsf_j_str(m, s, strlen(s), QSF_J_TEXT); }

/* {"type": type, type: value} */
static QsfJVal typed_part(QsfJMem *m, const char *type, QsfJVal value) {
    QsfJVal d = qsf_j_dict(m, QSF_J_DICT, 2);
    if (d.type != QSF_J_DICT) return d;
    qsf_j_dict_add(m, d.u.d, text_value(m, "type"), text_value(m, type));
    qsf_j_dict_add(m, d.u.d, text_value(m, type), value);
    return d;
}

static QsfJVal list_of(QsfJMem *m, QsfJVal first) {
    QsfJVal list = qsf_j_list(m, QSF_J_LIST, 2);
    if (list.type == QSF_J_LIST) qsf_j_append(m, list.u.l, first);
    return list;
}

static unsigned role_bit(const char *role) {
    if (strcmp(role, "user") == 0) return QSF_CHAT_USER;
    if (strcmp(role, "assistant") == 0) return QSF_CHAT_ASSISTANT;
    return strcmp(role, "system") == 0 ? QSF_CHAT_SYSTEM : 0;
}

/* body: the reasoning, or missing. */
static QsfJVal content_value(QsfJMem *m, const QsfChatTemplate *t, const QsfMsg *msg, QsfJVal body) {
    const bool thought = t->thinking != QSF_CHAT_THINKING_NONE && body.type == QSF_J_STR;
    QsfJVal text = qsf_j_str(m, msg->content == NULL ? "" : msg->content, msg->len, QSF_J_DATA);
    if (!thought && (t->listed & role_bit(msg->role)) == 0) return text;
    QsfJVal part = typed_part(m, "text", text);
    if (!thought) return list_of(m, part);
    if (t->thinking == QSF_CHAT_THINKING_PARTS) body = list_of(m, typed_part(m, "text", body));
    QsfJVal list = list_of(m, typed_part(m, "thinking", body));
    if (msg->len > 0 && list.type == QSF_J_LIST) qsf_j_append(m, list.u.l, part);
    return list;
}

static void add_name(QsfJMem *m, QsfJDict *d, const char *key, const char *name) {
    if (name != NULL) qsf_j_dict_add(m, d, text_value(m, key), qsf_j_str(m, name, strlen(name), QSF_J_DATA));
}

/* field: the name by which the template reads reasoning, or NULL. */
static QsfJVal message_value(QsfJMem *m, const QsfChatRequest *q, const QsfMsg *msg, const char *field) {
    QsfJVal d = qsf_j_dict(m, QSF_J_DICT, 4), body = { 0 }, calls = { 0 };
    QsfMsg content = *msg;
    if (d.type != QSF_J_DICT) return d;
    if (msg->calls_len > 0)
        calls = qsf_chat_calls_value(m, msg);
    else if (q->calls)
        calls = qsf_chat_tool_calls(m, msg, &content.len);
    if (msg->reasoning_len > 0) {
        char *text = qsf_j_alloc(m, msg->reasoning_len);
        const size_t len = text != NULL ? qsf_reasoning_plain(msg->reasoning, msg->reasoning_len, text) : 0;
        body = qsf_j_str(m, text != NULL ? text : "", len, QSF_J_DATA);
    }
    qsf_j_dict_add(m, d.u.d, text_value(m, "role"),
                   qsf_j_str(m, msg->role, strlen(msg->role), role_tag(msg->role)));
    qsf_j_dict_add(m, d.u.d, text_value(m, "content"), content_value(m, q->t, &content, body));
    if (field != NULL && body.type == QSF_J_STR) qsf_j_dict_add(m, d.u.d, text_value(m, field), body);
    if (calls.type == QSF_J_LIST) qsf_j_dict_add(m, d.u.d, text_value(m, "tool_calls"), calls);
    add_name(m, d.u.d, "tool_call_id", msg->call_id);
    add_name(m, d.u.d, "name", msg->name);
    return d;
}

static void set_variables(const QsfChatRequest *q, QsfJinjaVars *v) {
    QsfJMem *m = qsf_jinja_vars_mem(v);
    QsfJVal list = qsf_j_list(m, QSF_J_LIST, q->n);
    const char *field = qsf_think_field(q->t->source, q->t->source_len);
    for (size_t i = 0; i < q->n && list.type == QSF_J_LIST; i++)
        qsf_j_append(m, list.u.l, message_value(m, q, &q->msgs[i], field));
    qsf_jinja_set(v, "messages", list);
    qsf_jinja_set(v, "tools", qsf_chat_tools_value(m, q->msgs, q->n));
    qsf_jinja_set(v, "documents", qsf_j_none());
    qsf_jinja_set(v, "add_generation_prompt", qsf_j_bool(q->generation));
    qsf_chat_reason_bind(q->switches, q->n_switches, q->reason, v);
    qsf_chat_vars_bind(q->t, v);
}

/* --- one rendering --- */

static size_t content_bytes(const QsfChatRequest *q) {
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++)
        n += q->msgs[i].len + q->msgs[i].reasoning_len + q->msgs[i].calls_len + q->msgs[i].tools_len;
    return n;
}

QsfChatLabel qsf_chat_label(const QsfChatTemplate *t) {
    QsfChatLabel label;
    if (strcmp(t->name, "model") == 0)
        snprintf(label.text, sizeof label.text, "the model's chat template");
    else
        snprintf(label.text, sizeof label.text, "chat template %.255s",
                 t->given != NULL ? t->given : t->name);
    return label;
}

/* Names the template, and the file that it is from. */
static void name_template(const QsfChatTemplate *t, bool raised, QsfErr *e) {
    qsf_err_prefix(e, raised ? "%s refuses these messages" : "%s", qsf_chat_label(t).text);
    if (t->model != NULL) qsf_err_prefix(e, "%s", t->model);
}

int qsf_chat_render_once(const QsfChatRequest *q, QsfRendered *out, QsfChatOutcome *oc, QsfErr *err) {
    QsfJinjaOut o = { 0 };
    QsfErr e = { 0 };
    QsfJinjaLimits limits = qsf_jinja_limits_for(content_bytes(q));
    if (q->max_steps > 0 && q->max_steps < limits.steps) limits.steps = q->max_steps;
    QsfJinjaVars *v = qsf_jinja_vars_new(&limits);
    *oc = (QsfChatOutcome){ .memory = v == NULL };
    if (v == NULL) return qsf_err_memory(err, "rendered messages");
    set_variables(q, v);
    int rc = qsf_jinja_render(q->t->jinja, v, &o, &e);
    if (rc != QSF_OK) name_template(q->t, o.raised, &e);
    oc->raised = o.raised;
    oc->steps = o.steps;
    oc->memory = qsf_jinja_vars_mem(v)->failed || e.memory;
    rc = rc == QSF_OK ? take_output(&o, out, err) : qsf_err_pass(err, &e);
    qsf_jinja_out_free(&o);
    qsf_jinja_vars_free(v);
    return rc;
}

int qsf_chat_sample(QsfChatTemplate *t, QsfChatRequest *q, QsfRendered *out, bool *ok, QsfErr *err) {
    QsfChatOutcome oc;
    QsfErr e = { 0 };
    qsf_strbuf_clear(&out->text);
    *ok = false;
    if (t->sample_steps == 0) return QSF_OK;
    q->t = t;
    q->max_steps = t->sample_steps;
    *ok = qsf_chat_render_once(q, out, &oc, &e) == QSF_OK;
    t->sample_steps -= oc.steps < t->sample_steps ? oc.steps : t->sample_steps;
    return e.memory || e.code == QSF_E_INTERRUPTED ? qsf_err_pass(err, &e) : QSF_OK;
}

/* One message, and an exchange followed by another: templates treat earlier answers differently. */
int qsf_chat_try(const QsfChatTemplate *t, bool *raised, QsfErr *err) {
    static const QsfMsg hello[] = { { .role = "user", .content = "Hello", .len = 5 },
                                    { .role = "assistant", .content = "Hi", .len = 2 },
                                    { .role = "user", .content = "Bye", .len = 3 } };
    int rc = QSF_OK;
    *raised = false;
    for (size_t n = 1; n <= 3 && rc == QSF_OK && !*raised; n += 2) {
        QsfChatRequest q = { .t = t, .msgs = hello, .n = n, .generation = true };
        QsfRendered r = { 0 };
        QsfChatOutcome oc;
        rc = qsf_chat_render_once(&q, &r, &oc, err);
        *raised = oc.raised;
        qsf_rendered_free(&r);
    }
    return rc;
}
