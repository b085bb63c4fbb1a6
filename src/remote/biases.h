/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The settings logit-bias and ban as fields of a request. Servers know tokens by their ids; texts are looked
 * up first where that is possible. */
#ifndef QSF_REMOTE_BIASES_H
#define QSF_REMOTE_BIASES_H

#include "qsf_setting_items.h"
#include "src/remote/tokens.h"

/* Finds a text of these settings that has to be looked up before they can be sent; false: there is none. */
bool qsf_biases_missing(const QSFSettings *s, QsfRemoteServer server, const QsfTokenTexts *known,
                        QSFSettingItem *out);
/* Appends the value of the field logit_bias for both settings, or for bans alone; false: it would be empty.
 * known NULL: texts that can be looked up count, but nothing is written for them. */
bool qsf_biases_put(const QSFSettings *s, QsfRemoteServer server, const QsfTokenTexts *known, bool bans_only,
                    QsfStrbuf *b);
/* Appends the texts of `ban` as an array (bad_words); false: there are none. */
bool qsf_bans_put(const QSFSettings *s, QsfStrbuf *b);
/* Appends a sentence for each text that is not sent, although it was looked up. */
void qsf_biases_lost(const QSFSettings *s, QsfRemoteServer server, const QsfTokenTexts *known, QsfStrbuf *b);

#endif
