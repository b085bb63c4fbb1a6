/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /v1/responses, OpenAI's other interface for answers (platform.openai.com/docs/api-reference/responses): its
 * requests become those of /v1/chat/completions, and answers get its forms. The server keeps no responses. */
#ifndef QSF_SERVE_RESPONSES_H
#define QSF_SERVE_RESPONSES_H

#include "serve/job.h"

/* Replaces a body (len, cap bytes that are charged to memory, or NULL) by that of a request of
 * /v1/chat/completions with the same meaning, which is charged in its place. What that interface checks is
 * not checked. false with *e set: status 400, 503 if the server has no memory for it, or 500. Any thread;
 * takes the lock. */
bool serve_responses_replace(char **body, size_t *len, size_t *cap, ServeMemory *memory,
                             pthread_mutex_t *lock, ServeError *e);
/* Makes an error about a request of /v1/chat/completions one about the request that it was made of. */
void serve_responses_rename(ServeError *e);

/* Appends the whole answer of a job that has ended without an error. Under the lock. */
void serve_responses_whole(const ServeJob *job, QsfStrbuf *b);
/* Appends the next events of a stream to job->out, as far as there is something to send. Under the lock. */
void serve_responses_next(ServeJob *job);
/* Ends a stream that has an error: job->out has its last event and nothing else, and the job no logprobs.
 * Under the lock. */
void serve_responses_break(ServeJob *job);

#endif
