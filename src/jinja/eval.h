/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the parts of the evaluator. Functions that return bool return false after recording an error; a
 * failed rendering stops immediately, so nothing is cleaned up on the way. */
#ifndef QSF_JINJA_EVAL_H
#define QSF_JINJA_EVAL_H

#include "src/jinja/ast.h"
#include "src/jinja/lex.h"

#define QSF_J_MAX_ARGS 32

typedef struct QsfJBinding {
    uint32_t atom;
    QsfJVal v;
} QsfJBinding;

/* Names of one block; nested blocks see them, names they set stay inside. */
typedef struct QsfJScope {
    struct QsfJScope *up;
    QsfJBinding *b; /* (n) */
    uint32_t n, cap;
    bool kept; /* a macro defined in it refers to it */
} QsfJScope;

typedef struct QsfJCtx {
    const QsfJinja *t;
    QsfJMem *mem;
    QsfJinjaOut *out; /* strings are built here too: a block marks its start and cuts its result off */
    QsfErr *err;
    QsfJinjaLimits limits;
    QsfJScope *scope;
    uint64_t steps;
    unsigned depth;
    uint32_t line;    /* of the node being evaluated, for messages */
    QsfJVal captured; /* value of QSF_JN_CAPTURED */
    struct tm now;
} QsfJCtx;

typedef struct QsfJKw {
    const QsfJStr *name;
    QsfJVal v;
} QsfJKw;

typedef struct QsfJArgs {
    QsfJVal self; /* the filtered or tested value, the object of a method */
    QsfJVal *v;   /* (n); once bound, one per parameter, QSF_J_MISSING for omitted ones */
    uint32_t n;
    QsfJKw *kw; /* (n_kw) */
    uint32_t n_kw;
    const char *who; /* name of the callee, for messages */
} QsfJArgs;

typedef bool (*QsfJBuiltin)(QsfJCtx *c, QsfJArgs *a, QsfJVal *out);

/* A builtin filter, test, method or function. */
typedef struct QsfJRow {
    const char *name;
    QsfJBuiltin fn;
    const char *params; /* names separated by spaces; "*" = accepts anything and checks it itself */
} QsfJRow;

struct QsfJFunc {
    const QsfJRow *row;
    QsfJVal self; /* object of a bound method; state of a joiner */
};

struct QsfJMacro {
    QsfJRef node;     /* QSF_JN_MACRO */
    QsfJScope *scope; /* where it was defined */
};

struct QsfJLoop {
    QsfJRef node; /* QSF_JN_FOR, for recursion */
    QsfJScope *scope;
    const QsfJVal *v; /* (n) */
    uint32_t n, i;
    uint32_t level; /* 0 outermost of a recursive loop */
    QsfJVal seen;   /* arguments of the last loop.changed() */
};

/* --- errors, limits (jinja/render.c) --- */
/* Record an error of the template, with its line, or that memory ran out, and return false. */
bool qsf_j_fail(QsfJCtx *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool qsf_j_no_memory(QsfJCtx *c);
bool qsf_j_ok(QsfJCtx *c);                    /* false with an error if memory ran out */
bool qsf_j_work(QsfJCtx *c, uint64_t amount); /* counts steps */
bool qsf_j_bytes(QsfJCtx *c, uint64_t bytes); /* counts work on text, one step per 64 bytes */
bool qsf_j_enter_level(QsfJCtx *c);           /* undo with c->depth-- */
const char *qsf_j_type_name(QsfJVal v);       /* Python's: "str", "dict", ... */

/* --- building text (jinja/text.c) --- */
/* Texts are written one into another: a mark is where one begins, qsf_j_cut takes it out again. Every byte
 * has a tag, which says where it comes from (value.h). */
size_t qsf_j_mark(const QsfJCtx *c);
bool qsf_j_put(QsfJCtx *c, const char *p, size_t len, QsfJTag tag);
bool qsf_j_puts(QsfJCtx *c, const char *s); /* tagged as text */
bool qsf_j_putf(QsfJCtx *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Append bytes [off, off + len) of s, with their tags; a code point as UTF-8. */
bool qsf_j_put_sub(QsfJCtx *c, const QsfJStr *s, size_t off, size_t len);
bool qsf_j_put_cp(QsfJCtx *c, uint32_t cp, QsfJTag tag);
/* The text written since mark, as a string. */
bool qsf_j_cut(QsfJCtx *c, size_t mark, QsfJVal *out);
bool qsf_j_put_val(QsfJCtx *c, QsfJVal v);  /* as str() */
bool qsf_j_put_repr(QsfJCtx *c, QsfJVal v); /* as repr() */
bool qsf_j_put_float(QsfJCtx *c, double f); /* as Python writes it: the shortest that reads back */
bool qsf_j_to_str(QsfJCtx *c, QsfJVal v, QsfJVal *out); /* strings are returned unchanged */
bool qsf_j_markup(QsfJCtx *c, QsfJVal v, QsfJVal *out); /* v escaped, unless it is markup */
/* A tagged string of the template's own kind. */
bool qsf_j_text(QsfJCtx *c, const char *s, QsfJVal *out);

/* --- characters (jinja/text.c) --- */
size_t qsf_j_chars(const QsfJStr *s);              /* code points; each ill-formed byte counts as one */
size_t qsf_j_char_off(const QsfJStr *s, size_t i); /* byte offset of character i (at most len) */

/* --- operators (jinja/ops.c) --- */
/* As in Python: is v true in a condition? Arithmetic fails for types that do not fit. */
bool qsf_j_truth(QsfJVal v);
bool qsf_j_arith(QsfJCtx *c, QsfJOp op, QsfJVal a, QsfJVal b, QsfJVal *out);
bool qsf_j_compare(QsfJCtx *c, QsfJOp op, QsfJVal a, QsfJVal b, bool *out);
bool qsf_j_equal(QsfJCtx *c, QsfJVal a, QsfJVal b, bool *out);
bool qsf_j_less(QsfJCtx *c, QsfJVal a, QsfJVal b, bool *out);
bool qsf_j_percent(QsfJCtx *c, QsfJVal fmt, QsfJVal args, QsfJVal *out); /* jinja/format.c */

/* --- access (jinja/access.c) --- */
/* Index of the pair, or d->n; *found is false, with success, if absent. */
bool qsf_j_dict_find(QsfJCtx *c, const QsfJDict *d, QsfJVal key, uint32_t *at, bool *found);
/* Sets or adds a pair. */
bool qsf_j_dict_put(QsfJCtx *c, QsfJDict *d, QsfJVal key, QsfJVal v);
const QsfJVal *qsf_j_dict_text(const QsfJDict *d, const char *key, size_t len); /* NULL if absent */
/* obj.name, obj[key] and obj[start:stop:step]; none: no limit. What does not exist is undefined, not an
 * error. */
bool qsf_j_attr(QsfJCtx *c, QsfJVal obj, const QsfJStr *name, QsfJVal *out);
bool qsf_j_item(QsfJCtx *c, QsfJVal obj, QsfJVal key, QsfJVal *out);
bool qsf_j_slice(QsfJCtx *c, QsfJVal obj, QsfJVal start, QsfJVal stop, QsfJVal step, QsfJVal *out);
/* The elements of anything iterable, as a list that must not be changed. */
bool qsf_j_iter(QsfJCtx *c, QsfJVal v, const QsfJList **out);
bool qsf_j_iterable(QsfJVal v);                         /* would qsf_j_iter succeed? */
bool qsf_j_length(QsfJCtx *c, QsfJVal v, int64_t *out); /* characters or elements; else an error */
/* Follows a.b.0 like the attribute arguments of filters; path may also be an integer. otherwise (NULL or
 * none: no such value) replaces each undefined part on the way, not only the last. */
bool qsf_j_path(QsfJCtx *c, QsfJVal obj, QsfJVal path, const QsfJVal *otherwise, QsfJVal *out);

/* --- evaluation --- */
bool qsf_j_eval(QsfJCtx *c, QsfJRef r, QsfJVal *out); /* jinja/eval.c */
typedef enum QsfJFlow { QSF_JF_FAIL, QSF_JF_NEXT, QSF_JF_BREAK, QSF_JF_CONTINUE } QsfJFlow;
/* Runs statements up to the end, a break or a continue. */
QsfJFlow qsf_j_exec(QsfJCtx *c, QsfJRef list); /* jinja/exec.c */
/* Runs the body of `outer` over other items, for loop(items); *out becomes what it writes. */
bool qsf_j_run_loop(QsfJCtx *c, const QsfJLoop *outer, QsfJVal items, QsfJVal *out);
/* Call a value, or a builtin, with arguments that qsf_j_eval_args has evaluated. */
bool qsf_j_call(QsfJCtx *c, QsfJVal callee, QsfJArgs *a, QsfJVal *out); /* jinja/call.c */
bool qsf_j_call_row(QsfJCtx *c, const QsfJRow *row, QsfJArgs *a, QsfJVal *out);
bool qsf_j_eval_args(QsfJCtx *c, const QsfJNode *n, QsfJArgs *a);
/* Calls filter or test `name` on v with the arguments of a after the first `skip`. */
bool qsf_j_apply(QsfJCtx *c, bool test, const QsfJStr *name, QsfJVal v, const QsfJArgs *a, uint32_t skip,
                 QsfJVal *out);
bool qsf_j_bind(QsfJCtx *c, uint32_t atom, QsfJVal v); /* in the innermost scope */
/* Returns a new scope within up; NULL after an error. */
QsfJScope *qsf_j_scope(QsfJCtx *c, QsfJScope *up);

/* --- the builtins --- */
/* Return a row, static; NULL if there is none of this name. */
const QsfJRow *qsf_j_find_row(const QsfJRow *rows, const QsfJStr *name); /* rows end with a NULL name */
const QsfJRow *qsf_j_find_filter(const QsfJStr *name);
const QsfJRow *qsf_j_find_test(const QsfJStr *name);
const QsfJRow *qsf_j_find_global(const QsfJStr *name);
extern const QsfJRow qsf_j_text_filters[], qsf_j_seq_filters[], qsf_j_num_filters[], qsf_j_json_filters[];
extern const QsfJRow qsf_j_str_methods[], qsf_j_str_split_methods[], qsf_j_str_is_methods[],
    qsf_j_str_format_methods[], qsf_j_dict_methods[], qsf_j_list_methods[], qsf_j_num_methods[],
    qsf_j_loop_methods[];

/* Argument i after binding: whether it was given, and typed access. */
static inline bool qsf_j_given(const QsfJArgs *a, uint32_t i) { return a->v[i].type != QSF_J_MISSING; }
bool qsf_j_arg_int(QsfJCtx *c, const QsfJArgs *a, uint32_t i, int64_t fallback, int64_t *out);
bool qsf_j_arg_str(QsfJCtx *c, const QsfJArgs *a, uint32_t i, QsfJVal *out); /* required, a string */

#endif
