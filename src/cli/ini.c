/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only file that includes inih. Lines are passed to it one by one, so that each is checked before. */
#include "src/cli/ini.h"

#ifndef QSF_WITHOUT_INIH

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_text.h"
#include "src/base/utf8.h"

typedef struct Reader {
    const char *path;
    char *text; /* (len) */
    size_t len, at;
    unsigned line;
    bool indented;  /* the line that inih has now */
    bool named;     /* the section has a value: an indented line continues it */
    unsigned empty; /* lines since it that are empty: part of it if an indented line follows */
    char section[QSF_INI_SECTION + 1];
    QsfIniHandler fn;
    void *arg;
    QsfErr *err;
    bool failed;
} Reader;

static bool refuse(Reader *r, const char *why) {
    if (!r->failed) (void)qsf_err_set(r->err, QSF_E_RUNTIME, "%s:%u: %s", r->path, r->line, why);
    r->failed = true;
    return false;
}

static bool pass_on(Reader *r, const QsfIniItem *item) {
    QsfErr why = { 0 };
    unsigned line = item->line;
    if (r->fn(r->arg, item, &line, &why)) return true;
    r->line = line;
    return refuse(r, why.msg);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* inih ignores what follows a section, and cuts its name. */
static bool begin_section(Reader *r, const char *s, size_t len) {
    const char *end = memchr(s, ']', len);
    if (!end) return refuse(r, "a section has no ']'");
    const size_t n = (size_t)(end - s) - 1;
    size_t after = n + 2;
    while (after < len && is_blank(s[after])) after++;
    if (after < len && s[after] != ';') return refuse(r, "there is text after a section");
    if (n == 0 || n > QSF_INI_SECTION) return refuse(r, "the name of a section has 1 to 49 bytes");
    memcpy(r->section, s + 1, n);
    r->section[n] = '\0';
    r->named = false;
    return pass_on(r, &(QsfIniItem){ .line = r->line, .section = r->section });
}

/* A line without its newline; room: bytes that inih has space for. */
static bool check_line(Reader *r, const char *s, size_t len, size_t room) {
    char text[120];
    size_t i = 0;
    while (i < len && is_blank(s[i])) i++;
    r->indented = i > 0;
    if (!qsf_utf8_valid(s, len)) return refuse(r, "is not UTF-8");
    if (memchr(s, '\0', len)) return refuse(r, "a NUL character");
    if (i == len) r->empty++;
    if (i == len || s[i] == ';' || s[i] == '#') return true;
    if (len > room) {
        (void)qsf_text_snprintf(
            text, sizeof text,
            "the line has %zu bytes, at most %zu are possible: indented lines continue a value", len, room);
        return refuse(r, text);
    }
    return s[i] != '[' || (r->indented && r->named) || begin_section(r, s + i, len - i);
}

/* Length without a comment: not every version of inih looks for one in a line that continues a value. */
static size_t without_comment(const char *s, size_t len) {
    for (size_t i = 1; i < len; i++)
        if (s[i] == ';' && is_blank(s[i - 1])) return i;
    return len;
}

/* As fgets. */
static char *next_line(char *str, int num, void *stream) {
    Reader *r = stream;
    if (r->failed || r->at == r->len || num < 8) return NULL;
    const char *s = r->text + r->at, *nl = memchr(s, '\n', r->len - r->at);
    size_t len = nl ? (size_t)(nl - s) : r->len - r->at;
    r->at += len + (nl != NULL);
    if (r->line++ == 0) {
        const size_t bom = qsf_utf8_bom(s, len);
        s += bom;
        len -= bom;
    }
    const size_t room = (size_t)num - 2;
    if (!check_line(r, s, len, room)) return NULL;
    if (len > room) len = 0; /* a comment */
    if (r->indented && r->named) len = without_comment(s, len);
    memcpy(str, s, len);
    str[len] = '\n';
    str[len + 1] = '\0';
    return str;
}

static int take_value(void *arg, const char *section, const char *name, const char *value) {
    Reader *r = arg;
    (void)section;
    if (r->failed || !name) return !r->failed;
    const bool more = r->indented && r->named;
    for (; more && r->empty > 0; r->empty--) {
        const QsfIniItem line = { r->line, r->section, name, "", true };
        if (!pass_on(r, &line)) return 0;
    }
    r->named = true;
    r->empty = 0;
    return pass_on(r, &(QsfIniItem){ .line = r->line,
                                     .section = r->section,
                                     .name = name,
                                     .value = value ? value : "",
                                     .more = more });
}

/* inih may be compiled to pass the number of the line, too. */
#if INI_HANDLER_LINENO
static int on_value(void *arg, const char *section, const char *name, const char *value, int line) {
    (void)line;
    return take_value(arg, section, name, value);
}
#else
static int on_value(void *arg, const char *section, const char *name, const char *value) {
    return take_value(arg, section, name, value);
}
#endif

static int cannot_read(const char *path, const char *why, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot read: %s", path, why);
}

static int read_all(int fd, Reader *r, QsfErr *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) return cannot_read(r->path, strerror(errno), err);
    if (!S_ISREG(st.st_mode)) return cannot_read(r->path, "not a regular file", err);
    if (st.st_size > (off_t)QSF_INI_FILE_MAX) return cannot_read(r->path, "larger than 1 MB", err);
    r->text = malloc((size_t)st.st_size + 1);
    if (!r->text) return cannot_read(r->path, "out of memory", err);
    for (ssize_t n; r->len < (size_t)st.st_size; r->len += (size_t)n) {
        n = read(fd, r->text + r->len, (size_t)st.st_size - r->len);
        if (n < 0 && errno != EINTR) return cannot_read(r->path, strerror(errno), err);
        if (n == 0) break; /* it has become shorter */
        if (n < 0) n = 0;
    }
    return QSF_OK;
}

/* Passes on the text that r has, and frees it. */
static int read_text(Reader *r) {
    const int line = ini_parse_stream(next_line, r, on_value, r);
    if (line != 0 && !r->failed) {
        r->line = line > 0 ? (unsigned)line : r->line;
        (void)refuse(r, line > 0 ? "expected NAME = VALUE, [SECTION] or a comment" : "out of memory");
    }
    free(r->text);
    return r->failed ? QSF_E_RUNTIME : QSF_OK;
}

int qsf_ini_read(const char *path, QsfIniHandler fn, void *arg, bool *missing, QsfErr *err) {
    Reader r = { .path = path, .fn = fn, .arg = arg, .err = err };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (missing) *missing = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    if (fd < 0) return cannot_read(path, strerror(errno), err);
    const int rc = read_all(fd, &r, err);
    (void)close(fd);
    if (rc == QSF_OK) return read_text(&r);
    free(r.text);
    return rc;
}

int qsf_ini_read_text(const char *path, const char *text, size_t len, QsfIniHandler fn, void *arg,
                      QsfErr *err) {
    Reader r = { .path = path, .len = len, .fn = fn, .arg = arg, .err = err };
    if (len > QSF_INI_FILE_MAX) return cannot_read(path, "larger than 1 MB", err);
    r.text = malloc(len + 1);
    if (!r.text) return cannot_read(path, "out of memory", err);
    memcpy(r.text, text, len);
    return read_text(&r);
}

#endif
