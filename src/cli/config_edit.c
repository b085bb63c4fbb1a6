/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changes the sections of roles in a configuration file: implements qsf_config_edit_role. The rest of the
 * file, with its comments, stays as it is; the result is read and checked before it replaces the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_savefile.h"
#include "src/base/paths.h"
#include "src/base/utf8.h"
#include "src/cli/config.h"
#include "src/cli/ini.h"

#define LINE_BYTES 150u /* of a value, before another line begins: inih has space for 198 with the name */
#define NAME_BYTES (QSF_INI_SECTION - 5u) /* of a role: the heading is "role NAME" */

/* ---- values ---- */

/* Can it be written as it is? A value is trimmed, " ;" begins a comment, and lines are short. */
static bool is_plain(const char *v) {
    const size_t n = strlen(v);
    bool plain = n > 0 && n < LINE_BYTES && v[0] != '"' && v[0] != ' ' && v[n - 1] != ' ' && v[0] != ';';
    for (const char *p = v; plain && *p; p++)
        plain = (unsigned char)*p >= ' ' && *p != 0x7f && !(*p == ' ' && p[1] == ';');
    return plain;
}

/* Bytes of the character at s. */
static size_t character(const char *s) {
    size_t n = 1;
    while (((unsigned char)s[n] & 0xc0) == 0x80) n++;
    return n;
}

static void add_quoted(QsfStrbuf *b, const char *v) {
    size_t line = 0;
    qsf_strbuf_addc(b, '"');
    for (size_t n; *v; v += n) {
        n = character(v);
        if (line + 2 + n > LINE_BYTES) {
            qsf_strbuf_adds(b, "\"\n  \"");
            line = 0;
        }
        const char *escaped = *v == '\n' ? "\\n" : *v == '\t' ? "\\t" : NULL;
        if (escaped) {
            qsf_strbuf_adds(b, escaped);
        } else {
            if (*v == '"' || *v == '\\' || *v == ';') qsf_strbuf_addc(b, '\\');
            qsf_strbuf_add(b, v, n);
        }
        line += escaped || n == 1 ? 2 : n;
    }
    qsf_strbuf_addc(b, '"');
}

void qsf_config_add_value(QsfStrbuf *b, const char *value) {
    if (is_plain(value))
        qsf_strbuf_adds(b, value);
    else
        add_quoted(b, value);
}

/* ---- a section ---- */

static void add_line(QsfStrbuf *b, const char *name, const char *value) {
    qsf_strbuf_addf(b, "%s = ", name);
    qsf_config_add_value(b, value);
    qsf_strbuf_addc(b, '\n');
}

static void add_section(QsfStrbuf *b, const QSFRoleEdit *edit) {
    char value[QSF_SETTING_TEXT];
    qsf_strbuf_addf(b, "[role %s]\n", edit->name);
    if (edit->system) add_line(b, "system", edit->system);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!qsf_setting_user_set(edit->settings, row)) continue;
        qsf_setting_get(edit->settings, row, value, sizeof value);
        if (*value) add_line(b, row->name, value);
    }
    for (size_t i = 0; i < edit->n_stops; i++) add_line(b, "stop", edit->stops[i]);
}

/* What a heading can have. The words of /role cannot be names. */
static bool is_name(const char *name) {
    static const char *const words[] = { "save", "save!", "delete" };
    const size_t n = strlen(name), word = strcspn(name, " ");
    bool good = n > 0 && n <= NAME_BYTES && name[0] != ' ' && name[n - 1] != ' ' && qsf_utf8_valid(name, n);
    for (const char *p = name; good && *p; p++)
        good = (unsigned char)*p >= ' ' && *p != 0x7f && !strchr("[];\"", *p);
    for (size_t i = 0; good && i < sizeof words / sizeof *words; i++)
        good = strncmp(name, words[i], word) != 0 || words[i][word] != '\0';
    return good;
}

/* ---- the file ---- */

/* Start of line `line`, counted from 1. */
static const char *line_start(const QsfConfigBytes *t, unsigned line) {
    const char *p = t->data, *end = t->data + t->len;
    for (; line > 1 && p < end; line--) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        p = nl ? nl + 1 : end;
    }
    return p;
}

/* Returns the end of [from, to) without the comments and empty lines that belong to the next section. */
static const char *trim_back(const char *from, const char *to) {
    while (to > from) {
        const char *line = to - 1;
        while (line > from && line[-1] != '\n') line--;
        const size_t blanks = strspn(line, " \t\r\n");
        if (line + blanks < to && *line != ';' && *line != '#') break;
        to = line;
    }
    return to;
}

/* The section of the role: [*from, *to) of t; where a new one is added if there is none. */
static void find_section(const QSFConfigFile *c, const QsfConfigBytes *t, const char *role, const char **from,
                         const char **to) {
    *from = *to = t->data + t->len;
    for (size_t i = 0; i < c->n_sections; i++) {
        const QsfConfigSection *s = &c->sections[i];
        if (s->layer != QSF_CONFIG_ROLE || strcmp(s->name, role) != 0) continue;
        *from = line_start(t, s->line);
        const char *next = i + 1 < c->n_sections ? line_start(t, c->sections[i + 1].line) : *to;
        *to = trim_back(line_start(t, s->line + 1), next);
        return;
    }
}

/* The text after the change. */
static void apply(QsfStrbuf *b, const QsfConfigBytes *t, const QSFRoleEdit *edit, const char *from,
                  const char *to) {
    const char *end = t->data + t->len;
    qsf_strbuf_add(b, t->data, (size_t)(from - t->data));
    if (edit->remove) {
        while (to < end && (*to == '\n' || *to == '\r')) to++; /* the lines that set it apart */
    } else {
        if (b->len > 0 && b->data[b->len - 1] != '\n') qsf_strbuf_addc(b, '\n');
        if (from == end && b->len > 0) qsf_strbuf_addc(b, '\n');
        add_section(b, edit);
    }
    qsf_strbuf_add(b, to, (size_t)(end - to));
}

static int cannot(QsfErr *err, const char *path, const char *what, int why) {
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot %s: %s", path, what, strerror(why));
}

/* A file that is missing is empty. */
static int load(const char *path, QsfStrbuf *b, QsfErr *err) {
    char part[4096];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT ? QSF_OK : cannot(err, path, "read", errno);
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? 1 : -1;
    if (n < 0) errno = EINVAL;
    while (n > 0 && b->len <= QSF_INI_FILE_MAX) {
        n = read(fd, part, sizeof part);
        if (n > 0) qsf_strbuf_add(b, part, (size_t)n);
    }
    const int why = errno;
    (void)close(fd);
    return n < 0 ? cannot(err, path, "read", why) : QSF_OK;
}

static int make_folder(const char *path, QsfErr *err) {
    char folder[QSF_PATH_MAX];
    const char *name = qsf_path_name(path);
    if (name == path) return QSF_OK;
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    return qsf_path_make_dirs(folder, err);
}

static int write_file(const char *path, const QsfStrbuf *b, QsfErr *err) {
    QsfErr why = { 0 };
    if (make_folder(path, &why) != QSF_OK) return qsf_err_set(err, QSF_E_RUNTIME, "%s", why.msg);
    const int rc = qsf_savefile_save(path, b->len > 0 ? b->data : "", b->len, true);
    return rc == 0 ? QSF_OK : cannot(err, path, "write", rc);
}

/* May the role be written or removed? */
static int check_edit(const QSFConfigFile *now, const QSFRoleEdit *edit, QsfErr *err) {
    const bool exists = qsf_config_has_role(now, edit->name);
    if (edit->remove && !exists) return qsf_err_set(err, QSF_E_USAGE, "there is no role %s", edit->name);
    if (edit->remove || (exists && edit->replace)) return QSF_OK;
    if (exists)
        return qsf_err_set(err, QSF_E_USAGE, "there is a role %s already (save! replaces it)", edit->name);
    if (is_name(edit->name)) return QSF_OK;
    return qsf_err_set(
        err, QSF_E_USAGE,
        "the name of a role has 1 to %u bytes, without [ ] ; \" and control characters, and its "
        "first word is not save or delete",
        NAME_BYTES);
}

/* What is needed to read a configuration. */
typedef struct Reading {
    const QSFCli *cli;
    const char *path;
    QSFCliHandler check;
    void *scratch;
} Reading;

static int read_text(QSFConfigFile **out, const Reading *r, const QsfConfigBytes *t, QsfErr *err) {
    return qsf_config_read_text(out, r->cli, r->path, t, r->check, r->scratch, err);
}

static int change(QSFConfigFile **out, const Reading *r, const QSFRoleEdit *edit, const QsfStrbuf *was,
                  QsfErr *err) {
    const QsfConfigBytes text = { qsf_strbuf_str(was), was->len };
    QSFConfigFile *now = NULL;
    QsfStrbuf b = QSF_STRBUF_INIT;
    const char *from, *to;
    int rc = qsf_strbuf_ok(was) ? read_text(&now, r, &text, err) : QSF_E_RUNTIME;
    if (rc == QSF_OK) rc = check_edit(now, edit, err);
    if (rc == QSF_OK) {
        find_section(now, &text, edit->name, &from, &to);
        apply(&b, &text, edit, from, to);
        rc = qsf_strbuf_ok(&b) ? QSF_OK : QSF_E_RUNTIME;
    }
    if (rc == QSF_OK) rc = read_text(out, r, &(QsfConfigBytes){ qsf_strbuf_str(&b), b.len }, err);
    if (rc == QSF_OK && (rc = write_file(r->path, &b, err)) != QSF_OK) {
        qsf_config_close(*out);
        *out = NULL;
    }
    qsf_config_close(now);
    qsf_strbuf_free(&b);
    return rc;
}

int qsf_config_edit_role(QSFConfigFile **out, const QSFCli *cli, const char *path, QSFCliHandler check,
                         void *scratch, const QSFRoleEdit *edit, char *err, size_t cap) {
    char *own = path ? strdup(path) : qsf_config_default_path();
    QsfStrbuf was = QSF_STRBUF_INIT;
    QsfErr why = { .msg = "out of memory" };
    *out = NULL;
    int rc = own ? load(own, &was, &why)
                 : qsf_err_set(&why, QSF_E_RUNTIME, "no place for a configuration file: HOME is not set");
    if (rc == QSF_OK) rc = change(out, &(Reading){ cli, own, check, scratch }, edit, &was, &why);
    (void)snprintf(err, cap, "%s", rc == QSF_OK ? "" : why.msg);
    qsf_strbuf_free(&was);
    free(own);
    return rc;
}
