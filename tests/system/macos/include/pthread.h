/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No pthread_condattr_setclock, barriers, spin locks or affinity there. */
#ifndef STUB_PTHREAD_H
#define STUB_PTHREAD_H
#include "qsf_darwin.h"
#define OPAQUE(name, bytes)      \
    typedef struct stub_##name { \
        long sig;                \
        char opaque[bytes];      \
    } name;
typedef struct stub_thread *pthread_t;
OPAQUE(pthread_attr_t, 56)
OPAQUE(pthread_mutex_t, 56)
OPAQUE(pthread_mutexattr_t, 8)
OPAQUE(pthread_cond_t, 40)
OPAQUE(pthread_condattr_t, 8)
OPAQUE(pthread_once_t, 8)
OPAQUE(pthread_rwlock_t, 192)
#undef OPAQUE
typedef unsigned long pthread_key_t;
/* clang-format off: the values are those of the system */
#define PTHREAD_MUTEX_INITIALIZER \
    {                             \
        0x32AAABA7, { 0 }         \
    }
#define PTHREAD_COND_INITIALIZER \
    {                            \
        0x3CB0B1BB, { 0 }        \
    }
#define PTHREAD_ONCE_INIT \
    {                     \
        0x30B1BCBA, { 0 } \
    }
/* clang-format on */
#define PTHREAD_CREATE_JOINABLE 1
#define PTHREAD_CREATE_DETACHED 2
int pthread_attr_destroy(pthread_attr_t *a);
int pthread_attr_init(pthread_attr_t *a);
int pthread_attr_setdetachstate(pthread_attr_t *a, int state);
int pthread_attr_setstacksize(pthread_attr_t *a, size_t bytes);
int pthread_cond_broadcast(pthread_cond_t *c);
int pthread_cond_destroy(pthread_cond_t *c);
int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a);
int pthread_cond_signal(pthread_cond_t *c);
int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *end);
int pthread_cond_timedwait_relative_np(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *wait);
int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int pthread_detach(pthread_t t);
int pthread_equal(pthread_t a, pthread_t b);
int pthread_join(pthread_t t, void **result);
int pthread_mutex_destroy(pthread_mutex_t *m);
int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a);
int pthread_mutex_lock(pthread_mutex_t *m);
int pthread_mutex_trylock(pthread_mutex_t *m);
int pthread_mutex_unlock(pthread_mutex_t *m);
int pthread_once(pthread_once_t *o, void (*fn)(void));
pthread_t pthread_self(void);
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
#endif
