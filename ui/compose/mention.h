/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that a message names: words that begin with @. Looks at the file system, changes nothing. */
#ifndef QSF_UI_MENTION_H
#define QSF_UI_MENTION_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/buf.h"

#define UI_MENTION_TRIES 500 /* words with @ of a message that are looked up: pasted text may have many */

/* A walk over a text. */
typedef struct UiMentions {
    const char *text;
    size_t len, at; /* at: where the search continues */
    unsigned tries;
    char path[1024]; /* the file found last, as it can be opened */
    size_t from;     /* where its @ is */
    /* The first word that looks like the path of a file and names none; 0 bytes = there is none. */
    size_t missing, missing_len;
} UiMentions;

/* Finds the next word that begins with @, at the start of the text or after white space or "(", and names
 * something that exists: @path, without punctuation at its end, or @"path with blanks", in which \n, \t, \r,
 * \" and \\ may be written; "~/" is the home directory. @@word is text. */
bool ui_mention_next(UiMentions *m);
/* Whether the word that ends at text[point] is a mention that is being typed: *from is where its path begins,
 * after the @ and a quote. *quoted: there is a quote. */
bool ui_mention_typed(const char *text, size_t point, size_t *from, bool *quoted);
/* Appends a mention of a path, in quotes and with escapes where it needs them, and a blank. */
void ui_mention_add(UiBuf *b, const char *path);

#endif
