/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "get/certs.h"

#include <stdlib.h>
#include <unistd.h>

static const char *const variables[] = { "SSL_CERT_FILE", "CURL_CA_BUNDLE" };

static const char *const places[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Alpine, NixOS */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* older of them */
    "/etc/ssl/ca-bundle.pem",                            /* openSUSE */
    "/var/lib/ca-certificates/ca-bundle.pem",            /* openSUSE */
    "/etc/ssl/cert.pem",                                 /* BSD, Alpine without the package */
};

const char *get_certs(const char *usual) {
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *v = getenv(variables[i]);
        if (v && *v) return v;
    }
    if (usual && access(usual, R_OK) == 0) return usual;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], R_OK) == 0) return places[i];
    return NULL;
}
