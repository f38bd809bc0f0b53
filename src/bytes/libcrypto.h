/* bytes/libcrypto.h - the digests of libcrypto, each fetched once. */
#ifndef TN_BYTES_LIBCRYPTO_H
#define TN_BYTES_LIBCRYPTO_H

#include <openssl/evp.h>
#include <tenon/error.h>

typedef enum tn_crypto_digest {
    TN_CRYPTO_SHA1, TN_CRYPTO_SHA256, TN_CRYPTO_MD5, TN_CRYPTO_DIGESTS
} tn_crypto_digest;

/* A context in which a digest of this kind has begun: EVP_DigestUpdate() is next,
 * EVP_MD_CTX_free() last.  TN_ERR_NOMEM otherwise; another try may succeed.
 * Thread-safe. */
tn_status tn_crypto_begin(tn_crypto_digest kind, EVP_MD_CTX **context, tn_error *err);

#endif
