/* SPDX-License-Identifier: GPL-3.0-or-later */
typedef int nl_item;
#define CODESET 0
char *nl_langinfo(nl_item item);
