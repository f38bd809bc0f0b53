/* base/version.c - the version and the libraries of this build. */
#include <tenon/version.h>

#include <dlfcn.h>
#include <isa-l.h>
#include <openssl/crypto.h>
#ifdef TN_SECCOMP
#include <seccomp.h>
#endif
#include <stdbool.h>
#include <zlib.h>
#include <zstd.h>

#define TEXT(x) TEXT_(x)
#define TEXT_(x) #x

const char *tn_version(void)
{
    return TEXT(TN_VERSION_MAJOR) "." TEXT(TN_VERSION_MINOR) "." TEXT(TN_VERSION_PATCH);
}

#ifdef TN_CURL
static bool has_curl(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_LAZY | RTLD_LOCAL);
    if (library)
        dlclose(library);
    return library != NULL;
}
#endif

const char *tn_build_fact(size_t i)
{
    switch (i) {
    case 0: return "compression: zstd " ZSTD_VERSION_STRING ", zlib " ZLIB_VERSION;
    case 1:
        return "crc32c: isa-l " TEXT(ISAL_MAJOR_VERSION) "." TEXT(ISAL_MINOR_VERSION) "." TEXT(
            ISAL_PATCH_VERSION);
    case 2: return "sha256: OpenSSL " OPENSSL_VERSION_STR;
#ifdef TN_SECCOMP
    case 3:
        return "confinement: libseccomp " TEXT(SCMP_VER_MAJOR) "." TEXT(SCMP_VER_MINOR) "." TEXT(
            SCMP_VER_MICRO);
#else
    case 3: return "confinement: none";
#endif
#ifdef TN_CURL
    case 4:
        return has_curl() ? "URLs: libcurl, loaded when the first is used" : "URLs: no libcurl.so.4 is there";
#else
    case 4: return "URLs: none, built without libcurl";
#endif
    default: return NULL;
    }
}
