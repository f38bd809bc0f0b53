/* Buffers: alignment, flags, references, memory of others, parts of files. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "files.h"
#include "held.h"
#include "make.h"

#include "descriptor/descriptor.h"
#include "share/memory_calls.h"
#include "share/provider.h"

static struct tn_memory_calls real;

static int remember_calls(void **unused)
{
    (void)unused;
    real = tn_memory_calls;
    return 0;
}

static int restore_calls(void **unused)
{
    (void)unused;
    tn_memory_calls = real;
    return 0;
}

#define WITH_CALLS(test) { #test, (CMUnitTestFunction)(void (*)(void))test, remember_calls, restore_calls, NULL }

static tn_buffer *make_buffer(uint64_t bytes, tn_handle_type type, unsigned flags, uint64_t alignment)
{
    tn_buffer_options options = { .size = sizeof options, .type = type, .flags = flags,
                                  .alignment = alignment };
    tn_buffer *b;
    tn_error err = { .text = "" };
    if (tn_buffer_new(bytes, &options, &b, &err))
        fail_msg("%llu bytes: %s", (unsigned long long)bytes, line_of(&err));
    return b;
}

static bool all_zero(const uint8_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (data[i])
            return false;
    return true;
}

/* ---- making ---- */

static void new_memory_is_aligned_and_zero_and_all_there(void)
{
    static const uint64_t alignments[] = { 0, 1, 32, 64, 128, 256, 4096, 8192, 65536, 2 << 20 };
    static const uint64_t sizes[] = { 1, 64, 4095, 4096, 4097, 1 << 20 };
    static const tn_handle_type types[] = { TN_HANDLE_NONE, TN_HANDLE_MEMFD };
    held before = held_now();
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++)
        for (size_t k = 0; k < 2 * sizeof sizes / sizeof *sizes; k++) {
            uint64_t n = sizes[k / 2], asked = alignments[i],
                     least = asked == 0   ? 256
                             : asked < 64 ? 64
                                          : asked;
            tn_buffer *b = make_buffer(n, types[k % 2], 0, asked);
            uint8_t *data = tn_buffer_data(b);
            CHECK((uintptr_t)data % least == 0);
            CHECK(tn_buffer_size(b) == n);
            CHECK(tn_buffer_flags(b) == (types[k % 2] ? TN_MEM_SHARED : 0));
            CHECK(all_zero(data, n));
            memset(data, 0xff, n);
            CHECK(!tn_buffer_broken(b));
            tn_buffer_unref(b);
        }
    CHECK(nothing_more_than(before));
}

static void without_options_it_is_memory_of_this_process(void)
{
    tn_buffer *b;
    CHECK(tn_buffer_new(1000, NULL, &b, NULL) == TN_OK);
    CHECK((uintptr_t)tn_buffer_data(b) % 256 == 0);
    CHECK(tn_buffer_handle_of(b).type == TN_HANDLE_NONE);
    tn_buffer_unref(b);
    CHECK(tn_buffer_new(1000, &(tn_buffer_options){ .alignment = 64 }, &b, NULL) == TN_ERR_ARGUMENT);
    tn_buffer_unref(NULL);
}

static void shared_without_a_type_means_memfd(void)
{
    tn_buffer *b = make_buffer(10, TN_HANDLE_NONE, TN_MEM_SHARED, 0);
    CHECK(tn_buffer_handle_of(b).type == TN_HANDLE_MEMFD);
    tn_buffer_unref(b);
}

static void options_that_make_no_sense_are_refused(void)
{
    static const struct {
        uint64_t bytes;
        tn_buffer_options options;
        tn_status status;
        const char *says;
    } cases[] = {
        { 0, { .flags = 0 }, TN_ERR_ARGUMENT, "a buffer of 0 bytes" },
        { 1, { .flags = TN_MEM_READ_ONLY }, TN_ERR_ARGUMENT, "flags 0x8" },
        { 1, { .flags = 0x10 }, TN_ERR_ARGUMENT, "flags 0x10" },
        { 1, { .alignment = 3 }, TN_ERR_ARGUMENT, "alignment 3" },
        { 1, { .alignment = 4 << 20 }, TN_ERR_ARGUMENT, "alignment 4194304" },
        { 1, { .alignment = UINT64_MAX }, TN_ERR_ARGUMENT, "alignment" },
        { 1, { .type = (tn_handle_type)99 }, TN_ERR_UNSUPPORTED, "handle type 99" },
        { UINT64_MAX, { .flags = 0 }, TN_ERR_NOMEM, "memory" },
        { UINT64_MAX, { .flags = TN_MEM_SHARED }, TN_ERR_NOMEM, "memory" },
        { (uint64_t)1 << 62, { .flags = TN_MEM_HUGE }, TN_ERR_NOMEM, "" },
        { ((uint64_t)1 << 62) - 1, { .alignment = 2 << 20 }, TN_ERR_NOMEM, "" },
        { ((uint64_t)1 << 62) - 1, { .type = TN_HANDLE_MEMFD, .alignment = 2 << 20 }, TN_ERR_NOMEM, "" },
    };
    held before = held_now();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_buffer *b = NULL;
        tn_error err = { .text = "" };
        tn_buffer_options options = cases[i].options;
        options.size = sizeof options;
        CHECK(tn_buffer_new(cases[i].bytes, &options, &b, &err) == cases[i].status);
        CHECK(err.status == cases[i].status && strstr(line_of(&err), cases[i].says));
        CHECK(tn_buffer_new(cases[i].bytes, &options, &b, NULL) == cases[i].status);
        CHECK(b == NULL);
    }
    CHECK(nothing_more_than(before));
}

/* ---- huge pages ---- */

static void *pool_is_full(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (!(flags & MAP_HUGETLB))
        return real.mmap(address, n, protection, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

static void *pool_has_pages(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    return real.mmap(address, n, protection, flags & ~MAP_HUGETLB, fd, offset);
}

static int not_advised(void *address, size_t n, int advice)
{
    (void)address, (void)n, (void)advice;
    errno = EINVAL;
    return -1;
}

static void huge_pages_are_a_wish(void)
{
    uint64_t huge = tn_device_query(0)->huge_page_size;
    for (int type = 0; type < 2; type++)
        for (int way = 0; way < 3; way++) {
            tn_memory_calls = real;
            tn_memory_calls.mmap = way ? pool_is_full : real.mmap;
            tn_memory_calls.madvise = way == 2 ? not_advised : real.madvise;
            tn_buffer *b = make_buffer(5 << 20, type ? TN_HANDLE_MEMFD : TN_HANDLE_NONE, TN_MEM_HUGE, 0);
            CHECK(huge == 0 || (uintptr_t)tn_buffer_data(b) % huge == 0);
            CHECK(all_zero(tn_buffer_data(b), 5 << 20));
            memset(tn_buffer_data(b), 1, 5 << 20);
            if (way == 2 && type == 0)
                CHECK(!(tn_buffer_flags(b) & TN_MEM_HUGE));
            tn_buffer_unref(b);
        }
    tn_memory_calls.mmap = pool_has_pages;
    tn_memory_calls.madvise = not_advised;
    tn_buffer *b = make_buffer(1, TN_HANDLE_NONE, TN_MEM_HUGE, 0);
    CHECK(huge == 0 || tn_buffer_flags(b) == TN_MEM_HUGE);
    tn_buffer_unref(b);
}

/* ---- references ---- */

static atomic_int releases;

static void count_release(void *context)
{
    atomic_fetch_add(&releases, 1);
    *(int *)context = 7;
}

static void *come_and_go(void *argument)
{
    tn_buffer *b = argument;
    for (int i = 0; i < 2000; i++) {
        tn_buffer *mine = tn_buffer_ref(b);
        REQUIRE(mine == b);
        REQUIRE(*(int *)tn_buffer_data(mine) == 5);
        tn_buffer_unref(mine);
    }
    tn_buffer_unref(b);         /* this thread's own */
    return NULL;
}

static void whoever_drops_the_last_reference_frees_and_nobody_before(void)
{
    enum { THREADS = 8, ROUNDS = 10 };
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        int memory = 5;
        tn_buffer *b;
        atomic_store(&releases, 0);
        CHECK(tn_buffer_wrap(&memory, sizeof memory, false, count_release, &memory, &b, NULL) == TN_OK);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, come_and_go, tn_buffer_ref(b)) == 0);
        tn_buffer_unref(b);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(atomic_load(&releases) == 1 && memory == 7);
    }
}

static void wrapped_memory_is_what_the_caller_says(void)
{
    static const char text[] = "text";
    tn_buffer *b;
    tn_error err = { .text = "" };
    tn_exported e;
    CHECK(tn_buffer_wrap((void *)(uintptr_t)text, 4, true, NULL, NULL, &b, &err) == TN_OK);
    CHECK(tn_buffer_data(b) == text && tn_buffer_size(b) == 4 && tn_buffer_flags(b) == TN_MEM_READ_ONLY);
    CHECK(tn_buffer_map(b, &err) == TN_OK && tn_buffer_begin(b, false, &err) == TN_OK &&
          tn_buffer_end(b, false, &err) == TN_OK);
    CHECK(tn_buffer_begin(b, true, &err) == TN_ERR_ARGUMENT);
    tn_buffer_unmap(b);
    CHECK(tn_buffer_data(b) == text);
    CHECK(tn_buffer_export(b, true, &e, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "TN_MEM_SHARED"));
    CHECK(tn_buffer_handle_of(b).type == TN_HANDLE_NONE && !tn_buffer_mapping_of(b).present);
    tn_buffer_unref(b);
    CHECK(tn_buffer_wrap(NULL, 0, false, NULL, NULL, &b, &err) == TN_OK);
    CHECK(tn_buffer_size(b) == 0 && tn_buffer_map(b, &err) == TN_OK);
    CHECK(tn_buffer_freeze(b, &err) == TN_ERR_UNSUPPORTED);
    tn_buffer_unref(b);
    CHECK(tn_buffer_wrap(NULL, 1, false, NULL, NULL, &b, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_buffer_wrap(&b, UINT64_MAX, false, NULL, NULL, &b, &err) == TN_ERR_ARGUMENT);
}

/* ---- memory of a device ---- */

static struct { int maps, unmaps, syncs, frees; bool begin, write; tn_status answer; } device;
static uint8_t device_memory[16];

static tn_status device_map(tn_buffer *b, tn_error *err)
{
    (void)err;
    device.maps++;
    b->data = device.answer ? NULL : device_memory;
    return device.answer;
}

static void device_unmap(tn_buffer *b)
{
    device.unmaps++;
    b->data = NULL;
}

static tn_status device_sync(tn_buffer *b, bool begin, bool write, tn_error *err)
{
    (void)b, (void)err;
    device.syncs++;
    device.begin = begin;
    device.write = write;
    return device.answer;
}

static void device_free(tn_buffer *b)
{
    CHECK(b->data == NULL);     /* taken back before */
    device.frees++;
}

static const tn_provider device_provider = {
    .type = TN_HANDLE_CUDA_IPC, .name = "device", .map = device_map, .unmap = device_unmap,
    .sync = device_sync, .free = device_free
};

static tn_buffer *device_buffer(void)
{
    tn_buffer *b = calloc(1, sizeof *b);
    CHECK(b != NULL);
    atomic_init(&b->references, 1);
    b->provider = &device_provider;
    b->size = sizeof device_memory;
    b->fd = -1;
    b->handle = 3;
    b->device_address = 0x1000;
    b->flags = TN_MEM_SHARED;
    memset(&device, 0, sizeof device);
    return b;
}

static void maps_of_device_memory_are_counted(void)
{
    tn_buffer *b = device_buffer();
    tn_error err;
    CHECK(tn_buffer_data(b) == NULL);
    tn_buffer_unmap(b);         /* one too many does nothing */
    CHECK(device.unmaps == 0);
    device.answer = TN_ERR_IO;
    CHECK(tn_buffer_map(b, &err) == TN_ERR_IO && tn_buffer_data(b) == NULL);
    device.answer = TN_OK;
    CHECK(tn_buffer_map(b, &err) == TN_OK && tn_buffer_map(b, &err) == TN_OK);
    CHECK(device.maps == 2 && tn_buffer_data(b) == device_memory);
    tn_buffer_unmap(b);
    CHECK(device.unmaps == 0 && tn_buffer_data(b) == device_memory);
    tn_buffer_unmap(b);
    CHECK(device.unmaps == 1 && tn_buffer_data(b) == NULL);
    CHECK(tn_buffer_map(b, &err) == TN_OK);
    tn_buffer_unref(b);
    CHECK(device.unmaps == 2 && device.frees == 1);
}

static void handle_and_mapping_of_device_memory_have_its_address(void)
{
    tn_buffer *b = device_buffer();
    tn_buffer_handle h = tn_buffer_handle_of(b);
    tn_wia_mapping m = tn_buffer_mapping_of(b);
    CHECK(h.type == TN_HANDLE_CUDA_IPC && h.handle == 3 && h.size_bytes == 16 && !h.read_only);
    CHECK(m.present && m.device_address == 0x1000 && !m.cpu_mapped && m.cpu_address == 0 && m.cpu_device);
    CHECK(tn_buffer_map(b, NULL) == TN_OK);
    m = tn_buffer_mapping_of(b);
    CHECK(m.device_address == 0x1000 && m.cpu_mapped && m.cpu_address == (uintptr_t)device_memory);
    tn_buffer_unref(b);
}

static void begin_and_end_reach_the_provider(void)
{
    tn_buffer *b = device_buffer();
    for (int write = 0; write < 2; write++) {
        CHECK(tn_buffer_begin(b, write, NULL) == TN_OK && device.begin && device.write == write);
        CHECK(tn_buffer_end(b, write, NULL) == TN_OK && !device.begin && device.write == write);
    }
    device.answer = TN_ERR_IO;
    CHECK(tn_buffer_begin(b, true, NULL) == TN_ERR_IO && device.syncs == 5);
    b->flags |= TN_MEM_READ_ONLY;
    CHECK(tn_buffer_begin(b, true, NULL) == TN_ERR_ARGUMENT && device.syncs == 5);
    tn_buffer_unref(b);
}

/* ---- what there is ---- */

static void the_query_says_of_every_type_whether_and_why_not(void)
{
    static const tn_handle_type types[] = { TN_HANDLE_MEMFD, TN_HANDLE_DMA_BUF, TN_HANDLE_CUDA_IPC,
                                            TN_HANDLE_METAL };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const tn_handle_info *h = tn_handle_query(i);
        tn_buffer_options options = { .size = sizeof options, .type = types[i] };
        tn_buffer *b;
        tn_error err;
        CHECK(h && h->type == types[i] && strcmp(h->name, tn_handle_type_name(h->type)) == 0);
        CHECK(h->why != NULL && (h->available || h->why[0]) && tn_handle_query(i) == h);
        if (!h->available)
            CHECK(tn_buffer_new(1, &options, &b, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), h->why));
    }
    CHECK(tn_handle_query(0)->available && tn_handle_query(4) == NULL && tn_handle_query(SIZE_MAX) == NULL);
}

/* ---- parts of files ---- */

static const float numbers[6] = { 1, -2, 3.5f, 0, 5, 6 };
static const simple tensors[] = {
    { .name = "bytes", .dtype = TN_UINT8, .rank = 1, .shape = { 3 }, .data = "abc" },
    { .name = "numbers", .dtype = TN_FLOAT32, .rank = 2, .shape = { 2, 3 }, .data = numbers },
    { .name = "none", .dtype = TN_FLOAT32, .rank = 1, .shape = { 0 }, .data = numbers },
};
enum { NTENSORS = sizeof tensors / sizeof *tensors };

static void a_part_of_a_file_is_a_view_that_outlives_it(void)
{
    static const char *const formats[] = { "ztensor", "safetensors" };
    for (int k = 0; k < 2; k++) {
        held before = held_now();
        write_file("file", (tn_create_options){ .format = formats[k], .replace = true }, tensors, NTENSORS);
        tn_file *f = open_file("file");
        tn_buffer *buffers[2];
        uint8_t *expected[2];
        for (size_t i = 0; i < 2; i++) {
            const tn_tensor *t = tn_file_find(f, tensors[i].name);
            expected[i] = read_tensor(f, t);
            CHECK(tn_buffer_of_part(f, &t->parts[0], &buffers[i], NULL) == TN_OK);
            CHECK(tn_buffer_size(buffers[i]) == t->parts[0].nbytes);
            CHECK(tn_buffer_flags(buffers[i]) == (TN_MEM_SHARED | TN_MEM_READ_ONLY));
        }
        tn_close(f);
        CHECK(unlink(in_folder("file").text) == 0);
        for (size_t i = 0; i < 2; i++) {
            CHECK(memcmp(tn_buffer_data(buffers[i]), expected[i], tn_buffer_size(buffers[i])) == 0);
            CHECK(!tn_buffer_broken(buffers[i]));
            tn_buffer_unref(buffers[i]);
            free(expected[i]);
        }
        CHECK(nothing_more_than(before));
    }
}

static void check_no_buffer(const tn_file *f, const char *name)
{
    tn_buffer *b = NULL;
    tn_error err = { .text = "" };
    const tn_tensor *t = name ? tn_file_find(f, name) : tn_file_tensor(f, 0);
    CHECK(t != NULL && tn_buffer_of_part(f, &t->parts[0], &b, &err) == TN_ERR_UNSUPPORTED);
    CHECK(b == NULL && err.status == TN_ERR_UNSUPPORTED &&
          strstr(line_of(&err), "part \"data\" cannot be mapped"));
}

static void other_parts_have_to_be_read(void)
{
    tn_file *f;
    size_t n;
    held before = held_now();
    write_file("packed", (tn_create_options){ .format = "ztensor", .encoding = TN_ENCODING_ZSTD }, tensors,
               NTENSORS);
    f = open_file("packed");
    check_no_buffer(f, "numbers");
    tn_close(f);

    write_file("plain", (tn_create_options){ .format = "ztensor" }, tensors, NTENSORS);
    f = open_file("plain");
    check_no_buffer(f, "none");
    tn_close(f);
    CHECK(tn_open(in_folder("plain").text, &(tn_open_options){ .size = sizeof(tn_open_options),
                                                               .io = TN_IO_PREAD }, &f, NULL) == TN_OK);
    check_no_buffer(f, "numbers");
    tn_close(f);

    uint8_t *bytes = load_file(in_folder("plain").text, &n);
    CHECK(tn_open_memory(bytes, n, NULL, &f, NULL) == TN_OK);
    check_no_buffer(f, "numbers");
    tn_close(f);
    free(bytes);

    CHECK(tn_open(TEST_GOLDEN "/numpy/big_complex64.npy", NULL, &f, NULL) == TN_OK);
    check_no_buffer(f, NULL);
    tn_close(f);
    CHECK(nothing_more_than(before));
}

static void what_is_exported_of_a_part_is_its_file_for_reading_only(void)
{
    held before = held_now();
    write_file("file", (tn_create_options){ .format = "safetensors" }, tensors, NTENSORS);
    int fd = open(in_folder("file").text, O_RDWR | O_CLOEXEC);      /* more than anybody should get */
    tn_file *f;
    tn_buffer *b, *other;
    tn_exported e;
    tn_error err = { .text = "" };
    CHECK(tn_open_fd(fd, NULL, &f, NULL) == TN_OK);
    CHECK(tn_buffer_of_part(f, &tn_file_find(f, "numbers")->parts[0], &b, &err) == TN_OK);
    CHECK(tn_buffer_export(b, false, &e, &err) == TN_ERR_UNSUPPORTED && strstr(line_of(&err), "read-only"));
    CHECK(tn_buffer_export(b, true, &e, &err) == TN_OK);
    CHECK((fcntl(e.fd, F_GETFL) & O_ACCMODE) == O_RDONLY && e.read_only && e.type == TN_HANDLE_MEMFD);
    CHECK(tn_buffer_import(&e, false, &other, &err) == TN_ERR_CORRUPT && strstr(line_of(&err), "plain file"));
    CHECK(e.fd >= 0);
    CHECK(tn_buffer_import(&e, true, &other, &err) == TN_OK && e.fd == -1);
    CHECK(memcmp(tn_buffer_data(other), numbers, sizeof numbers) == 0);
    tn_close(f);
    tn_buffer_unref(b);
    tn_buffer_unref(other);
    close(fd);
    CHECK(nothing_more_than(before));
}

static void a_file_in_a_memfd_that_can_be_written_is_not_handed_on(void)
{
    size_t n;
    tn_file *f;
    write_file("file", (tn_create_options){ .format = "safetensors" }, tensors, NTENSORS);
    uint8_t *bytes = load_file(in_folder("file").text, &n);
    for (int sealed = 0; sealed < 3; sealed++) {
        int fd = memfd_create("tenon-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        tn_buffer *b;
        tn_error err = { .text = "" };
        CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
        CHECK(fcntl(fd, F_ADD_SEALS,
                    sealed == 0   ? 0
                    : sealed == 1 ? F_SEAL_SHRINK
                                  : F_SEAL_SHRINK | F_SEAL_WRITE) == 0);
        CHECK(tn_open_fd(fd, NULL, &f, NULL) == TN_OK);
        tn_status status = tn_buffer_of_part(f, &tn_file_find(f, "numbers")->parts[0], &b, &err);
        CHECK(status == (sealed == 2 ? TN_OK : TN_ERR_UNSUPPORTED) && err.status == status);
        if (!status)
            tn_buffer_unref(b);
        tn_close(f);
        close(fd);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(new_memory_is_aligned_and_zero_and_all_there),
        TEST(without_options_it_is_memory_of_this_process),
        TEST(shared_without_a_type_means_memfd),
        TEST(options_that_make_no_sense_are_refused),
        WITH_CALLS(huge_pages_are_a_wish),
        TEST(whoever_drops_the_last_reference_frees_and_nobody_before),
        TEST(wrapped_memory_is_what_the_caller_says),
        TEST(maps_of_device_memory_are_counted),
        TEST(handle_and_mapping_of_device_memory_have_its_address),
        TEST(begin_and_end_reach_the_provider),
        TEST(the_query_says_of_every_type_whether_and_why_not),
        IN_FOLDER(a_part_of_a_file_is_a_view_that_outlives_it),
        IN_FOLDER(other_parts_have_to_be_read),
        IN_FOLDER(what_is_exported_of_a_part_is_its_file_for_reading_only),
        IN_FOLDER(a_file_in_a_memfd_that_can_be_written_is_not_handed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
