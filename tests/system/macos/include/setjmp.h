/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SETJMP_H
#define STUB_SETJMP_H
typedef int jmp_buf[48];
typedef int sigjmp_buf[49];
void longjmp(jmp_buf b, int value) __attribute__((noreturn));
int setjmp(jmp_buf b) __attribute__((returns_twice));
void siglongjmp(sigjmp_buf b, int value) __attribute__((noreturn));
int sigsetjmp(sigjmp_buf b, int mask) __attribute__((returns_twice));
#endif
