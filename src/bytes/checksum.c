/* bytes/checksum.c - crc32c and crc32 (isa-l), SHA-256 (libcrypto), in pieces. */
#include "bytes/checksum.h"
#include "base/error.h"
#include "base/text.h"
#include "bytes/libcrypto.h"

#include <isa-l/crc.h>
#include <stdio.h>
#include <string.h>

/* What the text of a checksum begins with. */
static const struct { tn_checksum kind; const char *text; } prefixes[] = {
    { TN_CHECKSUM_CRC32C, "crc32c:0x" }, { TN_CHECKSUM_CRC32, "crc32:0x" }, { TN_CHECKSUM_SHA256, "sha256:" },
};
enum { PREFIXES = sizeof prefixes / sizeof *prefixes };

static bool is_crc(tn_checksum kind)
{
    return kind == TN_CHECKSUM_CRC32C || kind == TN_CHECKSUM_CRC32;
}

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
    if (kind == TN_CHECKSUM_NONE || is_crc(kind))
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

/* Without printf: a file may have 100,000 checksums. */
static void put_hex(char *to, const uint8_t *bytes, size_t n, const char *digits)
{
    for (size_t i = 0; i < n; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    *to = '\0';
}

void tn_digest_format(const tn_digest *digest, char text[TN_CHECKSUM_TEXT_MAX])
{
    text[0] = '\0';
    for (size_t i = 0; i < PREFIXES; i++)
        if (prefixes[i].kind == digest->kind)
            strcpy(text, prefixes[i].text);
    char *end = text + strlen(text);
    uint32_t c = digest->crc;
    const uint8_t crc[] = { (uint8_t)(c >> 24), (uint8_t)(c >> 16), (uint8_t)(c >> 8), (uint8_t)c };
    if (is_crc(digest->kind))
        put_hex(end, crc, sizeof crc, "0123456789ABCDEF");
    else if (digest->kind == TN_CHECKSUM_SHA256)
        put_hex(end, digest->sha256, sizeof digest->sha256, "0123456789abcdef");
}

/* The kind that a text names, and *digits behind its prefix. */
static tn_checksum find_kind(const char *text, const char **digits)
{
    for (size_t i = 0; i < PREFIXES; i++) {
        *digits = text + strlen(prefixes[i].text);
        if (tn_begins_with(text, prefixes[i].text))
            return prefixes[i].kind;
    }
    return TN_CHECKSUM_UNKNOWN;
}

tn_checksum tn_checksum_kind(const char *text)
{
    const char *digits;
    return find_kind(text, &digits);
}

/* 1 to 8 digits. */
static bool parse_crc(const char *digits, uint32_t *crc)
{
    size_t n = 0;
    for (*crc = 0; digits[n]; n++) {
        int digit = tn_hex_digit(digits[n]);
        if (digit < 0 || n == 8)
            return false;
        *crc = *crc << 4 | (uint32_t)digit;
    }
    return n > 0;
}

tn_status tn_digest_parse(const char *text, tn_digest *digest, tn_error *err)
{
    const char *digits, *expected = "\"crc32c:0x...\", \"crc32:0x...\" or \"sha256:...\"";
    *digest = (tn_digest){ .kind = find_kind(text, &digits) };
    bool valid = false;
    if (is_crc(digest->kind)) {
        expected = "1 to 8 hexadecimal digits after 0x";
        valid = parse_crc(digits, &digest->crc);
    } else if (digest->kind == TN_CHECKSUM_SHA256) {
        expected = "64 hexadecimal digits after sha256:";
        valid = tn_hex_read((tn_text){ digits, strlen(digits) }, digest->sha256, sizeof digest->sha256);
    }
    if (valid)
        return TN_OK;
    return tn_fail(err, TN_ERR_CORRUPT, "checksum: expected %s, found %s", expected, tn_quote_z(text).text);
}

bool tn_digest_equal(const tn_digest *a, const tn_digest *b)
{
    return a->kind == b->kind && a->crc == b->crc && memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0;
}
