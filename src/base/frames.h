/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages on a pipe between two of our programs: a kind (one byte), the length of the body (four bytes, the
 * lowest first) and the body. */
#ifndef QSF_BASE_FRAMES_H
#define QSF_BASE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/strbuf.h"

#define QSF_FRAME_HEAD 5u /* bytes before the body */

typedef struct QsfPipeFrame {
    char kind;
    const char *body; /* (len) bytes; followed by no NUL */
    size_t len;
} QsfPipeFrame;

/* What was read and is not a whole frame yet. Zeroed but for max it is empty. One thread. */
typedef struct QsfPipeFrames {
    size_t max; /* bytes that a body may have */
    QsfStrbuf bytes;
    size_t at; /* where the next frame begins in them */
} QsfPipeFrames;

typedef enum QsfFrameResult {
    QSF_FRAME_NONE, /* not all of it was read yet */
    QSF_FRAME_ONE,
    QSF_FRAME_BAD /* a body longer than max, or out of memory: nothing that follows can be read */
} QsfFrameResult;

/* Appends a frame to b; len below 4 GiB. */
void qsf_frame_put(QsfStrbuf *b, char kind, const void *body, size_t len);
/* Adds bytes that were read, in any pieces. */
void qsf_frames_add(QsfPipeFrames *f, const void *bytes, size_t len);
/* Takes the next frame; its body is valid until bytes are added. */
QsfFrameResult qsf_frames_next(QsfPipeFrames *f, QsfPipeFrame *out);
/* Frees the buffer; bodies of frames are no longer valid. */
void qsf_frames_free(QsfPipeFrames *f);

#endif
