/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/server_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_engine.h"
#include "qsf_remote.h"

/* "connect:URL#": what the names of its models begin with. */
static int prefix_length(const UiApp *a) { return (int)strcspn(a->model_path, "#"); }

static bool is_connected(const UiApp *a) {
    UiEngineModel m;
    return a->model_path && qsf_connect_is(a->model_path) && a->engine.model(a->engine.self, 0, &m);
}

static void add(const UiApp *a, UiModelScan *scan, const UiEngineModel *m) {
    UiBuf b = { 0 };
    char verdict[64];
    (void)snprintf(verdict, sizeof verdict, m->loaded ? "in use" : "on the server");
    if (m->ctx > 0)
        (void)snprintf(verdict, sizeof verdict, "%s, context %u", m->loaded ? "in use" : "there", m->ctx);
    ui_buf_printf(&b, "%s\t%llu\t\t\t%s\tserver\t%.*s#%s", m->name, (unsigned long long)m->bytes, verdict,
                  prefix_length(a), a->model_path, m->name);
    if (!b.failed) ui_model_scan_add(scan, ui_buf_str(&b), b.len);
    ui_buf_free(&b);
}

bool ui_server_models_list(const UiApp *a, UiModelScan *scan) {
    UiEngineModel m;
    if (!is_connected(a)) return false;
    ui_model_scan_stop(scan);
    for (size_t i = 0; a->engine.model(a->engine.self, i, &m); i++) add(a, scan, &m);
    return true;
}

/* Returns how many have this in their names, the last of them in *out. The same name is found alone. */
static size_t find(const UiApp *a, const char *name, UiEngineModel *out) {
    UiEngineModel m;
    size_t found = 0;
    for (size_t i = 0; a->engine.model(a->engine.self, i, &m); i++) {
        const bool same = strcmp(m.name, name) == 0;
        if (!same && !strcasestr(m.name, name)) continue;
        *out = m;
        if (same) return 1;
        found++;
    }
    return found;
}

static void load_of_url(UiApp *a, const char *name) {
    char err[400] = "";
    char *url = ui_strdup_len(name + strlen("connect:"), strcspn(name + strlen("connect:"), "#"));
    char *path = url ? qsf_connect_path(url, qsf_connect_model(name), err, sizeof err) : NULL;
    if (path)
        ui_app_load(a, path);
    else
        ui_app_say(a, UI_ERROR, "%s", *err ? err : "out of memory");
    free(url);
    free(path);
}

/* The name always means the built-in guide, whatever the models of the server are called. */
static bool is_guide(UiApp *a, const char *name) {
    UiEngineModel m;
    if (strcmp(name, QSF_GUIDE) != 0) return false;
    if (find(a, name, &m) == 1 && strcmp(m.name, name) == 0)
        ui_app_say(a, UI_NOTICE, "guide is the built-in guide; /model #guide is the model of the server");
    return true;
}

bool ui_server_models_load(UiApp *a, const char *name) {
    UiEngineModel m = { 0 };
    UiBuf b = { 0 };
    if (qsf_connect_is(name)) {
        load_of_url(a, name);
        return true;
    }
    const bool marked = name[0] == '#';
    if (marked && !is_connected(a) && access(name, F_OK) != 0) {
        ui_app_say(a, UI_ERROR, "%.80s: no server answers; /model connect:URL%.80s connects to one", name,
                   name);
        return true;
    }
    if (!is_connected(a) || is_guide(a, name)) return false;
    const size_t found = find(a, name + marked, &m);
    if (found > 1)
        ui_app_say(a, UI_ERROR,
                   "%.80s: %zu models of the server have this in their names; /models lists them", name,
                   found);
    else if (found == 0 && marked)
        ui_app_say(a, UI_ERROR, "%.80s: the server has no such model; /models lists them", name);
    if (found != 1) return found > 1 || marked;
    ui_buf_printf(&b, "%.*s#%s", prefix_length(a), a->model_path, m.name);
    if (!b.failed) ui_app_load(a, ui_buf_str(&b));
    ui_buf_free(&b);
    return true;
}
