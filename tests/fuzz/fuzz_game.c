/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: the file of a game. Must neither crash, leak nor hang; what is refused has a reason, and what
 * is accepted only sets what acts on the next token, to values that read back. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "qsf_games.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[96];

/* A configuration directory with one game, whose file is replaced for each input. */
static void make_home(void) {
    static char home[] = "/tmp/fuzz_game.XXXXXX";
    char dir[80];
    if (mkdtemp(home) == NULL || setenv("XDG_CONFIG_HOME", home, 1) != 0) abort();
    snprintf(dir, sizeof dir, "%s/qsf", home);
    if (mkdir(dir, 0700) != 0) abort();
    snprintf(dir, sizeof dir, "%s/qsf/games", home);
    if (mkdir(dir, 0700) != 0) abort();
    snprintf(path, sizeof path, "%s/fuzz.ini", dir);
}

static void check(const QSFGame *g) {
    QSFSettings again;
    char value[QSF_SETTING_TEXT], err[400];
    qsf_settings_default(&again);
    if (strcmp(g->name, "fuzz") != 0 || strlen(g->about) >= sizeof g->about) abort();
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!qsf_setting_user_set(&g->settings, row)) continue;
        if (!(row->flags & QSF_SETTING_LIVE)) abort();
        qsf_setting_get(&g->settings, row, value, sizeof value);
        if (qsf_setting_set(&again, row, value, err, sizeof err) != 0) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char err[600] = "";
    if (path[0] == '\0') make_home();
    FILE *f = fopen(path, "wb");
    if (f == NULL || (size > 0 && fwrite(data, size, 1, f) != 1) || fclose(f) != 0) abort();
    QSFGame *g = qsf_game_read("fuzz", err, sizeof err);
    if (g == NULL && err[0] == '\0') abort();
    if (g != NULL) check(g);
    qsf_game_free(g);
    return 0;
}
