/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the pool of experts share: expert_pool.c has the slots and their owners, expert_reads.c
 * reads into them, expert_policy.c says who is given up, expert_record.c keeps what was chosen. */
#ifndef QSF_STREAM_EXPERT_POOL_IMPL_H
#define QSF_STREAM_EXPERT_POOL_IMPL_H

#include "src/base/space.h"
#include "src/stream/expert_pool.h"

#define QSF_NO_SLOT     UINT32_MAX /* and no expert */
#define QSF_EXPERT_AGES 256u       /* beyond, a use within a pass counts as nothing */

typedef struct QsfExpert {
    float fast, slow; /* averages of its uses per position (expert_policy.c) */
    uint32_t slot;    /* QSF_NO_SLOT: it has none */
    uint8_t there;    /* bit i: unit i is in the slot */
    bool queued;      /* its units wait to be read, or are being read */
    bool wanted;      /* requested, and its second unit is not released yet */
    bool packed;      /* its rows are in groups */
    bool together;    /* one read for both units (plan/expert_span.h), which is that of the first */
    uint8_t hits;     /* requests that found it there, PACK_HITS at most */
    uint16_t block;
    bool guessed : 1; /* being read because it was predicted; then it is queued, too */
    bool unused : 1;  /* read because it was predicted, and not requested yet */
    bool likely : 1;  /* predicted for the next block */
    uint16_t used_in; /* low bits of the last pass that used it */
} QsfExpert;

/* An expert that is being read before it is chosen. */
typedef struct QsfExpertGuess {
    uint32_t expert;
    unsigned n_reads; /* 0: none */
    QsfIoRead read[2 * QSF_UNIT_TENSORS];
} QsfExpertGuess;

#define QSF_GUESSES     5u /* in flight, in a prompt */
#define QSF_GUESS_LAYER 4u /* of a block, for one position */

typedef struct QsfExpertAhead {
    QsfExpertGuess flight[QSF_GUESSES];
    uint32_t n_reads; /* of all in flight */
    uint32_t wish[QSF_GUESS_LAYER], n_wishes;
    uint32_t likely[QSF_MAX_EXPERTS], n_likely;
    uint32_t at, end;               /* experts of the next block, which a prompt needs nearly all of */
    uint16_t fill_pass;             /* pass for which free slots have an order */
    float right;                    /* part of what is read ahead that was used in the end */
    uint32_t positions, read, used; /* since `right` was found: positions, and experts */
    uint32_t pause, pause_next;     /* positions without, and how many the next time */
} QsfExpertAhead;

/* A unit that is being read. */
typedef struct QsfExpertRead {
    uint32_t expert;
    unsigned which;
    unsigned n_reads;
    QsfIoRead read[QSF_UNIT_TENSORS];
} QsfExpertRead;

struct QsfExpertPool {
    QsfWeightUnit *units;
    QsfLedger *ledger;
    QsfLoaderOptions o;
    QsfIo *io; /* NULL: stopped */
    uint32_t n_units, n_experts;
    uint32_t *unit;    /* (n_experts) first units, ascending */
    QsfExpert *expert; /* (n_experts) */
    uint32_t *owner;   /* (n_experts) of slots; QSF_NO_SLOT: free */
    /* expert_record.c: */
    uint32_t *order; /* (n_experts) as free slots are filled, if in_order */
    bool in_order;
    uint32_t *stack;           /* (n_stack) of experts: the first n of them are what n slots would hold */
    uint32_t n_stack, every;   /* about one in `every` experts is in the stack */
    uint32_t *uses;            /* (n_experts) since they were taken */
    uint32_t n_alone, n_noted; /* positions: of uses, and since depths were halved */
    void *meta;
    uint64_t meta_bytes, slot_bytes;
    QsfSpace space;
    uint32_t n_slots, n_free;
    /* expert_policy.c: positions since the averages were scaled, and what they are multiplied by for now;
     * what a use counts that `age` positions of the pass come after; the block that uses experts */
    float now, fast_now, slow_now, part, each_block;
    /* of the running pass; and of the experts [block_from, block_to) of its block, those that were chosen */
    uint32_t positions, block_from, block_to, n_chosen;
    float fast_age[QSF_EXPERT_AGES], slow_age[QSF_EXPERT_AGES];
    uint16_t block, pass;
    QsfExpertRead job[QSF_IO_DEPTH]; /* ring of n_jobs, the oldest one first */
    uint32_t first_job, n_jobs, n_reads;
    uint32_t queue[2 * QSF_MAX_EXPERTS]; /* of units, [queue_at, n_queue) */
    uint32_t queue_at, n_queue;
    uint32_t list[QSF_MAX_EXPERTS]; /* requested experts of the running layer */
    uint32_t n_list, n_wanted;
    QsfExpertAhead ahead;
    bool filling;     /* free slots, between passes: that is not waiting */
    uint32_t fill_at; /* place in `order` of the next expert to fill a free slot with */
    uint64_t busy_since;
};

/* Returns the number of the expert that a unit belongs to. */
uint32_t qsf_expert_find(const QsfExpertPool *p, uint32_t unit);
/* Returns after how many positions the expert will probably be used again; the pass and the block that is
 * computed matter. */
float qsf_expert_wait(const QsfExpertPool *p, uint32_t e);
/* Returns the part of the experts of the running block that this pass has chosen; 0: it has one position. */
float qsf_expert_chosen(const QsfExpertPool *p);
/* Says how often per position it is used. */
void qsf_expert_set_rate(QsfExpertPool *p, uint32_t e, float rate);
/* The experts and their units are known. */
void qsf_expert_policy_init(QsfExpertPool *p);
/* Puts all experts in the order in which they are used again, and of their ids. */
void qsf_expert_sort(QsfExpertPool *p);
/* Returns the next expert to fill a free slot with; QSF_NO_SLOT: all are there. Moves fill_at. */
uint32_t qsf_expert_next_to_fill(QsfExpertPool *p);
/* The experts and their units are known, and their policy. */
void qsf_expert_record_init(QsfExpertPool *p);
/* An expert came into its slot, or (n -1) left it: for the counters. */
void qsf_expert_count(const QsfExpertPool *p, uint32_t e, int n);
/* expert_reads.c: starts to read unit `which` of an expert that has a slot, both units if it is together.
 * Returns the number of reads, QSF_UNIT_TENSORS at most. */
unsigned qsf_expert_start_reads(QsfExpertPool *p, uint32_t e, unsigned which, QsfIoRead *read);
/* Counts bytes that were read for a layer, and the time since waited_since. */
void qsf_expert_count_read(QsfExpertPool *p, uint32_t layer, uint64_t bytes, uint64_t waited_since);
/* Checks a unit that was read for the first time. QSF_E_MODEL. */
int qsf_expert_verify(const QsfExpertPool *p, uint32_t e, unsigned which, QsfErr *err);

/* expert_ahead.c: a position begins. */
void qsf_expert_ahead_position(QsfExpertPool *p);
/* Takes note of what is complete and, when nothing that was chosen has to be read, reads on. */
void qsf_expert_ahead_on(QsfExpertPool *p);
/* Waits for an expert that is guessed. If its read failed it is not there. */
void qsf_expert_ahead_wait(QsfExpertPool *p, uint32_t e);
/* Takes note of what is complete. */
void qsf_expert_ahead_take(QsfExpertPool *p);
/* Waits for all that are in flight. */
void qsf_expert_ahead_finish(QsfExpertPool *p);
/* A layer has chosen: the predictions for it are over. */
void qsf_expert_ahead_chosen(QsfExpertPool *p);
/* A layer has chosen, in a prompt: those of the next block will be needed. */
void qsf_expert_ahead_prompt(QsfExpertPool *p);
/* An expert that was read ahead is requested for the first time, or (used false) given up before that. */
void qsf_expert_ahead_done(QsfExpertPool *p, uint32_t e, bool used);

/* Makes the chunk of unit `which` (0 or 1) of expert e, and returns its slot, from which window and at of its
 * parts count. */
uint8_t *qsf_expert_place(const QsfExpertPool *p, uint32_t e, unsigned which, QsfChunk *c);
/* Gives the slot of e back, if it has one; its contents are lost. */
void qsf_expert_leave(QsfExpertPool *p, uint32_t e);
/* Gives a slot to e, which has none; its owner leaves. */
void qsf_expert_enter(QsfExpertPool *p, uint32_t e, uint32_t slot);
/* Returns a free slot among the first n, or that of the owner that waits longest, but not of `but`;
 * QSF_NO_SLOT: all are in use. forced: also an owner that is still to be computed, if it is complete. */
uint32_t qsf_expert_find_slot(const QsfExpertPool *p, uint32_t n, uint32_t but, bool forced);

#endif
