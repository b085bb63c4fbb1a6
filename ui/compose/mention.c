/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that a message names. */
#include "ui/compose/mention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ui/path.h"

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\0'; }

static bool begins_word(const char *text, size_t at) {
    return at == 0 || is_blank(text[at - 1]) || text[at - 1] == '(';
}

/* Takes s[0..len) as the path if there is such a file. */
static bool exists(UiMentions *m, const char *s, size_t len, bool quoted) {
    struct stat st;
    char *typed = len > 0 && len < sizeof m->path ? ui_strdup_len(s, len) : NULL;
    char *path = typed && !quoted ? ui_path_expand(typed) : NULL;
    const char *p = quoted ? typed : path;
    const bool is = p && strlen(p) < sizeof m->path && m->tries++ < UI_MENTION_TRIES && stat(p, &st) == 0;
    if (is) (void)snprintf(m->path, sizeof m->path, "%s", p);
    free(path);
    free(typed);
    return is;
}

/* Letters after a backslash in quotes, and what they stand for. */
static const char escapes[] = "ntr\"\\", escaped[] = "\n\t\r\"\\";

/* The same with the escapes of ui_mention_add. */
static bool escaped_at(UiMentions *m, size_t at) {
    UiBuf b = { 0 };
    size_t i = at;
    for (; i < m->len && m->text[i] != '"' && m->text[i] != '\n' && b.len < sizeof m->path; i++) {
        const char *e = m->text[i] == '\\' && i + 1 < m->len && m->text[i + 1]
                            ? strchr(escapes, m->text[i + 1])
                            : NULL;
        ui_buf_add(&b, e ? &escaped[e - escapes] : m->text + i, 1);
        i += e ? 1 : 0;
    }
    const bool is = i < m->len && m->text[i] == '"' && exists(m, ui_buf_str(&b), b.len, true);
    ui_buf_free(&b);
    if (is) m->at = i + 1;
    return is;
}

static void note_missing(UiMentions *m, size_t at, size_t len) {
    if (m->missing_len > 0) return;
    m->missing = at;
    m->missing_len = len;
}

/* "@src/a.c" is probably a file, "@name" is not. */
static bool looks_like_path(const char *s, size_t len) {
    const char *dot = memchr(s, '.', len);
    return memchr(s, '/', len) || (dot && dot > s);
}

static bool quoted_at(UiMentions *m, size_t at) {
    const char *s = m->text + at, *end = memchr(s, '"', m->len - at);
    if (!end || memchr(s, '\n', (size_t)(end - s))) return false;
    if (!exists(m, s, (size_t)(end - s), true)) {
        if (escaped_at(m, at)) return true;
        note_missing(m, at, (size_t)(end - s));
        return false;
    }
    m->at = (size_t)(end - m->text) + 1;
    return true;
}

static bool word_at(UiMentions *m, size_t at) {
    size_t n = 0;
    const char *s = m->text + at;
    while (at + n < m->len && (!is_blank(s[n]) || (s[n] == ' ' && n > 0 && s[n - 1] == '\\'))) n++;
    for (; n > 0; n--) {
        if (exists(m, s, n, false)) {
            m->at = at + n;
            return true;
        }
        if (!strchr(".,;:!?)]}'\"", s[n - 1])) break;
    }
    if (looks_like_path(s, n)) note_missing(m, at, n);
    return false;
}

bool ui_mention_next(UiMentions *m) {
    while (m->at < m->len && m->tries < UI_MENTION_TRIES) {
        const char *sign = memchr(m->text + m->at, '@', m->len - m->at);
        if (!sign) break;
        const size_t at = m->from = (size_t)(sign - m->text);
        m->at = at + 1;
        if (!begins_word(m->text, at) || at + 1 == m->len) continue;
        if (m->text[at + 1] == '@')
            m->at++;
        else if (m->text[at + 1] == '"' ? quoted_at(m, at + 2) : word_at(m, at + 1))
            return true;
    }
    return false;
}

bool ui_mention_typed(const char *text, size_t point, size_t *from, bool *quoted) {
    size_t line = point;
    while (line > 0 && text[line - 1] != '\n') line--;
    for (size_t at = point; at > line; at--) {
        if (text[at - 1] != '@' || !begins_word(text, at - 1)) continue;
        *quoted = at < point && text[at] == '"';
        *from = at + (*quoted ? 1 : 0);
        const char *rest = text + *from;
        const size_t len = point - *from;
        for (size_t i = 0; !*quoted && i < len; i++)
            if (is_blank(rest[i]) && !(i > 0 && rest[i - 1] == '\\')) return false;
        return !(*quoted && memchr(rest, '"', len)) && !(len > 0 && rest[0] == '@');
    }
    return false;
}

void ui_mention_add(UiBuf *b, const char *path) {
    const bool plain = *path && !strpbrk(path, " \t\n\r\"\\'") && *path != '~' && *path != '@';
    if (plain) {
        ui_buf_printf(b, "@%s ", path);
        return;
    }
    ui_buf_puts(b, "@\"");
    for (; *path; path++) {
        const char *e = strchr(escaped, *path);
        if (e) ui_buf_add(b, "\\", 1);
        ui_buf_add(b, e ? &escapes[e - escaped] : path, 1);
    }
    ui_buf_puts(b, "\" ");
}
