/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of the conversation as text to be taken out: messages, and blocks of code by their number. Text is
 * as on the screen, with control characters as visible marks, but in UTF-8 and unwrapped. One thread. */
#ifndef QSF_UI_EXCERPT_H
#define QSF_UI_EXCERPT_H

#include "ui/md/parse.h"
#include "ui/transcript.h"

typedef struct UiExcerpt {
    UiBuf text;        /* the caller frees it with ui_buf_free */
    char language[32]; /* of code, "" = none */
    unsigned number;   /* of the code or the message */
} UiExcerpt;

/* Block k of code, 0 = the last one. Blocks are numbered from 1 over all answers in the transcript, in their
 * order: the same numbers as on the screen. false if there is none or without memory; *n is how many there
 * are. */
bool ui_excerpt_code(const UiTranscript *t, unsigned k, UiExcerpt *out, unsigned *n);
/* Calls fn for each block of code, with its number; returns how many there are. */
unsigned ui_excerpt_codes(const UiTranscript *t, void (*fn)(void *arg, unsigned k, const UiMdCode *code),
                          void *arg);
/* Message n of the conversation, without its reasoning; 0 = the last answer. false as above. */
bool ui_excerpt_message(const UiTranscript *t, unsigned n, UiExcerpt *out, const UiItem **item);
/* "c, 14 lines, 512 bytes" */
void ui_excerpt_size(const UiExcerpt *t, char *dst, size_t cap);

#endif
