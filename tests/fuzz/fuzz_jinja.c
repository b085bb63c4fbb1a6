/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: any bytes as a chat template, rendered over a small conversation. Must neither crash, leak nor
 * hang, must keep its limits, and the runs of the output must cover it in order. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char variables[] = "{\"messages\": [{\"role\": \"system\", \"content\": \" Be \\u00e9 \\u0000 "
                                "kind. \"}, {\"role\": \"user\", \"content\": "
                                "[{\"type\": \"text\", \"text\": \"a\"}]}, {\"role\": \"assistant\", "
                                "\"content\": null, \"n\": -1.5e300, \"i\": 7}], "
                                "\"tools\": [{\"f\": {\"name\": \"x\", \"p\": {}}}], "
                                "\"add_generation_prompt\": true, \"x\": \"<|im_end|> \\n\"}";

static void set_variables(QsfJinjaVars *v) {
    const char *key;
    const QsfJson *value;
    QsfErr e = { 0 };
    QsfJMem *m = qsf_jinja_vars_mem(v);
    QsfJson *j = qsf_json_parse(variables, sizeof variables - 1, &e);
    for (const void *it = NULL; (it = qsf_json_next(j, it, &key, &value)) != NULL;)
        qsf_jinja_set(v, key, qsf_jinja_from_json(m, value));
    qsf_json_free(j);
    qsf_jinja_set(v, "s", qsf_j_str(m, "\xff\xe4\xbd invalid", 11, QSF_J_DATA));
    qsf_jinja_set(v, "bos_token", qsf_j_str(m, "<s>", 3, QSF_J_TEXT));
}

static void check_runs(const QsfJinjaOut *o, size_t limit) {
    size_t at = 0;
    if (o->text.len > limit) abort();
    for (size_t i = 0; i < o->n_runs; at = o->runs[i++].end)
        if (o->runs[i].end <= at || o->runs[i].tag >= QSF_J_MIXED) abort();
    if (at != o->text.len) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const QsfJinjaLimits limits = {
        .steps = 20000, .memory = 1 << 20, .output = 1 << 16, .depth = 200
    };
    QsfJinja *t;
    QsfErr e = { 0 };
    if (qsf_jinja_compile(&t, (const char *)data, size, &limits, &e) != QSF_OK) {
        if (e.msg[0] == '\0') abort();
        return 0;
    }
    QsfJinjaVars *v = qsf_jinja_vars_new(&limits);
    QsfJinjaOut out = { 0 };
    if (v != NULL) {
        set_variables(v);
        if (qsf_jinja_render(t, v, &out, &e) == QSF_OK) check_runs(&out, limits.output);
    }
    qsf_jinja_out_free(&out);
    qsf_jinja_vars_free(v);
    qsf_jinja_free(t);
    return 0;
}
