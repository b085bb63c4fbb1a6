/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory that fails: the n-th allocation of everything in this process, libraries included, for n = 1, 2, 3 ...
 * until nothing fails any more. Every run ends with an error that says why, or works; nothing is left behind, and
 * the same asked again gets the answer that an undisturbed run gives. */
#include "tests/harness/qsf_test.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "qsf.h"
#include "qsf_chatlog.h"
#include "qsf_engine.h"
#include "src/base/ledger.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/tiny_vocab.h"

#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define OWN_MALLOC 0
#endif
#ifndef OWN_MALLOC
#define OWN_MALLOC 1
#endif

#if OWN_MALLOC

/* --- an allocator in the place of libc's: counts, fails on request, spoils what is new and what is freed --- */

#define HEAP_BYTES ((size_t)1 << 30) /* of address space; what is freed is used again by size */
#define MAGIC 0x51534621u
#define CLASSES 32

typedef struct Block {
    struct Block *prev, *next; /* live ones in a ring; free ones by next */
    const void *caller;
    uint64_t number;           /* of all allocations */
    size_t size;
    uint32_t magic, class;
    void *base;                /* of the memory, at or before this header */
    char pad[64 - 4 * sizeof(void *) - sizeof(size_t) - 16];
} Block;
_Static_assert(sizeof(Block) == 64, "what follows is aligned for anything");

static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static char *heap, *heap_end;
static Block *free_blocks[CLASSES], live = { .prev = &live, .next = &live };
static uint64_t allocations;
static atomic_uint_fast64_t fail_in; /* allocations until one fails; 0 = none will */
static atomic_bool fail_on;          /* and all after it */

static bool fails_now(void) {
    uint_fast64_t n = atomic_load(&fail_in);
    while (n > 0 && !atomic_compare_exchange_weak(&fail_in, &n, n == 1 && atomic_load(&fail_on) ? 1 : n - 1)) {}
    return n == 1;
}

static void *fresh(uint32_t class) {
    if (heap == NULL) {
        heap = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (heap == MAP_FAILED) abort();
        heap_end = heap + HEAP_BYTES;
    }
    if ((size_t)(heap_end - heap) < ((size_t)1 << class)) abort();
    heap += (size_t)1 << class;
    return heap - ((size_t)1 << class);
}

static void *take(size_t align, size_t size, const void *caller) {
    uint32_t class = 7;
    while (((size_t)1 << class) < size + align + sizeof(Block)) class++;
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
        if (write(2, said, sizeof said - 1) < 0) {}
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

/* --- what libc keeps for itself is no leak: its places in memory --- */

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

/* Blocks younger than the allocation `since`. */
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

/* What a run came to: 0 and a text, or the number of a step and why it failed. */
typedef struct Outcome {
    int failed;
    bool again_failed; /* the same step, asked again with memory at hand */
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

/* Whether the failure happened. For mappings it is told by the outcome. */
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
    if (want.failed) fail_msg("undisturbed, step %d: %s", want.failed, want.why);
    unsigned files = open_files();
    for (; n <= most && quiet < (kind == MAPPING ? 20 : 3); n++) {
        uint64_t since = allocations;
        memset(&o, 0, sizeof o);
        arm(kind, n);
        run(&o);
        bool happened = disarm(kind, n, &o);
        quiet = happened ? 0 : quiet + 1;
        failed += o.failed != 0;
        if (o.failed && o.why[0] == '\0') fail_msg("%llu: step %d failed and does not say why", (unsigned long long)n, o.failed);
        if (o.again_failed && kind != ALLOCATIONS_FROM_THEN_ON)
            fail_msg("%llu: step %d failed again: %s", (unsigned long long)n, o.failed, o.why);
        if (kind != ALLOCATIONS_FROM_THEN_ON || !o.failed) assert_string_equal(o.text, want.text);
        if (leaks(since)) fail_msg("%llu: left behind after step %d: %s", (unsigned long long)n, o.failed, o.why);
        assert_int_equal(open_files(), files);
    }
    printf("%llu runs, %llu ended with an error\n", (unsigned long long)n - 1, (unsigned long long)failed);
    assert_true(failed >= least && n <= most);
}

/* --- the synchronous interface --- */

static char tiny[256];

static void add_text(Outcome *o, const char *text) {
    size_t have = strlen(o->text);
    snprintf(o->text + have, sizeof o->text - have, "%s", text);
}

static void hear(int id, const char *text, void *arg) {
    (void)id;
    add_text(arg, text);
}

static bool failed_step(Outcome *o, int step, const char *why) {
    if (o->failed) o->again_failed = true; /* memory fails once: a second time is a defect */
    o->failed = step;
    snprintf(o->why, sizeof o->why, "%s", why);
    return false;
}

static QSFEngine *open_sync(Outcome *o, QSFConfig **config) {
    *config = qsf_config_default();
    if (*config == NULL) {
        failed_step(o, 1, "no configuration");
        return NULL;
    }
    qsf_config_set_threads(*config, 2);
    qsf_config_set_max_seq_len(*config, 128);
    qsf_config_set_ram_budget(*config, 20);
    QSFEngine *e = qsf_load(tiny, *config);
    if (e != NULL) return e;
    failed_step(o, 2, qsf_error());
    qsf_config_free(*config);
    *config = NULL;
    return NULL;
}

/* One answer into o->text; after a failure the text begins anew and it is asked again. */
static bool answer_sync(Outcome *o, QSFEngine *e, int step, const char *prompt) {
    size_t keep = strlen(o->text);
    for (int i = 0; i < 2; i++) {
        o->text[keep] = '\0';
        if (qsf_generate(e, prompt, 6, 0, 1, hear, o) == 0) return true;
        failed_step(o, step, qsf_error());
        if (o->again_failed) break;
    }
    return false;
}

static void run_sync(Outcome *o) {
    QSFConfig *c;
    QSFEngine *e = open_sync(o, &c);
    if (e == NULL) e = open_sync(o, &c);
    if (e == NULL) return;
    if (answer_sync(o, e, 3, "a the in")) {
        qsf_config_set_ram_budget(c, 24);
        qsf_config_set_threads(c, 1);
        if (qsf_set_ram_budget(e, 22) != 0) {
            failed_step(o, 4, qsf_error());
            if (!o->again_failed && qsf_set_ram_budget(e, 22) != 0) failed_step(o, 4, qsf_error());
        }
        answer_sync(o, e, 5, "x y z");
    }
    qsf_config_free(c);
    qsf_free(e);
}

static void answers_survive_an_allocation_that_fails(void **state) {
    (void)state;
    sweep(run_sync, ALLOCATION, 20, 20000);
}
static void answers_end_cleanly_when_memory_is_gone_for_good(void **state) {
    (void)state;
    sweep(run_sync, ALLOCATIONS_FROM_THEN_ON, 20, 20000);
}
static void answers_survive_a_mapping_that_fails(void **state) {
    (void)state;
    sweep(run_sync, MAPPING, 10, 2000);
}

/* --- the background engine: an event for every request, and a worker that lives --- */

typedef struct Reply {
    QSFEventType type;
    char text[2048], why[600];
} Reply;

static bool next_event(QSFWorker *w, QSFEvent *e) {
    while (!qsf_worker_next(w, e)) {
        struct pollfd p = { .fd = qsf_worker_fd(w), .events = POLLIN };
        if (poll(&p, 1, 60000) != 1) return false;
    }
    return true;
}

/* To the end of request id; 0 (not even handed over) is a failure without words. */
static bool reply_to(QSFWorker *w, uint64_t id, Reply *r) {
    QSFEvent e = { 0 };
    *r = (Reply){ .type = QSF_EVENT_ERROR, .why = "not taken" };
    while (id != 0 && e.type != QSF_EVENT_LOADED && e.type != QSF_EVENT_DONE && e.type != QSF_EVENT_ERROR) {
        assert_true(next_event(w, &e));
        size_t have = strlen(r->text);
        if (e.type == QSF_EVENT_TEXT) snprintf(r->text + have, sizeof r->text - have, "%s", e.text);
        if (e.type == QSF_EVENT_ERROR) snprintf(r->why, sizeof r->why, "%s", e.text);
        r->type = e.type;
    }
    return r->type != QSF_EVENT_ERROR;
}

static uint64_t submit(QSFWorker *w, const char *text) {
    const QSFMessage m[] = { { .role = "system", .content = "be kind", .len = 7 },
                             { .role = "user", .content = text, .len = strlen(text) } };
    const QSFRequest r = { .messages = m, .n_messages = 2 };
    return qsf_worker_submit(w, &r);
}

/* Each step is tried twice: memory fails only once. */
static bool load_step(Outcome *o, QSFWorker *w, const QSFSettings *s) {
    Reply r;
    for (int i = 0; i < 2; i++) {
        if (reply_to(w, qsf_worker_load(w, tiny, s), &r)) return true;
        failed_step(o, 2, r.why);
    }
    return false;
}

static bool answer_step(Outcome *o, QSFWorker *w, int step, const char *prompt) {
    Reply r;
    for (int i = 0; i < 2; i++) {
        if (reply_to(w, submit(w, prompt), &r)) {
            add_text(o, r.text);
            return true;
        }
        failed_step(o, step, r.why);
    }
    return false;
}

static void replan_step(Outcome *o, QSFWorker *w, const QSFSettings *s) {
    QSFEvent e = { 0 };
    for (int i = 0; i < 2; i++) {
        qsf_worker_replan(w, s);
        do assert_true(next_event(w, &e));
        while (e.type != QSF_EVENT_PLAN);
        if (e.code == 0) return;
        failed_step(o, 4, e.text);
    }
}

static QSFSettings settings(void) {
    QSFSettings s;
    qsf_settings_default(&s);
    s.threads = 2;
    s.ctx = 128;
    s.pin = 0;
    s.ram_budget = 24u << 20;
    s.params.temperature = 0;
    s.params.max_tokens = 6;
    s.params.ignore_eos = true;
    return s;
}

static void run_worker(Outcome *o) {
    char why[256] = "";
    QSFSettings s = settings();
    QSFWorker *w = qsf_worker_start(&s, why, sizeof why);
    if (w == NULL) {
        failed_step(o, 1, why);
        w = qsf_worker_start(&s, why, sizeof why);
    }
    if (w == NULL) return;
    if (load_step(o, w, &s) && answer_step(o, w, 3, "a the in")) {
        s.pin = UINT64_MAX;
        s.threads = 1;
        replan_step(o, w, &s);
        answer_step(o, w, 5, "x y z");
        free(qsf_worker_describe(w, "memory"));
    }
    qsf_worker_stop(w);
}

static void the_worker_survives_an_allocation_that_fails(void **state) {
    (void)state;
    sweep(run_worker, ALLOCATION, 20, 20000);
}
static void the_worker_ends_when_memory_is_gone_for_good(void **state) {
    (void)state;
    sweep(run_worker, ALLOCATIONS_FROM_THEN_ON, 20, 20000);
}
static void the_worker_survives_a_mapping_that_fails(void **state) {
    (void)state;
    sweep(run_worker, MAPPING, 10, 2000);
}

/* --- byte-level BPE, with its regular expressions --- */

static QsfTestVocab *vocab;
static char vocab_path[256];

static void run_bpe(Outcome *o) {
    QsfLedger ledger;
    QsfErr err = { 0 };
    QsfSource *src = NULL;
    QsfTokenizer *t = NULL;
    QsfIds ids = { 0 };
    static const char text[] = "the cat's 1234 hats,\n  tea";
    qsf_ledger_init(&ledger, 0);
    for (int i = 0; i < 2 && src == NULL; i++, qsf_err_clear(&err))
        if (qsf_source_open(&src, vocab_path, &ledger, &err) != QSF_OK) failed_step(o, 1, err.msg);
    for (int i = 0; src != NULL && i < 2 && t == NULL; i++, qsf_err_clear(&err))
        if (qsf_tokenizer_open(&t, src, &ledger, &err) != QSF_OK) failed_step(o, 2, err.msg);
    for (int i = 0; t != NULL && i < 2; i++, qsf_err_clear(&err)) {
        ids.n = 0;
        if (qsf_tokenizer_encode(t, text, strlen(text), 0, &ids, &err) == QSF_OK) break;
        failed_step(o, 3, err.msg);
        ids.n = 0;
    }
    for (size_t i = 0; i < ids.n; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d ", ids.data[i]);
        add_text(o, number);
    }
    qsf_ids_free(&ids);
    qsf_tokenizer_close(t);
    qsf_source_close(src);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

static void write_bpe(void) {
    vocab = calloc(1, sizeof *vocab);
    assert_non_null(vocab);
    qsf_tv_bpe(vocab);
    static const char *const made[] = { "th", "the", "at" };
    static const char *const merges[] = { "t h", "th e", "a t" };
    for (size_t i = 0; i < 3; i++) {
        qsf_tv_add(vocab, made[i], 0, QSF_TOKEN_NORMAL);
        qsf_tv_merge(vocab, merges[i]);
    }
    snprintf(vocab_path, sizeof vocab_path, "%s", qsf_test_tmp("oom-bpe.gguf"));
    qsf_gb_str(&vocab->gb, "general.architecture", "llama");
    qsf_gb_str(&vocab->gb, "tokenizer.ggml.model", "gpt2");
    qsf_gb_strings(&vocab->gb, "tokenizer.ggml.tokens", vocab->tokens, vocab->n);
    qsf_gb_array(&vocab->gb, "tokenizer.ggml.token_type", QSF_META_I32, vocab->n, vocab->types,
                 vocab->n * sizeof *vocab->types);
    qsf_gb_strings(&vocab->gb, "tokenizer.ggml.merges", vocab->merges, vocab->n_merges);
    assert_int_equal(qsf_gb_write(&vocab->gb, vocab_path), 0);
    qsf_tv_free(vocab);
    free(vocab);
}

static void the_tokenizer_survives_an_allocation_that_fails(void **state) {
    (void)state;
    write_bpe();
    sweep(run_bpe, ALLOCATION, 10, 20000);
    sweep(run_bpe, ALLOCATIONS_FROM_THEN_ON, 10, 20000);
    sweep(run_bpe, MAPPING, 0, 2000);
    unlink(vocab_path);
}

/* --- saving and resuming a conversation: what was told as saved is there and whole --- */

static void collect(void *arg, const QSFLogRecord *r) {
    add_text(arg, r->text != NULL ? r->text : "");
    add_text(arg, "|");
}

static void append_step(Outcome *o, QSFChatLog **log, const char *role, const char *text) {
    char why[256] = "";
    const QSFLogRecord r = { .kind = QSF_LOG_MESSAGE, .role = role, .text = text, .len = strlen(text), .time = 1 };
    for (int i = 0; i < 2; i++) {
        if (*log == NULL) *log = qsf_chatlog_open("oom", why, sizeof why);
        if (*log != NULL && qsf_chatlog_append(*log, &r, why, sizeof why)) return;
        failed_step(o, *log == NULL ? 1 : 2, why);
    }
}

static void run_log(Outcome *o) {
    char why[256] = "";
    uint32_t damaged = 0;
    QSFChatLog *log = NULL;
    append_step(o, &log, "user", "what is said \xC3\xA4");
    append_step(o, &log, "assistant", "and answered\nin lines");
    qsf_chatlog_close(log);
    for (int i = 0; i < 2; i++) {
        o->text[0] = '\0';
        if (qsf_chatlog_read("oom", collect, o, &damaged, why, sizeof why) && damaged == 0) break;
        failed_step(o, 3, damaged != 0 ? "damaged records" : why);
    }
    char path[400];
    snprintf(path, sizeof path, "%s/qsf/sessions/oom.jsonl", getenv("XDG_DATA_HOME"));
    unlink(path);
}

static void conversations_survive_an_allocation_that_fails(void **state) {
    (void)state;
    char dir[300];
    snprintf(dir, sizeof dir, "%s", qsf_test_tmp("oom-data"));
    setenv("XDG_DATA_HOME", dir, 1);
    sweep(run_log, ALLOCATION, 3, 20000);
    sweep(run_log, ALLOCATIONS_FROM_THEN_ON, 3, 20000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_survive_an_allocation_that_fails),
        cmocka_unit_test(answers_end_cleanly_when_memory_is_gone_for_good),
        cmocka_unit_test(answers_survive_a_mapping_that_fails),
        cmocka_unit_test(the_worker_survives_an_allocation_that_fails),
        cmocka_unit_test(the_worker_ends_when_memory_is_gone_for_good),
        cmocka_unit_test(the_worker_survives_a_mapping_that_fails),
        cmocka_unit_test(the_tokenizer_survives_an_allocation_that_fails),
        cmocka_unit_test(conversations_survive_an_allocation_that_fails),
    };
    find_libc();
    unsetenv("QSF_CPU_MASK");
    snprintf(tiny, sizeof tiny, "%s", qsf_test_tmp("oom.gguf"));
    const QsfTinySpec spec = { .chat_template = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] }}{% endfor %}" };
    if (qsf_test_write_tiny_llama(tiny, &spec) != 0) return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(tiny);
    return rc;
}

#else
int main(void) {
    printf("skip: the sanitizers have their own allocator\n");
    return 77;
}
#endif
