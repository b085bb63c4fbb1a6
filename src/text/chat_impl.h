/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files that implement chat.h share. */
#ifndef QSF_TEXT_CHAT_IMPL_H
#define QSF_TEXT_CHAT_IMPL_H

#include "src/text/chat.h"
#include "src/text/jinja.h"

struct QsfChatTemplate {
    QsfJinja *jinja;
    char *name; /* "model" or a file name without its ending */
    char *source;
    size_t source_len;
    char *bos, *eos; /* texts of the tokens, "" when the vocabulary has none */
};

/* --- chat_files.c: the template folders --- */
/* Text of the template `name` of the folders, or of the file at that path; malloc'ed. *base is the name to
 * show, malloc'ed. QSF_E_USAGE names what there is, QSF_E_MODEL when a file cannot be read. */
int qsf_chat_file_read(const char *name, char **text, size_t *len, char **base, QsfErr *err);

/* --- chat_render.c --- */
/* Renders one message of a user to see whether the template runs. *raised: it refused by raise_exception. */
int qsf_chat_try(const QsfChatTemplate *t, bool *raised, QsfErr *err);

/* Appends text to a rendering, as a segment or to the last one. QSF_E_RUNTIME without memory. */
int qsf_rendered_add(QsfRendered *r, const char *text, size_t len, bool trusted, QsfErr *err);

/* --- chat_encode.c --- */
/* The second half of qsf_chat_encode. */
int qsf_chat_encode_rendered(const QsfTokenizer *tok, const QsfRendered *r, QsfIds *out, QsfErr *err);

#endif
