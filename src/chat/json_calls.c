/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tools and tool calls that a client gives as JSON, in the form of OpenAI's interface, as values of a
 * template (huggingface/transformers, docs/source/en/chat_extras.md). */
#include <string.h>

#include "src/chat/think_impl.h"

QsfJVal qsf_chat_tools_value(QsfJMem *m, const QsfMsg *msgs, size_t n) {
    QsfErr e = { 0 };
    QsfJson *j = n > 0 && msgs[0].tools_len > 0 ? qsf_json_parse(msgs[0].tools, msgs[0].tools_len, &e) : NULL;
    const QsfJVal v = j != NULL ? qsf_jinja_from_json(m, j) : qsf_j_none();
    qsf_json_free(j);
    return v;
}

static QsfJVal text_value(QsfJMem *m, const char *s) { return qsf_j_str(m, s, strlen(s), QSF_J_TEXT); }

/* A copy: the tree is freed before the template runs. */
static QsfJVal data_value(QsfJMem *m, const QsfJson *string) {
    return qsf_json_type(string) == QSF_JSON_STRING ? qsf_jinja_from_json(m, string)
                                                    : qsf_j_str(m, "", 0, QSF_J_DATA);
}

/* Clients give the arguments as a string with JSON; templates are written for the object in it. */
static QsfJVal arguments_value(QsfJMem *m, const QsfJson *arguments) {
    QsfErr e = { 0 };
    size_t len = 0;
    const char *text = qsf_json_string(arguments, &len);
    if (text == NULL)
        return arguments != NULL ? qsf_jinja_from_json(m, arguments) : qsf_j_dict(m, QSF_J_DICT, 0);
    QsfJson *j = qsf_json_parse(text, len, &e);
    const QsfJVal v = qsf_json_type(j) == QSF_JSON_OBJECT ? qsf_jinja_from_json(m, j)
                                                          : data_value(m, arguments);
    qsf_json_free(j);
    return v;
}

static QsfJVal call_value(QsfJMem *m, const QsfJson *call) {
    const QsfJson *function = qsf_json_get(call, "function");
    QsfJVal f = qsf_j_dict(m, QSF_J_DICT, 2), d = qsf_j_dict(m, QSF_J_DICT, 3);
    if (f.type != QSF_J_DICT || d.type != QSF_J_DICT) return qsf_j_none();
    qsf_j_dict_add(m, f.u.d, text_value(m, "name"), data_value(m, qsf_json_get(function, "name")));
    qsf_j_dict_add(m, f.u.d, text_value(m, "arguments"),
                   arguments_value(m, qsf_json_get(function, "arguments")));
    qsf_j_dict_add(m, d.u.d, text_value(m, "id"), data_value(m, qsf_json_get(call, "id")));
    qsf_j_dict_add(m, d.u.d, text_value(m, "type"), text_value(m, "function"));
    qsf_j_dict_add(m, d.u.d, text_value(m, "function"), f);
    return d;
}

QsfJVal qsf_chat_calls_value(QsfJMem *m, const QsfMsg *msg) {
    QsfErr e = { 0 };
    QsfJson *j = qsf_json_parse(msg->calls, msg->calls_len, &e);
    QsfJVal list = qsf_j_list(m, QSF_J_LIST, qsf_json_size(j));
    for (size_t i = 0; i < qsf_json_size(j) && list.type == QSF_J_LIST; i++)
        qsf_j_append(m, list.u.l, call_value(m, qsf_json_at(j, i)));
    qsf_json_free(j);
    return list;
}

/* Parameters are the properties of an object. */
static bool takes_object(const QsfJson *tool) {
    const QsfJson *p = qsf_json_get(qsf_json_get(tool, "function"), "parameters");
    const QsfJson *type = qsf_json_get(p, "type");
    const char *word = qsf_json_string(type, NULL);
    if (p == NULL || qsf_json_type(p) == QSF_JSON_NULL) return true;
    if (qsf_json_type(p) != QSF_JSON_OBJECT) return false;
    return type == NULL || qsf_json_type(type) == QSF_JSON_NULL ||
           (word != NULL && strcmp(word, "object") == 0);
}

static int check_tools(const char *text, size_t len, QsfErr *err) {
    QsfErr e = { 0 };
    QsfJson *j = qsf_json_parse(text, len, &e);
    int rc = e.code == QSF_E_INTERRUPTED ? qsf_err_pass(err, &e) : QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < qsf_json_size(j); i++) {
        const QsfJson *tool = qsf_json_at(j, i);
        const char *name = qsf_json_string(qsf_json_get(qsf_json_get(tool, "function"), "name"), NULL);
        if (name == NULL || *name == '\0')
            rc = qsf_err_set(err, QSF_E_USAGE, "tools: the function.name of tool %zu is empty", i + 1);
        else if (!takes_object(tool))
            rc = qsf_err_set(err, QSF_E_USAGE,
                             "tools: the parameters of '%.64s' are not a schema of the type object", name);
    }
    qsf_json_free(j);
    return rc;
}

/* An array of objects in which each has the name of a function. */
static int check_array(const char *what, const char *text, size_t len, QsfErr *err) {
    QsfErr e = { 0 };
    QsfJson *j = qsf_json_parse(text, len, &e);
    bool ok = qsf_json_type(j) == QSF_JSON_ARRAY;
    for (size_t i = 0; ok && i < qsf_json_size(j); i++)
        ok = qsf_json_string(qsf_json_get(qsf_json_get(qsf_json_at(j, i), "function"), "name"), NULL) != NULL;
    qsf_json_free(j);
    if (ok) return QSF_OK;
    if (e.code == QSF_E_INTERRUPTED) return qsf_err_pass(err, &e);
    return qsf_err_set(err, QSF_E_USAGE, "%s: expected an array of objects with function.name%s%s", what,
                       e.msg[0] != '\0' ? ": " : "", e.msg);
}

int qsf_chat_check_tools(const QsfChatTemplate *t, const QsfMsg *msgs, size_t n, QsfErr *err) {
    const char *word = n > 0 && msgs[0].tools_len > 0 ? "tools" : NULL;
    int rc = word != NULL ? check_array(word, msgs[0].tools, msgs[0].tools_len, err) : QSF_OK;
    if (rc == QSF_OK && word != NULL) rc = check_tools(msgs[0].tools, msgs[0].tools_len, err);
    for (size_t i = 0; i < n && rc == QSF_OK; i++) {
        if (msgs[i].calls_len == 0) continue;
        rc = check_array("tool_calls", msgs[i].calls, msgs[i].calls_len, err);
        if (word == NULL) word = "tool_calls";
    }
    if (rc != QSF_OK || word == NULL) return rc;
    if (t != NULL && memmem(t->source, t->source_len, word, strlen(word)) != NULL) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE, "%s: %s does not include them", word,
                       t != NULL ? qsf_chat_label(t).text : "there is no chat template, which");
}
