/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where rows of the embedding table come from: the names of the strategies. Any thread. */
#ifndef QSF_PLAN_EMBEDDING_H
#define QSF_PLAN_EMBEDDING_H

typedef enum QsfEmbedding {
    QSF_EMBEDDING_AUTO,     /* resident if all weights and the table fit, else lru */
    QSF_EMBEDDING_RESIDENT, /* the whole table is in RAM, also while weights stream */
    QSF_EMBEDDING_LRU,      /* no table of its own: rows are read from the file, and the last ones are kept */
    QSF_EMBEDDING_N
} QsfEmbedding;

/* "auto", "resident", "lru"; parse ignores case and returns QSF_EMBEDDING_N when unknown. */
const char *qsf_embedding_name(QsfEmbedding e);
QsfEmbedding qsf_embedding_parse(const char *word);

#endif
