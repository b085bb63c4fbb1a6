/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_STDIO_H
#define STUB_STDIO_H
#include "qsf_darwin.h"
#include <stdarg.h>
typedef struct stub_file FILE;
typedef int64_t fpos_t;
extern FILE *__stdinp, *__stdoutp, *__stderrp;
#define stdin        __stdinp
#define stdout       __stdoutp
#define stderr       __stderrp
#define EOF          (-1)
#define BUFSIZ       1024
#define SEEK_SET     0
#define SEEK_CUR     1
#define SEEK_END     2
#define _IOFBF       0
#define _IOLBF       1
#define _IONBF       2
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
int asprintf(char **out, const char *fmt, ...) PRINTF(2, 3);
void clearerr(FILE *f);
int dprintf(int fd, const char *fmt, ...) PRINTF(2, 3);
int fclose(FILE *f);
FILE *fdopen(int fd, const char *mode);
int feof(FILE *f);
int ferror(FILE *f);
int fflush(FILE *f);
int fgetc(FILE *f);
char *fgets(char *s, int n, FILE *f);
int fileno(FILE *f);
FILE *fopen(const char *path, const char *mode);
int fprintf(FILE *f, const char *fmt, ...) PRINTF(2, 3);
int fputc(int c, FILE *f);
int fputs(const char *s, FILE *f);
size_t fread(void *p, size_t size, size_t n, FILE *f);
int fscanf(FILE *f, const char *fmt, ...) __attribute__((format(scanf, 2, 3)));
int fseeko(FILE *f, off_t off, int whence);
off_t ftello(FILE *f);
size_t fwrite(const void *p, size_t size, size_t n, FILE *f);
int getc(FILE *f);
ssize_t getline(char **line, size_t *cap, FILE *f);
int linkat(int from, const char *a, int to, const char *b, int flags);
int pclose(FILE *f);
FILE *popen(const char *command, const char *mode);
int printf(const char *fmt, ...) PRINTF(1, 2);
int putc(int c, FILE *f);
int putchar(int c);
int puts(const char *s);
int remove(const char *path);
int rename(const char *a, const char *b);
int renameat(int from, const char *a, int to, const char *b);
void rewind(FILE *f);
int setvbuf(FILE *f, char *buf, int mode, size_t size);
int snprintf(char *s, size_t n, const char *fmt, ...) PRINTF(3, 4);
int sprintf(char *s, const char *fmt, ...) PRINTF(2, 3);
int sscanf(const char *s, const char *fmt, ...) __attribute__((format(scanf, 2, 3)));
int vfprintf(FILE *f, const char *fmt, va_list args) PRINTF(2, 0);
int vprintf(const char *fmt, va_list args) PRINTF(1, 0);
int vsnprintf(char *s, size_t n, const char *fmt, va_list args) PRINTF(3, 0);
#undef PRINTF
#endif
