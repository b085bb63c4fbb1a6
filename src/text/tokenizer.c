/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens the tokenizer of a model file and answers questions about it. */
#include "src/text/tokenizer.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "src/text/tokenizer_impl.h"

#define KEY_MODEL "tokenizer.ggml.model"
#define KEY_PRE "tokenizer.ggml.pre"

/* Compiled expressions of any row of the pre-tokenizer table take less. */
#define PATTERN_ROOM (32u * 1024)
/* Tokens that their text alone makes special, beyond those whose type says so. */
#define EXTRA_SPECIAL 64

/* What will be built, known before anything is allocated. */
typedef struct Plan {
    bool is_bpe;
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
    plan->is_bpe = strcmp(model, "gpt2") == 0;
    if (plan->is_bpe || strcmp(model, "llama") == 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: tokenizers of kind \"%.64s\" (%s) are not supported, only llama and gpt2", path,
                       model, KEY_MODEL);
}

static int make_plan(Plan *plan, const QsfSource *src, QsfErr *err) {
    *plan = (Plan){0};
    int rc = read_kind(plan, src, err);
    if (rc == QSF_OK) rc = qsf_vocab_shape(&plan->shape, src, !plan->is_bpe, err);
    if (rc == QSF_OK && plan->is_bpe) rc = qsf_ranks_count(src, &plan->n_merges, err);
    if (rc != QSF_OK) return rc;
    uint32_t n_special = plan->shape.n_special + EXTRA_SPECIAL;
    plan->arena_bytes =
        sizeof(QsfTokenizer) + qsf_vocab_bytes(&plan->shape) + qsf_specials_bytes(n_special) + 256;
    if (plan->is_bpe) plan->arena_bytes += qsf_ranks_bytes(plan->n_merges);
    return QSF_OK;
}

uint64_t qsf_tokenizer_estimate(const QsfSource *src) {
    const uint64_t page = 4096;
    Plan plan;
    QsfErr err = {0};
    if (make_plan(&plan, src, &err) != QSF_OK) return 0; /* opening will say why */
    return (plan.arena_bytes / page + 1) * page + (plan.is_bpe ? PATTERN_ROOM : 0);
}

/* --- byte-level BPE --- */

/* The row for this file; guesses with a warning. */
static int choose_pretok(QsfTokenizer *t, const QsfSource *src, const QsfPretokSpec **spec, QsfErr *err) {
    const char *pre;
    size_t len = 0;
    int rc = qsf_meta_str(src, KEY_PRE, &pre, &len, err);
    if (rc != QSF_OK) return rc;
    *spec = pre != NULL ? qsf_pretok_spec(pre, len) : NULL;
    if (*spec != NULL) return QSF_OK;
    *spec = qsf_pretok_spec(QSF_PRETOK_DEFAULT, strlen(QSF_PRETOK_DEFAULT));
    if (pre == NULL) {
        snprintf(t->warning, sizeof t->warning,
                 "the model does not name its pre-tokenizer (%s): using \"%s\"", KEY_PRE, QSF_PRETOK_DEFAULT);
    } else {
        snprintf(t->warning, sizeof t->warning,
                 "the model's pre-tokenizer \"%.64s\" is not known: using \"%s\"", pre, QSF_PRETOK_DEFAULT);
    }
    return QSF_OK;
}

static int open_bpe(QsfTokenizer *t, const QsfSource *src, const Plan *plan, QsfErr *err) {
    const QsfPretokSpec *spec;
    int rc = choose_pretok(t, src, &spec, err);
    if (rc == QSF_OK) rc = qsf_pretok_open(&t->bpe.pretok, spec, err);
    if (rc == QSF_OK) rc = qsf_ledger_reserve(t->arena.ledger, QSF_MEM_TOKENIZER, t->bpe.pretok.bytes,
                                              "pre-tokenizer expressions", err);
    if (rc != QSF_OK) return rc;
    t->pattern_bytes = t->bpe.pretok.bytes;
    t->bpe.ignore_merges = spec->flags & QSF_PRETOK_IGNORE_MERGES;
    t->clean_spaces = spec->flags & QSF_PRETOK_CLEAN;
    t->add_bos = spec->flags & QSF_PRETOK_BOS;
    qsf_bpe_init_bytes(&t->bpe, &t->vocab);
    return qsf_ranks_load(&t->bpe.ranks, src, &t->vocab, plan->n_merges, &t->arena, err);
}

/* --- rules that hang on names (ggml-org/llama.cpp src/llama-vocab.cpp) --- */

static void set_attr(QsfVocab *v, const char *text, uint8_t attr, bool on) {
    int32_t id = qsf_vocab_find(v, text, strlen(text));
    if (id < 0) return;
    v->attr[id] = (uint8_t)(on ? v->attr[id] | attr : v->attr[id] & ~(unsigned)attr);
}

/* Phi-3's special tokens swallow the white space behind them, Jina's mask the one before it. */
static int apply_strip_rules(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    const char *name, *pre;
    int rc = qsf_meta_str(src, "general.name", &name, NULL, err);
    if (rc == QSF_OK) rc = qsf_meta_str(src, KEY_PRE, &pre, NULL, err);
    if (rc != QSF_OK) return rc;
    if (pre != NULL && strstr(pre, "jina-v2-") != NULL) {
        set_attr(&t->vocab, "<mask>", QSF_ATTR_LSTRIP, true);
        return QSF_OK;
    }
    if (name == NULL || (strcasestr(name, "phi-3") == NULL && strcasestr(name, "phi3") == NULL))
        return QSF_OK;
    for (uint32_t i = 0; i < t->specials.n; i++) t->vocab.attr[t->specials.id[i]] |= QSF_ATTR_RSTRIP;
    set_attr(&t->vocab, "<unk>", QSF_ATTR_RSTRIP, false);
    set_attr(&t->vocab, "<s>", QSF_ATTR_RSTRIP, false);
    set_attr(&t->vocab, "<|endoftext|>", QSF_ATTR_RSTRIP, false);
    return QSF_OK;
}

/* The flags that a file may set over the defaults of its kind. */
static int read_flags(QsfTokenizer *t, const QsfSource *src, QsfErr *err) {
    int rc = qsf_meta_bool(src, "tokenizer.ggml.add_bos_token", t->add_bos, &t->add_bos, err);
    if (rc == QSF_OK) rc = qsf_meta_bool(src, "tokenizer.ggml.add_eos_token", t->add_eos, &t->add_eos, err);
    if (rc == QSF_OK) {
        rc = qsf_meta_bool(src, "tokenizer.ggml.add_space_prefix", t->add_space_prefix, &t->add_space_prefix,
                           err);
    }
    t->add_bos = t->add_bos && t->roles.id[QSF_ROLE_BOS] >= 0;
    t->add_eos = t->add_eos && t->roles.id[QSF_ROLE_EOS] >= 0;
    return rc;
}

static int build(QsfTokenizer *t, const QsfSource *src, const Plan *plan, QsfErr *err) {
    t->is_bpe = plan->is_bpe;
    t->add_bos = t->add_space_prefix = !plan->is_bpe;
    int rc = qsf_vocab_load(&t->vocab, src, &plan->shape, &t->arena, err);
    if (rc == QSF_OK) rc = qsf_roles_read(&t->roles, src, &t->vocab, !plan->is_bpe, err);
    if (rc != QSF_OK) return rc;
    qsf_roles_complete(&t->roles, &t->vocab);
    rc = qsf_specials_init(&t->specials, &t->vocab, &t->arena, err);
    if (rc == QSF_OK && plan->is_bpe) rc = open_bpe(t, src, plan, err);
    if (rc == QSF_OK && !plan->is_bpe) qsf_spm_init(&t->spm, &t->vocab, t->roles.id[QSF_ROLE_UNK]);
    if (rc == QSF_OK) rc = read_flags(t, src, err);
    if (rc == QSF_OK) rc = apply_strip_rules(t, src, err);
    if (rc == QSF_OK && t->roles.bad_key != NULL && t->warning[0] == '\0') {
        snprintf(t->warning, sizeof t->warning, "%s names a token outside the vocabulary and was ignored",
                 t->roles.bad_key);
    }
    return rc;
}

int qsf_tokenizer_open(QsfTokenizer **out, const QsfSource *src, QsfLedger *ledger, QsfErr *err) {
    QsfErr own = {0};
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
    QsfArena arena = t->arena; /* t lies in it */
    qsf_ledger_release(arena.ledger, QSF_MEM_TOKENIZER, t->pattern_bytes);
    qsf_arena_destroy(&arena);
}

/* --- questions --- */

const char *qsf_tokenizer_warning(const QsfTokenizer *t) { return t->warning[0] != '\0' ? t->warning : NULL; }
uint32_t qsf_tokenizer_n_vocab(const QsfTokenizer *t) { return t->vocab.n; }
int32_t qsf_tokenizer_bos(const QsfTokenizer *t) { return t->roles.id[QSF_ROLE_BOS]; }
int32_t qsf_tokenizer_eos(const QsfTokenizer *t) { return t->roles.id[QSF_ROLE_EOS]; }
int32_t qsf_tokenizer_eot(const QsfTokenizer *t) { return t->roles.id[QSF_ROLE_EOT]; }
bool qsf_tokenizer_adds_bos(const QsfTokenizer *t) { return t->add_bos; }
bool qsf_tokenizer_adds_eos(const QsfTokenizer *t) { return t->add_eos; }

bool qsf_tokenizer_is_eog(const QsfTokenizer *t, int32_t id) {
    return id >= 0 && (uint32_t)id < t->vocab.n && (t->vocab.attr[id] & QSF_ATTR_EOG);
}

QsfTokenType qsf_tokenizer_type(const QsfTokenizer *t, int32_t id) { return qsf_vocab_type(&t->vocab, id); }

int32_t qsf_tokenizer_find(const QsfTokenizer *t, const char *text, size_t len) {
    return qsf_vocab_find(&t->vocab, text, len);
}

const char *qsf_tokenizer_raw(const QsfTokenizer *t, int32_t id, size_t *len) {
    return qsf_vocab_text(&t->vocab, id, len);
}
