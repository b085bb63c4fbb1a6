/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Quantization codes of QSF files (man/qsf-format.5), as numbers; type_codes.c maps them to weight types. */
#ifndef QSF_FILE_QSF_TYPE_CODES_H
#define QSF_FILE_QSF_TYPE_CODES_H

enum {
    QSFF_2BIT_SYM,
    QSFF_2BIT,
    QSFF_3BIT,
    QSFF_4BIT,
    QSFF_TERNARY,
    QSFF_MIXED,
    QSFF_8BIT,
    QSFF_F16,
    QSFF_F32,
    QSFF_BF16,
    QSFF_2BIT_BOOK,
    QSFF_3BIT_BOOK,
    QSFF_4BIT_BOOK,
    QSFF_I2_256,
    QSFF_I2_32,
    QSFF_F8_E4M3,
    QSFF_F8_E5M2,
    QSFF_GGML = 64,        /* 64 + T is GGML type T */
    QSFF_LAYER_CODE = 0xFF /* of a tensor: the code of its layer */
};

#endif
