/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sizes of everything the forward pass allocates except weights, computed from its program: the plan adds
 * them up before loading, and the forward pass allocates exactly that. Pure functions. */
#ifndef QSF_PLAN_LAYOUT_H
#define QSF_PLAN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "src/base/ledger.h"
#include "src/model/model.h"
#include "src/plan/kvtypes.h"

#define QSF_ROWCACHE_ENTRY 32u /* bytes that a row of the embedding row cache costs beside itself */

/* Sizes computed from all tensors of a model; independent of any plan. */
typedef struct QsfShape {
    uint64_t act_stride[QK_ACT_N]; /* bytes of the longest activation column of a kind, 0 = not used; F32
                                      always 0: float columns are used where they lie */
    uint64_t min_slot;             /* least slot that streams every unit */
    uint64_t max_slot;             /* a slot that holds any unit whole */
    uint64_t weight_bytes;         /* all units */
    uint64_t active_bytes;         /* of them, what one token multiplies */
    bool on_demand;                /* some units are experts */
    uint64_t expert_bytes;         /* of all experts */
    uint64_t n_experts;            /* in all blocks; each has two units */
    uint32_t expert_blocks;        /* blocks with experts */
    uint64_t expert_slot;          /* windows of the largest expert */
    uint64_t expert_active;        /* bytes of the experts that one token uses */
    uint32_t experts_used;         /* most experts of a block that a token uses */
    uint64_t pinned_units_bytes;   /* all units as they are held pinned, windows included */
    uint64_t stage_bytes;          /* windows of the largest compressed layer; 0: none is compressed */
    uint64_t unpack_bytes;         /* further memory for decompressing */
    uint64_t group_bytes;          /* scratch for interleaving rows and back, whole pages */
    uint64_t param_floats;         /* norms, biases and the like */
    uint64_t embed_bytes, embed_row_bytes;
    uint64_t
        row_bytes;  /* the longest quantized row of the embedding and the tables of tokens and positions */
    uint32_t max_k; /* longest row of any matrix */
    uint32_t n_units;
} QsfShape;

/* Fills *s from the program of m. t: the kernels in use, which decide how activations are quantized. */
void qsf_shape_make(QsfShape *s, const QsfModel *m, const qk_table *t);

/* Returns the number of buffers that compressed layers are read to: one, or with several slots two, so that
 * one is read while the other is decompressed. 0 if nothing is compressed. */
uint32_t qsf_stages(const QsfShape *s, uint32_t n_slots);
/* Returns the memory of these buffers and of the decompressor. */
uint64_t qsf_staging_bytes(const QsfShape *s, uint32_t n_slots);

/* Columns that an indexer scores at a time, so that it reads the keys once for them. */
#define QSF_INDEX_COLS 8u

/* Buffers of one forward pass; offsets are bytes from a page-aligned start, multiples of 64; strides
 * of float buffers are floats, multiples of 16. */
typedef struct QsfLayout {
    uint32_t n_cols;               /* columns: tokens computed at a time */
    uint64_t act_stride[QK_ACT_N]; /* bytes */
    uint64_t cols;  /* the program's buffers: buffer b is (n_cols, stride) floats, off * n_cols after it */
    uint64_t spare; /* the part of them that is free while the head is computed */
    uint64_t spare_floats;
    uint64_t act[QK_ACT_N]; /* (n_cols) activation columns */
    uint64_t cs;            /* per rope table (n_cols, n_rot / 2) cos, sin */
    uint64_t attn;          /* (threads) scratch of the attention kernels */
    uint64_t attn_stride;   /* bytes */
    uint64_t scores;        /* of an indexer: (QSF_INDEX_COLS at most) columns */
    uint64_t score_stride;  /* floats */
    uint64_t gathered;      /* tiles of the positions that it chose for one column */
    uint64_t recent;        /* tiles of the recent positions of one cache */
    uint64_t parts;         /* (n_heads, spans of ctx and one more) parts of one column, if there are several
                               spans */
    uint64_t exact;         /* (threads, max_k), 0 bytes unless exact */
    uint64_t exact_stride;  /* floats */
    uint64_t chosen;        /* (n_cols) column numbers, 0 bytes without experts */
    uint64_t row;           /* one quantized embedding row */
    uint64_t kept;          /* (draft_cols - 1) columns of what states are made of (forward/replay.h) */
    uint64_t kept_floats;   /* of one of them */
    uint32_t draft_cols;    /* positions of a pass with drafts; 0: there are none */
    uint64_t total;
} QsfLayout;

/* draft_cols <= n_cols. */
void qsf_layout_make(QsfLayout *l, const QsfModel *m, const QsfShape *s, uint32_t n_cols, uint32_t draft_cols,
                     uint32_t ctx, QsfKvTypes types, int threads, bool exact);

/* What a step needs to continue its state once more, beside the old state: parts of its inputs. */
typedef struct QsfStateInputs {
    QsfSlice part[3]; /* (n) */
    uint32_t n;
    uint32_t floats; /* of all, each padded to 16 floats */
} QsfStateInputs;
/* Fills *in for step i of a program; n is 0 for a step without a state. */
void qsf_state_inputs(const QsfProgram *p, uint32_t i, QsfStateInputs *in);

/* Returns the runs of tiles of a cache: one for each head's K, and one for its V unless it is K. */
static inline uint32_t qsf_kv_runs(const QsfKvSpec *spec) { return (spec->v_is_k ? 1u : 2u) * spec->heads; }
/* Positions that a cache with a window keeps besides the window: what a pass adds, and how far back a
 * conversation can be taken without evaluating it again. */
#define QSF_KV_SLACK 1024u
/* Returns how many positions of a context a cache keeps: all, or the last ones in a ring, whose size is then
 * a multiple of QK_KV_BLOCK. */
uint32_t qsf_kv_positions(const QsfKvSpec *spec, uint32_t ctx);
/* Returns the bytes of one KV cache for ctx positions: whole tiles. */
uint64_t qsf_kv_spec_bytes(const QsfKvSpec *spec, QsfKvTypes types, uint32_t ctx);
/* Returns the bytes of n KV caches for a context of ctx positions, in whole pages. */
uint64_t qsf_kv_bytes(const QsfKvSpec *spec, uint32_t n, QsfKvTypes types, uint32_t ctx);

/* Returns the bytes in which a cache holds its recent positions (kvtypes.h),
 * QSF_KV_RECENT_TILES tiles of each head. */
uint64_t qsf_kv_recent_bytes(const QsfKvSpec *spec, QsfKvTypes types);

#define QSF_KV_WEIGHT_COPIES 3u
/* Lists of tiles of n_caches KV caches (kv/list.h); offsets are bytes. */
typedef struct QsfKvListLayout {
    uint64_t mass, saved_mass, worker_mass, entry, spare, moved, drop, total;
} QsfKvListLayout;
/* threads: 0 = without weights of positions. */
void qsf_kv_list_layout(QsfKvListLayout *l, uint32_t n_caches, uint32_t ctx, uint32_t threads);

#define QSF_CHECKPOINTS_MAX 16u
/* Returns the bytes of a state: everything besides K and V that the next position needs from earlier ones.
 * These are recurrent states, and the recent positions of caches. */
uint64_t qsf_state_bytes(const QsfProgram *p, QsfKvTypes types);
/* Returns the number of checkpoints of it that a budget pays for; 0 for a program without states. Those of
 * recent positions alone are few, because such a type is there to save memory. */
uint32_t qsf_checkpoint_count(const QsfProgram *p, QsfKvTypes types, uint32_t ctx, uint64_t budget);
/* Returns the bytes of the states of a program: the two copies that a pass needs, and checkpoints. */
uint64_t qsf_recurrent_bytes(const QsfProgram *p, QsfKvTypes types, uint32_t n_checkpoints);

/* Returns the bytes of a cache of n rows of row_bytes each, with its list and its index, in whole pages; 0
 * for 0 rows. */
uint64_t qsf_rowcache_bytes(uint32_t rows, uint64_t row_bytes);

/* n floats padded to a multiple of 64 bytes. */
static inline uint32_t qsf_pad16(uint32_t n) { return (n + 15u) & ~15u; }

#endif
