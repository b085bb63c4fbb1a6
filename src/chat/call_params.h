/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parameters of a tool whose calls are <function=NAME> with <parameter=KEY>. Their schema may be put
 * together by $ref, allOf, anyOf and oneOf at its root, and parameters may depend on each other: it becomes
 * alternatives, each of which is a list of parameters. Pure functions; any thread. */
#ifndef QSF_CHAT_CALL_PARAMS_H
#define QSF_CHAT_CALL_PARAMS_H

#include "src/chat/call_value.h"

typedef struct QsfCallParams QsfCallParams;

typedef struct QsfCallParam {
    const char *key;
    bool required;
    QsfCallValue value;    /* the same in all alternatives */
    const QsfJson *schema; /* what the value has to be valid for; NULL: anything, or several schemas */
} QsfCallParam;

/* Takes a schema apart; root is borrowed, and has to stay. QSF_E_USAGE: it cannot be written as parameters,
 * with the path in it; QSF_E_RUNTIME without memory. */
int qsf_call_params_new(QsfCallParams **out, const QsfJson *root, QsfErr *err);
/* QSF_E_USAGE: the schema says more about which parameters there are than this file reads. */
int qsf_call_params_check(const QsfCallParams *p, QsfErr *err);
void qsf_call_params_free(QsfCallParams *p); /* NULL is allowed */
/* Returns the schema that was taken apart. */
const QsfJson *qsf_call_params_root(const QsfCallParams *p);
/* Returns the number of alternatives. */
uint32_t qsf_call_params_n(const QsfCallParams *p);
/* Calls fn for the parameters of alternative i: those that have a schema in its order, then others that are
 * required. Ends with the first result that is not QSF_OK, and returns it. */
int qsf_call_params_each(const QsfCallParams *p, uint32_t i,
                         int (*fn)(void *arg, const QsfCallParam *param, QsfErr *err), void *arg,
                         QsfErr *err);
/* Appends a schema with references into the root: what values of this parameter are in alternative i. */
void qsf_call_params_put_schema(const QsfCallParams *p, uint32_t i, const char *key, QsfStrbuf *b);
/* How values of a parameter are written. */
QsfCallValue qsf_call_params_value(const QsfCallParams *p, const char *key);

#endif
