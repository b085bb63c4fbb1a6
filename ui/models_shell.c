/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models for the shell. */
#include "ui/models_shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_cli.h"
#include "qsf_models.h"
#include "qsf_system.h"
#include "qsf_text.h"
#include "ui/model_picker.h"

#define SECONDS 3.0 /* that a place has to answer */

static UiModelRow row_of(const QSFModelEntry *e, const QSFModelFacts *f) {
    return (UiModelRow){ .field = { e->name, "", f->type, f->arch, f->verdict, e->place, e->path },
                         .bytes = e->bytes };
}

static void print_tabs(const UiModelRow *r) {
    const char *const *f = r->field;
    printf("%s\t%llu\t%s\t%s\t%s\t%s\t%s\n", f[UI_MODEL_NAME], (unsigned long long)r->bytes, f[UI_MODEL_TYPE],
           f[UI_MODEL_ARCH], f[UI_MODEL_VERDICT], f[UI_MODEL_PLACE], f[UI_MODEL_PATH]);
}

static void print_columns(const UiModelRow *r, int name_cells) {
    UiBuf b = { 0 };
    ui_model_row_line(r, name_cells, &b);
    (void)puts(ui_buf_str(&b));
    ui_buf_free(&b);
}

static bool passes(const UiModelRow *r, const char *words) {
    UiBuf b = { 0 };
    ui_model_row_text(r, &b);
    const bool all = ui_words_occur(ui_buf_str(&b), words);
    ui_buf_free(&b);
    return all;
}

/* What is said once, in the place of a model. */
static void say_silent(const QSFModelList *l, bool chat, char *err, size_t cap) {
    char text[120] = "";
    if (l->silent > 0)
        (void)snprintf(text, sizeof text, "%u folder%s not answer", l->silent,
                       l->silent == 1 ? " does" : "s do");
    else if (l->cut)
        (void)snprintf(text, sizeof text, "there are more models than the first %zu", l->n);
    if (*text && chat) printf("\t0\t\t\t%s\t\t\n", text);
    (void)snprintf(err, cap, "%s", text);
}

/* Returns the number of models that have the words. */
static size_t print_all(const UiOptions *o, const QSFModelList *l, const char *words, char *err, size_t cap) {
    static const QSFModelFacts unknown;
    const bool terminal = isatty(STDOUT_FILENO) == 1;
    bool chat = false;
    size_t n = 0;
    const uint64_t freed = qsf_parent_bytes(&chat);
    int cells = 0;
    for (size_t i = 0; i < l->n; i++) cells = ui_model_wider(cells, l->items[i].name);
    say_silent(l, chat && !terminal, err, cap);
    for (size_t i = 0; chat && !terminal && i < l->n; i++) {
        const UiModelRow row = row_of(&l->items[i], &unknown);
        print_tabs(&row);
    }
    for (size_t i = 0; i < l->n && !ferror(stdout); i++) {
        QSFModelFacts facts;
        (void)fflush(stdout);
        qsf_model_facts(&l->items[i], &o->settings, freed, &facts);
        const UiModelRow row = row_of(&l->items[i], &facts);
        if (!passes(&row, words)) continue;
        n++;
        if (terminal)
            print_columns(&row, cells);
        else
            print_tabs(&row);
    }
    return n;
}

int ui_models_print(const UiOptions *o, char *err, size_t cap) {
    QSFModelList list;
    struct stat st;
    const bool folder = o->find && stat(o->find, &st) == 0 && S_ISDIR(st.st_mode);
    err[0] = '\0';
    if (!qsf_models_list(o->dirs, folder ? o->find : NULL, SECONDS, &list)) {
        (void)snprintf(err, cap, "out of memory");
        return QSF_EXIT_RUNTIME;
    }
    const size_t n = print_all(o, &list, folder || !o->find ? "" : o->find, err, cap);
    if (list.n == 0 && !*err)
        (void)snprintf(err, cap, "no models found; qsf-chat %s downloads one",
                       qsf_model_suggested(qsf_memory_available())->name);
    else if (n == 0 && !*err)
        (void)snprintf(err, cap, "no model matches \"%.100s\", and there is no such folder", o->find);
    qsf_models_free(&list);
    return QSF_EXIT_OK;
}
