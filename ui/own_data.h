/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Data of the system that a self-contained installation brings along, for systems that lack it: the C.UTF-8
 * locale and descriptions of terminals. Other installations do not have them; then nothing happens here.
 * Main thread, before others are started: they change the environment. */
#ifndef UI_OWN_DATA_H
#define UI_OWN_DATA_H

#include <stdbool.h>

/* Makes the C.UTF-8 of DATA/locale the locale of characters. The C library reads the format of glibc there;
 * any other ignores it. Returns false, with the locale unchanged, if there is none. */
bool ui_own_locale(void);

/* Adds DATA/terminfo to what is searched, after what TERMINFO_DIRS has. Returns false if there is none. */
bool ui_own_terminals(void);

#endif
