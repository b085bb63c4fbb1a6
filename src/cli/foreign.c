/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options of other programs. Sources: the help of llama.cpp's programs and of ollama run. */
#include "src/cli/foreign.h"

#include <string.h>

typedef struct Foreign {
    const char *names; /* separated by blanks */
    const char *here;
} Foreign;

static const Foreign options[] = {
    { "ngl gpu-layers n-gpu-layers sm split-mode ts tensor-split main-gpu dev device ot override-tensor cmoe "
      "cpu-moe ncmoe n-cpu-moe nkvo no-kv-offload",
      "everything is computed on the CPU: leave the option out; --ram-budget SIZE says how much RAM to use" },
    { "fa flash-attn jinja no-jinja warmup no-warmup numa no-perf perf",
      "there is nothing to choose here: leave the option out" },
    { "mlock mmap no-mmap dio direct-io fit fitt fit-target", "--ram-budget SIZE says how much RAM to use" },
    { "cnv conversation if interactive-first i interactive",
      "qsf-chat MODEL is a conversation: leave the option out" },
    { "no-cnv no-conversation st single-turn p prompt", "qsf-run -p TEXT MODEL answers one prompt" },
    { "hf hfr hf-repo", "write hf:OWNER/NAME in place of MODEL" },
    { "hff hf-file", "write hf:OWNER/NAME:FILE in place of MODEL" },
    { "model-url", "write the URL in place of MODEL" },
    { "ctk cache-type-k", "use --k-type f16, q8, q6, q4 or q2" },
    { "ctv cache-type-v", "use --v-type f16, q8, q6, q4 or q2" },
    { "b ub ubatch-size", "use --batch N" },
    { "tb threads-batch", "--threads N is for prompts and answers" },
    { "s", "use --seed N" },
    { "sys", "use --system TEXT" },
    { "keep", "use --protected-prefix N" },
    { "think no-think nothink rea reasoning-format enable-thinking chat-template-kwargs",
      "use --reasoning on or off" },
    { "hidethinking", "reasoning is folded: leave the option out; --show-thinking shows it" },
    { "reverse-prompt", "use --stop TEXT" },
    { "j", "use --json-schema FILE" },
    { "jf json-schema-file format", "use --json-schema FILE, or any for any JSON" },
    { "grammar-file", "use --grammar FILE" },
    { "chat-template-file", "use --template FILE" },
    { "md model-draft spec-draft-model", "use --draft-model FILE" },
    { "spec-type draft draft-max draft-min", "use --speculate NAME" },
    { "lora-scaled", "use --lora FILE:SCALE" },
    { "control-vector-scaled", "use --control-vector FILE:SCALE" },
    { "mmproj image audio", "image and audio input are not supported: leave the option out" },
    { "host port", "use qsf-serve --listen ADDRESS:PORT" },
    { "api-key", "write the key into a file, and use --api-key-file FILE" },
    { "a alias", "use qsf-serve --model-name NAME" },
    { "np parallel",
      "qsf-serve answers one request at a time: leave the option out; --queue N lets others wait" },
    { "nowordwrap", "use --width 0" },
};

/* Short options with a value, or --help, would take the rest of the word. */
static const char before_short[] = "hf hfr hff fa";

static bool has_word(const char *list, const char *word, size_t len) {
    for (const char *s = list; *s; s += strcspn(s, " "), s += *s == ' ')
        if (strcspn(s, " ") == len && memcmp(s, word, len) == 0) return true;
    return false;
}

const char *qsf_foreign_option(const char *word, size_t len, bool before) {
    if (len == 0 || (before && !has_word(before_short, word, len))) return NULL;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (has_word(options[i].names, word, len)) return options[i].here;
    return NULL;
}
