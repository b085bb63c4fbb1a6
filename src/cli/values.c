/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What may follow an option and a setting: implements qsf_cli_values. Completion in the chat and in shells is
 * made of it. The unit tests check that the settings accept every value, tests/system/completion.sh that the
 * programs do. */
#include <string.h>

#include "qsf_cli.h"

static const struct {
    const char *option, *values;
} known[] = {
    /* settings */
    { "temperature", "0 always the most likely token" },
    { "top-k", "0 off" },
    { "top-p", "1 off" },
    { "min-p", "0 off" },
    { "repeat-penalty", "1 off" },
    { "repeat-last-n", "-1 all tokens" },
    { "presence", "0 off" },
    { "frequency", "0 off" },
    { "dry", "0 off|0.8 the usual strength" },
    { "dry-base", "1.75" },
    { "dry-length", "2" },
    { "dry-breakers", "off sequences go on over everything" },
    { "typical", "1 off|0.9" },
    { "top-n-sigma", "0 off|1" },
    { "xtc", "0 off|0.5" },
    { "xtc-threshold", "0.1" },
    { "dynatemp", "0 off" },
    { "dynatemp-exp", "1" },
    { "mirostat", "0 off|1|2" },
    { "mirostat-tau", "5" },
    { "mirostat-eta", "0.1" },
    { "adaptive-target", "0 off|0.5" },
    { "adaptive-decay", "0.9" },
    { "least", "0 off|0.01" },
    { "samplers", "default" },
    { "logit-bias", "off" },
    { "ban", "off" },
    { "quality", "1 everything is computed|0.9|0.8|0.7|0.6|0.5 about half of the weights for each "
                 "token|0.4|0.3|0.2|0.1" },
    { "expert-top", "0 all that the router chooses|1|2|3|4|5|6" },
    { "expert-drop", "0 none|0.05|0.1|0.2|0.3" },
    { "seed", "random" },
    { "max-tokens", "0 until the end of the answer" },
    { "ignore-eos", "on|off" },
    { "allow-special", "on|off special tokens in messages are plain text" },
    { "ram-budget", "auto what is available|25% of available memory|50%|75%" },
    { "pin", "auto as much as the budget allows|0 stream every layer" },
    { "slots", "auto|1|2|3|4" },
    { "embedding",
      "auto resident if everything fits|resident in RAM|lru in the file, the last rows are kept" },
    { "io", "auto uring where it is available|uring|pread|mmap" },
    { "direct", "auto unless the file is cached|on bypass the page cache|off" },
    { "ctx", "auto" },
    { "batch", "auto" },
    { "threads", "auto the fastest number, measured" },
    { "kv-type", "auto f16 if it fits|f32|f16|q8|q6|q4|q2" },
    { "k-type", "auto as kv-type|f32|f16|q8|q6|q4|q2" },
    { "v-type", "auto as kv-type|f32|f16|q8|q6|q4|q2" },
    { "eviction-policy",
      "none the answer ends when the context is full|sliding the oldest tokens leave|"
      "h2o what gets least attention leaves|snapkv the same, judged by the newest tokens" },
    { "eviction-window", "auto what the context holds" },
    { "protected-prefix", "auto the system prompt|0 nothing" },
    { "memory-threshold-mb", "0 off" },
    { "cpu-mask", "best|ref|sse42|avx2|avxvnni|avx512|avx512vnni|avx512vbmi|neon|dotprod|i8mm" },
    { "no-learn", "on neither read nor write what was used|off" },
    { "show-thinking", "on|off" },
    { "prefill-ahead", "on|off" },
    { "reasoning", "auto the model's default|off|on|low|medium|high" },
    { "reasoning-budget", "-1 no limit|0 no reasoning|512|2048|8192" },
    { "grammar", "off|@file" },
    { "json-schema", "off|any any JSON|@file" },
    { "regex", "off" },
    { "only", "off" },
    { "template", "model the model's own|@template|@file" },
    { "expert-ahead", "auto as long as most are used|on|off" },
    { "speculate", "auto as long as it is faster|off|lookup drafts are what followed the same tokens before"
                   "|nextn drafts are those of the model's own next-token block"
                   "|pinned drafts are those of layers that are pinned whole"
                   "|draft drafts are those of the draft model" },
    { "draft-model", "off|@file" },
    { "trace-experts", "off|@file" },
    { "lora", "off|@file" },
    { "control-vector", "off|@file" },
    /* options of several programs */
    { "model", "guide the built-in guide|@model" },
    { "system-file", "@file" },
    { "file", "@file" },
    { "output", "@file" },
    { "log-file", "@file" },
    { "i2s-flavor", "microsoft|bitnet32f16|split32|qk256" },
    { "config", "@file" },
    { "print-completion", "bash|zsh|fish" },
    { "role", "@role" },
    /* qsf-chat */
    { "session", "@session" },
    { "print-session", "@session" },
    { "connect",
      "http://127.0.0.1:8080 llama.cpp, qsf-serve|http://127.0.0.1:8000 vLLM|http://127.0.0.1:11434 Ollama" },
    { "timeout", "600" },
    { "replay", "@session" },
    { "snapshot-limit", "auto a tenth of the free space, at most 4G" },
    { "script", "@file" },
    { "mouse", "on|off" },
    { "notify", "auto|bell|osc a notification of the terminal|off" },
    { "color", "auto unless NO_COLOR is set|always|never" },
    { "theme",
      "auto dark or light, as the terminal is|dark|light|ansi the eight basic colors|mono without colors" },
    /* qsf-serve, and the first one of qsf-chat, too */
    { "api-key-file", "@file" },
    { "listen", "127.0.0.1:8080|127.0.0.1:0 a free port" },
    { "snapshots", "0 only the last conversation" },
    { "snapshot-dir", "@dir" },
    /* qsf-run */
    { "prompt-cache", "@file" },
    { "render", "@jinja" },
    { "parity", "@dir" },
    { "model-dir", "@dir" },
    { "receipt", "@file" },
    { "logits", "@file" },
    { "svg", "@file" },
    { "bench-text", "@file" },
    { "perplexity", "@file" },
    { "kl-save", "@file" },
    { "kl-base", "@file" },
    { "calibrate-quality", "@file" },
    /* qsf-convert */
    { "rule", "search least squares|minmax ends of the range" },
    { "layout", "x16 rows interleaved by 16|rows" },
    { "experts-by-use", "learned kept of earlier answers|@file" },
    { "experts", "together one read for an expert|stacked as in GGUF" },
    { "compress", "auto|none|lz4|lz4hc|zstd" },
    { "calibration", "@file" },
};

const char *qsf_cli_values(const char *option) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].option, option) == 0) return known[i].values;
    return NULL;
}
