/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The input line: GNU readline in callback mode, fed with the bytes of keys and never touching the terminal
 * itself. One at a time; one thread. */
#ifndef QSF_UI_INPUT_H
#define QSF_UI_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/compose/folds.h"
#include "ui/menu.h"

typedef struct UiInputHooks {
    void *arg;
    /* Enter: false keeps the text in the line. */
    bool (*enter)(void *arg, const char *text, size_t len);
    /* ^D on an empty line. */
    void (*eof)(void *arg);
    /* Tab: the new line, or NULL to complete the word. */
    const char *(*tab)(void *arg, const char *text, size_t len);
    /* ^X^E. */
    void (*editor)(void *arg);
    const struct UiApp *app; /* for completion and no_save; may be NULL */
    UiFolds *folds;          /* long pastes; only with it */
} UiInputHooks;

/* history: path of the history file, or NULL; with no_save of the app it is only read. */
void ui_input_open(const UiInputHooks *hooks, const char *history);
void ui_input_close(void);
/* Bytes of keys that belong to the line. */
void ui_input_feed(const char *bytes, size_t n);
/* The Esc key by itself. */
void ui_input_escape(void);
/* Inserts text at the cursor: a paste, a new line. */
void ui_input_insert(const char *text, size_t len);
/* Inserts a long paste, which the line shows as "[pasted 200 lines, 3,492 tokens]": Enter and the editor get
 * its text, and Tab beside it puts it into the line. tokens, about: as in UiFold. */
void ui_input_insert_folded(const char *text, size_t len, int64_t tokens, bool about);
/* Appends the text of the line, with all pastes. */
void ui_input_text(UiBuf *out);
/* Replaces the whole line. */
void ui_input_set(const char *text, size_t len);
/* The same, as a change that undo takes back. A search is left. */
void ui_input_replace(const char *text, size_t len);
typedef enum UiDiscarded { UI_DISCARDED_NOTHING, UI_DISCARDED_TEXT, UI_DISCARDED_SEARCH } UiDiscarded;
/* Empties the line. Its text is the newest entry of the history until the program ends, not in the file: a
 * secret typed by mistake is not written down; undo brings it back, too. A search is left instead: the line
 * is what it was before. Returns which of them there was. */
UiDiscarded ui_input_discard(void);
/* Adds the text of the line to the history and its file: the program ends before it was sent. */
void ui_input_keep(void);
/* Whether ESC and this byte are a key of the line, such as Alt-B: the function of a UiKeys (keys.h). */
bool ui_input_knows(const char *seq, size_t n);

typedef struct UiInputView {
    const char *prompt; /* "> ", or readline's prompt: "(reverse-i-search)`ab': " */
    const char *text;
    size_t len, point;    /* bytes; where the cursor is */
    const UiFolds *folds; /* of the characters that stand for pastes; NULL = none */
    size_t whole;         /* bytes of the text with the pastes */
    int64_t pasted;       /* tokens of them */
    const UiMenu *menu;   /* completions for this place */
} UiInputView;

void ui_input_view(UiInputView *v);
/* How many completions were shown at once: a page of Tab and the arrows. */
void ui_input_menu_page(size_t rows);
/* PgUp (-1) and PgDn (1): turns its page. false if it was not asked for. */
bool ui_input_menu_turn(int by);
/* Esc: the menu is again what it is while one types. false if it was not asked for. */
bool ui_input_menu_leave(void);

#endif
