/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Standard directories (XDG base directories). Paths are written to a buffer of QSF_PATH_MAX bytes, so
 * nothing is allocated and there are no out-of-memory failures. Any thread. */
#ifndef QSF_BASE_PATHS_H
#define QSF_BASE_PATHS_H

#include <stdbool.h>

#include "src/base/err.h"

#define QSF_PATH_MAX 4096 /* with the NUL; a longer path is treated as missing */

/* Return $XDG_DATA_HOME/qsf, $XDG_STATE_HOME/qsf, $XDG_CONFIG_HOME/qsf with the standard fallbacks. False,
 * with out empty, if HOME is not set. */
bool qsf_path_data_home(char out[QSF_PATH_MAX]);
bool qsf_path_state_home(char out[QSF_PATH_MAX]);
bool qsf_path_config_home(char out[QSF_PATH_MAX]);
/* Finds directory `sub` ("templates") of the installed data: the first that exists of $QSF_DATADIR/sub, sub
 * next to the executable, ../share/qsf/sub relative to it, and sub in the compiled-in QSF_DATADIR. False,
 * with out empty, if none does. */
bool qsf_path_data(const char *sub, char out[QSF_PATH_MAX]);
/* Concatenates a, b and c. False, with out empty, if the result is too long. */
bool qsf_path_join(char out[QSF_PATH_MAX], const char *a, const char *b, const char *c);
/* Returns what follows the last slash of path, or path. */
const char *qsf_path_name(const char *path);
/* Is path a directory, or a link to one? */
bool qsf_path_is_dir(const char *path);
/* Creates path and its parents like mkdir -p, with mode 0700. QSF_E_RUNTIME with path and reason. */
int qsf_path_make_dirs(const char *path, QsfErr *err);

#endif
