/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SYS_WAIT_H
#define STUB_SYS_WAIT_H
#include "../qsf_darwin.h"
#define WNOHANG        1
#define WUNTRACED      2
#define WIFEXITED(s)   (((s)&0177) == 0)
#define WEXITSTATUS(s) (((s) >> 8) & 0xff)
#define WIFSIGNALED(s) (((s)&0177) != 0177 && ((s)&0177) != 0)
#define WTERMSIG(s)    ((s)&0177)
#define WIFSTOPPED(s)  (((s)&0177) == 0177 && (s) >> 8 != 0x13)
pid_t waitpid(pid_t pid, int *status, int options);
#endif
