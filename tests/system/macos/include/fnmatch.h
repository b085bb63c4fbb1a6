/* SPDX-License-Identifier: GPL-3.0-or-later */
#define FNM_NOMATCH  1
#define FNM_NOESCAPE 0x01
#define FNM_PATHNAME 0x02
#define FNM_PERIOD   0x04
int fnmatch(const char *pattern, const char *text, int flags);
