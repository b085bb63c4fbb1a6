/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --top-logprobs: the tokens of the answer, and how each was chosen, for --json. */
#include <math.h>

#include "src/base/json.h"
#include "src/run/run.h"

#define PIECE_MAX 1024

static void put_token(QsfStrbuf *b, const QsfRuntime *rt, int32_t id, float p) {
    char text[PIECE_MAX];
    size_t n = qsf_tokenizer_piece(rt->tok, id, true, text, sizeof text);
    if (n > sizeof text) n = sizeof text;
    qsf_strbuf_addf(b, "\"id\": %d, \"token\": ", (int)id);
    qsf_json_put_string(b, text, n);
    qsf_strbuf_adds(b, ", \"bytes\": [");
    for (size_t i = 0; i < n; i++)
        qsf_strbuf_addf(b, "%s%u", i > 0 ? ", " : "", (unsigned)(unsigned char)text[i]);
    if (p > 0)
        qsf_strbuf_addf(b, "], \"logprob\": %.6f", log((double)p));
    else
        qsf_strbuf_adds(b, "], \"logprob\": null");
}

static void put_stage(QsfStrbuf *b, const QSFWhy *w, const QSFWhyStage *s) {
    qsf_strbuf_addf(b, "{\"stage\": \"%s\", \"kept\": %u, \"p\": [", s->name, s->kept);
    for (uint32_t i = 0; i < w->n; i++) qsf_strbuf_addf(b, "%s%.6g", i > 0 ? ", " : "", (double)s->p[i]);
    qsf_strbuf_adds(b, "]}");
}

void run_put_why(QsfStrbuf *b, const QsfRuntime *rt, const QSFWhy *w) {
    float p = 0;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->candidate[i] == w->id) p = w->p[i];
    qsf_strbuf_adds(b, "{");
    put_token(b, rt, w->id, p);
    qsf_strbuf_adds(b, ", \"top\": [");
    for (uint32_t i = 0; i < w->n; i++) {
        qsf_strbuf_adds(b, i > 0 ? ", {" : "{");
        put_token(b, rt, w->candidate[i], w->p[i]);
        qsf_strbuf_adds(b, "}");
    }
    qsf_strbuf_adds(b, "], \"stages\": [");
    for (uint32_t i = 0; i < w->n_stages; i++) {
        if (i > 0) qsf_strbuf_adds(b, ", ");
        put_stage(b, w, &w->stage[i]);
    }
    qsf_strbuf_addf(b, "], \"decided\": \"%s\"",
                    w->n_stages == 0   ? "given"
                    : w->decided >= 0  ? w->stage[w->decided].name
                    : w->random >= 0.0 ? "draw"
                                       : "temperature");
    if (w->random >= 0) qsf_strbuf_addf(b, ", \"random\": %.9f", w->random);
    qsf_strbuf_adds(b, "}");
}
