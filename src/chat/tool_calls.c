/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tool calls of earlier answers as values of a template that renders them (Solar Open, Kimi K3). The text of
 * an answer has them by name and arguments (think_parts.c). */
#include <stdio.h>
#include <string.h>

#include "src/chat/think_impl.h"

static QsfJVal text_value(QsfJMem *m, const char *s) { return qsf_j_str(m, s, strlen(s), QSF_J_TEXT); }

/* The arguments, an object; missing if they are not one. */
static QsfJVal arguments_of(QsfJMem *m, const QsfCallPart *p) {
    QsfErr e = { 0 };
    QsfJVal v = { 0 };
    QsfJson *j = qsf_json_parse(p->text, p->len, &e);
    if (j != NULL && qsf_json_type(j) == QSF_JSON_OBJECT) v = qsf_jinja_from_json(m, j);
    qsf_json_free(j);
    return v;
}

/* The text of the answer does not have the id that the model chose. */
static QsfJVal id_of(QsfJMem *m, size_t i) {
    char *id = qsf_j_alloc(m, 32);
    if (id == NULL) return qsf_j_none();
    return qsf_j_str(m, id, (size_t)snprintf(id, 32, "call_%zu", i + 1), QSF_J_DATA);
}

/* {"id": ..., "type": "function", "function": {"name": ..., "arguments": {...}}} */
static QsfJVal call_value(QsfJMem *m, const QsfCallPart *p, QsfJVal arguments, size_t i) {
    QsfJVal f = qsf_j_dict(m, QSF_J_DICT, 2), call = qsf_j_dict(m, QSF_J_DICT, 3);
    if (f.type != QSF_J_DICT || call.type != QSF_J_DICT) return qsf_j_none();
    qsf_j_dict_add(m, f.u.d, text_value(m, "name"), qsf_j_str(m, p->name, p->name_len, QSF_J_DATA));
    qsf_j_dict_add(m, f.u.d, text_value(m, "arguments"), arguments);
    qsf_j_dict_add(m, call.u.d, text_value(m, "id"), id_of(m, i));
    qsf_j_dict_add(m, call.u.d, text_value(m, "type"), text_value(m, "function"));
    qsf_j_dict_add(m, call.u.d, text_value(m, "function"), f);
    return call;
}

QsfJVal qsf_chat_tool_calls(QsfJMem *m, const QsfMsg *msg, size_t *len) {
    const char *at = msg->content, *end = at + msg->len;
    QsfJVal list = { 0 };
    QsfCallPart p;
    size_t before = 0;
    *len = msg->len;
    if (msg->len == 0 || strcmp(msg->role, "assistant") != 0) return list;
    while ((at = qsf_call_next(at, end, &p)) != NULL) {
        if (p.name == NULL) {
            before = p.len; /* only the first part can be text */
            continue;
        }
        const QsfJVal arguments = arguments_of(m, &p);
        if (list.type != QSF_J_LIST) list = qsf_j_list(m, QSF_J_LIST, 2);
        if (arguments.type != QSF_J_DICT || list.type != QSF_J_LIST) return (QsfJVal){ 0 };
        qsf_j_append(m, list.u.l, call_value(m, &p, arguments, list.u.l->n));
    }
    if (list.type == QSF_J_LIST) *len = before;
    return list;
}

static bool calls(const QsfMsg *msg) {
    const char *at = msg->content, *end = at + msg->len;
    QsfCallPart p;
    if (msg->len == 0 || strcmp(msg->role, "assistant") != 0) return false;
    while ((at = qsf_call_next(at, end, &p)) != NULL)
        if (p.name != NULL) return true;
    return false;
}

static bool has(const QsfRendered *r, const char *text) {
    return r->text.len > 0 && memmem(r->text.data, r->text.len, text, strlen(text)) != NULL;
}

/* No template contains these words. */
#define NAME  "Zqcallk"
#define KEY   "zqkey"
#define VALUE "Zqvaluek"

bool qsf_chat_takes_calls(const QsfChatRequest *q) {
    static const char call[] = "[tool call to=" NAME "] {\"" KEY "\": \"" VALUE "\"}";
    static const QsfMsg talk[] = { { .role = "user", .content = "Hello", .len = 5 },
                                   { .role = "assistant", .content = call, .len = sizeof call - 1 },
                                   { .role = "user", .content = "Bye", .len = 3 } };
    QsfChatRequest sample = *q;
    QsfRendered r = { 0 };
    QsfChatOutcome oc;
    QsfErr e = { 0 };
    size_t i = 0;
    while (i < q->n && !calls(&q->msgs[i])) i++;
    if (i == q->n || memmem(q->t->source, q->t->source_len, "tool_calls", 10) == NULL) return false;
    sample.msgs = talk;
    sample.n = sizeof talk / sizeof *talk;
    sample.calls = true;
    const bool takes = qsf_chat_render_once(&sample, &r, &oc, &e) == QSF_OK && has(&r, NAME) &&
                       has(&r, KEY) && has(&r, VALUE);
    qsf_rendered_free(&r);
    return takes;
}
