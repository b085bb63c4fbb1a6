/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Games: personas that set sampling controls, each in a small file NAME.ini, in $XDG_CONFIG_HOME/qsf/games or
 * among the installed data. A file has the sections [game] (about), [settings] (any live setting; file names
 * are relative to the file), [system] (text) and [first] (assistant, user: messages that begin the game). Any
 * thread. */
#ifndef QSF_GAMES_H
#define QSF_GAMES_H

#include "qsf_engine.h"

typedef struct QSFGame {
    char name[64];
    char about[256];      /* one line, or "" */
    char *system;         /* the system prompt; NULL = that of before stays */
    char *assistant;      /* a message of the model that begins the conversation, or NULL */
    char *user;           /* a message that is sent then, or NULL */
    QSFSettings settings; /* those of the file: qsf_setting_user_set */
} QSFGame;

/* Reads a game, malloc'ed; the user's own comes before an installed one of the same name. NULL with a message
 * in err: there is none, its file is wrong (with its line), or out of memory. */
QSFGame *qsf_game_read(const char *name, char *err, size_t cap);
void qsf_game_free(QSFGame *g); /* NULL is allowed */
/* Lists the names, sorted, NUL-separated, ended by an empty name; free() it. NULL when out of memory. */
char *qsf_game_names(void);

#endif
