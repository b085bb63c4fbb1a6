/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --render: renders a template with the variables of each line of stdin, one output line per input line. */
#include <string.h>
#include <time.h>

#include "qsf_text.h"
#include "src/base/json.h"
#include "src/chat/chat.h"
#include "src/jinja/jinja.h"
#include "src/run/run.h"

#define OUT_FLUSH 65536

typedef struct Renderer {
    QsfJinja *jinja; /* NULL: broken says why */
    QsfErr broken;
    struct tm now;
    bool has_now;
} Renderer;

/* YYYY-MM-DDTHH:MM:SS, a date that exists. */
static bool parse_now(const char *text, struct tm *now) {
    struct tm t = { 0 };
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);
    if (!end || *end || strlen(text) != strlen("2026-01-31T12:00:00")) return false;
    struct tm same = t;
    timegm(&same); /* normalizes February 31, and computes the day of the week */
    if (same.tm_mday != t.tm_mday || same.tm_sec != t.tm_sec) return false;
    *now = same;
    return true;
}

static void put_error(QsfStrbuf *out, const char *text, size_t len) {
    qsf_strbuf_adds(out, "{\"error\": ");
    qsf_json_put_string(out, text, len);
    qsf_strbuf_adds(out, "}\n");
}

static int render(const Renderer *r, const QsfJson *vars, size_t bytes, QsfJinjaOut *o, QsfErr *err) {
    QsfJinjaLimits limits = qsf_jinja_limits_for(bytes);
    QsfJinjaVars *v = qsf_jinja_vars_new(&limits);
    const char *key;
    const QsfJson *value;
    if (v == NULL) return qsf_err_memory(err, "rendered messages");
    for (const void *it = NULL; (it = qsf_json_next(vars, it, &key, &value)) != NULL;)
        qsf_jinja_set(v, key, qsf_jinja_from_json(qsf_jinja_vars_mem(v), value));
    if (r->has_now) qsf_jinja_set_now(v, &r->now);
    int rc = qsf_jinja_render(r->jinja, v, o, err);
    qsf_jinja_vars_free(v);
    return rc;
}

/* An error in a line becomes its output, so that line N of the output belongs to line N of the input. */
static void render_line(const Renderer *r, const char *line, size_t len, QsfStrbuf *out) {
    QsfErr err = r->broken;
    QsfJinjaOut o = { 0 };
    QsfJson *vars = err.code ? NULL : qsf_json_parse(line, len, &err);
    if (vars && qsf_json_type(vars) != QSF_JSON_OBJECT) qsf_err_set(&err, QSF_E_RUNTIME, "not a JSON object");
    if (!err.code && !render(r, vars, len, &o, &err)) {
        qsf_json_put_string(out, qsf_strbuf_str(&o.text), o.text.len);
        qsf_strbuf_addc(out, '\n');
    } else if (o.raised) {
        put_error(out, qsf_strbuf_str(&o.text), o.text.len);
    } else {
        put_error(out, err.msg, strlen(err.msg));
    }
    qsf_json_free(vars);
    qsf_jinja_out_free(&o);
}

static int flush(QsfStrbuf *out, size_t limit) {
    if (!qsf_strbuf_ok(out)) {
        qsf_cli_error(&run_cli, "--render: out of memory");
        return QSF_EXIT_RUNTIME;
    }
    if (out->len < limit) return QSF_EXIT_OK;
    int rc = run_write_raw(qsf_strbuf_str(out), out->len);
    qsf_strbuf_clear(out);
    return rc;
}

static int each_line(const Renderer *r, const QsfStrbuf *in) {
    QsfStrbuf out = QSF_STRBUF_INIT;
    const char *s = qsf_strbuf_str(in), *end = s + in->len;
    int rc = QSF_EXIT_OK;
    while (!rc && s < end && !atomic_load(&qsf_signal_cancel)) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        size_t len = nl ? (size_t)(nl - s) : (size_t)(end - s);
        render_line(r, s, len, &out);
        rc = flush(&out, OUT_FLUSH);
        s += len + (nl != NULL);
    }
    if (!rc) rc = flush(&out, 1);
    qsf_strbuf_free(&out);
    int sig = atomic_load(&qsf_signal_cancel);
    return !rc && sig ? 128 + sig : rc;
}

int run_render(const RunOptions *o) {
    Renderer r = { .has_now = o->now != NULL };
    QsfChatFile file;
    QsfErr err = { 0 };
    QsfStrbuf in = QSF_STRBUF_INIT;
    if (o->now && !parse_now(o->now, &r.now)) {
        qsf_cli_error(&run_cli, "--now: \"%.40s\" is not a valid time, expected one like 2026-01-31T12:00:00",
                      o->now);
        return QSF_EXIT_USAGE;
    }
    if (qsf_chat_file_read(o->render, &file, &err)) {
        qsf_err_prefix(&err, "--render");
        return run_fail(&err);
    }
    if (file.damage != NULL) qsf_cli_error(&run_cli, "--render %s: %s", o->render, file.damage);
    if (qsf_jinja_compile(&r.jinja, file.text, file.len, NULL, &r.broken))
        qsf_err_prefix(&r.broken, "%s", o->render);
    int rc = run_read_stdin(NULL, &in);
    if (!rc) rc = each_line(&r, &in);
    qsf_strbuf_free(&in);
    qsf_jinja_free(r.jinja);
    qsf_chat_file_free(&file);
    return rc;
}

/* --- --show-prompt: prints the exact prompt with special tokens marked, from metadata and vocabulary alone
 * --- */

static const char *template_name(const QsfRuntime *rt) {
    return rt->tmpl != NULL ? qsf_chat_template_name(rt->tmpl) : "none";
}

static void put_json(QsfStrbuf *out, const QsfRuntime *rt, const QsfIds *ids, const QsfStrbuf *text,
                     size_t special) {
    const char *name = template_name(rt);
    qsf_strbuf_adds(out, "{\"prompt\": ");
    qsf_json_put_string(out, qsf_strbuf_str(text), text->len);
    qsf_strbuf_adds(out, ", \"template\": ");
    qsf_json_put_string(out, name, strlen(name));
    qsf_strbuf_addf(out, ", \"tokens\": %zu, \"special\": %zu, \"ids\": [", ids->n, special);
    for (size_t i = 0; i < ids->n; i++) qsf_strbuf_addf(out, "%s%d", i > 0 ? ", " : "", ids->data[i]);
    qsf_strbuf_adds(out, "]}\n");
}

static int show(const QsfRuntime *rt, const RunOptions *o, const QsfIds *ids, QsfErr *err) {
    QsfStrbuf text = QSF_STRBUF_INIT, out = QSF_STRBUF_INIT;
    size_t special;
    int rc = qsf_chat_show(rt->tok, ids, &text, &special, err);
    if (rc != QSF_OK) {
        rc = run_fail(err);
    } else if (o->json) {
        put_json(&out, rt, ids, &text, special);
        rc = run_write_raw(qsf_strbuf_str(&out), out.len);
    } else {
        rc = run_write(qsf_strbuf_str(&text), text.len);
        if (rc == QSF_EXIT_OK) rc = run_write_end();
        if (rc == QSF_EXIT_OK) rc = run_write_raw("\n", 1);
        qsf_text_fprintf(stderr,
                         "template %s; %zu tokens, %zu of them special (between " QSF_CHAT_MARK_OPEN
                         " and " QSF_CHAT_MARK_CLOSE ")\n",
                         template_name(rt), ids->n, special);
    }
    qsf_strbuf_free(&text);
    qsf_strbuf_free(&out);
    return rc;
}

int run_show_prompt(const RunOptions *o) {
    QsfRuntime rt;
    QsfErr err = { 0 };
    QsfIds ids = { 0 };
    QsfStrbuf prompt = QSF_STRBUF_INIT;
    QsfThinkPrompt where;
    QsfRuntimeOptions ro = run_runtime_options(o);
    ro.text_only = ro.with_template = true;
    RunFiles files = { 0 };
    int rc = run_read_prompt(o, &prompt, &files);
    if (rc != QSF_EXIT_OK || (rc = run_open(&rt, o, &ro)) != QSF_EXIT_OK) {
        qsf_strbuf_free(&prompt);
        return rc;
    }
    run_files_note(&rt, o, &prompt, &files);
    rc = run_encode_prompt(&rt, o, &prompt, &ids, &where, &err) != QSF_OK ? run_fail(&err)
                                                                          : show(&rt, o, &ids, &err);
    qsf_ids_free(&ids);
    qsf_strbuf_free(&prompt);
    qsf_runtime_close(&rt);
    return rc;
}
