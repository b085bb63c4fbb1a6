/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files that implement chat.h. */
#ifndef QSF_TEXT_CHAT_IMPL_H
#define QSF_TEXT_CHAT_IMPL_H

#include "src/base/json.h"
#include "src/text/chat.h"
#include "src/text/jinja.h"

#define QSF_CHAT_VARS 32  /* special token variables of a template */
#define QSF_CHAT_MORE 256 /* additional_special_tokens */

/* A special token that the template may name: bos_token, ... */
typedef struct QsfChatVar {
    char *name, *text;
} QsfChatVar;

struct QsfChatTemplate {
    QsfJinja *jinja;
    char *name;  /* "model", "model:NAME" or a file name without its extension */
    char *model; /* for a model's own template: the model's file, for messages; otherwise NULL */
    char *source;
    size_t source_len;
    QsfChatVar vars[QSF_CHAT_VARS]; /* (n_vars) */
    size_t n_vars;
    char *more[QSF_CHAT_MORE]; /* (n_more) */
    size_t n_more;
};

/* --- chat_files.c: the template directories --- */
/* The whole file at path and a NUL, malloc'ed. QSF_E_MODEL, also if it has more than max bytes. */
int qsf_chat_read_path(const char *path, size_t max, char **text, size_t *len, QsfErr *err);

/* --- chat_config.c: templates in Hugging Face directories --- */
/* Reads tokenizer_config.json, chat_template.json, or the directory that contains them (or
 * chat_template.jinja). variant NULL: the default one. out->name is not changed. QSF_E_MODEL, QSF_E_USAGE (no
 * such variant). */
int qsf_chat_config_read(const char *path, const char *variant, QsfChatFile *out, QsfErr *err);

/* --- chat_vars.c: the special tokens available to a template --- */
/* From the vocabulary and its metadata, overridden by a tokenizer_config.json (config, may be NULL). */
int qsf_chat_vars_init(QsfChatTemplate *t, const QsfSource *src, const QsfTokenizer *tok,
                       const QsfJson *config, QsfErr *err);
void qsf_chat_vars_free(QsfChatTemplate *t);
void qsf_chat_vars_bind(const QsfChatTemplate *t, QsfJinjaVars *v);

/* --- chat_reason.c --- */
/* The variables that switch reasoning; none for AUTO. */
void qsf_chat_reason_bind(QsfReason r, QsfJinjaVars *v);

/* --- chat_family.c: files that replace templates that cannot be used --- */
/* The file for a template with this text, or for the vocabulary alone (text NULL), or NULL. */
const char *qsf_chat_family(const QsfSource *src, const QsfTokenizer *tok, const char *text, size_t len);
/* Why a model's own template is known not to be the one it was trained with (use *file), or NULL. */
const char *qsf_chat_placeholder(const char *text, size_t len, const char **file);

/* --- chat_render.c --- */
/* Renders short conversations to test whether the template runs. *raised: it refused one by
 * raise_exception. */
int qsf_chat_try(const QsfChatTemplate *t, bool *raised, QsfErr *err);

/* Appends text to a rendering, as a new segment or to the last one. QSF_E_RUNTIME without memory. */
int qsf_rendered_add(QsfRendered *r, const char *text, size_t len, bool trusted, QsfErr *err);

/* --- chat_encode.c --- */
/* The second half of qsf_chat_encode; allow: QSF_CHAT_ALLOW_SPECIAL. */
int qsf_chat_encode_rendered(const QsfTokenizer *tok, const QsfRendered *r, bool allow, QsfIds *out,
                             QsfErr *err);

#endif
