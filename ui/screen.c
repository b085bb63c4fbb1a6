/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The full screen: actions of keys. */
#include "ui/screen.h"
#include "ui/abilities.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/branches.h"
#include "ui/commands.h"
#include "ui/ctx_full.h"
#include "ui/walkview.h"

#define UI_FLASH_SECONDS 3.0
#define UI_WHEEL_LINES   3
#define UI_AGAIN_SECONDS 2.0 /* for the same key again */

void ui_screen_init(UiScreen *s, UiApp *app, bool unicode) {
    *s = (UiScreen){ .app = app, .pane = true, .again = true };
    s->canvas.unicode = unicode;
    s->view.follow = true;
    app->chat.ascii = !unicode;
}

void ui_screen_free(UiScreen *s) {
    ui_canvas_free(&s->canvas);
    ui_chatview_free(&s->view);
    ui_pager_free(&s->pager);
    ui_picker_close(&s->picker);
    ui_model_picker_close(&s->models);
    ui_search_end(&s->search);
    ui_tints_free(&s->tints);
}

void ui_screen_flash(UiScreen *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    (void)qsf_text_vsnprintf(s->flash, sizeof s->flash, fmt, ap);
    va_end(ap);
    s->flash_seconds = UI_FLASH_SECONDS;
    s->flash_until = ui_now() + s->flash_seconds;
    s->flash_stops = s->flash_brief = s->flash_tokens = false;
    s->armed = UI_ARMED_NOTHING;
}

void ui_screen_shown(UiScreen *s) {
    if (s->flash_seconds > 0 && s->flash_until > 0) s->flash_until = ui_now() + s->flash_seconds;
    s->flash_seconds = 0;
}

/* Command output too long for the screen is shown in the pager, not scrolled past. */
static void page_output(UiScreen *s, uint32_t before) {
    UiTranscript *t = &s->app->chat;
    UiItem *last = t->n > 0 ? t->items[t->n - 1] : NULL;
    UiItem *command = t->n > 1 ? t->items[t->n - 2] : NULL;
    size_t len = 0;
    if (!last || last->kind != UI_OUTPUT || last->id <= before || !command || command->kind != UI_COMMAND)
        return;
    const char *text = ui_item_shown(last, &len);
    if (ui_pager_lines(text, len, s->view.width > 2 ? s->view.width - 2 : 1) < s->body_rows) return;
    ui_pager_show(&s->pager, ui_buf_str(&command->raw), text, len);
    ui_transcript_remove(t, last);
    ui_transcript_remove(t, command);
}

static void say_not_taken(UiScreen *s, size_t len) {
    UiApp *a = s->app;
    char advice[80];
    if (ui_app_busy(a) && a->queue.n == UI_QUEUE_MAX) {
        ui_screen_flash(s, "%d messages are queued already: /queue lists them", UI_QUEUE_MAX);
    } else if (ui_app_busy(a) && len <= UI_MESSAGE_MAX && len > ui_app_text_room(a)) {
        ui_screen_flash(s, "not queued: it does not fit in the RAM budget with the messages before it");
    } else if (len > UI_MESSAGE_MAX) {
        ui_screen_flash(s, "not sent: longer than %zu MB", UI_MESSAGE_MAX >> 20);
    } else if (a->not_sent > 0) {
        (void)ui_app_context_advice(a, a->not_sent, true, advice, sizeof advice);
        ui_screen_flash(s, "not sent, %lld tokens too long: %s", (long long)a->not_sent - a->stats.ctx_size,
                        advice);
    }
}

/* Loading and deleting report by themselves. */
static void picker_key(UiScreen *s, const UiKey *k) {
    char name[QSF_LOG_NAME];
    const UiPick pick = ui_picker_key(&s->picker, k, s->body_rows);
    const char *chosen = ui_picker_name(&s->picker);
    (void)snprintf(name, sizeof name, "%s", chosen ? chosen : "");
    if (pick == UI_PICK_LOAD) {
        ui_picker_close(&s->picker);
        (void)ui_session_load(s->app, name);
        ui_chatview_end(&s->view);
    } else if (pick == UI_PICK_DELETE) {
        if (ui_session_delete(s->app, name))
            ui_picker_refresh(&s->picker);
        else
            ui_picker_close(&s->picker); /* the reason is in the transcript */
    }
    s->again = s->again || !s->picker.open || k->action == UI_DO_REDRAW;
}

static void open_picker(UiScreen *s) {
    UiApp *a = s->app;
    const char *search = ui_buf_str(&a->view_text);
    if (!ui_picker_open(&s->picker, a->session.name, search))
        ui_app_say(a, UI_NOTICE, *search ? "nothing found" : "no sessions yet");
}

static void show_match(UiScreen *s) {
    const UiMatch *m = ui_search_at(&s->search);
    if (m) ui_chatview_show(&s->view, &s->app->chat, m->item, m->off);
}

static void begin_search(UiScreen *s) {
    char err[300];
    if (!ui_search_start(&s->search, &s->app->chat, ui_buf_str(&s->app->view_text), err, sizeof err)) {
        ui_screen_flash(s, "%s", err);
        return;
    }
    s->searching = true;
    s->flash_until = 0;
    show_match(s);
}

/* While places are marked: n and N on an empty input line go to others, Esc, Enter and ^C end it. */
static bool search_key(UiScreen *s, const UiKey *k) {
    UiInputView in;
    if (!s->searching) return false;
    ui_input_view(&in);
    const char c = k->action == UI_DO_EDIT && k->n == 1 && in.len == 0 ? k->bytes[0] : '\0';
    if (c == 'n' || c == 'N') {
        ui_search_refresh(&s->search, &s->app->chat);
        (void)ui_search_step(&s->search, c == 'n' ? -1 : 1);
        show_match(s);
        return true;
    }
    const bool ends = k->action == UI_DO_ESCAPE || k->action == UI_DO_STOP || c == '\r';
    if (ends || k->action == UI_DO_EDIT) s->searching = false;
    return ends;
}

/* With text in the input line the cursor moves by a word. */
static void version(UiScreen *s, const UiKey *k, int by) {
    char said[100];
    UiInputView in;
    ui_input_view(&in);
    if (in.len > 0) {
        ui_input_feed(k->bytes, k->n);
        return;
    }
    (void)ui_app_step_version(s->app, by, said, sizeof said);
    ui_screen_flash(s, "%s", said);
    ui_chatview_end(&s->view);
}

static void ask_search(UiScreen *s) {
    UiInputView in;
    ui_input_view(&in);
    if (in.len == 0)
        ui_input_set("/search ", 8);
    else {
        ui_screen_flash(s, "^F searches when the input line is empty");
        s->flash_brief = true;
    }
}

/* What the command asked for. */
static void open_view(UiScreen *s) {
    const UiView view = s->app->view;
    s->app->view = UI_VIEW_NONE;
    switch (view) {
    case UI_VIEW_HELP: ui_pager_help(&s->pager); break;
    case UI_VIEW_SESSIONS: open_picker(s); break;
    case UI_VIEW_SEARCH: begin_search(s); break;
    case UI_VIEW_MODELS: ui_screen_models_open(s); break;
    case UI_VIEW_NONE: break;
    }
}

bool ui_screen_enter(UiScreen *s, const char *text, size_t len) {
    uint32_t before = s->app->chat.next_id;
    if (!ui_app_submit(s->app, text, len)) {
        say_not_taken(s, len);
        return false;
    }
    page_output(s, before);
    if (s->app->view != UI_VIEW_SEARCH) ui_chatview_end(&s->view);
    open_view(s);
    return true;
}

/* A digit alone on an empty input line answers the question at a full context, unless it could be the
 * beginning of a message and something would be lost; with Enter it always does. */
static bool key_choice(UiScreen *s, const UiKey *k) {
    UiInputView in;
    if (k->action != UI_DO_EDIT || k->n != 1 || k->more || !ui_ctx_full_needs_no_enter(k->bytes[0]))
        return false;
    ui_input_view(&in);
    if (in.len > 0 || !ui_ctx_full_key(s->app, k->bytes[0])) return false;
    ui_chatview_end(&s->view);
    return true;
}

/* Leaves the question at a full context; false if there is none. */
static bool leave_question(UiScreen *s) {
    if (!ui_ctx_full_open(s->app)) return false;
    ui_ctx_full_stop(s->app);
    ui_screen_flash(s, "the answer stays as it is");
    return true;
}

/* The next ^C does not leave, the next Esc sends nothing. */
static void disarm(UiScreen *s) {
    if (s->armed) s->flash_until = 0;
    s->armed = UI_ARMED_NOTHING;
}

static bool is_armed(const UiScreen *s, UiArmed what) {
    return s->armed == what && ui_now() < s->flash_until;
}

static void arm(UiScreen *s, UiArmed what, const char *text) {
    ui_screen_flash(s, "%s", text);
    s->flash_seconds = UI_AGAIN_SECONDS;
    s->flash_until = ui_now() + s->flash_seconds;
    s->armed = what;
}

/* Takes message i of the queue into the input, before what is typed there. */
static void take_queued(UiScreen *s, size_t i) {
    size_t len = 0;
    UiInputView in;
    UiBuf both = { 0 };
    char *text = ui_queue_take(&s->app->queue, i, &len);
    ui_input_view(&in);
    ui_buf_add(&both, text, len);
    if (in.len > 0) {
        ui_buf_puts(&both, "\n");
        ui_buf_add(&both, in.text, in.len);
    }
    ui_input_set(ui_buf_str(&both), both.len);
    ui_buf_free(&both);
    free(text);
}

/* What is queued waits: the next message in the input, if that is free, the others above it. */
static void hold_queue(UiScreen *s) {
    UiInputView in;
    ui_input_view(&in);
    s->app->queue.held = s->app->queue.n > 0;
    if (s->app->queue.n > 0 && in.len == 0) take_queued(s, 0);
}

static void key_stop(UiScreen *s) {
    const bool source = ui_source_drop(s->app);
    if (ui_app_stop(s->app) || source) {
        hold_queue(s);
        ui_screen_flash(s, "stopping");
        s->flash_stops = true;
        return;
    }
    if (ui_download_stop(s->app)) return;
    const UiDiscarded discarded = ui_input_discard();
    const bool text = discarded == UI_DISCARDED_TEXT;
    if (discarded == UI_DISCARDED_SEARCH) {
        disarm(s);
        return;
    }
    if (!text && leave_question(s)) return;
    if (!text && is_armed(s, UI_ARMED_LEAVE)) {
        s->app->quit = true;
        return;
    }
    arm(s, UI_ARMED_LEAVE,
        text ? "^C again, or ^D, leaves; Up brings the text back" : "^C again, or ^D, leaves");
}

/* Esc Esc with queued messages, which may arrive as one key; false: there are none, or a model is being
 * loaded first. */
static bool send_next(UiScreen *s, const UiKey *k) {
    UiApp *a = s->app;
    if (a->queue.n == 0 || (ui_app_busy(a) && !ui_app_writing(a))) return false;
    if (k->n < 2 && !is_armed(s, UI_ARMED_SEND)) {
        arm(s, UI_ARMED_SEND,
            ui_app_busy(a) ? "Esc again stops the answer and sends the next message"
                           : "Esc again sends the next message");
        ui_input_escape();
    } else {
        ui_app_send_next(a);
        ui_screen_flash(s, ui_app_busy(a) && a->stopping ? "stopping" : "sent");
        s->flash_stops = a->stopping;
    }
    ui_chatview_end(&s->view);
    return true;
}

static void key_escape(UiScreen *s, const UiKey *k) {
    if (ui_input_menu_leave() || leave_question(s) || send_next(s, k)) return;
    if (!s->view.follow)
        ui_chatview_end(&s->view);
    else
        ui_input_escape();
}

/* Up in an empty input takes the last queued message back. */
static bool key_queued(UiScreen *s, const UiKey *k) {
    UiInputView in;
    const bool up = k->n == 3 && (memcmp(k->bytes, "\x1b[A", 3) == 0 || memcmp(k->bytes, "\x1bOA", 3) == 0);
    ui_input_view(&in);
    if (!up || in.len > 0 || s->app->queue.n == 0) return false;
    take_queued(s, s->app->queue.n - 1);
    return true;
}

void ui_screen_take_draft(UiScreen *s) {
    UiBuf *draft = &s->app->draft;
    UiInputView in;
    if (draft->len == 0) return;
    ui_input_view(&in);
    if (in.len == 0)
        ui_input_set(ui_buf_str(draft), draft->len);
    else
        ui_input_insert(ui_buf_str(draft), draft->len);
    ui_buf_clear(draft);
}

/* Text typed for the input line closes the pager and is not lost. */
static void pager_key(UiScreen *s, const UiKey *k) {
    ui_pager_key(&s->pager, k, s->body_rows);
    s->again = s->again || !s->pager.open || k->action == UI_DO_REDRAW;
    bool text = k->action == UI_DO_EDIT && (unsigned char)k->bytes[0] > ' ' && k->bytes[0] != 0x7f;
    if (!s->pager.open && text && k->bytes[0] != 'q') ui_input_feed(k->bytes, k->n);
}

static void knob(UiScreen *s, int choose, int turn) {
    char value[QSF_SETTING_TEXT];
    if (choose) ui_app_knob_choose(s->app, choose);
    if (turn) ui_app_knob_turn(s->app, turn);
    const QSFSetting *row = qsf_setting_at(s->app->knob);
    if (!row) return;
    qsf_setting_get(&s->app->settings, row, value, sizeof value);
    ui_screen_flash(s, "%s %s", row->name, value);
}

static void budget(UiScreen *s, bool more) {
    char text[sizeof s->flash];
    ui_app_budget_key(s->app, more, text, sizeof text);
    ui_screen_flash(s, "%s", text);
}

static void scroll_page(UiScreen *s, int pages) {
    ui_input_menu_page((size_t)s->menu_rows);
    if (ui_input_menu_turn(pages)) return;
    long step = s->view.height > 2 ? s->view.height - 2 : 1;
    ui_chatview_scroll(&s->view, pages * step);
}

static void jump_code(UiScreen *s, int by) {
    if (!ui_chatview_jump_code(&s->view, &s->app->chat, by))
        ui_screen_flash(s, "no block of code %s", by < 0 ? "above" : "below");
}

size_t ui_screen_room(UiScreen *s) {
    UiInputView in;
    ui_input_view(&in);
    const size_t room = ui_app_text_room(s->app);
    return room > in.whole ? room - in.whole : 1;
}

void ui_screen_paste_refused(UiScreen *s, const QSFTextSize *size) {
    const uint64_t budget = ui_app_budget_for(s->app, size);
    const double mb = (double)size->bytes / (1 << 20), most = (double)ui_screen_room(s) / (1 << 20);
    s->pager.open = false;
    disarm(s);
    if (budget > 0)
        ui_screen_flash(s, "not pasted: %.2f MB, at most %.2f MB fit: /budget %llu makes room", mb, most,
                        (unsigned long long)(budget >> 20));
    else
        ui_screen_flash(s, "not pasted: %.2f MB, at most %.2f MB fit", mb, most);
}

void ui_screen_paste(UiScreen *s, const char *text, size_t len) {
    if (ui_pager_paste(&s->pager, text, len)) return;
    ui_picker_close(&s->picker);
    ui_screen_models_leave(s);
    disarm(s);
    bool about = false;
    if (ui_fold_lines(text, len) < UI_FOLD_FROM)
        ui_input_insert(text, len);
    else
        ui_input_insert_folded(text, len, ui_attach_count(s->app, text, len, &about), about);
}

/* More text would exceed the RAM budget. */
static bool too_long(UiScreen *s, const UiKey *k) {
    UiInputView in;
    const bool text = k->action == UI_DO_NEWLINE ||
                      (k->action == UI_DO_EDIT && (unsigned char)k->bytes[0] >= ' ' && k->bytes[0] != 0x7f);
    ui_input_view(&in);
    if (!text || in.whole < UI_ROOM_ALWAYS || in.whole < ui_app_text_room(s->app)) return false;
    ui_screen_flash(s, "a longer message does not fit in the RAM budget: /budget changes it");
    return true;
}

/* ^X: the reasoning ends; without any, the next key may open the editor. */
static void key_answer(UiScreen *s) {
    s->after_x = !ui_app_answer_now(s->app);
    if (s->after_x && ui_app_writing(s->app) && !ui_has(s->app, UI_NEEDS_CLOSE))
        ui_screen_flash(s, "%s", ui_lacks(UI_NEEDS_CLOSE));
    else if (s->after_x)
        ui_screen_flash(s, "no answer is thinking; ^X ^E opens the editor");
}

/* Does something that lies over the conversation take the key? */
static bool key_on_top(UiScreen *s, const UiKey *k) {
    const bool suspend = k->action == UI_DO_SUSPEND;
    if (ui_screen_summary_key(s, k)) return true;
    if (s->pager.open && !suspend) return pager_key(s, k), true;
    if (s->picker.open && !suspend) return picker_key(s, k), true;
    return ui_screen_models_key(s, k);
}

/* Is it the second key of ^X ^E? */
static bool key_editor(UiScreen *s, const UiKey *k) {
    const bool editor = s->after_x && k->n == 1 && k->bytes[0] == '\x05';
    s->after_x = false;
    s->editor = s->editor || editor;
    return editor;
}

void ui_screen_key(UiScreen *s, const UiKey *k) {
    const UiAction again = s->armed == UI_ARMED_SEND ? UI_DO_ESCAPE : UI_DO_STOP;
    if (k->action != again) disarm(s);
    if (s->flash_brief) s->flash_until = 0;
    if (key_on_top(s, k) || key_editor(s, k) || ui_walk_key(s, k)) return;
    if (search_key(s, k) || key_choice(s, k) || key_queued(s, k) || too_long(s, k)) return;
    switch (k->action) {
    case UI_DO_EDIT:
        ui_input_menu_page((size_t)s->menu_rows);
        ui_input_feed(k->bytes, k->n);
        ui_screen_take_draft(s);
        break;
    case UI_DO_STOP: key_stop(s); break;
    case UI_DO_SUSPEND: s->suspend = true; break;
    case UI_DO_REDRAW: s->again = true; break;
    case UI_DO_ESCAPE: key_escape(s, k); break;
    case UI_DO_NEWLINE: ui_input_insert("\n", 1); break;
    case UI_DO_EDITOR: s->editor = true; break;
    case UI_DO_HELP: ui_pager_help(&s->pager); break;
    case UI_DO_PANE: s->pane = !s->pane; break;
    case UI_DO_THINK: ui_app_think(s->app, !s->app->settings.show_thinking, true); break;
    case UI_DO_ANSWER: key_answer(s); break;
    case UI_DO_KNOB_PREV: knob(s, -1, 0); break;
    case UI_DO_KNOB_NEXT: knob(s, 1, 0); break;
    case UI_DO_KNOB_DOWN: knob(s, 0, -1); break;
    case UI_DO_KNOB_UP: knob(s, 0, 1); break;
    case UI_DO_BUDGET_LESS: budget(s, false); break;
    case UI_DO_BUDGET_MORE: budget(s, true); break;
    case UI_DO_PAGE_UP: scroll_page(s, -1); break;
    case UI_DO_PAGE_DOWN: scroll_page(s, 1); break;
    case UI_DO_LINE_UP: ui_chatview_scroll(&s->view, -1); break;
    case UI_DO_LINE_DOWN: ui_chatview_scroll(&s->view, 1); break;
    case UI_DO_SEARCH: ask_search(s); break;
    case UI_DO_VERSION_PREV: version(s, k, -1); break;
    case UI_DO_VERSION_NEXT: version(s, k, 1); break;
    case UI_DO_TOKEN_BACK:
    case UI_DO_TOKEN_NEXT: break; /* ui_walk_key */
    case UI_DO_CODE_UP: jump_code(s, -1); break;
    case UI_DO_CODE_DOWN: jump_code(s, 1); break;
    case UI_DO_MESSAGE_UP: ui_chatview_jump(&s->view, &s->app->chat, -1); break;
    case UI_DO_MESSAGE_DOWN: ui_chatview_jump(&s->view, &s->app->chat, 1); break;
    case UI_DO_WHEEL_UP: ui_chatview_scroll(&s->view, -UI_WHEEL_LINES); break;
    case UI_DO_WHEEL_DOWN: ui_chatview_scroll(&s->view, UI_WHEEL_LINES); break;
    case UI_DO_MOUSE:
    case UI_DO_REPLY: break;
    case UI_DO_HOME: ui_chatview_home(&s->view); break;
    case UI_DO_END: ui_chatview_end(&s->view); break;
    }
}
