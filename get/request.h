/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-get --request: one HTTP request for another program (qsf_request.h). */
#ifndef QSF_GET_REQUEST_H
#define QSF_GET_REQUEST_H

/* Reads a request from in, sends it and writes the reply to out; stops when out has no reader. Returns the
 * exit status: 0 also if the request failed, which the last frame says. */
int get_request_run(int in, int out);

#endif
