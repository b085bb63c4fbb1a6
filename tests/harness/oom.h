/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory failures: the n-th allocation in this process fails, libraries included, for n = 1, 2, 3 ... until a
 * run has no failure. Every run either works or ends with an error that gives the reason; nothing is leaked,
 * and repeating the request gives the same answer as an undisturbed run.
 *
 * To be included once, by a test program: it replaces malloc. With OWN_MALLOC 0 a sanitizer has its own, and
 * main, which is here, skips the tests. */
#ifndef QSF_TESTS_OOM_H
#define QSF_TESTS_OOM_H

#include "tests/harness/qsf_test.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "src/base/ledger.h"
#include "src/base/sanitizer.h"

#define OWN_MALLOC (!QSF_ADDRESS_SANITIZER && !QSF_THREAD_SANITIZER && !QSF_MEMORY_SANITIZER)

#if OWN_MALLOC

/* --- a replacement of libc's allocator: counts, fails on request, overwrites new and freed memory --- */

#define HEAP_BYTES ((size_t)1 << 30) /* of address space; freed blocks are reused by size */
#define MAGIC      0x51534621u
#define CLASSES    32

typedef struct Block {
    struct Block *prev, *next; /* live ones in a ring; free ones linked by next */
    const void *caller;
    uint64_t number; /* of all allocations */
    size_t size;
    uint32_t magic, class;
    void *base; /* of the memory, at or before this header */
    char pad[64 - 4 * sizeof(void *) - sizeof(size_t) - 16];
} Block;
_Static_assert(sizeof(Block) == 64, "what follows is aligned for anything");

static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static char *heap, *heap_end;
static Block *free_blocks[CLASSES], live = { .prev = &live, .next = &live };
static uint64_t allocations;
static atomic_uint_fast64_t fail_in; /* allocations until one fails; 0 = none fails */
static atomic_bool fail_on;          /* and all later ones */

static bool fails_now(void) {
    uint_fast64_t n = atomic_load(&fail_in);
    while (n > 0 &&
           !atomic_compare_exchange_weak(&fail_in, &n, n == 1 && atomic_load(&fail_on) ? 1 : n - 1)) {
    }
    return n == 1;
}

static void *fresh(uint32_t class) {
    if (heap == NULL) {
        heap = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                    0);
        if (heap == MAP_FAILED) abort();
        heap_end = heap + HEAP_BYTES;
    }
    if ((size_t)(heap_end - heap) < ((size_t)1 << class)) abort();
    heap += (size_t)1 << class;
    return heap - ((size_t)1 << class);
}

static void *take(size_t align, size_t size, const void *caller) {
    uint32_t class = 7;
    while (((size_t)1 << class) < size + align + sizeof(Block)) class ++;
    pthread_mutex_lock(&heap_lock);
    Block *old = free_blocks[class];
    void *base = old != NULL ? old : fresh(class);
    if (old != NULL) free_blocks[class] = old->next;
    uintptr_t at = ((uintptr_t)base + sizeof(Block) + align - 1) / align * align;
    Block *b = (Block *)(void *)((char *)base + (at - (uintptr_t)base)) - 1;
    *b = (Block){ live.prev, &live, caller, ++allocations, size, MAGIC, class, base, { 0 } };
    live.prev->next = b;
    live.prev = b;
    pthread_mutex_unlock(&heap_lock);
    memset(b + 1, 0xA5, size);
    return b + 1;
}

static Block *block_of(void *p) {
    Block *b = (Block *)p - 1;
    if (b->magic != MAGIC) {
        static const char said[] = "freed or resized what is not allocated\n";
        if (write(2, said, sizeof said - 1) < 0) {
        }
        abort();
    }
    return b;
}

static void give_back(void *p) {
    if (p == NULL) return;
    pthread_mutex_lock(&heap_lock);
    Block *b = block_of(p);
    memset(p, 0xDB, b->size);
    b->magic = 0;
    b->prev->next = b->next;
    b->next->prev = b->prev;
    uint32_t class = b->class;
    Block *free_one = b->base;
    free_one->next = free_blocks[class];
    free_blocks[class] = free_one;
    pthread_mutex_unlock(&heap_lock);
}

static void *obtain_aligned(size_t align, size_t size, const void *caller) {
    if (size > HEAP_BYTES || align > HEAP_BYTES || fails_now()) {
        errno = ENOMEM;
        return NULL;
    }
    return take(align < 16 ? 16 : align, size, caller);
}

static void *obtain(size_t size, const void *caller) { return obtain_aligned(16, size, caller); }

#define CALLER __builtin_return_address(0)

void *malloc(size_t size) { return obtain(size, CALLER); }
void free(void *p) {
    int saved = errno;
    give_back(p);
    errno = saved;
}
void *calloc(size_t n, size_t size) {
    void *p = size != 0 && n > HEAP_BYTES / size ? obtain(SIZE_MAX, CALLER) : obtain(n * size, CALLER);
    return p != NULL ? memset(p, 0, n * size) : NULL;
}
void *realloc(void *p, size_t size) {
    void *q = obtain(size, CALLER);
    if (q == NULL || p == NULL) return q;
    size_t old = block_of(p)->size;
    memcpy(q, p, old < size ? old : size);
    free(p);
    return q;
}
int posix_memalign(void **out, size_t align, size_t size) {
    void *p = obtain_aligned(align, size, CALLER);
    if (p != NULL) *out = p;
    return p != NULL ? 0 : ENOMEM;
}
void *aligned_alloc(size_t align, size_t size) { return obtain_aligned(align, size, CALLER); }
void *memalign(size_t align, size_t size);
void *memalign(size_t align, size_t size) { return obtain_aligned(align, size, CALLER); }
size_t malloc_usable_size(void *p);
size_t malloc_usable_size(void *p) { return p != NULL ? block_of(p)->size : 0; }
/* So that the caller is known. */
char *strdup(const char *s) {
    size_t n = strlen(s) + 1;
    char *p = obtain(n, CALLER);
    return p != NULL ? memcpy(p, s, n) : NULL;
}

/* --- allocations that libc keeps are not leaks: their addresses --- */

static struct { uintptr_t from, to; } libc_text[16];
static size_t n_libc_text;

static void find_libc(void) {
    char line[512];
    FILE *f = fopen("/proc/self/maps", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL && n_libc_text < 16) {
        unsigned long from, to;
        if (strstr(line, "/libc") == NULL && strstr(line, "/ld-") == NULL) continue;
        if (sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
        libc_text[n_libc_text].from = from;
        libc_text[n_libc_text++].to = to;
    }
    if (f != NULL) fclose(f);
}

static bool of_libc(const Block *b) {
    uintptr_t at = (uintptr_t)b->caller;
    for (size_t i = 0; i < n_libc_text; i++)
        if (at >= libc_text[i].from && at < libc_text[i].to) return true;
    return false;
}

/* Blocks allocated after the allocation `since`. */
static unsigned leaks(uint64_t since) {
    unsigned n = 0;
    for (Block *b = live.prev; b != &live && b->number > since; b = b->prev) {
        if (of_libc(b)) continue;
        printf("%zu bytes left by the caller at %p\n", b->size, b->caller);
        n++;
    }
    return n;
}

static unsigned open_files(void) {
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL) n++;
    if (d != NULL) closedir(d);
    return n;
}

/* --- sweeps --- */

/* The result of a run: 0 and a text, or the number of a step and the reason why it failed. */
typedef struct Outcome {
    int failed;
    bool again_failed; /* the same step, repeated with enough memory */
    char why[600];
    char text[2048];
} Outcome;

typedef enum Kind { ALLOCATION, ALLOCATIONS_FROM_THEN_ON, MAPPING } Kind;

static void arm(Kind kind, uint64_t n) {
    atomic_store(&fail_on, kind == ALLOCATIONS_FROM_THEN_ON);
    if (kind == MAPPING)
        qsf_mem_inject_failure(n);
    else
        atomic_store(&fail_in, n);
}

/* Whether the failure occurred. For mappings the result of the run shows it. */
static bool disarm(Kind kind, uint64_t n, const Outcome *o) {
    uint64_t left = atomic_exchange(&fail_in, 0);
    qsf_mem_inject_failure(0);
    if (kind == MAPPING) return o->failed != 0;
    return kind == ALLOCATIONS_FROM_THEN_ON ? left == 1 : left == 0 && n > 0;
}

static void sweep(void (*run)(Outcome *), Kind kind, uint64_t least, uint64_t most) {
    static Outcome want, o;
    uint64_t n = 1, quiet = 0, failed = 0;
    memset(&want, 0, sizeof want);
    run(&want);
    if (want.failed) fail_msg("without failures, step %d: %s", want.failed, want.why);
    unsigned files = open_files();
    for (; n <= most && quiet < (kind == MAPPING ? 20 : 3); n++) {
        uint64_t since = allocations;
        memset(&o, 0, sizeof o);
        arm(kind, n);
        run(&o);
        bool happened = disarm(kind, n, &o);
        quiet = happened ? 0 : quiet + 1;
        failed += o.failed != 0;
        if (o.failed && o.why[0] == '\0')
            fail_msg("%llu: step %d failed without a message", (unsigned long long)n, o.failed);
        if (o.again_failed && kind != ALLOCATIONS_FROM_THEN_ON)
            fail_msg("%llu: step %d failed again: %s", (unsigned long long)n, o.failed, o.why);
        if (kind != ALLOCATIONS_FROM_THEN_ON || !o.failed) assert_string_equal(o.text, want.text);
        if (leaks(since))
            fail_msg("%llu: memory left after step %d: %s", (unsigned long long)n, o.failed, o.why);
        assert_int_equal(open_files(), files);
    }
    printf("%llu runs, %llu ended with an error\n", (unsigned long long)n - 1, (unsigned long long)failed);
    assert_true(failed >= least && n <= most);
}

static void add_text(Outcome *o, const char *text) {
    size_t have = strlen(o->text);
    snprintf(o->text + have, sizeof o->text - have, "%s", text);
}

static bool failed_step(Outcome *o, int step, const char *why) {
    if (o->failed) o->again_failed = true; /* memory fails once: a second failure is a bug */
    o->failed = step;
    snprintf(o->why, sizeof o->why, "%.*s", (int)sizeof o->why - 1, why);
    return false;
}

#else
int main(void) {
    printf("skip: the sanitizers have their own allocator\n");
    return 77;
}
#endif
#endif
