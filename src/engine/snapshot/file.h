/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of a snapshot (docs/FORMATS.md): a header, and segments that are appended. What is read here was
 * checked against the size of the file, but is not trusted beyond that. One thread. */
#ifndef QSF_ENGINE_SNAPSHOT_FILE_H
#define QSF_ENGINE_SNAPSHOT_FILE_H

#include <stdint.h>

#include "src/base/err.h"
#include "src/forward/snapshot.h"

#define QSF_SNAP_VERSION  2u    /* of the format; 1: without next-token blocks */
#define QSF_SNAP_SEGMENTS 256u  /* maximum in one file */
#define QSF_SNAP_TAIL     8u    /* bytes that end a segment */
#define QSF_SNAP_STATES   8u    /* maximum in one segment */
#define QSF_SNAP_NEWEST   4u    /* of its states; and segments whose states are read */
#define QSF_SNAP_APART    1024u /* positions between older states of a segment, at least */

/* What a snapshot must have in common with the model that runs. */
typedef struct QsfSnapKey {
    uint64_t model; /* qsf_model_identity */
    uint64_t state_bytes, row_bytes;
    uint32_t n_caches;
    char values[QSF_FORWARD_VALUES];
} QsfSnapKey;

/* Positions [from, to), of which [from, upto) count: later segments replace the others. */
typedef struct QsfSnapSegment {
    uint32_t from, to, upto;
    uint32_t n_states;
    bool lists;         /* of caches with lists (src/forward/snapshot.h): all of a conversation, from = 0 */
    uint64_t at, bytes; /* in the file, whole */
    uint64_t blocks_at, blocks_bytes; /* the segment of next-token blocks that follows; 0: none */
    uint32_t blocks_states;           /* and its states */
} QsfSnapSegment;

typedef enum QsfSnapKind {
    QSF_SNAP_OURS,    /* may be used, and written */
    QSF_SNAP_CUT,     /* the same, but what follows its last complete segment is cut or damaged */
    QSF_SNAP_MISSING, /* no file, or an empty one */
    QSF_SNAP_ALIEN,   /* not a snapshot, or of a format that this program does not know */
    QSF_SNAP_OTHER,   /* of another model, of other settings or of another version of the program */
    QSF_SNAP_DAMAGED
} QsfSnapKind;

typedef struct QsfSnapFile {
    int fd; /* -1 = none */
    const char *path;
    QsfSnapKey key;
    uint32_t version;                      /* of the format: one that is older is not added to */
    uint64_t size, end;                    /* of the file, and of its last complete segment */
    uint32_t n;                            /* segments */
    QsfSnapSegment seg[QSF_SNAP_SEGMENTS]; /* by ascending, adjacent [from, upto) */
    uint64_t dead;                         /* bytes of replaced segments */
    uint32_t written;                      /* segments in the file, dead ones too */
} QsfSnapFile;

/* Opens path and reads the headers. Except for OURS and CUT nothing is open afterwards, and for all but OURS
 * and MISSING err says why. A file without a complete segment is DAMAGED; one that another program is adding
 * to is not CUT. write: for reading and writing, locked; QSF_SNAP_ALIEN when
 * another program has it locked. */
QsfSnapKind qsf_snapfile_open(QsfSnapFile *s, const char *path, const QsfSnapKey *key, bool write,
                              QsfErr *err);
/* Closes the descriptor, and with it the lock. One that was not opened is allowed. */
void qsf_snapfile_close(QsfSnapFile *s);

/* ---- streams ---- */

/* Reads or writes a file in order, through a buffer that the caller lends. */
typedef struct QsfSnapStream {
    int fd;
    uint64_t at, limit; /* offset of the buffer in the file; reading ends before the offset limit */
    uint8_t *buf;
    size_t cap, len, pos; /* len: bytes in it when reading; pos: next byte */
    uint32_t crc;         /* since qsf_snap_begin */
    bool failed;
    int why; /* errno; 0: the file ended */
} QsfSnapStream;

/* Begins at byte `at` of fd with buf (cap bytes), both of which stay the caller's; limit: where reading
 * ends. */
void qsf_snap_stream(QsfSnapStream *s, int fd, uint64_t at, uint64_t limit, uint8_t *buf, size_t cap);
static inline void qsf_snap_begin(QsfSnapStream *s) { s->crc = 0; }
/* Return false on a failure, and on every call after one. */
bool qsf_snap_read(QsfSnapStream *s, void *dst, size_t n);
bool qsf_snap_write(QsfSnapStream *s, const void *src, size_t n);
/* Reads a checksum and compares it with that of what was read since qsf_snap_begin; writes it. */
bool qsf_snap_read_crc(QsfSnapStream *s);

/* ---- segments ---- */

/* Is there a complete segment at g->at? Then fills in the rest of g. */
bool qsf_snap_find_segment(const QsfSnapFile *s, QsfSnapSegment *g);
/* Is it followed by a complete one of next-token blocks for the same positions? Fills in the
 * numbers of g that describe it, which become 0 otherwise. */
void qsf_snap_find_blocks(const QsfSnapFile *s, QsfSnapSegment *g);

/* The parts of a segment that come before its rows. */
typedef struct QsfSnapTable {
    uint32_t words[QSF_LISTS_WORDS];     /* of lists */
    uint32_t first[QSF_MAX_LAYERS];      /* (n_caches) first rows; of lists as qsf_forward_lists_first */
    uint32_t state_pos[QSF_SNAP_STATES]; /* (n_states) */
} QsfSnapTable;

/* Returns the offset of the first row of a segment. */
uint64_t qsf_snap_rows_at(const QsfSnapKey *key, const QsfSnapSegment *g);
/* Reads the table of a segment, at whose start the stream is, and compares its ids with ids[from, ...): *same
 * of the positions [from, upto) and below n agree. out (to - from), which may be NULL, gets its ids.
 * Afterwards the stream is at the first row. */
bool qsf_snap_read_table(QsfSnapStream *s, const QsfSnapFile *f, const QsfSnapSegment *g, QsfSnapTable *t,
                         const int32_t *ids, uint32_t n, uint32_t *same, int32_t *out);

/* ---- writing ---- */

#define QSF_SNAP_HEADER 320u
/* Writes the header of the current version of the format. */
void qsf_snap_put_header(uint8_t h[QSF_SNAP_HEADER], const QsfSnapKey *key);
/* Returns the bytes of a segment; g->at and g->bytes are not read. */
uint64_t qsf_snap_segment_bytes(const QsfForward *f, const QsfSnapKey *key, const QsfSnapSegment *g,
                                const QsfSnapTable *t);
/* Writes a segment of f's state, and last the mark that makes it valid; ids are those of [0, to). stop may be
 * NULL: asks before each row, or cache, whether to give up. */
bool qsf_snap_write_segment(QsfSnapStream *s, QsfForward *f, const QsfSnapKey *key, const QsfSnapSegment *g,
                            const QsfSnapTable *t, const int32_t *ids, bool (*stop)(void *), void *arg);
/* The head of a segment, and the mark at its end. */
bool qsf_snap_put_head(QsfSnapStream *s, const QsfSnapSegment *g, uint32_t kind);
bool qsf_snap_put_tail(QsfSnapStream *s, const QsfSnapSegment *g, uint32_t kind);
/* Numbers of 4 bytes, and the checksum since qsf_snap_begin. */
bool qsf_snap_read_u32(QsfSnapStream *s, uint32_t *v, size_t n);
bool qsf_snap_write_u32(QsfSnapStream *s, const uint32_t *v, size_t n);
bool qsf_snap_write_crc(QsfSnapStream *s);

/* Kinds of segments: adjacent positions; caches with lists; next-token blocks. */
enum { QSF_SNAP_POSITIONS = 1, QSF_SNAP_LISTS = 2, QSF_SNAP_BLOCKS = 3 };
#define QSF_SNAP_HEAD 40u /* bytes of a segment's head */

#endif
