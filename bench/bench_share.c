/* bench_share.c - a tensor on its way to another process: attached to, through a
 * pipe, through a file.
 *
 *     bench-share MIB FOLDER
 *
 * Makes a tensor of that size in a memfd and offers it; then each line of input
 * names a way ("attach", "attach+crc", "pipe+crc", "file+crc"), and a line of output
 * has the seconds it took a new process: until it could use the tensor, or until it
 * had the checksum, which is compared.  "crc" is the checksum alone, in the process
 * that has the tensor already.  FOLDER is for the file. */
#include "clock.h"

#include "bytes/checksum.h"

#include <tenon/tenon.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };       /* bytes per read() or write(), and of a pipe */

static struct {
    uint64_t bytes;
    uint8_t *data;
    uint32_t crc;
    char     socket[200], file[200];
    int      in;                /* the reading end of the pipe, in the new process */
    int      out;
} bench;

static _Noreturn void give_up(const char *what)
{
    perror(what);
    exit(1);
}

static void must(tn_status status, const tn_error *err)
{
    if (status == TN_OK)
        return;
    fprintf(stderr, "bench-share: %s\n", err->text);
    exit(1);
}

static void check(const uint8_t *data)
{
    if (tn_crc32c(0, data, bench.bytes) != bench.crc) {
        fprintf(stderr, "bench-share: another checksum\n");
        exit(1);
    }
}

/* ---- what the new process does ---- */

static volatile uint8_t looked;

static const uint8_t *attached(void)
{
    tn_attachment *a;
    tn_error err;
    must(tn_share_attach(bench.socket, NULL, &a, &err), &err);
    const uint8_t *data = tn_attached_at(a, 0)->tensor->parts[0].data;
    looked = data[0];
    looked = data[bench.bytes - 1];
    return data;
}

static void attach_only(void) { attached(); }
static void attach_and_check(void) { check(attached()); }

static uint8_t *read_all(int fd)
{
    uint8_t *data = mmap(NULL, bench.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        give_up("bench-share: memory");
    for (uint64_t done = 0; done < bench.bytes;) {
        uint64_t left = bench.bytes - done;
        ssize_t n = read(fd, data + done, left < PIECE ? left : PIECE);
        if (n <= 0)
            give_up("bench-share: read");
        done += (uint64_t)n;
    }
    return data;
}

static void read_pipe(void) { check(read_all(bench.in)); }

static void read_file(void)
{
    int fd = open(bench.file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        give_up(bench.file);
    check(read_all(fd));
}

/* ---- what this one does for it ---- */

static void write_all(int fd)
{
    for (uint64_t done = 0; done < bench.bytes;) {
        uint64_t left = bench.bytes - done;
        ssize_t n = write(fd, bench.data + done, left < PIECE ? left : PIECE);
        if (n <= 0)
            give_up("bench-share: write");
        done += (uint64_t)n;
    }
}

static void write_pipe(void) { write_all(bench.out); }

static void write_file(void)
{
    int fd = open(bench.file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up(bench.file);
    write_all(fd);
    close(fd);
}

typedef struct way {
    const char *name;
    void      (*give)(void);    /* meanwhile, or before where the file has to be whole; or NULL */
    void      (*take)(void);
    bool        whole;
} way;

static const way ways[] = {
    { "attach", NULL, attach_only, false },
    { "attach+crc", NULL, attach_and_check, false },
    { "pipe+crc", write_pipe, read_pipe, false },
    { "file+crc", write_file, read_file, true },
};

static _Noreturn void be_the_new_process(const way *w, double began, int answer)
{
    w->take();
    double took = now() - began;
    if (write(answer, &took, sizeof took) != sizeof took)
        _exit(1);
    _exit(0);
}

static double check_here(void)
{
    double began = now();
    check(bench.data);
    return now() - began;
}

/* Seconds from the moment that there is something to hand over; starting the process counts only where this
 * one works meanwhile. */
static double run(const way *w)
{
    int pipes[2], answers[2];
    double took, began = now();
    if (pipe(pipes) != 0 || pipe(answers) != 0)
        give_up("bench-share: pipe");
    fcntl(pipes[1], F_SETPIPE_SZ, PIECE);
    bench.in = pipes[0];
    bench.out = pipes[1];
    if (w->whole)
        w->give();
    pid_t pid = fork();
    if (pid < 0)
        give_up("bench-share: fork");
    if (pid == 0)
        be_the_new_process(w, w->give ? began : now(), answers[1]);
    if (w->give && !w->whole)
        w->give();
    if (read(answers[0], &took, sizeof took) != sizeof took)
        give_up("bench-share: the new process");
    waitpid(pid, NULL, 0);
    unlink(bench.file);
    for (int i = 0; i < 2; i++) {
        close(pipes[i]);
        close(answers[i]);
    }
    return took;
}

static void *answer(void *offer)
{
    tn_error err;
    must(tn_offer_run(offer, &err), &err);
    return NULL;
}

static void offer_tensor(tn_offer *offer)
{
    const tn_buffer_options options = { .size = sizeof options, .type = TN_HANDLE_MEMFD };
    const int64_t shape = (int64_t)bench.bytes;
    tn_buffer *buffer;
    tn_error err;
    must(tn_buffer_new(bench.bytes, &options, &buffer, &err), &err);
    bench.data = tn_buffer_data(buffer);
    for (uint64_t i = 0, state = 1; i < bench.bytes; i += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        memcpy(bench.data + i, &state, 8);
    }
    bench.crc = tn_crc32c(0, bench.data, bench.bytes);
    const tn_part part = { .role = "data", .array = { .dtype = TN_UINT8, .rank = 1, .shape = &shape },
                           .nbytes = bench.bytes,
                           .data = bench.data };
    const tn_tensor tensor = { .name = "bytes", .form = TN_FORM_DENSE, .dtype = TN_UINT8, .rank = 1,
                               .shape = &shape, .parts = &part,
                               .nparts = 1 };
    must(tn_offer_tensor(offer, &tensor, buffer, 0, true, &err), &err);
}

int main(int argc, char **argv)
{
    char line[40];
    tn_offer *offer;
    tn_error err;
    pthread_t thread;
    long mib = argc == 3 ? atol(argv[1]) : 0;
    if (mib < 1) {
        fprintf(stderr, "usage: bench-share MIB FOLDER\n");
        return 2;
    }
    bench.bytes = (uint64_t)mib << 20;
    snprintf(bench.socket, sizeof bench.socket, "%s/socket", argv[2]);
    snprintf(bench.file, sizeof bench.file, "%s/file", argv[2]);
    must(tn_share_offer(bench.socket, NULL, &offer, &err), &err);
    offer_tensor(offer);
    if (pthread_create(&thread, NULL, answer, offer) != 0)
        give_up("bench-share: a thread");
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "crc") == 0)
            printf("%.9f\n", check_here());
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            if (strcmp(line, ways[i].name) == 0)
                printf("%.9f\n", run(&ways[i]));
        fflush(stdout);
    }
    tn_offer_stop(offer);
    pthread_join(thread, NULL);
    tn_offer_close(offer);
    return 0;
}
