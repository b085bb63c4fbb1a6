/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a program and its child "qsf-get --request" say to each other: one HTTP request, as frames of a kind
 * (one byte), the length of the body (four bytes, the lowest first) and the body. The program has no network
 * library; no key is ever on a command line. Not installed. */
#ifndef QSF_REQUEST_H
#define QSF_REQUEST_H

/* Frames of the request, on standard input up to its end; each at most once, in any order. */
#define QSF_REQUEST_URL    'U' /* http or https */
#define QSF_REQUEST_SOCKET 'S' /* path of a unix socket, instead of the host of the URL */
#define QSF_REQUEST_KEY    'K' /* for "Authorization: Bearer" */
#define QSF_REQUEST_STALL  'T' /* decimal seconds without a byte after which it fails */
#define QSF_REQUEST_BODY   'B' /* JSON to post; without it the request is a GET */
#define QSF_REQUEST_DELAY  'W' /* decimal milliseconds to wait before it */

/* Frames of the reply, on standard output as it arrives, in this order. */
#define QSF_REPLY_HEAD 'H' /* lines: status, type, seconds of Retry-After, location, server; "" = not sent */
#define QSF_REPLY_DATA 'D' /* bytes of the body; any number of frames */
#define QSF_REPLY_END  'E' /* "" = complete, otherwise why not, in one sentence */

#endif
