/* SPDX-License-Identifier: GPL-3.0-or-later */
/* There is no mmap of files in a web browser. */
#include "src/stream/io_impl.h"

static int open_none(QsfIo *io, const char **why) {
    (void)io;
    *why = "not in a web browser";
    return QSF_E_RUNTIME;
}

static void close_none(QsfIo *io) { (void)io; }

const QsfIoBackend qsf_io_mmap = {
    .kind = QSF_IO_MMAP, .name = "mmap", .open = open_none, .close = close_none
};
