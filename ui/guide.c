/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The built-in guide: the first screen without a model. */
#include "ui/guide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_models.h"
#include "ui/ctx_full.h"
#include "ui/format.h"

/* Short, so that all fit in a line of 80 columns. */
static const char *const questions[UI_GUIDE_QUESTIONS] = {
    "How do I load a model?",
    "Where are models?",
    "What can you do?",
};

static const char models[] = "  /models               lists the models on this machine\n"
                             "  /model FILE           loads a .gguf file; Tab completes its name\n"
                             "  /model hf:OWNER/NAME  downloads one from huggingface.co\n\n";

static const char intro[] =
    "I am the built-in guide: a very small model that knows this program and nothing else.\n\n"
    "In the status pane (F2), decode is the speed in tokens per second, CTX the context used, RAM "
    "what uses the budget, SAMPLE how tokens are chosen; F5 to F8 change that even while an answer is "
    "written.\n\n";

/* The next step comes last: a small window shows the end. */
static void print_intro(UiApp *a, const char *first, const char *last) {
    const QSFModelSuggestion *s = qsf_model_suggested(qsf_memory_available());
    UiBuf b = { 0 };
    char size[24];
    ui_format_bytes(s->bytes, size, sizeof size);
    ui_buf_printf(&b,
                  "%s%sFor this machine: /model %s (%s); Tab after hf: lists others. "
                  "F1 shows all keys and commands.%s",
                  first, models, s->name, size, last);
    if (!b.failed) ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
}

bool ui_guide_is(const char *path) { return path && strcmp(path, QSF_GUIDE) == 0; }

void ui_guide_open(UiApp *a) {
    char *file = qsf_model_file(QSF_GUIDE);
    if (file && access(file, F_OK) == 0) {
        ui_app_load(a, QSF_GUIDE);
    } else {
        ui_app_say(a, UI_NOTICE, "%s: the built-in guide is not installed; \"make install\" installs it",
                   file ? file : "out of memory");
        if (a->full_screen) print_intro(a, "No model is loaded yet.\n\n", "");
    }
    free(file);
}

static bool screen_has_messages(const UiApp *a) {
    for (size_t i = 0; i < a->chat.n; i++) {
        if (a->chat.items[i]->kind == UI_USER) return true;
    }
    return false;
}

void ui_guide_welcome(UiApp *a) {
    if (ui_guide_offers(a) && a->full_screen && !screen_has_messages(a))
        print_intro(a, intro, "\n\nType a question, or press Tab for one, then Enter.");
}

/* The conversation with the other model keeps its session, so that it can be resumed. */
static void begin_with_guide(UiApp *a) {
    char kept[sizeof a->session.name], fresh[sizeof a->session.name];
    bool saved = a->session.log != NULL;
    (void)snprintf(kept, sizeof kept, "%s", a->session.name);
    ui_session_name_now(fresh, sizeof fresh);
    if (saved || a->kept) ui_app_begin_session(a, fresh);
    ui_ctx_full_over(a);
    ui_transcript_begin(&a->chat); /* after the file was closed, which may have to be written again */
    a->unanswered = 0;
    if (saved && a->unnamed)
        ui_app_say(a, UI_NOTICE,
                   "session %s does not name its model, and the guide does not get its messages: "
                   "load a model with /model FILE, then /load %s",
                   kept, kept);
    else if (saved)
        ui_app_say(a, UI_NOTICE, "new conversation with the guide; /load %s resumes the one above", kept);
    else
        ui_app_say(a, UI_NOTICE,
                   "new conversation with the guide: the messages above are not in its context");
}

static void begin_without_guide(UiApp *a) {
    ui_ctx_full_over(a);
    ui_transcript_begin(&a->chat);
    a->unanswered = 0;
    ui_session_simple(&a->session, QSF_LOG_CLEAR, NULL, NULL, 0);
    ui_app_say(a, UI_NOTICE,
               "new conversation: the messages above were for the guide and are not in the context");
}

void ui_guide_switch(UiApp *a) {
    bool guide = ui_guide_is(a->model_path);
    if (guide != a->guide_talk && (ui_transcript_count(&a->chat, NULL) > 0 || a->unanswered != 0)) {
        if (guide)
            begin_with_guide(a);
        else
            begin_without_guide(a);
    }
    a->guide_talk = guide;
}

void ui_guide_failed(UiApp *a) {
    ui_app_say(a, UI_NOTICE,
               "the built-in guide is damaged or missing: reinstall qsf. "
               "/model FILE loads another model");
}

bool ui_guide_offers(const UiApp *a) {
    return a->model_ready && ui_guide_is(a->model_path) && !ui_app_busy(a) && !ui_transcript_last(&a->chat);
}

const char *ui_guide_question(size_t i) { return questions[i]; }

const char *ui_guide_next(const UiApp *a, const char *line, size_t len) {
    if (!ui_guide_offers(a)) return NULL;
    if (len == 0) return questions[0];
    for (size_t i = 0; i < UI_GUIDE_QUESTIONS; i++) {
        if (strlen(questions[i]) == len && memcmp(questions[i], line, len) == 0)
            return questions[(i + 1) % UI_GUIDE_QUESTIONS];
    }
    return NULL;
}
