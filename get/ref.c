/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "get/ref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HUB "https://huggingface.co"

/* $HF_ENDPOINT, or the best known hub; without a slash at the end. */
static const char *endpoint_of_hub(void) {
    static char endpoint[GET_URL_MAX];
    const char *set = getenv("HF_ENDPOINT");
    snprintf(endpoint, sizeof endpoint, "%s", set && *set ? set : HUB);
    for (size_t n = strlen(endpoint); n > 0 && endpoint[n - 1] == '/'; n--) endpoint[n - 1] = '\0';
    return endpoint;
}

bool get_path_is_safe(const char *path) {
    if (*path == '\0') return false;
    for (const char *p = path; *p;) {
        const size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.')) return false;
        p += n;
        if (*p == '/' && *++p == '\0') return false;
    }
    for (const unsigned char *p = (const unsigned char *)path; *p; p++)
        if (*p < 32 || *p == 127 || *p == '\\') return false;
    return true;
}

void get_ref_put_revision(QsfStrbuf *b, const char *revision) {
    for (const char *p = revision; *p; p++) {
        if (*p == '/')
            qsf_strbuf_adds(b, "%2F");
        else
            qsf_strbuf_addc(b, *p);
    }
}

/* Letters, digits, and . - _, as hubs allow them; a revision may be refs/pr/1. */
static bool is_name(const char *s, bool slashes) {
    if (!get_path_is_safe(s) || (!slashes && strchr(s, '/')) || strstr(s, "--")) return false;
    return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")] == '\0';
}

static bool copy(char *dst, size_t cap, const char *s, size_t len) {
    if (len >= cap) return false;
    memcpy(dst, s, len);
    dst[len] = '\0';
    return true;
}

static int check(const GetRef *r, const char *text, QsfErr *err) {
    if (!is_name(r->owner, false) || !is_name(r->name, false))
        return qsf_err_set(err, QSF_E_USAGE, "%s: expected hf:OWNER/NAME[:FILE-OR-TYPE]", text);
    if (!is_name(r->revision, true))
        return qsf_err_set(err, QSF_E_USAGE, "%s: \"%s\" is not the name of a revision", text, r->revision);
    if (*r->what && !get_path_is_safe(r->what))
        return qsf_err_set(err, QSF_E_USAGE, "%s: \"%s\" is not the name of a file in a repository", text,
                           r->what);
    return QSF_OK;
}

/* OWNER/NAME[@REVISION][:WHAT] */
static int parse_hub(const char *text, const char *s, GetRef *r, QsfErr *err) {
    const size_t owner = strcspn(s, "/"), rest = owner + (s[owner] == '/');
    const size_t name = strcspn(s + rest, "@:/");
    const char *p = s + rest + name, *revision = "main";
    size_t revision_len = 4;
    if (*p == '@') {
        revision = p + 1;
        revision_len = strcspn(revision, ":");
        p = revision + revision_len;
    }
    if (*p == '/' || (*p == ':' && p[1] == '\0'))
        return qsf_err_set(err, QSF_E_USAGE, "%s: expected hf:OWNER/NAME[:FILE-OR-TYPE]", text);
    const char *what = *p == ':' ? p + 1 : "";
    if (!copy(r->endpoint, sizeof r->endpoint, endpoint_of_hub(), strlen(endpoint_of_hub())) ||
        !copy(r->owner, sizeof r->owner, s, owner) || !copy(r->name, sizeof r->name, s + rest, name) ||
        !copy(r->revision, sizeof r->revision, revision, revision_len) ||
        !copy(r->what, sizeof r->what, what, strlen(what)))
        return qsf_err_set(err, QSF_E_USAGE, "%s: the name is too long", text);
    return check(r, text, err);
}

/* OWNER/NAME/resolve/REVISION/FILE of a hub's URL; false: it is something else. */
static bool split_hub_url(const char *path, GetRef *r) {
    const size_t owner = strcspn(path, "/");
    const char *name = path + owner + (path[owner] == '/');
    const size_t name_len = strcspn(name, "/");
    const char *kind = name + name_len;
    const size_t skip = strncmp(kind, "/resolve/", 9) == 0 ? 9 : strncmp(kind, "/blob/", 6) == 0 ? 6 : 0;
    if (skip == 0) return false;
    const char *revision = kind + skip, *file = revision + strcspn(revision, "/");
    const size_t file_len = *file ? strcspn(file + 1, "?#") : 0;
    return file_len > 0 && !memchr(file + 1, '%', file_len) && copy(r->owner, sizeof r->owner, path, owner) &&
           copy(r->name, sizeof r->name, name, name_len) &&
           copy(r->revision, sizeof r->revision, revision, (size_t)(file - revision)) &&
           copy(r->what, sizeof r->what, file + 1, file_len);
}

static int parse_url(const char *text, GetRef *r, QsfErr *err) {
    const char *hub = endpoint_of_hub();
    const size_t n = strlen(hub);
    if (strlen(text) >= sizeof r->url)
        return qsf_err_set(err, QSF_E_USAGE, "%.80s...: the URL is too long", text);
    if (strncmp(text, hub, n) == 0 && text[n] == '/' && split_hub_url(text + n + 1, r)) {
        (void)copy(r->endpoint, sizeof r->endpoint, hub, n);
        return check(r, text, err);
    }
    memset(r, 0, sizeof *r);
    (void)copy(r->url, sizeof r->url, text, strlen(text));
    return QSF_OK;
}

int get_ref_parse(const char *text, GetRef *out, QsfErr *err) {
    memset(out, 0, sizeof *out);
    if (strncmp(text, "hf:", 3) == 0) return parse_hub(text, text + 3, out, err);
    if (strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0)
        return parse_url(text, out, err);
    return qsf_err_set(err, QSF_E_USAGE, "%s: expected hf:OWNER/NAME[:FILE-OR-TYPE] or https://...", text);
}
