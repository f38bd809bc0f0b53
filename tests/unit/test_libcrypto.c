/* Memory that runs out inside libcrypto while a digest is used for the first
 * time: an error, never a signal, and the next try succeeds.
 *
 * What is fetched stays for the process, so that each failure gets a child of
 * its own, which begins before libcrypto does. */
#include "support.h"

#include "bytes/checksum.h"
#include "safetensors_bytes.h"

#include <tenon/descriptor.h>

#include <limits.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static long allocations, fail_first, fail_last;

static bool must_fail(void)
{
    allocations++;
    return allocations >= fail_first && allocations <= fail_last;
}

static void *own_malloc(size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return must_fail() ? NULL : malloc(n);
}

static void *own_realloc(void *p, size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return must_fail() ? NULL : realloc(p, n);
}

static void own_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    free(p);
}

static tn_status hash(tn_error *err)
{
    tn_hash h;
    tn_digest digest;
    char text[TN_CHECKSUM_TEXT_MAX];
    tn_status status = tn_hash_begin(&h, TN_CHECKSUM_SHA256, err);
    if (status)
        return status;
    tn_hash_update(&h, "abc", 3);
    status = tn_hash_end(&h, &digest, err);
    if (status)
        return status;
    tn_digest_format(&digest, text);
    return strncmp(text, "sha256:ba7816bf", 15) == 0 ? TN_OK : TN_ERR_CORRUPT;
}

/* The tensor_id of a descriptor is made with SHA-1. */
static tn_status identify(tn_error *err)
{
    size_t size;
    uint8_t *bytes = make_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2, &size);
    tn_file *file;
    tn_descriptors *set;
    tn_status status = tn_open_memory(bytes, size, NULL, &file, err);
    if (!status) {
        status = tn_describe(file, NULL, &set, err);
        if (!status) {
            const char *id = tn_descriptors_at(set, 0)->tensor_id;
            status = id && strlen(id) == 36 && id[14] == '5' ? TN_OK : TN_ERR_CORRUPT;
            tn_descriptors_free(set);
        }
        tn_close(file);
    }
    free(bytes);
    return status;
}

enum { FINE = 10, FAILED_AND_RECOVERED, NOT_REACHED, WRONG };

static int try(tn_status (*action)(tn_error *), long first, long last)
{
    tn_error err = { .text = "" };
    fail_first = first;
    fail_last = last;
    if (!CRYPTO_set_mem_functions(own_malloc, own_realloc, own_free))
        return WRONG;
    tn_status status = action(&err);
    bool reached = allocations >= first;
    fail_last = 0;
    if (status && (status != TN_ERR_NOMEM || !strstr(line_of(&err), "memory")))
        return WRONG;
    if (action(NULL))
        return WRONG;
    if (!reached)
        return NOT_REACHED;
    return status ? FAILED_AND_RECOVERED : FINE;
}

/* Its exit status, or WRONG after a signal. */
static int try_in_child(tn_status (*action)(tn_error *), long first, long last)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);       /* cmocka's handler would go on with the tests */
        _exit(try(action, first, last));
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) == WRONG)
        fail_msg("allocations %ld to %ld of libcrypto fail: status %#x", first, last, (unsigned)status);
    return WEXITSTATUS(status);
}

/* The first ones make libcrypto's own structures; of the thousands behind them (texts of errors, a
 * configuration) few matter, and every 17th is tried. */
static void fail_each(tn_status (*action)(tn_error *))
{
    unsigned failed = 0;
    for (long k = 1; ; k += k < 128 ? 1 : 17) {
        int alone = try_in_child(action, k, k);
        if (alone == NOT_REACHED)
            break;
        failed += alone == FAILED_AND_RECOVERED;
        int from_here = try_in_child(action, k, LONG_MAX);
        CHECK(from_here == FAILED_AND_RECOVERED || from_here == FINE);
    }
    CHECK(failed > 20);
}

static void a_checksum_survives_failing_allocations_of_libcrypto(void) { fail_each(hash); }
static void an_id_survives_failing_allocations_of_libcrypto(void) { fail_each(identify); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_checksum_survives_failing_allocations_of_libcrypto),
        TEST(an_id_survives_failing_allocations_of_libcrypto),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
