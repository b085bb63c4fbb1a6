/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The choice of a snapshot, and their folder: implements slots.h. */
#include "serve/slots.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define BLOCK 256u /* bytes of a part of a text */

/* ---- hashes (Fowler, Noll, Vo: FNV-1a, 64 bits) ---- */

static uint64_t hash(uint64_t h, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return (h ^ 0xff) * 0x100000001b3u; /* an end: "ab", "c" is not "a", "bc" */
}

static bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Without white space around it, which clients may drop. */
static uint64_t hash_message(uint64_t h, const char *role, const char *text, size_t len) {
    while (len > 0 && blank(text[len - 1])) len--;
    while (len > 0 && blank(*text)) text++, len--;
    return hash(hash(h, role, strlen(role)), text, len);
}

static void add(ServeSlot *slot, uint64_t h) {
    if (slot->n < SERVE_PARTS) slot->parts[slot->n++] = h;
}

static uint64_t last(const ServeSlot *slot, uint64_t otherwise) {
    return slot->n > 0 ? slot->parts[slot->n - 1] : otherwise;
}

#define SEED 0xcbf29ce484222325u

/* The parts of a request. */
static void read_parts(ServeSlot *slot, const ServeRequest *r) {
    uint64_t h = hash(SEED, r->tools != NULL ? r->tools : "", r->tools_len);
    slot->n = slot->lead = 0;
    slot->chat = r->chat;
    if (!r->chat) {
        const QSFMessage *m = &r->messages[0];
        for (size_t at = 0; m->len - at >= BLOCK; at += BLOCK) add(slot, h = hash(h, m->content + at, BLOCK));
        return;
    }
    for (size_t i = 0; i < r->n_messages; i++) {
        const QSFMessage *m = &r->messages[i];
        if (strcmp(m->role, "system") == 0 && slot->lead == i) slot->lead++;
        add(slot, h = hash_message(h, m->role, m->content, m->len));
    }
}

/* ---- the choice ---- */

static uint32_t common(const ServeSlot *a, const ServeSlot *b) {
    uint32_t n = 0;
    while (n < a->n && n < b->n && a->parts[n] == b->parts[n]) n++;
    return n;
}

/* Does a request with n parts in common continue the conversation, or change its last exchange? Another one
 * that only begins like it would replace what is kept. */
static bool continues(const ServeSlot *slot, const ServeSlot *request, uint32_t n) {
    if (slot->used == 0 || slot->chat != request->chat || n <= slot->lead) return false;
    return slot->chat ? n + 2 >= slot->n : n * 2 >= slot->n;
}

/* The slot that the request continues, or NULL. */
static ServeSlot *find(ServeSlots *s, const ServeSlot *request) {
    ServeSlot *best = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t n = common(&s->slots[i], request);
        if (continues(&s->slots[i], request, n) && n > most) best = &s->slots[i], most = n;
    }
    return best;
}

/* Of two that begin alike, the one with more turns has more states in its file. Of those that share only the
 * system prompt, the newest may also share the beginning of the next message. */
static bool is_better(const ServeSlot *a, const ServeSlot *b, uint32_t n) {
    if (n > a->lead && a->turns != b->turns) return a->turns > b->turns;
    return a->used > b->used;
}

/* The slot that begins most like it, or NULL. */
static ServeSlot *alike(ServeSlots *s, const ServeSlot *request) {
    ServeSlot *best = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        ServeSlot *slot = &s->slots[i];
        const uint32_t n = slot->used > 0 && slot->chat == request->chat ? common(slot, request) : 0;
        if (n > most || (n > 0 && n == most && is_better(slot, best, n))) best = slot, most = n;
    }
    return best;
}

/* The slot that was used least recently; another one than `except`, if there is more than one. */
static ServeSlot *oldest(ServeSlots *s, const ServeSlot *except) {
    ServeSlot *best = NULL;
    for (uint32_t i = 0; i < s->n; i++) {
        ServeSlot *slot = &s->slots[i];
        if (slot != except && (best == NULL || slot->used < best->used)) best = slot;
    }
    return best != NULL ? best : &s->slots[0];
}

static const char *path_of(const ServeSlots *s, char path[QSF_PATH_MAX], const ServeSlot *slot) {
    (void)snprintf(path, QSF_PATH_MAX, "%s/%llu.qsfsnap", s->dir, (unsigned long long)slot->number);
    return path;
}

/* A slot for a new conversation; *from as in slots.h. */
static ServeSlot *begin(ServeSlots *s, const ServeSlot *request, const char **from) {
    ServeSlot *model = alike(s, request), *slot = oldest(s, model);
    if (slot == model) return slot; /* the only one: its file is read, then replaced */
    if (model != NULL) *from = path_of(s, s->from, model);
    if (model != NULL) model->used = ++s->clock;
    if (slot->used > 0) (void)unlink(path_of(s, s->path, slot));
    slot->number = ++s->files;
    slot->turns = 0;
    return slot;
}

const char *serve_slots_choose(ServeSlots *s, const ServeRequest *r, const char **from) {
    s->now = NULL;
    *from = NULL;
    if (s->n == 0) return NULL;
    ServeSlot *request = &s->slots[s->n]; /* one more, for this */
    read_parts(request, r);
    if (request->n == 0) return NULL;
    ServeSlot *slot = find(s, request);
    if (slot == NULL) slot = begin(s, request, from);
    const uint64_t number = slot->number, turns = slot->turns;
    *slot = *request;
    slot->number = number;
    slot->turns = turns + 1;
    slot->used = ++s->clock;
    s->now = slot;
    return path_of(s, s->path, slot);
}

void serve_slots_answered(ServeSlots *s, const char *text, size_t len) {
    if (s->now != NULL && s->now->chat) add(s->now, hash_message(last(s->now, SEED), "assistant", text, len));
    s->now = NULL;
}

/* ---- the folder ---- */

/* Removes a folder of snapshots, nothing else. */
static void remove_folder(const char *dir) {
    char path[QSF_PATH_MAX];
    DIR *d = opendir(dir);
    const struct dirent *e;
    while (d != NULL && (e = readdir(d)) != NULL) {
        const size_t n = strlen(e->d_name);
        const bool ours = (n > 8 && strcmp(e->d_name + n - 8, ".qsfsnap") == 0) ||
                          strcmp(e->d_name, "lock") == 0;
        if (ours && snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < (int)sizeof path)
            (void)unlink(path);
    }
    if (d != NULL) (void)closedir(d);
    (void)rmdir(dir);
}

/* Locks DIR/lock; -1: another server has it, or it cannot be made. */
static int lock_folder(const char *dir, int flags) {
    char path[QSF_PATH_MAX];
    if (snprintf(path, sizeof path, "%s/lock", dir) >= (int)sizeof path) return -1;
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Those of servers that were killed. */
static void remove_stale(const char *base) {
    char path[QSF_PATH_MAX];
    DIR *d = opendir(base);
    const struct dirent *e;
    while (d != NULL && (e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, "serve.", 6) != 0) continue;
        if (snprintf(path, sizeof path, "%s/%s", base, e->d_name) >= (int)sizeof path) continue;
        const int fd = lock_folder(path, 0);
        if (fd < 0) continue;
        remove_folder(path);
        close(fd);
    }
    if (d != NULL) (void)closedir(d);
}

static int make_folder(ServeSlots *s, const char *base, QsfErr *err) {
    remove_stale(base);
    if (snprintf(s->dir, sizeof s->dir, "%s/serve.XXXXXX", base) >= (int)sizeof s->dir)
        return qsf_err_set(err, QSF_E_RUNTIME, "the folder of snapshots: its path is too long");
    if (mkdtemp(s->dir) == NULL || (s->lock = lock_folder(s->dir, O_CREAT)) < 0) {
        const int e = errno;
        return qsf_err_set(err, QSF_E_RUNTIME, "cannot make a folder for snapshots in %s: %s", base,
                           strerror(e));
    }
    return QSF_OK;
}

size_t serve_slots_bytes(uint32_t n) { return n > 0 ? (n + 1) * sizeof(ServeSlot) : 0; }

int serve_slots_open(ServeSlots *s, const ServeOptions *o, QsfErr *err) {
    char state[QSF_PATH_MAX], base[QSF_PATH_MAX];
    *s = (ServeSlots){ .lock = -1, .limit = o->snapshot_limit };
    if (o->snapshots == 0) return QSF_OK;
    if (o->snapshot_dir != NULL)
        (void)snprintf(base, sizeof base, "%s", o->snapshot_dir);
    else if (!qsf_path_state_home(state) || !qsf_path_join(base, state, "/serve", ""))
        return qsf_err_set(err, QSF_E_RUNTIME,
                           "no folder for snapshots: HOME and XDG_STATE_HOME are not set");
    int rc = qsf_path_make_dirs(base, err);
    if (rc == QSF_OK) rc = make_folder(s, base, err);
    if (rc != QSF_OK) return rc;
    s->slots = calloc(o->snapshots + 1, sizeof *s->slots);
    if (s->slots == NULL) return qsf_err_memory(err, "snapshots");
    s->n = o->snapshots;
    return QSF_OK;
}

void serve_slots_close(ServeSlots *s) {
    if (s->dir[0] != '\0' && s->lock >= 0) remove_folder(s->dir);
    if (s->dir[0] != '\0' && s->lock >= 0) close(s->lock);
    free(s->slots);
    *s = (ServeSlots){ .lock = -1 };
}
