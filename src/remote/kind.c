/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/kind.h"

#include <string.h>
#include <strings.h>

/* From their sources: ggml-org/llama.cpp tools/server, vllm-project/vllm vllm/entrypoints/openai,
 * ollama/ollama openai/. */
#define CONTINUE ", \"continue_final_message\": true"
static const QsfKind kinds[QSF_SERVERS] = {
    [QSF_SERVER_OTHER] = { "OpenAI-compatible server", NULL, NULL, NULL },
    [QSF_SERVER_LLAMA] = { "llama.cpp", "llamacpp", "llama.cpp", "" },
    [QSF_SERVER_VLLM] = { "vLLM", "vllm", NULL, CONTINUE ", \"add_generation_prompt\": false" },
    [QSF_SERVER_OLLAMA] = { "Ollama", "library", NULL, "" },
    [QSF_SERVER_QSF] = { "qsf-serve", "qsf", "qsf-serve", CONTINUE },
};

const QsfKind *qsf_kind(QsfRemoteServer server) { return &kinds[server < QSF_SERVERS ? server : 0]; }

QsfRemoteServer qsf_kind_find(const char *owned_by, const char *header) {
    for (int i = 1; i < QSF_SERVERS; i++) {
        const QsfKind *k = &kinds[i];
        if (k->owned_by && strcmp(owned_by, k->owned_by) == 0) return (QsfRemoteServer)i;
        if (k->header && strncasecmp(header, k->header, strlen(k->header)) == 0) return (QsfRemoteServer)i;
    }
    return QSF_SERVER_OTHER;
}
