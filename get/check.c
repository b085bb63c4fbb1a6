/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "get/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/platform.h"
#include "src/model/model.h"

#define HEAD_MOST   ((uint64_t)64 << 20) /* bytes that are looked at */
#define MEMORY_MOST ((uint64_t)256 << 20)

/* A file in memory that begins with the first `bytes` of fd and has a hole as long as the rest; -1 without
 * memory. */
static int copy_head(int fd, uint64_t bytes, uint64_t total) {
    const size_t cap = (size_t)1 << 20;
    const int head = qsf_os_memory_file("qsf-get");
    char *buf = malloc(cap);
    bool ok = head >= 0 && buf && ftruncate(head, (off_t)total) == 0;
    for (uint64_t at = 0; ok && at < bytes;) {
        const size_t want = bytes - at < cap ? (size_t)(bytes - at) : cap;
        const ssize_t n = pread(fd, buf, want, (off_t)at);
        ok = n > 0 && pwrite(head, buf, (size_t)n, (off_t)at) == n;
        at += n > 0 ? (uint64_t)n : 0;
    }
    free(buf);
    if (!ok && head >= 0) close(head);
    return ok ? head : -1;
}

int get_check(int fd, const char *name, uint64_t done, uint64_t total, QsfErr *err) {
    char path[QSF_FD_PATH_MAX];
    QsfModel m;
    QsfErr why = { 0 };
    QsfLedger ledger;
    const uint64_t bytes = done < HEAD_MOST ? done : HEAD_MOST;
    const int head = total > 0 ? copy_head(fd, bytes, total) : -1;
    if (head < 0) return QSF_OK;
    qsf_os_fd_path(head, path);
    qsf_file_known_end(bytes);
    qsf_ledger_init(&ledger, MEMORY_MOST);
    const int rc = qsf_model_open(&m, path, NULL, &ledger, &why);
    if (rc == QSF_OK) qsf_model_close(&m);
    qsf_ledger_destroy(&ledger);
    qsf_file_known_end(UINT64_MAX);
    close(head);
    /* Any other failure may be one of the beginning alone. */
    if (rc != QSF_E_MODEL) return QSF_OK;
    const size_t n = strlen(path);
    const char *reason = strncmp(why.msg, path, n) == 0 ? why.msg + n + strspn(why.msg + n, ": ") : why.msg;
    return qsf_err_set(err, QSF_E_MODEL, "%s: %s", name, reason);
}
