/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text files that go with a message. */
#include "ui/compose/attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "qsf_decode.h"
#include "qsf_text.h"
#include "ui/app.h"
#include "ui/compose/mention.h"
#include "ui/format.h"

#define SAMPLE ((size_t)32 << 10) /* bytes of a text whose tokens are counted for an estimate */

/* ---- what is known of files ---- */

static int64_t count_message(UiApp *a, const char *text, size_t len) {
    QSFMessage m = { .role = "user", .content = text, .len = len };
    QSFRequest r = { .messages = &m, .n_messages = 1 };
    return a->engine.count(a->engine.self, &r);
}

int64_t ui_attach_count(UiApp *a, const char *text, size_t len, bool *about) {
    const size_t part = len < SAMPLE ? len : SAMPLE;
    const int64_t none = a->model_ready ? count_message(a, "", 0) : -1;
    const int64_t all = none >= 0 ? count_message(a, text, part) : -1;
    *about = part < len;
    if (all < none || none < 0) return -1;
    return *about ? (int64_t)((double)(all - none) * (double)len / (double)part) : all - none;
}

static void note_problem(UiAttached *f, const char *why) {
    static const char *const hints[] = {
        [UI_TEXTFILE_DIRECTORY] =
            ": /read with a pattern attaches its files, and @@ begins a word that is text",
        [UI_TEXTFILE_BINARY] = " and cannot be attached",
    };
    const bool complete = strchr(why, ':') != NULL; /* it says what to do */
    const char *hint = f->result < sizeof hints / sizeof *hints && !complete ? hints[f->result] : NULL;
    (void)snprintf(f->problem, sizeof f->problem, "%.100s%s", why, hint ? hint : "");
}

static void look_at(UiApp *a, UiAttached *f) {
    UiTextFile text = { 0 };
    char why[120];
    f->result = ui_textfile_read(&text, f->path, ui_app_text_room(a), false, why, sizeof why);
    f->bytes = text.size.bytes;
    f->tokens = -1;
    f->problem[0] = '\0';
    if (f->result == UI_TEXTFILE_OK)
        f->tokens = ui_attach_count(a, ui_buf_str(&text.text), text.text.len, &f->about);
    else if (f->result != UI_TEXTFILE_LONG)
        note_problem(f, why);
    f->model = a->model_ready;
    ui_textfile_free(&text);
}

static void forget(UiAttached *f) {
    free(f->path);
    free(f->counted_by);
    *f = (UiAttached){ 0 };
}

/* Moves it to the end; a new one replaces that which was not used for the longest time. */
static UiAttached *find(UiAttach *at, const char *path) {
    size_t i = 0;
    while (i < at->n_known && strcmp(at->known[i].path, path) != 0) i++;
    UiAttached f = { 0 };
    if (i < at->n_known) {
        f = at->known[i];
    } else {
        f.path = ui_strdup_len(path, strlen(path));
        if (!f.path) return NULL;
        if (at->n_known < UI_ATTACH_MAX)
            at->n_known++;
        else
            forget(&at->known[i = 0]);
        if (i > at->n_known - 1) i = at->n_known - 1;
    }
    memmove(at->known + i, at->known + i + 1, (at->n_known - 1 - i) * sizeof f);
    at->known[at->n_known - 1] = f;
    return &at->known[at->n_known - 1];
}

static bool same(const char *x, const char *y) { return x == y || (x && y && strcmp(x, y) == 0); }

/* NULL without memory. */
static const UiAttached *known_file(UiApp *a, const char *path) {
    struct stat st = { 0 };
    UiAttached *f = find(&a->attach, path);
    if (!f) return NULL;
    (void)stat(path, &st);
    const int64_t changed = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    const bool is = f->counted_by && f->changed == changed && f->inode == st.st_ino &&
                    f->file_bytes == (uint64_t)st.st_size && f->model == a->model_ready &&
                    same(f->counted_by, a->model_path ? a->model_path : "");
    /* How much space there is changes without the file. */
    if (is && (f->result == UI_TEXTFILE_OK || f->result == UI_TEXTFILE_LONG))
        f->result = f->bytes > ui_app_text_room(a) ? UI_TEXTFILE_LONG : UI_TEXTFILE_OK;
    if (is) return f;
    f->changed = changed;
    f->inode = st.st_ino;
    f->file_bytes = (uint64_t)st.st_size;
    free(f->counted_by);
    f->counted_by = ui_strdup_len(a->model_path ? a->model_path : "",
                                  a->model_path ? strlen(a->model_path) : 0);
    look_at(a, f);
    return f;
}

static bool is_command(const char *text, size_t len) {
    return len > 0 && text[0] == '/' && !(len > 1 && text[1] == '/') && !memchr(text, '\n', len);
}

void ui_attach_look(UiApp *a, const char *text, size_t len) {
    a->attach.n = 0;
    if (!is_command(text, len)) ui_attach_look_more(a, text, len);
}

/* Adds a path to a list, once. */
static void add_path(char **paths, size_t *n, const char *path) {
    size_t i = 0;
    while (i < *n && strcmp(paths[i], path) != 0) i++;
    if (i == *n && i < UI_ATTACH_MAX && (paths[i] = ui_strdup_len(path, strlen(path))) != NULL) (*n)++;
}

void ui_attach_look_more(UiApp *a, const char *text, size_t len) {
    UiAttach *at = &a->attach;
    UiMentions m = { .text = text, .len = len };
    char *paths[UI_ATTACH_MAX];
    size_t n = 0;
    for (size_t i = 0; i < at->n; i++) add_path(paths, &n, at->listed[i]->path);
    while (n < UI_ATTACH_MAX && ui_mention_next(&m)) add_path(paths, &n, m.path);
    /* Finding one moves others: all first, then their places. */
    for (size_t i = 0; i < n; i++) (void)known_file(a, paths[i]);
    at->n = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < at->n_known; k++)
            if (strcmp(at->known[k].path, paths[i]) == 0) at->listed[at->n++] = &at->known[k];
        free(paths[i]);
    }
}

int64_t ui_attach_tokens(const UiApp *a) {
    int64_t sum = 0;
    for (size_t i = 0; i < a->attach.n; i++) {
        const int64_t tokens = a->attach.listed[i]->tokens;
        sum += tokens > 0 ? tokens : 0;
    }
    return sum;
}

void ui_attach_describe(const UiAttached *f, char *dst, size_t cap) {
    char size[32], tokens[32], name[160];
    char *clean = qsf_clean_dup(f->path, strlen(f->path), true);
    (void)snprintf(name, sizeof name, "%.150s", clean ? clean : "");
    free(clean);
    if (f->problem[0]) {
        (void)snprintf(dst, cap, "%s: %s", name, f->problem);
        return;
    }
    ui_format_file(f->bytes, size, sizeof size);
    ui_format_count(f->tokens, tokens, sizeof tokens);
    if (f->result == UI_TEXTFILE_LONG)
        (void)snprintf(dst, cap, "%s %s: longer than the RAM budget has space for", name, size);
    else if (f->tokens >= 0)
        (void)snprintf(dst, cap, "%s %s, %s%s tokens", name, size, f->about ? "about " : "", tokens);
    else
        (void)snprintf(dst, cap, "%s %s", name, size);
}

void ui_attach_sum(const UiAttach *at, char *dst, size_t cap) {
    char size[32], tokens[32];
    uint64_t bytes = 0;
    int64_t sum = 0;
    size_t n = 0;
    bool about = false, known = true;
    for (size_t i = 0; i < at->n; i++) {
        const UiAttached *f = at->listed[i];
        if (f->result != UI_TEXTFILE_OK) continue;
        n++;
        bytes += f->bytes;
        sum += f->tokens > 0 ? f->tokens : 0;
        about = about || f->about;
        known = known && f->tokens >= 0;
    }
    ui_format_file(bytes, size, sizeof size);
    ui_format_count(sum, tokens, sizeof tokens);
    if (known)
        (void)qsf_text_snprintf(dst, cap, "%zu files: %s, %s%s tokens", n, size, about ? "about " : "",
                                tokens);
    else
        (void)qsf_text_snprintf(dst, cap, "%zu files: %s", n, size);
}

/* ---- sending ---- */

/* A fence that no line of the text ends. */
static int fence_length(const UiBuf *text) {
    int longest = 2, run = 0;
    for (size_t i = 0; i < text->len; i++) {
        run = text->data[i] == '`' ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    return longest + 1;
}

/* The extension of a file name, if it can name a language. */
static const char *language(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    const size_t n = dot ? strlen(dot + 1) : 0;
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#";
    return n > 0 && n <= 10 && strspn(dot + 1, letters) == n ? dot + 1 : "";
}

static void add_block(UiBuf *out, const char *path, const UiBuf *text) {
    const int fence = fence_length(text);
    static const char marks[] = "````````````````````````````````";
    const int n = fence < (int)sizeof marks - 1 ? fence : (int)sizeof marks - 1;
    char *name = qsf_clean_dup(path, strlen(path), false); /* it may have a newline */
    for (char *p = name; p && (p = strchr(p, '\n')) != NULL;) *p = ' ';
    ui_buf_printf(out, "\n\n%s:\n%.*s%s\n", name ? name : "", n, marks, language(path));
    free(name);
    ui_buf_add(out, ui_buf_str(text), text->len);
    ui_buf_printf(out, "%s%.*s", text->len > 0 && text->data[text->len - 1] == '\n' ? "" : "\n", n, marks);
}

static bool say_file(UiApp *a, const UiAttached *f) {
    char text[400];
    ui_attach_describe(f, text, sizeof text);
    ui_app_say(a, UI_ERROR, "%s", text);
    return false;
}

/* Appends a file; room: bytes that the whole message may have. */
static bool add_file(UiApp *a, const UiAttached *known, size_t room, UiBuf *out) {
    UiTextFile f = { 0 };
    char why[120];
    if (known->problem[0]) return say_file(a, known);
    const size_t left = room > out->len + 1 ? room - out->len : 1;
    const UiTextFileResult got = ui_textfile_read(&f, known->path, left, false, why, sizeof why);
    if (got == UI_TEXTFILE_LONG) {
        f.size.bytes += out->len;
        ui_app_say_too_long(a, &f.size, room);
    } else if (got != UI_TEXTFILE_OK) {
        ui_app_say(a, UI_ERROR, "%s: %s", known->path, why);
    } else {
        if (f.damaged) ui_app_say(a, UI_NOTICE, "%s: %s", known->path, QSF_DECODE_DAMAGED);
        add_block(out, known->path, &f.text);
    }
    ui_textfile_free(&f);
    return got == UI_TEXTFILE_OK;
}

static bool out_of_memory(UiApp *a) {
    ui_app_say(a, UI_ERROR, "out of memory: the message was not sent");
    return false;
}

/* typed: of the files, those of which notice was given now. */
static void say_sum(UiApp *a, size_t typed, UiBuf *shown) {
    char text[100];
    ui_attach_sum(&a->attach, text, sizeof text);
    ui_buf_printf(shown, "\n[%s]", text);
    if (!a->full_screen && typed > 0) ui_app_say(a, UI_NOTICE, "%s", text);
}

/* It may be meant as text, so it is sent. */
static void say_missing(UiApp *a, const char *text, size_t len) {
    UiMentions m = { .text = text, .len = len };
    while (ui_mention_next(&m)) {
    }
    if (m.missing_len > 0 && m.missing_len <= 200)
        ui_app_say(a, UI_NOTICE, "there is no file %.*s: it is sent as text", (int)m.missing_len,
                   text + m.missing);
}

bool ui_attach_expand(UiApp *a, const char *text, size_t len, size_t typed, UiBuf *out, UiBuf *shown) {
    const UiAttach *at = &a->attach;
    ui_attach_look(a, text, typed);
    const size_t n_typed = at->n;
    ui_attach_look(a, text, len);
    if (!is_command(text, typed)) say_missing(a, text, typed);
    if (at->n == 0) return true;
    const size_t room = ui_app_text_room(a);
    bool ok = ui_buf_add(out, text, len) && ui_buf_add(shown, text, len);
    for (size_t i = 0; ok && i < at->n; i++) {
        char line[400];
        ok = add_file(a, at->listed[i], room, out);
        ui_attach_describe(at->listed[i], line, sizeof line);
        ui_buf_printf(shown, "\n[attached: %s]", line);
        if (ok && !a->full_screen && i < n_typed) ui_app_say(a, UI_NOTICE, "attached: %s", line);
    }
    if (ok && at->n > 1) say_sum(a, n_typed, shown);
    return ok && (out->failed || shown->failed) ? out_of_memory(a) : ok;
}

/* Is this line of a message, "PATH:", one of add_block? The file is mentioned before it, maybe as ~/FILE. */
static bool is_head(const char *text, const char *line, size_t n) {
    if (n < 2 || line[n - 1] != ':') return false;
    const char *name = line + n - 1;
    while (name > line && name[-1] != '/') name--;
    const size_t before = (size_t)(line - text), len = (size_t)(line + n - 1 - name);
    return len > 0 && memchr(text, '@', before) && memmem(text, before, name, len);
}

size_t ui_attach_typed(const char *text, size_t len) {
    const char *end = text + len;
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), "\n\n", 2)) != NULL; at++) {
        const char *line = at + 2, *nl = memchr(line, '\n', (size_t)(end - line));
        if (nl && end - nl > 3 && memcmp(nl + 1, "```", 3) == 0 && is_head(text, line, (size_t)(nl - line)))
            return (size_t)(at - text);
    }
    return len;
}

bool ui_attach_peek(UiApp *a, const char *text, size_t len, UiBuf *out) {
    const UiAttach *at = &a->attach;
    char why[120];
    ui_attach_look(a, text, len);
    if (at->n == 0) return true;
    const size_t room = ui_app_text_room(a);
    bool ok = ui_buf_add(out, text, len);
    for (size_t i = 0; ok && i < at->n; i++) {
        UiTextFile f = { 0 };
        ok = at->listed[i]->result == UI_TEXTFILE_OK && room > out->len &&
             ui_textfile_read(&f, at->listed[i]->path, room - out->len, false, why, sizeof why) ==
                 UI_TEXTFILE_OK;
        if (ok) add_block(out, at->listed[i]->path, &f.text);
        ui_textfile_free(&f);
    }
    return ok;
}

bool ui_attach_add(UiApp *a, const char *path) {
    const UiAttached *f = known_file(a, path);
    if (!f) return out_of_memory(a);
    if (f->problem[0]) return say_file(a, f);
    ui_mention_add(a->full_screen ? &a->draft : &a->attach.next, path);
    return true;
}

void ui_attach_announce(UiApp *a) {
    UiAttach *at = &a->attach;
    char text[400];
    if (a->full_screen || !a->model_ready || at->told >= at->next.len) return;
    ui_attach_look(a, ui_buf_str(&at->next) + at->told, at->next.len - at->told);
    for (size_t i = 0; i < at->n; i++) {
        const bool fits = at->listed[i]->result == UI_TEXTFILE_OK;
        ui_attach_describe(at->listed[i], text, sizeof text);
        ui_app_say(a, UI_NOTICE, "%s%s", fits ? "attached to the next message: " : "", text);
    }
    at->told = at->next.len;
    ui_attach_look(a, ui_buf_str(&at->next), at->next.len);
    size_t n = 0;
    for (size_t i = 0; i < at->n; i++) n += at->listed[i]->result == UI_TEXTFILE_OK;
    ui_attach_sum(at, text, sizeof text);
    if (n > 1) ui_app_say(a, UI_NOTICE, "%s", text);
}

void ui_attach_free(UiAttach *at) {
    for (size_t i = 0; i < at->n_known; i++) forget(&at->known[i]);
    ui_buf_free(&at->next);
    *at = (UiAttach){ 0 };
}
