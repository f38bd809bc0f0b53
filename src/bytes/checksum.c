/* bytes/checksum.c - crc32c and crc32 (isa-l), SHA-256 (libcrypto), in pieces. */
#include "bytes/checksum.h"
#include "base/error.h"
#include "base/text.h"
#include "bytes/libcrypto.h"

#include <isa-l/crc.h>
#include <stdio.h>
#include <string.h>

static const char crc32c_prefix[] = "crc32c:0x", crc32_prefix[] = "crc32:0x", sha_prefix[] = "sha256:";

/* Reflected, as their values are: the highest bit is the coefficient of x^0. */
#define CASTAGNOLI UINT32_C(0x82f63b78)
#define ZIP        UINT32_C(0xedb88320)

/* isa-l neither inverts the state it is given nor the one it returns. */
uint32_t tn_crc32c(uint32_t crc, const void *data, size_t n)
{
    static const size_t piece_max = (size_t)1 << 30;        /* isa-l counts with int */
    unsigned char *p = (unsigned char *)(uintptr_t)data;    /* read only, whatever its prototype says */
    uint32_t state = ~crc;
    while (n) {
        size_t piece = n < piece_max ? n : piece_max;
        state = crc32_iscsi(p, (int)piece, state);
        p += piece;
        n -= piece;
    }
    return ~state;
}

/* This one inverts both. */
uint32_t tn_crc32(uint32_t crc, const void *data, size_t n)
{
    return n ? crc32_gzip_refl(crc, data, n) : crc;
}

/* a * b modulo a polynomial. */
static uint32_t multiply(uint32_t a, uint32_t b, uint32_t polynomial)
{
    uint32_t product = 0;
    for (; a; a <<= 1) {
        if (a & UINT32_C(0x80000000))
            product ^= b;
        b = b >> 1 ^ (b & 1 ? polynomial : 0);    /* b times x */
    }
    return product;
}

/* Following A by n bytes multiplies A's remainder by x^(8n): the inversions at
 * both ends of B cancel out. */
static uint32_t join(uint32_t crc_a, uint32_t crc_b, uint64_t size_b, uint32_t polynomial)
{
    uint32_t power = UINT32_C(1) << (31 - 8);               /* x^8, x^16, x^32 ... */
    for (; size_b; size_b >>= 1) {
        if (size_b & 1)
            crc_a = multiply(crc_a, power, polynomial);
        power = multiply(power, power, polynomial);
    }
    return crc_a ^ crc_b;
}

uint32_t tn_crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t size_b)
{
    return join(crc_a, crc_b, size_b, CASTAGNOLI);
}

uint32_t tn_crc32_join(uint32_t crc_a, uint32_t crc_b, uint64_t size_b)
{
    return join(crc_a, crc_b, size_b, ZIP);
}

void tn_digest_join(tn_digest *a, const tn_digest *b, uint64_t size_b)
{
    a->crc = join(a->crc, b->crc, size_b, a->kind == TN_CHECKSUM_CRC32 ? ZIP : CASTAGNOLI);
}

tn_status tn_hash_begin(tn_hash *h, tn_checksum kind, tn_error *err)
{
    *h = (tn_hash){ .kind = kind };
    if (kind == TN_CHECKSUM_NONE || kind == TN_CHECKSUM_CRC32C || kind == TN_CHECKSUM_CRC32)
        return TN_OK;
    if (kind != TN_CHECKSUM_SHA256)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "checksum algorithm %d is not one this build computes",
                       (int)kind);
    EVP_MD_CTX *sha;
    tn_status status = tn_crypto_begin(TN_CRYPTO_SHA256, &sha, err);
    h->sha = status ? NULL : sha;
    return status;
}

void tn_hash_update(tn_hash *h, const void *data, size_t n)
{
    if (h->kind == TN_CHECKSUM_CRC32C)
        h->crc = tn_crc32c(h->crc, data, n);
    else if (h->kind == TN_CHECKSUM_CRC32)
        h->crc = tn_crc32(h->crc, data, n);
    else if (h->sha && n && EVP_DigestUpdate(h->sha, data, n) != 1)
        tn_hash_free(h);        /* tn_hash_end() will say so */
}

tn_status tn_hash_end(tn_hash *h, tn_digest *digest, tn_error *err)
{
    *digest = (tn_digest){ .kind = h->kind, .crc = h->crc };
    bool done =
        h->kind != TN_CHECKSUM_SHA256 || (h->sha && EVP_DigestFinal_ex(h->sha, digest->sha256, NULL) == 1);
    tn_hash_free(h);
    return done ? TN_OK : tn_fail_nomem(err);
}

void tn_hash_free(tn_hash *h)
{
    EVP_MD_CTX_free(h->sha);
    h->sha = NULL;
}

void tn_digest_format(const tn_digest *digest, char text[TN_CHECKSUM_TEXT_MAX])
{
    text[0] = '\0';
    if (digest->kind == TN_CHECKSUM_CRC32C || digest->kind == TN_CHECKSUM_CRC32)
        snprintf(text, TN_CHECKSUM_TEXT_MAX, "%s%08X",
                 digest->kind == TN_CHECKSUM_CRC32 ? crc32_prefix : crc32c_prefix, (unsigned)digest->crc);
    if (digest->kind != TN_CHECKSUM_SHA256)
        return;
    strcpy(text, sha_prefix);
    for (size_t i = 0; i < sizeof digest->sha256; i++)
        snprintf(text + strlen(sha_prefix) + 2 * i, 3, "%02x", digest->sha256[i]);
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

tn_checksum tn_checksum_kind(const char *text)
{
    if (begins(text, crc32c_prefix))
        return TN_CHECKSUM_CRC32C;
    if (begins(text, crc32_prefix))
        return TN_CHECKSUM_CRC32;
    return begins(text, sha_prefix) ? TN_CHECKSUM_SHA256 : TN_CHECKSUM_UNKNOWN;
}

static tn_status parse_crc(const char *digits, tn_digest *digest)
{
    size_t n = 0;
    uint32_t crc = 0;
    for (; digits[n]; n++) {
        int digit = tn_hex_digit(digits[n]);
        if (digit < 0 || n == 8)
            return TN_ERR_CORRUPT;
        crc = crc << 4 | (uint32_t)digit;
    }
    digest->crc = crc;
    return n ? TN_OK : TN_ERR_CORRUPT;
}

static tn_status parse_sha256(const char *digits, tn_digest *digest)
{
    if (strlen(digits) != 2 * sizeof digest->sha256)
        return TN_ERR_CORRUPT;
    for (size_t i = 0; i < sizeof digest->sha256; i++) {
        int high = tn_hex_digit(digits[2 * i]), low = tn_hex_digit(digits[2 * i + 1]);
        if (high < 0 || low < 0)
            return TN_ERR_CORRUPT;
        digest->sha256[i] = (uint8_t)(high << 4 | low);
    }
    return TN_OK;
}

tn_status tn_digest_parse(const char *text, tn_digest *digest, tn_error *err)
{
    *digest = (tn_digest){ .kind = tn_checksum_kind(text) };
    const char *expected = "\"crc32c:0x...\", \"crc32:0x...\" or \"sha256:...\"";
    tn_status status = TN_ERR_CORRUPT;
    if (digest->kind == TN_CHECKSUM_CRC32C || digest->kind == TN_CHECKSUM_CRC32) {
        expected = "1 to 8 hexadecimal digits after 0x";
        status = parse_crc(strchr(text, 'x') + 1, digest);
    } else if (digest->kind == TN_CHECKSUM_SHA256) {
        expected = "64 hexadecimal digits after sha256:";
        status = parse_sha256(text + strlen(sha_prefix), digest);
    }
    if (status)
        return tn_fail(err, status, "checksum: expected %s, found %s", expected, tn_quote_z(text).text);
    return TN_OK;
}

bool tn_digest_equal(const tn_digest *a, const tn_digest *b)
{
    return a->kind == b->kind && a->crc == b->crc && memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0;
}
