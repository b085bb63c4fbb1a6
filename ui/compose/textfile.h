/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text files for messages, as UTF-8 whatever their byte order mark says. One thread. */
#ifndef QSF_UI_TEXTFILE_H
#define QSF_UI_TEXTFILE_H

#include "ui/text_limit.h"

typedef enum UiTextFileResult {
    UI_TEXTFILE_OK,
    UI_TEXTFILE_UNREADABLE, /* it does not exist, or not for this user, or reading failed */
    UI_TEXTFILE_DIRECTORY,
    UI_TEXTFILE_ODD, /* a device, a socket, or a pipe where it is not allowed: reading could block */
    UI_TEXTFILE_BINARY,
    UI_TEXTFILE_LONG,
    UI_TEXTFILE_MEMORY
} UiTextFileResult;

typedef struct UiTextFile {
    UiBuf text;       /* empty unless the result is OK */
    QSFTextSize size; /* of the whole text, after OK and LONG */
    bool damaged;     /* QSF_DECODE_DAMAGED applies */
} UiTextFile;

/* Reads path into f, which is zeroed or was used before. limit: maximum size of the text in bytes; of a
 * longer one only the size is taken. pipes: a FIFO may be read, too, to its end. err: why it cannot be used,
 * without its name, unless the result is OK. */
UiTextFileResult ui_textfile_read(UiTextFile *f, const char *path, size_t limit, bool pipes, char *err,
                                  size_t cap);
void ui_textfile_free(UiTextFile *f);

#endif
