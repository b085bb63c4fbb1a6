/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Splitting messages and elements, whose structure is in tokens: channels and recipients (gpt-oss, Muse),
 * kinds (Solar Open), elements (Kimi K3). Reasoning of several messages becomes one text, in which each has
 * its head, and answers become one without heads; tool calls are shown with the answer, by name and
 * arguments. Tokens are never shown. */
#include <stdio.h>
#include <string.h>

#include "src/chat/think_impl.h"

#include "src/base/ascii.h"

/* Special tokens in a head. */
#define HEAD_CHANNEL '\x01'
#define HEAD_TOKEN   '\x02'

#define PARAGRAPH "\n\n"

/* ---- emitting ---- */

static void emit(QsfThinkPut put, void *arg, bool reasoning, const char *text) {
    if (put != NULL && *text != '\0') put(arg, reasoning, text, strlen(text));
}

/* The text that follows is of this kind. */
static void begin(QsfThinkSplit *s, QsfThinkPart part, QsfThinkPut put, void *arg) {
    const bool shown = part == QSF_PART_ANSWER || part == QSF_PART_CALL;
    s->heading = false;
    s->part = part;
    if (part == QSF_PART_REASONING) {
        if (s->reasoned && !s->closed) emit(put, arg, true, PARAGRAPH);
        emit(put, arg, true, qsf_think_reasoning_head(s->t->format, s->commentary));
        s->reasoned = true;
        s->closed = false;
    }
    if (shown && s->reasoned && !s->closed) {
        emit(put, arg, true, PARAGRAPH);
        s->closed = true;
    }
    if (shown && s->answered) emit(put, arg, false, PARAGRAPH);
}

static bool is_plain(unsigned char c) { return c >= ' ' && c != '"' && c != '\\'; }

/* Text inside of a JSON string. */
static void emit_quoted(QsfThinkPut put, void *arg, const char *text, size_t len) {
    char escape[8];
    for (size_t i = 0, n; i < len && put != NULL; i += n) {
        for (n = 0; i + n < len && is_plain((unsigned char)text[i + n]);) n++;
        if (n > 0) {
            put(arg, false, text + i, n);
            continue;
        }
        n = 1;
        if (text[i] == '"' || text[i] == '\\' || text[i] == '\n')
            snprintf(escape, sizeof escape, "\\%c", text[i] == '\n' ? 'n' : text[i]);
        else
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)text[i]);
        emit(put, arg, false, escape);
    }
}

static void text_of(QsfThinkSplit *s, const char *text, size_t len, QsfThinkPut put, void *arg) {
    const bool reasoning = s->part == QSF_PART_REASONING;
    if (s->part == QSF_PART_NONE || s->part == QSF_PART_SILENT || len == 0) return;
    if (!reasoning) s->answered = true;
    if (s->quoted && s->part == QSF_PART_CALL)
        emit_quoted(put, arg, text, len);
    else if (put != NULL)
        put(arg, reasoning, text, len);
}

/* Begins a tool call: its name follows. */
static void begin_call(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    begin(s, QSF_PART_CALL, put, arg);
    s->answered = true;
    emit(put, arg, false, "[tool call to=");
}

static void named_call(QsfThinkSplit *s, const char *name, size_t len, QsfThinkPut put, void *arg) {
    begin_call(s, put, arg);
    text_of(s, name, len, put, arg);
    emit(put, arg, false, "] ");
}

/* ---- heads ---- */

static void open_head(QsfThinkSplit *s, bool started) {
    s->part = QSF_PART_NONE;
    s->heading = true;
    s->closing = false;
    s->started = started;
    s->head_len = 0;
}

/* A piece of a head. */
typedef struct Word {
    const char *text;
    size_t len;
} Word;

static bool is(Word w, const char *text) { return w.len == strlen(text) && memcmp(w.text, text, w.len) == 0; }

/* The word at `at`: up to white space or a token. */
static Word word_at(const QsfThinkSplit *s, size_t at) {
    size_t end = at;
    while (end < s->head_len && (unsigned char)s->head[end] > ' ') end++;
    return (Word){ s->head + at, end - at };
}

/* The word after the last `mark`; empty if there is none. */
static Word channel_of(const QsfThinkSplit *s) {
    size_t at = s->head_len;
    while (at > 0 && s->head[at - 1] != HEAD_CHANNEL) at--;
    if (at == 0) return (Word){ s->head, 0 };
    return word_at(s, at + qsf_think_blanks(s->head + at, s->head_len - at));
}

/* The last recipient, before or after the channel; empty if there is none. */
static Word recipient_of(const QsfThinkSplit *s) {
    Word w = { s->head, 0 };
    for (size_t i = 0; i < s->head_len; i++) {
        bool starts = i == 0 || (unsigned char)s->head[i - 1] <= ' ';
        if (starts && qsf_begins_with(s->head + i, s->head_len - i, "to=")) w = word_at(s, i + 3);
    }
    return w;
}

/* Roles of messages that are not the model's own. */
static const char *const foreign[] = { "user", "system", "developer", "tool" };

static bool is_foreign(Word role) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (is(role, foreign[i])) return true;
    return qsf_begins_with(role.text, role.len, "functions.");
}

/* Ends the turn if the head of a message that the model began has another role. */
static bool check_role(QsfThinkSplit *s) {
    s->ended = s->ended || (s->started && is_foreign(word_at(s, 0)));
    return !s->ended;
}

/* The head is complete: what follows depends on the channel and the recipient. */
static void begin_message(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    const Word channel = channel_of(s), to = recipient_of(s);
    if (!check_role(s)) return;
    s->commentary = is(channel, "commentary");
    if (to.len > 0 && !is(to, "assistant") && !is(to, "user") && !is(to, "self") && !is(to, "all"))
        named_call(s, to.text, to.len, put, arg);
    else if (is(channel, "analysis") || is(channel, "commentary") || is(to, "self"))
        begin(s, QSF_PART_REASONING, put, arg);
    else
        begin(s, QSF_PART_ANSWER, put, arg);
}

/* Text where a head was expected: an answer without one. */
static void as_answer(QsfThinkSplit *s, const char *text, size_t len, QsfThinkPut put, void *arg) {
    char head[QSF_THINK_HEAD];
    const size_t n = s->head_len;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (s->head[i] != HEAD_CHANNEL && s->head[i] != HEAD_TOKEN) head[kept++] = s->head[i];
    s->head_len = 0;
    begin(s, QSF_PART_ANSWER, put, arg);
    text_of(s, head, kept, put, arg);
    text_of(s, text, len, put, arg);
}

/* Whether the text can follow the role in the head that the prompt began: only a recipient can. */
static bool may_follow_role(const QsfThinkSplit *s) {
    const size_t blank = qsf_think_blanks(s->head, s->head_len),
                 n = s->head_len - blank < 3 ? s->head_len - blank : 3;
    return n == 0 || (s->t->format != QSF_THINK_BLOCKS && memcmp(s->head + blank, "to=", n) == 0);
}

static void head_text(QsfThinkSplit *s, const char *text, size_t len, QsfThinkPut put, void *arg) {
    const bool tokens = memchr(s->head, HEAD_CHANNEL, s->head_len) != NULL;
    if (len > sizeof s->head - s->head_len) {
        as_answer(s, text, len, put, arg);
        return;
    }
    memcpy(s->head + s->head_len, text, len);
    s->head_len += len;
    if (!s->started && !tokens && !may_follow_role(s)) as_answer(s, "", 0, put, arg);
}

/* Whether one of the two is the beginning of the other. */
static bool agrees(Word w, const char *text) {
    const size_t n = strlen(text) < w.len ? strlen(text) : w.len;
    return memcmp(w.text, text, n) == 0;
}

/* Whether the word is a role, or the beginning of one. */
static bool may_be_role(Word w) {
    bool may = is_foreign(w) || (w.len <= 9 && agrees(w, "assistant")) ||
               (w.len <= 10 && agrees(w, "functions."));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        may = may || (w.len <= strlen(foreign[i]) && agrees(w, foreign[i]));
    return may;
}

/* Whether a head that no token completed may still be one: a role, a channel, recipients. */
static bool may_be_head(const QsfThinkSplit *s) {
    bool role = true, token = false;
    if (recipient_of(s).len > 0) return true; /* followed by the type of the arguments */
    for (size_t i = 0; i < s->head_len;) {
        const Word w = word_at(s, i);
        if (w.len == 0) {
            token = s->head[i] == HEAD_CHANNEL || s->head[i] == HEAD_TOKEN;
            if (token) role = false;
            i++;
            continue;
        }
        const bool named = role && s->started && may_be_role(w);
        if (!named && !token && !agrees(w, "to=")) return false;
        role = token = false;
        i += w.len;
    }
    return true;
}

/* Elements that a message of the assistant has. */
static const char *const elements[] = { "think", "response", "message", "tools", "call", "argument", "json" };

/* Length of the name of an element at the start of the head; 0 if there is none. *whole: nothing else is
 * expected, or attributes follow. */
static size_t element_name(const QsfThinkSplit *s, bool *whole) {
    const Word head = { s->head, s->head_len };
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        const size_t n = strlen(elements[i]);
        if (!agrees(head, elements[i])) continue;
        *whole = head.len <= n || (!s->closing && head.text[n] == ' ');
        return head.len < n ? head.len : n;
    }
    *whole = head.len == 0;
    return 0;
}

/* The output, or a message, ends inside a head: what cannot be one is an answer. */
static void end_head(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    bool whole = false;
    size_t name = 0;
    if (s->t->format == QSF_THINK_ELEMENTS)
        name = element_name(s, &whole);
    else
        whole = may_be_head(s);
    if (whole) return;
    s->head_len -= name;
    memmove(s->head, s->head + name, s->head_len);
    as_answer(s, "", 0, put, arg);
}

static void head_token(QsfThinkSplit *s, char c) {
    if (s->head_len < sizeof s->head) s->head[s->head_len++] = c;
}

static void end_part(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    if (s->heading) end_head(s, put, arg);
    s->heading = false;
    s->part = QSF_PART_NONE;
}

/* ---- gpt-oss and Muse ---- */

static void message_token(QsfThinkSplit *s, Word w, QsfThinkPut put, void *arg) {
    if (is(w, qsf_think_dialect(s->t->format)->start)) {
        end_part(s, put, arg);
        open_head(s, true);
    } else if (is(w, "<|channel|>")) {
        if (!s->heading) open_head(s, false);
        head_token(s, HEAD_CHANNEL);
    } else if (is(w, "<|message|>")) {
        if (!s->heading && s->part == QSF_PART_NONE) open_head(s, false);
        if (s->heading) begin_message(s, put, arg);
    } else if (is(w, "<|constrain|>")) {
        if (s->heading) head_token(s, HEAD_TOKEN);
    } else {
        end_part(s, put, arg);
    }
}

/* ---- Solar Open ---- */

static void block_token(QsfThinkSplit *s, Word w, QsfThinkPut put, void *arg) {
    static const char call[] = "<|tool_call:";
    if (is(w, "<|begin|>")) {
        end_part(s, put, arg);
        open_head(s, true);
    } else if (is(w, "<|think|>") || is(w, "<|content|>")) {
        if (!s->heading || check_role(s))
            begin(s, is(w, "<|think|>") ? QSF_PART_REASONING : QSF_PART_ANSWER, put, arg);
    } else if (is(w, "<|tool_call:name|>")) {
        begin_call(s, put, arg);
    } else if (is(w, "<|tool_call:args|>")) {
        emit(put, arg, false, "] ");
    } else if (is(w, "<|tool_calls|>") || qsf_begins_with(w.text, w.len, call)) {
        s->heading = false; /* an id follows the beginning of a call, nothing its end */
        s->part = QSF_PART_SILENT;
    } else if (is(w, "<|end|>") || is(w, "<|flush|>") || is(w, "<|calls|>")) {
        end_part(s, put, arg);
    }
}

/* ---- Kimi K3 ---- */

/* The value of the attribute; empty if there is none. */
static Word attribute(const QsfThinkSplit *s, const char *name) {
    const size_t n = strlen(name);
    for (size_t i = 1; i + n < s->head_len; i++) {
        if (s->head[i - 1] != ' ' || memcmp(s->head + i, name, n) != 0) continue;
        const char *from = s->head + i + n, *to = memchr(from, '"', s->head_len - i - n);
        return (Word){ from, to != NULL ? (size_t)(to - from) : s->head_len - i - n };
    }
    return (Word){ s->head, 0 };
}

/* The value of an attribute, which has two entities, inside of a JSON string. */
static void emit_attribute(Word w, QsfThinkPut put, void *arg) {
    static const char quote[] = "&quot;", ampersand[] = "&amp;";
    for (size_t i = 0, n; i < w.len; i += n) {
        const char *next = memchr(w.text + i + 1, '&', w.len - i - 1);
        n = next != NULL ? (size_t)(next - w.text) - i : w.len - i;
        const bool quoted = qsf_begins_with(w.text + i, n, quote);
        const bool entity = quoted || qsf_begins_with(w.text + i, n, ampersand);
        const size_t skip = quoted ? strlen(quote) : entity ? strlen(ampersand) : 0;
        if (entity) emit_quoted(put, arg, quoted ? "\"" : "&", 1);
        emit_quoted(put, arg, w.text + i + skip, n - skip);
    }
}

/* Calls are shown with a JSON object, as those of other formats: the next prompt has them as a call again. */
static void open_argument(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    const Word type = attribute(s, "type=\"");
    s->part = QSF_PART_CALL;
    emit(put, arg, false, s->args == QSF_ARGS_SOME ? ", \"" : "{\"");
    emit_attribute(attribute(s, "key=\""), put, arg);
    s->quoted = type.len == 0 || is(type, "string");
    emit(put, arg, false, s->quoted ? "\": \"" : "\": ");
    s->args = QSF_ARGS_SOME;
}

static void close_argument(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    if (s->quoted) emit(put, arg, false, "\"");
    s->quoted = false;
}

static void close_call(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    close_argument(s, put, arg);
    if (s->args == QSF_ARGS_NONE) emit(put, arg, false, "{}");
    if (s->args == QSF_ARGS_SOME) emit(put, arg, false, "}");
    s->args = QSF_ARGS_CLOSED;
}

static void open_element(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    const Word name = word_at(s, 0);
    s->heading = false;
    if (is(name, "think")) {
        begin(s, QSF_PART_REASONING, put, arg);
    } else if (is(name, "response")) {
        begin(s, QSF_PART_ANSWER, put, arg);
    } else if (is(name, "call")) {
        const Word tool = attribute(s, "tool=\"");
        close_call(s, put, arg);
        named_call(s, tool.text, tool.len, put, arg);
        s->args = QSF_ARGS_NONE;
    } else if (is(name, "argument")) {
        close_argument(s, put, arg);
        open_argument(s, put, arg);
    } else if (is(name, "json")) {
        s->part = QSF_PART_CALL;
        s->args = QSF_ARGS_RAW;
    } else if (is(name, "message")) {
        s->ended = s->ended || is_foreign(attribute(s, "role=\""));
        s->part = QSF_PART_NONE;
    } else {
        s->part = QSF_PART_NONE;
    }
}

static void close_element(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    s->heading = false;
    s->part = QSF_PART_NONE;
    if (is(word_at(s, 0), "argument")) close_argument(s, put, arg);
    if (is(word_at(s, 0), "call")) close_call(s, put, arg);
}

static void element_token(QsfThinkSplit *s, Word w, QsfThinkPut put, void *arg) {
    if (is(w, "<|open|>") || is(w, "<|close|>")) {
        if (s->heading) end_head(s, put, arg);
        open_head(s, true);
        s->closing = is(w, "<|close|>");
    } else if (is(w, "<|sep|>") && s->heading) {
        if (s->closing)
            close_element(s, put, arg);
        else
            open_element(s, put, arg);
    }
}

/* ---- all of them ---- */

void qsf_think_parts_token(QsfThinkSplit *s, const char *text, size_t len, bool hidden, QsfThinkPut put,
                           void *arg) {
    const char *const *t = qsf_think_dialect(s->t->format)->tokens;
    const Word w = { text, len };
    if (s->ended) return;
    while (*t != NULL && !is(w, *t)) t++;
    if (*t == NULL) {
        if (!hidden) qsf_think_parts_text(s, text, len, put, arg); /* any other token */
    } else if (s->t->format == QSF_THINK_BLOCKS) {
        block_token(s, w, put, arg);
    } else if (s->t->format == QSF_THINK_ELEMENTS) {
        element_token(s, w, put, arg);
    } else {
        message_token(s, w, put, arg);
    }
}

void qsf_think_parts_text(QsfThinkSplit *s, const char *text, size_t len, QsfThinkPut put, void *arg) {
    if (s->ended || len == 0) return;
    if (s->heading) {
        head_text(s, text, len, put, arg);
    } else if (s->part == QSF_PART_NONE) {
        /* Between messages: white space, or text without a head. */
        if (qsf_think_blanks(text, len) == len) return;
        begin(s, QSF_PART_ANSWER, put, arg);
        text_of(s, text, len, put, arg);
    } else {
        text_of(s, text, len, put, arg);
    }
}

void qsf_think_parts_flush(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    if (!s->ended && s->heading) end_head(s, put, arg);
}
