/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "src/base/paths.h"

static int failed(const QsfNewFile *f, const char *what, int why, QsfErr *err) {
    if (why == ENOMEM) return qsf_err_memory(err, "%s", f->path);
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot %s: %s", f->path, what, strerror(why));
}

int qsf_newfile_create(QsfNewFile *f, const char *path, QsfErr *err) {
    *f = (QsfNewFile){ .path = strdup(path) };
    if (f->path == NULL) return qsf_err_memory(err, "%s", path);
    int why = qsf_savefile_create(&f->file, path, 0666, NULL);
    if (why == 0) return QSF_OK;
    (void)failed(f, "create a file there", why, err);
    free(f->path);
    f->path = NULL;
    return QSF_E_RUNTIME;
}

static int give_name(QsfNewFile *f, QsfErr *err) {
    int why = qsf_savefile_replace(&f->file, qsf_path_name(f->path));
    if (why == 0) return QSF_OK;
    return failed(f, f->file.temp[0] != '\0' ? "rename it" : "give it its name", why, err);
}

int qsf_newfile_commit(QsfNewFile *f, QsfErr *err) {
    int why = qsf_savefile_sync(&f->file);
    int rc = why == 0 ? give_name(f, err) : failed(f, "write it to the disk", why, err);
    if (rc == QSF_OK && (why = qsf_savefile_sync_folder(&f->file)) != 0)
        rc = failed(f, "write its folder to the disk", why, err);
    qsf_newfile_discard(f);
    return rc;
}

void qsf_newfile_discard(QsfNewFile *f) {
    if (f->path == NULL) return;
    qsf_savefile_close(&f->file, false);
    free(f->path);
    f->path = NULL;
}

char *qsf_newfile_part(const char *path) {
    char *name = malloc(strlen(path) + QSF_PART_EXTRA);
    if (name != NULL) qsf_savefile_part(name, path);
    return name;
}

int qsf_newfile_hold(const char *part) {
    int fd = open(part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        (void)flock(fd, LOCK_EX | LOCK_NB); /* a file system without locks: then nothing is removed either */
    return fd;
}
