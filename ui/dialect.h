/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words of other chats (Ollama, llama.cpp, llamafile, aichat, llm, gptme), and what to do here instead. All
 * texts are static. Any thread. */
#ifndef QSF_UI_DIALECT_H
#define QSF_UI_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

/* Is text[0..len), typed as a message, a command of another chat, such as "exit" or ".set temperature 1"?
 * Returns what to do here, or NULL. */
const char *ui_dialect_message(const char *text, size_t len);
/* What "/word" is here, if this chat has no such command; or NULL. */
const char *ui_dialect_command(const char *word);

/* A word after /set. */
typedef struct UiDialectSetting {
    const char *word;
    const char *setting; /* its name here; NULL: there is none */
    const char *value;   /* that the word means alone; NULL = none */
    bool fixed;          /* also with another value after it */
    const char *hint;    /* without a setting: what to do instead */
} UiDialectSetting;
/* The row of a word, '_' equals '-', or NULL. */
const UiDialectSetting *ui_dialect_setting(const char *word);

#endif
