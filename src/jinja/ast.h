/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The compiled form of a template: 32-byte nodes in one array that refer to each other by index (0 = none),
 * names and constants in separate tables. Chains (a + b + c, a and b, elif arms) are lists, not nested nodes,
 * so the parser limits the height of the tree and with it the stack that the evaluator needs. */
#ifndef QSF_JINJA_AST_H
#define QSF_JINJA_AST_H

#include "src/jinja/jinja.h"

typedef uint32_t QsfJRef;

/* The meaning of a, b, c, d and sym by kind; "list" is the first of a chain of nodes linked by next. */
typedef enum QsfJKind {
    QSF_J_NIL,
    /* expressions */
    QSF_JN_CONST,    /* sym: constant */
    QSF_JN_NAME,     /* sym: atom */
    QSF_JN_ITEMS,    /* op: QSF_J_LIST or QSF_J_TUPLE; a: list of expressions, n of them */
    QSF_JN_DICT,     /* a: list key, value, key, ...; n values in all */
    QSF_JN_LOGIC,    /* op: QSF_J_OP_AND or _OR; a: list */
    QSF_JN_NOT,      /* a */
    QSF_JN_SIGN,     /* a; op: QSF_J_OP_SUB or _ADD */
    QSF_JN_CHAIN,    /* a first operand; b: list of QSF_JN_OPERAND */
    QSF_JN_COMPARE,  /* as CHAIN */
    QSF_JN_OPERAND,  /* op; a */
    QSF_JN_COND,     /* a test, b then, c else or 0 */
    QSF_JN_ATTR,     /* a object, sym: atom */
    QSF_JN_ITEM,     /* a object, b key */
    QSF_JN_SLICE,    /* a object, b start, c stop, d step; each may be 0 */
    QSF_JN_CALL,     /* a callee, b: list of arguments, c: list of QSF_JN_KW; n arguments of both sorts */
    QSF_JN_FILTER,   /* a subject, sym: atom, b, c, n as CALL */
    QSF_JN_TEST,     /* as FILTER; op 1: is not */
    QSF_JN_KW,       /* sym: atom, a value */
    QSF_JN_STAR,     /* an argument *a among the positional or **a among the keyword ones */
    QSF_JN_CAPTURED, /* the text of the block that a filter or set block has just rendered */
    /* statements */
    QSF_JN_TEXT,        /* sym: constant */
    QSF_JN_PRINT,       /* a */
    QSF_JN_IF,          /* a: list of QSF_JN_ARM */
    QSF_JN_ARM,         /* a test (0 = else), b: body */
    QSF_JN_FOR,         /* a target, b iterable, c: body, d: QSF_JN_FORX; op 1: recursive */
    QSF_JN_FORX,        /* a filter test or 0, b: else body */
    QSF_JN_SET,         /* a target, b value */
    QSF_JN_SETBLOCK,    /* a target, b expression over CAPTURED, c: body */
    QSF_JN_NSREF,       /* target name.attribute: sym atom of the name, a atom of the attribute */
    QSF_JN_MACRO,       /* sym: atom, a: list of QSF_JN_PARAM (n), b: body */
    QSF_JN_PARAM,       /* sym: atom, a default or 0 */
    QSF_JN_CALLBLOCK,   /* a: QSF_JN_CALL, b: QSF_JN_MACRO of the block's body */
    QSF_JN_FILTERBLOCK, /* a expression over CAPTURED, b: body */
    QSF_JN_WITH,        /* a: list of SET, b: body */
    QSF_JN_SCOPE,       /* b: body (generation, block) */
    QSF_JN_BREAK,
    QSF_JN_CONTINUE,
    QSF_J_N_KINDS
} QsfJKind;

typedef enum QsfJOp {
    QSF_J_OP_NONE,
    QSF_J_OP_ADD,
    QSF_J_OP_SUB,
    QSF_J_OP_MUL,
    QSF_J_OP_DIV,
    QSF_J_OP_FLOORDIV,
    QSF_J_OP_MOD,
    QSF_J_OP_POW,
    QSF_J_OP_CONCAT,
    QSF_J_OP_EQ,
    QSF_J_OP_NE,
    QSF_J_OP_LT,
    QSF_J_OP_LE,
    QSF_J_OP_GT,
    QSF_J_OP_GE,
    QSF_J_OP_IN,
    QSF_J_OP_NOTIN,
    QSF_J_OP_AND,
    QSF_J_OP_OR,
    QSF_J_N_OPS
} QsfJOp;

typedef struct QsfJNode {
    uint8_t kind, op;
    uint16_t n;
    uint32_t line;
    QsfJRef next, a, b, c, d;
    uint32_t sym;
} QsfJNode;

struct QsfJRow; /* a builtin: jinja/eval.h */

/* A name used in the template, with the builtins it may refer to. */
typedef struct QsfJAtom {
    const QsfJStr *name;
    uint32_t hash;
    const struct QsfJRow *filter, *test, *global;
} QsfJAtom;

/* Atoms that every template has, at these indices. */
enum { QSF_J_ATOM_LOOP, QSF_J_ATOM_CALLER, QSF_J_ATOM_VARARGS, QSF_J_ATOM_KWARGS, QSF_J_N_FIXED_ATOMS };

struct QsfJinja {
    QsfJMem mem; /* source, strings */
    QsfJinjaLimits limits;
    char *source; /* newlines normalized, the final one dropped */
    size_t source_len;
    QsfJNode *nodes; /* (n_nodes), heap; nodes[0] is NIL */
    uint32_t n_nodes, cap_nodes;
    QsfJAtom *atoms; /* (n_atoms), heap */
    uint32_t n_atoms, cap_atoms;
    QsfJVal *consts; /* (n_consts), heap */
    uint32_t n_consts, cap_consts;
    QsfJRef body;
    bool varargs, kwargs; /* a macro uses its extra arguments */
};

#endif
