/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --connect, and what it excludes. */
#ifndef QSF_UI_OPTS_CONNECT_H
#define QSF_UI_OPTS_CONNECT_H

#include "ui/opts.h"

/* Makes o->model the name of a model of the server, if o->connect is set. positional: there is a MODEL, which
 * replaces a server of the configuration file. false with a message in err: a wrong URL, or an option of the
 * command line that has no meaning with a server, by its name. */
bool ui_opts_connect(UiOptions *o, bool positional, char *err, size_t cap);
/* Parses the seconds of --timeout. false with a message in err. */
bool ui_opts_timeout(UiOptions *o, const char *value, char *err, size_t cap);

#endif
