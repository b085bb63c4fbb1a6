/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Automata over code points without a stack, for regular expressions and what is combined with them: state 0
 * is the start; edges of a state are contiguous. Limited in size. One thread. */
#ifndef QSF_GRAMMAR_GRAPH_H
#define QSF_GRAMMAR_GRAPH_H

#include "src/base/err.h"
#include "src/grammar/charset.h"

#define QSF_GRAPH_STATES 40000u
#define QSF_GRAPH_EDGES  200000u

typedef struct QsfEdge {
    uint32_t to;
    uint32_t set, n; /* ranges[set..set+n) of the graph */
} QsfEdge;

typedef struct QsfGraph {
    uint32_t *first; /* (n + 1) first edge of each state */
    uint8_t *final;  /* (n) may the text end here? */
    QsfEdge *edges;
    QsfRange *ranges;
    uint32_t n, n_edges, n_ranges, cap, cap_edges, cap_ranges;
    bool failed; /* no memory, or too large */
} QsfGraph;

QsfGraph *qsf_graph_new(void); /* NULL without memory */
void qsf_graph_free(QsfGraph *g);
/* Adds a state; its edges are added before the next state. */
void qsf_graph_state(QsfGraph *g, bool final);
void qsf_graph_edge(QsfGraph *g, uint32_t to, const QsfRange *r, uint32_t n);
/* Any text of min to max code points (QSF_GRAPH_STATES = no limit). */
QsfGraph *qsf_graph_length(uint32_t min, uint32_t max);
/* The texts that both accept; NULL without memory or if it is too large. */
QsfGraph *qsf_graph_both(const QsfGraph *a, const QsfGraph *b);
/* Whether the text, which is valid UTF-8, is accepted. false without memory, or if the thread is to stop. */
bool qsf_graph_accepts(const QsfGraph *g, const char *text, size_t len);
/* Whether no text is accepted. */
bool qsf_graph_is_empty(const QsfGraph *g);

#endif
