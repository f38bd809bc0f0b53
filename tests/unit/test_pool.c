/* The pool: order, errors and results do not depend on the number of threads. */
#include "support.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/pool.h"
#include "environment.h"
#include "require.h"

static const unsigned job_counts[] = { 1, 2, 3, 7, 16 };
enum { JOB_COUNTS = sizeof job_counts / sizeof *job_counts, MAX_SLOTS = 64 };

typedef struct trial {
    unsigned      results, jobs;
    atomic_bool   busy[256];    /* one per worker: it does one thing at a time */
    atomic_int    inside;               /* items between the start of work and the end of emit */
    atomic_int    most;
    atomic_bool   used[MAX_SLOTS];
    atomic_int    emitting;
    atomic_ullong worked;
    uint64_t      emitted;              /* the next item due */
    uint64_t      values[MAX_SLOTS];    /* what work left for emit */
    uint64_t      fail_work, fail_emit; /* the first of the items that fail, or UINT64_MAX */
    uint64_t      every;                /* then every so many */
} trial;

/* Takes different times, so that threads overtake each other. */
static void dawdle(uint64_t item)
{
    for (uint64_t i = 0; i < item * 7919 % 13; i++)
        sched_yield();
}

static tn_status work(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    trial *t = context;
    unsigned result = use.result;
    REQUIRE(result < t->results && use.scratch < t->jobs);
    REQUIRE(!atomic_exchange(&t->busy[use.scratch], true));
    REQUIRE(!atomic_exchange(&t->used[result], true));
    int now = atomic_fetch_add(&t->inside, 1) + 1, most = atomic_load(&t->most);
    while (now > most && !atomic_compare_exchange_weak(&t->most, &most, now))
        ;
    t->values[result] = item * item;
    dawdle(item);
    atomic_store(&t->busy[use.scratch], false);
    atomic_fetch_add(&t->worked, 1);
    if (item >= t->fail_work && (item - t->fail_work) % t->every == 0)
        return tn_fail_at(err, TN_ERR_CORRUPT, item, "work failed on item %llu", (unsigned long long)item);
    return TN_OK;
}

static tn_status emit(void *context, uint64_t item, unsigned result, tn_error *err)
{
    trial *t = context;
    REQUIRE(atomic_fetch_add(&t->emitting, 1) == 0);
    REQUIRE(item == t->emitted && t->values[result] == item * item);
    dawdle(item + 3);
    t->emitted++;
    atomic_fetch_sub(&t->inside, 1);
    REQUIRE(atomic_exchange(&t->used[result], false));
    atomic_fetch_sub(&t->emitting, 1);
    if (item >= t->fail_emit && (item - t->fail_emit) % t->every == 0)
        return tn_fail(err, TN_ERR_IO, "emit failed on item %llu", (unsigned long long)item);
    return TN_OK;
}

static void begin(trial *t, const tn_pool *pool)
{
    *t = (trial){ .results = tn_pool_results(pool), .jobs = tn_pool_jobs(pool), .fail_work = UINT64_MAX,
                  .fail_emit = UINT64_MAX, .every = 1 };
}

static tn_pool *make_pool(unsigned jobs)
{
    tn_pool *pool;
    CHECK(tn_pool_new(jobs, &pool, NULL) == TN_OK);
    CHECK(tn_pool_jobs(pool) == jobs && tn_pool_results(pool) == (jobs == 1 ? 1 : 2 * jobs));
    return pool;
}

static void items_are_emitted_in_order_and_once(void)
{
    static const uint64_t counts[] = { 0, 1, 2, 3, 31, 500 };
    for (size_t j = 0; j < JOB_COUNTS; j++) {
        tn_pool *pool = make_pool(job_counts[j]);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            trial t;
            begin(&t, pool);
            CHECK(tn_pool_run(pool, counts[k], &(tn_ordered){ work, emit, &t }, NULL) == TN_OK);
            CHECK(t.emitted == counts[k] && t.worked == counts[k] && t.inside == 0);
        }
        tn_pool_free(pool);
    }
}

static void a_pool_for_one_run_has_no_more_threads_than_items(void)
{
    for (size_t j = 0; j < JOB_COUNTS; j++)
        for (uint64_t n = 0; n < 40; n++) {
            unsigned jobs = n && n < job_counts[j] ? (unsigned)n : job_counts[j];
            trial t = { .results = 2 * jobs, .jobs = jobs, .fail_work = UINT64_MAX, .fail_emit = UINT64_MAX,
                        .every = 1 };
            CHECK(tn_pool_once(job_counts[j], n, &(tn_ordered){ work, emit, &t }, NULL) == TN_OK);
            CHECK(t.emitted == n && t.worked == n && t.inside == 0);
        }
}

static void there_are_never_more_items_than_results(void)
{
    for (size_t j = 0; j < JOB_COUNTS; j++) {
        trial t;
        tn_pool *pool = make_pool(job_counts[j]);
        begin(&t, pool);
        CHECK(tn_pool_run(pool, 2000, &(tn_ordered){ work, emit, &t }, NULL) == TN_OK);
        CHECK(t.most >= 1 && (unsigned)t.most <= t.results);
        tn_pool_free(pool);
    }
}

static void check_failure(tn_pool *pool, uint64_t fail_work, uint64_t fail_emit, tn_status status,
                          const char *text, uint64_t emitted)
{
    trial t;
    tn_error err = { .text = "" };
    begin(&t, pool);
    t.fail_work = fail_work;
    t.fail_emit = fail_emit;
    t.every = 1 + fail_work % 3;
    CHECK(tn_pool_run(pool, 100, &(tn_ordered){ work, emit, &t }, &err) == status);
    CHECK(err.status == status);
    assert_string_equal(said_of(&err), text);
    CHECK(t.emitted == emitted && t.worked <= emitted + t.results + 1);
}

static void the_first_failure_in_order_is_the_one_reported(void)
{
    for (size_t j = 0; j < JOB_COUNTS; j++) {
        tn_pool *pool = make_pool(job_counts[j]);
        for (uint64_t k = 0; k < 100; k++) {
            char text[60];
            snprintf(text, sizeof text, "work failed on item %llu", (unsigned long long)k);
            check_failure(pool, k, UINT64_MAX, TN_ERR_CORRUPT, text, k);
            snprintf(text, sizeof text, "emit failed on item %llu", (unsigned long long)k);
            check_failure(pool, UINT64_MAX, k, TN_ERR_IO, text, k + 1);
            check_failure(pool, k + 1, k, TN_ERR_IO, text, k + 1);
        }
        tn_pool_free(pool);
    }
}

static void a_pool_works_again_after_a_failure(void)
{
    tn_pool *pool = make_pool(3);
    for (int round = 0; round < 50; round++) {
        trial t;
        begin(&t, pool);
        t.fail_work = round % 2 ? UINT64_MAX : (uint64_t)round;
        tn_status status = tn_pool_run(pool, 60, &(tn_ordered){ work, emit, &t }, NULL);
        CHECK(status == (round % 2 ? TN_OK : TN_ERR_CORRUPT));
    }
    tn_pool_free(pool);
}

static tn_status count_only(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    (void)item;
    (void)use;
    (void)err;
    atomic_fetch_add((atomic_ullong *)context, 1);
    return TN_OK;
}

static void emitting_may_be_left_out(void)
{
    for (size_t j = 0; j < JOB_COUNTS; j++) {
        atomic_ullong count = 0;
        tn_pool *pool = make_pool(job_counts[j]);
        CHECK(tn_pool_run(pool, 10000, &(tn_ordered){ count_only, NULL, &count }, NULL) == TN_OK);
        CHECK(count == 10000);
        tn_pool_free(pool);
    }
}

static pthread_t caller;

static tn_status check_thread(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    (void)context;
    (void)item;
    (void)err;
    REQUIRE(pthread_equal(pthread_self(), caller) && use.result == 0 && use.scratch == 0);
    return TN_OK;
}

static tn_status check_emitter(void *context, uint64_t item, unsigned result, tn_error *err)
{
    return check_thread(context, item, (tn_pool_use){ 0, result }, err);
}

static void one_job_stays_in_the_calling_thread(void)
{
    tn_pool *pool = make_pool(1);
    caller = pthread_self();
    CHECK(tn_pool_run(pool, 100, &(tn_ordered){ check_thread, check_emitter, NULL }, NULL) == TN_OK);
    tn_pool_free(pool);
}

static void no_number_means_one_job_a_core(void)
{
    tn_pool *pool;
    CHECK(tn_core_count() >= 1);
    CHECK(tn_pool_new(0, &pool, NULL) == TN_OK);
    CHECK(tn_pool_jobs(pool) == tn_core_count());
    tn_pool_free(pool);
    CHECK(tn_pool_new(100000, &pool, NULL) == TN_OK);
    CHECK(tn_pool_jobs(pool) <= 256);
    tn_pool_free(pool);
    tn_pool_free(NULL);
}

/* 1/10 rounds up to nearest and 1/3 down; half of the smallest normal number is there. */
static tn_status check_environment(void *context, uint64_t item, tn_pool_use use, tn_error *err)
{
    const volatile double one = 1, three = 3, ten = 10, small = 0x1p-1022, negative = -1;
    (void)context;
    (void)item;
    (void)use;
    (void)err;
    REQUIRE(one / three == 0x1.5555555555555p-2 && one / ten == 0x1.999999999999ap-4 && small / 2 > 0);
    REQUIRE(isnan(negative * INFINITY * 0.0));
    return TN_OK;
}

static tn_status check_emitting_environment(void *context, uint64_t item, unsigned result, tn_error *err)
{
    return check_environment(context, item, (tn_pool_use){ 0, result }, err);
}

static void work_is_done_in_the_default_environment_and_the_caller_keeps_his(void)
{
    for (environment e = 0; e < ENVIRONMENTS; e++)
        for (size_t j = 0; j < JOB_COUNTS; j++) {
            enter_environment(e);
            uint64_t before = environment_seen();
            tn_pool *pool = make_pool(job_counts[j]);
            tn_status status = tn_pool_run(pool, 100,
                                           &(tn_ordered){ check_environment, check_emitting_environment,
                                                          NULL }, NULL);
            tn_pool_free(pool);
            uint64_t after = environment_seen();
            leave_environment();
            CHECK(status == TN_OK && before == after);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(items_are_emitted_in_order_and_once),
        TEST(a_pool_for_one_run_has_no_more_threads_than_items),
        TEST(there_are_never_more_items_than_results),
        TEST(the_first_failure_in_order_is_the_one_reported),
        TEST(a_pool_works_again_after_a_failure),
        TEST(emitting_may_be_left_out),
        TEST(one_job_stays_in_the_calling_thread),
        TEST(no_number_means_one_job_a_core),
        TEST(work_is_done_in_the_default_environment_and_the_caller_keeps_his),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
