/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Inside of QsfTokenizer, for the files that implement tokenizer.h. */
#ifndef QSF_TEXT_TOKENIZER_IMPL_H
#define QSF_TEXT_TOKENIZER_IMPL_H

#include "src/base/arena.h"
#include "src/text/bpe.h"
#include "src/text/roles.h"
#include "src/text/special.h"
#include "src/text/spm.h"

struct QsfTokenizer {
    QsfArena arena;           /* holds this struct and all its tables */
    uint64_t pattern_bytes;   /* charged for compiled expressions, which live on the libc heap */
    QsfVocab vocab;
    QsfSpecials specials;
    QsfRoles roles;
    bool is_bpe;
    QsfSpm spm;               /* where !is_bpe */
    QsfBpe bpe;               /* where is_bpe */
    bool add_bos, add_eos;
    bool add_space_prefix;    /* a space in front of a text and after special tokens */
    bool clean_spaces;        /* detokenizing a whole text tidies spaces before punctuation */
    char warning[256];
};

#endif
