/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Constants shared by the reader and the writer of files of distributions; klfile.h describes the layout. */
#ifndef QSF_ENGINE_KLFORMAT_H
#define QSF_ENGINE_KLFORMAT_H

#define QSF_KL_MAGIC   "QSFDISTR"
#define QSF_KL_VERSION 2u
#define QSF_KL_PLAIN   1u        /* the version without checksums */
#define QSF_KL_WINDOW  16777216u /* longest context that --ctx takes */
#define QSF_KL_ABOUT   32u       /* bytes from the magic to the name */

#endif
