/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers that have to call a tool: implements tool_choice.h. */
#include "src/engine/tool_choice.h"
#include "src/base/interrupt.h"

#include <string.h>

#include "src/chat/call_form.h"
#include "src/grammar/grammar.h"

static int check(QsfGrammarKind kind, const char *text, size_t len, QsfErr *err) {
    QsfGrammar *g = NULL;
    const int rc = qsf_grammar_new(&g, kind, text, len, err);
    qsf_grammar_free(g);
    return rc;
}

/* Arguments are an object, whether the schema says so or not. */
static int check_object(const QsfCallTool *tool, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr why = { 0 };
    qsf_strbuf_adds(&b, "%schema parameters ");
    qsf_strbuf_add(&b, tool->parameters, tool->parameters_len);
    qsf_strbuf_adds(&b,
                    "\nroot ::= %json parameters {\"allOf\": [{\"type\": \"object\"}, {\"$ref\": \"#\"}]}\n");
    int rc = qsf_strbuf_ok(&b) ? check(QSF_KIND_GBNF, qsf_strbuf_str(&b), b.len, &why)
                               : qsf_err_memory(&why, "the grammar of tool calls");
    qsf_strbuf_free(&b);
    if (rc != QSF_E_USAGE) return rc == QSF_OK ? QSF_OK : qsf_err_pass(err, &why);
    qsf_err_clear(&why);
    return qsf_err_set(err, QSF_E_USAGE, "no object is valid for this schema");
}

/* Whose schema is wrong or not supported, of the tools that may be called. */
static int check_schemas(const QsfRequestCopy *r, QsfErr *err) {
    QsfCallTool tool = { .name = QSF_STRBUF_INIT };
    size_t at = 0;
    int rc = QSF_OK;
    while (rc == QSF_OK && qsf_call_tool_next(r->tools, r->tools_len, &at, &tool)) {
        const bool named = r->call != NULL && *r->call != '\0';
        if (tool.parameters == NULL || (named && strcmp(qsf_strbuf_str(&tool.name), r->call) != 0)) continue;
        rc = check(QSF_KIND_SCHEMA, tool.parameters, tool.parameters_len, err);
        if (rc == QSF_OK) rc = check_object(&tool, err);
        if (rc == QSF_E_USAGE) qsf_err_prefix(err, "the parameters of '%.64s'", qsf_strbuf_str(&tool.name));
    }
    qsf_strbuf_free(&tool.name);
    return rc;
}

static int make(QsfRuntime *rt, const QsfRequestCopy *r, QsfStrbuf *out, QsfErr *err) {
    const bool may = r->call == NULL;
    const QsfCallWish wish = {
        r->tools, r->tools_len, r->call, r->one_call, may ? r->grammar : NULL, may ? r->grammar_len : 0
    };
    QsfCallForm form;
    int rc = qsf_call_form_find(&form, rt->tmpl, err);
    if (rc == QSF_OK) rc = check_schemas(r, err);
    return rc == QSF_OK ? qsf_call_form_grammar(&form, rt->tok, &wish, out, err) : rc;
}

/* The head of a message that calls is not text of the answer. */
static bool has_text(const QsfThink *t) { return t->format == QSF_THINK_NONE || t->format == QSF_THINK_TAGS; }

bool qsf_tool_choice_counts(const QsfRequestCopy *r) {
    return r->call != NULL || (r->tools != NULL && r->grammar_kind == QSF_GRAMMAR_SCHEMA);
}

int qsf_tool_choice_grammar(QsfRuntime *rt, const QsfRequestCopy *r, QsfStrbuf *out, QsfErr *err) {
    const char *what = r->call != NULL ? "tool_choice" : "tools with response_format";
    const uint64_t bytes = ((uint64_t)r->tools_len + r->grammar_len) * QSF_REQUEST_BYTES;
    if (r->tools == NULL) return qsf_err_set(err, QSF_E_USAGE, "tool_choice: there are no tools");
    if (!has_text(&rt->think))
        return qsf_err_set(err, QSF_E_USAGE,
                           "%s: this model calls tools by messages, which a grammar cannot enforce", what);
    int rc = qsf_ledger_reserve(&rt->ledger, QSF_MEM_TRANSCRIPT, bytes, "the grammar of tool calls", err);
    if (rc != QSF_OK) return rc;
    const QsfMemoryLimit before = qsf_memory_limit_begin(rt->budget);
    rc = make(rt, r, out, err);
    rc = qsf_memory_limit_end(&before, rc, what, qsf_option_name(QSF_OPTION_BUDGET, rt->settings.commands),
                              err);
    if (rc == QSF_E_USAGE) qsf_err_prefix(err, "%s", what);
    qsf_ledger_release(&rt->ledger, QSF_MEM_TRANSCRIPT, bytes);
    return rc;
}
