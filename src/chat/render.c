/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages to text with segments, with a workaround for templates that refuse a system message, and a check
 * that no message is lost. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/chat/chat_impl.h"

#define SHOWN   64                /* bytes of a text that are looked for */
#define BEGIN   4096              /* bytes at its start that are considered */
#define WORDS   32                /* words of it */
#define LONG    4                 /* bytes of a word that does not occur by chance */
#define TAIL    ((size_t)1 << 20) /* bytes at the end of the text in which words are looked for */
#define CHECKED 16 /* messages at the end of a conversation; older ones were checked when they were new */

/* A message to be continued follows a new assistant's turn unchanged, because it was generated that way and
 * the KV cache still holds it. Templates trim past messages, add white space before them, or omit them. */
static int render_request(const QsfChatRequest *q, QsfRendered *out, bool *memory, QsfErr *err) {
    QsfChatRequest turn = *q;
    QsfChatOutcome oc;
    turn.n -= q->open_end;
    turn.generation = q->generation || q->open_end;
    int rc = qsf_chat_render_once(&turn, out, &oc, err);
    const QsfMsg *last = &q->msgs[turn.n];
    if (rc == QSF_OK && q->open_end) rc = qsf_rendered_add(out, last->content, last->len, false, err);
    *memory = oc.memory || err->memory;
    return rc;
}

/* --- templates without a system message --- */

static bool blank(const QsfMsg *m) {
    for (size_t i = 0; i < m->len; i++)
        if (strchr(" \t\r\n", m->content[i]) == NULL || m->content[i] == '\0') return false;
    return true;
}

/* Whether the text contains the first line of m. */
static bool shows(const QsfRendered *r, const QsfMsg *m) {
    size_t from = 0, to;
    while (from < m->len && strchr(" \t\r\n", m->content[from]) != NULL) from++;
    for (to = from; to < m->len && to - from < SHOWN && m->content[to] != '\n' && m->content[to] != '\r';)
        to++;
    while (to > from && m->content[to - 1] == ' ') to--;
    return to == from ||
           (r->text.len > 0 && memmem(r->text.data, r->text.len, m->content + from, to - from) != NULL);
}

static bool is_word_byte(unsigned char c) { return isalnum(c) || c >= 0x80; }

/* Whether the text contains a long word from the start of m, or half of its words, in upper or lower case:
 * templates change texts in many ways. */
static bool shows_words(const QsfRendered *r, const QsfMsg *m) {
    char word[SHOWN + 1];
    size_t words = 0, found = 0, end = m->len < BEGIN ? m->len : BEGIN;
    const char *text = qsf_strbuf_str(&r->text) + (r->text.len > TAIL ? r->text.len - TAIL : 0);
    for (size_t i = 0, n; i < end && words < WORDS; i += n + 1) {
        for (n = 0; i + n < end && n < SHOWN && is_word_byte((unsigned char)m->content[i + n]);) n++;
        if (n < 2) continue;
        memcpy(word, m->content + i, n);
        word[n] = '\0';
        bool there = strcasestr(text, word) != NULL;
        if (there && n >= LONG) return true;
        words++;
        found += there;
    }
    return found > 0 && 2 * found >= words;
}

void qsf_chat_lost_note(const QsfChatTemplate *t, const QsfMsg *msgs, size_t n, size_t lost, char *out,
                        size_t cap) {
    const bool newest = lost == n && strcmp(msgs[n - 1].role, "user") == 0;
    if (newest)
        snprintf(out, cap, "%s leaves out your message: the model does not see it", qsf_chat_label(t).text);
    else
        snprintf(out, cap, "%s leaves out message %zu of %zu (%.20s)", qsf_chat_label(t).text, lost, n,
                 msgs[lost - 1].role);
}

/* Adds the system message before the first user message, in a copy of the messages. */
static int render_merged(const QsfChatRequest *q, QsfRendered *out, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfMsg *msgs = malloc(q->n * sizeof *msgs);
    size_t user = 1;
    while (user < q->n && strcmp(q->msgs[user].role, "user") != 0) user++;
    if (msgs == NULL || user == q->n) {
        if (msgs == NULL) return qsf_err_memory(err, "rendered messages");
        free(msgs);
        return qsf_err_set(err, QSF_E_RUNTIME, "no user message to prepend the system message to");
    }
    qsf_strbuf_add(&b, q->msgs[0].content, q->msgs[0].len);
    qsf_strbuf_adds(&b, "\n\n");
    qsf_strbuf_add(&b, q->msgs[user].content, q->msgs[user].len);
    memcpy(msgs, q->msgs + 1, (q->n - 1) * sizeof *msgs);
    msgs[user - 1] = (QsfMsg){ .role = "user", .content = qsf_strbuf_str(&b), .len = b.len };
    msgs[0].tools = q->msgs[0].tools;
    msgs[0].tools_len = q->msgs[0].tools_len;
    QsfChatRequest merged = *q;
    merged.msgs = msgs;
    merged.n--;
    bool memory;
    int rc = qsf_strbuf_ok(&b) ? render_request(&merged, out, &memory, err)
                               : qsf_err_memory(err, "rendered messages");
    qsf_strbuf_free(&b);
    free(msgs);
    return rc;
}

/* --- words instead of messages --- */

/* The same messages with words that every filter leaves recognizable, in upper or lower case. */
typedef struct Words {
    QsfRendered r;
    QsfMsg *msgs; /* NULL: not rendered yet */
    bool ok;      /* rendered without an error */
    char text[CHECKED + 1][16];
} Words;

static size_t first_checked(const QsfChatRequest *q) {
    const size_t end = q->n - q->open_end;
    return end > CHECKED ? end - CHECKED : 0;
}

/* The place of a message in Words.text; the first message has the last one. */
static size_t place_of(const QsfChatRequest *q, size_t i) {
    return i < first_checked(q) ? CHECKED : i - first_checked(q);
}

static void words_free(Words *w) {
    qsf_rendered_free(&w->r);
    free(w->msgs);
}

static bool has_word(const Words *w, size_t place) {
    const char *p = qsf_strbuf_str(&w->r.text), *end = p + w->r.text.len;
    for (; p < end; p += strlen(p) + 1)
        if (strcasestr(p, w->text[place]) != NULL) return true;
    return false;
}

/* Renders words instead of the checked messages, or only of the first one; merged: with render_merged. An
 * error other than missing memory and interruption only means that nothing is known. */
static int render_words(const QsfChatRequest *q, bool only_first, bool merged, Words *w, QsfErr *err) {
    QsfErr e = { 0 };
    bool memory = false;
    if (w->msgs != NULL) return QSF_OK;
    if ((w->msgs = malloc(q->n * sizeof *w->msgs)) == NULL) return qsf_err_memory(err, "rendered messages");
    memcpy(w->msgs, q->msgs, q->n * sizeof *w->msgs);
    for (size_t i = 0; i < q->n - q->open_end; i++) {
        const size_t place = place_of(q, i);
        if ((i > 0 && (only_first || i < first_checked(q))) || blank(&q->msgs[i])) continue;
        snprintf(w->text[place], sizeof w->text[place], "Zqword%ck", (char)('a' + place));
        w->msgs[i].content = w->text[place];
        w->msgs[i].len = strlen(w->text[place]);
    }
    QsfChatRequest copy = *q;
    copy.msgs = w->msgs;
    int rc = merged ? render_merged(&copy, &w->r, &e) : render_request(&copy, &w->r, &memory, &e);
    w->ok = rc == QSF_OK;
    return memory || e.memory || e.code == QSF_E_INTERRUPTED ? qsf_err_pass(err, &e) : QSF_OK;
}

/* Whether the rendering has the system message. */
static int shows_system(const QsfChatRequest *q, const QsfRendered *r, bool *shown, QsfErr *err) {
    Words w = { 0 };
    *shown = shows(r, &q->msgs[0]);
    if (*shown) return QSF_OK;
    int rc = render_words(q, true, false, &w, err);
    *shown = rc == QSF_OK && w.ok && has_word(&w, place_of(q, 0));
    words_free(&w);
    return rc;
}

/* As it is, or else merged. */
static int render_with_system(const QsfChatRequest *q, bool *is_merged, QsfRendered *out, QsfErr *err) {
    QsfErr first = { 0 }, again = { 0 };
    bool memory, shown = false;
    int rc = render_request(q, out, &memory, &first);
    bool system = !memory && q->n > 1 && strcmp(q->msgs[0].role, "system") == 0 && !blank(&q->msgs[0]);
    if (system && rc == QSF_OK) {
        const int failed = shows_system(q, out, &shown, err);
        if (failed != QSF_OK) return failed;
    }
    if (!system || shown) return qsf_err_pass(err, &first);
    QsfRendered merged = { 0 };
    int rc2 = render_merged(q, &merged, &again);
    if (rc2 != QSF_OK) {
        qsf_rendered_free(&merged);
        return qsf_err_pass(err, again.memory ? &again : &first);
    }
    qsf_rendered_free(out);
    *out = merged;
    *is_merged = true;
    return QSF_OK;
}

/* A text that a filter changed beyond recognition is not lost if a word in its place appears. */
static int is_lost(const QsfChatRequest *q, const QsfRendered *r, bool merged, size_t i, Words *w, bool *lost,
                   QsfErr *err) {
    const QsfMsg *m = &q->msgs[i];
    *lost = !blank(m) && strcmp(m->role, "user") == 0 && q->t->hides_user;
    if (*lost || blank(m) || shows(r, m) || shows_words(r, m)) return QSF_OK;
    int rc = render_words(q, false, merged, w, err);
    *lost = rc == QSF_OK && w->ok && !has_word(w, place_of(q, i));
    return rc;
}

/* *at: 1 + the newest message of the first and the last ones whose text is not in the rendering, or 0. */
static int find_lost(const QsfChatRequest *q, const QsfRendered *r, bool merged, size_t *at, QsfErr *err) {
    const size_t begin = first_checked(q);
    Words w = { 0 };
    bool lost = false;
    int rc = QSF_OK;
    *at = 0;
    for (size_t i = q->n - q->open_end; i > begin && rc == QSF_OK && !lost; i--) {
        rc = is_lost(q, r, merged, i - 1, &w, &lost, err);
        if (lost) *at = i;
    }
    if (rc == QSF_OK && !lost && begin > 0) {
        rc = is_lost(q, r, merged, 0, &w, &lost, err);
        if (lost) *at = 1;
    }
    words_free(&w);
    return rc;
}

/* A template that leaves tool calls out, or refuses these, gets them as text. */
static int render_calls(QsfChatRequest *q, bool *merged, QsfRendered *out, QsfErr *err) {
    QsfErr e = { 0 };
    if (q->calls) {
        if (render_with_system(q, merged, out, &e) == QSF_OK) return QSF_OK;
        if (e.code == QSF_E_INTERRUPTED) return qsf_err_pass(err, &e);
        qsf_rendered_free(out);
        q->calls = *merged = false;
    }
    return render_with_system(q, merged, out, err);
}

int qsf_chat_render(const QsfChatTemplate *t, const QsfMsg *msgs, size_t n, unsigned flags, QsfRendered *out,
                    QsfErr *err) {
    bool open_end = (flags & QSF_CHAT_CONTINUE) && n > 0 && strcmp(msgs[n - 1].role, "assistant") == 0;
    QsfChatRequest q = {
        .t = t, .msgs = msgs, .n = n, .open_end = open_end, .reason = flags / QSF_CHAT_REASON
    };
    q.switches = t->switches;
    q.n_switches = t->n_switches;
    q.generation = (flags & QSF_CHAT_GENERATE) && !open_end;
    q.calls = (flags & QSF_CHAT_CALLS) && qsf_chat_takes_calls(&q);
    bool merged = false;
    int rc = qsf_chat_check_tools(t, msgs, n, err);
    if (rc != QSF_OK) return rc;
    rc = render_calls(&q, &merged, out, err);
    out->lost = 0;
    return rc == QSF_OK ? find_lost(&q, out, merged, &out->lost, err) : rc;
}

/* --- rendered segments to token ids. The text is tokenized as a whole, as in training: a word across a
 * segment boundary stays one word. Only special tokens may not cross boundaries --- */

/* Whether the text begins with BOS, where that is allowed. */
static bool begins_with_bos(const QsfTokenizer *tok, const char *text, size_t len, size_t trusted) {
    size_t n = 0;
    int32_t bos = qsf_tokenizer_bos(tok);
    const char *name = bos < 0 ? NULL : qsf_tokenizer_raw(tok, bos, &n);
    return n > 0 && trusted >= n && len >= n && memcmp(text, name, n) == 0;
}

int qsf_chat_encode_rendered(const QsfTokenizer *tok, const QsfRendered *r, bool allow, QsfIds *out,
                             QsfErr *err) {
    const char *text = qsf_strbuf_str(&r->text);
    size_t first = allow ? r->text.len : r->n_segs > 0 && r->segs[0].trusted ? r->segs[0].len : 0;
    unsigned flags = QSF_TOK_SPECIAL | (begins_with_bos(tok, text, r->text.len, first) ? 0 : QSF_TOK_BOS);
    if (allow) return qsf_tokenizer_encode(tok, text, r->text.len, flags, out, err);
    uint8_t *trusted = malloc(r->text.len + 1);
    if (trusted == NULL) return qsf_err_memory(err, "rendered messages");
    for (size_t i = 0; i < r->n_segs; i++)
        memset(trusted + r->segs[i].off, r->segs[i].trusted, r->segs[i].len);
    int rc = qsf_tokenizer_encode_marked(tok, text, r->text.len, trusted, flags, out, err);
    free(trusted);
    return rc;
}

bool qsf_chat_breaks_line(const QsfMsg *msgs, size_t i) {
    const bool answers = i > 0 && strcmp(msgs[i].role, "assistant") == 0;
    return i > 0 && !(answers && strcmp(msgs[i - 1].role, "assistant") != 0);
}

static int encode_plain(const QsfTokenizer *tok, const QsfMsg *msgs, size_t n, bool allow, QsfIds *out,
                        QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        if (qsf_chat_breaks_line(msgs, i)) qsf_strbuf_addc(&b, '\n');
        if (msgs[i].len > 0) qsf_strbuf_add(&b, msgs[i].content, msgs[i].len);
    }
    int rc = QSF_OK;
    if (!qsf_strbuf_ok(&b)) {
        rc = qsf_err_memory(err, "messages");
    } else {
        const char *text = qsf_strbuf_str(&b);
        unsigned flags = allow ? QSF_TOK_SPECIAL : 0;
        if (!begins_with_bos(tok, text, b.len, allow ? b.len : 0)) flags |= QSF_TOK_BOS;
        rc = qsf_tokenizer_encode(tok, text, b.len, flags, out, err);
    }
    qsf_strbuf_free(&b);
    return rc;
}

int qsf_chat_encode_checked(const QsfChatTemplate *t, const QsfTokenizer *tok, const QsfMsg *msgs, size_t n,
                            unsigned flags, QsfIds *out, size_t *lost, QsfErr *err) {
    QsfRendered r = { 0 };
    bool allow = flags & QSF_CHAT_ALLOW_SPECIAL;
    if (lost != NULL) *lost = 0;
    if (t == NULL) return encode_plain(tok, msgs, n, allow, out, err);
    int rc = qsf_chat_render(t, msgs, n, flags, &r, err);
    if (lost != NULL) *lost = r.lost;
    if (rc == QSF_OK) rc = qsf_chat_encode_rendered(tok, &r, allow, out, err);
    qsf_rendered_free(&r);
    return rc;
}

int qsf_chat_encode(const QsfChatTemplate *t, const QsfTokenizer *tok, const QsfMsg *msgs, size_t n,
                    unsigned flags, QsfIds *out, QsfErr *err) {
    return qsf_chat_encode_checked(t, tok, msgs, n, flags, out, NULL, err);
}

/* --- display --- */

static bool is_white(const char *s, size_t len) {
    while (len > 0 && strchr(" \t\r\n", s[len - 1]) != NULL && s[len - 1] != '\0') len--;
    return len == 0;
}

/* In some vocabularies runs of spaces are user-defined tokens; to a reader they are text. */
static bool is_marked(const QsfTokenizer *tok, int32_t id, const char *text, size_t len) {
    QsfTokenType type = qsf_tokenizer_type(tok, id);
    return type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_UNKNOWN ||
           (type == QSF_TOKEN_USER && !is_white(text, len));
}

int qsf_chat_show(const QsfTokenizer *tok, const QsfIds *ids, QsfStrbuf *out, size_t *n_special,
                  QsfErr *err) {
    char *piece = malloc(QSF_PIECE_MAX);
    size_t count = 0;
    for (size_t i = 0; i < ids->n && piece != NULL; i++) {
        size_t len = qsf_tokenizer_piece(tok, ids->data[i], true, piece, QSF_PIECE_MAX);
        bool mark = is_marked(tok, ids->data[i], piece, len);
        if (mark) qsf_strbuf_adds(out, QSF_CHAT_MARK_OPEN);
        qsf_strbuf_add(out, piece, len);
        if (mark) qsf_strbuf_adds(out, QSF_CHAT_MARK_CLOSE);
        count += mark;
    }
    if (n_special != NULL) *n_special = count;
    bool ok = piece != NULL && qsf_strbuf_ok(out);
    free(piece);
    return ok ? QSF_OK : qsf_err_memory(err, "the prompt as text");
}
