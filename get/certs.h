/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The certificates of authorities that servers are checked with. */
#ifndef QSF_GET_CERTS_H
#define QSF_GET_CERTS_H

/* The path of a file of certificates: what the environment says (SSL_CERT_FILE, or else CURL_CA_BUNDLE),
 * whether it exists or not; else usual, the file that libcurl was made for (NULL = none), if it can be read;
 * else the first of the places of well-known systems that can be. NULL if there is none. Valid as long as
 * usual and the environment. */
const char *get_certs(const char *usual);

#endif
