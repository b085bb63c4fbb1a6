/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SYS_TIME_H
#define STUB_SYS_TIME_H
#include "../qsf_darwin.h"
int gettimeofday(struct timeval *t, void *zone);
#endif
