/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --show-prompt: prints the exact prompt with special tokens marked, from metadata and vocabulary alone. */
#include <string.h>

#include "src/base/json.h"
#include "src/run/run.h"

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
        fprintf(stderr,
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
    int rc = run_read_prompt(o, &prompt);
    if (rc != QSF_EXIT_OK || (rc = run_open(&rt, o, &ro)) != QSF_EXIT_OK) {
        qsf_strbuf_free(&prompt);
        return rc;
    }
    rc = run_encode_prompt(&rt, o, &prompt, &ids, &where, &err) != QSF_OK ? run_fail(&err)
                                                                          : show(&rt, o, &ids, &err);
    qsf_ids_free(&ids);
    qsf_strbuf_free(&prompt);
    qsf_runtime_close(&rt);
    return rc;
}
