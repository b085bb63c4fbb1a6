/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes a memory plan for a model before any weight is read: what is pinned, the size of the slots, the
 * length of the context and the size of a prefill chunk; or an error that says what to lower. Pure: it
 * allocates only the plan itself. All sizes are bytes. */
#ifndef QSF_PLAN_PLAN_H
#define QSF_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "src/base/ledger.h"
#include "src/model/adapter.h"
#include "src/model/model.h"
#include "src/plan/drafting.h"
#include "src/plan/kvtypes.h"
#include "src/plan/quality.h"
#include "src/plan/stream_config.h"

#define QSF_CTX_DEFAULT    4096u
#define QSF_CTX_MIN        128u
#define QSF_BUDGET_DEFAULT (200ull << 20)

/* Part of every plan: copies, rendered text and ids of an ordinary prompt. */
#define QSF_PLAN_MESSAGE (1ull << 20)

#define QSF_PLAN_NOTE 352

#define QSF_MAX_SLOTS 4 /* buffers that weights stream through */

typedef struct QsfPlanOptions {
    uint64_t budget;    /* whole process; 0 = auto: what the model needs up to half of available, or up to
                           three quarters if no plan fits half */
    uint64_t asked;     /* the budget before it was limited to what the machine has; at least budget */
    uint64_t available; /* available memory, for auto (qsf_available_bytes) */
    uint32_t ctx;       /* 0 = min(model, QSF_CTX_DEFAULT), may be lowered; otherwise as the user set
                           it: never changed */
    int k, v;           /* qk_kv of K and V as the user set them: never changed; -1 = chosen */
    QsfKvTypes kv_now; /* in force, with positions in the cache, where keep_k and keep_v are set: kept as long
                          as the plan fits without another change, and never raised */
    bool keep_k, keep_v;
    bool kv_at_once;              /* the KV cache has all its memory from the start */
    bool kv_lists, kv_mass;       /* lists of tiles for eviction; with weights of positions */
    uint32_t ctx_floor;           /* minimum context: positions already in the cache, plus one */
    uint32_t ctx_room;            /* minimum that an automatic context has before anything else is lowered: a
                                  conversation and room for an answer; less than 512 has no effect */
    uint64_t pin_cap;             /* maximum bytes to pin; UINT64_MAX = no limit, 0 = stream every layer */
    uint32_t slots;               /* 1..4, 0 = chosen */
    QsfStreamConfig stream;       /* keep_cached is ignored */
    QsfEmbedding embedding;       /* where rows of the embedding table come from */
    uint32_t batch;               /* prefill chunk in tokens; 0 = as large as the budget allows, up to 512 */
    int threads;                  /* compute threads, >= 1 */
    bool threads_auto;            /* the most that may be used: how many are used is measured */
    bool exact;                   /* float activations (bigger scratch) */
    QsfDrafting drafting;         /* where drafts come from */
    QsfQuality quality;           /* what the passes of an answer leave out; skipped blocks are pinned last */
    uint64_t text_bytes;          /* messages of a conversation, for an automatic budget */
    bool commands;                /* messages name chat commands, as QSFSettings.commands */
    const uint32_t *expert_depth; /* (QSF_EXPERT_DEPTHS) expert_depth of QsfForwardStats as it was in earlier
                                     conversations, from which hits are expected; outlives the options and
                                     copies of them; NULL: not known */
    const QsfAdapterSet *adapters; /* in use; outlives plans made with it; NULL = none */
    uint64_t base_bytes;           /* resident before loading: program, libraries, screen */
    uint64_t opening_bytes;        /* the process needed so much to open the model: no smaller budget works */
    uint64_t tokenizer_bytes;      /* upper bound of what the tokenizer will charge */
    uint64_t meta_bytes;           /* charged to META so far and to come */
    uint64_t transcript_bytes;     /* reserved for messages and the event queue, besides the ids of
                                  a conversation */
    bool hold_head;                /* all of the head is pinned */
    bool holds;                    /* all weights of the blocks of hold, but for experts, are pinned, */
    QsfBlockSet hold;              /* before any others: they draft (forward/pinned.c) */
    uint32_t checkpoints;          /* at most this many copies of states; 0: as the budget allows */
    uint64_t beside[QSF_MEM_N];    /* of other forward passes in the same budget (forward/nextn.h) */
} QsfPlanOptions;

/* Why K or V has its type. */
typedef enum QsfKvReason {
    QSF_KV_DEFAULT, /* the best of those that a plan chooses from */
    QSF_KV_SET,     /* by the user, or by --exact */
    QSF_KV_LOWERED, /* to fit the budget */
    QSF_KV_INSTEAD, /* the user set another one, which some or all caches cannot have (kv_set, kv_most) */
    QSF_KV_REASON_N
} QsfKvReason;

typedef struct QsfPlan {
    uint64_t rows[QSF_MEM_N]; /* planned bytes per category */
    uint64_t total, budget;   /* total <= budget */
    uint32_t ctx;
    uint32_t wanted_ctx;  /* what it would be with more memory */
    uint32_t checkpoints; /* of states: recurrent ones, and recent positions of caches */
    uint64_t state_bytes; /* of one copy of them; 0: there are none */
    QsfKvTypes kv;        /* of caches that have different ones, those with the fewest bits, */
    QsfKvTypes kv_most;   /* and those with the most */
    QsfKvTypes kv_set;    /* as the user set them; meaningful with QSF_KV_INSTEAD */
    QsfKvReason why_k, why_v;
    uint32_t batch; /* prefill chunk, tokens */
    int threads;
    bool threads_auto; /* as in the options */
    bool exact;
    uint32_t n_slots; /* 0 when everything is pinned, but for experts with slots of their own */
    uint64_t slot_bytes;
    uint32_t n_stages; /* buffers that compressed layers are read to before they are decompressed; 0:
                          there are none */
    uint64_t stage_bytes;
    uint32_t n_units;       /* weight units of the program */
    uint32_t *pinned_items; /* (n_units) items [0, n) of the unit are pinned, whatever the
                               length of the context, the rest streams; a multiple of
                               QSF_ROW_QUANTUM or all; owned by the plan */
    uint32_t kv_step; /* positions whose memory the KV cache takes at a time; until then it holds weights
                         (kv_lend.h). 0: it takes all at once, because nothing streams */
    uint32_t *lend;   /* (n_lend) units that are pinned further meanwhile, in this order; owned by the plan */
    uint32_t n_lend;
    uint64_t lent_weight,
        lent_active;            /* of them at the start of a conversation: bytes of weights, and what a token
                              then streams less */
    uint64_t expert_bytes;      /* of all experts; 0: there are none */
    uint32_t n_experts;         /* in all blocks */
    uint32_t experts_used;      /* most experts of a block that a token uses */
    uint32_t expert_slots;      /* experts that are in memory at a time, those that are wanted most
                              (expert_pool.h); 0: they are pinned, or all stream */
    uint64_t expert_slot_bytes; /* of a slot, also if there are none */
    double expert_hits;         /* expected share of the chosen experts that are in memory */
    bool expert_known;          /* it is by what was chosen in earlier conversations */
    bool embed_resident;        /* the embedding table is in RAM (pinned head of a tied model counts) */
    uint32_t embed_rows;        /* rows of the embedding row cache; 0 = none (or resident) */
    const QsfAdapterSet *adapters; /* as in the options */
    bool adapters_stream;          /* they are read block by block for each pass */
    uint64_t sketch_bytes;         /* memory of the sketch of the head; 0: none */
    uint32_t draft_cols; /* positions of a pass with drafts; 0: no memory is left for them, or off */
    bool holds;          /* as in the options */
    QsfBlockSet hold;
    uint64_t beside_bytes;  /* of the rows: of other forward passes, which draft */
    uint32_t lookup_tokens; /* of the text in which drafts are looked up; 0: none */
    QsfStreamConfig stream;
    uint64_t pinned_bytes;    /* weights, without padding; as the rest when the context is full */
    uint64_t streamed_bytes;  /* weights streamed for one token of an answer; of experts the average */
    uint64_t disk_bytes;      /* bytes read for them: less, if layers are compressed */
    uint64_t weight_bytes;    /* all units */
    uint64_t active_bytes;    /* of them, the bytes that one token of an answer multiplies */
    char note[QSF_PLAN_NOTE]; /* what was lowered, and that an automatic budget is more than half of what is
                                 available, for stderr and the pane; "" when nothing */
} QsfPlan;

/* Makes a plan; the caller frees it with qsf_plan_free. QSF_E_CONTEXT when o->ctx is longer than the model
 * allows or shorter than o->ctx_floor. QSF_E_BUDGET when the budget cannot be met: the message has one line
 * per category with its bytes, the sum, what to lower, and as its last line exactly "smallest budget that
 * works: NNN MB", which is a budget that works. QSF_E_USAGE when pin_cap does not allow the resident
 * embedding table of a tied model. */
int qsf_plan_make(QsfPlan *p, const QsfModel *m, const QsfPlanOptions *o, QsfErr *err);
/* Frees the lists of a plan; a zeroed one is allowed, and a freed one. */
void qsf_plan_free(QsfPlan *p);

/* Returns the bytes of experts in memory, with a full context: pinned, or in slots. */
static inline uint64_t qsf_plan_expert_resident(const QsfPlan *p) {
    if (p->n_experts == 0 || (p->expert_slots == 0 && p->n_slots > 0)) return 0;
    return p->expert_slots > 0 ? p->expert_slots * (p->expert_bytes / p->n_experts) : p->expert_bytes;
}

/* Is anything read while a token is computed? */
static inline bool qsf_plan_streams(const QsfPlan *p) { return p->n_slots > 0 || p->expert_slots > 0; }

/* Returns the share of the uses counted in depth (QSF_EXPERT_DEPTHS; expert_depth of QsfForwardStats) that
 * this number of slots would have found in memory; -1: depth is NULL or counts too few. */
double qsf_expert_hits_of(const uint32_t *depth, uint64_t slots, uint64_t n_experts);

/* Option names for messages: "/budget" with commands, else "--ram-budget"; and so on. */
typedef enum QsfOptionName {
    QSF_OPTION_BUDGET,
    QSF_OPTION_CTX,
    QSF_OPTION_BATCH,
    QSF_OPTION_KV,
    QSF_OPTION_N
} QsfOptionName;
/* Returns it, static. */
const char *qsf_option_name(QsfOptionName name, bool commands);

/* Leaves out what drafts beside the model, and what is pinned for drafts: all of it is given up before a
 * budget is refused. */
void qsf_plan_options_alone(QsfPlanOptions *o);
/* Returns the smallest budget, in bytes and a multiple of 1 MiB, that qsf_plan_make accepts for these
 * options without what drafts. */
uint64_t qsf_plan_smallest(const QsfModel *m, const QsfPlanOptions *o);
/* Returns the smallest budget, in bytes and a multiple of 1 MiB, whose plan also leaves at least `text` bytes
 * for making a prompt, in the next run too, whose resident set may be a little larger. */
uint64_t qsf_plan_smallest_beside(const QsfModel *m, const QsfPlanOptions *o, uint64_t text);

/* Returns the largest automatic budget, a multiple of 1 MiB: three quarters of what is available, or
 * QSF_BUDGET_DEFAULT if that is not known. */
uint64_t qsf_plan_auto_most(const QsfPlanOptions *o);

/* Writes the types of the KV cache and why: "q8 (lowered to fit the budget)", "q4 (because the
 * model cannot store q2)". */
void qsf_plan_kv_text(const QsfPlan *p, char *dst, size_t cap);
#define QSF_PLAN_KV_TEXT 128

/* Formats the plan as a table (--plan, --verbose), newline-terminated; malloc'ed, NULL when out of memory. */
char *qsf_plan_text(const QsfPlan *p);

#endif
