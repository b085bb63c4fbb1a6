/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands about conversations on disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/path.h"
#include "ui/sessions.h"

static bool name_fits(UiApp *a, const char *name) {
    if (qsf_chatlog_name_ok(name) && strlen(name) < sizeof a->session.name) return true;
    ui_app_say(
        a, UI_ERROR,
        "session '%.60s': a name must not be empty, begin with '.' or contain '/' or control characters",
        name);
    return false;
}

static bool exists(const char *name) {
    size_t n = 0;
    QSFLogInfo *all = qsf_chatlog_list(&n);
    bool found = false;
    for (size_t i = 0; all && i < n; i++) found = found || strcmp(all[i].name, name) == 0;
    free(all);
    return found;
}

bool ui_cmd_new(UiApp *a, const char *name, const char *args) {
    char fresh[sizeof a->session.name];
    if (ui_app_writing(a) && ui_cmd_busy(a, name)) return false;
    if (*args && !name_fits(a, args)) return false;
    if (*args && exists(args)) {
        ui_app_say(a, UI_ERROR, "session %s exists: /load %s resumes it", args, args);
        return false;
    }
    ui_session_name_now(fresh, sizeof fresh);
    ui_app_begin_session(a, *args ? args : fresh);
    if (*args && !a->no_save) a->session.on = true;
    ui_app_clear_messages(a);
    if (a->no_save)
        ui_app_say(a, UI_NOTICE, "new session, not saved");
    else
        ui_app_say(a, UI_NOTICE, "new session%s%s", a->session.on ? " " : "",
                   a->session.on ? a->session.name : "");
    return true;
}

/* Continues in a copy of the existing file. */
static bool save_copy(UiApp *a, const char *to) {
    char err[300] = "";
    UiSession next = { .rewrite = ui_app_rewrite, .arg = a };
    (void)ui_session_repair(&a->session);
    if (!qsf_chatlog_copy(a->session.name, to, err, sizeof err) ||
        !ui_session_attach(&next, to, err, sizeof err)) {
        ui_app_say(a, UI_ERROR, "%s", err);
        return false;
    }
    ui_session_close(&a->session);
    next.tree = a->session.tree; /* the same bytes are in the same places */
    next.lost = a->session.lost || a->session.unsaved;
    next.had_file = true;
    memcpy(next.title, a->session.title, sizeof next.title);
    a->session = next;
    return true;
}

/* Creates the file of a conversation that has none. If it cannot be saved, the conversation continues
 * without. */
static bool save_new(UiApp *a, const char *to) {
    UiSession before = a->session;
    a->session.tree = (UiTree){ 0 };
    a->session.scratch = NULL;
    ui_session_use(&a->session, to);
    if (ui_app_save_all(a, false)) {
        a->session.lost = before.lost; /* nothing of this conversation */
        ui_session_free(&before);
        return true;
    }
    char text[sizeof before.problem];
    memcpy(text, a->session.problem, sizeof text);
    ui_session_free(&a->session);
    ui_session_free(&before);
    a->session = before;
    ui_app_keep(a);
    ui_app_say(a, UI_ERROR, "%s", text);
    return false;
}

static void say_where(UiApp *a) {
    const UiSession *s = &a->session;
    if (!s->on)
        ui_app_say(a, UI_NOTICE, "not saved%s: /save NAME saves the conversation",
                   a->no_save ? " because of --no-save" : "");
    else if (s->failing)
        ui_app_say(a, UI_NOTICE, "not saved: %s; the next message tries again", s->why);
    else
        ui_app_say(a, UI_NOTICE,
                   s->log ? "saved continuously as %s" : "will be saved as %s with the first message",
                   s->name);
}

/* A conversation with a file continues in a copy of that name; for one without, the file is created now. */
bool ui_cmd_save(UiApp *a, const char *name, const char *args) {
    const bool other = !a->session.log || strcmp(args, a->session.name) != 0;
    if (!*args) {
        say_where(a);
        return true;
    }
    if (ui_app_writing(a) && ui_cmd_busy(a, name)) return false;
    if (!name_fits(a, args)) return false;
    if (other && exists(args)) {
        ui_app_say(a, UI_ERROR, "session %s exists: choose another name, or /load %s", args, args);
        return false;
    }
    bool ok = !a->session.log ? save_new(a, args) : !other || save_copy(a, args);
    if (!ok) return false;
    a->session.on = true;
    ui_app_say(a, UI_NOTICE, "saved as %s", a->session.name);
    return true;
}

bool ui_session_load(UiApp *a, const char *name) {
    if (ui_app_writing(a) && ui_cmd_busy(a, "load")) return false;
    if (!name_fits(a, name)) return false;
    if (!exists(name)) {
        ui_app_say(a, UI_ERROR, "there is no session %s; /sessions lists them, /models the models", name);
        return false;
    }
    if (a->session.log && strcmp(name, a->session.name) == 0) {
        ui_app_say(a, UI_NOTICE, "this is session %s", name);
        return true;
    }
    if (!ui_app_resume(a, name)) return false;
    a->session.on = !a->no_save;
    ui_app_say_long(a);
    return true;
}

bool ui_cmd_load(UiApp *a, const char *name, const char *args) {
    if (!*args) {
        ui_app_say(a, UI_ERROR, "/%s needs the name of a session; /sessions lists them", name);
        return false;
    }
    char *path = ui_path_expand(args);
    bool is_model = path && (path[ui_model_stem(path)] || strchr(path, '/'));
    if (is_model) ui_app_load(a, path);
    free(path);
    return is_model || ui_session_load(a, args);
}

bool ui_cmd_rename(UiApp *a, const char *name, const char *args) {
    char title[sizeof a->session.title];
    ui_session_because(&a->session, "rename", false);
    if (*args) ui_app_set_title(a, args);
    ui_session_because(&a->session, NULL, false);
    ui_app_title(a, title, sizeof title);
    if (*args)
        ui_app_say(a, UI_NOTICE, "the title is now: %s", title);
    else if (title[0])
        ui_app_say(a, UI_NOTICE, "the title is: %s; /%s TEXT changes it", title, name);
    else
        ui_app_say(a, UI_NOTICE, "there is no title yet: the first message becomes it, or /%s TEXT", name);
    return true;
}

bool ui_session_delete(UiApp *a, const char *name) {
    char err[300] = "";
    if (!name_fits(a, name)) return false;
    if (a->session.log && strcmp(name, a->session.name) == 0) {
        ui_app_say(a, UI_ERROR, "session %s is open here: /new starts another, and then it can be deleted",
                   name);
        return false;
    }
    if (!exists(name)) {
        ui_app_say(a, UI_ERROR, "there is no session %s; /sessions lists them", name);
        return false;
    }
    if (!qsf_chatlog_delete(name, err, sizeof err)) {
        ui_app_say(a, UI_ERROR, "%s", err);
        return false;
    }
    ui_app_say(a, UI_NOTICE, "deleted session %s", name);
    return true;
}

bool ui_cmd_delete(UiApp *a, const char *name, const char *args) {
    if (*args) return ui_session_delete(a, args);
    ui_app_say(a, UI_ERROR, "/%s needs the name of a session; /sessions lists them (/undo removes messages)",
               name);
    return false;
}

int ui_text_columns(const UiApp *a) {
    struct winsize ws;
    if (a->full_screen) return a->columns > 0 ? a->columns : 80;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0) return ws.ws_col;
    return isatty(STDERR_FILENO) ? 80 : 200;
}

/* The screen shows a list that can be filtered; otherwise it is printed. */
bool ui_cmd_sessions(UiApp *a, const char *name, const char *args) {
    char err[300] = "";
    QSFSearch *search = *args ? qsf_search_new(args, err, sizeof err) : NULL;
    if (*args && !search) {
        ui_app_say(a, UI_ERROR, "/%s %s", name, err);
        return false;
    }
    if (a->full_screen) {
        ui_app_open_view(a, UI_VIEW_SESSIONS, args);
    } else {
        UiBuf b = { 0 };
        ui_sessions_list(&b, a->session.name, search, ui_text_columns(a), a->chat.ascii);
        ui_app_print(a, UI_OUTPUT, b.len ? ui_buf_str(&b) : search ? "nothing found" : "no sessions yet");
        ui_buf_free(&b);
    }
    qsf_search_free(search);
    return true;
}
