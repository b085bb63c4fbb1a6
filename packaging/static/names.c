/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Services, for static programs: c-ares asks for them where a port has a name, which no URL here has. Those
 * of glibc load the shared libraries that /etc/nsswitch.conf names, which are of another version of it on
 * most systems. */
#include <netdb.h>
#include <stddef.h>

struct servent *getservbyname(const char *name, const char *protocol) {
    (void)name;
    (void)protocol;
    return NULL;
}

int getservbyport_r(int port, const char *protocol, struct servent *entry, char *buf, size_t len,
                    struct servent **found) {
    (void)port;
    (void)protocol;
    (void)entry;
    (void)buf;
    (void)len;
    *found = NULL;
    return 0;
}
