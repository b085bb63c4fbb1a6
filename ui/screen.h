/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The full screen: layout, drawing and keys. Uses canvas and input line, not the terminal. One thread. */
#ifndef QSF_UI_SCREEN_H
#define QSF_UI_SCREEN_H

#include "ui/app.h"
#include "ui/chatview.h"
#include "ui/input.h"
#include "ui/keys.h"
#include "ui/model_picker.h"
#include "ui/pager.h"
#include "ui/search.h"
#include "ui/session_picker.h"
#include "ui/tint.h"

/* What the same key does when it is pressed again. */
typedef enum UiArmed {
    UI_ARMED_NOTHING,
    UI_ARMED_LEAVE, /* ^C */
    UI_ARMED_SEND   /* Esc: stops the answer and sends the next queued message */
} UiArmed;

typedef struct UiScreen {
    UiApp *app;
    UiCanvas canvas;
    UiChatView view;
    bool pane; /* the status is shown */
    UiPager pager;
    UiPicker picker;
    UiModelPicker models;
    bool choosing;         /* the start: no model yet, they are looked for */
    double choosing_until; /* then the guide is loaded */
    int body_rows;         /* of the transcript, when last drawn */
    int menu_rows;         /* choices on a page of the menu, when last drawn */
    UiTints tints;
    uint32_t walked; /* 1 + the token that was moved into view, 0 = none */
    UiSearch search;
    bool searching;  /* n and N go to its places, which are marked */
    char flash[160]; /* short message on the rule above the input */
    double flash_until;
    double flash_seconds; /* for so long from its first frame; 0 = it was there */
    bool flash_brief;     /* it says why a key did nothing: removed by the next one */
    bool flash_tokens;    /* it says that tokens are evaluated: removed when they have been */
    bool flash_stops;     /* it announces that something is being stopped: removed when it has */
    UiArmed armed;        /* as long as flash says so */
    bool again;           /* draw everything, not only what changed */
    bool after_x;         /* ^X was pressed: ^E after it opens the editor */
    bool suspend;         /* ^Z was pressed */
    bool editor;          /* the message should be opened in an editor */
} UiScreen;

void ui_screen_init(UiScreen *s, UiApp *app, bool unicode);
void ui_screen_free(UiScreen *s);
/* Shows a message for a few seconds. */
void ui_screen_flash(UiScreen *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Draws a frame of that size on the canvas. */
void ui_screen_draw(UiScreen *s, const UiInputView *in, int rows, int cols);
/* The terminal has the frame: the time of a new short message begins, however long it was drawn. */
void ui_screen_shown(UiScreen *s);
/* Handles a key; keys of the input line are passed to it. */
void ui_screen_key(UiScreen *s, const UiKey *k);
/* Inserts pasted text into the input line unchanged; Enter sends it. */
void ui_screen_paste(UiScreen *s, const char *text, size_t len);
/* screen_summary.c. Shows the summary that waits for a decision, and no longer than it does. */
void ui_screen_ask_summary(UiScreen *s);
/* A key while it is shown: decides, or is for the pager (false). */
bool ui_screen_summary_key(UiScreen *s, const UiKey *k);
/* Puts the text that the app has for the input (ui_app_draft) there. */
void ui_screen_take_draft(UiScreen *s);
/* Bytes that may be added to the input line. */
size_t ui_screen_room(UiScreen *s);
/* Reports that a paste of this size was dropped, because it has more. */
void ui_screen_paste_refused(UiScreen *s, const QSFTextSize *size);
/* Enter in the input line; false: it stays there. */
bool ui_screen_enter(UiScreen *s, const char *text, size_t len);

/* screen_models.c: the list of models. The start without a model: looks for them, and loads the guide when
 * there are none. */
void ui_screen_models_begin(UiScreen *s);
/* Opens the list; the words of the app's view_text filter it at first. */
void ui_screen_models_open(UiScreen *s);
/* A descriptor to wait for, or -1; then, or at choosing_until, ui_screen_models_read takes what there is.
 * Returns whether something is to be drawn. */
int ui_screen_models_fd(const UiScreen *s);
bool ui_screen_models_read(UiScreen *s, double now);
/* Closes the list, if it is open; without a model there is the guide. */
void ui_screen_models_leave(UiScreen *s);
/* Handles a key; false: it is for the rest of the screen. */
bool ui_screen_models_key(UiScreen *s, const UiKey *k);

/* inputview.c. Returns the rows that the input line needs at this width; *point_row, *point_col: the position
 * of its cursor. */
int ui_input_rows(const UiInputView *in, int width, int *point_row, int *point_col);
/* Draws n_rows of them, starting with row `first`, at `row`, and sets the cursor. */
void ui_input_draw(const UiInputView *in, UiCanvas *c, int row, int n_rows, int first, int width);

#endif
