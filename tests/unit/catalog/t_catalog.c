/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models on this machine: the layouts of five places, made in a home directory of its own; what is broken,
 * hostile or endless in them; what names mean; what headers tell; what is remembered. */
#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/ledger.h"
#include "src/catalog/rates.h"
#include "src/catalog/walk.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define DIGEST_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define HUB      ".cache/huggingface/hub/"
#define LIBRARY  ".ollama/models/manifests/registry.ollama.ai/library/"
#define BLOBS    ".ollama/models/blobs/sha256-"
#define LAYER(type, digest) \
    "{\"mediaType\":\"application/vnd.ollama.image." type "\",\"digest\":\"" digest "\"}"
#define MANIFEST(digest) \
    "{\"schemaVersion\":2,\"layers\":[" LAYER("template", "sha256:1") "," LAYER("model", digest) "]}"

static char home[64], before[1024];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Everything that could name a place leads into the home directory. */
static int setup(void **state) {
    static const char *const names[] = { "HF_HUB_CACHE",   "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                         "XDG_CACHE_HOME", "LLAMA_CACHE",           "OLLAMA_MODELS",
                                         "XDG_STATE_HOME" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    (void)snprintf(home, sizeof home, "/tmp/qsfcat.XXXXXX");
    if (!mkdtemp(home) || !getcwd(before, sizeof before)) return -1;
    setenv("HOME", home, 1);
    return chdir(home);
}

static int teardown(void **state) {
    (void)state;
    return chdir(before) || nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes the folders of a path below the home directory, and returns the path. */
static const char *made(const char *name) {
    static char path[2048];
    (void)snprintf(path, sizeof path, "%s/%s", home, name);
    for (char *p = path + strlen(home) + 1; *p; p++) {
        if (*p != '/') continue;
        *p = '\0';
        if (mkdir(path, 0700) != 0) assert_int_equal(errno, EEXIST);
        *p = '/';
    }
    return path;
}

static void put(const char *name, const char *text) {
    assert_int_equal(qsf_test_write_file(made(name), text, strlen(text)), 0);
}

static void put_link(const char *name, const char *to) { assert_int_equal(symlink(to, made(name)), 0); }

static const QSFModelEntry *find(const QSFModelList *l, const char *name) {
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i].name, name) == 0) return &l->items[i];
    return NULL;
}

static void list(const char *const *dirs, QSFModelList *l) {
    assert_true(qsf_models_list(dirs, NULL, 60, l));
    assert_int_equal(l->silent, 0);
}

static void expect(const QSFModelList *l, const char *name, const char *place, const char *path,
                   uint64_t bytes) {
    const QSFModelEntry *e = find(l, name);
    char want[2048];
    (void)snprintf(want, sizeof want, "%s/%s", home, path);
    if (!e) fail_msg("no %s", name);
    assert_string_equal(e->place, place);
    assert_string_equal(e->path, want);
    assert_int_equal(e->bytes, bytes);
    assert_null(e->problem);
}

static void put_caches(void) {
    char pointer[200];
    put(LIBRARY "gemma3/4b", MANIFEST("sha256:" DIGEST_A));
    put(BLOBS DIGEST_A, "ollama");
    put(".ollama/models/manifests/hf.co/bart/Qwen/Q4_K_M", MANIFEST("sha256:" DIGEST_B));
    put(BLOBS DIGEST_B, "ollama2");
    put(".lmstudio/models/pub/repo/lm-Q4.gguf", "lm");
    put("other/models/pub/repo/pointed.gguf", "lm2");
    (void)snprintf(pointer, sizeof pointer, "%s/other\n", home);
    put(".lmstudio-home-pointer", pointer);
    put(".cache/llama.cpp/org_name.gguf", "llama");
    put(HUB "models--org--tiny-GGUF/blobs/b1", "blob");
    put(HUB "models--org--tiny-GGUF/refs/main", "new\n");
    put_link(HUB "models--org--tiny-GGUF/snapshots/new/tiny-Q4_0.gguf", "../../blobs/b1");
    put_link(HUB "models--org--tiny-GGUF/snapshots/old/older.gguf", "../../blobs/b1");
    put(HUB "models--org--whole/snapshots/r/config.json", "{}");
    put(HUB "models--org--whole/snapshots/r/model.safetensors", "123456789");
}

static void test_layouts(void **state) {
    QSFModelList l;
    const char *dirs[] = { "~/own", NULL };
    (void)state;
    put("here.gguf", "1234");
    put("own/deep/er/named.qsf", "12345");
    put("own/deep/er/mmproj-named.gguf", "projector");
    put("own/part-00001-of-00003.gguf", "1");
    put("own/part-00002-of-00003.gguf", "22");
    put("own/part-00003-of-00003.gguf", "333");
    put_caches();
    list(dirs, &l);
    assert_int_equal(l.n, 10);
    assert_string_equal(l.items[0].name, "named"); /* the folders of the user first */
    expect(&l, "named", "folder", "own/deep/er/named.qsf", 5);
    expect(&l, "part", "folder", "own/part-00001-of-00003.gguf", 6);
    expect(&l, "here", "current folder", "here.gguf", 4);
    expect(&l, "gemma3:4b", "Ollama", BLOBS DIGEST_A, 6);
    expect(&l, "hf.co/bart/Qwen:Q4_K_M", "Ollama", BLOBS DIGEST_B, 7);
    expect(&l, "lm-Q4", "LM Studio", ".lmstudio/models/pub/repo/lm-Q4.gguf", 2);
    expect(&l, "pointed", "LM Studio", "other/models/pub/repo/pointed.gguf", 3);
    expect(&l, "org_name", "llama.cpp", ".cache/llama.cpp/org_name.gguf", 5);
    expect(&l, "tiny-Q4_0", "Hugging Face", HUB "models--org--tiny-GGUF/snapshots/new/tiny-Q4_0.gguf", 4);
    expect(&l, "org/whole", "Hugging Face", HUB "models--org--whole/snapshots/r", 9);
    qsf_models_free(&l);
}

/* Variables name other places; the usual ones are not read then. */
static void test_variables(void **state) {
    static const char *const names[][2] = { { "HF_HUB_CACHE", "a" },
                                            { "LLAMA_CACHE", "b" },
                                            { "OLLAMA_MODELS", "c" } };
    QSFModelList l;
    char path[200];
    (void)state;
    put("a/models--o--n/snapshots/r/x.gguf", "1");
    put("b/y.gguf", "2");
    put("c/manifests/registry.ollama.ai/library/z/latest", MANIFEST("sha256:" DIGEST_A));
    put("c/blobs/sha256-" DIGEST_A, "3");
    put(".cache/llama.cpp/not.gguf", "4");
    for (int i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", home, names[i][1]);
        setenv(names[i][0], path, 1);
    }
    list(NULL, &l);
    assert_int_equal(l.n, 3);
    assert_non_null(find(&l, "x"));
    assert_non_null(find(&l, "y"));
    assert_non_null(find(&l, "z:latest"));
    qsf_models_free(&l);
    unsetenv("HF_HUB_CACHE");
    put("h/hub/models--o--n/snapshots/r/home.gguf", "1");
    (void)snprintf(path, sizeof path, "%s/h", home);
    setenv("HF_HOME", path, 1);
    list(NULL, &l);
    assert_non_null(find(&l, "home"));
    qsf_models_free(&l);
}

/* Nothing of this is a model, and nothing of it hangs, leads out of the store or is opened. */
static void test_hostile(void **state) {
    QSFModelList l;
    (void)state;
    put(LIBRARY "m/cut", "{\"layers\":[{\"mediaType\":");
    put(LIBRARY "m/empty", "");
    put(LIBRARY "m/up", MANIFEST("sha256:../../../../../../../../../etc/passwd"));
    put(LIBRARY "m/short", MANIFEST("sha256:aaaa"));
    put(LIBRARY "m/upper",
        MANIFEST("sha256:ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB"));
    put(LIBRARY "m/gone", MANIFEST("sha256:" DIGEST_B));
    put(LIBRARY "m/types", "{\"layers\":{\"mediaType\":1}}");
    put(LIBRARY "m/list", "[[[[1]]]]");
    put(LIBRARY "m/none", "{\"layers\":[1,null,{},{\"mediaType\":7,\"digest\":8}]}");
    put(LIBRARY "m/with\nline", MANIFEST("sha256:" DIGEST_A));
    put(BLOBS DIGEST_A, "ollama");
    put_link(HUB "models--o--loop/snapshots/r/self", ".");
    put_link(HUB "models--o--loop/snapshots/r/up", "..");
    put_link(HUB "models--o--loop/snapshots/r/dead.gguf", "../../blobs/gone");
    put_link(HUB "models--o--loop/snapshots/r/round.gguf", "round.gguf");
    put(HUB "models--o--ref/refs/main", "../../../../secret");
    put("secret/x.gguf", "secret");
    put_link(".lmstudio/models/home", home);
    put(".cache/llama.cpp/with\033[2Jescape.gguf", "1");
    assert_int_equal(mkfifo(made(".cache/llama.cpp/pipe.gguf"), 0600), 0);
    assert_int_equal(mkfifo(made(LIBRARY "m/pipe"), 0600), 0);
    list(NULL, &l);
    for (size_t i = 0; i < l.n; i++)
        if (strcmp(l.items[i].name, "x") != 0) fail_msg("%s", l.items[i].path);
    assert_int_equal(l.n, 1); /* secret/x, once, through the link in the folders of LM Studio */
    qsf_models_free(&l);
}

/* A blob that has two names, and folders that contain each other many times. */
static void test_again(void **state) {
    QSFModelList l;
    char name[100], to[40];
    (void)state;
    put("one.gguf", "1");
    assert_int_equal(link("one.gguf", made("two.gguf")), 0);
    for (int i = 0; i < 12; i++) {
        for (int k = 0; k < 12; k++) {
            (void)snprintf(name, sizeof name, ".lmstudio/models/d%d/n%d", i, k);
            (void)snprintf(to, sizeof to, "../d%d", k);
            put_link(name, to);
        }
    }
    list(NULL, &l);
    assert_int_equal(l.n, 1);
    assert_string_equal(l.items[0].name, "one");
    qsf_models_free(&l);
}

/* With an adapter the weights are not those of the model. No beginning of a manifest is enough. */
static void test_manifest(void **state) {
    static const char both[] = "{\"layers\":[" LAYER("adapter",
                                                     "sha256:1") "," LAYER("model", "sha256:" DIGEST_A) "]}";
    QSFModelList l;
    QSFModelFacts f;
    QSFSettings s;
    char name[200], part[sizeof both];
    (void)state;
    qsf_settings_default(&s);
    put(BLOBS DIGEST_A, "ollama");
    for (size_t n = 0; n < sizeof both - 1; n += 7) {
        (void)snprintf(name, sizeof name, LIBRARY "m/t%zu", n);
        (void)snprintf(part, sizeof part, "%.*s", (int)n, both);
        put(name, part);
    }
    put(LIBRARY "m/whole", both);
    list(NULL, &l);
    assert_int_equal(l.n, 1);
    assert_string_equal(l.items[0].name, "m:whole");
    qsf_model_facts(&l.items[0], &s, 0, &f);
    assert_false(f.usable);
    assert_string_equal(f.verdict, "not supported: it has an adapter (LoRA)");
    qsf_models_free(&l);
}

static void means(const char *name, const char *path, const char *hint_has) {
    char hint[400], want[2048];
    char *got = qsf_model_resolve(name, NULL, hint, sizeof hint);
    (void)snprintf(want, sizeof want, "%s/%s", home, path ? path : "");
    if (*hint)
        assert_null(got);
    else
        assert_string_equal(got, path ? want : name);
    if (!strstr(hint, hint_has) || (!*hint_has && *hint)) fail_msg("%s: %s", name, hint);
    free(got);
}

static void test_names(void **state) {
    (void)state;
    put("real.gguf", "1");
    put(LIBRARY "gemma3/latest", MANIFEST("sha256:" DIGEST_A));
    put(LIBRARY "gemma3/4b", MANIFEST("sha256:" DIGEST_B));
    put(LIBRARY "phi/14b", MANIFEST("sha256:" DIGEST_C));
    put(BLOBS DIGEST_A, "a");
    put(BLOBS DIGEST_B, "b");
    put(BLOBS DIGEST_C, "c");
    put(".cache/llama.cpp/gemma-3-4b-it-Q4_K_M.gguf", "x");
    put(".cache/llama.cpp/twice.gguf", "1");
    put(".lmstudio/models/p/r/twice.gguf", "2");
    put("folder/sub/inside.gguf", "3");
    put("empty/none.txt", "");
    put("hf/config.json", "{}");
    means("guide", NULL, "");
    means("real.gguf", NULL, ""); /* a file of that name */
    means("gemma3:4b", BLOBS DIGEST_B, "");
    means("gemma3", BLOBS DIGEST_A, "");
    means("phi", BLOBS DIGEST_C, "");
    means("gemma-3-4b-it-Q4_K_M", ".cache/llama.cpp/gemma-3-4b-it-Q4_K_M.gguf", "");
    means("GEMMA-3-4b-it-q4_k_m", ".cache/llama.cpp/gemma-3-4b-it-Q4_K_M.gguf", "");
    means("twice", NULL, "twice is the name of 2 models: ");
    means("twice", NULL, "/.lmstudio/models/p/r/twice.gguf");
    means("gemma3:4c", NULL, "did you mean gemma3:4b?");
    means("rael.gguf", NULL, "did you mean real.gguf?");
    means("folder/sub/insade.gguf", NULL, "did you mean inside.gguf?");
    means("Q4_K_M", NULL, "did you mean gemma-3-4b-it-Q4_K_M?");
    means("nothing like that at all", NULL, "no such file or model; qsf-chat --list-models lists");
    means("bad\033name", NULL, "no such file or model");
    means("", NULL, "the name of the model is empty");
    means("missing/zzz", NULL, "");
    means("zzz.GGUF", NULL, "");
    assert_int_equal(symlink("removed", "rael.gguf"), 0);
    means("rael.gguf", NULL, ""); /* a link to nothing is not a name that is wrong */
    assert_int_equal(unlink("rael.gguf"), 0);
    means("folder", NULL, "this is a folder; name the model in it: inside.gguf");
    means("empty", NULL, "there are no models in this folder, and no tokenizer.json or tokenizer.model");
    assert_true(qsf_model_is_folder("folder"));
    assert_false(qsf_model_is_folder("real.gguf"));
    assert_false(qsf_model_is_folder("missing"));
    assert_false(qsf_model_is_folder("hf"));
}

static void facts_of(const char *name, const char *budget, QSFModelFacts *f) {
    QSFSettings s;
    QSFModelList l;
    char err[200];
    qsf_settings_default(&s);
    assert_int_equal(qsf_setting_set(&s, qsf_setting_find("ram-budget"), budget, err, sizeof err), 0);
    list(NULL, &l);
    assert_non_null(find(&l, name));
    qsf_model_facts(find(&l, name), &s, 0, f);
    qsf_models_free(&l);
}

static void test_facts(void **state) {
    const QsfTinySpec small = { .layers = 2 };
    const QsfTinySpec large = { .layers = 8, .hidden = 512, .ffn = 1536 };
    QSFModelFacts f;
    char some[24],
        much[24]; /* a budget for a part of the large one, and for all, whatever a sanitizer takes */
    (void)state;
    assert_int_equal(qsf_test_write_tiny_llama(made("small.gguf"), &small), 0);
    assert_int_equal(qsf_test_write_tiny_llama(made("large.gguf"), &large), 0);
    (void)snprintf(some, sizeof some, "%llu", (unsigned long long)(qsf_rss_bytes() >> 20) + 34);
    (void)snprintf(much, sizeof much, "%llu", (unsigned long long)(qsf_rss_bytes() >> 20) + 200);
    put("junk.gguf", "this is not a model, but text");
    facts_of("small", much, &f);
    assert_true(f.usable);
    assert_string_equal(f.verdict, "fits");
    assert_non_null(strstr(f.arch, "llama "));
    assert_true(f.type[0]);
    facts_of("small", "1", &f);
    assert_false(f.usable);
    assert_non_null(strstr(f.verdict, "needs a budget of "));
    facts_of("junk", much, &f);
    assert_false(f.usable);
    assert_non_null(strstr(f.verdict, "not supported: a text file"));
    facts_of("large", some, &f);
    assert_true(f.usable);
    if (!strstr(f.verdict, " %, about ")) fail_msg("%s", f.verdict);
    assert_ptr_equal(strstr(f.verdict, "streams "), f.verdict);
    /* What was measured is used the next time. */
    QsfRates r;
    qsf_rates_read(&r);
    assert_int_equal(r.n, 2);
    for (unsigned i = 0; i < r.n; i++) qsf_rates_put(&r, r.items[i].name, i == 0 ? 1e7 : 1e12);
    qsf_rates_write(&r);
    facts_of("large", some, &f);
    const char *about = strstr(f.verdict, "about ");
    assert_non_null(about);
    const double tps = strtod(about + 6, NULL);
    if (!(tps > 0 && tps < 10)) fail_msg("%s", f.verdict);
}

static void test_rates(void **state) {
    QsfRates r;
    char name[40];
    (void)state;
    qsf_rates_read(&r);
    assert_int_equal(r.n, 0);
    put(".local/state/qsf/rates",
        "disk-1 100\n\nbad\ndisk-2 -5\ndisk-3 nan\ndisk-4 inf\n 7\ndisk-5 1e3 x\n"
        "a-name-that-is-much-longer-than-any-name-of-a-rate-can-be 5\ndisk-6 2.5e9");
    qsf_rates_read(&r);
    assert_int_equal(r.n, 2);
    assert_true(qsf_rates_get(&r, "disk-1") == 100 && qsf_rates_get(&r, "disk-6") == 2.5e9);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "k%d", i);
        qsf_rates_put(&r, name, i + 1);
    }
    assert_int_equal(r.n, QSF_RATES_MOST);
    assert_true(qsf_rates_get(&r, "k99") == 100 && qsf_rates_get(&r, "k0") == 0);
    qsf_rates_write(&r);
    qsf_rates_read(&r);
    assert_true(qsf_rates_get(&r, "k99") == 100);
}

static void last_is(const char *name) {
    char want[200];
    char *last = qsf_model_last();
    (void)snprintf(want, sizeof want, "%s/%s", home, name);
    assert_non_null(last);
    assert_string_equal(last, want);
    free(last);
}

static void test_last(void **state) {
    (void)state;
    assert_null(qsf_model_last());
    put("m.gguf", "1");
    qsf_model_remember("./m.gguf");
    last_is("m.gguf");
    qsf_model_remember("with\nline");
    last_is("m.gguf");
    assert_int_equal(unlink("m.gguf"), 0);
    assert_null(qsf_model_last()); /* it is gone */
    put(".local/state/qsf/last-model", "relative\n");
    assert_null(qsf_model_last());
}

/* From the smallest to the largest; the one for a machine is the largest that fits in half of its memory. */
static void test_suggestions(void **state) {
    (void)state;
    const QSFModelSuggestion *s, *last = qsf_model_suggestion(0);
    for (size_t i = 0; (s = qsf_model_suggestion(i)) != NULL; i++, last = s) {
        assert_int_equal(strncmp(s->name, "hf:", 3), 0);
        assert_true(s->bytes >= last->bytes);
        assert_true(qsf_model_suggestion_fits(s, 4 * s->bytes));
        assert_false(qsf_model_suggestion_fits(s, 2 * s->bytes));
        assert_ptr_equal(qsf_model_suggested(3 * s->bytes + (1u << 30)), s);
    }
    assert_ptr_equal(qsf_model_suggested(0), qsf_model_suggestion(0));
    assert_ptr_equal(qsf_model_suggested(UINT64_MAX), last);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = { T(test_layouts),  T(test_variables),  T(test_hostile), T(test_again),
                                        T(test_manifest), T(test_names),      T(test_facts),   T(test_rates),
                                        T(test_last),     T(test_suggestions) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
