/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/frames.h"

#include <stdint.h>
#include <string.h>

void qsf_frame_put(QsfStrbuf *b, char kind, const void *body, size_t len) {
    qsf_strbuf_addc(b, kind);
    for (unsigned shift = 0; shift < 32; shift += 8) qsf_strbuf_addc(b, (char)(len >> shift & 0xff));
    qsf_strbuf_add(b, body, len);
}

/* What was taken makes room first. */
void qsf_frames_add(QsfPipeFrames *f, const void *bytes, size_t len) {
    if (f->at > 0) {
        memmove(f->bytes.data, f->bytes.data + f->at, f->bytes.len - f->at);
        f->bytes.len -= f->at;
        f->bytes.data[f->bytes.len] = '\0';
        f->at = 0;
    }
    qsf_strbuf_add(&f->bytes, bytes, len);
}

static size_t body_length(const char *head) {
    uint32_t len = 0;
    for (unsigned i = 0; i < 4; i++) len |= (uint32_t)(unsigned char)head[1 + i] << (8 * i);
    return len;
}

QsfFrameResult qsf_frames_next(QsfPipeFrames *f, QsfPipeFrame *out) {
    const size_t have = f->bytes.len - f->at;
    if (!qsf_strbuf_ok(&f->bytes)) return QSF_FRAME_BAD;
    if (have < QSF_FRAME_HEAD) return QSF_FRAME_NONE;
    const char *head = f->bytes.data + f->at;
    const size_t len = body_length(head);
    if (len > f->max) return QSF_FRAME_BAD;
    if (have - QSF_FRAME_HEAD < len) return QSF_FRAME_NONE;
    *out = (QsfPipeFrame){ head[0], head + QSF_FRAME_HEAD, len };
    f->at += QSF_FRAME_HEAD + len;
    return QSF_FRAME_ONE;
}

void qsf_frames_free(QsfPipeFrames *f) {
    qsf_strbuf_free(&f->bytes);
    f->at = 0;
}
