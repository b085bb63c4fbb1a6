/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The items of settings that are lists: logit-bias, ban, dry-breakers. For programs that pass them on in
 * another form. Not installed. Any thread. */
#ifndef QSF_SETTING_ITEMS_H
#define QSF_SETTING_ITEMS_H

#include "qsf_settings.h"

#define QSF_SETTING_ITEM 256u /* bytes of the text of an item, with its NUL */

typedef struct QSFSettingItem {
    int32_t id;                  /* of a token; -1 = by its text */
    char text[QSF_SETTING_ITEM]; /* (len), and a NUL */
    size_t len;
    float bias; /* -INFINITY = never */
} QSFSettingItem;

/* Reads the item at *at, a place in a value of qsf_setting_get, and moves *at past it. valued: items have
 * "=X", otherwise their bias is -INFINITY. false: there is none. */
bool qsf_setting_item(const char **at, bool valued, QSFSettingItem *out);

/* Writes a text as an item, with its escapes, to dst, without "=X". false: it is empty, or does not fit. */
bool qsf_setting_item_text(const char *text, size_t len, char *dst, size_t cap);

#endif
