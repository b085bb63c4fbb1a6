/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/advice.h"

#include <math.h>
#include <stdio.h>

#include "src/engine/number.h"

/* Other keys (mirostat, XTC, the order of the filters) belong to samplers that this program does not have. */
static const struct {
    const char *key, *setting;
} rows[] = {
    { "general.sampling.temp", "temperature" },
    { "general.sampling.top_k", "top-k" },
    { "general.sampling.top_p", "top-p" },
    { "general.sampling.min_p", "min-p" },
    { "general.sampling.penalty_repeat", "repeat-penalty" },
    { "general.sampling.penalty_last_n", "repeat-last-n" },
};
#define N_ROWS (sizeof rows / sizeof *rows)

/* Whole numbers are exact up to 2^24 and printed without a decimal point; larger ones are out of range
 * anyway. */
static bool read_number(const QsfSource *src, const char *key, char *dst, size_t cap) {
    float v;
    QsfErr err = { 0 };
    if (!qsf_meta_has(src, key) || qsf_meta_f32(src, key, 0, &v, &err) != QSF_OK) return false;
    if (!(fabsf(v) < 16777216.0f)) return false;
    qsf_number_print(v, dst, cap);
    return true;
}

void qsf_model_defaults_read(const QsfSource *src, QSFSettings *advice) {
    char value[64], err[256];
    qsf_settings_default(advice);
    for (size_t i = 0; i < N_ROWS; i++) {
        const QSFSetting *row = qsf_setting_find(rows[i].setting);
        if (row != NULL && read_number(src, rows[i].key, value, sizeof value))
            (void)qsf_setting_set(advice, row, value, err, sizeof err);
    }
}

void qsf_model_defaults_apply(QSFSettings *dst, const QSFSettings *advice) {
    char value[64], err[256];
    const uint32_t user_set = dst->user_set;
    for (size_t i = 0; i < N_ROWS; i++) {
        const QSFSetting *row = qsf_setting_find(rows[i].setting);
        if (row == NULL || qsf_setting_user_set(dst, row)) continue;
        qsf_setting_get(advice, row, value, sizeof value);
        (void)qsf_setting_set(dst, row, value, err, sizeof err);
        dst->user_set = user_set; /* not set by the user */
    }
}
