/* Memory of a CUDA device, on a stand-in for the driver (support/stand_in_cuda.c). */
#include "support.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "held.h"
#include "stand_in_cuda.h"

#include "share/cuda_driver.h"
#include "share/memory_calls.h"
#include "share/provider.h"

enum { BYTES = 10000, BLOCK = 2 << 20 };

static cuda_stand_in *driver;

static tn_status try_new(uint64_t bytes, unsigned flags, uint64_t alignment, tn_buffer **b, tn_error *err)
{
    tn_buffer_options options = { .size = sizeof options, .type = TN_HANDLE_CUDA_IPC, .flags = flags,
                                  .alignment = alignment };
    *b = NULL;
    return tn_buffer_new(bytes, &options, b, err);
}

static tn_buffer *new_buffer(unsigned flags)
{
    tn_buffer *b;
    tn_error err = { .text = "" };
    if (try_new(BYTES, flags, 0, &b, &err)) {
        fprintf(stderr, "%s\n", line_of(&err));
        abort();
    }
    return b;
}

static void *data_of(const tn_buffer *b) { return tn_buffer_data(b); }

static void put_text(tn_buffer *b, const char *text)
{
    REQUIRE(tn_buffer_map(b, NULL) == TN_OK && tn_buffer_begin(b, true, NULL) == TN_OK);
    strcpy(data_of(b), text);
    REQUIRE(tn_buffer_end(b, true, NULL) == TN_OK);
    tn_buffer_unmap(b);
}

static bool has_text(tn_buffer *b, const char *text)
{
    REQUIRE(tn_buffer_map(b, NULL) == TN_OK);
    bool same = strcmp(data_of(b), text) == 0;
    tn_buffer_unmap(b);
    return same;
}

/* What the driver counts, too. */
static bool nothing_held(held before)
{
    return driver->contexts == 0 && driver->allocations == 0 && driver->opened == 0 &&
           driver->registered == 0 && nothing_more_than(before);
}

/* Starting the driver makes pages read-only, which splits a mapping: that is not of the buffers. */
static held held_when_started(void)
{
    const char *why;
    REQUIRE(tn_provider_cuda.query(&why));
    return held_now();
}

/* ---- without a driver; each in a process of its own, since it is started once ---- */

static const char *expected_reason;

static void find_no_driver(void)
{
    tn_buffer *b;
    tn_error err;
    const char *why;
    REQUIRE(!tn_provider_cuda.query(&why) && strcmp(why, expected_reason) == 0);
    REQUIRE(!tn_provider_cuda.query(&why) && strcmp(why, expected_reason) == 0);
    REQUIRE(try_new(BYTES, 0, 0, &b, &err) == TN_ERR_UNSUPPORTED && b == NULL &&
            strstr(line_of(&err), expected_reason));
    tn_exported e = { .type = TN_HANDLE_CUDA_IPC, .bytes = 4, .fd = -1 };
    REQUIRE(tn_buffer_import(&e, false, &b, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), expected_reason));
    for (size_t i = 0; i < 3; i++)
        REQUIRE(tn_handle_query(i));
    REQUIRE(!tn_handle_query(2)->available && strcmp(tn_handle_query(2)->why, expected_reason) == 0);
}

static void check_no_driver(const char *library, const char *reason)
{
    const char *before = tn_cuda_library;
    tn_cuda_library = library;
    expected_reason = reason;
    CHECK(in_child(find_no_driver) == 0);
    tn_cuda_library = before;
}

static void a_machine_without_a_driver_says_so(void)
{
    check_no_driver("/nowhere/libcuda.so.1", "no libcuda.so.1 that can be loaded");
    check_no_driver("libm.so.6", "libcuda.so.1 is too old: it lacks what is called");
    driver->devices = 0;
    check_no_driver(STAND_IN_CUDA, "libcuda.so.1 finds no device");
    driver->devices = -1;
    check_no_driver(STAND_IN_CUDA,
                    "libcuda.so.1 does not start: CUDA_ERROR_NO_DEVICE: as the stand-in puts it");
    driver->devices = 1;
    for (driver->failing = 1; driver->failing <= 3; driver->failing++)
        check_no_driver(STAND_IN_CUDA,
                        "libcuda.so.1 does not start: CUDA_ERROR_INVALID_VALUE: as the stand-in puts it");
    driver->failing = 0;
}

static void make_others(void)
{
    tn_buffer *b;
    REQUIRE(tn_buffer_new(BYTES, NULL, &b, NULL) == TN_OK);
    tn_buffer_unref(b);
    REQUIRE(tn_handle_query(0)->available);
    REQUIRE(driver->calls == 0);
}

static void who_does_not_ask_for_cuda_does_not_start_it(void)
{
    driver->calls = 0;
    CHECK(in_child(make_others) == 0);
}

/* ---- two processes; the driver starts in each of them for itself ---- */

static int to_child[2], to_parent[2];

static void wait_for_end(int from)
{
    char c;
    REQUIRE(read(from, &c, 1) == 1);
}

static void import_in_child(void)
{
    tn_buffer *b, *again;
    tn_exported e;
    REQUIRE(read(to_child[0], &e, sizeof e) == sizeof e);
    held before = held_when_started();
    REQUIRE(tn_buffer_import(&e, false, &b, NULL) == TN_OK);
    REQUIRE(tn_buffer_size(b) == BYTES && tn_buffer_flags(b) == TN_MEM_SHARED && tn_buffer_data(b) == NULL);
    REQUIRE(has_text(b, "from the parent"));
    REQUIRE(tn_buffer_import(&e, false, &again, NULL) == TN_OK);
    REQUIRE(tn_buffer_handle_of(b).handle != tn_buffer_handle_of(again).handle);
    put_text(again, "from the child");
    tn_buffer_unref(again);
    REQUIRE(has_text(b, "from the child"));
    e.offset = 5;
    REQUIRE(tn_buffer_import(&e, false, &again, NULL) == TN_OK && has_text(again, "the child"));
    REQUIRE(tn_buffer_mapping_of(again).device_address == tn_buffer_mapping_of(b).device_address + 5);
    tn_buffer_unref(again);
    tn_exported more;
    tn_error err;
    REQUIRE(tn_buffer_export(b, false, &more, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "allocated"));
    REQUIRE(write(to_parent[1], "1", 1) == 1);
    wait_for_end(to_child[0]);
    REQUIRE(has_text(b, "from the parent again"));
    tn_buffer_unref(b);
    REQUIRE(nothing_held(before));
}

/* Every claim that is a lie, every handle that is none. */
static void import_lies_in_child(void)
{
    static const struct { uint64_t offset, bytes; tn_status status; } claims[] = {
        { 0, BLOCK, TN_OK }, { BLOCK - 1, 1, TN_OK }, { 5000, 100, TN_OK },
        { 0, BLOCK + 1, TN_ERR_CORRUPT }, { 1, BLOCK, TN_ERR_CORRUPT }, { BLOCK, 1, TN_ERR_CORRUPT },
        { UINT64_MAX, 1, TN_ERR_CORRUPT }, { UINT64_MAX, UINT64_MAX / 8, TN_ERR_CORRUPT },
        { 0, 0, TN_ERR_CORRUPT },
        { 0, UINT64_MAX, TN_ERR_LIMIT },
    };
    tn_exported e;
    tn_error err;
    tn_buffer *b;
    REQUIRE(read(to_child[0], &e, sizeof e) == sizeof e);
    held before = held_when_started();
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        e.offset = claims[i].offset;
        e.bytes = claims[i].bytes;
        REQUIRE(tn_buffer_import(&e, false, &b, &err) == claims[i].status);
        if (claims[i].status == TN_OK)
            tn_buffer_unref(b);
        REQUIRE(nothing_held(before));
    }
    e.offset = 0;
    e.bytes = 4;
    for (size_t i = 0; i < 8; i++) {
        e.opaque[i] ^= 1;
        REQUIRE(tn_buffer_import(&e, false, &b, &err) == TN_ERR_CORRUPT &&
                strstr(line_of(&err), "CUDA_ERROR_INVALID_VALUE"));
        e.opaque[i] ^= 1;
    }
    e.fd = 0;
    REQUIRE(tn_buffer_import(&e, false, &b, &err) == TN_ERR_CORRUPT && strstr(line_of(&err), "descriptor") &&
            e.fd == 0);
    e.fd = -1;
    REQUIRE(nothing_held(before));
    REQUIRE(write(to_parent[1], "1", 1) == 1);
    wait_for_end(to_child[0]);
}

static void read_in_child(void)
{
    tn_exported e;
    tn_buffer *b;
    REQUIRE(read(to_child[0], &e, sizeof e) == sizeof e);
    e.read_only = true;
    REQUIRE(tn_buffer_import(&e, false, &b, NULL) == TN_OK && tn_buffer_flags(b) & TN_MEM_READ_ONLY);
    REQUIRE(has_text(b, "from the parent") && tn_buffer_map(b, NULL) == TN_OK);
    REQUIRE(tn_buffer_begin(b, true, NULL) == TN_ERR_ARGUMENT);
    strcpy(data_of(b), "to the copy alone");
    REQUIRE(tn_buffer_begin(b, false, NULL) == TN_OK && strcmp(data_of(b), "from the parent") == 0);
    tn_buffer_unref(b);
    REQUIRE(write(to_parent[1], "1", 1) == 1);
    wait_for_end(to_child[0]);
}

static void fail_importing_in_child(void)
{
    tn_exported e;
    REQUIRE(read(to_child[0], &e, sizeof e) == sizeof e);
    const char *why;
    REQUIRE(tn_provider_cuda.query(&why));
    held before = held_when_started();
    for (int failing = 1; failing <= 5; failing++) {            /* retain, push, open, range; none */
        tn_buffer *b;
        tn_error err = { .text = "" };
        driver->calls = 0;
        driver->failing = failing < 5 ? failing : 0;
        tn_status status = tn_buffer_import(&e, false, &b, &err);
        REQUIRE((status == TN_OK) == (failing == 5));
        REQUIRE(status == err.status && (status == TN_OK) == (err.text[0] == '\0'));
        if (!status)
            tn_buffer_unref(b);
        REQUIRE(nothing_held(before));
    }
    REQUIRE(write(to_parent[1], "1", 1) == 1);
    wait_for_end(to_child[0]);
}

/* The child runs before this process starts its driver: CUDA does not survive a fork. */
static void (*child_does)(void);

static void with_child(void)
{
    REQUIRE(pipe2(to_child, O_CLOEXEC) == 0 && pipe2(to_parent, O_CLOEXEC) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    close(child ? to_parent[1] : to_parent[0]);         /* so that each sees when the other is gone */
    close(child ? to_child[0] : to_child[1]);
    if (child == 0) {
        child_does();
        _exit(0);
    }
    held before = held_when_started();
    int status = -1;
    tn_buffer *b = new_buffer(0);
    tn_exported e;
    tn_error err;
    put_text(b, "from the parent");
    REQUIRE(tn_buffer_export(b, true, &e, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "read-only"));
    REQUIRE(tn_buffer_export(b, false, &e, NULL) == TN_OK);
    REQUIRE(e.type == TN_HANDLE_CUDA_IPC && e.bytes == BYTES && e.offset == 0 && e.fd == -1 && !e.read_only);
    REQUIRE(write(to_child[1], &e, sizeof e) == sizeof e);
    wait_for_end(to_parent[0]);
    REQUIRE(child_does != import_in_child || has_text(b, "from the child"));
    REQUIRE(child_does != read_in_child || has_text(b, "from the parent"));
    put_text(b, "from the parent again");
    REQUIRE(write(to_child[1], "1", 1) == 1);
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    tn_buffer_unref(b);
    REQUIRE(nothing_held(before));
}

static void check_with_child(void (*function)(void))
{
    child_does = function;
    CHECK(in_child(with_child) == 0);
}

static void two_processes_see_the_same_device_memory(void)    { check_with_child(import_in_child); }
static void what_a_peer_says_is_checked(void)                 { check_with_child(import_lies_in_child); }
static void what_came_read_only_is_not_written_back(void)     { check_with_child(read_in_child); }
static void an_import_that_fails_leaves_nothing_behind(void)  { check_with_child(fail_importing_in_child); }

/* ---- one process ---- */

static void device_memory_is_new_and_aligned_and_not_the_cpus(void)
{
    for (uint64_t alignment = 1; alignment <= BLOCK; alignment *= 2) {
        tn_buffer *b;
        held before = held_when_started();
        CHECK(try_new(BYTES, 0, alignment, &b, NULL) == TN_OK);
        CHECK(tn_buffer_size(b) == BYTES && tn_buffer_flags(b) == TN_MEM_SHARED);
        tn_wia_mapping m = tn_buffer_mapping_of(b);
        CHECK(m.present && m.device_address % alignment == 0 && m.device_address % 256 == 0);
        CHECK(tn_buffer_data(b) == NULL && !m.cpu_mapped && m.cpu_device);
        CHECK(tn_buffer_handle_of(b).type == TN_HANDLE_CUDA_IPC && tn_buffer_handle_of(b).handle > 0);
        CHECK(tn_buffer_map(b, NULL) == TN_OK);
        for (size_t i = 0; i < BYTES; i++)
            CHECK(((uint8_t *)data_of(b))[i] == 0);
        m = tn_buffer_mapping_of(b);
        CHECK(m.cpu_mapped && m.cpu_address == (uintptr_t)data_of(b) && m.cpu_address % alignment == 0);
        tn_exported e;
        CHECK(tn_buffer_export(b, false, &e, NULL) == TN_OK &&
              e.offset < (alignment < 256 ? 1 : alignment) + 1);
        tn_buffer_unref(b);                     /* which is mapped */
        CHECK(nothing_held(before));
    }
}

static void the_cpu_sees_a_copy_that_begin_fetches_and_end_puts_back(void)
{
    held before = held_now();
    tn_buffer *b = new_buffer(0);
    tn_error err;
    CHECK(tn_buffer_begin(b, false, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "tn_buffer_map()"));
    put_text(b, "first");
    CHECK(tn_buffer_data(b) == NULL);
    CHECK(tn_buffer_map(b, NULL) == TN_OK && tn_buffer_map(b, NULL) == TN_OK);
    CHECK(strcmp(data_of(b), "first") == 0);
    strcpy(data_of(b), "lost");
    CHECK(tn_buffer_end(b, false, NULL) == TN_OK);
    CHECK(tn_buffer_begin(b, true, NULL) == TN_OK && strcmp(data_of(b), "first") == 0);
    strcpy(data_of(b), "second");
    CHECK(tn_buffer_end(b, true, NULL) == TN_OK);
    tn_buffer_unmap(b);
    CHECK(strcmp(data_of(b), "second") == 0);   /* mapped twice */
    tn_buffer_unmap(b);
    CHECK(tn_buffer_data(b) == NULL && has_text(b, "second"));
    tn_buffer_unref(b);
    CHECK(nothing_held(before));
}

static void pinned_memory_is_registered_with_the_driver(void)
{
    held before = held_now();
    tn_buffer *b = new_buffer(TN_MEM_PINNED);
    CHECK(driver->registered == 1 && tn_buffer_flags(b) == (TN_MEM_SHARED | TN_MEM_PINNED));
    CHECK(tn_buffer_data(b) == NULL);
    put_text(b, "pinned");
    CHECK(driver->registered == 1 && has_text(b, "pinned"));
    CHECK(tn_buffer_map(b, NULL) == TN_OK);
    const void *place = data_of(b);
    tn_buffer_unmap(b);
    CHECK(tn_buffer_map(b, NULL) == TN_OK && data_of(b) == place);
    tn_buffer_unref(b);
    CHECK(nothing_held(before));
    CHECK(try_new(BYTES, TN_MEM_HUGE, 0, &b, NULL) == TN_OK && tn_buffer_flags(b) == TN_MEM_SHARED);
    tn_buffer_unref(b);
}

static void a_process_cannot_open_its_own_handle(void)
{
    tn_buffer *b = new_buffer(0), *other;
    tn_exported e;
    tn_error err;
    CHECK(tn_buffer_export(b, false, &e, NULL) == TN_OK);
    CHECK(tn_buffer_import(&e, false, &other, &err) == TN_ERR_IO &&
          strstr(line_of(&err), "CUDA_ERROR_INVALID_CONTEXT"));
    tn_buffer_unref(b);
    CHECK(driver->contexts == 0);
}

static void the_drivers_errors_keep_their_meaning(void)
{
    static const struct { int result; tn_status status; const char *says; } errors[] = {
        { CUDA_ERROR_OUT_OF_MEMORY, TN_ERR_NOMEM, "CUDA_ERROR_OUT_OF_MEMORY: as the stand-in puts it" },
        { CUDA_ERROR_NOT_SUPPORTED, TN_ERR_UNSUPPORTED, "801" },
        { CUDA_ERROR_INVALID_VALUE, TN_ERR_IO, "CUDA_ERROR_INVALID_VALUE" },
        { 12345, TN_ERR_IO, "CUDA's error 12345, not a known error: no more is known" },
    };
    held before = held_now();
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        tn_buffer *b;
        tn_error err;
        driver->calls = 0;
        driver->failing = 3;            /* retain, push, allocate */
        driver->failure = errors[i].result;
        CHECK(try_new(BYTES, 0, 0, &b, &err) == errors[i].status && strstr(line_of(&err), errors[i].says));
        CHECK(strstr(line_of(&err), "cannot allocate memory of the CUDA device"));
        driver->failing = 0;
        CHECK(nothing_held(before));
    }
    driver->failure = CUDA_ERROR_INVALID_VALUE;
}

static void more_than_memory_can_have_is_refused(void)
{
    tn_buffer *b;
    held before = held_now();
    CHECK(try_new(UINT64_MAX / 2, 0, 0, &b, NULL) == TN_ERR_NOMEM && b == NULL);
    CHECK(try_new((uint64_t)1 << 60, 0, BLOCK, &b, NULL) == TN_ERR_NOMEM && b == NULL);
    CHECK(nothing_held(before));
}

/* Everything a buffer goes through; the first status that is not TN_OK. */
static tn_status live(unsigned flags, tn_error *err)
{
    tn_buffer *b;
    tn_exported e;
    tn_status status = try_new(BYTES, flags, 1 << 16, &b, err);
    if (status)
        return status;
    status = tn_buffer_map(b, err);
    if (!status)
        status = tn_buffer_begin(b, true, err);
    if (!status)
        status = tn_buffer_end(b, true, err);
    if (!status)
        status = tn_buffer_export(b, false, &e, err);
    tn_buffer_unref(b);
    return status;
}

/* A push that fails while the buffer is freed leaves the memory to the driver: it is not counted among the
 * calls. */
static void whatever_call_fails_nothing_is_left_behind(void)
{
    for (unsigned flags = 0; flags <= TN_MEM_PINNED; flags++) {
        held before = held_now();
        int failures = 0;
        driver->calls = driver->failing = 0;
        CHECK(live(flags, NULL) == TN_OK);
        int calls = driver->calls;
        for (int failing = 1; failing < calls; failing++) {     /* the last is the push of free */
            tn_error err = { .text = "" };
            driver->calls = 0;
            driver->failing = failing;
            tn_status status = live(flags, &err);
            CHECK(status == err.status && (status == TN_OK) == (err.text[0] == '\0'));
            CHECK(nothing_held(before));
            failures += status != TN_OK;
        }
        driver->failing = 0;
        CHECK(failures == calls - 1 && failures >= 13);
    }
}

static void *(*real_mmap)(void *, size_t, int, int, int, off_t);

static void *no_mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    (void)address, (void)n, (void)protection, (void)flags, (void)fd, (void)offset;
    errno = ENOMEM;
    return MAP_FAILED;
}

static void memory_for_the_copy_may_run_out(void)
{
    tn_buffer *b = new_buffer(0), *pinned;
    real_mmap = tn_memory_calls.mmap;
    tn_memory_calls.mmap = no_mmap;
    CHECK(tn_buffer_map(b, NULL) == TN_ERR_NOMEM && tn_buffer_data(b) == NULL);
    CHECK(try_new(BYTES, TN_MEM_PINNED, 0, &pinned, NULL) == TN_ERR_NOMEM && driver->allocations == 1);
    tn_memory_calls.mmap = real_mmap;
    CHECK(tn_buffer_map(b, NULL) == TN_OK);
    tn_buffer_unref(b);
    CHECK(driver->allocations == 0 && driver->contexts == 0);
}

static int find_stand_in(void **state)
{
    (void)state;
    void *library = dlopen(STAND_IN_CUDA, RTLD_NOW | RTLD_LOCAL);
    driver = library ? dlsym(library, "stand_in_cuda") : NULL;
    tn_cuda_library = STAND_IN_CUDA;
    return driver ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_machine_without_a_driver_says_so),
        TEST(who_does_not_ask_for_cuda_does_not_start_it),
        TEST(two_processes_see_the_same_device_memory),
        TEST(what_a_peer_says_is_checked),
        TEST(what_came_read_only_is_not_written_back),
        TEST(an_import_that_fails_leaves_nothing_behind),
        /* from here on the driver is started in this process */
        TEST(device_memory_is_new_and_aligned_and_not_the_cpus),
        TEST(the_cpu_sees_a_copy_that_begin_fetches_and_end_puts_back),
        TEST(pinned_memory_is_registered_with_the_driver),
        TEST(a_process_cannot_open_its_own_handle),
        TEST(the_drivers_errors_keep_their_meaning),
        TEST(more_than_memory_can_have_is_refused),
        TEST(whatever_call_fails_nothing_is_left_behind),
        TEST(memory_for_the_copy_may_run_out),
    };
    return cmocka_run_group_tests(tests, find_stand_in, NULL);
}
