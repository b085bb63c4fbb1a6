/* SPDX-License-Identifier: GPL-3.0-or-later */
/* retrieval MODEL [NAME=VALUE]... <LINES: does a model still find what the KV cache has evicted around? Each
 * line is a conversation, `prompt TAB answer`, maybe followed by more prompts and answers of one character
 * each. A prompt is evaluated like that of qsf-run, and the most likely next character is compared with the
 * answer; then the right answer and the next prompt are added. Prints a line for each conversation: 1 for
 * each right answer, 0 for each wrong one. NAME=VALUE is any setting of the programs.
 * tools/kvquality/retrieval prints the tables of docs/KV.md with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/timeline.h"
#include "tests/tools/setting.h"

static _Noreturn void fail(const char *why) {
    fprintf(stderr, "retrieval: %s\n", why);
    exit(1);
}

/* The ids of the first len bytes of a conversation. */
static void encode(const QsfRuntime *rt, const char *text, size_t len, QsfIds *out) {
    QsfErr err = { 0 };
    out->n = 0;
    if (qsf_tokenizer_encode(rt->tok, text, len, QSF_TOK_BOS, out, &err) != QSF_OK) fail(err.msg);
}

static int32_t best(const float *logits, uint32_t n) {
    uint32_t at = 0;
    for (uint32_t i = 1; i < n; i++) at = logits[i] > logits[at] ? i : at;
    return (int32_t)at;
}

/* Takes the tabs out of line, so that what is left of an answer is the conversation so far. */
static void converse(QsfTimeline *t, char *line, QsfIds *ids, QsfIds *with) {
    QsfErr err = { 0 };
    size_t len = 0;
    qsf_timeline_cut(t, 0);
    for (char *prompt = strtok(line, "\t\n"); prompt != NULL; prompt = strtok(NULL, "\t\n")) {
        const char *answer = strtok(NULL, "\t\n");
        if (answer == NULL) fail("a prompt without an answer");
        const size_t n = strlen(prompt);
        memmove(line + len, prompt, n);
        len += n;
        encode(t->rt, line, len, ids);
        if (qsf_timeline_prefill(t, ids->data, ids->n, NULL, &err) != QSF_OK) fail(err.msg);
        line[len++] = answer[0];
        encode(t->rt, line, len, with);
        if (with->n != ids->n + 1) fail("a character of an answer is not a token");
        putchar(best(qsf_forward_logits(t->rt->fwd), t->rt->model.hp.n_vocab) == with->data[ids->n] ? '1'
                                                                                                    : '0');
    }
    putchar('\n');
}

int main(int argc, char **argv) {
    QsfErr err = { 0 };
    QsfRuntime rt;
    QsfTimeline t = { 0 };
    QsfIds ids = { 0 }, with = { 0 };
    QsfRuntimeOptions o = { 0 };
    char *line = NULL;
    size_t cap = 0;
    if (argc < 2) fail("usage: retrieval MODEL [NAME=VALUE]...");
    qsf_settings_default(&o.settings);
    o.settings.ram_budget = 0;
    for (int i = 2; i < argc; i++) tool_setting(&o.settings, argv[i], fail);
    if (qsf_runtime_open(&rt, argv[1], &o, &err) != QSF_OK) fail(err.msg);
    if (qsf_timeline_init(&t, &rt, &err) != QSF_OK) fail(err.msg);
    while (getline(&line, &cap, stdin) > 0) converse(&t, line, &ids, &with);
    qsf_timeline_free(&t);
    qsf_runtime_close(&rt);
    qsf_ids_free(&ids);
    qsf_ids_free(&with);
    free(line);
    return 0;
}
