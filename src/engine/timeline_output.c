/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of the tokens that are generated: through the detokenizer, the split of reasoning and answer, and
 * the stop strings. */
#include <string.h>

#include "src/engine/timeline_impl.h"

void qsf_run_end(QsfRun *r, QSFStop stop) {
    if (r->done) return;
    r->done = true;
    r->out->stop = stop;
}

/* Only the first text of a token carries its id. */
void qsf_run_emit(QsfRun *r, bool reasoning, const char *text, size_t len) {
    int (*to)(void *, int32_t, const char *, size_t) = reasoning ? r->g->reasoning : r->g->text;
    int32_t id = r->id;
    r->id = -1;
    *(reasoning ? &r->out->reasoning_bytes : &r->out->text_bytes) += (uint32_t)len;
    if (to == NULL || r->refused || (len == 0 && id < 0) || to(r->g->arg, id, text, len) == 0) return;
    r->refused = true;
    qsf_run_end(r, QSF_STOP_INTERRUPTED);
}

/* Receives text that is known to be reasoning or answer. */
static void on_part(void *arg, bool reasoning, const char *text, size_t len) {
    QsfRun *r = arg;
    if (r->stopper.hit) return;
    /* White space after a block is passed to the reader as its end. */
    if (reasoning && r->hides && qsf_think_blanks(text, len) < len) return;
    if (!reasoning) text = qsf_stopper_feed(&r->stopper, text, len, &len);
    if (r->stopper.hit) qsf_run_end(r, QSF_STOP_STRING);
    if (len > 0) qsf_run_emit(r, reasoning, text, len);
}

/* Split and grammar agree on what is answer: what the grammar took is, whatever tag it may look like. */
static size_t begin_answer(QsfRun *r, size_t len) {
    const size_t spaces = r->hold.spaced && len > 0 && r->t->piece[0] == ' ';
    if (!r->hold.took) return 0;
    qsf_think_feed(&r->split, r->t->piece, spaces, on_part, r);
    qsf_think_answer(&r->split);
    r->hold.took = false;
    return spaces;
}

static void feed_text(QsfRun *r, size_t len) {
    const size_t from = r->splits ? begin_answer(r, len) : 0;
    if (r->splits)
        qsf_think_feed(&r->split, r->t->piece + from, len - from, on_part, r);
    else
        on_part(r, false, r->t->piece, len);
}

bool qsf_run_reasons(const QsfRun *r) { return r->splits && qsf_think_inside(&r->split); }

/* A control or user-defined token may be a part of the format, whether it is shown or not. */
static void feed_token(QsfRun *r, int32_t id, QsfTokenType type) {
    QsfTimeline *t = r->t;
    const bool hidden = type != QSF_TOKEN_USER;
    feed_text(r, qsf_detok_flush(&r->detok, t->piece, QSF_TIMELINE_PIECE));
    size_t n = qsf_detok_feed(&r->detok, id, t->piece, QSF_TIMELINE_PIECE);
    if (hidden) n = qsf_tokenizer_piece(t->rt->tok, id, true, t->piece, QSF_TIMELINE_PIECE);
    if (n > QSF_TIMELINE_PIECE) n = QSF_TIMELINE_PIECE;
    qsf_think_feed_token(&r->split, t->piece, n, hidden, on_part, r);
    if (r->split.ended) qsf_run_end(r, QSF_STOP_EOS);
}

/* Emits the decided text of a token. */
void qsf_run_deliver(QsfRun *r, int32_t id) {
    QsfTimeline *t = r->t;
    const bool before = qsf_run_reasons(r);
    const QsfTokenType type = qsf_tokenizer_type(t->rt->tok, id);
    r->id = id;
    if (r->splits && (type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_USER))
        feed_token(r, id, type);
    else
        feed_text(r, qsf_detok_feed(&r->detok, id, t->piece, QSF_TIMELINE_PIECE));
    const bool reasoned = before || qsf_run_reasons(r);
    r->out->reasoning_tokens += reasoned;
    r->out->hidden_tokens += reasoned && r->hides;
    if (r->limit.cut && !qsf_run_reasons(r)) r->hides = true;
    if (r->id >= 0) qsf_run_emit(r, false, "", 0);
}

/* Emits what the detokenizer, tags and stop strings still hold back; after a stop string it is discarded. */
void qsf_run_flush(QsfRun *r) {
    size_t n;
    r->id = -1;
    r->out->thinking = qsf_run_reasons(r);
    if (r->stopper.hit) return;
    feed_text(r, qsf_detok_flush(&r->detok, r->t->piece, QSF_TIMELINE_PIECE));
    if (r->splits) qsf_think_flush(&r->split, on_part, r);
    if (r->stopper.hit) {
        r->out->stop = QSF_STOP_STRING;
        return;
    }
    const char *text = qsf_stopper_flush(&r->stopper, &n);
    if (n > 0) qsf_run_emit(r, false, text, n);
}
