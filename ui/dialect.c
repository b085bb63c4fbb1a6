/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words of other chats. Sources: the help of ollama/ollama, ggml-org/llama.cpp, mozilla-ai/llamafile,
 * sigoden/aichat, simonw/llm and gptme/gptme. */
#include "ui/dialect.h"

#include <stdbool.h>
#include <string.h>

/* ---- messages ---- */

#define UNSENT  "nothing was sent (between \"\"\" it is text)"
#define LEAVES  "/quit or ^D leaves; " UNSENT
#define HELPS   "/help or F1 shows keys and commands; " UNSENT
#define SLASHES "; commands begin with a slash here, and " UNSENT
#define WORDS   3 /* a longer line is a message */

typedef struct Word {
    const char *word, *here;
} Word;

/* Alone on a line. */
static const Word alone[] = {
    { "exit", LEAVES },
    { "quit", LEAVES },
    { ":q", LEAVES },
    { ":q!", LEAVES },
    { ":wq", LEAVES },
    { ":quit", LEAVES },
    { ":exit", LEAVES },
    { ".exit", LEAVES },
    { ".quit", LEAVES },
    { ".help", HELPS },
    { ":help", HELPS },
    { ":h", HELPS },
    { "!multi", "Alt-Enter begins a new line; " UNSENT },
    { "!edit", "^O opens the editor; " UNSENT },
};

/* Before a few other words. */
static const Word first[] = {
    { ".set", "/set NAME VALUE changes a setting" SLASHES },
    { ".info", "/show shows settings and the model" SLASHES },
    { ".model", "/model NAME loads a model" SLASHES },
    { ".role", "/role NAME takes a role" SLASHES },
    { ".prompt", "/system TEXT sets the system prompt" SLASHES },
    { ".session", "/load NAME resumes a session, /sessions lists them" SLASHES },
    { ".empty", "/clear clears the conversation" SLASHES },
    { ".file", "/read FILE attaches a file" SLASHES },
    { ".copy", "/copy copies the last answer" SLASHES },
    { ".regenerate", "/retry answers again" SLASHES },
    { ".continue", "/continue continues the last answer" SLASHES },
    { "!fragment", "/read FILE attaches a file" SLASHES },
};

static unsigned words_of(const char *text, size_t len) {
    unsigned n = 0;
    for (size_t i = 0; i < len; i++) n += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
    return n;
}

static const char *find(const Word *list, size_t n, const char *word, size_t len) {
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i].word) == len && memcmp(list[i].word, word, len) == 0) return list[i].here;
    return NULL;
}

const char *ui_dialect_message(const char *text, size_t len) {
    const char *here = find(alone, sizeof alone / sizeof *alone, text, len);
    if (here || memchr(text, '\n', len) || words_of(text, len) > WORDS) return here;
    const char *blank = memchr(text, ' ', len);
    return find(first, sizeof first / sizeof *first, text, blank ? (size_t)(blank - text) : len);
}

/* ---- commands ---- */

static const Word commands[] = {
    { "reset", "/clear starts an empty conversation" },
    { "restart", "/new starts a new session" },
    { "yank", "/copy copies the last answer, /copy code K a block of code" },
    { "clip", "/copy copies the last answer, /copy code K a block of code" },
    { "history", "Up and ^R bring earlier messages back; /sessions lists conversations" },
    { "chats", "/sessions lists conversations" },
    { "resume", "/load NAME resumes a session" },
    { "open", "/model FILE loads a model, /load NAME resumes a session" },
    { "cancel", "^C stops the answer" },
    { "abort", "^C stops the answer" },
    { "more", "/continue continues the last answer" },
    { "config", "/set shows and changes settings" },
    { "settings", "/set shows and changes settings" },
    { "parameters", "/set shows and changes settings" },
    { "params", "/set shows and changes settings" },
    { "prompt", "/system TEXT sets the system prompt, /show prompt shows the whole prompt" },
    { "keys", "/help or F1 shows keys and commands" },
    { "commands", "/help or F1 shows keys and commands" },
    { "multiline", "Alt-Enter begins a new line; \"\"\" ... \"\"\" holds several" },
    { "paste", "paste as usual: several lines stay one message" },
    { "image", "image input is not supported" },
    { "audio", "audio input is not supported" },
    { "video", "video input is not supported" },
    { "ps", "/show model and /mem show what is loaded" },
    { "push", "/branch begins a branch, /goto goes back to another" },
    { "fork", "/branch begins a branch, /goto goes back to another" },
    { "pop", "/goto NAME goes back to a branch, /undo takes back the last change" },
    { "rewind", "/undo takes back the last change, /goto N goes to a message of /tree" },
    { "stack", "/tree shows the messages and branches" },
    { "dump", "/export FILE writes the conversation, /show prompt the exact prompt" },
    { "manual", "/as ROLE TEXT adds a message without asking the model" },
    { "impersonate", "/as ROLE TEXT adds a message without asking the model" },
    { "glob", "/read PATTERN attaches text files" },
    { "upload", "/read FILE attaches a text file" },
    { "pull", "/model hf:OWNER/NAME downloads a model and loads it" },
    { "download", "/model hf:OWNER/NAME downloads a model and loads it" },
    { "switch", "/load NAME resumes a session, /model FILE loads a model" },
    { "summarize", "/compact replaces the oldest exchanges by a summary" },
    { "compress", "/compact replaces the oldest exchanges by a summary" },
    { "preset", "/role NAME takes a role, /role save NAME makes one" },
    { "profile", "/role NAME takes a role, /role save NAME makes one" },
    { "personas", "/role lists the roles, /game the games" },
    { "nothink", "/reasoning off switches reasoning off" },
    { "verbose", "/stats shows the speed of the last answer, F2 the status pane" },
    { "speed", "/stats shows the speed of the last answer, F2 the status pane" },
    { "format", "/json-schema any makes answers JSON" },
    { "wrap", "--width N limits the columns of the text" },
    { "version", "qsf-chat --version prints it" },
};

const char *ui_dialect_command(const char *word) {
    return find(commands, sizeof commands / sizeof *commands, word, strlen(word));
}

/* ---- settings ---- */

static const UiDialectSetting settings[] = {
    { "num-ctx", "ctx", NULL, false, NULL },
    { "num-predict", "max-tokens", NULL, false, NULL },
    { "num-thread", "threads", NULL, false, NULL },
    { "num-batch", "batch", NULL, false, NULL },
    { "num-gpu", NULL, NULL, false, "models run on the CPU; there is nothing to set" },
    { "num-keep", "protected-prefix", NULL, false, NULL },
    { "think", "reasoning", "on", false, NULL },
    { "nothink", "reasoning", "off", true, NULL },
    { "format", "json-schema", "any", true, NULL },
    { "noformat", "json-schema", "off", true, NULL },
    { "verbose", NULL, NULL, false, "/stats shows the speed of the last answer, F2 the status pane" },
    { "quiet", NULL, NULL, false, "F2 hides the status pane" },
    { "history", NULL, NULL, false, "messages are kept, unless the program starts with --no-save" },
    { "nohistory", NULL, NULL, false, "--no-save keeps no session and no history" },
    { "wordwrap", NULL, NULL, false, "--width N limits the columns of the text" },
    { "nowordwrap", NULL, NULL, false, "--width 0 uses the whole window" },
};

static bool same_name(const char *a, const char *b) {
    while (*a && (*a == *b || (*a == '-' && *b == '_'))) a++, b++;
    return *a == *b;
}

const UiDialectSetting *ui_dialect_setting(const char *word) {
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (same_name(settings[i].word, word)) return &settings[i];
    return NULL;
}
