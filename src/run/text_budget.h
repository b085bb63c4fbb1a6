/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The RAM budget of --tokenize, which makes no plan: what is resident, the vocabulary, the text and what is
 * made of it are charged to the ledger of the runtime. Without --ram-budget there is no limit. One thread. */
#ifndef QSF_RUN_TEXT_BUDGET_H
#define QSF_RUN_TEXT_BUDGET_H

#include "src/run/run.h"
#include "src/token/tokenizer.h"

/* The text so far, or all of it. */
typedef struct RunTextSize {
    uint64_t len, line, longest_line; /* bytes; line: since the last newline */
    QsfWords words;
} RunTextSize;

typedef struct RunTextBudget {
    QsfRuntime *rt;
    bool lines;       /* the text is JSON strings, one per line */
    uint64_t base;    /* bytes of the process before the vocabulary is read, including
                         pages that it will touch later */
    uint64_t charged; /* of the text */
    RunTextSize size;
} RunTextBudget;

/* Bytes per byte of a line while it is JSON: the text of the parser, the value, the string. */
#define RUN_LINE_BYTES 6u

/* Sets the limit for an open runtime without weights. resident: the resident set before it was opened. */
void run_text_budget_begin(RunTextBudget *b, QsfRuntime *rt, const RunOptions *o, uint64_t resident);
/* Reads stdin as run_read_stdin, within the budget. Returns an exit code; everything is reported, a
 * budget that is too small (QSF_E_BUDGET) with the smallest one that works for the whole text, which
 * is read to its end for that. */
int run_text_budget_read(RunTextBudget *b, QsfStrbuf *in);
/* Completes a refusal with that budget; returns err->code. Other errors stay as they are. */
int run_text_budget_advise(const RunTextBudget *b, QsfErr *err);

#endif
