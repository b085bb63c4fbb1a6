/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a full-screen chat leaves behind on the normal screen. */
#include "ui/tail.h"

#include <stdio.h>

static void print_item(const UiItem *it) {
    size_t len = 0;
    const char *s = ui_item_shown(it, &len);
    printf("%s: ", it->kind == UI_USER ? "you" : it->label[0] ? it->label : "model");
    (void)fwrite(s, 1, len, stdout);
    if (len == 0 || s[len - 1] != '\n') printf("\n");
}

void ui_tail_print(const UiApp *a) {
    const UiItem *last = ui_transcript_last(&a->chat);
    for (size_t i = a->chat.n; last && last->kind == UI_ANSWER && i > 0; i--) {
        const UiItem *it = a->chat.items[i - 1];
        if (it->in_context && it->kind == UI_USER) {
            print_item(it);
            break;
        }
    }
    if (last) print_item(last);
    if (last && a->session.on && a->session.name[0])
        printf("\nsession %s: qsf-chat --session %s goes on with it\n", a->session.name, a->session.name);
    (void)fflush(stdout);
}
