/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tags that delimit reasoning, and splitting at them. */
#include "src/text/think.h"

#include <stdlib.h>
#include <string.h>

#include "qsf_engine.h"

/* Maximum white space before a block; more is an answer. */
#define BLANK_MAX 64

/* From the models' own templates: deepseek-ai and Qwen and most others, mistralai (Magistral, Ministral),
 * CohereLabs (command-a), swiss-ai (Apertus), ByteDance-Seed, tencent (Hy3), LGAI-EXAONE (Deep), google
 * (gemma 4), moonshotai (Kimi-VL). */
static const QsfThinkTags tags[] = {
    { "<think>", "</think>" },
    { "[THINK]", "[/THINK]" },
    { "<|START_THINKING|>", "<|END_THINKING|>" },
    { "<|inner_prefix|>", "<|inner_suffix|>" },
    { "<seed:think>", "</seed:think>" },
    { "<think:opensource>", "</think:opensource>" },
    { "<thought>", "</thought>" },
    { "<|channel>thought", "<channel|>" },
    { "\xE2\x97\x81think\xE2\x96\xB7", "\xE2\x97\x81/think\xE2\x96\xB7" },
};
#define N_TAGS (sizeof tags / sizeof *tags)

static bool has(const char *text, size_t len, const char *part) {
    return memmem(text, len, part, strlen(part)) != NULL;
}

static bool same(const char *text, size_t len, const char *tag) {
    return strlen(tag) == len && memcmp(text, tag, len) == 0;
}

bool qsf_think_is_tag(const char *text, size_t len) {
    for (size_t i = 0; i < N_TAGS; i++)
        if (same(text, len, tags[i].open) || same(text, len, tags[i].close)) return true;
    return false;
}

/* Its id if the vocabulary distinguishes this text from ordinary text. */
static int32_t tag_token(const QsfTokenizer *tok, const char *text) {
    int32_t id = qsf_tokenizer_find(tok, text, strlen(text));
    QsfTokenType type = id < 0 ? QSF_TOKEN_NORMAL : qsf_tokenizer_type(tok, id);
    return type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_USER ? id : -1;
}

static const QsfThinkTags *find_tags(const QsfTokenizer *tok, const char *source, size_t len) {
    for (size_t i = 0; i < N_TAGS; i++)
        if (has(source, len, tags[i].close) || has(source, len, tags[i].open)) return &tags[i];
    for (size_t i = 0; i < N_TAGS; i++)
        if (tag_token(tok, tags[i].open) >= 0 && tag_token(tok, tags[i].close) >= 0) return &tags[i];
    return NULL;
}

void qsf_think_detect(QsfThink *t, const QsfTokenizer *tok, const char *source, size_t len) {
    *t = (QsfThink){ .open_id = -1, .close_id = -1 };
    if (source == NULL) return;
    t->tags = find_tags(tok, source, len);
    if (t->tags == NULL) return;
    t->open_id = tag_token(tok, t->tags->open);
    t->close_id = tag_token(tok, t->tags->close);
}

const char *qsf_think_hidden(const QsfThink *t, const QsfTokenizer *tok, int32_t id) {
    if (t->tags == NULL || id < 0 || (id != t->open_id && id != t->close_id)) return NULL;
    if (qsf_tokenizer_type(tok, id) != QSF_TOKEN_CONTROL) return NULL;
    return id == t->open_id ? t->tags->open : t->tags->close;
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

/* ---- splitting ---- */

int qsf_think_open(QsfThinkSplit *s, const QsfThink *t, const QsfThinkPrompt *where, size_t piece_max,
                   QsfErr *err) {
    size_t open = strlen(t->tags->open), close = strlen(t->tags->close);
    *s = (QsfThinkSplit){ .tags = t->tags, .state = where->state, .said = where->begun, .len = where->begun };
    s->cap = piece_max + BLANK_MAX + (open > close ? open : close);
    s->buf = malloc(s->cap);
    if (s->buf == NULL) return qsf_err_memory(err, "the answer's text");
    memcpy(s->buf, t->tags->close, s->len);
    return QSF_OK;
}

void qsf_think_close(QsfThinkSplit *s) {
    free(s->buf);
    *s = (QsfThinkSplit){ 0 };
}

static size_t blanks(const char *text, size_t len) {
    size_t n = 0;
    while (n < len && (text[n] == ' ' || (text[n] >= '\t' && text[n] <= '\r'))) n++;
    return n;
}

/* Emits the first n bytes. */
static void put_out(QsfThinkSplit *s, bool reasoning, size_t n, QsfThinkPut put, void *arg) {
    size_t said = n < s->said ? n : s->said;
    if (n == 0) return;
    if (n > said) put(arg, reasoning, s->buf + said, n - said);
    s->said -= said;
    memmove(s->buf, s->buf + n, s->len - n);
    s->len -= n;
}

/* Outside a block: white space, then perhaps a tag. false: more text is needed. */
static bool look_for_open(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    size_t blank = blanks(s->buf, s->len), tag = strlen(s->tags->open);
    if (s->state == QSF_THINK_AFTER) {
        put_out(s, true, blank, put, arg);
        blank = 0;
    }
    size_t rest = s->len - blank, n = rest < tag ? rest : tag;
    if (blank > BLANK_MAX || memcmp(s->buf + blank, s->tags->open, n) != 0) {
        s->state = QSF_THINK_ANSWER;
        return true;
    }
    if (n < tag) return false;
    put_out(s, true, blank + tag, put, arg);
    s->state = QSF_THINK_INSIDE;
    return true;
}

/* Inside: up to the closing tag, or to what may be the start of one. */
static bool look_for_close(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    size_t tag = strlen(s->tags->close), keep = s->len < tag ? s->len : tag - 1;
    const char *at = memmem(s->buf, s->len, s->tags->close, tag);
    if (at != NULL) {
        put_out(s, true, (size_t)(at - s->buf) + tag, put, arg);
        s->state = QSF_THINK_AFTER;
        return true;
    }
    while (keep > 0 && memcmp(s->buf + s->len - keep, s->tags->close, keep) != 0) keep--;
    put_out(s, true, s->len - keep, put, arg);
    return false;
}

void qsf_think_feed(QsfThinkSplit *s, const char *text, size_t len, QsfThinkPut put, void *arg) {
    if (len > s->cap - s->len) len = s->cap - s->len; /* cannot happen: little is held back */
    memcpy(s->buf + s->len, text, len);
    s->len += len;
    for (bool more = true; more && s->len > 0;) {
        if (s->state == QSF_THINK_ANSWER)
            put_out(s, false, s->len, put, arg);
        else
            more = s->state == QSF_THINK_INSIDE ? look_for_close(s, put, arg) : look_for_open(s, put, arg);
    }
}

void qsf_think_flush(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    put_out(s, s->state == QSF_THINK_INSIDE, s->len, put, arg);
}

/* ---- display ---- */

const char *qsf_reasoning_body(const char *text, size_t len, size_t *body_len) {
    if (text == NULL) len = 0;
    if (len == 0) {
        *body_len = 0;
        return text;
    }
    size_t at = blanks(text, len);
    const QsfThinkTags *t = NULL;
    for (size_t i = 0; i < N_TAGS && t == NULL; i++) {
        size_t n = strlen(tags[i].open);
        if (len - at >= n && memcmp(text + at, tags[i].open, n) == 0) t = &tags[i];
    }
    if (t != NULL) at += strlen(t->open);
    at += blanks(text + at, len - at);
    while (len > at && blanks(text + len - 1, 1) == 1) len--;
    size_t close = t != NULL ? strlen(t->close) : 0;
    if (close > 0 && len - at >= close && memcmp(text + len - close, t->close, close) == 0) len -= close;
    while (len > at && blanks(text + len - 1, 1) == 1) len--;
    *body_len = len - at;
    return text + at;
}
