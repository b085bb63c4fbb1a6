/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which sanitizer this is compiled with: gcc defines macros, clang has features. */
#ifndef QSF_BASE_SANITIZER_H
#define QSF_BASE_SANITIZER_H

#ifdef __has_feature
#define QSF_HAS_FEATURE(name) __has_feature(name)
#else
#define QSF_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || QSF_HAS_FEATURE(address_sanitizer)
#define QSF_ADDRESS_SANITIZER 1
#else
#define QSF_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || QSF_HAS_FEATURE(thread_sanitizer)
#define QSF_THREAD_SANITIZER 1
#else
#define QSF_THREAD_SANITIZER 0
#endif

#if QSF_HAS_FEATURE(memory_sanitizer)
#define QSF_MEMORY_SANITIZER 1
#else
#define QSF_MEMORY_SANITIZER 0
#endif

#endif
