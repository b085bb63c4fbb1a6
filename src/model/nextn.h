/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Next-token blocks: blocks after the model's last one, each of which predicts one token further. Block k is
 * a separate program: its inputs are the embedding of a token and the model's state at the position before it
 * (QsfProgram.given), its row p predicts the token at p + 1 from the token at p. Its KV cache has the model's
 * positions. Tensors: "blk.N.nextn.*" beside those of an ordinary block, N after the last block
 * (ggml-org/llama.cpp gguf-py). */
#ifndef QSF_MODEL_NEXTN_H
#define QSF_MODEL_NEXTN_H

#include "src/model/build.h"

/* Returns how many such blocks the model has, with their tensors, and in a family that can run them. */
uint32_t qsf_nextn_count(const QsfModel *m);
/* Writes why a model that announces such blocks has none that can be run; "" if there is nothing to say. */
void qsf_nextn_notice(const QsfModel *m, char *dst, size_t cap);

/* Opens block k as a separate model, with all checks. m must outlive it: they share the source.
 * borrow: its head is the model's, if it has none of its own, and has no rows here (QsfUnitSpec.borrowed).
 * QSF_E_MODEL: m has no such block, or it is not supported. On success *out must be closed. */
int qsf_nextn_open(QsfModel *out, const QsfModel *m, uint32_t k, bool borrow, QsfErr *err);

/* ---- for build_parts.c: the parts that differ from those of a model ---- */

/* The embedding table, if the block has its own; then true. */
bool qsf_nextn_embed(QsfBuilder *b);
/* x = eh_proj * (enorm(x), hnorm(given)). */
void qsf_nextn_begin(QsfBuilder *b);
/* As qsf_build_head: the norm and the matrix of the block, where it has them. */
void qsf_nextn_head(QsfBuilder *b, QsfNormKind kind, const char *norm_name);

#endif
