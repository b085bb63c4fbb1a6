/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metadata keys of a tokenizer that GGUF has no name for, because its files leave them to the program that reads
 * them: what a tokenizer.json says about itself. They stand beside tokenizer.ggml.*, overrule what
 * tokenizer.ggml.pre would bring, and a file that is made from such a source carries them on. */
#ifndef QSF_FORMAT_VOCAB_KEYS_H
#define QSF_FORMAT_VOCAB_KEYS_H

/* strings: the pre-tokenizer's expressions, in order; may be none */
#define QSF_KEY_PRE_EXPRESSIONS "qsf.tokenizer.pre.expressions"
/* bool: merging begins with characters, not with bytes written as characters */
#define QSF_KEY_PRE_CHARACTERS "qsf.tokenizer.pre.characters"
/* bool: spaces become U+2581 first */
#define QSF_KEY_PRE_ESCAPE "qsf.tokenizer.pre.escape_spaces"
/* bool: a piece that is a token is used whole */
#define QSF_KEY_IGNORE_MERGES "qsf.tokenizer.ignore_merges"
/* bool: detokenizing a whole text drops spaces before punctuation */
#define QSF_KEY_CLEAN_SPACES "qsf.tokenizer.clean_up_spaces"
/* string: Unicode normal form that text is brought into first: NFC, NFD, NFKC, NFKD */
#define QSF_KEY_NORMAL_FORM "qsf.tokenizer.normal_form"
/* bool: only the first piece of a text gets the space prefix, not what follows a special token */
#define QSF_KEY_PREFIX_FIRST "qsf.tokenizer.prefix_first_only"
/* bool: no space prefix where the text begins with a space */
#define QSF_KEY_PREFIX_MISSING "qsf.tokenizer.prefix_if_missing"
/* i32 arrays: ids of special tokens that take the white space before or behind them */
#define QSF_KEY_LSTRIP "qsf.tokenizer.lstrip"
#define QSF_KEY_RSTRIP "qsf.tokenizer.rstrip"

#endif
