/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What operating systems do differently, for the programs. Not installed. Any thread. */
#ifndef QSF_SYSTEM_H
#define QSF_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A pipe whose ends are closed when another program is executed; nonblocking: neither end waits. False with
 * errno. */
bool qsf_pipe(int ends[2], bool nonblocking);
/* A stream socket of a family (AF_INET) that is closed when another program is executed, and never waits. -1
 * with errno. */
int qsf_stream_socket(int family);
/* The event of poll that says that the other side has closed a stream socket, or its half of it. It may come
 * together with POLLHUP and POLLERR, which need not be asked for. */
short qsf_poll_closed(void);
/* Opens a file without a name in $TMPDIR, or else /tmp, for reading and writing. It is gone when it is
 * closed. -1 with errno. */
int qsf_temp_file(void);
/* Writes all bytes, however many calls that takes. False with errno. */
bool qsf_write_all(int fd, const void *bytes, size_t len);
/* Starts argv[0], which is looked for in $PATH, in its own process group, so that ^C on the terminal
 * does not reach it. Signals have their usual effect in it, and its errors go to /dev/null. in, out: its
 * standard input and output, which the caller closes; -1: /dev/null. Returns 0, and the caller waits for
 * *pid; or why it cannot be started (an errno). Some systems return 0 then, and it ends with 127 at once. */
int qsf_spawn_apart(pid_t *pid, const char *const *argv, int in, int out);
/* The path of the running program. False if the system does not tell it, or it needs more than cap bytes. */
bool qsf_program_path(char *out, size_t cap);
/* A path that executes this program, also when its file has been replaced, where the system can do that. */
bool qsf_program_again(char *out, size_t cap);
/* *same: is the parent process the same program? Returns the bytes that the parent then has in RAM; 0 if
 * they are not known. */
uint64_t qsf_parent_bytes(bool *same);

#endif
