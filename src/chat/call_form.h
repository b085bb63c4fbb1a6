/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The form in which a template writes tool calls, found by rendering one, and a grammar of answers in it.
 * Known are JSON objects with name and arguments, alone, in an array or after a mark (Llama, Mistral,
 * Hermes, Qwen), and <function=NAME> with <parameter=KEY> (Qwen3-Coder). Any thread. */
#ifndef QSF_CHAT_CALL_FORM_H
#define QSF_CHAT_CALL_FORM_H

#include "src/chat/call_value.h"
#include "src/chat/chat.h"

typedef enum QsfCallKind {
    QSF_CALL_JSON,    /* {"name": NAME, "arguments": {...}} */
    QSF_CALL_FUNCTION /* <function=NAME> <parameter=KEY> VALUE </parameter> </function> */
} QsfCallKind;

#define QSF_CALL_GAP 16u /* bytes of white space */

/* All texts are terminated. */
typedef struct QsfCallForm {
    QsfCallKind kind;
    const char *mark, *close;      /* around a call, or "": static */
    bool list;                     /* calls are elements of an array, and the mark is before the array */
    char head[64], middle[64];     /* JSON: before and after the name */
    char after_mark[QSF_CALL_GAP]; /* white space between the mark and the call */
    char before_close[QSF_CALL_GAP];
    char after_name[QSF_CALL_GAP]; /* FUNCTION: and its '>'; this and the following are white space */
    char before_value[QSF_CALL_GAP], after_value[QSF_CALL_GAP], after_parameter[QSF_CALL_GAP];
} QsfCallForm;

/* QSF_E_USAGE: the template writes no calls, or in a form that is not known. QSF_E_RUNTIME without memory,
 * QSF_E_INTERRUPTED. */
int qsf_call_form_find(QsfCallForm *f, const QsfChatTemplate *t, QsfErr *err);

/* What an answer has to call. */
typedef struct QsfCallWish {
    const char *tools; /* (tools_len) a JSON array, as qsf_chat_render has checked it */
    size_t tools_len;
    const char *name; /* of the only tool that may be called; NULL or "" = any of them */
    bool one;         /* one call, not several */
    const char
        *schema; /* (schema_len) the answer may be JSON that is valid for this instead; NULL = it has to
                           call a tool */
    size_t schema_len;
} QsfCallWish;

/* Appends the grammar, in GBNF (docs/GRAMMARS.md), of answers that call a tool in this form. Marks that are
 * tokens of the vocabulary are tokens in it. QSF_E_USAGE: there is no such tool; QSF_E_RUNTIME without
 * memory. */
int qsf_call_form_grammar(const QsfCallForm *f, const QsfTokenizer *tok, const QsfCallWish *wish,
                          QsfStrbuf *out, QsfErr *err);

#endif
