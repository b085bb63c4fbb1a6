/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changes a valid GGUF file into an invalid one, for tests of refusals. */
#ifndef QSF_TESTS_GGUF_EDIT_H
#define QSF_TESTS_GGUF_EDIT_H

/* Copies in, which gguf_build.h wrote, to out with the edits (NULL-terminated) applied:
 *   drop=KEY          without this metadata entry
 *   u32=KEY=N  f32=KEY=X  str=KEY=TEXT  bool=KEY=0   this value in place of the old one, or a new entry; \0
 *                                                    is a NUL
 *   count=KEY=N       an array of N elements: cut off, or filled up with zeros
 *   drop-tensor=NAME  without this tensor
 *   rename=NAME=NEW   under another name
 *   shape=NAME=A,B    with A columns and B rows (B may be missing) of the same type, F32 or F16
 *   type=NAME=N       with this GGML type
 *   nan=NAME          its first value, of an F32 tensor, is not a number
 * 0, or -1: an edit is malformed or names nothing, or a file cannot be read or written. */
int qsf_test_edit_gguf(const char *in, const char *out, const char *const *edits);

#endif
