/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For loops with a constant count whose index must be a constant, in shifts and as a register number. */
#ifndef QSF_KERNELS_UNROLL_H
#define QSF_KERNELS_UNROLL_H

#ifdef __clang__
#define QK_UNROLL    _Pragma("unroll")
#define QK_NO_UNROLL _Pragma("nounroll")
#else
#define QK_UNROLL    _Pragma("GCC unroll 64")
#define QK_NO_UNROLL _Pragma("GCC unroll 1")
#endif

/* Calls F(0) to F(n - 1), with n at most 32, each with a constant argument. Around other unrolled
 * loops this takes gcc a fraction of the time of QK_UNROLL, which updates the SSA form of the whole
 * function after each level of nesting. Without optimization it is a loop: the copies would each have
 * variables of their own in the frame. */
#ifdef __OPTIMIZE__
#define QK_REPEAT(n, F)       \
    do {                      \
        QK_REPEAT_8(n, F, 0)  \
        QK_REPEAT_8(n, F, 8)  \
        QK_REPEAT_8(n, F, 16) \
        QK_REPEAT_8(n, F, 24) \
    } while (0)
#else
#define QK_REPEAT(n, F) \
    for (int repeat_i = 0; repeat_i < (n); repeat_i++) F(repeat_i)
#endif
#define QK_REPEAT_8(n, F, i) \
    QK_REPEAT_2(n, F, i) QK_REPEAT_2(n, F, i + 2) QK_REPEAT_2(n, F, i + 4) QK_REPEAT_2(n, F, i + 6)
#define QK_REPEAT_2(n, F, i) \
    if ((n) > (i)) F((i));   \
    if ((n) > (i) + 1) F((i) + 1);

#endif
