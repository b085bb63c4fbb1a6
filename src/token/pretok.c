/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pre-tokenizers by the value of tokenizer.ggml.pre. The expressions are those used in training
 * (tokenizer.json of each model, openai/tiktoken tiktoken_ext/openai_public.py); values and their defaults as
 * in ggml-org/llama.cpp src/llama-vocab.cpp.
 *
 * They are applied to a text depth first: every piece goes through the remaining passes immediately, so no
 * list of pieces is stored. */
#include "src/token/pretok.h"

#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/utf8.h"

/* ---- the table ---- */

#define ANY_CASE_SUFFIX "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define SPACES          "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CL100K(digits) \
    ANY_CASE_SUFFIX "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LEAD  "[^\\r\\n\\p{L}\\p{N}]?"
#define O200K(suffix, digits)                                                      \
    LEAD UPPER "*" LOWER "+" suffix "|" LEAD UPPER "+" LOWER "*" suffix "|" digits \
               "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"
#define CJK  "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+"
#define DEEPSEEK_WORDS                                                                                  \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+" \
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*" SPACES
#define NOT_SEPARATOR " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"

static const char *const DEFAULT[] = { "[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]",
                                       NULL };
static const char *const GPT_2[] = { GPT2, NULL };
static const char *const LLAMA3[] = { CL100K("\\p{N}{1,3}"), NULL };
static const char *const QWEN2[] = { CL100K("\\p{N}"), NULL };
static const char *const STARCODER[] = { "\\p{N}", GPT2, NULL };
static const char *const FALCON[] = { "[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]", NULL };
static const char *const BLOOM[] = { NOT_SEPARATOR, NULL };
static const char *const VIKING[] = { NOT_SEPARATOR, "\\p{N}", NULL };
static const char *const TEKKEN[] = { O200K("", "\\p{N}"), NULL };
static const char *const GPT_4O[] = { O200K(ANY_CASE_SUFFIX "?", "\\p{N}{1,3}"), NULL };
static const char *const MINICPM5[] = { "\\p{N}{1,3}", CL100K("\\p{N}+"), NULL };
static const char *const LAGUNA[] = { "[^\\n]+|[\\n]+", CL100K("\\p{N}"), NULL };

static const char *const CHAMELEON[] = {
    "<sentinel:[0-9]+>",
    "IMGIMG[A-I]{1,4}Z",
    "[\\t\\n]|    |  ",
    "\\p{N}",
    "[\\p{P}!-/:-@\\[-`{-~]",
    GPT2,
    NULL,
};

/* The range U+0800 to U+4E00 of both DeepSeek expressions contains white space (U+2003, U+2028, U+3000, ...),
 * which is therefore split from other white space and from words. huggingface/tokenizers, for which the
 * expressions were written, splits there too. ggml-org/llama.cpp replaces such white space with U+000B before
 * it matches, and does not. */
static const char *const DEEPSEEK_CODER[] = {
    "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+",
    "\\p{N}",   NULL,
};

static const char *const DEEPSEEK_LLM[] = {
    "[\\r\\n]",
    "\\s?[A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"
    "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}"
    "\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}"
    "\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}"
    "\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}"
    "\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}"
    "\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}"
    "\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}"
    "\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}"
    "\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}"
    "\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}"
    "\\x{1E900}-\\x{1E943}]+",
    "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+",
    "\\s+$",
    "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+",
    "\\p{N}+",
    NULL,
};

static const char *const DEEPSEEK_V3[] = {
    "\\p{N}{1,3}",
    CJK,
    DEEPSEEK_WORDS,
    NULL,
};

static const char *const YOUTU[] = {
    "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}"
    "\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]"
    "+|" CJK,
    O200K(ANY_CASE_SUFFIX "?", "\\p{N}"),
    NULL,
};

static const char *const QWEN35[] = {
    ANY_CASE_SUFFIX "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SPACES,
    NULL,
};

/* Groups of three digits from the right, in linear time (see TINY_AYA below); where digits are next to other
 * numbers ("2" superscript), the published expression keeps the two together. */
static const char *const SUPERBPE[] = { "\\p{N}+", "\\d++", "^\\d{1,2}(?=(?:\\d{3})++$)", "\\d{3}", NULL };

/* tokenization_kimi.py of moonshotai/Kimi-K2-Instruct: o200k without Han in its words. */
#define NOT_HAN(class) "(?:(?!\\p{Han})" class ")"
static const char *const KIMI_K2[] = {
    "\\p{Han}+|" LEAD NOT_HAN(UPPER) "*" NOT_HAN(LOWER) "+" ANY_CASE_SUFFIX "?|" LEAD NOT_HAN(
        UPPER) "+" NOT_HAN(LOWER) "*" ANY_CASE_SUFFIX "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES,
    NULL,
};

static const char *const AFMOE[] = {
    "\\p{N}+",
    "^\\p{N}{1,2}(?=(?:\\p{N}{3})++$)",
    "\\p{N}{3}",
    "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{8C48}-\\x{FAFF}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}"
    "\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}\\x{E40}-\\x{E7F}\\x{E80}-\\x{EFF}\\x{1780}-\\x{17FF}"
    "\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}\\x{A9E0}-\\x{A9FF}\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+",
    DEEPSEEK_WORDS,
    NULL,
};

/* Words are not split at all: merges may cross spaces. */
static const char *const LINES[] = { "[^\\n]+|[\\n]+", NULL };
static const char *const WORDS[] = { "\\S+", NULL };

static const char *const BAILING[] = {
    "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|" LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    NULL,
};

static const char *const SEED_CODER[] = {
    ANY_CASE_SUFFIX "|" LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" SPACES,
    NULL,
};

static const char *const EXAONE_MOE[] = {
    ANY_CASE_SUFFIX "|" LEAD "(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?"
                    "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    NULL,
};

static const char *const JAIS_2[] = {
    ANY_CASE_SUFFIX
    "|" LEAD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"
    "|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)"
    "|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s",
    NULL,
};

/* The published first expression, \d{1,3}(?=(?:\d{3})*\b), scans from every group to the end of the number,
 * which takes quadratic time. The same result in linear time: isolate the number, split off its first one or
 * two digits, split the rest into threes (\G: not digits in the middle of a piece, which are adjacent to
 * letters and so were not isolated as a number). */
static const char *const TINY_AYA[] = {
    "(?<!\\d)\\d++\\b",
    "^\\d{1,2}(?=(?:\\d{3})++$)",
    "\\G\\d{3}",
    O200K(ANY_CASE_SUFFIX "?", "\\p{N}{1,3}"),
    NULL,
};

enum {
    CLEAN = QSF_PRETOK_CLEAN,
    WHOLE = QSF_PRETOK_IGNORE_MERGES,
    BOS = QSF_PRETOK_BOS,
    CHARS = QSF_PRETOK_CHARS,
    ESCAPE = QSF_PRETOK_ESCAPE
};

static const QsfPretokSpec SPECS[] = {
    { "default", DEFAULT, CLEAN },
    { "llama3", LLAMA3, CLEAN | WHOLE | BOS },
    { "llama-v3", LLAMA3, CLEAN | WHOLE | BOS },
    { "llama-bpe", LLAMA3, CLEAN | WHOLE | BOS },
    { "falcon3", LLAMA3, CLEAN | WHOLE | BOS },
    { "falcon-h1", LLAMA3, CLEAN | WHOLE | BOS },
    { "pixtral", LLAMA3, CLEAN | WHOLE | BOS },
    { "midm-2.0", LLAMA3, CLEAN | WHOLE | BOS },
    { "lfm2", LLAMA3, CLEAN | WHOLE | BOS },
    { "jina-v5-nano", LLAMA3, CLEAN | WHOLE | BOS },
    { "dbrx", LLAMA3, CLEAN },
    { "phi-4", LLAMA3, CLEAN },
    { "smaug-bpe", LLAMA3, CLEAN },
    { "chatglm-bpe", LLAMA3, CLEAN },
    { "glm4", LLAMA3, CLEAN },
    { "gpt-2", GPT_2, CLEAN },
    { "gpt2", GPT_2, CLEAN },
    { "mpt", GPT_2, CLEAN },
    { "olmo", GPT_2, CLEAN },
    { "jais", GPT_2, CLEAN },
    { "phi-2", GPT_2, CLEAN },
    { "jina-es", GPT_2, CLEAN },
    { "jina-de", GPT_2, CLEAN },
    { "jina-v1-en", GPT_2, CLEAN },
    { "jina-v2-es", GPT_2, CLEAN },
    { "jina-v2-de", GPT_2, CLEAN },
    { "jina-v2-code", GPT_2, CLEAN },
    { "gigachat", GPT_2, CLEAN },
    { "roberta-bpe", GPT_2, CLEAN },
    { "a.x-4.0", GPT_2, CLEAN },
    { "mellum", GPT_2, CLEAN },
    { "modern-bert", GPT_2, CLEAN },
    { "exaone4", GPT_2, CLEAN },
    { "trillion", GPT_2, 0 },
    { "granite-docling", GPT_2, 0 },
    { "qwen2", QWEN2, 0 },
    { "deepseek-r1-qwen", QWEN2, 0 },
    { "kormo", QWEN2, 0 },
    { "f2llmv2", QWEN2, 0 },
    { "hunyuan", QWEN2, 0 },
    { "grok-2", QWEN2, 0 },
    { "solar-open", QWEN2, 0 },
    { "stablelm2", QWEN2, CLEAN },
    { "megrez", QWEN2, CLEAN },
    { "qwen35", QWEN35, 0 },
    { "starcoder", STARCODER, CLEAN },
    { "refact", STARCODER, CLEAN },
    { "codeshell", STARCODER, CLEAN },
    { "exaone", STARCODER, CLEAN },
    { "minerva-7b", STARCODER, CLEAN },
    { "mellum2", STARCODER, CLEAN },
    { "command-r", STARCODER, 0 },
    { "smollm", STARCODER, 0 },
    { "falcon", FALCON, CLEAN },
    { "deepseek-llm", DEEPSEEK_LLM, 0 },
    { "deepseek-coder", DEEPSEEK_CODER, 0 },
    { "deepseek-v3", DEEPSEEK_V3, 0 },
    { "hunyuan-dense", DEEPSEEK_V3, 0 },
    { "joyai-llm", DEEPSEEK_V3, 0 },
    { "poro-chat", BLOOM, 0 },
    { "bloom", BLOOM, CLEAN },
    { "gpt3-finnish", BLOOM, CLEAN },
    { "viking", VIKING, 0 },
    { "tekken", TEKKEN, WHOLE | BOS },
    { "chameleon", CHAMELEON, BOS },
    { "gpt-4o", GPT_4O, 0 },
    { "llama4", GPT_4O, 0 },
    { "kanana2", GPT_4O, 0 },
    { "talkie", GPT_4O, 0 },
    { "minimax-m2", GPT_4O, 0 },
    { "youtu", YOUTU, WHOLE },
    { "minicpm5", MINICPM5, CLEAN | WHOLE },
    { "laguna", LAGUNA, 0 },
    { "bailingmoe", BAILING, 0 },
    { "bailingmoe2", BAILING, 0 },
    { "llada-moe", BAILING, 0 },
    { "seed-coder", SEED_CODER, 0 },
    { "exaone-moe", EXAONE_MOE, CLEAN },
    { "jais-2", JAIS_2, CLEAN },
    { "tiny_aya", TINY_AYA, 0 },
    { "cohere2moe", TINY_AYA, 0 },
    { "superbpe", SUPERBPE, 0 },
    { "kimi-k2", KIMI_K2, 0 },
    { "afmoe", AFMOE, 0 },
    { "granite-embed-multi-97m", GPT_4O, WHOLE },
    { "gemma4", LINES, CLEAN | CHARS | ESCAPE },
    { "granite-embed-multi-311m", LINES, CLEAN | CHARS | ESCAPE },
    { "sarvam-moe", LINES, CHARS | ESCAPE },
    { "whitespace", WORDS, CLEAN | CHARS },
};

const QsfPretokSpec *qsf_pretok_spec_at(size_t i) {
    return i < sizeof SPECS / sizeof *SPECS ? &SPECS[i] : NULL;
}

const QsfPretokSpec *qsf_pretok_spec(const char *name, size_t len) {
    for (size_t i = 0; i < sizeof SPECS / sizeof *SPECS; i++) {
        if (strlen(SPECS[i].name) == len && memcmp(SPECS[i].name, name, len) == 0) return &SPECS[i];
    }
    return NULL;
}

/* ---- splitting ---- */

#define CHECK_EVERY 256u /* pieces; one costs at most a few milliseconds (regex.c) */

int qsf_pretok_open(QsfPretok *p, const QsfPretokSpec *spec, QsfErr *err) {
    *p = (QsfPretok){ 0 };
    for (const char *const *pass = spec->passes; *pass != NULL; pass++) {
        if (p->n == QSF_PRETOK_PASSES) {
            return qsf_err_set(err, QSF_E_RUNTIME, "pre-tokenizer %s has too many expressions", spec->name);
        }
        int rc = qsf_regex_compile(&p->re[p->n], *pass, err);
        if (rc != QSF_OK) {
            qsf_err_prefix(err, "pre-tokenizer %s", spec->name);
            return rc;
        }
        p->bytes += qsf_regex_bytes(p->re[p->n++]);
    }
    return QSF_OK;
}

void qsf_pretok_close(QsfPretok *p) {
    for (unsigned i = 0; i < p->n; i++) qsf_regex_free(p->re[i]);
    *p = (QsfPretok){ 0 };
}

typedef struct Split {
    const QsfPretok *p;
    QsfRegexScratch *scratch;
    QsfPieceFn fn;
    void *ctx;
    QsfErr *err;
    unsigned pieces;
} Split;

/* The depth is the number of passes, at most QSF_PRETOK_PASSES. */
static int split_from(Split *s, unsigned pass, const char *text, size_t len) {
    if (len == 0) return QSF_OK;
    if (++s->pieces % CHECK_EVERY == 0 && qsf_interrupted()) return qsf_interrupt_check(s->err);
    if (pass == s->p->n) return s->fn(s->ctx, text, len, s->err);
    size_t done = 0, from = 0, begin, end;
    while (from < len && qsf_regex_find(s->p->re[pass], s->scratch, text, len, from, &begin, &end)) {
        int rc = split_from(s, pass + 1, text + done, begin - done);
        if (rc == QSF_OK) rc = split_from(s, pass + 1, text + begin, end - begin);
        if (rc != QSF_OK) return rc;
        done = from = end;
        if (begin == end && end < len) { /* an empty match splits here; search for the next one further on */
            uint32_t cp;
            from += qsf_utf8_next(text + end, len - end, &cp);
        } else if (begin == end) {
            break;
        }
    }
    if (qsf_interrupted()) return qsf_interrupt_check(s->err); /* then there may be more matches */
    return split_from(s, pass + 1, text + done, len - done);
}

int qsf_pretok_split(const QsfPretok *p, QsfRegexScratch *scratch, const char *text, size_t len,
                     QsfPieceFn fn, void *ctx, QsfErr *err) {
    Split s = { .p = p, .scratch = scratch, .fn = fn, .ctx = ctx, .err = err };
    while (len > 0) {
        bool ok;
        size_t n = qsf_utf8_run(text, len, &ok);
        if (qsf_interrupted()) return qsf_interrupt_check(err); /* maybe a part of the run */
        int rc = ok ? split_from(&s, 0, text, n) : fn(ctx, text, n, err);
        if (rc != QSF_OK) return rc;
        text += n;
        len -= n;
    }
    return QSF_OK;
}
