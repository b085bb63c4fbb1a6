/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metadata keys of models that GGUF files of other programs do not have. They begin with the
 * architecture, like those of GGUF. */
#ifndef QSF_FILE_MODEL_KEYS_H
#define QSF_FILE_MODEL_KEYS_H

/* u32: the score of a group of experts is the sum of its best scores, this many of them; 2 if missing
 * (DeepSeek V3), 1 for DeepSeek V2 */
#define QSF_KEY_GROUP_SCORES "qsf.expert_group_scores"
/* bool: the pairs between which YaRN mixes frequencies are rounded to whole ones; true if missing, as readers
 * of GGUF do (ggml-org/llama.cpp). "truncate" in rope_scaling (huggingface/transformers
 * modeling_rope_utils.py); false for gpt-oss. */
#define QSF_KEY_YARN_TRUNCATE "qsf.rope.yarn_truncate"

#endif
