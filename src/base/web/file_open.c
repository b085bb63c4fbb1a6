/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that the page reads. A read is a message to the owner's thread, which starts it and continues; the
 * thread that reads sleeps until it is done. So several reads are on their way at a time, and the page stays
 * responsive while a server is slow. */
#include "src/base/file.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <emscripten.h>
#include <emscripten/threading.h>

#include "src/base/platform.h"
#include "src/base/web/web.h"

#define FILES_MAX 64 /* parts of a model */

static struct {
    char *name;
    uint64_t size;
} files[FILES_MAX];
static int n_files;

int qsf_web_file_add(const char *name, uint64_t size) {
    if (n_files == FILES_MAX || (files[n_files].name = strdup(name)) == NULL) return -1;
    files[n_files].size = size;
    return n_files++;
}

int qsf_file_open(QsfFile *f, const char *path, QsfErr *err) {
    *f = (QsfFile){ .fd = -1 };
    int i = 0;
    while (i < n_files && strcmp(files[i].name, path) != 0) i++;
    if (i == n_files)
        return qsf_err_set(err, QSF_E_MODEL, "%s: is not one of the files that the page was given", path);
    f->path = strdup(path);
    if (f->path == NULL) return qsf_err_memory(err, "%s", path);
    f->fd = i;
    f->size = files[i].size;
    f->ino = (ino_t)i;
    return QSF_OK;
}

void qsf_file_close(QsfFile *f) {
    free(f->path);
    *f = (QsfFile){ .fd = -1 };
}

/* A read on its way. The page writes the bytes and `got`, then `done`. */
typedef struct Read {
    double off;
    int file;
    uint32_t len;
    uint8_t *dst;
    int got; /* bytes, or -errno */
    atomic_uint done;
} Read;

/* clang-format off */
EM_JS(void, page_read, (int file, double off, unsigned len, void *dst, int *got, void *done), {
    Module.readFile(file, off, len >>> 0, dst >>> 0, got >>> 0, done >>> 0);
})
/* clang-format on */

/* In the owner's thread. */
static void start(void *arg) {
    Read *r = arg;
    page_read(r->file, r->off, r->len, r->dst, &r->got, &r->done);
}

int64_t qsf_file_read_some(const QsfFile *f, void *dst, size_t len, uint64_t off) {
    if (emscripten_is_main_runtime_thread()) return -EDEADLK;
    Read r = { .file = f->fd, .off = (double)off, .dst = dst, .len = (uint32_t)len };
    emscripten_async_run_in_main_runtime_thread(EM_FUNC_SIG_VI, start, &r);
    while (atomic_load(&r.done) == 0) qsf_os_sleep(&r.done, 0);
    return r.got;
}

void qsf_file_will_need(const QsfFile *f, uint64_t off, uint64_t len) {
    (void)f;
    (void)off;
    (void)len;
}

/* The page refuses to read a file that has changed. */
int qsf_file_unchanged(const QsfFile *f, QsfErr *err) {
    (void)f;
    (void)err;
    return QSF_OK;
}

int qsf_file_open_direct(const QsfFile *f) {
    (void)f;
    errno = EINVAL;
    return -1;
}
