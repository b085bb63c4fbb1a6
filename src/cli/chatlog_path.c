/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names, paths and kinds of conversation files: implements chatlog_path.h. */
#include "src/cli/chatlog_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/strbuf.h"

static const char *const kind_names[] = { "message", "part", "undo",  "clear",
                                          "system",  "set",  "model", "forget" };

const char *qsf_chatlog_kind_name(QSFLogKind k) { return kind_names[k]; }

bool qsf_chatlog_name_ok(const char *name) {
    if (!*name || *name == '.' || strlen(name) > 100) return false;
    for (const char *c = name; *c; c++)
        if (*c == '/' || (unsigned char)*c < 0x20 || *c == 0x7F) return false;
    return true;
}

bool qsf_chatlog_dir(char out[QSF_PATH_MAX]) {
    char home[QSF_PATH_MAX];
    return qsf_path_data_home(home) && qsf_path_join(out, home, "/", "sessions");
}

static char *path_in(const char *dir, const char *name, const char *ending) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addf(&b, "%s/%s%s", dir, name, ending);
    return qsf_strbuf_take(&b, NULL);
}

char *qsf_chatlog_path(const char *name, char *err, size_t cap) {
    char dir[QSF_PATH_MAX];
    if (!qsf_chatlog_name_ok(name)) {
        snprintf(
            err, cap,
            "session name \"%s\": must not be empty, contain '/' or control characters, or start with '.'",
            name);
        return NULL;
    }
    if (!qsf_chatlog_dir(dir)) {
        snprintf(err, cap, "session %s: " QSF_CHATLOG_NO_HOME, name);
        return NULL;
    }
    char *path = path_in(dir, name, QSF_CHATLOG_ENDING);
    if (!path) snprintf(err, cap, "session %s: out of memory", name);
    return path;
}

char *qsf_chatlog_snapshot(const char *name) {
    char dir[QSF_PATH_MAX];
    return qsf_chatlog_name_ok(name) && qsf_chatlog_dir(dir) ? path_in(dir, name, QSF_CHATLOG_SNAPSHOT)
                                                             : NULL;
}

int qsf_chatlog_open_regular(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode))) return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

char *qsf_history_path(void) {
    QsfErr e = { 0 };
    char home[QSF_PATH_MAX], path[QSF_PATH_MAX];
    bool there = qsf_path_state_home(home) && qsf_path_make_dirs(home, &e) == QSF_OK &&
                 qsf_path_join(path, home, "/history", "");
    return there ? strdup(path) : NULL;
}
