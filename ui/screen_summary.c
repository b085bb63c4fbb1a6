/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The full screen: the summary of /compact before it takes effect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/exchanges.h"
#include "ui/screen.h"

void ui_screen_ask_summary(UiScreen *s) {
    const UiCompact *c = &s->app->compact;
    char title[80], oldest[40];
    if (!c->ready && s->pager.asks) s->pager.open = false;
    if (!c->ready) s->pager.asks = NULL;
    if (!c->ready || s->pager.asks) return;
    char *text = qsf_clean_dup(ui_buf_str(&c->text), c->text.len, false);
    ui_exchanges_oldest(c->exchanges, oldest, sizeof oldest);
    (void)snprintf(title, sizeof title, "Instead of %s:", oldest);
    ui_pager_show(&s->pager, title, text ? text : "", text ? strlen(text) : 0);
    s->pager.asks = "y takes it, e edits it, n drops it";
    s->again = true;
    free(text);
}

bool ui_screen_summary_key(UiScreen *s, const UiKey *k) {
    UiApp *a = s->app;
    const char c = k->action == UI_DO_EDIT && k->n == 1 ? k->bytes[0] : '\0';
    if (!a->compact.ready || k->action == UI_DO_SUSPEND) return false;
    if (c == '\r' || c == 'y' || c == 'Y')
        ui_compact_take(a);
    else if (c == 'e' || c == 'E')
        ui_compact_edit(a);
    else if (c == 'n' || c == 'N' || c == 'q' || c == '\x04' || k->action == UI_DO_ESCAPE ||
             k->action == UI_DO_STOP)
        ui_compact_drop(a);
    else
        return false;
    ui_screen_ask_summary(s);
    ui_screen_take_draft(s);
    ui_chatview_end(&s->view);
    s->again = true;
    return true;
}
