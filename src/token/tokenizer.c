/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens the tokenizer of a model file and answers questions about it. */
#include "src/token/tokenizer.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "src/base/heap.h"
#include "src/base/plural.h"
#include "src/file/vocab/keys.h"
#include "src/token/tokenizer_impl.h"

/* --- growable list of token ids --- */

static int grow(QsfIds *ids, size_t extra, QsfErr *err) {
    if (extra <= ids->cap - ids->n) return QSF_OK;
    size_t want = ids->cap < 64 ? 64 : ids->cap + ids->cap / 2;
    if (extra > SIZE_MAX / 4 - ids->n || want > SIZE_MAX / sizeof *ids->data) {
        return qsf_err_memory(err, "%zu more token ids", extra);
    }
    if (want < ids->n + extra) want = ids->n + extra;
    void *p = ids->data;
    int rc = qsf_heap_resize(ids->ledger, QSF_MEM_TRANSCRIPT, ids->cap * sizeof *ids->data,
                             want * sizeof *ids->data, "token ids of the prompt", &p, err);
    if (rc != QSF_OK) return rc;
    ids->data = p;
    ids->cap = want;
    return QSF_OK;
}

int qsf_ids_push(QsfIds *ids, int32_t id, QsfErr *err) {
    if (ids->n == ids->cap) {
        int rc = grow(ids, 1, err);
        if (rc != QSF_OK) return rc;
    }
    ids->data[ids->n++] = id;
    return QSF_OK;
}

int qsf_ids_append(QsfIds *ids, const int32_t *src, size_t n, QsfErr *err) {
    if (n == 0) return QSF_OK;
    int rc = grow(ids, n, err);
    if (rc != QSF_OK) return rc;
    memcpy(ids->data + ids->n, src, n * sizeof *src);
    ids->n += n;
    return QSF_OK;
}

void qsf_ids_free(QsfIds *ids) {
    void *p = ids->data;
    (void)qsf_heap_resize(ids->ledger, QSF_MEM_TRANSCRIPT, ids->cap * sizeof *ids->data, 0, "", &p, NULL);
    *ids = (QsfIds){ .ledger = ids->ledger };
}

#define KEY_MODEL "tokenizer.ggml.model"
#define KEY_PRE   "tokenizer.ggml.pre"

/* Upper bound for the compiled expressions of any row of the pre-tokenizer table. */
#define PATTERN_ROOM (96u * 1024)
/* Tokens that are special because of their text, in addition to those with such a type. */
#define EXTRA_SPECIAL       64
#define EXTRA_SPECIAL_BYTES 64 /* of the longest */

static const QsfTokenizerKind KINDS[] = {
    { "llama", QSF_ALG_SPM, NULL, true, false, true, { 1, 2, 0 } },
    { "gpt2", QSF_ALG_BPE, NULL, false, false, false, { -1, -1, -1 } },
    { "gemma4", QSF_ALG_BPE, "gemma4", true, false, false, { -1, -1, -1 } },
    { "t5", QSF_ALG_UNIGRAM, NULL, false, true, true, { -1, 1, 2 } },
    { "rwkv", QSF_ALG_GREEDY, NULL, false, false, false, { -1, -1, -1 } },
    { "plamo2", QSF_ALG_PLAMO, NULL, false, false, false, { 1, 2, 0 } },
};

/* The sizes to build, known before anything is allocated. */
typedef struct Plan {
    const QsfTokenizerKind *kind;
    QsfVocabShape shape;
    uint32_t n_merges;
    uint64_t arena_bytes;
} Plan;

static int read_kind(Plan *plan, const QsfSource *src, QsfErr *err) {
    const char *model, *path = qsf_source_path(src);
    int rc = qsf_meta_str(src, KEY_MODEL, &model, NULL, err);
    if (rc != QSF_OK) return rc;
    if (model == NULL)
        return qsf_err_set(err, QSF_E_MODEL, "%s: no tokenizer (%s is missing)", path, KEY_MODEL);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(KINDS[i].model, model) == 0) plan->kind = &KINDS[i];
    if (plan->kind != NULL) return QSF_OK;
    return qsf_err_set(
        err, QSF_E_MODEL,
        "%s: tokenizer \"%.64s\" (%s) is not supported, expected llama, gpt2, gemma4, t5, rwkv or plamo2",
        path, model, KEY_MODEL);
}

static int make_plan(Plan *plan, const QsfSource *src, QsfErr *err) {
    uint64_t charsmap = 0;
    *plan = (Plan){ 0 };
    int rc = read_kind(plan, src, err);
    if (rc != QSF_OK) return rc;
    const QsfAlgorithm alg = plan->kind->algorithm;
    const bool bpe = alg == QSF_ALG_BPE, greedy = alg == QSF_ALG_GREEDY;
    rc = qsf_vocab_shape(&plan->shape, src, !bpe && !greedy, err);
    plan->shape.escaped = greedy;
    if (rc == QSF_OK && bpe) rc = qsf_ranks_count(src, &plan->n_merges, err);
    if (rc == QSF_OK && !greedy) rc = qsf_charsmap_bytes(src, &charsmap, err);
    if (rc != QSF_OK) return rc;
    const uint32_t n_special = plan->shape.n_special + EXTRA_SPECIAL;
    const uint64_t special_bytes = plan->shape.special_bytes + (uint64_t)EXTRA_SPECIAL * EXTRA_SPECIAL_BYTES;
    plan->arena_bytes = sizeof(QsfTokenizer) + qsf_vocab_bytes(&plan->shape) +
                        qsf_specials_bytes(n_special, special_bytes) + charsmap + 256;
    if (qsf_meta_has(src, QSF_KEY_NORMALIZED)) /* normalized texts, usually of the same length */
        plan->arena_bytes += qsf_specials_bytes(0, special_bytes) + special_bytes + 16ull * n_special;
    if (bpe) plan->arena_bytes += qsf_ranks_bytes(plan->n_merges);
    if (alg == QSF_ALG_UNIGRAM || alg == QSF_ALG_PLAMO || greedy)
        plan->arena_bytes += qsf_trie_bytes(plan->shape.text_bytes) +
                             qsf_matcher_bytes(plan->shape.n_long, plan->shape.long_bytes);
    return QSF_OK;
}

uint64_t qsf_tokenizer_estimate(const QsfSource *src) {
    const uint64_t page = 4096;
    Plan plan;
    QsfErr err = { 0 };
    if (make_plan(&plan, src, &err) != QSF_OK) return 0; /* opening will report the error */
    return (plan.arena_bytes / page + 1) * page + (plan.kind->algorithm == QSF_ALG_BPE ? PATTERN_ROOM
                                                   : qsf_meta_has(src, QSF_KEY_STEPS)  ? PATTERN_ROOM
                                                                                       : 0);
}

/* --- by algorithm --- */

static int32_t unknown_id(const QsfTokenizer *t) {
    return t->steps.present ? t->model_unknown : t->roles.id[QSF_TOKEN_ROLE_UNK];
}

static int open_trained_bpe(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    t->bytes = t->steps.bytes;
    t->bpe.chars = !t->steps.bytes;
    return qsf_meta_bool(src, QSF_KEY_IGNORE_MERGES, false, &t->bpe.ignore_merges, err);
}

static int open_bpe(QsfTokenizer *t, const QsfSource *src, const Plan *plan, QsfErr *err) {
    int rc = t->steps.present ? open_trained_bpe(t, src, err) : qsf_tokenizer_open_pretok(t, src, err);
    if (rc != QSF_OK) return rc;
    qsf_bpe_init_bytes(&t->bpe, &t->vocab, t->bpe.chars, unknown_id(t));
    rc = qsf_ranks_load(&t->bpe.ranks, src, &t->vocab, plan->n_merges, &t->arena, err);
    if (rc == QSF_OK && t->bpe.ranks.n_lost > 0 && t->warning[0] == '\0') {
        qsf_plural_snprintf(t->warning, sizeof t->warning,
                            "%u of the vocabulary's %u merges use tokens that are missing",
                            t->bpe.ranks.n_lost, plan->n_merges);
    }
    return rc;
}

static int open_spm(QsfTokenizer *t, const QsfSource *src, const Plan *plan, QsfErr *err) {
    (void)plan;
    qsf_spm_init(&t->spm, &t->vocab, t->roles.id[QSF_TOKEN_ROLE_UNK]);
    return qsf_charsmap_load(&t->charsmap, src, &t->arena, err);
}

static int open_unigram(QsfTokenizer *t, const QsfSource *src, const Plan *plan, QsfErr *err) {
    (void)plan;
    int rc = t->steps.present ? QSF_OK : qsf_charsmap_load(&t->charsmap, src, &t->arena, err);
    if (rc != QSF_OK) return rc;
    t->bytes = t->steps.bytes;
    return qsf_unigram_init(&t->unigram, &t->vocab, unknown_id(t), &t->arena, err);
}

static int open_greedy(QsfTokenizer *t, const QsfSource *src, const Plan *plan, QsfErr *err) {
    (void)src;
    (void)plan;
    return qsf_greedy_init(&t->greedy, &t->vocab, t->roles.id[QSF_TOKEN_ROLE_UNK], &t->arena, err);
}

static int open_plamo(QsfTokenizer *t, const QsfSource *src, const Plan *plan, QsfErr *err) {
    (void)plan;
    int rc = qsf_plamo_init(&t->plamo, &t->vocab, &t->arena, err);
    return rc == QSF_E_MODEL ? qsf_err_prefix(err, "%s", qsf_source_path(src)) : rc;
}

static int (*const OPEN[])(QsfTokenizer *, const QsfSource *, const Plan *, QsfErr *) = {
    [QSF_ALG_SPM] = open_spm,       [QSF_ALG_BPE] = open_bpe,     [QSF_ALG_UNIGRAM] = open_unigram,
    [QSF_ALG_GREEDY] = open_greedy, [QSF_ALG_PLAMO] = open_plamo,
};

/* --- rules that depend on names (ggml-org/llama.cpp src/llama-vocab.cpp) --- */

static void set_attr(QsfVocab *v, const char *text, uint8_t attr, bool on) {
    int32_t id = qsf_vocab_find(v, text, strlen(text));
    if (id < 0) return;
    v->attr[id] = (uint8_t)(on ? v->attr[id] | attr : v->attr[id] & ~(unsigned)attr);
}

/* Ids listed in the file, as an array. */
static int read_ids(QsfTokenizer *t, const QsfSource *src, const char *key, uint8_t attr, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    int rc = qsf_meta_array_open(src, key, QSF_META_I64, &a, &present, err);
    if (rc != QSF_OK || !present) return rc;
    for (uint64_t i = 0; i < a.count && rc == QSF_OK; i++) {
        int64_t id = -1;
        rc = qsf_meta_array_i64(&a, &id, err);
        if (id >= 0 && id < (int64_t)t->vocab.n) t->vocab.attr[id] |= attr;
    }
    qsf_meta_array_close(&a);
    return rc;
}

static int read_attributes(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    int rc = read_ids(t, src, QSF_KEY_LSTRIP, QSF_ATTR_LSTRIP, err);
    if (rc == QSF_OK) rc = read_ids(t, src, QSF_KEY_RSTRIP, QSF_ATTR_RSTRIP, err);
    if (rc == QSF_OK) rc = read_ids(t, src, QSF_KEY_SINGLE_WORD, QSF_ATTR_SINGLE, err);
    return rc == QSF_OK ? read_ids(t, src, QSF_KEY_ADDED_ONLY, QSF_ATTR_ADDED_ONLY, err) : rc;
}

/* Phi-3's special tokens strip the white space after them, Jina's mask the white space before it. */
static int apply_strip_rules(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    const char *name, *pre;
    size_t len; /* the name is searched, not compared: one with a NUL is searched up to it */
    int rc = qsf_meta_str(src, "general.name", &name, &len, err);
    if (rc == QSF_OK) rc = qsf_meta_str(src, KEY_PRE, &pre, NULL, err);
    if (rc != QSF_OK || t->steps.present) return rc;
    if (pre != NULL && strstr(pre, "jina-v2-") != NULL) {
        set_attr(&t->vocab, "<mask>", QSF_ATTR_LSTRIP, true);
        return QSF_OK;
    }
    if (name == NULL || (strcasestr(name, "phi-3") == NULL && strcasestr(name, "phi3") == NULL))
        return QSF_OK;
    for (uint32_t i = 0; i < t->vocab.n; i++)
        if (qsf_specials_has(&t->vocab, (int32_t)i)) t->vocab.attr[i] |= QSF_ATTR_RSTRIP;
    set_attr(&t->vocab, "<unk>", QSF_ATTR_RSTRIP, false);
    set_attr(&t->vocab, "<s>", QSF_ATTR_RSTRIP, false);
    set_attr(&t->vocab, "<|endoftext|>", QSF_ATTR_RSTRIP, false);
    return QSF_OK;
}

/* Flags in a file that override the defaults of its kind. */
static int read_flags(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {
        { "tokenizer.ggml.add_bos_token", &t->add_bos },
        { "tokenizer.ggml.add_eos_token", &t->add_eos },
        { "tokenizer.ggml.add_space_prefix", &t->add_space_prefix },
        { QSF_KEY_CLEAN_SPACES, &t->clean_spaces },
        { QSF_KEY_PREFIX_FIRST, &t->prefix_first },
        { QSF_KEY_PREFIX_MISSING, &t->prefix_missing },
        { QSF_KEY_PREFIX_USER, &t->prefix_user },
    };
    int rc = QSF_OK;
    for (size_t i = 0; i < sizeof flags / sizeof *flags && rc == QSF_OK; i++)
        rc = qsf_meta_bool(src, flags[i].key, *flags[i].flag, flags[i].flag, err);
    t->add_bos = t->add_bos && t->roles.id[QSF_TOKEN_ROLE_BOS] >= 0;
    t->add_eos = t->add_eos && t->roles.id[QSF_TOKEN_ROLE_EOS] >= 0;
    return rc;
}

static int build(QsfTokenizer *t, const QsfSource *src, const Plan *plan, QsfErr *err) {
    const QsfTokenizerKind *kind = t->kind = plan->kind;
    t->add_bos = kind->add_bos;
    t->add_eos = kind->add_eos;
    t->add_space_prefix = kind->space_prefix;
    t->normal_form = -1;
    int rc = qsf_vocab_load(&t->vocab, src, &plan->shape, &t->arena, err);
    if (rc == QSF_OK) rc = qsf_roles_read(&t->roles, src, &t->vocab, kind->fallback, err);
    if (rc != QSF_OK) return rc;
    qsf_roles_complete(&t->roles, &t->vocab, src);
    if (rc == QSF_OK) rc = read_attributes(t, src, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_meta_has(src, QSF_KEY_STEPS) ? qsf_tokenizer_open_steps(t, src, err)
                                          : qsf_specials_init_all(&t->specials, &t->vocab, &t->arena, err);
    if (rc == QSF_OK) rc = OPEN[kind->algorithm](t, src, plan, err);
    t->unescape = !t->bytes && kind->algorithm != QSF_ALG_GREEDY && kind->algorithm != QSF_ALG_PLAMO;
    if (rc == QSF_OK) rc = read_flags(t, src, err);
    if (rc == QSF_OK) rc = apply_strip_rules(t, src, err);
    if (rc == QSF_OK && t->roles.bad_key != NULL && t->warning[0] == '\0') {
        snprintf(t->warning, sizeof t->warning, "%s names a token outside the vocabulary and was ignored",
                 t->roles.bad_key);
    }
    if (rc == QSF_OK && t->warning[0] == '\0' && qsf_source_notice(src)[0] != '\0')
        snprintf(t->warning, sizeof t->warning, "%s", qsf_source_notice(src));
    return rc;
}

int qsf_tokenizer_open(QsfTokenizer **out, const QsfSource *src, QsfLedger *ledger, QsfErr *err) {
    QsfErr own = { 0 };
    if (err == NULL) err = &own;
    *out = NULL;
    Plan plan;
    int rc = make_plan(&plan, src, err);
    if (rc != QSF_OK) return rc;
    QsfArena arena;
    qsf_arena_init(&arena, ledger, QSF_MEM_TOKENIZER, "tokenizer", plan.arena_bytes); /* all in one block */
    QsfTokenizer *t = qsf_arena_alloc(&arena, sizeof *t, 64, err);
    if (t == NULL) return err->code;
    t->arena = arena;
    rc = build(t, src, &plan, err);
    if (rc != QSF_OK) {
        qsf_tokenizer_close(t);
        return rc;
    }
    qsf_arena_freeze(&t->arena, true);
    *out = t;
    return QSF_OK;
}

void qsf_tokenizer_close(QsfTokenizer *t) {
    if (t == NULL) return;
    qsf_pretok_close(&t->bpe.pretok);
    qsf_steps_close(&t->steps);
    QsfArena arena = t->arena; /* t is inside it */
    qsf_ledger_release(arena.ledger, QSF_MEM_TOKENIZER, t->pattern_bytes);
    qsf_arena_destroy(&arena);
}

/* --- questions --- */

const char *qsf_tokenizer_warning(const QsfTokenizer *t) { return t->warning[0] != '\0' ? t->warning : NULL; }
uint32_t qsf_tokenizer_n_vocab(const QsfTokenizer *t) { return t->vocab.n; }
int32_t qsf_tokenizer_bos(const QsfTokenizer *t) { return t->roles.id[QSF_TOKEN_ROLE_BOS]; }
int32_t qsf_tokenizer_eos(const QsfTokenizer *t) { return t->roles.id[QSF_TOKEN_ROLE_EOS]; }
bool qsf_tokenizer_adds_bos(const QsfTokenizer *t) { return t->add_bos; }

bool qsf_tokenizer_is_eog(const QsfTokenizer *t, int32_t id) {
    return id >= 0 && (uint32_t)id < t->vocab.n && (t->vocab.attr[id] & QSF_ATTR_EOG);
}

bool qsf_tokenizer_is_eom(const QsfTokenizer *t, int32_t id) {
    return id >= 0 && t->roles.id[QSF_TOKEN_ROLE_MESSAGE_END] == id;
}

QsfTokenType qsf_tokenizer_type(const QsfTokenizer *t, int32_t id) { return qsf_vocab_type(&t->vocab, id); }

int32_t qsf_tokenizer_find(const QsfTokenizer *t, const char *text, size_t len) {
    return qsf_vocab_find(&t->vocab, text, len);
}

const char *qsf_tokenizer_raw(const QsfTokenizer *t, int32_t id, size_t *len) {
    return qsf_vocab_text(&t->vocab, id, len);
}
