/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the engine in use cannot do, in words. One thread. */
#ifndef QSF_UI_ABILITIES_H
#define QSF_UI_ABILITIES_H

#include "ui/engine.h"

typedef struct UiApp UiApp;

bool ui_has(const UiApp *a, UiNeed need);
/* The same; if not, reports that "/name" is not possible, and why. */
bool ui_need(UiApp *a, UiNeed need, const char *name);
/* Why something that needs this is not possible: one sentence, without a full stop; static. */
const char *ui_lacks(UiNeed need);
/* What a command needs. */
UiNeed ui_command_need(const char *command);
/* What a setting does, if not what its row says: "no effect on this server"; NULL = what its row says. */
const char *ui_effect_text(UiEffect effect);
/* What is shown instead of the value of a setting that is not in force; NULL = the value. */
const char *ui_effect_mark(UiEffect effect);

#endif
