/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a block of 64 positions lies, and opening it to floats. */
#ifndef QSF_KERNELS_GENERIC_KV_VIEW_H
#define QSF_KERNELS_GENERIC_KV_VIEW_H

/* A block, and how the queries read it: opened to floats, or, for a single group of queries, the tiles as
 * they are. A whole block may then be read. */
typedef struct kv_view {
    kv_tiles k, v; /* as they are */
    size_t tiles;  /* that hold positions of the set */
    int all, open_k, open_v;
} kv_view;

/* Places in memory of the tiles of positions [b, b + 64). */
static void kv_places(const kv_work *w, size_t b, size_t at[KV_TILES]) {
    const size_t t = b / QK_KV_TILE, slot = kv_slot(w->a, t);
    for (size_t i = 0; i < KV_TILES; i++) at[i] = w->a->list ? kv_tile_at(w->a, t + i) : slot + i;
}

/* Tiles of a block; first is tile 0, of `bytes`. */
static kv_tiles kv_tiles_at(const void *first, size_t bytes, size_t row, const size_t at[KV_TILES]) {
    kv_tiles x = { .row = row };
    for (size_t i = 0; i < KV_TILES; i++) x.at[i] = (const char *)first + at[i] * bytes;
    return x;
}

/* Tiles of the block that was opened to floats, tile_floats each. */
static kv_tiles kv_opened(const kv_work *w, size_t tile_floats, size_t row, const char *ahead) {
    kv_tiles x = { .row = row, .ahead = ahead };
    for (size_t i = 0; i < KV_TILES; i++) x.at[i] = (const char *)(w->block + i * tile_floats);
    return x;
}

static kv_view kv_view_at(const kv_work *w, size_t b, size_t tiles) {
    const char *v = w->a->v ? w->a->v : w->a->k;
    const size_t next = (b + QK_KV_BLOCK) / QK_KV_TILE,
                 after = w->a->list ? kv_tile_at(w->a, next) : kv_slot(w->a, next);
    const char *next_k = (const char *)w->a->k + after * w->k_bytes, *next_v = v + after * w->v_bytes;
    kv_view x = { .tiles = tiles };
    size_t at[KV_TILES];
    kv_places(w, b, at);
    x.k = kv_tiles_at(w->a->k, w->k_bytes, w->dim * w->fk->elem, at);
    x.v = kv_tiles_at(v, w->v_bytes, w->dim * w->fv->elem, at);
    /* Blocks of floats may be too large for three of them in the first cache. */
    const int packed = w->fk->scores && w->fv->rows;
    x.k.ahead = packed || !w->a->v ? next_k : x.v.at[0];
    x.v.ahead = packed ? next_v : next_k;
    x.all = kv_sees_all(w, b);
    const int open = w->n > KV_GROUP || w->pad != w->dim || tiles < KV_TILES;
    x.open_k = open && !w->fk->scores;
    x.open_v = open && !w->fv->rows;
    return x;
}

/* Dimensions of a tile as rows: n of them, a multiple of 16, from (n, 16) at tile. */
static void kv_turn_tile(float *rows, const float *tile, size_t n) {
    for (size_t d = 0; d < n; d += V)
        for (size_t p = 0; p < QK_KV_TILE; p += V) {
            vf x[V];
            for (size_t i = 0; i < V; i++) x[i] = v_load(tile + (d + i) * QK_KV_TILE + p);
            v_transpose(x);
            for (size_t i = 0; i < V; i++) v_store(rows + (p + i) * QK_KV_PANEL + d, x[i]);
        }
}

/* Where V is K: rows of dimensions [from, from + n) of a block, n a multiple of 16. k: the
 * block, opened or as it is. */
static kv_tiles kv_turn(const kv_work *w, const kv_view *x, const kv_tiles *k, size_t from, size_t n) {
    float *rows = w->turn + QK_KV_PANEL * QK_KV_TILE;
    const size_t have = from + n > w->dim ? w->dim - from : n;
    kv_tiles v = { .row = QK_KV_PANEL * sizeof *rows, .ahead = (const char *)rows };
    for (size_t t = 0; t < KV_TILES; t++) {
        float *to = rows + t * QK_KV_TILE * QK_KV_PANEL;
        v.at[t] = (const char *)to;
        if (t >= x->tiles) continue;
        if (x->open_k && have == n) {
            kv_turn_tile(to, (const float *)(const void *)k->at[t] + from * QK_KV_TILE, n);
            continue;
        }
        w->fk->open_k(w->turn, x->k.at[t], from, have);
        memset(w->turn + have * QK_KV_TILE, 0, (n - have) * QK_KV_TILE * sizeof *rows);
        kv_turn_tile(to, w->turn, n);
    }
    return v;
}

/* Opens K of a block to floats, one tile after the other. */
static kv_tiles kv_open_k(const kv_work *w, const kv_view *x) {
    const size_t tile = QK_KV_TILE * w->dim;
    for (size_t t = 0; t < x->tiles; t++) w->fk->open_k(w->block + t * tile, x->k.at[t], 0, w->dim);
    return kv_opened(w, tile, 0, x->k.ahead);
}

/* The same for V. */
static kv_tiles kv_open_v(const kv_work *w, const kv_view *x) {
    const size_t tile = QK_KV_TILE * w->pad;
    for (size_t t = 0; t < x->tiles; t++) w->fv->open_v(w->block + t * tile, x->v.at[t], w->dim, w->pad);
    return kv_opened(w, tile, w->pad * sizeof(float), x->v.ahead);
}

static void kv_open_scale(const kv_work *w, const kv_format *f, float *scale, const kv_tiles *x, size_t n) {
    for (size_t t = 0; t < n; t++) f->open_scale(scale + t * QK_KV_TILE, x->at[t], w->dim);
}

#endif
