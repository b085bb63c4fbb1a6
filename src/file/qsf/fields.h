/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fixed fields of a QSF header and the equivalent metadata keys (man/qsf-format.5). */
#ifndef QSF_FILE_QSF_FIELDS_H
#define QSF_FILE_QSF_FIELDS_H

#include "src/file/qsf/layout.h"
#include "src/file/source_impl.h"

#define QSF_KEY_CRC_INDEX   "qsf.crc32.index"     /* u32 */
#define QSF_KEY_CRC_EMBED   "qsf.crc32.embedding" /* u32 */
#define QSF_KEY_CRC_FINAL   "qsf.crc32.final"     /* u32 */
#define QSF_KEY_CRC_HEAD100 "qsf.crc32.header100" /* u32 */
#define QSF_KEY_LAYER_BYTES "qsf.layer_bytes"     /* u64 array: sizes of the layers in the file */
#define QSF_KEY_LAYER_HEADS "qsf.layer_tensors"   /* u8 array: tensor headers of the compressed layers */

#define QSF_FIELDS_MAX 16u /* entries that qsf_fields_apply adds at most */

/* Fills the fixed fields (architecture to head dimension, the codes for activation, normalization and
 * positions, theta, tokens) from the metadata of s and, if that has no vocabulary, from the shape of the
 * embedding. Fields that the metadata does not define are 0, QSFF_BY_META or QSFF_NO_TOKEN. Other fields are
 * unchanged. QSF_E_MODEL: a key has the wrong type or is out of range, general.architecture is missing, or
 * there are no layers or more than QSFF_LAYERS_MAX. */
int qsf_fields_of_source(QsfFileHeader *h, const QsfSource *s, QsfErr *err);
/* Compares h with s->meta and adds the fields that only h has; s->meta must have space for QSF_FIELDS_MAX
 * more entries. QSF_E_MODEL names the byte offset and the key that disagree. */
int qsf_fields_apply(const QsfFileHeader *h, QsfSource *s, QsfErr *err);

/* Compares the u32 metadata `key` with the computed checksum `have` of the data at byte offset `at`.
 * QSF_E_MODEL: they differ, or the key is required but missing. */
int qsf_fields_crc(const QsfSource *s, const char *key, uint32_t have, uint64_t at, bool required,
                   QsfErr *err);
/* Computes the sizes of the n layers of an index at index_off, from e and, for those of 4 GiB or more, from
 * qsf.layer_bytes, which must agree on the others too if present. QSF_E_MODEL. */
int qsf_fields_layer_bytes(const QsfSource *s, const QsfIndexEntry *e, uint32_t n, uint64_t index_off,
                           uint64_t *bytes, QsfErr *err);

#endif
