/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JSON Pointer (RFC 6901) in a fragment of a URI, as "$ref" of a schema has it. */
#include <string.h>

#include "src/base/ascii.h"
#include "src/base/json.h"

#define NAME_MAX_BYTES 256u
#define INDEX_DIGITS   9u

/* Reads the name at *at, and moves *at to the '/' or the end after it. false: it is too long or not valid. */
static bool read_name(const char **at, char name[NAME_MAX_BYTES]) {
    size_t n = 0;
    const char *p = *at;
    for (; *p != '\0' && *p != '/' && n + 1 < NAME_MAX_BYTES; p++) {
        char c = *p;
        if (c == '%') {
            if (qsf_hex_digit(p[1]) < 0 || qsf_hex_digit(p[2]) < 0) return false;
            c = (char)(qsf_hex_digit(p[1]) * 16 + qsf_hex_digit(p[2]));
            p += 2;
        }
        if (c == '~') {
            if (p[1] != '0' && p[1] != '1') return false;
            c = *++p == '0' ? '~' : '/';
        }
        name[n++] = c;
    }
    name[n] = '\0';
    *at = p;
    return n + 1 < NAME_MAX_BYTES;
}

static const QsfJson *step_into(const QsfJson *v, const char *name) {
    const size_t digits = strspn(name, "0123456789");
    size_t i = 0;
    if (qsf_json_type(v) != QSF_JSON_ARRAY) return qsf_json_get(v, name);
    if (digits == 0 || digits > INDEX_DIGITS || name[digits] != '\0') return NULL;
    for (; *name != '\0'; name++) i = i * 10 + (size_t)(*name - '0');
    return qsf_json_at(v, i);
}

const QsfJson *qsf_json_pointer(const QsfJson *root, const char *fragment) {
    char name[NAME_MAX_BYTES];
    if (fragment == NULL || *fragment++ != '#') return NULL;
    while (root != NULL && *fragment == '/') {
        fragment++;
        if (!read_name(&fragment, name)) return NULL;
        root = step_into(root, name);
    }
    return *fragment == '\0' ? root : NULL;
}
