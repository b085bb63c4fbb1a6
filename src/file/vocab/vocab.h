/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The vocabulary files of Hugging Face and SentencePiece in a model directory. Files that are opened by their
 * name are formats (format.h). */
#ifndef QSF_FILE_VOCAB_VOCAB_H
#define QSF_FILE_VOCAB_VOCAB_H

#include "src/file/source_impl.h"

/* Returns the path of the vocabulary file in a directory, preferring tokenizer.json to tokenizer.model; the
 * caller frees it. NULL with *err set (QSF_E_MODEL) if there is none; the message is about weights first if
 * they are needed and missing. */
char *qsf_vocab_file_in(const char *dir, bool weights, QsfErr *err);
/* Fills s from files[0], a vocabulary of either format, and from tokenizer_config.json and
 * chat_template.jinja next to it: the same keys as a GGUF file, no tensors. n_vocab: the number of tokens the
 * model has rows for, the last ones without text; 0 = as many as the file has. QSF_E_MODEL with path and what
 * is not supported or inconsistent; QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_vocab_read(QsfSource *s, uint32_t n_vocab, QsfErr *err);

#endif
