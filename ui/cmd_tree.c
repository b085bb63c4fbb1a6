/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /branch, /tree and /goto: all messages of the session, and ways between them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/branches.h"
#include "ui/commands.h"
#include "ui/treeview.h"

static bool name_ok(UiApp *a, const char *name, const char *branch) {
    bool digits = *branch != '\0', clean = true;
    for (const char *c = branch; *c; c++) {
        digits = digits && ((*c >= '0' && *c <= '9') || *c == '/');
        clean = clean && (unsigned char)*c > 0x20 && *c != 0x7f;
    }
    if (!digits && clean && strlen(branch) < UI_BRANCH_NAME) return true;
    ui_app_say(a, UI_ERROR, "/%s: the name of a branch is one word of at most %d bytes, and not a number",
               name, UI_BRANCH_NAME - 1);
    return false;
}

/* more: another one follows, and both are one change. */
static void set_branch(UiApp *a, const char *branch, bool more) {
    char was[UI_BRANCH_NAME];
    (void)snprintf(was, sizeof was, "%s", ui_tree_branch(&a->session.tree));
    a->session.was = was;
    ui_session_because(&a->session, "branch", more);
    ui_session_simple(&a->session, QSF_LOG_SET, QSF_LOG_BRANCH, branch, 0);
    ui_session_because(&a->session, NULL, false);
    a->session.was = NULL;
}

static bool is_branch(const UiApp *a, const char *branch) {
    UiSpot tip;
    return ui_tree_find_branch(&a->session.tree, branch, &tip);
}

/* "branch-2", "branch-3" ... */
static void free_name(const UiApp *a, char *dst, size_t cap) {
    for (unsigned n = 2; n < UI_BRANCHES_MAX + 3; n++) {
        (void)snprintf(dst, cap, "branch-%u", n);
        if (!is_branch(a, dst)) return;
    }
}

bool ui_cmd_branch(UiApp *a, const char *name, const char *args) {
    const UiTree *t = &a->session.tree;
    char fresh[UI_BRANCH_NAME], before[UI_BRANCH_NAME];
    if (ui_cmd_busy(a, name)) return false;
    free_name(a, fresh, sizeof fresh);
    if (!*args) args = fresh;
    if (!name_ok(a, name, args)) return false;
    if (is_branch(a, args)) {
        ui_app_say(a, UI_ERROR, "/%s: there is a branch %s; /goto %s goes to it", name, args, args);
        return false;
    }
    if (t->failed || t->n_branches + 2 > UI_BRANCHES_MAX) {
        ui_app_say(a, UI_ERROR, "/%s: there are too many branches", name);
        return false;
    }
    const bool first = !ui_tree_branch(t)[0] && !is_branch(a, "main");
    if (first && strcmp(args, "main") != 0) set_branch(a, "main", true);
    (void)snprintf(before, sizeof before, "%s", ui_tree_branch(t));
    set_branch(a, args, false);
    if (before[0])
        ui_app_say(a, UI_NOTICE, "branch %s begins here; /goto %s goes back to this place", args, before);
    else
        ui_app_say(a, UI_NOTICE, "branch %s begins here", args);
    return true;
}

bool ui_cmd_tree(UiApp *a, const char *name, const char *args) {
    (void)args;
    UiBuf b = { 0 };
    if (ui_cmd_busy(a, name)) return false;
    ui_treeview(&a->session.tree, ui_session_texts(&a->session), ui_text_columns(a), a->chat.ascii, &b);
    ui_app_print(a, UI_OUTPUT, b.len > 0 ? ui_buf_str(&b) : "there are no messages yet");
    ui_buf_free(&b);
    return true;
}

/* "2/3": a version of the last answer that has several. */
static bool go_version(UiApp *a, const char *name, const char *args) {
    char said[100];
    const bool ok = ui_app_go_version(a, (uint32_t)strtoul(args, NULL, 10), said, sizeof said);
    if (ok)
        ui_app_say(a, UI_NOTICE, "%s", said);
    else
        ui_app_say(a, UI_ERROR, "/%s %s: %s", name, args, said);
    return ok;
}

static bool say_place(UiApp *a) {
    const UiTree *t = &a->session.tree;
    const char *branch = ui_tree_branch(t);
    const UiNode *tip = ui_tree_tip(t);
    ui_app_say(a, UI_NOTICE, "at message %u%s%s%s", tip ? tip->id : 0, *branch ? ", branch " : "", branch,
               a->unanswered != 0 ? ": /retry answers it again, a message replaces it" : "");
    return true;
}

bool ui_cmd_goto(UiApp *a, const char *name, const char *args) {
    const UiTree *t = &a->session.tree;
    char *end;
    const unsigned long id = strtoul(args, &end, 10);
    const bool number = *args >= '0' && *args <= '9';
    UiSpot to = { 0 };
    if (!*args) return ui_cmd_tree(a, name, args);
    if (ui_cmd_busy(a, name)) return false;
    if (number && *end == '/') return go_version(a, name, args);
    if (number && *end == '\0' && id <= UINT32_MAX && ui_tree_node(t, (uint32_t)id)) {
        const char *known = ui_tree_branch_at(t, (uint32_t)id);
        to = ui_tree_spot_at(t, (uint32_t)id);
        if (ui_tree_spot(t).id != id && (!known || !ui_tree_find_branch(t, known, &to))) to.branch = 0;
    } else if (number || !ui_tree_find_branch(t, args, &to)) {
        ui_app_say(a, UI_ERROR,
                   "/%s: '%.60s' is not the number of a message or the name of a branch; /tree "
                   "shows them",
                   name, args);
        return false;
    }
    return ui_app_go(a, to, "goto") && say_place(a);
}
