/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/plan/embedding.h"

#include <strings.h>

static const char *const embedding_names[QSF_EMBEDDING_N] = { "auto", "resident", "lru" };

const char *qsf_embedding_name(QsfEmbedding e) {
    return (unsigned)e < QSF_EMBEDDING_N ? embedding_names[e] : "unknown";
}

QsfEmbedding qsf_embedding_parse(const char *word) {
    unsigned i = 0;
    while (i < QSF_EMBEDDING_N && strcasecmp(embedding_names[i], word) != 0) i++;
    return (QsfEmbedding)i;
}
