/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The clipboard, by the terminal and by programs. */
#include "ui/clipboard.h"

#include <stdio.h>
#include <stdlib.h>

#include "ui/cliptool.h"
#include "ui/osc.h"
#include "ui/term.h"

/* Whether the sequence was written; only a terminal with the full screen gets it. */
static bool by_terminal(const char *text, size_t len) {
    UiBuf b = { 0 };
    const UiOscWrap wrap = ui_osc_wrap(getenv("TERM"), getenv("TMUX"));
    bool ok = ui_osc52(&b, wrap, text, len) && ui_term_send(b.data, b.len);
    ui_buf_free(&b);
    return ok;
}

bool ui_clipboard_set(const char *text, size_t len, char *how, size_t cap) {
    char err[200], limit[80] = "";
    const bool osc = by_terminal(text, len);
    const char *tool = ui_cliptool_set(text, len, err, sizeof err);
    if (len > UI_OSC52_MAX && ui_term_send("", 0))
        (void)snprintf(limit, sizeof limit, "too large for OSC 52, at most %d bytes", UI_OSC52_MAX);
    const char *none = err[0] ? err : "no wl-copy, xclip, xsel, pbcopy or clip.exe with a display";
    if (osc || tool)
        (void)snprintf(how, cap, "%s%s%s%s%s%s", osc ? "OSC 52" : "", osc && tool ? " and " : "",
                       tool ? tool : "", limit[0] ? " (" : "", limit, limit[0] ? ")" : "");
    else
        (void)snprintf(how, cap, "%s%s%s", limit, limit[0] ? "; " : "", none);
    return osc || tool;
}
