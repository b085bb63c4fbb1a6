/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Next-token blocks in a snapshot: after the segment of a conversation's positions follows one with the rows
 * of the blocks' caches for them, and the last states that the model showed, so that drafts go on where they
 * ended. No token depends on it. The thread that generates. */
#ifndef QSF_ENGINE_SNAPSHOT_BLOCKS_H
#define QSF_ENGINE_SNAPSHOT_BLOCKS_H

#include "src/engine/snapshot/file.h"
#include "src/forward/nextn.h"

/* What comes before the rows of such a segment. */
typedef struct QsfSnapBlocks {
    QsfSnapSegment seg; /* its positions; n_states: the last ones with a state */
    uint32_t first[QSF_NEXTN_BLOCKS][QSF_MAX_LAYERS]; /* of each block and cache: its first row */
} QsfSnapBlocks;

/* Fills b for the positions of g, and returns the bytes of the segment; 0: there is nothing to save, as
 * without blocks (x NULL), or where they have not followed the conversation from its beginning. */
uint64_t qsf_snap_blocks_prepare(QsfSnapBlocks *b, const QsfNextn *x, const QsfSnapSegment *g);
/* Writes what was prepared; stop and arg as in qsf_snap_write_segment. */
bool qsf_snap_blocks_write(QsfSnapStream *s, const QsfNextn *x, const QsfSnapBlocks *b, bool (*stop)(void *),
                           void *arg);

typedef enum QsfSnapBlocksFound {
    QSF_SNAP_BLOCKS_NONE, /* made with other blocks, or other settings of them: nothing was read */
    QSF_SNAP_BLOCKS_READ,
    QSF_SNAP_BLOCKS_DAMAGED
} QsfSnapBlocksFound;

/* Reads the rows of positions before `end` of the blocks' segment of g, at whose start the stream is, into x,
 * which is being restored; b is memory to work with. have: per block and cache the first position, updated.
 * *from: the first position before `end` whose state was read, `end` if there is none. */
QsfSnapBlocksFound qsf_snap_blocks_read(QsfSnapStream *s, QsfNextn *x, const QsfSnapSegment *g, uint32_t end,
                                        QsfSnapBlocks *b, uint32_t have[QSF_NEXTN_BLOCKS][QSF_MAX_LAYERS],
                                        uint32_t *from);

#endif
