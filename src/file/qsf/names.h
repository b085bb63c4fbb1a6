/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensor types of QSF files (man/qsf-format.5) and their GGUF names. Pure functions. */
#ifndef QSF_FILE_QSF_NAMES_H
#define QSF_FILE_QSF_NAMES_H

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
    QSFT_NAMED /* its name is in the metadata: qsf/named.h */,
    QSFT_N
};
/* Not a tensor type: the result of qsf_tensor_type_of for token_embd.weight, which has a section of its
 * own. */
#define QSFT_EMBED 0x100u

/* Returns the GGUF name of a type, without "blk.N." for those of a layer: "attn_q.weight",
 * "attn_sinks.weight"; "outliers"; for the FFN biases the first name; "named". NULL for an unknown type. */
const char *qsf_tensor_type_name(uint32_t type);
/* Return whether a tensor of this type can be in a layer, or in the final section. False for unknown
 * types. */
bool qsf_tensor_type_in_layer(uint32_t type);
bool qsf_tensor_type_in_final(uint32_t type);
/* Returns whether it is one row of floats: norms, biases, frequencies. */
bool qsf_tensor_type_is_vector(uint32_t type);
/* Returns whether it contains the matrices of all experts, stacked. */
bool qsf_tensor_type_is_experts(uint32_t type);
/* Returns whether it is multiplied with activations: projections, experts, head. Only these can have
 * interleaved rows. */
bool qsf_tensor_type_is_matrix(uint32_t type);

/* Returns the part of a name after "blk.N." and sets *layer; NULL for other names. */
const char *qsf_name_in_layer(const char *name, uint32_t *layer);
/* Finds the type of the tensor with this GGUF name, and its layer (0 if it belongs to no layer). False if QSF
 * has no type for it. */
bool qsf_tensor_type_of(const char *name, uint32_t *type, uint32_t *layer);

/* Returns the types that every layer of this architecture (header bytes 12-15) must have, as a set of bits
 * 1 << type; 0 if the code does not determine them. */
uint64_t qsf_arch_needs(uint32_t arch);

#endif
