/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: a grammar in one of the notations (the first byte) and, after a NUL, a text for it. Must
 * neither crash, leak nor hang, must keep its limits, and what is alive can be completed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/grammar/automaton.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY (1u << 20)

static void run(QsfAutomaton *a, const char *text, size_t len) {
    uint32_t state = qsf_automaton_start(a), after;
    QsfErr e = { 0 };
    QsfStrbuf end = QSF_STRBUF_INIT;
    for (size_t i = 0; i < len && state > 0; i++) {
        if (qsf_automaton_step(a, state, (unsigned char)text[i], &state, &e) != QSF_OK) return;
        if (state > 0 && qsf_automaton_is_full(a) && qsf_automaton_trim(a, &state, &e) != QSF_OK) return;
    }
    if (qsf_automaton_bytes(a) > MEMORY + 4096) abort();
    if (state > 0 && qsf_automaton_close(a, state, 2000, &end, &e) == QSF_OK) {
        if (qsf_automaton_feed(a, state, qsf_strbuf_str(&end), end.len, &after, &e) == QSF_OK &&
            (after == 0 || !qsf_automaton_ends(a, after)))
            abort();
    }
    qsf_strbuf_free(&end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    QsfGrammar *g;
    QsfAutomaton *a;
    QsfErr e = { 0 };
    if (size == 0) return 0;
    const char *text = (const char *)data + 1, *nul = memchr(text, 0, size - 1);
    const size_t len = nul != NULL ? (size_t)(nul - text) : size - 1;
    if (qsf_grammar_new(&g, (QsfGrammarKind)(data[0] % QSF_KIND_N), text, len, &e) != QSF_OK) {
        if (g != NULL || e.msg[0] == '\0') abort();
        return 0;
    }
    if (qsf_automaton_new(&a, g, MEMORY, &e) == QSF_OK)
        run(a, nul != NULL ? nul + 1 : "", nul != NULL ? size - len - 2 : 0);
    qsf_automaton_free(a);
    qsf_grammar_free(g);
    return 0;
}
