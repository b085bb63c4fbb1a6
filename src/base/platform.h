/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What operating systems do differently. Each function is implemented by the file of its heading in
 * src/base/linux/, macos/, web/ or posix/: the build takes the one of the system, or else the one of posix/,
 * which uses nothing but POSIX (Makefile: platform_src). So are space.h, wake.h, and the part of file.h that
 * is in file_open.c. The programs use qsf_system.h. Any thread. */
#ifndef QSF_BASE_PLATFORM_H
#define QSF_BASE_PLATFORM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/cpus.h"

/* ---- memory.c; the rest of it is declared in clock.h */

/* Makes the resident set of now the largest one. False if the system does not do that. */
bool qsf_os_reset_peak(void);

/* ---- mapping.c */

/* Maps zeroed private memory, aligned to a page. MAP_FAILED if there is none. */
void *qsf_os_map(size_t bytes);
/* Unmaps all that qsf_os_map or qsf_os_remap returned. */
void qsf_os_unmap(void *p, size_t bytes);
/* Bytes of a page, 4096 or more: a power of 2. */
uint64_t qsf_os_page_bytes(void);
/* Whether pages that were mapped and not touched take no memory. */
bool qsf_os_maps_lazily(void);

/* ---- pages.c */

/* Changes the size of a mapping of `old` bytes, and returns where it is then: contents are kept up to the
 * smaller size, new memory is zero. MAP_FAILED: nothing has changed. Less memory stays in place, and cannot
 * fail. */
void *qsf_os_remap(void *p, size_t old, size_t bytes);
/* Returns whole pages of private memory to the system; they read as zeros afterwards. */
void qsf_os_discard(void *p, size_t bytes);
/* Hints about huge pages; nothing where there are none. Let a range have them: */
void qsf_os_huge_pages(void *p, size_t bytes);
/* ... not have them: */
void qsf_os_small_pages(void *p, size_t bytes);
/* ... split the one that contains `cut`, so that the bytes on one side of it can be returned alone. */
void qsf_os_split_page(void *cut);

/* ---- cpus.c */

/* The CPUs on which the calling thread may run. */
void qsf_os_allowed_cpus(QsfCpuSet *out);
/* Fills c->kind, n_kinds, cores and source, for these CPUs. root: as in qsf_cpus_read. */
void qsf_os_cpu_kinds(QsfCpus *c, const char *root, const QsfCpuSet *allowed);
/* Bytes of the largest cache that cores share; 0 = not known. */
uint64_t qsf_os_cache_bytes(void);

/* ---- threads.c */

/* Sleeps while *word equals seen, until woken. May return early: the caller must check again. No wake-up is
 * lost if the word is changed before qsf_os_wake. */
void qsf_os_sleep(atomic_uint *word, unsigned seen);
/* Wakes threads that sleep on the word, which must have been changed before: all, or at least one. */
void qsf_os_wake(atomic_uint *word, bool all);
/* A condition variable for qsf_os_wait_for. */
void qsf_os_cond_init(pthread_cond_t *c);
/* Waits as pthread_cond_wait, but at most ns nanoseconds, whatever becomes of the time of day. */
void qsf_os_wait_for(pthread_cond_t *c, pthread_mutex_t *m, uint64_t ns);

/* ---- files.c */

/* Name of the way in which qsf_os_open_direct reads, for messages: "O_DIRECT". */
const char *qsf_os_direct_name(void);
/* Opens the file once more, for reads past the page cache: of windows that begin, end and lie in memory at
 * multiples of 4096. path: where it was opened. -1 with errno if that cannot be done. The caller closes it,
 * and checks that it is the same file. */
int qsf_os_open_direct(int fd, const char *path);

typedef enum QsfAdvice {
    QSF_ADVICE_NORMAL,
    QSF_ADVICE_SEQUENTIAL,
    QSF_ADVICE_RANDOM,    /* of the whole file, as the two above */
    QSF_ADVICE_WILL_NEED, /* of a range */
    QSF_ADVICE_DONT_NEED  /* of a range */
} QsfAdvice;
/* Says how a file will be read. A hint: failure is harmless. Bytes 0 at offset 0 = the whole file. */
void qsf_os_advise(int fd, uint64_t off, uint64_t bytes, QsfAdvice advice);
/* Can the byte at off be read without waiting for a disk? path: where fd was opened. Reads nothing. */
bool qsf_os_is_cached(int fd, const char *path, uint64_t off);

/* Sends a range that was written to the disk, and lets the page cache forget it. A hint. */
void qsf_os_write_back(int fd, uint64_t off, uint64_t bytes);
/* Writes a file to the disk, so that it survives a loss of power. -1 with errno. */
int qsf_os_sync(int fd);
/* The same for what was appended to a file, where less is enough: what was written before is on the disk
 * before anything that is written later. -1 with errno. */
int qsf_os_sync_data(int fd);

/* Opens a folder in which names can be made but not listed. -1 with errno. */
int qsf_os_open_unlisted(const char *path);
/* Opens a file without a name in a folder, for reading and writing, which qsf_os_link_nameless can name. It
 * is gone with its process, however that ends. -1 where there is no such thing. */
int qsf_os_open_nameless(int dir, mode_t mode);
/* Gives it the name, which must be free. 0, or an errno value. */
int qsf_os_link_nameless(int fd, int dir, const char *name);
/* Opens an empty file for reading and writing that needs no disk where the system has such files, and is gone
 * when it is closed. -1 with errno. */
int qsf_os_memory_file(const char *name);
/* A path at which this process can open fd again. */
#define QSF_FD_PATH_MAX 40
void qsf_os_fd_path(int fd, char out[QSF_FD_PATH_MAX]);

/* ---- process.c */

/* Fills p with random bytes. False if the system has none yet. */
bool qsf_os_random(void *p, size_t n);
/* Random bytes that are the same for the life of the process; zeros where there are none. */
void qsf_os_process_key(uint64_t key[2]);
/* Where programs of this system keep caches, below the home directory: "/Library/Caches"; NULL if they follow
 * the XDG specification. */
const char *qsf_os_caches_folder(void);
/* Lets what is freed return to the system soon, and not be kept for each thread. Called before threads are
 * started. */
void qsf_os_tame_heap(void);
/* Returns memory that malloc holds without need to the system. */
void qsf_os_trim_heap(void);

#endif
