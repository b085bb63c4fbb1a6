/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf.c: qsf-run @VERSION@ as one file, written by tools/amalgamate from the files that it names.
 *
 *     cc -O3 -march=native -o qsf-run qsf.c -lpthread -llz4 -lm
 *
 * The kernels are those of the highest instruction set that the compiler's flags allow. Libraries come in by
 *
 *     -DQSF_WITH_PCRE2 -lpcre2-8           tokenizers with expressions: byte-level BPE, which most models
 *                                          have
 *     -DQSF_WITH_JANSSON -ljansson         reading JSON: model directories with safetensors, --render,
 *                                          --tokenize --jsonl
 *     -DQSF_WITH_INIH -linih               the configuration file
 *     -DQSF_WITH_UTF8PROC -lutf8proc       normal forms of Unicode; letters beyond ASCII in templates
 *     -DQSF_WITH_LIBDEFLATE -ldeflate      faster checksums of QSF files
 *     -DQSF_WITH_ZSTD -lzstd               QSF files whose layers are compressed so
 *     -DQSF_WITH_URING -luring             io_uring
 *
 * and what needs one that is not there is refused by name. -DQSF_NO_MAIN leaves out qsf-run: the rest is a
 * library for programs that include qsf.h. */
#define _GNU_SOURCE  1
#define QK_ONE_FILE  1
#define QK_ONE_LEVEL 1

#define QSF_VERSION "@VERSION@"
#ifndef QSF_DATADIR
#define QSF_DATADIR "@DATADIR@"
#endif

#ifndef QSF_WITH_PCRE2
#define QSF_WITHOUT_PCRE2 1
#endif
#ifndef QSF_WITH_JANSSON
#define QSF_WITHOUT_JANSSON 1
#endif
#ifndef QSF_WITH_INIH
#define QSF_WITHOUT_INIH 1
#endif
#ifndef QSF_WITH_UTF8PROC
#define QSF_WITHOUT_UTF8PROC 1
#endif
#ifndef QSF_WITH_LIBDEFLATE
#define QSF_WITHOUT_LIBDEFLATE 1
#endif
#ifdef QSF_WITH_ZSTD
#define QSF_HAVE_ZSTD 1
#else
#define QSF_HAVE_ZSTD 0
#endif
#ifdef QSF_WITH_URING
#define QSF_HAVE_URING 1
#else
#define QSF_HAVE_URING 0
#endif

/* The same tokens for any compiler: products and sums are rounded separately. */
#ifdef __FAST_MATH__
#error "-ffast-math would change the answers"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
/* Not all functions of a header are used, and here there are no headers. */
#pragma clang diagnostic ignored "-Wunused-function"
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
/* With all files visible, gcc loses track of the relation between an error code and the other results. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
