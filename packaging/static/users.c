/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Users, for static programs: readline asks for them to complete ~user, and for a home directory if HOME is
 * not set. Those of glibc load the shared libraries that /etc/nsswitch.conf names, which are of another
 * version of it on most systems. These read /etc/passwd. */
#include <pwd.h>
#include <stdio.h>
#include <string.h>

static FILE *list;

void endpwent(void) {
    if (list) (void)fclose(list);
    list = NULL;
}

void setpwent(void) { endpwent(); }

struct passwd *getpwent(void) {
    if (!list) list = fopen("/etc/passwd", "re");
    return list ? fgetpwent(list) : NULL;
}

struct passwd *getpwnam(const char *name) {
    struct passwd *p;
    setpwent();
    while ((p = getpwent()) != NULL && strcmp(p->pw_name, name) != 0) {
    }
    return p;
}

struct passwd *getpwuid(uid_t uid) {
    struct passwd *p;
    setpwent();
    while ((p = getpwent()) != NULL && p->pw_uid != uid) {
    }
    return p;
}
