/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No memrchr, mempcpy, strchrnul or GNU's strerror_r there. */
#ifndef STUB_STRING_H
#define STUB_STRING_H
#include <stddef.h>
void *memchr(const void *p, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void *memcpy(void *dst, const void *src, size_t n);
void *memmem(const void *p, size_t n, const void *q, size_t m);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *p, int c, size_t n);
char *stpcpy(char *dst, const char *src);
char *strcasestr(const char *s, const char *t);
char *strcat(char *dst, const char *src);
char *strchr(const char *s, int c);
int strcmp(const char *a, const char *b);
int strcoll(const char *a, const char *b);
char *strcpy(char *dst, const char *src);
size_t strcspn(const char *s, const char *set);
char *strdup(const char *s);
char *strerror(int e);
size_t strlen(const char *s);
char *strncat(char *dst, const char *src, size_t n);
int strncmp(const char *a, const char *b, size_t n);
char *strncpy(char *dst, const char *src, size_t n);
char *strndup(const char *s, size_t n);
size_t strnlen(const char *s, size_t n);
char *strpbrk(const char *s, const char *set);
char *strrchr(const char *s, int c);
char *strsignal(int sig);
size_t strspn(const char *s, const char *set);
char *strstr(const char *s, const char *t);
char *strtok(char *s, const char *set);
char *strtok_r(char *s, const char *set, char **save);
#endif
