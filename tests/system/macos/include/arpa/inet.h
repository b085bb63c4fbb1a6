/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_ARPA_INET_H
#define STUB_ARPA_INET_H
#include <netinet/in.h>
const char *inet_ntop(int family, const void *a, char *out, socklen_t bytes);
int inet_pton(int family, const char *text, void *out);
#endif
