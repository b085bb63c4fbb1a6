/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Values of the template language and their memory. Values are immutable once the evaluator has seen them
 * (only namespaces change), so they share bytes and elements freely; all memory of a rendering is freed
 * together. Internal names of the engine begin with qsf_j_; functions that can fail return false, with the
 * error in the context or the memory. */
#ifndef QSF_JINJA_VALUE_H
#define QSF_JINJA_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"

/* Origin of a character. Preserved by every operation on strings, ignored by comparisons. */
typedef enum QsfJTag {
    QSF_J_DATA = 0, /* text from users or other sources: message contents, tools */
    QSF_J_TEXT = 1, /* the template's own text, special token variables, text made by builtins */
    QSF_J_MIXED = 2 /* of a string: see its runs */
} QsfJTag;

typedef struct QsfJRun {
    uint32_t end; /* first byte after the run */
    uint32_t tag; /* QsfJTag, never mixed */
} QsfJRun;

typedef struct QsfJStr {
    const char *p; /* (len), any bytes */
    uint32_t len;
    uint32_t off;        /* of p in the text that runs describe; substrings share runs */
    const QsfJRun *runs; /* only when tag is QSF_J_MIXED */
    uint32_t n_runs;
    uint8_t tag;
} QsfJStr;

typedef enum QsfJType {
    QSF_J_MISSING, /* an argument that was not given; templates never see it */
    QSF_J_UNDEF,
    QSF_J_NONE,
    QSF_J_BOOL,
    QSF_J_INT,
    QSF_J_FLOAT,
    QSF_J_STR,
    QSF_J_LIST,
    QSF_J_TUPLE,
    QSF_J_DICT,
    QSF_J_VIEW, /* dict.items() and friends: a list that cannot be indexed */
    QSF_J_GEN,  /* map, select, ...: can be iterated once */
    QSF_J_RANGE,
    QSF_J_NS,
    QSF_J_FUNC,
    QSF_J_MACRO,
    QSF_J_LOOP,
    QSF_J_N_TYPES
} QsfJType;

typedef struct QsfJVal QsfJVal;

/* Lists, tuples, views, generators, ranges. */
typedef struct QsfJList {
    QsfJVal *v;
    uint32_t n, cap;
    bool used;        /* generator: was iterated */
    const char *view; /* view: "dict_items", ... ; a groupby tuple: "group" */
} QsfJList;

/* Dictionaries and namespaces: key, value, key, value, in order of insertion. */
typedef struct QsfJDict {
    QsfJVal *kv;
    uint32_t n, cap; /* pairs */
} QsfJDict;

typedef struct QsfJUndef {
    const QsfJStr *name; /* of the variable or attribute, may be NULL */
    const char *of;      /* Python's name for the object that lacks it, NULL for a variable */
} QsfJUndef;

typedef struct QsfJFunc QsfJFunc; /* jinja/eval.h */
typedef struct QsfJMacro QsfJMacro;
typedef struct QsfJLoop QsfJLoop;

struct QsfJVal {
    uint8_t type; /* QsfJType */
    bool markup;  /* a string made by |safe or |escape: + escapes what is added to it */
    union {
        bool b;
        int64_t i;
        double f;
        const QsfJStr *s;
        QsfJList *l;
        QsfJDict *d;
        const QsfJUndef *u; /* may be NULL */
        const QsfJFunc *fn;
        const QsfJMacro *m;
        QsfJLoop *loop;
    } u;
};

/* Pages charged to a private ledger that holds the limit. */
typedef struct QsfJMem {
    QsfLedger ledger;
    QsfArena arena;
    size_t limit;
    bool failed;  /* an allocation failed; sticky */
    bool starved; /* and not because of the limit: the process is out of memory */
} QsfJMem;
/* An empty heap that may take limit bytes. */
void qsf_j_mem_init(QsfJMem *m, size_t limit);
/* Frees all values at once. */
void qsf_j_mem_destroy(QsfJMem *m);
/* Zeroed bytes, or NULL and m->failed. */
void *qsf_j_alloc(QsfJMem *m, size_t bytes);

static inline QsfJVal qsf_j_none(void) { return (QsfJVal){ .type = QSF_J_NONE }; }
static inline QsfJVal qsf_j_bool(bool b) { return (QsfJVal){ .type = QSF_J_BOOL, .u.b = b }; }
static inline QsfJVal qsf_j_int(int64_t i) { return (QsfJVal){ .type = QSF_J_INT, .u.i = i }; }
static inline QsfJVal qsf_j_float(double f) { return (QsfJVal){ .type = QSF_J_FLOAT, .u.f = f }; }
static inline QsfJVal qsf_j_undef(const QsfJUndef *u) { return (QsfJVal){ .type = QSF_J_UNDEF, .u.u = u }; }

/* All of these return none if memory runs out (m->failed). A string borrows p; len is limited to 2^31. */
QsfJVal qsf_j_str(QsfJMem *m, const char *p, size_t len, QsfJTag tag);
QsfJVal qsf_j_list(QsfJMem *m, QsfJType type, size_t cap); /* empty, with room for cap */
QsfJVal qsf_j_dict(QsfJMem *m, QsfJType type, size_t cap);
/* Appends v; false if memory runs out. */
bool qsf_j_append(QsfJMem *m, QsfJList *l, QsfJVal v);
/* Adds a pair without checking for an equal key. */
bool qsf_j_dict_add(QsfJMem *m, QsfJDict *d, QsfJVal key, QsfJVal v);
/* s[off..off+len), sharing bytes; v.markup as given. */
QsfJVal qsf_j_substr(QsfJMem *m, QsfJVal s, size_t off, size_t len);
/* End (relative to s) and tag of the run that holds byte i. */
size_t qsf_j_run_end(const QsfJStr *s, size_t i, QsfJTag *tag);

static inline bool qsf_j_is_str(QsfJVal v) { return v.type == QSF_J_STR; }
static inline bool qsf_j_is_num(QsfJVal v) { return v.type >= QSF_J_BOOL && v.type <= QSF_J_FLOAT; }
static inline bool qsf_j_is_whole(QsfJVal v) { return v.type == QSF_J_BOOL || v.type == QSF_J_INT; }
static inline bool qsf_j_is_listy(QsfJVal v) { return v.type == QSF_J_LIST || v.type == QSF_J_TUPLE; }
static inline int64_t qsf_j_whole(QsfJVal v) { return v.type == QSF_J_BOOL ? v.u.b : v.u.i; }
static inline double qsf_j_real(QsfJVal v) { return v.type == QSF_J_FLOAT ? v.u.f : (double)qsf_j_whole(v); }
/* Compare the bytes with b (len bytes), or a C string; tags do not count. */
bool qsf_j_same_text(const QsfJStr *a, const char *b, size_t len);
bool qsf_j_is(const QsfJStr *a, const char *b);

#endif
