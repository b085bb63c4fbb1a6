/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading files; the size at open is authoritative. */
#include "src/base/file.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "src/base/checked.h"

static atomic_uint_least64_t fault_off = UINT64_MAX;
static atomic_int fault_errno;

void qsf_file_inject_fault(uint64_t off, int errno_value) {
    atomic_store(&fault_errno, errno_value);
    atomic_store(&fault_off, off);
}

static atomic_uint_least64_t known_end = UINT64_MAX;

void qsf_file_known_end(uint64_t end) { atomic_store(&known_end, end); }

int64_t qsf_file_filter(const QsfFile *f, uint64_t off, uint64_t len, int64_t got) {
    uint64_t at = atomic_load_explicit(&fault_off, memory_order_relaxed);
    const uint64_t end = atomic_load_explicit(&known_end, memory_order_relaxed);
    (void)f;
    if (got > 0 && off + (uint64_t)got > end) got = off < end ? (int64_t)(end - off) : 0;
    if (at < off || at - off >= len) return got;
    int e = atomic_load(&fault_errno);
    if (e != 0) return -e;
    return got > 0 && (uint64_t)got > at - off ? (int64_t)(at - off) : got;
}

int qsf_file_read_error(const QsfFile *f, uint64_t off, int64_t got, QsfErr *err) {
    if (got < 0)
        return qsf_err_file(err, "%s: read error at byte offset %llu: %s", f->path, (unsigned long long)off,
                            strerror((int)-got));
    return qsf_err_file(err, "%s: the file ends at byte offset %llu, but had %llu bytes when it was opened",
                        f->path, (unsigned long long)off, (unsigned long long)f->size);
}

int qsf_file_pread(const QsfFile *f, void *dst, size_t len, uint64_t off, QsfErr *err) {
    if (!qsf_range_ok(off, len, f->size))
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: %zu bytes at byte offset %llu lie outside the file of %llu bytes", f->path,
                           len, (unsigned long long)off, (unsigned long long)f->size);
    char *p = dst;
    while (len > 0) {
        const int64_t n = qsf_file_read_some(f, p, len, off);
        if (n == -EINTR) continue;
        const int64_t got = qsf_file_filter(f, off, len, n);
        if (got <= 0) return qsf_file_read_error(f, off, got, err);
        p += got;
        len -= (size_t)got;
        off += (uint64_t)got;
    }
    return QSF_OK;
}
