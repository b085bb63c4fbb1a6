/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_MACH_O_DYLD_H
#define STUB_MACH_O_DYLD_H
#include <stdint.h>
int _NSGetExecutablePath(char *path, uint32_t *bytes);
#endif
