/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What to download: "hf:OWNER/NAME[@REVISION][:WHAT]" or a URL. One thread. */
#ifndef QSF_GET_REF_H
#define QSF_GET_REF_H

#include <stdbool.h>

#include "src/base/err.h"
#include "src/base/strbuf.h"

#define GET_NAME_MAX 200 /* bytes of an owner, a name or a revision, with the NUL */
#define GET_WHAT_MAX 1000
#define GET_URL_MAX  4000

typedef struct GetRef {
    char endpoint[GET_URL_MAX]; /* of the hub, without a slash at the end; "" for any other URL */
    char owner[GET_NAME_MAX], name[GET_NAME_MAX];
    char revision[GET_NAME_MAX]; /* "main" by default */
    char what[GET_WHAT_MAX];     /* a file of the repository, or a weight type; "" = choose */
    char url[GET_URL_MAX];       /* if it is not on a hub */
} GetRef;

/* Parses text. A URL of a file on the hub (/OWNER/NAME/resolve/REVISION/FILE, or blob) is the same as its hf:
 * name. QSF_E_USAGE names what is wrong: nothing in a reference may lead out of the folder of a repository.
 * */
int get_ref_parse(const char *text, GetRef *out, QsfErr *err);
/* Appends a revision as one part of a path: refs/pr/1 is refs%2Fpr%2F1. */
void get_ref_put_revision(QsfStrbuf *b, const char *revision);
/* Is path, as a hub or a user gives it, a relative path without "." and "..", empty parts, backslashes and
 * control characters? */
bool get_path_is_safe(const char *path);

#endif
