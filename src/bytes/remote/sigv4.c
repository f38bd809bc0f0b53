/* bytes/remote/sigv4.c - AWS Signature Version 4. */
#include "bytes/remote/sigv4.h"
#include "bytes/libcrypto.h"

#include <stdio.h>
#include <string.h>

enum { DIGEST = 32, BLOCK = 64 };

static tn_status sha256(const void *first, size_t nfirst, const void *second, size_t nsecond,
                        uint8_t digest[DIGEST], tn_error *err)
{
    EVP_MD_CTX *context;
    TN_TRY(tn_crypto_begin(TN_CRYPTO_SHA256, &context, err));
    bool good = EVP_DigestUpdate(context, first, nfirst) == 1 &&
                EVP_DigestUpdate(context, second, nsecond) == 1 &&
                EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    return good ? TN_OK : tn_fail_nomem(err);
}

/* HMAC of RFC 2104, with a key of at most one block. */
static tn_status hmac(const void *key, size_t nkey, const void *data, size_t n, uint8_t mac[DIGEST],
                      tn_error *err)
{
    uint8_t inner[BLOCK], outer[BLOCK];
    memset(inner, 0x36, BLOCK);
    memset(outer, 0x5c, BLOCK);
    for (size_t i = 0; i < nkey && i < BLOCK; i++) {
        inner[i] ^= ((const uint8_t *)key)[i];
        outer[i] ^= ((const uint8_t *)key)[i];
    }
    tn_status status = sha256(inner, BLOCK, data, n, mac, err);
    if (!status)
        status = sha256(outer, BLOCK, mac, DIGEST, mac, err);
    explicit_bzero(inner, BLOCK);
    explicit_bzero(outer, BLOCK);
    return status;
}

static void to_hex(const uint8_t digest[DIGEST], char hex[TN_HEX_SHA256])
{
    for (int i = 0; i < DIGEST; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

tn_status tn_sha256_hex(const void *data, size_t n, char hex[TN_HEX_SHA256], tn_error *err)
{
    uint8_t digest[DIGEST];
    TN_TRY(sha256(data, n, "", 0, digest, err));
    to_hex(digest, hex);
    return TN_OK;
}

static void put_names(const tn_to_sign *s, tn_buf *b)
{
    for (size_t i = 0; i < s->nheaders; i++)
        tn_buf_printf(b, "%s%s", i ? ";" : "", s->headers[i].name);
}

static void put_canonical(const tn_to_sign *s, tn_buf *b)
{
    tn_buf_printf(b, "%s\n%s\n%s\n", s->method, s->path, s->query);
    for (size_t i = 0; i < s->nheaders; i++)
        tn_buf_printf(b, "%s:%s\n", s->headers[i].name, s->headers[i].value);
    tn_buf_putc(b, '\n');
    put_names(s, b);
    tn_buf_printf(b, "\n%s", s->payload);
}

/* The key of a day, region and service, from the secret. */
static tn_status derive_key(const tn_to_sign *s, uint8_t key[DIGEST], tn_error *err)
{
    char first[BLOCK];
    int n = snprintf(first, sizeof first, "AWS4%s", s->secret);
    if (n < 0 || (size_t)n >= sizeof first)
        return tn_fail(err, TN_ERR_ARGUMENT, "the secret access key is longer than %d characters", BLOCK - 5);
    tn_status status = hmac(first, (size_t)n, s->when, 8, key, err);
    explicit_bzero(first, sizeof first);
    const char *const words[] = { s->region, s->service, "aws4_request" };
    for (size_t i = 0; i < 3 && !status; i++)
        status = hmac(key, DIGEST, words[i], strlen(words[i]), key, err);
    return status;
}

static tn_status sign(const tn_to_sign *s, tn_buf *text, char hex[TN_HEX_SHA256], tn_error *err)
{
    uint8_t key[DIGEST], mac[DIGEST];
    char digest[TN_HEX_SHA256];
    put_canonical(s, text);
    TN_NEED(!text->bad, err);
    TN_TRY(tn_sha256_hex(text->data, text->size, digest, err));
    text->size = 0;
    tn_buf_printf(text, "AWS4-HMAC-SHA256\n%s\n%.8s/%s/%s/aws4_request\n%s", s->when, s->when, s->region,
                  s->service, digest);
    TN_NEED(!text->bad, err);
    tn_status status = derive_key(s, key, err);
    if (!status)
        status = hmac(key, DIGEST, text->data, text->size, mac, err);
    explicit_bzero(key, sizeof key);
    if (!status)
        to_hex(mac, hex);
    return status;
}

tn_status tn_sigv4_put(const tn_to_sign *s, tn_buf *out, tn_error *err)
{
    char signature[TN_HEX_SHA256];
    tn_buf text = { 0 };
    tn_status status = sign(s, &text, signature, err);
    tn_buf_free(&text);
    if (status)
        return status;
    tn_buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request,SignedHeaders=", s->id,
                  s->when, s->region, s->service);
    put_names(s, out);
    tn_buf_printf(out, ",Signature=%s", signature);
    return out->bad ? tn_fail_nomem(err) : TN_OK;
}

void tn_sigv4_when(time_t t, char when[17])
{
    struct tm utc;
    if (!gmtime_r(&t, &utc) || strftime(when, 17, "%Y%m%dT%H%M%SZ", &utc) != 16)
        memcpy(when, "19700101T000000Z", 17);
}
