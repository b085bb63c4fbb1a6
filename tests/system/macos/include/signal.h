/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No real-time signals, sigwaitinfo or signalfd there. */
#ifndef STUB_SIGNAL_H
#define STUB_SIGNAL_H
#include "qsf_darwin.h"
#define SIGHUP       1
#define SIGINT       2
#define SIGQUIT      3
#define SIGILL       4
#define SIGTRAP      5
#define SIGABRT      6
#define SIGFPE       8
#define SIGKILL      9
#define SIGBUS       10
#define SIGSEGV      11
#define SIGSYS       12
#define SIGPIPE      13
#define SIGALRM      14
#define SIGTERM      15
#define SIGURG       16
#define SIGSTOP      17
#define SIGTSTP      18
#define SIGCONT      19
#define SIGCHLD      20
#define SIGTTIN      21
#define SIGTTOU      22
#define SIGXCPU      24
#define SIGXFSZ      25
#define SIGWINCH     28
#define SIGUSR1      30
#define SIGUSR2      31
#define SIG_DFL      ((void (*)(int))0)
#define SIG_IGN      ((void (*)(int))1)
#define SIG_ERR      ((void (*)(int)) - 1)
#define SIG_BLOCK    1
#define SIG_UNBLOCK  2
#define SIG_SETMASK  3
#define SA_RESTART   0x0002
#define SA_RESETHAND 0x0004
#define SA_NODEFER   0x0010
#define SA_SIGINFO   0x0040
typedef int sig_atomic_t;
typedef struct stub_siginfo {
    int si_signo;
    int si_code;
    pid_t si_pid;
    void *si_addr;
} siginfo_t;
struct sigaction {
    union {
        void (*__sa_handler)(int);
        void (*__sa_sigaction)(int, siginfo_t *, void *);
    } __sigaction_u;
    sigset_t sa_mask;
    int sa_flags;
};
#define sa_handler   __sigaction_u.__sa_handler
#define sa_sigaction __sigaction_u.__sa_sigaction
int kill(pid_t pid, int sig);
int raise(int sig);
int sigaction(int sig, const struct sigaction *now, struct sigaction *old);
int sigaddset(sigset_t *s, int sig);
int sigdelset(sigset_t *s, int sig);
int sigemptyset(sigset_t *s);
int sigfillset(sigset_t *s);
int sigismember(const sigset_t *s, int sig);
void (*signal(int sig, void (*fn)(int)))(int);
int sigprocmask(int how, const sigset_t *set, sigset_t *old);
#endif
