/* bytes/checksum.h - crc32c and crc32 (isa-l), SHA-256 (libcrypto), in pieces. */
#ifndef TN_BYTES_CHECKSUM_H
#define TN_BYTES_CHECKSUM_H

#include <tenon/tensor.h>

/* crc32c, or the crc32 of zip, of n more bytes; begin with crc = 0. */
uint32_t tn_crc32c(uint32_t crc, const void *data, size_t n);
uint32_t tn_crc32(uint32_t crc, const void *data, size_t n);

/* That of A followed by B from those of A and B: pieces may be computed on any thread. */
uint32_t tn_crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t size_b);
uint32_t tn_crc32_join(uint32_t crc_a, uint32_t crc_b, uint64_t size_b);

typedef struct tn_digest {
    tn_checksum kind;
    uint32_t    crc;            /* crc32c or crc32 */
    uint8_t     sha256[32];
} tn_digest;

/* Makes the digest of A that of A followed by B; not for SHA-256. */
void tn_digest_join(tn_digest *a, const tn_digest *b, uint64_t size_b);

/* A running checksum of one kind over bytes in order.  NONE is allowed and does nothing. */
typedef struct tn_hash {
    tn_checksum kind;
    uint32_t    crc;
    void       *sha;            /* EVP_MD_CTX */
} tn_hash;

tn_status tn_hash_begin(tn_hash *h, tn_checksum kind, tn_error *err);
void      tn_hash_update(tn_hash *h, const void *data, size_t n);
tn_status tn_hash_end(tn_hash *h, tn_digest *digest, tn_error *err);    /* also frees */
void      tn_hash_free(tn_hash *h);                                     /* on the way out of an error */

/* zTensor's text: "crc32c:0x%08X" or "sha256:" + 64 lower-case hex digits;
 * crc32 likewise. */
#define TN_CHECKSUM_TEXT_MAX 80
void tn_digest_format(const tn_digest *digest, char text[TN_CHECKSUM_TEXT_MAX]);

/* The kind a text names, by its prefix alone ("crc32c:0x", "crc32:0x", "sha256:"), else UNKNOWN. */
tn_checksum tn_checksum_kind(const char *text);

/* Reads a text of a known kind.  crc32c, crc32: 1 to 8 hex digits of any case after
 * 0x; sha256: exactly 64.  TN_ERR_CORRUPT otherwise. */
tn_status tn_digest_parse(const char *text, tn_digest *digest, tn_error *err);

bool tn_digest_equal(const tn_digest *a, const tn_digest *b);

#endif
