/* SPDX-License-Identifier: GPL-3.0-or-later */
#undef assert
void __assert_rtn(const char *fn, const char *file, int line, const char *what) __attribute__((noreturn));
#ifdef NDEBUG
#define assert(e) ((void)0)
#else
#define assert(e) ((e) ? (void)0 : __assert_rtn(__func__, __FILE__, __LINE__, #e))
#endif
#define static_assert _Static_assert
