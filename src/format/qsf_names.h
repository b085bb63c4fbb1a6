/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensor types of QSF files (man/qsf-format.5) and the names that GGUF gives the same tensors. Pure
 * functions. */
#ifndef QSF_FORMAT_QSF_NAMES_H
#define QSF_FORMAT_QSF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    QSFT_Q,
    QSFT_K,
    QSFT_V,
    QSFT_O,
    QSFT_GATE,
    QSFT_UP,
    QSFT_DOWN,
    QSFT_ATTN_NORM,
    QSFT_FFN_NORM,
    QSFT_Q_BIAS,
    QSFT_K_BIAS,
    QSFT_V_BIAS,
    QSFT_O_BIAS,
    QSFT_FFN_BIASES /* up, then down, in one row */,
    QSFT_ATTN_NORM_BIAS,
    QSFT_FFN_NORM_BIAS,
    QSFT_Q_NORM,
    QSFT_K_NORM,
    QSFT_POST_ATTN_NORM,
    QSFT_POST_FFN_NORM,
    QSFT_ATTN_SUB_NORM,
    QSFT_FFN_SUB_NORM,
    QSFT_ROUTER,
    QSFT_GATE_EXPERTS,
    QSFT_UP_EXPERTS,
    QSFT_DOWN_EXPERTS,
    QSFT_HEAD,
    QSFT_HEAD_BIAS,
    QSFT_POSITIONS,
    QSFT_ROPE_FREQS,
    QSFT_SINKS,
    QSFT_OUTLIERS /* of the tensor before it */,
    QSFT_FINAL_NORM,
    QSFT_FINAL_NORM_BIAS,
    QSFT_GATE_BIAS,
    QSFT_N
};
/* Not a tensor type: what qsf_tensor_type_of says for token_embd.weight, which has a section of its own. */
#define QSFT_EMBED 0x100u

/* "attn_q.weight", to stand behind "blk.N." for those of a layer; "outliers", "attn_sinks.weight"; of the FFN
 * biases the first. NULL for an unknown type. */
const char *qsf_tensor_type_name(uint32_t type);
/* Whether a tensor of this type can stand in a layer, or in the final section. False for unknown types. */
bool qsf_tensor_type_in_layer(uint32_t type);
bool qsf_tensor_type_in_final(uint32_t type);
/* One row of floats: norms, biases, frequencies. */
bool qsf_tensor_type_is_vector(uint32_t type);
/* Matrices of all experts, one below the other. */
bool qsf_tensor_type_is_experts(uint32_t type);
/* What is multiplied with columns of activations: projections, experts, head. Only these can have their rows interleaved. */
bool qsf_tensor_type_is_matrix(uint32_t type);

/* The type of the tensor with this GGUF name, and its layer (0 for those of no layer). False when QSF has
 * none for it. */
bool qsf_tensor_type_of(const char *name, uint32_t *type, uint32_t *layer);

/* What every layer of this architecture (header bytes 12-15) has, as a set of bits 1 << type; 0 where the
 * code does not say. */
uint64_t qsf_arch_needs(uint32_t arch);

#endif
