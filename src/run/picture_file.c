/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/engine/model_info.h"
#include "src/run/picture.h"

bool run_picture_is_stdout(const RunOptions *o) { return o->svg && strcmp(o->svg, "-") == 0; }

/* A picture in place of the model would destroy it. */
static const char *conflict(const RunOptions *o, const QsfRuntime *rt) {
    struct stat st;
    if (stat(o->svg, &st) != 0) return NULL;
    if (!S_ISREG(st.st_mode)) return "is not a regular file";
    for (uint32_t i = 0; i < qsf_source_n_files(rt->model.src); i++) {
        const QsfFile *f = qsf_source_file(rt->model.src, i);
        if (f->dev == st.st_dev && f->ino == st.st_ino) return "is the model";
    }
    return NULL;
}

int run_picture_begin(RunPicture *p, const RunOptions *o, const QsfRuntime *rt) {
    QsfErr err = { 0 };
    *p = (RunPicture){ .path = o->svg };
    if (!o->svg || run_picture_is_stdout(o)) return QSF_EXIT_OK;
    const char *why = conflict(o, rt);
    if (why) {
        qsf_cli_error(&run_cli, "--svg %s: %s", o->svg, why);
        return QSF_EXIT_USAGE;
    }
    /* The file that a symbolic link leads to is replaced, not the link. */
    char *real = realpath(o->svg, NULL);
    const int rc = qsf_newfile_create(&p->file, real ? real : o->svg, &err);
    free(real);
    if (rc == QSF_OK) return QSF_EXIT_OK;
    qsf_err_prefix(&err, "--svg");
    return run_fail(&err);
}

int run_picture_write(RunPicture *p, const QsfStrbuf *svg) {
    QsfErr err = { 0 };
    const int sig = atomic_load(&qsf_signal_cancel);
    if (sig) return 128 + sig;
    if (!qsf_strbuf_ok(svg)) {
        qsf_cli_error(&run_cli, "--svg %s: out of memory", p->path);
        return QSF_EXIT_RUNTIME;
    }
    if (p->file.path == NULL) return run_write_raw(qsf_strbuf_str(svg), svg->len);
    const int why = qsf_savefile_write(&p->file.file, qsf_strbuf_str(svg), svg->len);
    if (why != 0) {
        qsf_cli_error(&run_cli, "--svg %s: %s", p->path, strerror(why));
        return QSF_EXIT_RUNTIME;
    }
    if (qsf_newfile_commit(&p->file, &err) == QSF_OK) return QSF_EXIT_OK;
    qsf_err_prefix(&err, "--svg");
    return run_fail(&err);
}

void run_picture_end(RunPicture *p) { qsf_newfile_discard(&p->file); }

void run_model_title(const RunOptions *o, const QsfRuntime *rt, char *dst, size_t cap) {
    char what[100];
    size_t len = strlen(o->model);
    while (len > 1 && o->model[len - 1] == '/') len--;
    size_t from = len;
    while (from > 0 && o->model[from - 1] != '/') from--;
    qsf_model_summary(&rt->model, what, sizeof what);
    snprintf(dst, cap, "%.*s, %s", (int)(len - from), o->model + from, what);
}
