/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of models of servers, and the key. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_remote.h"
#include "src/base/strbuf.h"
#include "src/remote/url.h"

#define PREFIX  "connect:"
#define KEY_MAX 4096u

bool qsf_connect_is(const char *path) { return strncmp(path, PREFIX, sizeof PREFIX - 1) == 0; }

char *qsf_connect_path(const char *url, const char *model, char *err, size_t cap) {
    QsfRemoteUrl u;
    QsfErr why = { 0 };
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (qsf_remote_url_parse(url, &u, &why) != QSF_OK) {
        snprintf(err, cap, "%s", why.msg);
        return NULL;
    }
    qsf_strbuf_addf(&b, PREFIX "%s#%s", u.name, model);
    char *path = qsf_strbuf_take(&b, NULL);
    if (!path) snprintf(err, cap, "out of memory");
    return path;
}

const char *qsf_connect_model(const char *path) {
    const char *mark = strchr(path, '#');
    return mark ? mark + 1 : "";
}

bool qsf_connect_same(const char *x, const char *y) {
    const size_t n = strcspn(x, "#");
    return n == strcspn(y, "#") && memcmp(x, y, n) == 0;
}

/* A key is one line of printable characters: anything else would end the header or break it. */
static char *clean_key(char *text) {
    size_t len = strcspn(text, "\r\n"), at = 0;
    while (at < len && (text[at] == ' ' || text[at] == '\t')) at++;
    while (len > at && (text[len - 1] == ' ' || text[len - 1] == '\t')) len--;
    for (size_t i = at; i < len; i++)
        if (!isgraph((unsigned char)text[i])) return NULL;
    text[len] = '\0';
    return len > at ? text + at : NULL;
}

static bool read_key(const char *file, char *text, char *err, size_t cap) {
    struct stat st;
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, KEY_MAX) : -1;
    const bool ok = n >= 0 && fstat(fd, &st) == 0;
    if (!ok) snprintf(err, cap, "--api-key-file %.200s: %s", file, strerror(errno));
    if (fd >= 0) close(fd);
    text[ok ? n : 0] = '\0';
    return ok;
}

bool qsf_connect_key(const char *file, char **key, char *err, size_t cap) {
    char text[KEY_MAX + 1] = "";
    const char *given = getenv("OPENAI_API_KEY");
    *key = NULL;
    if (file && !read_key(file, text, err, cap)) return false;
    if (!file && (!given || !*given)) return true;
    if (!file) snprintf(text, sizeof text, "%s", given);
    const char *found = clean_key(text);
    *key = found ? strdup(found) : NULL;
    if (!found)
        snprintf(err, cap, "%s%.200s: expected a key on the first line, without blanks",
                 file ? "--api-key-file " : "OPENAI_API_KEY", file ? file : "");
    else if (!*key)
        snprintf(err, cap, "out of memory");
    return *key != NULL;
}

bool qsf_connect_key_exposed(const char *file) {
    struct stat st;
    return stat(file, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 007) != 0;
}
