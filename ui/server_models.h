/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The models of the server that the chat is connected to. One thread. */
#ifndef QSF_UI_SERVER_MODELS_H
#define QSF_UI_SERVER_MODELS_H

#include "ui/app.h"
#include "ui/model_scan.h"

/* Fills scan with its models, as rows; false: the model in use is not one of a server. */
bool ui_server_models_list(const UiApp *a, UiModelScan *scan);
/* Loads the model that a name means there, or "connect:URL#MODEL", or reports why not; false: the name means
 * none of them, or the model in use is not one of a server. "guide" is the built-in guide, "#guide" a model
 * of the server that is called so; # may be before every name. */
bool ui_server_models_load(UiApp *a, const char *name);

#endif
