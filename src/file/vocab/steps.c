/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The normalizer and the pre-tokenizer of a tokenizer.json (huggingface/tokenizers docs) are lists of steps,
 * which become those of QSF_KEY_STEPS. A step, or a member of one, that is not known is an error, since a
 * model gives poor answers if text is tokenized differently than in training. */
#include <stdio.h>
#include <string.h>

#include "src/file/vocab/draft.h"

#define SPACE_MARK  "\xE2\x96\x81" /* U+2581 */
#define MAX_DEPTH   4
#define GPT2_WORDS  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define PUNCTUATION "[\\p{P}$+<=>^`|~]" /* with the symbols among ASCII punctuation */

typedef struct Step {
    const char *type;
    int (*apply)(QsfVocabDraft *d, const QsfJson *v, QsfErr *err);
    const char *members[6]; /* besides "type"; NULL at the end */
} Step;

/* A string of the file. */
typedef struct Text {
    const char *s; /* (len), NUL-terminated; "" if it is not a string */
    size_t len;
} Text;

static Text text_at(const QsfJson *v) {
    Text t;
    t.s = qsf_json_string(v, &t.len);
    return t.s != NULL ? t : (Text){ "", 0 };
}

static Text member(const QsfJson *v, const char *key) { return text_at(qsf_json_get(v, key)); }

static bool text_is(Text t, const char *word) {
    return strlen(word) == t.len && memcmp(t.s, word, t.len) == 0;
}

static bool flag_of(const QsfJson *v, const char *key, bool fallback) {
    return qsf_json_bool(qsf_json_get(v, key), fallback);
}

static int refuse(const QsfVocabDraft *d, const char *what, const char *detail, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL, "%s: %s \"%.80s\" is not supported", d->s->files[0].path, what,
                       detail);
}

static void add(QsfVocabDraft *d, const char *s, size_t len) {
    qsf_meta_put_str(&d->steps, s, len);
    d->n_steps++;
}

static void add_word(QsfVocabDraft *d, const char *s) { add(d, s, strlen(s)); }

/* A member that this program does not know may change the meaning of the step. */
static int check_members(const QsfVocabDraft *d, const QsfJson *v, const Step *step, QsfErr *err) {
    const char *key;
    const QsfJson *value;
    for (const void *it = NULL; (it = qsf_json_next(v, it, &key, &value)) != NULL;) {
        bool known = strcmp(key, "type") == 0;
        for (size_t i = 0; step->members[i] != NULL && !known; i++)
            known = strcmp(step->members[i], key) == 0;
        if (!known)
            return qsf_err_set(err, QSF_E_MODEL, "%s: %s with \"%.80s\" is not supported",
                               d->s->files[0].path, step->type, key);
    }
    return QSF_OK;
}

/* Converts a step, or the steps of a Sequence, whose list is the member `list`. */
static int run_steps(QsfVocabDraft *d, const QsfJson *v, const Step *table, size_t n, const char *list,
                     unsigned depth, QsfErr *err) {
    const Text type = member(v, "type");
    if (v == NULL || qsf_json_type(v) == QSF_JSON_NULL) return QSF_OK;
    if (text_is(type, "Sequence") && depth < MAX_DEPTH) {
        const QsfJson *steps = qsf_json_get(v, list);
        int rc = QSF_OK;
        for (size_t i = 0; i < qsf_json_size(steps) && rc == QSF_OK; i++)
            rc = run_steps(d, qsf_json_at(steps, i), table, n, list, depth + 1, err);
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        if (!text_is(type, table[i].type)) continue;
        int rc = check_members(d, v, &table[i], err);
        return rc == QSF_OK ? table[i].apply(d, v, err) : rc;
    }
    return refuse(d,
                  list[0] == 'n'   ? "the normalizer"
                  : list[0] == 'd' ? "the decoder"
                                   : "the pre-tokenizer",
                  type.s, err);
}

/* --- normalizers --- */

static int form(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    (void)err;
    add_word(d, "form");
    add_word(d, member(v, "type").s);
    return QSF_OK;
}

static int prepend(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const Text t = member(v, "prepend");
    (void)err;
    if (text_is(t, SPACE_MARK)) d->space_prefix = true;
    add_word(d, "prepend");
    add(d, t.s, t.len);
    return QSF_OK;
}

static int replace(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const QsfJson *pattern = qsf_json_get(v, "pattern");
    const Text content = member(v, "content"), regex = member(pattern, "Regex");
    const Text plain = qsf_json_get(pattern, "String") != NULL ? member(pattern, "String") : text_at(pattern);
    if (regex.len == 0 && plain.len == 0) return refuse(d, "a Replace of", "", err);
    if (regex.len == 0 && text_is(plain, " ") && text_is(content, SPACE_MARK)) d->escape = true;
    add_word(d, regex.len > 0 ? "replace" : "replace_text");
    add(d, regex.len > 0 ? regex.s : plain.s, regex.len > 0 ? regex.len : plain.len);
    add(d, content.s, content.len);
    return QSF_OK;
}

static int strip(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const bool left = flag_of(v, "strip_left", true), right = flag_of(v, "strip_right", true);
    (void)err;
    if (!left && !right) return QSF_OK;
    if (!d->bpe) d->remove_extra = true;
    add_word(d, "strip");
    add_word(d, left && right ? "both" : left ? "left" : "right");
    return QSF_OK;
}

static int nmt(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    (void)v;
    (void)err;
    add_word(d, "nmt");
    return QSF_OK;
}

static int sextet(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *p = c != '\0' ? strchr(digits, c) : NULL;
    return p != NULL ? (int)(p - digits) : -1;
}

static int precompiled(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    size_t len = 0;
    uint32_t bits = 0;
    unsigned n = 0;
    const char *s = qsf_json_string(qsf_json_get(v, "precompiled_charsmap"), &len);
    if (d->charsmap.len > 0) return refuse(d, "a second", "Precompiled", err);
    if (s != NULL && len > 0) add_word(d, "charsmap");
    for (size_t i = 0; i < len && s[i] != '='; i++) {
        int six = sextet(s[i]);
        if (six < 0) return refuse(d, "a precompiled_charsmap that is not base64:", s + i, err);
        bits = bits << 6 | (uint32_t)six;
        n += 6;
        if (n < 8) continue;
        n -= 8;
        qsf_strbuf_addc(&d->charsmap, (char)(unsigned char)(bits >> n));
    }
    return QSF_OK;
}

int qsf_hf_normalizer(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    static const Step table[] = {
        { "NFC", form, { NULL } },
        { "NFD", form, { NULL } },
        { "NFKC", form, { NULL } },
        { "NFKD", form, { NULL } },
        { "Prepend", prepend, { "prepend", NULL } },
        { "Replace", replace, { "pattern", "content", NULL } },
        { "Strip", strip, { "strip_left", "strip_right", NULL } },
        { "Nmt", nmt, { NULL } },
        { "Precompiled", precompiled, { "precompiled_charsmap", NULL } },
    };
    return run_steps(d, v, table, sizeof table / sizeof *table, "normalizers", 0, err);
}

/* --- pre-tokenizers --- */

static int add_split(QsfVocabDraft *d, const char *regex, size_t len, const char *behavior, bool invert) {
    add_word(d, "split");
    add(d, regex, len);
    add_word(d, behavior);
    add_word(d, invert ? "between" : "match");
    return QSF_OK;
}

static int split_by(QsfVocabDraft *d, const char *regex, const char *behavior) {
    return add_split(d, regex, strlen(regex), behavior, false);
}

static void add_prefix(QsfVocabDraft *d, const char *text, const char *where) {
    d->space_prefix = true;
    add_word(d, "prefix");
    add_word(d, text);
    add_word(d, where);
}

static int byte_level(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    if (d->bytes) return refuse(d, "a second", "ByteLevel", err);
    d->bytes = true;
    if (flag_of(v, "add_prefix_space", false)) add_prefix(d, " ", "always");
    if (flag_of(v, "use_regex", true)) split_by(d, GPT2_WORDS, "Isolated");
    add_word(d, "bytes");
    return QSF_OK;
}

/* Returns an expression that matches exactly the text. */
static void quote(QsfStrbuf *b, Text t) {
    for (size_t i = 0; i < t.len; i++) {
        unsigned char c = (unsigned char)t.s[i];
        bool plain = c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        if (c < 0x20) {
            qsf_strbuf_addf(b, "\\x%02X", c);
        } else {
            if (!plain) qsf_strbuf_addc(b, '\\');
            qsf_strbuf_addc(b, (char)c);
        }
    }
}

static bool is_behavior(const char *word) {
    static const char *const known[] = { "Isolated", "Removed", "Contiguous", "MergedWithPrevious",
                                         "MergedWithNext" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], word) == 0) return true;
    return false;
}

static int split_text(QsfVocabDraft *d, Text plain, const char *behavior, bool invert, QsfErr *err) {
    if (plain.len == 0) return refuse(d, "a Split by", "nothing", err);
    if (d->escape && text_is(plain, " ") && !invert) return QSF_OK; /* no spaces are left to split at */
    QsfStrbuf b = QSF_STRBUF_INIT;
    quote(&b, plain);
    add_split(d, qsf_strbuf_str(&b), b.len, behavior, invert);
    const bool ok = qsf_strbuf_ok(&b);
    qsf_strbuf_free(&b);
    return ok ? QSF_OK : qsf_err_memory(err, "%s", d->s->files[0].path);
}

static int split(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const QsfJson *pattern = qsf_json_get(v, "pattern");
    const Text regex = member(pattern, "Regex");
    const Text plain = qsf_json_get(pattern, "String") != NULL ? member(pattern, "String") : text_at(pattern);
    const char *behavior = member(v, "behavior").s;
    const bool invert = flag_of(v, "invert", false);
    if (!is_behavior(behavior)) return refuse(d, "a Split that is", behavior, err);
    if (regex.len > 0) return add_split(d, regex.s, regex.len, behavior, invert);
    return split_text(d, plain, behavior, invert, err);
}

static int digits(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    (void)err;
    return split_by(d, flag_of(v, "individual_digits", false) ? "\\p{N}" : "\\p{N}+", "Isolated");
}

static int punctuation(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const Text behavior = member(v, "behavior");
    if (behavior.len > 0 && !is_behavior(behavior.s))
        return refuse(d, "a Punctuation that is", behavior.s, err);
    return split_by(d, PUNCTUATION, behavior.len > 0 ? behavior.s : "Isolated");
}

/* Replaces spaces by U+2581; each one starts a piece. */
static int metaspace(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const Text mark = member(v, "replacement"), scheme = member(v, "prepend_scheme");
    const bool first = text_is(scheme, "first"), never = text_is(scheme, "never");
    if (!text_is(mark, SPACE_MARK)) return refuse(d, "a Metaspace with", mark.s, err);
    if (scheme.len > 0 && !first && !never && !text_is(scheme, "always"))
        return refuse(d, "a Metaspace that prepends", scheme.s, err);
    d->escape = true;
    add_word(d, "spaces");
    add_word(d, SPACE_MARK);
    if (!never && flag_of(v, "add_prefix_space", true)) add_prefix(d, SPACE_MARK, first ? "first" : "always");
    return flag_of(v, "split", true) ? split_by(d, SPACE_MARK, "MergedWithNext") : QSF_OK;
}

static int whitespace_split(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    (void)v;
    (void)err;
    if (!d->bpe) d->remove_extra = true;
    return split_by(d, "\\s", "Removed");
}

static int whitespace(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    /* \w of rust-lang/regex: Alphabetic, marks, decimal digits, connectors, joiners */
#define RUST_WORD                                                                                 \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200C}\\x{200D}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}" \
    "\\x{1F150}-\\x{1F169}"                                                                       \
    "\\x{1F170}-\\x{1F189}"
    static const char words[] = "[" RUST_WORD "]+|[^" RUST_WORD "\\s]+";
    (void)v;
    (void)err;
    return add_split(d, words, sizeof words - 1, "Removed", true);
}

static int bert(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    int rc = whitespace_split(d, v, err);
    return rc == QSF_OK ? split_by(d, PUNCTUATION, "Isolated") : rc;
}

static int delimiter(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    return split_text(d, member(v, "delimiter"), "Removed", false, err);
}

static int fixed_length(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const int64_t n = qsf_json_int(qsf_json_get(v, "length"), 5);
    char regex[48];
    snprintf(regex, sizeof regex, "(?m:.{1,%lld})", (long long)n);
    return n > 0 && n <= 65535 ? split_by(d, regex, "Isolated") : refuse(d, "a FixedLength", regex, err);
}

int qsf_hf_pre_tokenizer(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    static const Step table[] = {
        { "ByteLevel", byte_level, { "add_prefix_space", "trim_offsets", "use_regex", NULL } },
        { "Split", split, { "pattern", "behavior", "invert", NULL } },
        { "Digits", digits, { "individual_digits", NULL } },
        { "Punctuation", punctuation, { "behavior", NULL } },
        { "Metaspace",
          metaspace,
          { "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep", NULL } },
        { "WhitespaceSplit", whitespace_split, { NULL } },
        { "Whitespace", whitespace, { NULL } },
        { "BertPreTokenizer", bert, { NULL } },
        { "CharDelimiterSplit", delimiter, { "delimiter", NULL } },
        { "FixedLength", fixed_length, { "length", NULL } },
    };
    return run_steps(d, v, table, sizeof table / sizeof *table, "pretokenizers", 0, err);
}

/* --- decoders: tokens are written by one rule (detok.c), so these only confirm it --- */

static int same_text(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    (void)d;
    (void)v;
    (void)err;
    return QSF_OK;
}

static int mark_to_space(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const QsfJson *pattern = qsf_json_get(v, "pattern");
    const Text plain = qsf_json_get(pattern, "String") != NULL ? member(pattern, "String") : text_at(pattern);
    if (text_is(plain, SPACE_MARK) && text_is(member(v, "content"), " ")) return QSF_OK;
    const Text regex = member(pattern, "Regex");
    return refuse(d, "the decoder Replace of", regex.len > 0 ? regex.s : plain.s, err);
}

static int space_mark(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const Text mark = member(v, "replacement");
    return mark.len == 0 || text_is(mark, SPACE_MARK) ? QSF_OK
                                                      : refuse(d, "the decoder Metaspace of", mark.s, err);
}

static int first_space(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const int64_t start = qsf_json_int(qsf_json_get(v, "start"), 0);
    const int64_t stop = qsf_json_int(qsf_json_get(v, "stop"), 0);
    if (text_is(member(v, "content"), " ") && start >= 0 && start <= 1 && stop == 0) return QSF_OK;
    return refuse(d, "the decoder Strip of", stop != 0 ? "the end" : member(v, "content").s, err);
}

int qsf_hf_decoder(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    static const Step table[] = {
        { "ByteLevel", same_text, { "add_prefix_space", "trim_offsets", "use_regex", NULL } },
        { "ByteFallback", same_text, { NULL } },
        { "Fuse", same_text, { NULL } },
        { "Metaspace",
          space_mark,
          { "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep" } },
        { "Replace", mark_to_space, { "pattern", "content", NULL } },
        { "Strip", first_space, { "content", "start", "stop", NULL } },
    };
    if (v != NULL && qsf_json_get(v, "type") == NULL) return QSF_OK; /* written by hand: none */
    return run_steps(d, v, table, sizeof table / sizeof *table, "decoders", 0, err);
}
