/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a Hugging Face model directory. An architecture is a row of tables: which settings of config.json
 * become which metadata, and which tensors of the weight files become which tensors of GGUF, and how. Each
 * vendor has a file in hf/arch/, and hf/arch.c finds the row; docs/FORMATS.md explains the tables. Private to
 * the readers of such a directory. */
#ifndef QSF_FILE_HF_MODEL_H
#define QSF_FILE_HF_MODEL_H

#include "src/base/json.h"
#include "src/file/derive/derive.h"
#include "src/file/hf/safetensors.h"
#include "src/file/whole.h"

#define QSF_HF_SHOWN  80         /* bytes of a name in a message */
#define QSF_HF_NUMBER (1u << 28) /* more than any size in config.json */
#define QSF_HF_MADE   8u
#define QSF_HF_NO_FFN 99u
#define QSF_HF_ENDS   32u /* maximum number of tokens that end an answer */

typedef struct QsfHfModel QsfHfModel;

/* --- tensors --- */

/* Chooses rows of a source tensor with src_rows rows (elements, of a vector): sets *map, and *n to the
 * number of rows of the result. QSF_E_MODEL by qsf_hf_bad_rows or qsf_hf_fail. */
typedef int (*QsfHfRows)(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
/* Changes the dimensions of a finished tensor, but not its number of elements. */
typedef int (*QsfHfShape)(const QsfHfModel *m, QsfTensor *t);

/* One source tensor, and a GGUF tensor or part of one. A source tensor may have several rows (it is
 * split), and a GGUF tensor too (its parts are joined, in order of `part`, then of the expert). */
typedef struct QsfHfName {
    const char *hf;   /* without the prefix of the architecture; '#' is the layer, '*' the expert */
    const char *gguf; /* "blk.#.attn_q.weight"; NULL: has no effect, ignored */
    uint32_t n_dims;  /* of the source, 1 to 3; dimensions of size 1 in the middle do not count */
    QsfDeriveKind
        how;          /* COPY: as stored; from the file itself if rows are in order and it is the only part */
    QsfHfRows rows;   /* NULL: all, in order */
    uint32_t part;    /* of parts that are joined */
    QsfHfShape shape; /* NULL: as stored, or transposed; one more dimension for experts */
} QsfHfName;

/* --- settings --- */

typedef enum QsfHfType { QSF_HF_U32, QSF_HF_F32, QSF_HF_BOOL } QsfHfType;

/* A setting that becomes metadata "ARCH.gguf". */
typedef struct QsfHfKey {
    const char *hf; /* names in config.json, '|' between alternatives, the first one for messages */
    const char *gguf;
    QsfHfType type;
    double fallback; /* value if absent from config.json; QSF_HF_ABSENT: omit the metadata;
                        QSF_HF_NEEDED: refuse */
    double low, high;
} QsfHfKey;
#define QSF_HF_ABSENT (-1e300)
#define QSF_HF_NEEDED (-2e300)

/* A setting that must have one of these values, or be absent. */
typedef struct QsfHfMust {
    const char *hf;     /* as above */
    const char *values; /* as in JSON, without quotes, '|' between them; "" = none: it must be absent */
} QsfHfMust;

typedef enum QsfHfRope {
    QSF_HF_ROPE_PLAIN = 1,
    QSF_HF_ROPE_LINEAR = 2,
    QSF_HF_ROPE_LLAMA3 = 4,
    QSF_HF_ROPE_YARN = 8,
    QSF_HF_ROPE_LONG = 16,
    QSF_HF_ROPE_DYNAMIC = 32,  /* as PLAIN up to the context length, which is all that metadata can say */
    QSF_HF_ROPE_ALPHA = 64,    /* "dynamic" with a base that depends on "alpha" (HunYuan) */
    QSF_HF_ROPE_SECTIONS = 128 /* "mrope": positions of images in sections; as PLAIN for text */
} QsfHfRope;

/* What sliding_window means. */
typedef enum QsfHfWindow {
    QSF_HF_WINDOW_OTHER,  /* nothing, or `put` handles it */
    QSF_HF_WINDOW_LIMITS, /* the engine has no window: the context is limited to it */
    QSF_HF_WINDOW_SWITCH, /* the same, if use_sliding_window is true */
    QSF_HF_WINDOW_WRITTEN /* metadata, which the engine applies */
} QsfHfWindow;

/* How the tensors of next-token blocks are called. */
typedef enum QsfHfNextn {
    QSF_HF_NEXTN_NONE,   /* they are left out */
    QSF_HF_NEXTN_LAYERS, /* layers after the others: num_nextn_predict_layers */
    QSF_HF_NEXTN_MTP     /* "mtp.fc", "mtp.layers.0", ...: mtp_num_hidden_layers */
} QsfHfNextn;

typedef struct QsfHfArch {
    const char *name;                /* in "architectures" of config.json */
    const char *gguf;                /* general.architecture */
    const QsfHfName *const *tensors; /* tables, each ended by hf NULL; the list ended by NULL */
    const QsfHfKey *const *keys;     /* the same */
    const QsfHfMust *when;           /* the row is only for models with these settings; NULL = for all */
    const QsfHfMust *must;           /* ended by hf NULL; NULL = none */
    int (*put)(QsfHfModel *m);       /* writes what the tables cannot express; NULL = nothing */
    const char *const *prefixes;     /* the first that fits is cut from names; NULL: "model." */
    const char *const *left_out;     /* tensors with these prefixes are not of the language model */
    QsfHfNextn nextn;                /* those of NEXTN_MTP are in left_out, too */
    uint32_t ropes;                  /* supported kinds; 0 = no rotation */
    QsfHfWindow window;
    bool tied;         /* default of tie_word_embeddings */
    bool no_heads;     /* has no attention */
    bool own_kv_heads; /* `put` writes the number of KV heads of each block */
    /* Defaults of config.json; 0 = none, or as said. */
    uint32_t heads, n_vocab;
    uint32_t kv_heads;  /* 0 = as many as heads */
    uint32_t head_dim;  /* 0 = hidden_size / heads */
    uint32_t ffn_times; /* width of the FFN / hidden_size; QSF_HF_NO_FFN: `put` or `keys` write it */
    uint32_t n_ctx;
    const char *rotated; /* the setting with the rotated part of a head, where `put` writes the other sizes */
    const char *ctx;     /* names of the context length; NULL = the usual ones */
    double rope_base;    /* 0 = 10000 */
    const char *rope;    /* rope_scaling, as JSON, if absent from config.json; NULL = none */
    double rotary;       /* partial_rotary_factor; 0 = 1, and no other is supported */
} QsfHfArch;

/* Finds the architecture of a model whose settings are open; NULL if unknown. */
const QsfHfArch *qsf_hf_arch_find(const QsfHfModel *m, const char *name);
/* Returns row i of those for an architecture of GGUF; NULL past the last. */
const QsfHfArch *qsf_hf_arch_of_gguf(const char *gguf, unsigned i);
/* Returns the name of a tensor without the prefix of the architecture. */
const char *qsf_hf_bare_name(const QsfHfModel *m, const char *name);
/* Does the name fit the pattern? Sets *layer and *expert, to -1 where the pattern has none. */
bool qsf_hf_name_fits(const char *pattern, const char *name, int32_t *layer, int32_t *expert);

/* --- the model --- */

/* A tensor that exists in config.json only. */
typedef struct QsfHfMade {
    const char *name;
    float *v; /* (n), in the arena */
    uint32_t n;
} QsfHfMade;

struct QsfHfModel {
    QsfSource *s;
    QsfErr *err;
    char *path;          /* of config.json */
    QsfWhole file;       /* its text */
    QsfJson *root;       /* all of it */
    const QsfJson *text; /* the settings of the language model: text_config, or the root */
    const QsfHfArch *arch;
    uint32_t n_nextn;   /* blocks for predicting several tokens */
    uint32_t n_experts; /* 0 = none */
    uint32_t n_layers, hidden, n_heads, n_kv_heads, n_vocab, n_ctx;
    uint32_t ffn;            /* 0 if the architecture writes its own */
    uint32_t head_dim;       /* even; 0 without attention */
    uint32_t n_rot;          /* rotated elements of a head */
    bool says_head_dim;      /* head_dim is in the file; otherwise it is hidden / n_heads */
    uint32_t window;         /* 0 = none */
    bool tied;               /* the head is the embedding */
    const char *quantized;   /* method of quantization_config, NULL = none; in the tree */
    bool scale_is_factor;    /* of packed trits: it multiplies; otherwise it divides */
    uint32_t scale_block[2]; /* rows and columns of its blocks; 0 = by the shape of the scales */
    QsfHfRope rope;
    QsfJson *rope_fallback; /* the rope_scaling of the architecture, NULL = none */
    double rope_base, rope_factor, rope_low, rope_high, rope_ctx; /* the last three for LLAMA3 and YARN */
    int64_t bos, eos;                                             /* -1 = not set */
    uint32_t ends[QSF_HF_ENDS], n_ends; /* tokens that end an answer, without repeats */
    QsfStHeader *h;                     /* (s->n_files) */
    QsfHfMade made[QSF_HF_MADE];
    uint32_t n_made;
    uint64_t n_targets; /* the most GGUF tensors there can be */
};

/* hf/config.c: reads dir/config.json; close it afterwards, also after a failure. QSF_E_MODEL with its
 * path, the key, its value and what was expected. Unsupported settings that change the computation are
 * errors. */
int qsf_hf_config_open(QsfHfModel *m, QsfSource *s, const char *dir, QsfErr *err);
/* The same for a model whose weights are not needed, of any architecture: reads only m->n_vocab (0 = not
 * set), m->bos and m->eos. config.json may be missing: then m->root is NULL. */
int qsf_hf_config_open_tokens(QsfHfModel *m, QsfSource *s, const char *dir, QsfErr *err);
/* Frees what open has read. */
void qsf_hf_config_close(QsfHfModel *m);
/* hf/config.c: writes the metadata that a GGUF file of this model has. */
int qsf_hf_config_put(QsfHfModel *m);
/* hf/rope.c: reads rope_theta, rope_scaling and their variants into m->rope; writes them as metadata. Errors
 * as for the tables. */
int qsf_hf_rope_read(QsfHfModel *m);
int qsf_hf_rope_put(QsfHfModel *m);
/* hf/nextn.c: finds out how many next-token blocks there are, from the headers m->h if config.json does not
 * say it. */
int qsf_hf_nextn_read(QsfHfModel *m);
/* The name of a tensor without its prefix, as if the next-token blocks were layers after the others: in buf
 * (cap bytes), or itself. */
const char *qsf_hf_nextn_name(const QsfHfModel *m, const char *name, char *buf, size_t cap);
/* hf/tensors.c: fills the tensors of m->s from the headers m->h. */
int qsf_hf_tensors_add(QsfHfModel *m);
/* Writes general.sampling.* from generation_config.json, if it exists, and collects its end tokens.
 * QSF_E_MODEL with path, line and column if it is not JSON; values that are not numbers are skipped. */
int qsf_hf_generation_put(QsfHfModel *m);
/* Adds those of config.json and writes QSF_KEY_ENDS, and the end token if the vocabulary has none. Call it
 * after the vocabulary was read. */
int qsf_hf_ends_put(QsfHfModel *m);

/* Opens model.safetensors in s->dir, or the shards listed in model.safetensors.index.json, as s->files,
 * and reads the header of each: *h (s->n_files) in memory of QsfSource.opening. QSF_E_MODEL if a shard is
 * missing, is not a plain file name, or lacks a tensor that the index places there. */
int qsf_hf_weights_read(QsfSource *s, QsfStHeader **h, QsfErr *err);

/* Returns "dir/name", or NULL with *err set. The caller frees it. */
char *qsf_hf_path(const char *dir, const char *name, QsfErr *err);

/* --- for the tables: hf/config_get.c, hf/rows.c. Errors are QSF_E_MODEL and name config.json, key and
 * value. --- */

/* Returns a member of object, under the first of the names that it has; NULL if it has none or the value
 * is null, which means the same. */
const QsfJson *qsf_hf_member(const QsfJson *object, const char *names);
/* Returns QSF_E_MODEL: the value of the key, of the first of the names that exists, and what is wrong with
 * it. */
int qsf_hf_bad(const QsfHfModel *m, const char *names, const char *what);
/* Reads a number from 1 to QSF_HF_NUMBER. fallback 0: the key is required. */
int qsf_hf_u32(const QsfHfModel *m, const char *names, uint32_t fallback, uint32_t *out);
/* Reads a number from lo to hi from object. fallback NaN: the key is required. */
int qsf_hf_real(const QsfHfModel *m, const QsfJson *object, const char *names, double fallback, double lo,
                double hi, double *out);
/* Reads true or false; fallback if the key is absent. */
int qsf_hf_bool(const QsfHfModel *m, const char *names, bool fallback, bool *out);
/* Is the setting absent, or has it one of the values? */
bool qsf_hf_is(const QsfHfModel *m, const QsfHfMust *row);
/* Checks a setting: see QsfHfMust. */
int qsf_hf_must(const QsfHfModel *m, const QsfHfMust *row);
/* Finds a tensor by its full name and reads its first element. False if it is missing or not of a float
 * type. */
bool qsf_hf_first_value(const QsfHfModel *m, const char *name, float *out);

/* Write metadata "ARCH.name", or "name" if it is given as ".name". */
int qsf_hf_put_u32(QsfHfModel *m, const char *name, uint32_t v);
int qsf_hf_put_f32(QsfHfModel *m, const char *name, double v);
int qsf_hf_put_bool(QsfHfModel *m, const char *name, bool v);
int qsf_hf_put_str(QsfHfModel *m, const char *name, const char *text);
/* Arrays of n integers, bools, floats. */
int qsf_hf_put_u32s(QsfHfModel *m, const char *name, const uint32_t *v, uint32_t n);
int qsf_hf_put_bools(QsfHfModel *m, const char *name, const bool *v, uint32_t n);
int qsf_hf_put_f32s(QsfHfModel *m, const char *name, const float *v, uint32_t n);
/* Writes attention.sliding_window_pattern from layer_types, if it exists: true = sliding_attention. */
int qsf_hf_put_windows(QsfHfModel *m);
/* The same after attention.sliding_window. fallback: the window if absent from config.json. */
int qsf_hf_put_window(QsfHfModel *m, uint32_t fallback);
/* Adds a tensor of n floats that the caller fills; NULL with the error set. The name is static. */
float *qsf_hf_make(QsfHfModel *m, const char *name, uint32_t n);

/* Functions of rows, for the tables (QsfHfRows): *map becomes which rows of the src_rows of a stored
 * tensor make the n rows of one of the program. QSF_E_MODEL: src_rows does not fit the heads.
 *
 * Rows of queries and of keys whose rotated halves GGUF stores as pairs. */
int qsf_hf_rows_q(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_k(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
/* Rows of one of three tensors that are stored as one, head by head: query, key and value of head 0, of
 * head 1... */
int qsf_hf_rows_head_q(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_head_k(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_head_v(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
/* The same, by groups: the queries of a KV head, its key, its value. */
int qsf_hf_rows_group_q(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_group_k(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_group_v(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
/* The same, and the halves of queries and keys as pairs. */
int qsf_hf_rows_group_q_pairs(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_group_k_pairs(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
/* Queries (as pairs), keys (as pairs) and values that are stored one after the other. */
int qsf_hf_rows_fused_q_pairs(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_fused_k_pairs(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
int qsf_hf_rows_fused_v(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n);
/* Error about a number of rows. */
int qsf_hf_bad_rows(const QsfHfModel *m, uint64_t src_rows, uint64_t expected, const char *why);

#endif
