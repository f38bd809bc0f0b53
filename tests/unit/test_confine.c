/* Those who attach can give up what they do not need, before they read a byte. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "make.h"
#include "offering.h"

static full_path place(void)
{
    return in_folder("socket");
}

static void make_good(void)
{
    static float data[1000];
    const simple w = { "w", TN_FLOAT32, 1, { 1000 }, data, NULL, NULL, 0 };
    write_file("good.zt", (tn_create_options){ .replace = true }, &w, 1);
}

static void offer_good(tn_offer *offer)
{
    tn_file *f;
    REQUIRE(tn_open(in_folder("good.zt").text, NULL, &f, NULL) == TN_OK);
    REQUIRE(tn_offer_file(offer, "good.zt", f, false, NULL) == TN_OK);
    tn_close(f);
}

static bool can_confine(void)
{
    if (SANITIZED) {
        print_message("sanitizers need more than a confined process has\n");
        return false;
    }
    for (size_t i = 0; tn_build_fact(i); i++) {
        if (strcmp(tn_build_fact(i), "confinement: none") == 0) {
            print_message("this build cannot confine\n");
            return false;
        }
    }
    return true;
}

static void *add_one(void *number)
{
    ++*(int *)number;
    return NULL;
}

/* What nobody who attaches can do any more, and that threads still can be had. */
static void try_programs_and_connections(void)
{
    pthread_t thread;
    int number = 1;
    REQUIRE(execl("/bin/true", "true", NULL) < 0 && errno == EPERM);
    REQUIRE(fork() < 0 && errno == EPERM);
    REQUIRE(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
    REQUIRE(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM);
    REQUIRE(kill(getppid(), 0) < 0 && errno == EPERM);
    REQUIRE(ioctl(0, FIONBIO, &(int){ 0 }) < 0 && errno == EPERM);
    REQUIRE(fcntl(0, F_SETOWN, getppid()) < 0 && errno == EPERM && fcntl(0, F_GETFL) >= 0);
    REQUIRE(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    REQUIRE(errno == EPERM);
    REQUIRE(pthread_create(&thread, NULL, add_one, &number) == 0 && pthread_join(thread, NULL) == 0);
    REQUIRE(number == 2);
}

static tn_status confine_to_nothing(void *context, tn_error *err)
{
    const char *how = NULL;
    bool *called = context;
    *called = true;
    REQUIRE(tn_attach_confine(NULL, false, &how, err) == TN_OK && strstr(how, "no files"));
    return TN_OK;
}

/* In a process of its own, which ends with 0 if `run` returns. */
static void in_a_process(void (*run)(void))
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (status != 0)
        fail_msg("status 0x%x", (unsigned)status);
}

static void attach_without_files(void)
{
    bool called = false;
    tn_attach_options options = {
        .size = sizeof options, .patience = LONG, .connected = confine_to_nothing, .context = &called,
    };
    tn_attachment *a = attach_so(place().text, &options);
    const tn_attached *item = attached_called(a, "good.zt");
    tn_verify_options verify = { .size = sizeof verify };
    REQUIRE(called && tn_verify(item->file, &verify, NULL, NULL) == TN_OK);
    REQUIRE(open("/dev/null", O_RDONLY) < 0 && errno == EPERM);
    REQUIRE(open(in_folder("good.zt").text, O_RDONLY) < 0 && errno == EPERM);
    REQUIRE(creat(in_folder("new").text, 0600) < 0 && errno == EPERM);
    REQUIRE(unlink(in_folder("good.zt").text) < 0 && errno == EPERM);
    try_programs_and_connections();
    tn_detach(a);
}

static void who_attaches_confined_reads_and_can_do_nothing_else(void)
{
    if (!can_confine())
        return;
    make_good();
    pid_t server = start_offering(place().text, NULL, offer_good);
    in_a_process(attach_without_files);
    end_offering(server);
}

static tn_status confine_to_folder(void *context, tn_error *err)
{
    const char *how = NULL;
    bool *restricted = context;
    tn_status status = tn_attach_confine(in_folder("link.zt").text, false, &how, err);
    *restricted = how && strstr(how, "Landlock: no files but");
    return status;
}

/* "link.zt" leads to a file of the folder "out" that is not there yet. */
static void attach_and_save(void)
{
    bool restricted = false;
    tn_attach_options options = {
        .size = sizeof options, .patience = LONG, .connected = confine_to_folder, .context = &restricted,
    };
    tn_convert_options convert = { .size = sizeof convert, .encoding = TN_CHOOSE, .checksum = TN_CHOOSE };
    tn_error err = { .text = "" };
    REQUIRE(setenv("TMPDIR", in_folder("temporary").text, 1) == 0);
    tn_attachment *a = attach_so(place().text, &options);
    const tn_file *file = attached_called(a, "good.zt")->file;
    tn_status status = tn_convert(file, in_folder("link.zt").text, &convert, NULL, &err);
    if (status)
        fprintf(stderr, "%s\n", line_of(&err));
    REQUIRE(!status);
    int fd = open(in_folder("temporary/file").text, O_WRONLY | O_CREAT, 0600);
    REQUIRE(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
    REQUIRE(unlink(in_folder("temporary/file").text) == 0);
    try_programs_and_connections();
    if (!restricted) {
        print_message("this kernel has no Landlock\n");
        return;
    }
    REQUIRE(open(in_folder("good.zt").text, O_RDONLY) < 0 && errno == EACCES);
    REQUIRE(open(in_folder("new").text, O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES);
    REQUIRE(unlink(in_folder("good.zt").text) < 0 && errno == EACCES);
    REQUIRE(rename(in_folder("out/new.zt").text, in_folder("new.zt").text) < 0);
    REQUIRE(open("/etc/passwd", O_RDONLY) < 0 && errno == EACCES);
    tn_detach(a);
}

static void who_saves_confined_writes_to_the_folder_of_the_output_alone(void)
{
    tn_file *f;
    if (!can_confine())
        return;
    make_good();
    CHECK(mkdir(in_folder("out").text, 0777) == 0 && mkdir(in_folder("temporary").text, 0777) == 0);
    CHECK(symlink("out/new.zt", in_folder("link.zt").text) == 0);
    pid_t server = start_offering(place().text, NULL, offer_good);
    in_a_process(attach_and_save);
    end_offering(server);
    CHECK(tn_open(in_folder("out/new.zt").text, NULL, &f, NULL) == TN_OK);
    tn_close(f);
}

static tn_status refuse(void *context, tn_error *err)
{
    (void)context;
    snprintf(err->text, sizeof err->text, "not like this");
    return err->status = TN_ERR_UNSUPPORTED;
}

static void an_error_of_the_caller_ends_the_attaching(void)
{
    tn_attach_options options = { .size = sizeof options, .patience = LONG, .connected = refuse };
    tn_attachment *a;
    tn_error err;
    make_good();
    pid_t server = start_offering(place().text, NULL, offer_good);
    held before = held_now();
    CHECK(tn_share_attach(place().text, &options, &a, &err) == TN_ERR_UNSUPPORTED);
    CHECK(strcmp(said_of(&err), "not like this") == 0 && nothing_more_than(before));
    end_offering(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(who_attaches_confined_reads_and_can_do_nothing_else),
        IN_FOLDER(who_saves_confined_writes_to_the_folder_of_the_output_alone),
        IN_FOLDER(an_error_of_the_caller_ends_the_attaching),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
