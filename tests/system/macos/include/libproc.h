/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_LIBPROC_H
#define STUB_LIBPROC_H
#include <sys/resource.h>
#define PROC_PIDPATHINFO_MAXSIZE 4096
int proc_pidpath(int pid, void *buffer, uint32_t bytes);
int proc_pid_rusage(int pid, int flavor, rusage_info_t *out);
#endif
