/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No pipe2, dup3, fdatasync (declared), syscall numbers or copy_file_range there. */
#ifndef STUB_UNISTD_H
#define STUB_UNISTD_H
#include "qsf_darwin.h"
#define STDIN_FILENO         0
#define STDOUT_FILENO        1
#define STDERR_FILENO        2
#define F_OK                 0
#define X_OK                 1
#define W_OK                 2
#define R_OK                 4
#define SEEK_SET             0
#define SEEK_CUR             1
#define SEEK_END             2
#define _SC_NPROCESSORS_CONF 57
#define _SC_NPROCESSORS_ONLN 58
#define _SC_PAGESIZE         29
#define _SC_OPEN_MAX         5
#define _SC_THREAD_STACK_MIN 93
int access(const char *path, int mode);
unsigned alarm(unsigned s);
int chdir(const char *path);
int close(int fd);
int dup(int fd);
int dup2(int from, int to);
int execvp(const char *file, char *const argv[]);
void _exit(int code) __attribute__((noreturn));
int faccessat(int dir, const char *path, int mode, int flags);
pid_t fork(void);
int fsync(int fd);
int ftruncate(int fd, off_t size);
char *getcwd(char *buf, size_t n);
uid_t geteuid(void);
pid_t getpid(void);
pid_t getppid(void);
uid_t getuid(void);
int isatty(int fd);
int linkat(int from, const char *a, int to, const char *b, int flags);
int link(const char *a, const char *b);
off_t lseek(int fd, off_t off, int whence);
int pipe(int fd[2]);
ssize_t pread(int fd, void *p, size_t n, off_t off);
ssize_t pwrite(int fd, const void *p, size_t n, off_t off);
ssize_t read(int fd, void *p, size_t n);
ssize_t readlink(const char *path, char *buf, size_t n);
ssize_t readlinkat(int dir, const char *path, char *buf, size_t n);
int rmdir(const char *path);
int setpgid(pid_t pid, pid_t group);
int symlink(const char *to, const char *path);
long sysconf(int name);
int unlink(const char *path);
int unlinkat(int dir, const char *path, int flags);
int usleep(useconds_t us);
ssize_t write(int fd, const void *p, size_t n);
#endif
