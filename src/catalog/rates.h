/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is remembered in $XDG_STATE_HOME/qsf between runs: how fast disks and processors were. */
#ifndef QSF_CATALOG_RATES_H
#define QSF_CATALOG_RATES_H

#include <stdbool.h>
#include <stdint.h>

#define QSF_RATES_MOST 64
#define QSF_RATE_NAME  48

typedef struct QsfRate {
    char name[QSF_RATE_NAME]; /* "disk-2049": the device; "compute-Q4_K-8": weight type and threads */
    double bps;               /* bytes per second */
} QsfRate;

typedef struct QsfRates {
    QsfRate items[QSF_RATES_MOST];
    unsigned n;
} QsfRates;

/* Reads the file; without it, or where it is damaged, there are fewer. */
void qsf_rates_read(QsfRates *r);
/* 0: not known. */
double qsf_rates_get(const QsfRates *r, const char *name);
/* The oldest gives way where there are too many. */
void qsf_rates_put(QsfRates *r, const char *name, double bps);
/* Writes the file; fails silently. */
void qsf_rates_write(const QsfRates *r);

#endif
