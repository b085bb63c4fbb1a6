/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of a repository: of a hub, or of a snapshot on this machine; and which of them are meant. One
 * thread. */
#ifndef QSF_GET_LIST_H
#define QSF_GET_LIST_H

#include "get/http.h"
#include "get/ref.h"

typedef struct GetEntry {
    char *path; /* relative, safe (ref.h) */
    uint64_t bytes;
} GetEntry;

typedef struct GetList {
    GetEntry *items; /* (n), by path */
    size_t n, cap;
} GetList;

/* Lists what the hub has (its "tree" call, all pages). QSF_E_MODEL: no such repository or revision, or not
 * allowed; QSF_E_RUNTIME: the network, or the answer is not a list. out is zeroed or a list to add to. */
int get_list_hub(GetHttp *h, const GetRef *ref, GetList *out, QsfErr *err);
/* Lists a folder, at most four levels deep; links to missing files are left out. QSF_E_RUNTIME. */
int get_list_folder(const char *folder, GetList *out, QsfErr *err);
void get_list_free(GetList *l);

/* One model of a repository: a file, its shards, or all files of a model with safetensors weights. */
typedef struct GetChoice {
    size_t *parts; /* (n) indices of the list, the file to load first */
    size_t n;
    uint64_t bytes;
    bool folder; /* the model is their folder */
} GetChoice;

typedef struct GetChoices {
    GetChoice *items; /* (n), largest first */
    size_t n;
    size_t chosen; /* the one that is meant */
} GetChoices;

/* Finds the models in l and what `what` means: a path, the name of a file, or a weight type in its name
 * ("Q4_K_M", any case); "" chooses the largest that fits in room bytes, or else the smallest. A file that is
 * named may be of any kind. QSF_E_MODEL: nothing or several match, with the names in the message. */
int get_choose(const GetList *l, const char *what, uint64_t room, GetChoices *out, QsfErr *err);
void get_choices_free(GetChoices *c);

#endif
