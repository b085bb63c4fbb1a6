/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /lora: lists adapters, adds and removes them, and changes their scales. The setting "lora" has them, as a
 * list of FILE[:SCALE] in which \ comes before a comma or another \. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/commands.h"

#define MOST 32 /* more than the setting can have */

/* The items of the list, as they are written there. */
typedef struct Adapters {
    char list[QSF_SETTING_TEXT];
    char *item[MOST];
    size_t n;
} Adapters;

static const QSFSetting *row(void) { return qsf_setting_find("lora"); }

static void read_list(const UiApp *a, Adapters *l) {
    *l = (Adapters){ 0 };
    qsf_setting_get(&a->settings, row(), l->list, sizeof l->list);
    if (strcmp(l->list, "off") == 0) return;
    for (char *p = l->list; l->n < MOST && *p != '\0';) {
        l->item[l->n++] = p;
        while (*p != '\0' && *p != ',') p += *p == '\\' && p[1] != '\0' ? 2 : 1;
        if (*p == ',') *p++ = '\0';
    }
}

static bool is_number(const char *s) {
    char *end;
    if (*s == '\0' || !strchr("+-.0123456789", *s)) return false;
    (void)strtod(s, &end);
    return *end == '\0';
}

/* Where ":SCALE" of an item begins; its end if it has none. */
static char *scale_of(char *item) {
    char *colon = strrchr(item, ':');
    return colon && is_number(colon + 1) ? colon : item + strlen(item);
}

/* ---- the list ---- */

/* The path without what the list escapes. */
static void put_path(UiBuf *b, const char *item, const char *end) {
    for (const char *p = item; p < end; p++) {
        if (*p == '\\' && p + 1 < end) p++;
        ui_buf_add(b, p, 1);
    }
}

static void show(UiApp *a) {
    Adapters l;
    UiBuf b = { 0 };
    read_list(a, &l);
    if (l.n == 0) {
        ui_app_say(a, UI_OUTPUT, "no adapter is in use; /lora add FILE [SCALE] adds one");
        return;
    }
    for (size_t i = 0; i < l.n; i++) {
        const char *end = scale_of(l.item[i]);
        ui_buf_printf(&b, "%s%zu  scale %s  ", i > 0 ? "\n" : "", i + 1, *end ? end + 1 : "1");
        put_path(&b, l.item[i], end);
    }
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
}

/* ---- changes ---- */

static bool set_list(UiApp *a, const char *list) {
    ui_session_because(&a->session, "lora", false); /* each is a separate change for /undo */
    const bool ok = ui_app_set(a, row(), *list ? list : "off", false);
    ui_session_because(&a->session, NULL, false);
    return ok;
}

/* Puts the list together again, with `own` in place of item `at`, which NULL leaves out. */
static bool set_items(UiApp *a, const Adapters *l, size_t at, const char *own) {
    UiBuf b = { 0 };
    for (size_t i = 0; i < l->n; i++) {
        const char *item = i == at ? own : l->item[i];
        if (item) ui_buf_printf(&b, "%s%s", b.len > 0 ? "," : "", item);
    }
    const bool ok = set_list(a, ui_buf_str(&b));
    ui_buf_free(&b);
    return ok;
}

/* FILE [SCALE]: the last word is the scale if it is a number. */
static bool add(UiApp *a, const char *args) {
    const char *blank = strrchr(args, ' ');
    const char *scale = blank && is_number(blank + 1) ? blank + 1 : NULL;
    size_t len = scale ? (size_t)(blank - args) : strlen(args);
    while (len > 0 && args[len - 1] == ' ') len--;
    if (len > 1 && args[0] == '"' && args[len - 1] == '"') {
        args++;
        len -= 2;
    }
    if (len == 0) {
        ui_app_say(a, UI_ERROR, "/lora add: give a file, a GGUF file or a PEFT directory");
        return false;
    }
    UiBuf b = { 0 };
    Adapters l;
    read_list(a, &l);
    for (size_t i = 0; i < l.n; i++) ui_buf_printf(&b, "%s,", l.item[i]);
    for (size_t i = 0; i < len; i++) {
        if (args[i] == ',' || args[i] == '\\') ui_buf_puts(&b, "\\");
        ui_buf_add(&b, args + i, 1);
    }
    if (scale) ui_buf_printf(&b, ":%s", scale);
    const bool ok = set_list(a, ui_buf_str(&b));
    ui_buf_free(&b);
    return ok;
}

/* N, as the list shows it; 0 and a message for others. */
static size_t number(UiApp *a, const Adapters *l, const char *args, char **end) {
    const unsigned long n = strtoul(args, end, 10);
    if (l->n == 0) {
        ui_app_say(a, UI_ERROR, "/lora: no adapter is in use; /lora add FILE [SCALE] adds one");
        return 0;
    }
    if (*end != args && n >= 1 && n <= l->n) return n;
    ui_app_say(a, UI_ERROR, "/lora: '%.20s' is not the number of an adapter; /lora lists them", args);
    return 0;
}

static bool scale(UiApp *a, const char *args) {
    Adapters l;
    char *end;
    read_list(a, &l);
    const size_t n = number(a, &l, args, &end);
    if (n == 0) return false;
    end += strspn(end, " ");
    if (!is_number(end)) {
        ui_app_say(a, UI_ERROR, "/lora scale: '%.20s' is not a number", end);
        return false;
    }
    UiBuf b = { 0 };
    const char *item = l.item[n - 1];
    ui_buf_printf(&b, "%.*s:%s", (int)(scale_of(l.item[n - 1]) - item), item, end);
    const bool ok = set_items(a, &l, n - 1, ui_buf_str(&b));
    ui_buf_free(&b);
    return ok;
}

static bool take_out(UiApp *a, const char *args) {
    Adapters l;
    char *end;
    read_list(a, &l);
    const size_t n = number(a, &l, args, &end);
    if (n > 0 && *end != '\0') {
        ui_app_say(a, UI_ERROR, "/lora remove: takes one number, not '%.40s'", args);
        return false;
    }
    return n > 0 && set_items(a, &l, n - 1, NULL);
}

bool ui_cmd_lora(UiApp *a, const char *name, const char *args) {
    static const struct {
        const char *word;
        bool (*run)(UiApp *a, const char *args);
    } parts[] = { { "add", add }, { "scale", scale }, { "remove", take_out } };
    (void)name;
    if (!*args) {
        show(a);
        return true;
    }
    if (strcmp(args, "off") == 0) return set_list(a, "");
    const size_t len = strcspn(args, " ");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i].word) == len && strncmp(parts[i].word, args, len) == 0)
            return parts[i].run(a, args + len + strspn(args + len, " "));
    ui_app_say(a, UI_ERROR, "/lora: use add FILE [SCALE], scale N X, remove N, or off");
    return false;
}
