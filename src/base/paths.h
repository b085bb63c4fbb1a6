/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where things live (design §12, XDG base directories). Paths are written into the caller's QSF_PATH_MAX bytes, so that
 * nothing is allocated and "there is none" has no other cause than that. Any thread. */
#ifndef QSF_BASE_PATHS_H
#define QSF_BASE_PATHS_H

#include <stdbool.h>

#include "src/base/err.h"

#define QSF_PATH_MAX 4096 /* with the NUL; a longer path is treated as one that is not there */

/* $XDG_DATA_HOME/qsf, $XDG_STATE_HOME/qsf, $XDG_CONFIG_HOME/qsf with the standard fallbacks. False, and out is empty, without HOME. */
bool qsf_path_data_home(char out[QSF_PATH_MAX]);
bool qsf_path_state_home(char out[QSF_PATH_MAX]);
bool qsf_path_config_home(char out[QSF_PATH_MAX]);
/* Folder `sub` ("templates") of the installed data: $QSF_DATADIR/sub, then sub beside the
 * executable, then ../share/qsf/sub from it, then the compiled-in QSF_DATADIR; the first that exists. False, and out is
 * empty, when none does. */
bool qsf_path_data(const char *sub, char out[QSF_PATH_MAX]);
/* a + b + c. False, and out is empty, when that is too long. */
bool qsf_path_join(char out[QSF_PATH_MAX], const char *a, const char *b, const char *c);
/* mkdir -p with mode 0700 for what it makes. QSF_E_RUNTIME with path and reason. */
int qsf_path_make_dirs(const char *path, QsfErr *err);

#endif
