/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys. The sequences are those of xterm (ctlseqs), rxvt and the Linux console, which cover the terminals
 * in use without asking terminfo, whose entries for them are often missing or wrong. */
#include "ui/keys.h"

#include <string.h>

static const UiBinding bindings[] = {
    { UI_DO_EDIT, "Enter", "send; during an answer: queue (Up: take it back)", "" },
    { UI_DO_NEWLINE, "Alt-Enter ^J \\Enter", "insert a line break",
      "\\e\r \\e\n \n \\e[13;2u \\e[13;3u \\e[27;2;13~" },
    { UI_DO_EDIT, "Tab Shift-Tab",
      "complete commands and values; page through them (Down, Up, Enter: choose; also PgUp, PgDn)", "" },
    { UI_DO_EDIT, "Up Down ^R", "recall earlier messages; search them", "" },
    { UI_DO_EDIT, "Home End ^A ^E ^K ^U", "move, cut in the line; again: in the whole message (^Y, ^_: undo)",
      "" },
    { UI_DO_EDITOR, "^O ^X^E", "write the message in $VISUAL or $EDITOR", "\x0f" },
    { UI_DO_STOP, "^C", "stop the answer and keep it; clear the line (Up, ^_: back); twice: quit", "\x03" },
    { UI_DO_ESCAPE, "Esc", "jump to the end; twice: stop, send the next queued message", "\\e \\e\\e" },
    { UI_DO_EDIT, "^D", "quit (on an empty line)", "" },
    { UI_DO_PAGE_UP, "PgUp PgDn", "scroll one page", "\\e[5~" },
    { UI_DO_PAGE_DOWN, "PgDn", NULL, "\\e[6~" },
    { UI_DO_MESSAGE_UP, "Alt-Up Alt-Down", "go to the message before, to the next one", "\\e[1;3A \\e\\e[A" },
    { UI_DO_MESSAGE_DOWN, "Alt-Down", NULL, "\\e[1;3B \\e\\e[B" },
    { UI_DO_CODE_UP, "Alt-PgUp Alt-PgDn",
      "go to the block of code before, to the next one (also Alt-{ Alt-})", "\\e[5;3~ \\e\\e[5~ \\e{" },
    { UI_DO_CODE_DOWN, "Alt-PgDn", NULL, "\\e[6;3~ \\e\\e[6~ \\e}" },
    { UI_DO_VERSION_PREV, "Alt-Left Alt-Right",
      "show the version before or after of an answer (empty input line)", "\\e[1;3D \\e\\e[D" },
    { UI_DO_VERSION_NEXT, "Alt-Right", NULL, "\\e[1;3C \\e\\e[C" },
    { UI_DO_LINE_UP, "Shift-Up Shift-Down", "scroll one line (also the wheel)", "\\e[1;2A \\e[a" },
    { UI_DO_LINE_DOWN, "Shift-Down", NULL, "\\e[1;2B \\e[b" },
    { UI_DO_TOKEN_BACK, "Alt-, Alt-.", "go through the tokens of the last answer; choose another one",
      "\\e," },
    { UI_DO_TOKEN_NEXT, "Alt-.", NULL, "\\e." },
    { UI_DO_SEARCH, "^F", "find in the conversation; then n and N go to the next places", "\x06" },
    { UI_DO_HOME, "Alt-< Alt->", "first and last line (also ^Home, ^End)", "\\e< \\e[1;5H \\e[7^ \\e[5;5~" },
    { UI_DO_END, "Alt->", NULL, "\\e> \\e[1;5F \\e[8^ \\e[6;5~" },
    { UI_DO_HELP, "F1", "show this help", "\\eOP \\e[11~ \\e[[A \\e[P" },
    { UI_DO_PANE, "F2", "show or hide the status pane", "\\eOQ \\e[12~ \\e[[B \\e[Q" },
    { UI_DO_THINK, "^T", "show or fold the reasoning before answers", "\x14" },
    { UI_DO_ANSWER, "^X", "answer now: end the reasoning of the running answer", "\x18" },
    { UI_DO_BUDGET_LESS, "F3 F4", "give RAM back to the machine; take the RAM with which less streams",
      "\\eOR \\e[13~ \\e[[C \\e[R" },
    { UI_DO_BUDGET_MORE, "F4", NULL, "\\eOS \\e[14~ \\e[[D \\e[S" },
    { UI_DO_KNOB_PREV, "F5 F6", "select the sampling setting marked *", "\\e[15~ \\e[[E" },
    { UI_DO_KNOB_NEXT, "F6", NULL, "\\e[17~" },
    { UI_DO_KNOB_DOWN, "F7 F8", "lower, raise it (also ^Down, ^Up): takes effect on the next token",
      "\\e[18~ \\e[1;5B \\eOb" },
    { UI_DO_KNOB_UP, "F8", NULL, "\\e[19~ \\e[1;5A \\eOa" },
    { UI_DO_REDRAW, "^L", "redraw the screen", "\x0c" },
    { UI_DO_SUSPEND, "^Z", "suspend", "\x1a" },
};

size_t ui_binding_count(void) { return sizeof bindings / sizeof *bindings; }

const UiBinding *ui_binding_at(size_t i) { return i < ui_binding_count() ? &bindings[i] : NULL; }

/* Whether seq[0..n) is the sequence that starts at *p. Moves *p past it and its blank. */
static bool sequence_is(const char **p, const char *seq, size_t n) {
    size_t i = 0;
    bool same = true;
    while (**p && **p != ' ') {
        char c = **p;
        if (c == '\\') {
            c = '\x1b';
            (*p)++; /* over the e */
        }
        same = same && i < n && seq[i] == c;
        i++;
        (*p)++;
    }
    if (**p == ' ') (*p)++;
    return same && i == n && n > 0;
}

static UiAction action_of(const char *seq, size_t n) {
    for (size_t i = 0; i < ui_binding_count(); i++) {
        for (const char *p = bindings[i].sequences; *p;) {
            if (sequence_is(&p, seq, n)) return bindings[i].action;
        }
    }
    return UI_DO_EDIT;
}

/* SGR reports of the mouse: ESC [ < button ; column ; row M, or m where it is released (xterm's ctlseqs). The
 * wheel is button 64 and 65; Shift, Alt and Control add 4, 8 and 16. */
static UiAction mouse_action(const char *bytes, size_t n) {
    unsigned button = 0;
    for (size_t i = 3; i < n && bytes[i] >= '0' && bytes[i] <= '9' && button < 1000; i++)
        button = button * 10 + (unsigned)(bytes[i] - '0');
    switch (bytes[n - 1] == 'M' ? button & ~28u : 0) {
    case 64: return UI_DO_WHEEL_UP;
    case 65: return UI_DO_WHEEL_DOWN;
    default: return UI_DO_MOUSE;
    }
}

static bool is_mouse(const char *bytes, size_t n) {
    return n > 3 && memcmp(bytes, "\x1b[<", 3) == 0 && (bytes[n - 1] == 'M' || bytes[n - 1] == 'm');
}

static void key_of(UiKey *out, const char *bytes, size_t n) {
    *out = (UiKey){ .action = is_mouse(bytes, n) ? mouse_action(bytes, n) : action_of(bytes, n), .n = n };
    memcpy(out->bytes, bytes, n);
}

/* What the bytes after an ESC are so far. */
typedef enum Form { FORM_PARTIAL, FORM_KEY, FORM_OTHER } Form;

static bool is_among(char c, const char *list) { return c != '\0' && strchr(list, c) != NULL; }

/* After ESC O: one letter of those that terminals send, after digits if a modifier is held. The letters of
 * the keypad are only sent in a mode that is never switched on here. */
static Form form_ss3(const char *p, size_t n) {
    if (n == 0 || is_among(p[n - 1], "0123456789;")) return FORM_PARTIAL;
    return is_among(p[n - 1], "ABCDEFHIMPQRSXabcd") ? FORM_KEY : FORM_OTHER;
}

/* After ESC [: parameters and a final byte (ECMA-48), or "$" from rxvt. Without parameters only capital
 * letters are keys. The Linux console sends ESC [ [ A for F1. */
static Form form_csi(const char *p, size_t n) {
    char c = n > 0 ? p[n - 1] : '\0';
    if (n == 0 || (n == 1 && c == '[')) return FORM_PARTIAL;
    if (p[0] == '[') return n == 2 && c >= 'A' && c <= 'E' ? FORM_KEY : FORM_OTHER;
    if (c == '$' && n > 1 && p[0] != '?') return FORM_KEY;
    if (c >= 0x20 && c <= 0x3f) return FORM_PARTIAL;
    if (c < 0x40 || c > 0x7e) return FORM_OTHER;
    return n > 1 || (c >= 'A' && c <= 'Z') || c == '@' ? FORM_KEY : FORM_OTHER;
}

/* An answer of the terminal: ESC ], digits and ";", text, and BEL or ESC \. */
static bool is_reply(const UiKeys *k) {
    return k->replies && k->n > 2 && k->seq[1] == ']' && k->seq[2] >= '0' && k->seq[2] <= '9';
}

static Form form_reply(const UiKeys *k) {
    const char last = k->seq[k->n - 1];
    const bool ends = last == '\a' || (last == '\\' && k->seq[k->n - 2] == '\x1b');
    return ends ? FORM_KEY : (unsigned char)last >= ' ' || last == '\x1b' ? FORM_PARTIAL : FORM_OTHER;
}

static Form form_of(const UiKeys *k) {
    const char *seq = k->seq;
    size_t i = seq[1] == '\x1b' ? 1 : 0; /* Alt with a key that sends a sequence */
    if (is_reply(k)) return form_reply(k);
    if (k->n < i + 2 || (k->replies && k->n == 2 && seq[1] == ']')) return FORM_PARTIAL;
    if (seq[i + 1] == 'O') return form_ss3(seq + i + 2, k->n - i - 2);
    if (seq[i + 1] == '[') return form_csi(seq + i + 2, k->n - i - 2);
    bool key = i == 0 && (action_of(seq, k->n) != UI_DO_EDIT || !k->knows || k->knows(seq, k->n));
    return key ? FORM_KEY : FORM_OTHER;
}

static bool ends_with(const UiBuf *b, const char *end) {
    size_t n = strlen(end);
    return b->len >= n && memcmp(b->data + b->len - n, end, n) == 0;
}

bool ui_keys_are_paste(const UiKeys *k, const char *bytes, size_t n) {
    bool text = false, lines = false;
    if (k->pasting || k->n > 0) return false;
    for (size_t i = 0; i < n; i++) {
        bool line_end = bytes[i] == '\r' || bytes[i] == '\n';
        bool key = ((unsigned char)bytes[i] < 0x20 && !line_end && bytes[i] != '\t') || bytes[i] == 0x7f;
        if (key) return false;
        if (lines && !line_end) return true;
        lines = lines || (line_end && text);
        text = text || !line_end;
    }
    return false;
}

static void begin_paste(UiKeys *k, bool unmarked) {
    k->pasting = true;
    k->unmarked = unmarked;
    ui_text_limit_begin(&k->cut, &k->paste);
}

void ui_keys_begin_paste(UiKeys *k) { begin_paste(k, true); }

static bool paste_done(UiKeys *k, UiKey *out) {
    k->pasting = false;
    if (k->cut.cut) ui_text_limit_count(&k->cut, &k->paste);
    *out = (UiKey){ .paste = true };
    return true;
}

static bool feed_paste(UiKeys *k, char byte, UiKey *out) {
    static const char end[] = "\x1b[201~";
    ui_text_limit_add(&k->cut, &k->paste, &byte, 1);
    if (k->unmarked || byte != '~' || !ends_with(&k->paste, end)) return false;
    k->paste.len -= sizeof end - 1;
    k->paste.data[k->paste.len] = '\0';
    return paste_done(k, out);
}

static bool sequence_done(UiKeys *k, UiKey *out) {
    size_t n = k->n;
    k->n = 0;
    if (n == 6 && memcmp(k->seq, "\x1b[200~", 6) == 0) {
        begin_paste(k, false);
        return false;
    }
    key_of(out, k->seq, n);
    if (k->replies && n > 2 && k->seq[1] == ']') out->action = UI_DO_REPLY;
    return true;
}

/* The ESC was the Esc key; the bytes after it are read again, before those that wait already. */
static bool split(UiKeys *k, UiKey *out) {
    size_t n = k->n - 1;
    if (k->n_rest > sizeof k->rest - n) k->n_rest = sizeof k->rest - n; /* ui_keys_more was not called */
    memmove(k->rest + n, k->rest, k->n_rest);
    memcpy(k->rest, k->seq + 1, n);
    k->n_rest += n;
    k->n = 0;
    key_of(out, k->seq, 1);
    return true;
}

bool ui_keys_feed(UiKeys *k, char byte, UiKey *out) {
    if (k->pasting) return feed_paste(k, byte, out);
    if (k->n == 0 && byte != '\x1b') {
        key_of(out, &byte, 1);
        return true;
    }
    k->seq[k->n++] = byte;
    if (k->n == 1) return false;
    Form form = form_of(k);
    if (form == FORM_OTHER) return split(k, out);
    return form == FORM_KEY || k->n == UI_KEY_BYTES ? sequence_done(k, out) : false;
}

bool ui_keys_more(UiKeys *k, UiKey *out) {
    while (k->n_rest > 0) {
        char byte = k->rest[0];
        memmove(k->rest, k->rest + 1, --k->n_rest);
        if (ui_keys_feed(k, byte, out)) return true;
    }
    return false;
}

int ui_keys_wait_ms(const UiKeys *k) {
    return k->pasting    ? (k->unmarked ? UI_UNMARKED_DELAY_MS : UI_PASTE_DELAY_MS)
           : is_reply(k) ? UI_REPLY_DELAY_MS
           : k->n > 0    ? UI_ESC_DELAY_MS
                         : -1;
}

bool ui_keys_timeout(UiKeys *k, UiKey *out) {
    if (k->pasting) return paste_done(k, out);
    if (is_reply(k)) return sequence_done(k, out); /* the rest of it is lost */
    if (k->n > 1 && action_of(k->seq, k->n) == UI_DO_EDIT) return split(k, out);
    return k->n > 0 && sequence_done(k, out);
}

void ui_keys_free(UiKeys *k) {
    ui_buf_free(&k->paste);
    *k = (UiKeys){ 0 };
}
