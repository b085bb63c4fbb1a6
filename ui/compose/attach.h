/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text files that go with a message: what @path in it names is appended to it, in a fenced block with the
 * name of the file. One thread. */
#ifndef QSF_UI_ATTACH_H
#define QSF_UI_ATTACH_H

#include <stdint.h>

#include "ui/compose/textfile.h"

struct UiApp;

#define UI_ATTACH_MAX 64 /* files of a message, and of a pattern of /read */

/* What is known of a file, as long as it does not change. */
typedef struct UiAttached {
    char *path;
    int64_t changed; /* time of the last change, ns */
    uint64_t inode, file_bytes;
    bool model; /* its tokens were counted with the model of that path */
    char *counted_by;
    UiTextFileResult result;
    char problem[200]; /* why it cannot be attached, "" = it can */
    uint64_t bytes;    /* of its text */
    int64_t tokens;    /* -1 = unknown */
    bool about;        /* that is an estimate */
} UiAttached;

/* Zeroed it is empty. */
typedef struct UiAttach {
    UiAttached known[UI_ATTACH_MAX]; /* (n_known), the one used last at the end */
    size_t n_known;
    const UiAttached *listed[UI_ATTACH_MAX]; /* (n) files of the text that was looked at last, in known */
    size_t n;
    UiBuf next;  /* mentions that the line mode adds to the next message */
    size_t told; /* bytes of it of which notice was given */
} UiAttach;

/* Finds the files that a text names and looks at those that changed. Cheap enough for every frame unless a
 * file is new. Commands have none. */
void ui_attach_look(struct UiApp *a, const char *text, size_t len);
/* Adds those that another text names, such as a paste. */
void ui_attach_look_more(struct UiApp *a, const char *text, size_t len);
/* Tokens of a text, -1 = unknown; *about: only a part of it was counted. */
int64_t ui_attach_count(struct UiApp *a, const char *text, size_t len, bool *about);
/* Tokens of the files found. */
int64_t ui_attach_tokens(const struct UiApp *a);
/* "src/x.c 12 KB, 3,204 tokens", or its problem. */
void ui_attach_describe(const UiAttached *f, char *dst, size_t cap);
/* "3 files: 34 KB, 12,000 tokens", of those that can be attached. */
void ui_attach_sum(const UiAttach *at, char *dst, size_t cap);
/* The message as the model gets it, in out, and as the screen shows it, in shown: both stay empty if it names
 * no file. false, reported: a file cannot be attached, or all of it does not fit in the RAM budget. typed:
 * the bytes of the text in which the user has just named files, of which the line mode gives notice; a word
 * that looks like a file and is none is named in both modes. */
bool ui_attach_expand(struct UiApp *a, const char *text, size_t len, size_t typed, UiBuf *out, UiBuf *shown);
/* The bytes of such a message that were typed: those before the first file. */
size_t ui_attach_typed(const char *text, size_t len);
/* As ui_attach_expand, without a word about what goes wrong: appends to out, which stays empty without
 * files. */
bool ui_attach_peek(struct UiApp *a, const char *text, size_t len, UiBuf *out);
/* Mentions a file in the input, or in line mode in the next message. false if it cannot be attached, which
 * was reported. */
bool ui_attach_add(struct UiApp *a, const char *path);
/* In line mode: gives notice of files that were attached to the next message, and of the sum, as soon as
 * there is a model to count their tokens with. To be called after ui_attach_add and when a model was
 * loaded. */
void ui_attach_announce(struct UiApp *a);
void ui_attach_free(UiAttach *at);

#endif
