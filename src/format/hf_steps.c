/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The normalizer and the pre-tokenizer of a tokenizer.json (huggingface/tokenizers docs) are lists of steps.
 * Each step is converted to an expression that splits the text, or to a flag. A step that cannot be converted
 * is an error, since a model gives poor answers if text is tokenized differently than in training. */
#include <string.h>

#include "src/format/vocab_draft.h"

#define SPACE_MARK "\xE2\x96\x81" /* U+2581 */
#define MAX_DEPTH  4
#define GPT2_WORDS "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

typedef struct Step {
    const char *type;
    int (*apply)(QsfVocabDraft *d, const QsfJson *v, QsfErr *err);
} Step;

static const char *text_of(const QsfJson *v, const char *key) {
    const char *s = qsf_json_string(qsf_json_get(v, key), NULL);
    return s != NULL ? s : "";
}

static bool flag_of(const QsfJson *v, const char *key, bool fallback) {
    return qsf_json_bool(qsf_json_get(v, key), fallback);
}

static int refuse(const QsfVocabDraft *d, const char *what, const char *detail, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL, "%s: %s \"%.80s\" is not supported", d->s->files[0].path, what,
                       detail);
}

/* Converts a step, or the steps of a Sequence, whose list is the member `list`. */
static int run_steps(QsfVocabDraft *d, const QsfJson *v, const Step *table, size_t n, const char *list,
                     unsigned depth, QsfErr *err) {
    const char *type = text_of(v, "type");
    if (v == NULL || qsf_json_type(v) == QSF_JSON_NULL) return QSF_OK;
    if (strcmp(type, "Sequence") == 0 && depth < MAX_DEPTH) {
        const QsfJson *steps = qsf_json_get(v, list);
        int rc = QSF_OK;
        for (size_t i = 0; i < qsf_json_size(steps) && rc == QSF_OK; i++)
            rc = run_steps(d, qsf_json_at(steps, i), table, n, list, depth + 1, err);
        return rc;
    }
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].type, type) == 0) return table[i].apply(d, v, err);
    return refuse(d, list[0] == 'n' ? "the normalizer" : "the pre-tokenizer", type, err);
}

/* --- normalizers --- */

static int form(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    static const char *const forms[] = { "NFC", "NFD", "NFKC", "NFKD" };
    const char *type = text_of(v, "type");
    if (d->normal_form != NULL) return refuse(d, "a second normal form", type, err);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i], type) == 0) d->normal_form = forms[i];
    return QSF_OK;
}

static int prepend(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    if (strcmp(text_of(v, "prepend"), SPACE_MARK) != 0)
        return refuse(d, "a Prepend of", text_of(v, "prepend"), err);
    d->space_prefix = true;
    return QSF_OK;
}

static int replace(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const QsfJson *pattern = qsf_json_get(v, "pattern");
    const char *content = text_of(v, "content"), *regex = text_of(pattern, "Regex");
    bool to_mark = strcmp(content, SPACE_MARK) == 0;
    if (to_mark && strcmp(text_of(pattern, "String"), " ") == 0) {
        d->escape = true;
        return QSF_OK;
    }
    if ((to_mark || strcmp(content, " ") == 0) && !d->bpe && strcmp(regex, " {2,}") == 0) {
        d->remove_extra = true;
        return QSF_OK;
    }
    return refuse(d, "a Replace of", regex[0] != '\0' ? regex : text_of(pattern, "String"), err);
}

static int strip(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    (void)v;
    if (d->bpe) return refuse(d, "the normalizer", "Strip", err);
    d->remove_extra = true;
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
        { "NFC", form },        { "NFD", form },        { "NFKC", form },   { "NFKD", form },
        { "Prepend", prepend }, { "Replace", replace }, { "Strip", strip }, { "Precompiled", precompiled },
    };
    return run_steps(d, v, table, sizeof table / sizeof *table, "normalizers", 0, err);
}

/* --- pre-tokenizers --- */

static int byte_level(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    (void)err;
    d->bytes = true;
    if (flag_of(v, "add_prefix_space", false)) d->space_prefix = d->prefix_missing = true;
    if (flag_of(v, "use_regex", true)) qsf_draft_add_pass(d, GPT2_WORDS);
    return QSF_OK;
}

/* Returns an expression that matches exactly text. */
static void quote(QsfStrbuf *b, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        if (c < 0x20) {
            qsf_strbuf_addf(b, "\\x%02X", c);
        } else {
            if (!plain) qsf_strbuf_addc(b, '\\');
            qsf_strbuf_addc(b, (char)c);
        }
    }
}

/* How a behaviour of Split cuts, as text around the expression. The text between matches remains a piece,
 * even if Removed would drop it: no input is lost, and in practice such expressions match all text. */
static const struct {
    const char *behavior;
    bool invert;
    const char *before, *after; /* "@" in after stands for the expression */
} CUTS[] = {
    { "Isolated", false, "", "" },
    { "Isolated", true, "", "" },
    { "Removed", true, "", "" },
    { "Contiguous", false, "(?:", ")+" },
    { "MergedWithPrevious", false, "(?s:.*?)(?:", ")" },
    { "MergedWithNext", false, "(?:", ")(?s:(?!@).)*" },
};

static int add_cut(QsfVocabDraft *d, const char *regex, const char *behavior, bool invert, QsfErr *err) {
    size_t i = 0, n = sizeof CUTS / sizeof *CUTS;
    while (i < n && (strcmp(CUTS[i].behavior, behavior) != 0 || CUTS[i].invert != invert)) i++;
    if (i == n) return refuse(d, invert ? "an inverted Split that is" : "a Split that is", behavior, err);
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_adds(&b, CUTS[i].before);
    qsf_strbuf_adds(&b, regex);
    for (const char *p = CUTS[i].after; *p != '\0'; p++) {
        if (*p == '@') {
            qsf_strbuf_adds(&b, regex);
        } else {
            qsf_strbuf_addc(&b, *p);
        }
    }
    qsf_draft_add_pass(d, qsf_strbuf_str(&b));
    bool ok = qsf_strbuf_ok(&b);
    qsf_strbuf_free(&b);
    return ok ? QSF_OK : qsf_err_memory(err, "%s", d->s->files[0].path);
}

/* Syntax that means different things in Oniguruma and PCRE2. */
static int check_dialect(const QsfVocabDraft *d, const char *regex, QsfErr *err) {
    static const char *const foreign[] = { "&&", "\\h", "\\H", "\\y", "\\Y", "\\O", "(?m", "(?~" };
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (strstr(regex, foreign[i]) != NULL)
            return refuse(d, "a Split whose expression has", foreign[i], err);
    return QSF_OK;
}

static int split(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const QsfJson *pattern = qsf_json_get(v, "pattern");
    const char *regex = qsf_json_string(qsf_json_get(pattern, "Regex"), NULL);
    const char *plain = qsf_json_string(pattern, NULL);
    if (plain == NULL) plain = text_of(pattern, "String");
    if (regex == NULL && plain[0] == '\0') return refuse(d, "a Split by", "nothing", err);
    if (regex != NULL) {
        int rc = check_dialect(d, regex, err);
        return rc == QSF_OK ? add_cut(d, regex, text_of(v, "behavior"), flag_of(v, "invert", false), err)
                            : rc;
    }
    if (d->escape && strcmp(plain, " ") == 0) return QSF_OK; /* no spaces are left to split at */
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_adds(&b, "(?:");
    quote(&b, plain);
    qsf_strbuf_addc(&b, ')');
    int rc = add_cut(d, qsf_strbuf_str(&b), text_of(v, "behavior"), flag_of(v, "invert", false), err);
    qsf_strbuf_free(&b);
    return rc;
}

static int digits(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    (void)err;
    qsf_draft_add_pass(d, flag_of(v, "individual_digits", false) ? "\\p{N}" : "\\p{N}+");
    return QSF_OK;
}

static int punctuation(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const char *behavior = text_of(v, "behavior");
    return add_cut(d, "[\\p{P}$+<=>^`|~]", behavior[0] != '\0' ? behavior : "Isolated", false, err);
}

/* Replaces spaces by U+2581; each one starts a piece. */
static int metaspace(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    const char *mark = text_of(v, "replacement"), *scheme = text_of(v, "prepend_scheme");
    if (strcmp(mark, SPACE_MARK) != 0) return refuse(d, "a Metaspace with", mark, err);
    d->escape = true;
    bool never = strcmp(scheme, "never") == 0 || !flag_of(v, "add_prefix_space", true);
    if (!never) {
        d->space_prefix = d->prefix_missing = true;
        d->prefix_first = strcmp(scheme, "first") == 0;
    }
    if (d->bpe && flag_of(v, "split", true)) qsf_draft_add_pass(d, SPACE_MARK "[^" SPACE_MARK "]*");
    return QSF_OK;
}

static int whitespace_split(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    (void)v;
    if (d->bpe) return refuse(d, "the pre-tokenizer", "WhitespaceSplit", err);
    d->remove_extra = true;
    return QSF_OK;
}

int qsf_hf_pre_tokenizer(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    static const Step table[] = {
        { "ByteLevel", byte_level },    { "Split", split },         { "Digits", digits },
        { "Punctuation", punctuation }, { "Metaspace", metaspace }, { "WhitespaceSplit", whitespace_split },
    };
    return run_steps(d, v, table, sizeof table / sizeof *table, "pretokenizers", 0, err);
}
