/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layout of one block of each of 16 rows: planes of 16 dwords, then halves of 16 words
 * (kernels/x16/x16.h). */
#include "src/file/qsf/groups.h"

#include <inttypes.h>
#include <string.h>

#include "src/file/dtype.h"

enum { PLANE = 4, HALF = 2 }; /* bytes of a row in one */

unsigned qsf_group_planes(uint32_t dtype) {
    const qk_type t = qk_type_of(dtype);
    return t == QK_NONE ? 0 : qk_type_planes(t);
}

bool qsf_group_by_use(uint32_t dtype) {
    const qk_type t = qk_type_of(dtype);
    return t != QK_NONE && qk_type_by_use(t);
}

uint64_t qsf_group_rows(uint64_t rows) {
    return (rows + QSFF_GROUP_ROWS - 1) / QSFF_GROUP_ROWS * QSFF_GROUP_ROWS;
}

/* A block of 16 rows as vectors of 16 lanes: planes, halves, and for a type with an odd number of bytes one
 * vector of single bytes. */
typedef struct Lanes {
    unsigned planes, halves, n;
} Lanes;

static Lanes lanes_of(uint32_t dtype) {
    const unsigned planes = qsf_group_planes(dtype), rest = qsf_dtype(dtype)->block_bytes - planes * PLANE;
    return (Lanes){ planes, rest / HALF, planes + rest / HALF + rest % HALF };
}

/* Returns the start of vector i in the block, and how many bytes of a row it has. */
static unsigned lanes_at(const Lanes *l, unsigned i, unsigned *each) {
    const unsigned planes = i < l->planes ? i : l->planes;
    const unsigned halves = i < l->planes ? 0 : i - l->planes;
    *each = i < l->planes ? PLANE : halves < l->halves ? HALF : 1;
    return QSFF_GROUP_ROWS * (planes * PLANE + halves * HALF);
}

uint32_t qsf_group_spare(const unsigned char *b, uint32_t dtype, unsigned rows) {
    const Lanes l = lanes_of(dtype);
    for (unsigned i = 0; i < l.n; i++) {
        unsigned each, at = lanes_at(&l, i, &each);
        for (unsigned k = at + rows * each; k < at + QSFF_GROUP_ROWS * each; k++)
            if (b[k] != 0) return k;
    }
    return UINT32_MAX;
}

void qsf_group_clear(unsigned char *b, uint64_t blocks, uint32_t dtype, unsigned rows) {
    const Lanes l = lanes_of(dtype);
    for (; blocks > 0; blocks--, b += QSFF_GROUP_ROWS * qsf_dtype(dtype)->block_bytes)
        for (unsigned i = 0; i < l.n; i++) {
            unsigned each, at = lanes_at(&l, i, &each);
            memset(b + at + rows * each, 0, (QSFF_GROUP_ROWS - rows) * each);
        }
}

/* ---- verifying */

#define BLOCK_MAX 256u /* bytes of a block of any type that has groups */

static int check_last(QsfStream *in, const QsfTensorPlace *p, uint64_t blocks, const char *what,
                      QsfErr *err) {
    unsigned char b[QSFF_GROUP_ROWS * BLOCK_MAX];
    const uint32_t bytes = QSFF_GROUP_ROWS * qsf_dtype(p->dtype)->block_bytes;
    int rc = QSF_OK;
    for (; rc == QSF_OK && blocks > 0; blocks--) {
        const uint64_t at = in->pos;
        rc = qsf_stream_take(in, b, bytes, what, err);
        const uint32_t k = rc == QSF_OK ? qsf_group_spare(b, p->dtype, p->head.rows % QSFF_GROUP_ROWS)
                                        : UINT32_MAX;
        if (k != UINT32_MAX)
            rc = qsf_err_set(err, QSF_E_MODEL,
                             "%s: the byte at byte offset %" PRIu64
                             " is not 0, but belongs to a row that only fills up the "
                             "last 16 of %s",
                             in->path, at + k, what);
    }
    return rc;
}

int qsf_groups_verify(QsfStream *in, const QsfTensorPlace *p, const char *what, QsfErr *err) {
    const QsfDtype *d = qsf_dtype(p->dtype);
    const uint64_t blocks = ((uint64_t)p->head.cols + d->block_elems - 1) / d->block_elems;
    const uint64_t last = QSFF_GROUP_ROWS * blocks * d->block_bytes; /* cannot overflow: less than p->bytes */
    if (p->head.layout == QSFF_ROWS || p->head.rows % QSFF_GROUP_ROWS == 0)
        return qsf_stream_skip(in, p->bytes, what, err);
    int rc = qsf_stream_skip(in, p->bytes - d->tail_bytes - last, what, err);
    if (rc == QSF_OK) rc = check_last(in, p, blocks, what, err);
    return rc == QSF_OK ? qsf_stream_skip(in, d->tail_bytes, what, err) : rc;
}
