/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No secure_getenv, qsort_r with GNU's order or malloc_trim there. */
#ifndef STUB_STDLIB_H
#define STUB_STDLIB_H
#include "qsf_darwin.h"
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX     0x7fffffff
#define MB_CUR_MAX   4
void abort(void) __attribute__((noreturn));
int abs(int v);
void *aligned_alloc(size_t align, size_t bytes);
void arc4random_buf(void *p, size_t n);
double atof(const char *s);
int atoi(const char *s);
int atexit(void (*fn)(void));
void *bsearch(const void *key, const void *base, size_t n, size_t size,
              int (*cmp)(const void *, const void *));
void *calloc(size_t n, size_t size);
void exit(int code) __attribute__((noreturn));
void free(void *p);
char *getenv(const char *name);
long labs(long v);
long long llabs(long long v);
void *malloc(size_t n);
size_t mbstowcs(wchar_t *dst, const char *src, size_t n);
char *mkdtemp(char *path);
int mkostemp(char *path, int flags);
int mkstemp(char *path);
int posix_memalign(void **out, size_t align, size_t bytes);
void qsort(void *base, size_t n, size_t size, int (*cmp)(const void *, const void *));
void *realloc(void *p, size_t n);
char *realpath(const char *path, char *out);
int setenv(const char *name, const char *value, int over);
double strtod(const char *s, char **end);
float strtof(const char *s, char **end);
long strtol(const char *s, char **end, int base);
long long strtoll(const char *s, char **end, int base);
unsigned long strtoul(const char *s, char **end, int base);
unsigned long long strtoull(const char *s, char **end, int base);
int system(const char *command);
int unsetenv(const char *name);
size_t wcstombs(char *dst, const wchar_t *src, size_t n);
#endif
