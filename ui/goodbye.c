/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a full-screen chat prints on the normal screen when it ends. */
#include "ui/goodbye.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_item(const UiItem *it) {
    size_t len = 0;
    const char *s = ui_item_shown(it, &len);
    printf("%s: ", it->kind == UI_USER ? "you" : it->label[0] ? it->label : "model");
    (void)fwrite(s, 1, len, stdout);
    if (len == 0 || s[len - 1] != '\n') printf("\n");
}

/* Quoted for a shell if it is more than a word. */
static void print_name(const char *name) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+:,@-";
    char *clean = qsf_clean_dup(name, strlen(name), true);
    bool word = clean && clean[strspn(clean, plain)] == '\0';
    printf("%s", word ? "" : "'");
    for (const char *p = clean; p && *p; p++) {
        if (*p == '\'')
            (void)fputs("'\\''", stdout);
        else
            (void)putchar(*p);
    }
    printf("%s\n", word ? "" : "'");
    free(clean);
}

static void print_session(const UiSession *s) {
    if (!s->saved) {
        printf("\nthe conversation was not saved\n");
        return;
    }
    printf("\n%sresume with: qsf-chat --session ",
           s->unsaved ? "the end of the conversation was not saved; " : "");
    print_name(s->name);
}

void ui_goodbye_print(const UiApp *a) {
    const UiItem *last = ui_transcript_last(&a->chat);
    for (size_t i = a->chat.n; last && last->kind == UI_ANSWER && i > 0; i--) {
        const UiItem *it = a->chat.items[i - 1];
        if (it->in_context && it->kind == UI_USER) {
            print_item(it);
            break;
        }
    }
    if (last) print_item(last);
    if (last && a->session.on && a->session.name[0]) print_session(&a->session);
    (void)fflush(stdout);
}
