/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --svg: the pictures of --plan and --bench. One part collects the numbers, another one draws them, so that
 * tests can draw numbers of their own: the same numbers give the same bytes. */
#ifndef QSF_RUN_PICTURE_H
#define QSF_RUN_PICTURE_H

#include "src/base/newfile.h"
#include "src/run/run.h"

/* --- picture_file.c: where the picture goes --- */
typedef struct RunPicture {
    QsfNewFile file;  /* not open: standard output */
    const char *path; /* NULL: no picture is wanted */
} RunPicture;
/* Prepares the file of --svg before anything is measured, so that a folder that cannot be written to is
 * reported at once. The file that exists there is not touched. rt: has the model open, whose files are not to
 * be replaced. Returns an exit code and prints the message. */
int run_picture_begin(RunPicture *p, const RunOptions *o, const QsfRuntime *rt);
/* Writes the picture and gives the file its name, unless a signal came. The same results. */
int run_picture_write(RunPicture *p, const QsfStrbuf *svg);
/* Drops what was not written; also after run_picture_write, and for a zeroed one. */
void run_picture_end(RunPicture *p);
/* Does the picture take standard output, so that nothing else may be written there? */
bool run_picture_is_stdout(const RunOptions *o);

/* Writes the name of the model, without its folder, and what it is: "tiny.gguf, llama 1.1B Q4_0". */
void run_model_title(const RunOptions *o, const QsfRuntime *rt, char *dst, size_t cap);
#define RUN_TITLE_BYTES 400

/* --- sweep.c: what ten budgets buy --- */
#define RUN_BUDGETS 10
typedef enum RunOwner { /* of memory, from the bottom of a stack */
                        RUN_OWNER_WEIGHTS,
                        RUN_OWNER_SLOTS,
                        RUN_OWNER_KV,
                        RUN_OWNER_COMPUTING,
                        RUN_OWNER_TEXT,
                        RUN_OWNER_PROGRAM,
                        RUN_OWNER_N
} RunOwner;

typedef struct RunSweep {
    char model[RUN_TITLE_BYTES];
    double weights_mb, disk_gbps; /* 0: nothing streams, or the disk could not be measured */
    int threads;
    bool predicted;  /* there are speeds */
    unsigned n;      /* budgets, 1 to RUN_BUDGETS; ascending */
    unsigned chosen; /* one of them */
    double budget_mb[RUN_BUDGETS], tps[RUN_BUDGETS], read_mb[RUN_BUDGETS]; /* read: from disk per token */
    double context[RUN_BUDGETS];                                           /* tokens */
    double owner_mb[RUN_OWNER_N][RUN_BUDGETS];
} RunSweep;

/* Plans with each budget; the speeds come from the prediction of rt, which has a plan and may lack the speed
 * of the disk: that is then measured. Weights are not loaded. Returns an exit code and prints the message. */
int run_sweep(RunSweep *s, const RunOptions *o, QsfRuntime *rt);

/* --- plan_picture.c --- */
void run_plan_picture(QsfStrbuf *svg, const RunSweep *s);

/* --- curve.c: speeds against length --- */
#define RUN_LENGTHS       16
#define RUN_CURVE_SECONDS 60.0

typedef struct RunCurvePlan {
    uint32_t length[RUN_LENGTHS]; /* (n) ascending */
    unsigned n;
    uint32_t n_gen; /* tokens to be decoded after each */
    unsigned rounds;
    double seconds; /* expected */
} RunCurvePlan;

/* Chooses lengths, doubling from 8 up to a context of ctx tokens, and rounds, at most `repeats`, so that the
 * measurement takes at most RUN_CURVE_SECONDS at these speeds, which do not depend on length yet. n is 0
 * where not even the first one can be measured. */
void run_curve_plan(RunCurvePlan *p, uint32_t ctx, double prefill_tps, double decode_tps, unsigned repeats);

typedef struct RunCurve {
    unsigned n;                                                                    /* at most RUN_LENGTHS */
    double length[RUN_LENGTHS], prefill_tps[RUN_LENGTHS], decode_tps[RUN_LENGTHS]; /* medians */
} RunCurve;
/* Returns the median of n values, n > 0, which it sorts. */
double run_median(double *v, size_t n);
/* Prefills each length from an empty context, then decodes. ids: as many as the longest one and n_gen need.
 * Ends after RUN_CURVE_SECONDS, with fewer lengths, if that takes longer than expected. Codes of
 * qsf_forward_eval. */
int run_curve(RunCurve *c, const RunCurvePlan *p, QsfRuntime *rt, const int32_t *ids, QsfErr *err);

/* --- bench_picture.c --- */
typedef struct RunBenchNumbers {
    char model[RUN_TITLE_BYTES];
    double budget_mb, peak_mb, prefill_tps, decode_tps, streamed_mb; /* streamed: per token */
    uint32_t n_prompt, n_gen;
    int threads;
    const char *level; /* of the kernels */
    RunBreakdown part;
    RunCurve curve;
} RunBenchNumbers;
void run_bench_picture(QsfStrbuf *svg, const RunBenchNumbers *n);

#endif
