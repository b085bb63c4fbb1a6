/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the engine needs of the settings table beyond qsf_engine.h. */
#ifndef QSF_ENGINE_SETTINGS_H
#define QSF_ENGINE_SETTINGS_H

#include "qsf_engine.h"

/* Copies the settings whose row has one of flags (QSF_SETTING_*) from src to dst. A value that the table
 * would refuse leaves dst's. */
void qsf_settings_take(QSFSettings *dst, const QSFSettings *src, unsigned flags);

#endif
