/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/kind.h"

#include <string.h>
#include <strings.h>

/* From their sources: ggml-org/llama.cpp tools/server/server-context.cpp and server-http.cpp,
 * vllm-project/vllm vllm/entrypoints/openai/engine/protocol.py and chat_completion/protocol.py,
 * ollama/ollama openai/openai.go; LM Studio: lmstudio-ai/docs 1_developer/3_openai-compat, and lists of
 * models that its users quote. docs/REMOTE.md says which of them were tried. */
#define CONTINUE  ", \"continue_final_message\": true"
#define ANSWER    ", \"continue_final_message\": \"content\""
#define NO_PROMPT ", \"add_generation_prompt\": false"
#define THOUGHT   "reasoning_content"
static const QsfKind kinds[QSF_SERVERS] = {
    [QSF_SERVER_OTHER] = { .name = "OpenAI-compatible server" },
    [QSF_SERVER_LLAMA] = { "llama.cpp", "llamacpp", "llama.cpp", CONTINUE NO_PROMPT, THOUGHT,
                           ANSWER NO_PROMPT, true },
    /* It cuts the prompt at the end of the text, so after the reasoning (huggingface/transformers
     * src/transformers/utils/chat_template_utils.py); its name of that was once another one. */
    [QSF_SERVER_VLLM] = { "vLLM", "vllm", NULL, CONTINUE NO_PROMPT, THOUGHT ",reasoning", CONTINUE NO_PROMPT,
                          false },
    /* Its parsers take a message without a text for one that still thinks (model/parsers). */
    [QSF_SERVER_OLLAMA] = { "Ollama", "library", NULL, "", NULL, NULL, false },
    [QSF_SERVER_LMSTUDIO] = { .name = "LM Studio", .owned_by = "organization_owner" },
    [QSF_SERVER_QSF] = { "qsf-serve", "qsf", "qsf-serve", CONTINUE, THOUGHT, ANSWER, true },
};

const QsfKind *qsf_kind(QsfRemoteServer server) { return &kinds[server < QSF_SERVERS ? server : 0]; }

/* Ollama says who published a model, not who serves it: "library", or the namespace in its name. It is the
 * only one that calls models from Hugging Face this way. */
static bool is_ollama_name(const char *id) {
    return strncmp(id, "hf.co/", 6) == 0 || strncmp(id, "huggingface.co/", 15) == 0;
}

QsfRemoteServer qsf_kind_find(const char *owned_by, const char *id, const char *header) {
    for (int i = 1; i < QSF_SERVERS; i++) {
        const QsfKind *k = &kinds[i];
        if (k->owned_by && strcmp(owned_by, k->owned_by) == 0) return (QsfRemoteServer)i;
        if (k->header && strncasecmp(header, k->header, strlen(k->header)) == 0) return (QsfRemoteServer)i;
    }
    return is_ollama_name(id) ? QSF_SERVER_OLLAMA : QSF_SERVER_OTHER;
}
