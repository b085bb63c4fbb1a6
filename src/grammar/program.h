/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A compiled grammar: instructions over bytes, as of a machine that calls rules. Immutable once it is made:
 * any thread. */
#ifndef QSF_GRAMMAR_PROGRAM_H
#define QSF_GRAMMAR_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/grammar/build.h"
#include "src/grammar/grammar.h"

#define QSF_CODE_SIZE     400000u    /* most instructions */
#define QSF_EMIT_STEPS    4000000u   /* most steps to make them */
#define QSF_COST_MOST     (1u << 29) /* bytes: longer is as long */
#define QSF_COST_NONE     UINT32_MAX /* nothing matches */
#define QSF_COST_OF_TOKEN 4u         /* bytes that a token counts */

typedef enum QsfGrammarOp {
    QSF_OP_BYTE,   /* a byte from lo to hi, then x */
    QSF_OP_SPLIT,  /* x or y */
    QSF_OP_JUMP,   /* x */
    QSF_OP_CALL,   /* rule x, then y */
    QSF_OP_RETURN, /* the end of a rule */
    QSF_OP_TOKEN,  /* the token x of the vocabulary (other: any other), then y */
    QSF_OP_FAIL
} QsfGrammarOp;

typedef struct QsfInstr {
    uint8_t op, lo, hi;
    bool other;
    uint32_t x, y;
} QsfInstr;

struct QsfGrammar {
    QsfInstr *code;  /* (n) */
    uint32_t *cost;  /* (n) bytes of the shortest text from there to the end of the rule */
    uint8_t *tail;   /* (n) nothing follows but the end of the rule */
    uint32_t *start; /* (n_rules) */
    uint32_t *rank;  /* (n_rules) a rule that calls another one before it takes a byte has a lower rank */
    uint32_t n, cap, n_rules, cap_rules, root;
    uint32_t n_classes; /* no instruction distinguishes bytes of a class */
    uint8_t class_of[256];
    uint8_t byte_of[256]; /* (n_classes) the lowest byte of each */
    bool has_tokens;      /* QSF_OP_TOKEN is used */
};

/* emit.c: makes g->code from the rules, g zeroed. QSF_E_USAGE if it is too large. */
int qsf_grammar_emit(QsfGrammar *g, QsfGrammarBuild *b);
/* analyse.c: computes the rest. QSF_E_USAGE: left recursion, or nothing matches. */
int qsf_grammar_analyse(QsfGrammar *g, const QsfGrammarBuild *b);

#endif
