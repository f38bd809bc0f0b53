/* The device query: what the host says of itself. */
#include "support.h"

#include <tenon/buffer.h>
#include <tenon/device.h>
#include <tenon/layout.h>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

static void the_host_is_device_0_and_the_only_one(void)
{
    const tn_device_info *host = tn_device_query(0);
    CHECK(host != NULL);
    CHECK(strcmp(host->name, "host") == 0);
    CHECK(host->device.type == TN_DEVICE_CPU && host->device.id == 0 && host->device.space == TN_SPACE_HOST);
    CHECK(tn_device_query(1) == NULL);
    CHECK(tn_device_query(SIZE_MAX) == NULL);
}

static bool is_power_of_two(uint64_t n) { return n && (n & (n - 1)) == 0; }

static void alignments_are_those_of_the_specification(void)
{
    const tn_device_info *host = tn_device_query(0);
    CHECK(host->min_alignment == 64);
    CHECK(host->recommended_alignment == 256);
    CHECK(host->page_size == (uint64_t)sysconf(_SC_PAGESIZE));
    CHECK(host->page_size % host->recommended_alignment == 0);
    CHECK(host->huge_page_size == 0 ||
          (is_power_of_two(host->huge_page_size) && host->huge_page_size > host->page_size));
}

static void memory_is_what_the_system_says(void)
{
    const tn_device_info *host = tn_device_query(0);
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    CHECK(host->max_pinned_bytes ==
          (limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur));
    CHECK(host->memory_bytes == (uint64_t)sysconf(_SC_PHYS_PAGES) * host->page_size);
    CHECK(host->max_rank == TN_MAX_RANK);
}

static void every_type_is_listed_once_and_unknown_is_not(void)
{
    const tn_device_info *host = tn_device_query(0);
    unsigned seen[TN_DTYPE_COUNT] = { 0 };
    for (size_t i = 0; i < host->ntypes; i++) {
        CHECK(host->types[i] > TN_UNKNOWN && host->types[i] < TN_DTYPE_COUNT);
        seen[host->types[i]]++;
    }
    CHECK(seen[TN_UNKNOWN] == 0);
    for (tn_dtype type = TN_UNKNOWN + 1; type < TN_DTYPE_COUNT; type++)
        CHECK(seen[type] == 1);
}

static void layouts_are_all_that_have_a_name(void)
{
    const tn_device_info *host = tn_device_query(0);
    for (size_t i = 0; i < host->nlayouts; i++)
        CHECK(strcmp(host->layouts[i], tn_layout_at(i)->name) == 0);
    CHECK(host->nlayouts > 0 && tn_layout_at(host->nlayouts) == NULL);
}

static void handles_are_those_of_host_memory_that_can_be_used_here(void)
{
    const tn_device_info *host = tn_device_query(0);
    const tn_handle_info *handle;
    size_t n = 0;
    for (size_t i = 0; (handle = tn_handle_query(i)); i++)
        if (handle->available && handle->type != TN_HANDLE_CUDA_IPC)
            CHECK(n < host->nhandles && host->handles[n++] == handle->type);
    CHECK(n == host->nhandles && n > 0 && host->handles[0] == TN_HANDLE_MEMFD);
}

static void *ask(void *answer)
{
    *(const tn_device_info **)answer = tn_device_query(0);
    return NULL;
}

static void threads_get_the_same_answer(void)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    const tn_device_info *answers[THREADS] = { NULL };
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, ask, &answers[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(answers[i] == tn_device_query(0) && answers[i]->ntypes > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_get_the_same_answer),      /* first: so they race for it */
        TEST(the_host_is_device_0_and_the_only_one),
        TEST(alignments_are_those_of_the_specification),
        TEST(memory_is_what_the_system_says),
        TEST(every_type_is_listed_once_and_unknown_is_not),
        TEST(layouts_are_all_that_have_a_name),
        TEST(handles_are_those_of_host_memory_that_can_be_used_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
