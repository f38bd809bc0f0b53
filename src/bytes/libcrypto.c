/* bytes/libcrypto.c - the digests of libcrypto, each fetched once.
 *
 * Fetching costs more than the digest of a small tensor.  It uses a library context of our own: if an
 * allocation fails while libcrypto 3.0 creates the default context, it continues with an incomplete one and
 * reads NULL. */
#include "bytes/libcrypto.h"
#include "base/error.h"

#include <openssl/crypto.h>
#include <pthread.h>

static const char *const names[TN_CRYPTO_DIGESTS] = { [TN_CRYPTO_SHA1] = "SHA1",
                                                      [TN_CRYPTO_SHA256] = "SHA256",
                                                      [TN_CRYPTO_MD5] = "MD5" };

static struct fetched {
    OSSL_LIB_CTX *library;
    EVP_MD       *digest;
} digests[TN_CRYPTO_DIGESTS];

static pthread_mutex_t fetching = PTHREAD_MUTEX_INITIALIZER;

/* A failure is not remembered: there may be memory the next time. */
static EVP_MD *fetch(tn_crypto_digest kind)
{
    struct fetched *f = &digests[kind];
    pthread_mutex_lock(&fetching);
    if (!f->digest && (f->library = OSSL_LIB_CTX_new())) {
        f->digest = EVP_MD_fetch(f->library, names[kind], NULL);
        if (!f->digest)
            OSSL_LIB_CTX_free(f->library);
    }
    EVP_MD *digest = f->digest;
    pthread_mutex_unlock(&fetching);
    return digest;
}

tn_status tn_crypto_begin(tn_crypto_digest kind, EVP_MD_CTX **context, tn_error *err)
{
    EVP_MD *digest = fetch(kind);
    if (!digest)                /* libcrypto says "unsupported" also if memory ran out */
        return tn_fail(err, TN_ERR_NOMEM, "libcrypto gives no %s: out of memory, or built without it",
                       names[kind]);
    *context = EVP_MD_CTX_new();
    if (*context && EVP_DigestInit_ex2(*context, digest, NULL) == 1)
        return TN_OK;
    EVP_MD_CTX_free(*context);
    return tn_fail_nomem(err);
}
