/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers and dates as C writes them, whatever the locale of the user. */
#ifndef QSF_BASE_PLAIN_LOCALE_H
#define QSF_BASE_PLAIN_LOCALE_H

typedef struct QsfPlainLocale {
    void *plain, *before; /* locale_t; plain is NULL without memory: then nothing has changed */
} QsfPlainLocale;

/* Gives the calling thread the locale "C", until qsf_plain_locale_end. */
void qsf_plain_locale_begin(QsfPlainLocale *l);
/* Gives it the locale back that it had. Same thread. */
void qsf_plain_locale_end(const QsfPlainLocale *l);

#endif
