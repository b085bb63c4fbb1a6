/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models for the shell: --list-models. */
#ifndef QSF_UI_MODELS_SHELL_H
#define QSF_UI_MODELS_SHELL_H

#include "ui/opts.h"

/* Prints a line for each model as soon as it is known: to a terminal in columns, otherwise the fields of
 * UiModelField separated by tabs. o->find: words that have to occur in it, or a folder, which alone is
 * listed; NULL = all. Where another qsf-chat reads them, all of them are printed first without what their
 * headers say. Returns the exit status; err: a message for standard error, or "". */
int ui_models_print(const UiOptions *o, char *err, size_t cap);

#endif
