/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where things live (design §12, XDG base directories). Every function returns a malloc'ed path or
 * NULL (no HOME, no memory). Any thread. */
#ifndef QSF_BASE_PATHS_H
#define QSF_BASE_PATHS_H

#include "src/base/err.h"

/* $XDG_DATA_HOME/qsf, $XDG_STATE_HOME/qsf, $XDG_CONFIG_HOME/qsf with the standard fallbacks. */
char *qsf_path_data_home(void);
char *qsf_path_state_home(void);
char *qsf_path_config_home(void);
/* Folder `sub` ("templates") of the installed data: $QSF_DATADIR/sub, then sub beside the
 * executable, then ../share/qsf/sub from it, then the compiled-in QSF_DATADIR; the first that exists. */
char *qsf_path_data(const char *sub);
/* mkdir -p with mode 0700 for what it makes. QSF_E_RUNTIME with path and reason. */
int qsf_path_make_dirs(const char *path, QsfErr *err);

#endif
