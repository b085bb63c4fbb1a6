/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each format offers to qsf_source_open (open.c), which lists them. A reader depends on the interface of
 * sources (source.h, source_impl.h) and on what is shared in this folder, not on other formats. */
#ifndef QSF_FILE_FORMAT_H
#define QSF_FILE_FORMAT_H

#include "src/file/source_impl.h"

/* A format of single files. */
typedef struct QsfFormat {
    const char *name; /* what qsf_source_format returns; `open` may add a version */
    /* Is it a file of this format? head: its first n bytes, at most QSF_SNIFF_BYTES (sniff.h). */
    bool (*matches)(const unsigned char *head, size_t n);
    /* Fills s from files[0], which is open, and from files next to it. Errors as of qsf_source_open; the
     * caller closes s, also after a failure. */
    int (*open)(QsfSource *s, QsfErr *err);
} QsfFormat;

extern const QsfFormat qsf_format_gguf; /* gguf/gguf.c */
extern const QsfFormat qsf_format_qsf;  /* qsf/read.c. Header, index and metadata are checked against their
                                           checksums; embedding, layers and final section are not, since that
                                           would read the whole file (qsf/verify.h) */
extern const QsfFormat qsf_format_tokenizer_json; /* vocab/open.c */
extern const QsfFormat qsf_format_sentencepiece;  /* vocab/open.c */

/* hf/dir.c: fills s, which has no files yet, from a Hugging Face directory: config.json, the weights and the
 * vocabulary. Without weights in it, or if they are not wanted: from the vocabulary, and what config.json and
 * generation_config.json, if they exist, say about its tokens; a directory that has neither is reported as
 * one without weights if those are wanted. Errors as above. */
int qsf_hf_dir_open(QsfSource *s, const char *dir, bool weights, QsfErr *err);
/* hf/peft.c: the same from a PEFT directory. */
int qsf_hf_adapter_open(QsfSource *s, const char *dir, const QsfAdapterBase *base, QsfErr *err);

#endif
