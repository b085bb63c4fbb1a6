/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands that change messages of the conversation: another text, another author. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/swap_roles.h"

/* The message with that number in the context, or NULL. */
static UiItem *message_at(const UiApp *a, uint32_t number) {
    for (size_t i = 0; i < a->chat.n; i++)
        if (a->chat.items[i]->in_context && a->chat.items[i]->number == number) return a->chat.items[i];
    return NULL;
}

/* Why no message of the context has that number. */
static void say_where(UiApp *a, const char *name, uint32_t number) {
    for (size_t i = 0; i < a->chat.n; i++)
        if (a->chat.items[i]->number == number) {
            ui_app_say(a, UI_ERROR, "/%s: message %u is no longer in the context", name, number);
            return;
        }
    if (ui_tree_node(&a->session.tree, number))
        ui_app_say(a, UI_ERROR, "/%s: message %u is on another branch; /goto %u goes to it", name, number,
                   number);
    else
        ui_app_say(a, UI_ERROR, "/%s: there is no message %u; /tree shows all", name, number);
}

/* Reads the number before the text of /edit; without one it is the last message of the user. NULL: that was
 * reported. */
static UiItem *to_edit(UiApp *a, const char *name, const char **args) {
    char *end;
    UiItem *last = ui_transcript_last_of(&a->chat, UI_USER);
    if (**args == '\0') {
        if (!last || !last->in_context) ui_app_say(a, UI_ERROR, "/%s: there is no message to edit", name);
        return last && last->in_context ? last : NULL;
    }
    const unsigned long n = strtoul(*args, &end, 10);
    const bool number = **args >= '0' && **args <= '9' && (*end == '\0' || *end == ' ' || *end == '\n') &&
                        n <= UINT32_MAX;
    UiItem *it = number ? message_at(a, (uint32_t)n) : NULL;
    if (!it && number)
        say_where(a, name, (uint32_t)n);
    else if (!it)
        ui_app_say(a, UI_ERROR, "/%s: '%.*s' is not the number of a message", name,
                   (int)strcspn(*args, " \n"), *args);
    if (!it) return NULL;
    *args = end + strspn(end, " \n");
    return it;
}

/* Removes it and everything after it, in the file too; another message follows, or does not. */
static void drop_from(UiApp *a, const UiItem *it, bool more) {
    uint32_t n = 0;
    for (size_t i = a->chat.n; i > 0; i--) {
        n += a->chat.items[i - 1]->in_context;
        if (a->chat.items[i - 1] == it) break;
    }
    ui_session_because(&a->session, "edit", more);
    ui_app_drop(a, n);
    ui_session_because(&a->session, NULL, false);
}

/* Adds a message without asking the model. */
static bool add_as(UiApp *a, UiKind kind, const char *text) {
    UiItem *it = ui_transcript_add(&a->chat, kind, text, strlen(text));
    if (!it) {
        ui_app_say(a, UI_ERROR, "out of memory: the message was not added");
        return false;
    }
    if (kind == UI_ANSWER) ui_item_close(it);
    ui_app_save_message(a, it, (UiPlace){ 0 });
    ui_app_count_context(a);
    return true;
}

bool ui_cmd_edit(UiApp *a, const char *name, const char *args) {
    if (ui_cmd_busy(a, name)) return false;
    const UiItem *it = to_edit(a, name, &args);
    if (!it) return false;
    const UiKind kind = it->kind;
    if (*args == '\0' && kind != UI_USER) {
        ui_app_say(a, UI_ERROR, "/%s: message %u is an answer: /%s %u TEXT replaces it", name, it->number,
                   name, it->number);
        return false;
    }
    if (*args != '\0') {
        drop_from(a, it, true);
        return add_as(a, kind, args) && (kind != UI_USER || ui_app_ask(a, false));
    }
    char *text = ui_strdup_len(ui_buf_str(&it->raw), it->raw.len);
    const size_t len = it->raw.len;
    if (!text) {
        ui_app_say(a, UI_ERROR, "out of memory: the message cannot be edited");
        return false;
    }
    const uint32_t number = it->number;
    drop_from(a, it, false);
    ui_app_draft(a, text, len);
    free(text);
    if (a->full_screen) /* else it is printed */
        ui_app_say(a, UI_NOTICE, "editing message %u: Enter sends it, /undo brings back what was there",
                   number);
    return true;
}

bool ui_cmd_as(UiApp *a, const char *name, const char *args) {
    const size_t n = strcspn(args, " \n");
    const char *text = args + n + strspn(args + n, " \n");
    const bool user = n == 4 && memcmp(args, "user", n) == 0;
    const bool answer = (n == 9 && memcmp(args, "assistant", n) == 0) ||
                        (n == 5 && memcmp(args, "model", n) == 0);
    if (ui_cmd_busy(a, name)) return false;
    if (n == 6 && memcmp(args, "system", n) == 0 && *text) {
        ui_session_because(&a->session, "as", false);
        ui_app_set_system(a, text);
        ui_session_because(&a->session, NULL, false);
        return true;
    }
    const UiItem *last = ui_transcript_last(&a->chat);
    if (answer && *text && last && last->kind == UI_ANSWER) { /* in the file it would continue that answer */
        ui_app_say(a, UI_ERROR, "/%s: the last message is an answer: /edit %u TEXT replaces it", name,
                   last->number);
        return false;
    }
    if ((user || answer) && *text) return add_as(a, user ? UI_USER : UI_ANSWER, text);
    ui_app_say(a, UI_ERROR, "/%s expects user, assistant or system, and a text", name);
    return false;
}

bool ui_cmd_swap(UiApp *a, const char *name, const char *args) {
    const UiItem *last = ui_transcript_last(&a->chat);
    if (ui_cmd_busy(a, name)) return false;
    if (*args) {
        ui_app_say(a, UI_ERROR, "/%s has no argument; /as user TEXT adds a message", name);
        return false;
    }
    if (!a->model_ready) {
        ui_app_say(a, UI_ERROR, "/%s: no model is loaded", name);
        return false;
    }
    if (last && last->kind == UI_USER) {
        ui_app_say(a, UI_ERROR, "/%s: the last message is yours: /retry answers it", name);
        return false;
    }
    return ui_swap_roles(a);
}
