/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metadata keys for properties of a tokenizer.json that GGUF's specification has no keys for. They complement
 * tokenizer.ggml.*, take precedence over tokenizer.ggml.pre, and are copied when such a source is
 * converted. */
#ifndef QSF_FILE_VOCAB_KEYS_H
#define QSF_FILE_VOCAB_KEYS_H

/* strings: the steps of the normalizer and the pre-tokenizer, each a name and its arguments
 * (src/token/steps.c); may be empty. If it is present, text is tokenized as huggingface/tokenizers does, and
 * the keys of the pre-tokenizer below do not count. */
#define QSF_KEY_STEPS "qsf.tokenizer.steps"
/* i32 arrays: ids of added tokens (only these are searched for if there are steps), of those that the model
 * does not know, of those that are found only as a separate word, and of those that are searched for after
 * normalization */
#define QSF_KEY_ADDED       "qsf.tokenizer.added"
#define QSF_KEY_ADDED_ONLY  "qsf.tokenizer.added_only"
#define QSF_KEY_SINGLE_WORD "qsf.tokenizer.single_word"
#define QSF_KEY_NORMALIZED  "qsf.tokenizer.normalized"
/* u32: id for text without a token, which is dropped without this key; only if there are steps */
#define QSF_KEY_UNKNOWN "qsf.tokenizer.unknown"
/* bools: text without a token becomes byte tokens; a run of such text is one unknown token */
#define QSF_KEY_BYTE_FALLBACK "qsf.tokenizer.byte_fallback"
#define QSF_KEY_FUSE_UNKNOWN  "qsf.tokenizer.fuse_unknown"
/* bool: text after a user-defined token gets no space prefix, and one before a text that
 * begins with such a token */
#define QSF_KEY_PREFIX_USER "qsf.tokenizer.prefix_before_user_defined"
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
