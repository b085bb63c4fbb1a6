/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --top-logprobs: the tokens of the last answer, and how each was chosen, as JSON. */
#ifndef QSF_UI_LOGPROBS_H
#define QSF_UI_LOGPROBS_H

#include "ui/app.h"

/* Appends an object for each token of the last answer that is known, separated by ", ", with the n likeliest
 * other ones (at most QSF_CANDIDATES). */
void ui_put_logprobs(UiBuf *b, UiApp *a, unsigned n);

#endif
