/* descriptor/identify.c - a tensor_id that is the same every time. */
#include "descriptor/descriptor.h"
#include "base/error.h"
#include "bytes/libcrypto.h"

#include <stdio.h>
#include <string.h>

/* The namespace of descriptors, 7e7eb0f9-0cb3-4368-a4cb-a91565892a66, is random and must never change. The
 * name of a descriptor in it is its JSON by tn_descriptor_put() without tensor_id and indent, followed by the
 * checksum of the data if it is known, such as "crc32c:0x01234567". */
static const uint8_t namespace[16] = {
    0x7e, 0x7e, 0xb0, 0xf9, 0x0c, 0xb3, 0x43, 0x68, 0xa4, 0xcb, 0xa9, 0x15, 0x65, 0x89, 0x2a, 0x66
};

static tn_status digest_name(const tn_buf *name, uint8_t digest[EVP_MAX_MD_SIZE], tn_error *err)
{
    EVP_MD_CTX *context;
    TN_TRY(tn_crypto_begin(TN_CRYPTO_SHA1, &context, err));
    bool done = EVP_DigestUpdate(context, namespace, sizeof namespace) == 1 &&
                EVP_DigestUpdate(context, name->data, name->size) == 1 &&
                EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    return done ? TN_OK : tn_fail_nomem(err);
}

/* RFC 9562, version 5: the first 16 bytes of the digest with version and variant set. */
static void format_uuid(char text[37], uint8_t id[16])
{
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x50);
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
    char *p = text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        p += snprintf(p, 3, "%02x", id[i]);
    }
}

tn_status tn_descriptor_identify(tn_descriptor *d, const char *content, tn_arena *arena, tn_error *err)
{
    tn_buf name = { 0 };
    uint8_t digest[EVP_MAX_MD_SIZE];
    char text[37];
    tn_descriptor without = *d;
    without.tensor_id = NULL;
    tn_descriptor_put(&without, 0, &name);
    if (content)
        tn_buf_puts(&name, content);
    tn_status status = name.bad ? tn_fail_nomem(err) : digest_name(&name, digest, err);
    tn_buf_free(&name);
    if (status)
        return status;
    format_uuid(text, digest);
    d->tensor_id = tn_arena_text(arena, text, sizeof text - 1);
    return d->tensor_id ? TN_OK : tn_fail_nomem(err);
}
