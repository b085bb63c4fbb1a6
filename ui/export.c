/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exports the conversation to a file. */
#include "ui/export.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "qsf_savefile.h"
#include "ui/export_internal.h"

#define UI_NAMES_MAX 1000 /* that are tried for a file without a name */
#define UI_STEM_MAX  60

typedef struct UiFormat {
    const char *ending;
    void (*write)(const UiApp *a, UiBuf *b);
} UiFormat;

static const UiFormat formats[] = {
    { "md", ui_export_as_markdown },
    { "txt", ui_export_as_text },
    { "json", ui_export_as_json },
    { "html", ui_export_as_html },
};

static const UiFormat *format(const char *ending) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcasecmp(formats[i].ending, ending) == 0) return &formats[i];
    }
    return NULL;
}

bool ui_export_format(const char *word) { return format(word) != NULL; }

bool ui_export_markdown(const UiApp *a, UiBuf *b) {
    ui_export_as_markdown(a, b);
    return !b->failed;
}

/* 0 or an errno value. */
static int save(const UiBuf *b, const char *path, bool overwrite) {
    return b->failed ? ENOMEM : qsf_savefile_save(path, b->data, b->len, overwrite);
}

static void explain(int why, const char *path, char *err, size_t cap) {
    (void)snprintf(err, cap, "%s: cannot write: %s", path,
                   why == EINVAL ? "not a regular file" : strerror(why));
}

bool ui_export(const UiApp *a, const char *path, bool overwrite, char *err, size_t cap) {
    const char *dot = strrchr(path, '.');
    const UiFormat *f = dot ? format(dot + 1) : NULL;
    if (!f) {
        (void)snprintf(err, cap, "%s: the name must end in .md, .txt, .json or .html", path);
        return false;
    }
    UiBuf b = { 0 };
    f->write(a, &b);
    const int why = save(&b, path, overwrite);
    ui_buf_free(&b);
    if (why == EEXIST)
        (void)snprintf(err, cap, "%s exists: /export! %s replaces it", path, path);
    else if (why)
        explain(why, path, err, cap);
    return why == 0;
}

/* A file name from the title of the conversation: letters and digits, with '-' between words; otherwise
 * the name of the session, or the time. */
static void stem_of(const UiApp *a, char *dst, size_t cap) {
    char title[UI_STEM_MAX];
    size_t n = 0;
    ui_app_title(a, title, sizeof title);
    for (const char *p = title; *p && n + 1 < cap; p++) {
        const unsigned char c = (unsigned char)*p;
        if (isalnum(c) || c >= 0x80 || c == '_')
            dst[n++] = *p;
        else if (n > 0 && dst[n - 1] != '-')
            dst[n++] = '-';
    }
    while (n > 0 && dst[n - 1] == '-') n--;
    dst[n] = '\0';
    if (n == 0) (void)snprintf(dst, cap, "%s", a->session.name);
    if (!dst[0]) ui_session_name_now(dst, cap);
}

bool ui_export_new(const UiApp *a, const char *ending, char *path, size_t path_cap, char *err, size_t cap) {
    char stem[sizeof a->session.name];
    const UiFormat *f = format(ending);
    UiBuf b = { 0 };
    int why = EEXIST;
    stem_of(a, stem, sizeof stem);
    if (f) f->write(a, &b);
    for (unsigned n = 1; f && why == EEXIST && n <= UI_NAMES_MAX; n++) {
        char count[16] = "";
        if (n > 1) (void)snprintf(count, sizeof count, "-%u", n);
        (void)snprintf(path, path_cap, "%s%s.%s", stem, count, f->ending);
        why = save(&b, path, false);
    }
    if (why) explain(why, path, err, cap);
    ui_buf_free(&b);
    return why == 0;
}
