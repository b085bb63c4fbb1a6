/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/file/habits.h"

#include <string.h>

#include "src/base/crc32.h"

const char *qsf_habits_fault(const unsigned char *p, size_t bytes, uint32_t n, const uint64_t *model) {
    if (bytes < QSF_HABITS_AT_DEPTH || memcmp(p, QSF_HABITS_MAGIC, QSF_HABITS_AT_VERSION) != 0)
        return "is not a file of habits";
    if (qsf_habits_get(p + QSF_HABITS_AT_VERSION, 4) != QSF_HABITS_VERSION)
        return "is of another format version";
    if (qsf_habits_get(p + QSF_HABITS_AT_N, 4) != n ||
        (model != NULL && qsf_habits_get(p + QSF_HABITS_AT_MODEL, 8) != *model))
        return "is of another model";
    if (bytes != qsf_habits_file_bytes(n) || qsf_habits_get(p + bytes - 4, 4) != qsf_crc32(0, p, bytes - 4))
        return "is damaged";
    return qsf_habits_get(p + QSF_HABITS_AT_TOKENS, 4) > QSF_HABITS_TOKENS ? "is damaged" : NULL;
}
