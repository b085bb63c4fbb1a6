/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metadata keys for properties of a tokenizer.json that GGUF's specification has no keys for. They complement
 * tokenizer.ggml.*, take precedence over tokenizer.ggml.pre, and are copied when such a source is
 * converted. */
#ifndef QSF_FORMAT_VOCAB_KEYS_H
#define QSF_FORMAT_VOCAB_KEYS_H

/* strings: the expressions of the pre-tokenizer, in order; may be empty */
#define QSF_KEY_PRE_EXPRESSIONS "qsf.tokenizer.pre.expressions"
/* bool: merging starts from characters, not from bytes mapped to characters */
#define QSF_KEY_PRE_CHARACTERS "qsf.tokenizer.pre.characters"
/* bool: spaces become U+2581 first */
#define QSF_KEY_PRE_ESCAPE "qsf.tokenizer.pre.escape_spaces"
/* bool: a piece that is a token is used whole */
#define QSF_KEY_IGNORE_MERGES "qsf.tokenizer.ignore_merges"
/* bool: detokenizing a whole text drops spaces before punctuation */
#define QSF_KEY_CLEAN_SPACES "qsf.tokenizer.clean_up_spaces"
/* string: Unicode normal form that is applied to text first: NFC, NFD, NFKC, NFKD */
#define QSF_KEY_NORMAL_FORM "qsf.tokenizer.normal_form"
/* bool: only the first piece of a text gets the space prefix, not text after a special token */
#define QSF_KEY_PREFIX_FIRST "qsf.tokenizer.prefix_first_only"
/* bool: no space prefix if the text begins with a space */
#define QSF_KEY_PREFIX_MISSING "qsf.tokenizer.prefix_if_missing"
/* i32 arrays: ids of special tokens that absorb the white space before or after them */
#define QSF_KEY_LSTRIP "qsf.tokenizer.lstrip"
#define QSF_KEY_RSTRIP "qsf.tokenizer.rstrip"
/* i32 or u32 array: all tokens that end an answer; ollama/ollama convert/convert.go writes it too */
#define QSF_KEY_ENDS "tokenizer.ggml.eos_token_ids"

#endif
