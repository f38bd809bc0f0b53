/* bytes/libcrypto.c - the digests of libcrypto, each fetched once.
 *
 * Fetching searches through the providers, which costs more than the digest of a
 * small tensor.  It is done in a library context of our own: where an allocation
 * fails while the default context is made, libcrypto 3.0 goes on with the half of
 * it and reads NULL, while a new context is made whole or not at all. */
#include "bytes/libcrypto.h"
#include "base/error.h"

#include <openssl/crypto.h>
#include <pthread.h>

static const char *const names[TN_CRYPTO_DIGESTS] = { [TN_CRYPTO_SHA1] = "SHA1",
                                                      [TN_CRYPTO_SHA256] = "SHA256" };

static struct fetched {
    OSSL_LIB_CTX *library;
    EVP_MD       *digest;
} digests[TN_CRYPTO_DIGESTS];

static pthread_mutex_t fetching = PTHREAD_MUTEX_INITIALIZER;

/* A failure is not remembered: memory may be there the next time.  What is left of it goes with its
 * context. */
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
    if (!digest)                /* libcrypto calls a digest unsupported too where memory ran out on the way to
                                 * it */
        return tn_fail(err, TN_ERR_NOMEM, "libcrypto gives no %s: out of memory, or built without it",
                       names[kind]);
    *context = EVP_MD_CTX_new();
    if (*context && EVP_DigestInit_ex2(*context, digest, NULL) == 1)
        return TN_OK;
    EVP_MD_CTX_free(*context);
    return tn_fail_nomem(err);
}
