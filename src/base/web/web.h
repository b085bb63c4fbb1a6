/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A web browser as a system (platform.h), which has neither files nor mappings nor descriptors.
 *
 * The module runs in a worker of the page. Its first thread, the owner of the engine, does nothing but handle
 * messages and events: it must never wait for another thread, because all of them need it to start threads
 * and to read files. */
#ifndef QSF_BASE_WEB_WEB_H
#define QSF_BASE_WEB_WEB_H

#include <stdint.h>

/* Adds a file that the page can read: one that was picked, or one on a server. Returns its number, which the
 * page is asked to read it by; -1 if there are too many, or out of memory. Owner's thread. */
int qsf_web_file_add(const char *name, uint64_t size);

/* Sets how large the linear memory can become. Before the engine starts. */
void qsf_web_memory_limit(uint64_t bytes);

#endif
