/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What has to follow a state: the shortest text that completes it, and bytes without a choice. */
#include <string.h>

#include "src/grammar/automaton_impl.h"

/* Bytes that are tried first, so that text in a string is made of letters. */
static const char nice[] = "\"}],0123456789abcdefghijklmnopqrstuvwxyz \n";

/* Tries a byte; *best becomes the state after it if that is nearer to the end. */
static int try_byte(QsfAutomaton *a, uint32_t state, unsigned char c, uint32_t *best, unsigned char *byte,
                    QsfErr *err) {
    uint32_t next;
    int rc = qsf_automaton_step(a, state, c, &next, err);
    if (rc != QSF_OK || next == 0 || a->states[next].cost >= a->states[*best > 0 ? *best : state].cost)
        return rc;
    *best = next;
    *byte = c;
    return QSF_OK;
}

static int nearest(QsfAutomaton *a, uint32_t state, uint32_t *best, unsigned char *byte, QsfErr *err) {
    int rc = QSF_OK;
    *best = 0;
    for (size_t i = 0; rc == QSF_OK && i < sizeof nice - 1; i++)
        rc = try_byte(a, state, (unsigned char)nice[i], best, byte, err);
    for (uint32_t i = 0; rc == QSF_OK && i < a->g->n_classes; i++)
        rc = try_byte(a, state, a->g->byte_of[i], best, byte, err);
    return rc;
}

int qsf_automaton_close(QsfAutomaton *a, uint32_t state, size_t max, QsfStrbuf *out, QsfErr *err) {
    const uint32_t cost = a->states[state].cost;
    if (cost > max)
        return qsf_err_set(err, QSF_E_RUNTIME, "the shortest text that completes the grammar has %u bytes",
                           cost);
    while (!a->states[state].ends) {
        uint32_t next;
        unsigned char byte = 0;
        int rc = nearest(a, state, &next, &byte, err);
        if (rc != QSF_OK) return rc;
        if (next == 0)
            return qsf_err_set(err, QSF_E_RUNTIME,
                               "the grammar cannot be completed without a token that it "
                               "names by its number");
        qsf_strbuf_addc(out, (char)byte);
        state = next;
    }
    return qsf_strbuf_ok(out) ? QSF_OK : qsf_err_memory(err, "the end of the grammar");
}

/* The only byte that may follow; -1: there are none or several. */
static int only_byte(const QsfAutomaton *a, uint32_t state) {
    const QsfState *s = &a->states[state];
    int byte = -1;
    if (s->ends) return -1;
    for (uint32_t i = s->from; i < s->from + s->n; i++) {
        const QsfInstr *in = &a->g->code[a->places[i].at];
        if (in->op != QSF_OP_BYTE || in->lo != in->hi || (byte >= 0 && byte != in->lo)) return -1;
        byte = in->lo;
    }
    return byte;
}

int qsf_automaton_forced(QsfAutomaton *a, uint32_t *state, size_t max, QsfStrbuf *out, QsfErr *err) {
    for (size_t n = 0; n < max; n++) {
        uint32_t next;
        const int byte = only_byte(a, *state);
        if (byte < 0) break;
        int rc = qsf_automaton_step(a, *state, (unsigned char)byte, &next, err);
        if (rc != QSF_OK) return rc;
        qsf_strbuf_addc(out, (char)byte);
        *state = next;
    }
    return qsf_strbuf_ok(out) ? QSF_OK : qsf_err_memory(err, "a stretch of the grammar");
}
