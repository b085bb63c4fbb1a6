/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The models on this machine: in folders that the user named, in the current folder, and in the caches of
 * other programs, which are read in place. Names and manifests there are untrusted. Shared by the programs;
 * not installed. Strings are NUL-terminated. */
#ifndef QSF_MODELS_H
#define QSF_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qsf_engine.h"

#define QSF_MODEL_DIRS 64 /* folders that the user may name */

typedef struct QSFModelEntry {
    char *name;        /* clean, on one line: "gemma-3-4b-it-Q4_K_M", "owner/name", "gemma3:4b" */
    char *path;        /* the file or directory to load; absolute, without control characters */
    const char *place; /* "Ollama", "Hugging Face", "current folder", ...; static */
    const char
        *problem;   /* why it cannot be loaded, as far as that is known without its header; static, or NULL */
    uint64_t bytes; /* all parts of its weights */
} QSFModelEntry;

typedef struct QSFModelList {
    QSFModelEntry *items; /* (n), by place, then by name; a file that has several names is there once */
    size_t n;
    unsigned silent; /* places that did not answer in time, such as a network folder whose server is gone */
    bool cut;        /* there are more than are listed */
} QSFModelList;

/* Lists models without reading them: those of the folders `dirs` (NULL-terminated, or NULL), the current
 * folder and the caches; with only, those of this folder alone. Each place is read by its own thread, which
 * is abandoned after `seconds`. false without memory. Release the list with qsf_models_free. Any thread. */
bool qsf_models_list(const char *const *dirs, const char *only, double seconds, QSFModelList *out);
void qsf_models_free(QSFModelList *l);

/* A directory that has models in it, but is not one itself. */
bool qsf_model_is_folder(const char *path);

/* Finds what a MODEL argument means: a file or directory of that name, "guide", or a model of that name in
 * the list. Returns what to load, malloc'ed; the path of a file that does not exist is returned unchanged.
 * NULL if several models have the name, a similar one exists, none is known, or it is a folder of models:
 * hint is the error, which lists them or says where to look. NULL with "" in hint without memory. Takes at
 * most about 3 seconds. Any thread. */
char *qsf_model_resolve(const char *name, const char *const *dirs, char *hint, size_t cap);

/* What the header of a model tells about it on this machine. */
typedef struct QSFModelFacts {
    char type[24], arch[40]; /* the weight type with the most bytes, and the architecture with the number of
                                parameters: "Q4_K", "llama 1.1B"; "" if unknown */
    char verdict[200];       /* "fits", "streams 40 %, about 3 tok/s", "needs 900 MB", "not supported: ..." */
    bool usable;             /* it can be loaded with these settings */
} QSFModelFacts;

/* Reads the header of a model and plans with settings s. freed: bytes that a loaded model would give back
 * first. Memory is limited to 64 MB. The speed of the disk and of the arithmetic is measured once for each
 * disk and weight type, for at most half a second, and remembered in $XDG_STATE_HOME/qsf/rates. Not in a
 * process with a RAM budget. One thread. */
void qsf_model_facts(const QSFModelEntry *e, const QSFSettings *s, uint64_t freed, QSFModelFacts *out);

/* How fast this machine was when it was measured last: for models that are not on it yet. */
struct QsfRates;
typedef struct QSFModelSpeeds {
    double disk_bps;        /* of the disk that a folder is on, bytes per second; 0 = not known */
    struct QsfRates *rates; /* of arithmetic, by weight type */
} QSFModelSpeeds;
/* Fills *out for models in `folder`, a cache of Hugging Face, which may not exist. A disk that was never
 * measured is measured with the largest model in it, for a quarter of a second. Release with
 * qsf_model_speeds_free. */
void qsf_model_speeds(const char *folder, QSFModelSpeeds *out);
void qsf_model_speeds_free(QSFModelSpeeds *s);
/* Writes "fits, about 20 tok/s", "streams 40 %, about 3 tok/s" or "streams 40 %, disk not measured" for a
 * dense model of that many bytes and that name, with room bytes of memory for weights. The arithmetic is that
 * of the type in its name, or of the slowest one that was measured. Returns the tokens per second; 0 = not
 * known. */
double qsf_model_guess(const QSFModelSpeeds *s, const char *name, uint64_t bytes, uint64_t room,
                       char *verdict, size_t cap);

/* A model to begin with, for a user who has none. Strings are static. */
typedef struct QSFModelSuggestion {
    const char *name; /* "hf:OWNER/NAME:TYPE" */
    uint64_t bytes;   /* of the file, about */
    const char *about;
} QSFModelSuggestion;

/* The i-th of them, the smallest first; NULL at the end. Any thread. */
const QSFModelSuggestion *qsf_model_suggestion(size_t i);
/* Would all of its weights be in RAM with a budget of half of the available bytes? */
bool qsf_model_suggestion_fits(const QSFModelSuggestion *s, uint64_t available);
/* The largest one that fits so, or else the smallest. */
const QSFModelSuggestion *qsf_model_suggested(uint64_t available);

/* The model that was loaded last in any chat, malloc'ed; NULL if none is known. Remembering fails silently:
 * it is a convenience. Any thread. */
char *qsf_model_last(void);
void qsf_model_remember(const char *path);

#endif
