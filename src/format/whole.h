/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small files, and the heads of big ones, whole in memory while a model is opened: charged to QSF_MEM_META as long as
 * they are held. One thread. */
#ifndef QSF_FORMAT_WHOLE_H
#define QSF_FORMAT_WHOLE_H

#include "src/base/json.h"
#include "src/format/source_impl.h"

/* A file that was opened and read; text NULL where there is none. */
typedef struct QsfWhole {
    QsfFile f;
    char *text; /* (f.size), a NUL behind it */
} QsfWhole;

/* The first len bytes of f and a NUL. QSF_E_BUDGET, QSF_E_MODEL when the file is shorter, QSF_E_RUNTIME. */
int qsf_whole_map(QsfSource *s, const QsfFile *f, uint64_t len, char **out, QsfErr *err);
/* len as given to qsf_whole_map; text NULL is allowed. */
void qsf_whole_unmap(QsfSource *s, char *text, uint64_t len);

/* Opens and reads the file at path; w->text NULL with success where nothing stands there. QSF_E_MODEL when it is
 * longer than max bytes, else as above. Close it after success. */
int qsf_whole_open(QsfSource *s, const char *path, uint64_t max, QsfWhole *w, QsfErr *err);
/* Once or more often. */
void qsf_whole_close(QsfSource *s, QsfWhole *w);
/* The file as a JSON tree, which the caller frees; QSF_E_MODEL with path, line and column. */
int qsf_whole_json(const QsfWhole *w, QsfJson **out, QsfErr *err);

#endif
