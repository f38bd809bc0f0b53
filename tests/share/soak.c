/* soak.c - many clients of one server, which come, read, and die at any moment.
 *
 *     share-soak TENON SECONDS CLIENTS
 *
 * TENON serve offers a file; CLIENTS processes at a time attach to it, for so
 * many seconds.  Some read everything and check it, some leave without a word, some
 * are killed while they attach or read, some connect and say nothing.  The server
 * must answer all that live, and at the end have what it had before. */
#include "process.h"

#include <tenon/tenon.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TENSORS = 4, VALUES = 1 << 16, MOST_CLIENTS = 1000, PATIENCE = 30000, SLACK_KIB = 256 };

/* What a client is going to do. */
typedef enum manner { READS, LEAVES, IS_KILLED_EARLY, IS_KILLED, IS_MUTE, MANNERS } manner;

/* What all clients have done, in memory that all have. */
typedef struct counts {
    atomic_uint answered, killed, mute, wrong;
    atomic_uint slowest;        /* microseconds until one had everything */
} counts;

typedef struct client {
    pid_t   pid;                /* 0: none */
    manner  how;
    double  until;              /* then it is killed, where that is its manner */
} client;

static struct {
    char    folder[40], file[64], path[64];
    counts *counts;
    pid_t   server;
    client  clients[MOST_CLIENTS];
    int     nclients;
} soak;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_ms(long ms) { nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL); }

/* ---- a client ---- */

static _Noreturn void wrong(const char *text)
{
    atomic_fetch_add(&soak.counts->wrong, 1);
    fprintf(stderr, "client: %s\n", text);
    _exit(1);
}

static void report(void *context, const tn_tensor *tensor, const tn_part *part, tn_verdict verdict,
                   const tn_error *why)
{
    (void)tensor;
    (void)part;
    (void)why;
    *(unsigned *)context += verdict == TN_VERDICT_OK;
}

static void check_all(const tn_file *file)
{
    unsigned good = 0;
    const tn_verify_options options = { .size = sizeof options, .jobs = 1, .context = &good };
    tn_error err;
    if (tn_verify(file, &options, report, &err) != TN_OK)
        wrong(err.text);
    if (good != TENSORS)
        wrong("a checksum is missing or wrong");
}

static tn_attachment *attach(void)
{
    const tn_attach_options options = { .size = sizeof options, .patience = PATIENCE };
    tn_attachment *a;
    tn_error err;
    double began = now();
    if (tn_share_attach(soak.path, &options, &a, &err) != TN_OK)
        wrong(err.text);
    if (tn_attached_count(a) != 1 || tn_file_count(tn_attached_at(a, 0)->file) != TENSORS)
        wrong("something else than the file came");
    unsigned took = (unsigned)(1e6 * (now() - began)), slowest = atomic_load(&soak.counts->slowest);
    while (took > slowest && !atomic_compare_exchange_weak(&soak.counts->slowest, &slowest, took))
        ;
    atomic_fetch_add(&soak.counts->answered, 1);
    return a;
}

static _Noreturn void connect_and_say_nothing(unsigned chance)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    memcpy(address.sun_path, soak.path, strlen(soak.path));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        wrong("cannot connect");
    if (chance % 2 && send(fd, "hm?", 3, MSG_NOSIGNAL) < 0 && errno != EPIPE)
        wrong("cannot send");
    atomic_fetch_add(&soak.counts->mute, 1);
    for (;;)
        pause();
}

static _Noreturn void live(manner how, unsigned chance)
{
    if (how == IS_MUTE)
        connect_and_say_nothing(chance);
    if (how == IS_KILLED_EARLY) {       /* in the middle of whatever it does then */
        signal(SIGALRM, SIG_DFL);
        setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 1 + chance % 3000 }, NULL);
    }
    tn_attachment *a = attach();
    sleep_ms(how == IS_KILLED_EARLY ? 0 : chance % 40);
    if (how == LEAVES)
        _exit(0);
    do
        check_all(tn_attached_at(a, 0)->file);
    while (how == IS_KILLED);
    tn_detach(a);
    _exit(0);
}

/* ---- those who watch over them ---- */

static void start(client *c)
{
    unsigned chance = (unsigned)rand();
    *c = (client){ .how = (manner)(chance % MANNERS), .until = now() + 0.001 * (chance / MANNERS % 400) };
    c->pid = fork();
    if (c->pid == 0)
        live(c->how, chance / MANNERS);
    if (c->pid < 0)
        give_up("cannot start a client");
}

/* Ends or takes leave of a client; true: it is gone. */
static bool attend(client *c)
{
    int status;
    if ((c->how == IS_KILLED || c->how == IS_MUTE) && now() >= c->until)
        kill(c->pid, SIGKILL);
    if (waitpid(c->pid, &status, WNOHANG) != c->pid)
        return false;
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGALRM)) {
        atomic_fetch_add(&soak.counts->killed, 1);
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
        atomic_fetch_add(&soak.counts->wrong, 1);
        fprintf(stderr, "client: ended with status 0x%x\n", (unsigned)status);
    }
    c->pid = 0;
    return true;
}

static unsigned run_clients(double seconds)
{
    unsigned gone = 0;
    for (double end = now() + seconds; now() < end;) {
        for (int i = 0; i < soak.nclients; i++) {
            if (soak.clients[i].pid && attend(&soak.clients[i]))
                gone++;
            if (!soak.clients[i].pid)
                start(&soak.clients[i]);
        }
        sleep_ms(2);
    }
    for (int i = 0; i < soak.nclients; i++) {
        soak.clients[i].until = 0;
        while (!attend(&soak.clients[i]))
            sleep_ms(1);
        gone++;
    }
    return gone;
}

/* ---- the server ---- */

static void make_file(void)
{
    static uint32_t values[VALUES];
    const int64_t shape = VALUES;
    const tn_create_options options = { .size = sizeof options, .format = "ztensor" };
    const tn_part part = { .role = "data", .array = { .dtype = TN_UINT32, .rank = 1, .shape = &shape },
                           .nbytes = sizeof values,
                           .data = values };
    tn_writer *writer;
    tn_error err;
    for (uint32_t i = 0, state = 1; i < VALUES; i++)
        values[i] = state = state * 1664525u + 1013904223u;
    tn_status status = tn_create(soak.file, &options, &writer, &err);
    for (int i = 0; i < TENSORS && status == TN_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        status = tn_writer_add(writer, &(tn_tensor){ .name = name, .form = TN_FORM_DENSE, .dtype = TN_UINT32,
                                                     .rank = 1, .shape = &shape,
                                                     .parts = &part, .nparts = 1 }, &err);
    }
    if (status != TN_OK || tn_writer_finish(writer, &err) != TN_OK)
        give_up("%s", err.text);
}

static void start_server(const char *tenon)
{
    soak.server = fork();
    if (soak.server == 0) {
        execl(tenon, tenon, "serve", soak.file, "--socket", soak.path, "--quiet", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 3000 && access(soak.path, F_OK) != 0; i++)
        sleep_ms(10);
}

/* Clients of all manners but those that are killed, one after the other: what is made once is made then. */
static void warm_up(void)
{
    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();
        if (pid == 0)
            live(i % 2 ? READS : LEAVES, 0);
        waitpid(pid, NULL, 0);
    }
}

/* Without libraries, of which it counts how many other programs happen to have them. */
static long memory_of_server(void)
{
    return memory_of(soak.server, "Pss") - memory_of(soak.server, "Pss_File");
}

/* The last ones may not be forgotten yet. */
static int descriptors_at_the_end(int before)
{
    int after = descriptors_of(soak.server);
    for (int i = 0; i < 1000 && after != before; i++) {
        sleep_ms(10);
        after = descriptors_of(soak.server);
    }
    return after;
}

static void soak_it(double seconds)
{
    warm_up();
    int files = descriptors_of(soak.server), maps = mappings_of(soak.server);
    long memory = memory_of_server();
    unsigned gone = run_clients(seconds), wrongs = atomic_load(&soak.counts->wrong);
    int files_after = descriptors_at_the_end(files), maps_after = mappings_of(soak.server);
    long memory_after = memory_of_server();
    judge(
        wrongs == 0,
        "%u clients, %d at a time: %u answered, the slowest after %.1f ms, %u killed, %u mute, %u went wrong",
        gone, soak.nclients, atomic_load(&soak.counts->answered), 1e-3 * atomic_load(&soak.counts->slowest),
        atomic_load(&soak.counts->killed), atomic_load(&soak.counts->mute), wrongs);
    judge(atomic_load(&soak.counts->answered) > 0 && atomic_load(&soak.counts->killed) > 0,
          "some were answered and some were killed");
    judge(files_after == files, "the server has %d descriptors, before %d", files_after, files);
    judge(maps_after <= maps, "the server has %d mappings, before %d", maps_after, maps);
    judge(memory_after <= memory + SLACK_KIB, "the server has %ld KiB of its own, before %ld", memory_after,
          memory);
}

static void stop_server(void)
{
    int status = -1;
    kill(soak.server, SIGTERM);
    waitpid(soak.server, &status, 0);
    judge(status == 0 && access(soak.path, F_OK) != 0,
          "the server stops when it is asked to, and its socket is gone");
    unlink(soak.file);
    rmdir(soak.folder);
}

int main(int argc, char **argv)
{
    double seconds = argc == 4 ? atof(argv[2]) : 0;
    soak.nclients = argc == 4 ? atoi(argv[3]) : 0;
    if (seconds <= 0 || soak.nclients < 1 || soak.nclients > MOST_CLIENTS)
        give_up("usage: share-soak TENON SECONDS CLIENTS, at most %d of these", MOST_CLIENTS);
    strcpy(soak.folder, "/tmp/tenon-soak-XXXXXX");
    if (!mkdtemp(soak.folder))
        give_up("cannot make a folder in /tmp");
    snprintf(soak.file, sizeof soak.file, "%s/file.zt", soak.folder);
    snprintf(soak.path, sizeof soak.path, "%s/socket", soak.folder);
    soak.counts = mmap(NULL, sizeof *soak.counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (soak.counts == MAP_FAILED)
        give_up("no memory");
    make_file();
    start_server(argv[1]);
    soak_it(seconds);
    stop_server();
    return tally();
}
