/* two.c - what one tensor costs that two processes have.
 *
 *     share-two MIB
 *
 * One process offers a tensor of that size, a second attaches and reads all of
 * it; then the second writes, and the first looks.  The memory of both together
 * (PSS) is compared with that of the first alone. */
#include "process.h"

#include <tenon/tenon.h>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(tn_status status, const tn_error *err)
{
    if (status != TN_OK)
        give_up("%s", err->text);
}

static void tell(int fd, double value)
{
    if (write(fd, &value, sizeof value) != sizeof value)
        give_up("the other process is gone");
}

static double hear(int fd)
{
    double value;
    if (read(fd, &value, sizeof value) != sizeof value)
        give_up("the other process is gone");
    return value;
}

static uint64_t sum_of(const uint64_t *words, uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum = sum * 3 + words[i];
    return sum;
}

/* Attaches when told to, reads everything, stays until told to go on, writes. */
static _Noreturn void second_process(const char *path, int in, int out)
{
    tn_attachment *a;
    tn_error err;
    hear(in);
    double began = now();
    must(tn_share_attach(path, NULL, &a, &err), &err);
    tell(out, now() - began);
    const tn_attached *item = tn_attached_at(a, 0);
    uint64_t *words = tn_buffer_data(item->buffer);
    uint64_t n = tn_buffer_size(item->buffer) / 8, sum = sum_of(words, n);
    double bits;
    memcpy(&bits, &sum, sizeof bits);
    tell(out, bits);
    hear(in);
    words[n - 1] ^= 1;
    tell(out, 0);
    tn_detach(a);
    _exit(0);
}

static void *answer(void *offer)
{
    tn_error err;
    must(tn_offer_run(offer, &err), &err);
    return NULL;
}

static tn_buffer *make_tensor(tn_offer *offer, int64_t words)
{
    const tn_buffer_options options = { .size = sizeof options, .type = TN_HANDLE_MEMFD };
    const uint64_t bytes = (uint64_t)words * 8;
    tn_buffer *buffer;
    tn_error err;
    must(tn_buffer_new(bytes, &options, &buffer, &err), &err);
    uint64_t *data = tn_buffer_data(buffer), state = 1;
    for (int64_t i = 0; i < words; i++)
        data[i] = state = state * 6364136223846793005u + 1442695040888963407u;
    const tn_part part = { .role = "data", .array = { .dtype = TN_UINT64, .rank = 1, .shape = &words },
                           .nbytes = bytes, .data = data };
    const tn_tensor tensor = { .name = "words", .form = TN_FORM_DENSE, .dtype = TN_UINT64, .rank = 1,
                               .shape = &words, .parts = &part,
                               .nparts = 1 };
    must(tn_offer_tensor(offer, &tensor, buffer, 0, true, &err), &err);
    return buffer;
}

/* Both are told apart from their own needs: what each has before the tensor is shared counts as "alone". */
static void compare(pid_t other, int in, int out, tn_offer *offer, long mib)
{
    const int64_t words = (int64_t)mib << 17;
    tn_buffer *buffer = make_tensor(offer, words);
    const uint64_t *data = tn_buffer_data(buffer), sum = sum_of(data, (uint64_t)words),
                   last = data[words - 1];
    pthread_t thread;
    if (pthread_create(&thread, NULL, answer, offer) != 0)
        give_up("cannot start a thread");
    long alone = pss_of(getpid()) + pss_of(other);
    tell(out, 0);
    double seconds = hear(in), bits = hear(in);
    long first = pss_of(getpid()), second = pss_of(other), more = first + second - alone;
    judge(memcmp(&bits, &sum, sizeof bits) == 0, "the other process reads what is here");
    judge(more < alone / 100,
          "%ld MiB in two processes: %ld + %ld KiB, %+.3f %% of what they had before the second attached, in "
          "%.2f ms",
          mib, first, second, 100.0 * (double)more / (double)alone, 1e3 * seconds);
    tell(out, 0);
    hear(in);
    judge(data[words - 1] == (last ^ 1), "what it writes is seen here");
    tn_offer_stop(offer);
    pthread_join(thread, NULL);
    tn_buffer_unref(buffer);
}

int main(int argc, char **argv)
{
    long mib = argc == 2 ? atol(argv[1]) : 0;
    char folder[] = "/tmp/tenon-two-XXXXXX", path[64];
    int there[2], back[2], status;
    tn_offer *offer;
    tn_error err;
    if (mib < 1 || !mkdtemp(folder) || pipe(there) != 0 || pipe(back) != 0)
        give_up("usage: share-two MIB");
    snprintf(path, sizeof path, "%s/socket", folder);
    must(tn_share_offer(path, NULL, &offer, &err), &err);
    pid_t other = fork();       /* before the tensor is here: it inherits nothing of it */
    if (other == 0)
        second_process(path, there[0], back[1]);
    signal(SIGPIPE, SIG_IGN);
    close(there[0]);
    close(back[1]);
    compare(other, back[0], there[1], offer, mib);
    waitpid(other, &status, 0);
    judge(WIFEXITED(status) && WEXITSTATUS(status) == 0, "and it ends as it should");
    tn_offer_close(offer);
    rmdir(folder);
    return tally();
}
