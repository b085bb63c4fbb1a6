/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Adapters of a model: LoRA, which adds B (A x) to the product of a matrix with x (Hu et al. 2021),
 * aLoRA, which does so from a sequence of tokens on (Greenewald et al. 2025), and control vectors,
 * which are added to what passes through all blocks. Here a file is opened, checked against the model,
 * and its matrices are matched with those that the program multiplies; forward/adapters.c computes.
 * Nothing is read but headers. */
#ifndef QSF_MODEL_ADAPTER_H
#define QSF_MODEL_ADAPTER_H

#include "src/model/model.h"

#define QSF_ADAPTERS_MAX     16u /* in use at a time, of each kind */
#define QSF_ADAPTER_RANK_MAX 4096u
#define QSF_ADAPTER_TOKENS   64u /* that invoke an aLoRA */
#define QSF_ADAPTER_FACTORS  3u  /* floats for each pair in memory: its factor, the scales of a and b */
#define QSF_ADAPTER_GROUP    16u /* rows of matrices, and ranks, are padded to a multiple of it in memory */
/* Passes over few columns compute ranks in parts, of a quarter of the elements each. */
#define QSF_ADAPTER_PARTS    4u
#define QSF_ADAPTER_FEW_COLS 8u

/* What an adapter adds to a matrix of the model, or to each of n matrices of one tensor (experts). */
typedef struct QsfAdapterPair {
    const char *name;       /* of the model's tensor; in the adapter's memory */
    const QsfTensor *a, *b; /* (cols, rank, n), (rank, rows, n), in the order of GGUF */
    uint32_t rank, n;
    uint32_t cols, rows;
    bool table; /* of the embedding table: a is (rank, rows), b (rank, cols); row i of the table += b a[i] */
    bool used;
    bool left_out;             /* in GGUF: ggml-org/llama.cpp does not apply it either */
    uint32_t index;            /* among the pairs of all adapters */
    uint32_t block;            /* of its first use; n_blocks: outside of all blocks */
    uint64_t at;               /* bytes before it in memory, */
    uint64_t in_block;         /* the same where only its block is in memory, */
    uint64_t a_bytes, b_bytes; /* and its own: a, then b */
} QsfAdapterPair;

typedef struct QsfAdapter {
    QsfSource *src;
    char *path;
    float scale; /* of the user */
    float alpha;
    bool sqrt_rank;       /* the factor is alpha / sqrt(rank) instead of alpha / rank */
    QsfAdapterPair *pair; /* (n_pairs) by name */
    uint32_t n_pairs;
    int32_t invocation[QSF_ADAPTER_TOKENS]; /* (n_invocation) 0 = it always acts */
    uint32_t n_invocation;
    uint64_t identity;  /* of its file; 0 = not known */
    uint64_t src_bytes; /* of src, charged to META */
    bool borrowed;      /* src is of another set (qsf_adapters_take) */
} QsfAdapter;

/* Matrix `tensor` of a unit gets rows [row0, row0 + rows) of matrix `part` of a pair. */
typedef struct QsfAdapterUse {
    uint32_t unit, pair, part, row0;
    uint8_t adapter, tensor;
} QsfAdapterUse;

/* A control vector: direction.N of the file is added to what block N leaves. */
typedef struct QsfControl {
    QsfSource *src;
    char *path;
    float scale;
    const QsfTensor *direction[QSF_MAX_LAYERS]; /* by block; NULL = none */
    uint64_t identity, src_bytes;               /* as of QsfAdapter */
    bool borrowed;
} QsfControl;

typedef struct QsfAdapterSet {
    QsfAdapter adapter[QSF_ADAPTERS_MAX]; /* (n) in the order of their sums */
    uint32_t n;
    QsfControl control[QSF_ADAPTERS_MAX]; /* (n_controls) */
    uint32_t n_controls;
    QsfAdapterUse *use;       /* (n_uses) by unit, tensor and adapter */
    uint32_t n_uses, n_pairs; /* n_pairs: of all adapters */
    bool has_table;           /* some pairs are of the embedding table */
    uint32_t *first;          /* (n_units + 1) uses of unit i are [first[i], first[i + 1]) */
    uint32_t rank_floats;     /* most ranks, padded, that a unit has */
    uint64_t bytes;           /* of all weights in memory */
    uint64_t meta_bytes;      /* charged to META */
    uint64_t pages;           /* bytes in whole pages, with control vectors and a factor for each pair */
    uint64_t block_bytes;     /* of the largest block */
    uint64_t stream_pages;    /* as pages, where one block at a time is in memory; 0: that is not possible */
    bool exact;               /* weights are floats */
    const char *arch;         /* of the model */
    QsfArena arena;           /* META */
} QsfAdapterSet;

/* A file and its scale, as in the settings "lora" and "control-vector". */
typedef struct QsfAdapterSpec {
    const char *path;
    float scale;
    QsfSource *src; /* the file is open, for the same model, and stays so; NULL = it is opened */
    uint64_t identity, src_bytes; /* of src */
} QsfAdapterSpec;

/* Opens and checks n LoRA adapters and n_controls control vectors for a model; exact: their weights are
 * held as floats, otherwise in half precision. *out NULL if there are none. QSF_E_MODEL, which names the
 * file, and the key or tensor: not an adapter, of another architecture or kind, a bad alpha, a tensor that
 * the model does not have or that adapters cannot change, of another shape or type, or without its other
 * half; QSF_E_RUNTIME, QSF_E_BUDGET. Memory is charged to META. */
int qsf_adapters_open(QsfAdapterSet **out, const QsfModel *m, const QsfAdapterSpec *lora, uint32_t n,
                      const QsfAdapterSpec *control, uint32_t n_controls, bool exact, QsfLedger *ledger,
                      QsfErr *err);
/* Closes a set and its files, but those that are borrowed. NULL allowed. */
void qsf_adapters_close(QsfAdapterSet *s);
/* Lets n specs use the files that s (NULL = none) has open for the same paths; control: of its control
 * vectors. */
void qsf_adapters_lend(const QsfAdapterSet *s, bool control, QsfAdapterSpec *spec, uint32_t n);
/* The files that s has borrowed from `from` are its own now; `from` can only be closed. */
void qsf_adapters_take(QsfAdapterSet *s, QsfAdapterSet *from);

/* Writes a sentence about pairs that are left out; "" if there are none. */
void qsf_adapters_notice(const QsfAdapterSet *s, char *dst, size_t cap);

/* Returns the factor of B (A x) for a pair, but for the factors of its weights in memory: the user's scale
 * times alpha / rank. An alpha of 0 stands for that of the rank (ggml-org/llama.cpp src/llama-adapter.h). */
float qsf_adapter_factor(const QsfAdapter *a, const QsfAdapterPair *p);

/* Returns n rows or ranks as they are padded. */
static inline uint64_t qsf_adapter_padded(uint64_t n) {
    return (n + QSF_ADAPTER_GROUP - 1) / QSF_ADAPTER_GROUP * QSF_ADAPTER_GROUP;
}

/* Sizes in memory of a set, which may be NULL: weights and control vectors in whole pages, what is charged to
 * META, and the ranks of a pass over n columns, with those of parts. */
static inline uint64_t qsf_adapters_pages(const QsfAdapterSet *s, bool streams) {
    return s == NULL ? 0 : streams ? s->stream_pages : s->pages;
}
/* Does a set need less memory when its weights are read for each pass, block by block? */
static inline bool qsf_adapters_stream(const QsfAdapterSet *s) {
    return s != NULL && s->stream_pages > 0 && s->stream_pages < s->pages;
}
static inline uint64_t qsf_adapters_meta(const QsfAdapterSet *s) { return s != NULL ? s->meta_bytes : 0; }
static inline uint64_t qsf_adapters_pass_bytes(const QsfAdapterSet *s, uint32_t n_cols) {
    const uint64_t cols = n_cols + QSF_ADAPTER_PARTS * QSF_ADAPTER_FEW_COLS,
                   bytes = s != NULL ? 4ull * s->rank_floats * cols : 0;
    return (bytes + 4095) & ~(uint64_t)4095;
}

#endif
