/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --match: whether texts match a grammar, one JSON string per line of stdin. Without a model. */
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/engine/grammar_text.h"
#include "src/grammar/automaton.h"
#include "src/run/run.h"

#define OUT_FLUSH 65536

typedef struct Matcher {
    QsfGrammar *grammar;
    QsfAutomaton *automaton;
    QsfStrbuf out;
    size_t line; /* number of the one that is read */
} Matcher;

static int compile(Matcher *m, const RunOptions *o) {
    const QSFParams *p = &o->settings.params;
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    QsfGrammarKind kind;
    char name[256];
    int rc = qsf_grammar_text(p, &text, &kind, &err);
    qsf_grammar_name(p, name, sizeof name);
    if (rc == QSF_OK &&
        (rc = qsf_grammar_new(&m->grammar, kind, qsf_strbuf_str(&text), text.len, &err)) == QSF_OK)
        rc = qsf_automaton_new(&m->automaton, m->grammar, QSF_AUTOMATON_BYTES, &err);
    if (rc == QSF_E_USAGE) qsf_err_prefix(&err, "%s", name);
    qsf_strbuf_free(&text);
    return rc == QSF_OK ? QSF_EXIT_OK : run_fail(&err);
}

/* Trims the automaton where a text needs many states. */
static int feed(Matcher *m, const char *text, size_t len, uint32_t *state, QsfErr *err) {
    int rc = QSF_OK;
    *state = qsf_automaton_start(m->automaton);
    for (size_t i = 0; rc == QSF_OK && *state > 0 && i < len; i++) {
        rc = qsf_automaton_step(m->automaton, *state, (unsigned char)text[i], state, err);
        if (rc == QSF_OK && *state > 0 && qsf_automaton_is_full(m->automaton))
            rc = qsf_automaton_trim(m->automaton, state, err);
    }
    return rc;
}

static int match_line(Matcher *m, const char *line, size_t len) {
    QsfErr err = { 0 };
    QsfJson *value = qsf_json_parse(line, len, &err);
    size_t n;
    uint32_t state = 0;
    const char *text = value != NULL ? qsf_json_string(value, &n) : NULL;
    if (value != NULL && text == NULL) qsf_err_set(&err, QSF_E_RUNTIME, "not a JSON string");
    if (text != NULL) (void)feed(m, text, n, &state, &err);
    qsf_json_free(value);
    if (err.code != QSF_OK) {
        qsf_err_prefix(&err, "line %zu", m->line);
        return run_fail(&err);
    }
    qsf_strbuf_addf(&m->out, "{\"match\": %s, \"prefix\": %s}\n",
                    state > 0 && qsf_automaton_ends(m->automaton, state) ? "true" : "false",
                    state > 0 ? "true" : "false");
    return QSF_EXIT_OK;
}

static int flush(Matcher *m) {
    int rc = run_write_raw(qsf_strbuf_str(&m->out), m->out.len);
    qsf_strbuf_clear(&m->out);
    return rc;
}

/* Lines end with \n only. */
static int match_lines(Matcher *m, const QsfStrbuf *in) {
    const char *at = qsf_strbuf_str(in), *const end = at + in->len;
    int rc = QSF_EXIT_OK;
    for (m->line = 1; rc == QSF_EXIT_OK && at < end; m->line++) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        const size_t len = (size_t)((nl != NULL ? nl : end) - at);
        rc = match_line(m, at, len);
        at += len + (nl != NULL);
        if (rc == QSF_EXIT_OK && m->out.len >= OUT_FLUSH) rc = flush(m);
    }
    if (!qsf_strbuf_ok(&m->out)) {
        qsf_cli_error(&run_cli, "out of memory");
        return QSF_EXIT_RUNTIME;
    }
    const int wrong = flush(m);
    return rc != QSF_EXIT_OK ? rc : wrong;
}

int run_match(const RunOptions *o) {
    Matcher m = { 0 };
    QsfStrbuf in = QSF_STRBUF_INIT;
    int rc = compile(&m, o);
    if (rc == QSF_EXIT_OK) rc = run_read_stdin(NULL, &in);
    if (rc == QSF_EXIT_OK) rc = match_lines(&m, &in);
    qsf_strbuf_free(&in);
    qsf_strbuf_free(&m.out);
    qsf_automaton_free(m.automaton);
    qsf_grammar_free(m.grammar);
    return rc;
}
