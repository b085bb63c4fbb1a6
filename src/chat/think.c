/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Formats of model output: their tags and tokens, which one a model uses, and the readable
 * part of its reasoning. */
#include <stdio.h>
#include <string.h>

#include "qsf_engine.h"
#include "src/chat/think_impl.h"

#include "src/base/ascii.h"

/* openai/harmony; ggml-org/llama.cpp common/chat.cpp for the recipients of Muse; upstage/Solar-Open-100B and
 * moonshotai/Kimi-K3, by their templates. */
#define COMMENTARY "<|channel|>commentary<|message|>"
static const char *const harmony[] = { "<|start|>",     "<|message|>", "<|channel|>", "<|end|>",
                                       "<|constrain|>", "<|return|>",  "<|call|>",    NULL };
static const char *const muse[] = { "<|start|>", "<|message|>", "<|eom|>", "<|eot|>", NULL };
static const char *const solar[] = {
    "<|begin|>",         "<|think|>",           "<|content|>",        "<|end|>",
    "<|tool_calls|>",    "<|tool_call:begin|>", "<|tool_call:name|>", "<|tool_call:args|>",
    "<|tool_call:end|>", "<|flush|>",           "<|calls|>",          NULL
};
static const char *const kimi[] = { "<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", NULL };

static const struct {
    QsfThinkFormat format;
    size_t needs; /* the vocabulary must have the first ones of its tokens */
    QsfThinkDialect d;
} dialects[] = {
    { QSF_THINK_HARMONY,
      3,
      { "<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant", "<|channel|>final<|message|>",
        "<|start|>", harmony } },
    { QSF_THINK_SELF,
      4,
      { " to=self<|message|>", "<|eom|>", "<|start|>assistant", " to=user<|message|>", "<|start|>", muse } },
    { QSF_THINK_BLOCKS,
      4,
      { "<|think|>", "<|end|>", "<|begin|>assistant", "<|content|>", "<|begin|>", solar } },
    { QSF_THINK_ELEMENTS,
      3,
      { "<|open|>think<|sep|>", "<|close|>think<|sep|>", "", "<|open|>response<|sep|>", "<|open|>message",
        kimi } },
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

const QsfThinkDialect *qsf_think_dialect(QsfThinkFormat f) {
    for (size_t i = 0; i < COUNT(dialects); i++)
        if (dialects[i].format == f) return &dialects[i].d;
    return NULL;
}

const char *qsf_think_reasoning_head(QsfThinkFormat f, bool commentary) {
    return f == QSF_THINK_HARMONY && commentary ? COMMENTARY : qsf_think_dialect(f)->reasoning;
}

bool qsf_think_close(const QsfThink *t, QsfThinkClose *out) {
    const QsfThinkDialect *d = t != NULL ? qsf_think_dialect(t->format) : NULL;
    *out = (QsfThinkClose){ .close = "" };
    if (d != NULL) {
        out->close = d->end;
        snprintf(out->after, sizeof out->after, "%s%s", d->next, d->answer);
    } else if (t != NULL && t->format == QSF_THINK_TAGS) {
        out->close = t->tags->close;
    }
    return out->close[0] != '\0';
}

static bool has(const char *text, size_t len, const char *part) {
    return memmem(text, len, part, strlen(part)) != NULL;
}

/* ---- tags as tokens ---- */

static bool is_special(const QsfTokenizer *tok, int32_t id) {
    QsfTokenType type = id < 0 ? QSF_TOKEN_NORMAL : qsf_tokenizer_type(tok, id);
    return type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_USER;
}

static bool has_token(const QsfTokenizer *tok, const char *text) {
    return is_special(tok, qsf_tokenizer_find(tok, text, strlen(text)));
}

static void mark_token(QsfThinkTag *t, size_t at, size_t len) {
    memset(t->mark + at, QSF_MARK_REST, len);
    t->mark[at] = QSF_MARK_FIRST;
}

/* Whether a token that is a part of a tag is markup. Others, such as "</", are pieces of text. */
static bool is_markup(const char *piece, size_t n) {
    return n > 2 && strchr("<[", piece[0]) != NULL && strchr(">]", piece[n - 1]) != NULL;
}

/* Marks the bytes of the tag that the vocabulary distinguishes from ordinary text. */
static void mark_tokens(QsfThinkTag *t, const QsfTokenizer *tok) {
    QsfIds ids = { 0 };
    QsfErr e = { 0 };
    size_t at = 0;
    if (qsf_tokenizer_encode(tok, t->text, t->len, QSF_TOK_SPECIAL | QSF_TOK_NO_PREFIX, &ids, &e) != QSF_OK)
        ids.n = 0;
    for (size_t i = 0; i < ids.n && at < t->len; i++) {
        char piece[QSF_THINK_TAG];
        size_t n = qsf_tokenizer_piece(tok, ids.data[i], true, piece, sizeof piece);
        if (n > t->len - at || memcmp(piece, t->text + at, n) != 0) break;
        if (is_markup(piece, n) && is_special(tok, ids.data[i])) mark_token(t, at, n);
        at += n;
    }
    qsf_ids_free(&ids);
}

/* Returns whether a part of it is a token. */
static bool compile(QsfThinkTag *t, const QsfTokenizer *tok, const char *text) {
    *t = (QsfThinkTag){ .len = strlen(text) };
    memcpy(t->text, text, t->len);
    if (has_token(tok, text))
        mark_token(t, 0, t->len);
    else
        mark_tokens(t, tok);
    return memchr(t->mark, QSF_MARK_FIRST, t->len) != NULL;
}

/* The first tags that the template has and that are tokens; otherwise those of the template,
 * or those that are tokens. */
static const QsfThinkTags *find_tags(QsfThink *t, const QsfTokenizer *tok, const char *source, size_t len) {
    const QsfThinkTags *named = NULL, *known = NULL;
    for (size_t i = 0; i < QSF_TAGS; i++) {
        bool named_here = has(source, len, qsf_tags[i].close) || has(source, len, qsf_tags[i].open);
        bool open = compile(&t->open, tok, qsf_tags[i].open),
             close = compile(&t->close, tok, qsf_tags[i].close);
        if (named_here && open && close) return &qsf_tags[i];
        if (named_here && named == NULL) named = &qsf_tags[i];
        if (open && close && known == NULL) known = &qsf_tags[i];
    }
    return named != NULL ? named : known;
}

/* The tags around the answer, if the template or the vocabulary has them. */
static void find_answer(QsfThink *t, const QsfTokenizer *tok, const char *source, size_t len) {
    for (size_t i = 0; i < QSF_ANSWER_TAGS; i++) {
        const QsfThinkTags *a = &qsf_answer_tags[i];
        bool named = has(source, len, a->open) || has(source, len, a->close);
        if (!named && !(has_token(tok, a->open) && has_token(tok, a->close))) continue;
        compile(&t->answer_open, tok, a->open);
        compile(&t->answer_close, tok, a->close);
        return;
    }
}

/* A format of messages: by its tokens, unless the template writes other ones. */
static QsfThinkFormat find_dialect(const QsfTokenizer *tok, const char *source, size_t len) {
    for (size_t i = 0; i < COUNT(dialects); i++) {
        const char *const *t = dialects[i].d.tokens;
        bool all = true, named = source == NULL;
        for (size_t k = 0; k < dialects[i].needs; k++) {
            all = all && has_token(tok, t[k]);
            named = named || has(source, len, t[k]);
        }
        if (all && named) return dialects[i].format;
    }
    return QSF_THINK_NONE;
}

void qsf_think_detect(QsfThink *t, const QsfTokenizer *tok, const char *source, size_t len) {
    *t = (QsfThink){ .format = find_dialect(tok, source, len) };
    if (source == NULL || t->format != QSF_THINK_NONE) return;
    t->tags = find_tags(t, tok, source, len);
    if (t->tags == NULL) return;
    t->format = QSF_THINK_TAGS;
    compile(&t->open, tok, t->tags->open);
    compile(&t->close, tok, t->tags->close);
    find_answer(t, tok, source, len);
}

const char *qsf_think_field(const char *source, size_t len) {
    static const char *const reads[][2] = {
        { ".reasoning_content", "reasoning_content" },
        { "'reasoning_content'", "reasoning_content" },
        { "\"reasoning_content\"", "reasoning_content" },
        { "message.reasoning", "reasoning" },
        { "message['reasoning']", "reasoning" },
        { "msg.reasoning", "reasoning" },
        { "message.thinking", "thinking" },
        { "msg.thinking", "thinking" },
    };
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        if (has(source, len, reads[i][0])) return reads[i][1];
    return NULL;
}

size_t qsf_think_blanks(const char *text, size_t len) {
    size_t n = 0;
    while (n < len && (text[n] == ' ' || (text[n] >= '\t' && text[n] <= '\r'))) n++;
    return n;
}

/* ---- display ---- */

static size_t without_blanks(const char *text, size_t from, size_t len) {
    while (len > from && qsf_think_blanks(text + len - 1, 1) == 1) len--;
    return len;
}

/* The tags that the text begins with; close is "" where the format has none. */
static QsfThinkTags tags_of(const char *text, size_t len) {
    for (size_t i = 0; i < QSF_TAGS; i++)
        if (qsf_begins_with(text, len, qsf_tags[i].open)) return qsf_tags[i];
    for (size_t i = 0; i < COUNT(dialects); i++) {
        const char *open = dialects[i].d.reasoning;
        open += qsf_think_blanks(open, strlen(open));
        if (qsf_begins_with(text, len, open)) return (QsfThinkTags){ open, "" };
    }
    if (qsf_begins_with(text, len, COMMENTARY)) return (QsfThinkTags){ COMMENTARY, "" };
    return (QsfThinkTags){ "", "" };
}

const char *qsf_reasoning_body(const char *text, size_t len, size_t *body_len) {
    if (text == NULL) len = 0;
    if (len == 0) {
        *body_len = 0;
        return text;
    }
    size_t at = qsf_think_blanks(text, len);
    const QsfThinkTags t = tags_of(text + at, len - at);
    at += strlen(t.open);
    at += qsf_think_blanks(text + at, len - at);
    len = without_blanks(text, at, len);
    const size_t close = strlen(t.close);
    if (close > 0 && len - at >= close && memcmp(text + len - close, t.close, close) == 0) len -= close;
    *body_len = without_blanks(text, at, len) - at;
    return text + at;
}

/* ---- several blocks ---- */

/* As next_block, for messages: each begins with its head, after an empty line. */
static size_t next_message(const char *text, size_t at, size_t len, size_t *end) {
    const char *found;
    *end = len;
    while ((found = memmem(text + at, len - at, "\n\n", 2)) != NULL) {
        at = (size_t)(found - text) + 2;
        const size_t next = at + qsf_think_blanks(text + at, len - at);
        const QsfThinkTags t = tags_of(text + next, len - next);
        if (*t.open == '\0' || *t.close != '\0') continue;
        *end = (size_t)(found - text);
        return next;
    }
    return len;
}

/* Start of the block after the one whose text begins at `at`, or len; *end: where the text ends. */
static size_t next_block(const QsfThinkTags *t, const char *text, size_t at, size_t len, size_t *end) {
    const size_t close = strlen(t->close);
    const char *found;
    *end = len;
    if (close == 0) return *t->open != '\0' ? next_message(text, at, len, end) : len;
    while ((found = memmem(text + at, len - at, t->close, close)) != NULL) {
        at = (size_t)(found - text) + close;
        const size_t next = at + qsf_think_blanks(text + at, len - at);
        if (next < len && !qsf_begins_with(text + next, len - next, t->open)) continue;
        *end = (size_t)(found - text);
        return next;
    }
    return len;
}

bool qsf_think_block(const char *text, size_t len, size_t *at, QsfThinkBlock *b) {
    size_t from = *at + qsf_think_blanks(text + *at, len - *at), end;
    if (from >= len) return false;
    const QsfThinkTags t = tags_of(text + from, len - from);
    from += strlen(t.open);
    *at = next_block(&t, text, from, len, &end);
    from += qsf_think_blanks(text + from, end - from);
    *b = (QsfThinkBlock){ text + from, without_blanks(text, from, end) - from,
                          strcmp(t.open, COMMENTARY) == 0 };
    return true;
}

size_t qsf_reasoning_plain(const char *text, size_t len, char *out) {
    QsfThinkBlock b;
    size_t n = 0, at = 0;
    while (text != NULL && qsf_think_block(text, len, &at, &b)) {
        if (n > 0 && b.len > 0) {
            memcpy(out + n, "\n\n", 2); /* shorter than the tags */
            n += 2;
        }
        memcpy(out + n, b.text, b.len);
        n += b.len;
    }
    return n;
}
