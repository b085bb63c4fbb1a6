/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SYS_SELECT_H
#define STUB_SYS_SELECT_H
#include "types.h"
int select(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *wait);
#endif
