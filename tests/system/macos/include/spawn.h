/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SPAWN_H
#define STUB_SPAWN_H
#include "qsf_darwin.h"
#define POSIX_SPAWN_SETPGROUP  0x0002
#define POSIX_SPAWN_SETSIGDEF  0x0004
#define POSIX_SPAWN_SETSIGMASK 0x0008
typedef void *posix_spawnattr_t;
typedef void *posix_spawn_file_actions_t;
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *f, const posix_spawnattr_t *a,
                char *const argv[], char *const env[]);
int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *f,
                 const posix_spawnattr_t *a, char *const argv[], char *const env[]);
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *f, int from, int to);
int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *f, int fd, const char *path, int flags,
                                     mode_t mode);
int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *f);
int posix_spawn_file_actions_init(posix_spawn_file_actions_t *f);
int posix_spawnattr_destroy(posix_spawnattr_t *a);
int posix_spawnattr_init(posix_spawnattr_t *a);
int posix_spawnattr_setflags(posix_spawnattr_t *a, short flags);
int posix_spawnattr_setsigdefault(posix_spawnattr_t *a, const sigset_t *s);
int posix_spawnattr_setsigmask(posix_spawnattr_t *a, const sigset_t *s);
#endif
