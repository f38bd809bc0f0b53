/* Tensors handed to other processes: what arrives is what was offered, and it is
 * the same memory; who may attach; who may write. */
#include "support.h"
#include "stored.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "datatype_tensor.h"
#include "files.h"
#include "make.h"
#include "offering.h"

#include "bytes/sink_calls.h"
#include "share/memory_calls.h"

static full_path place(void)
{
    return in_folder("socket");
}

/* ---- files ---- */

static const char *const samples[] = {
    "ztensor/good/", "ztensor/edge/", "numpy/", "scipy/", "mtx/hand/", "mtx/scipy/", "descriptor/good/",
};

/* The golden files that can be read; the path is the name. */
static void each_sample(void (*use)(const char *path, const tn_file *file))
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char where[PATH_MAX];
        snprintf(where, sizeof where, TEST_GOLDEN "/%s", samples[i]);
        DIR *dir = opendir(where);
        REQUIRE(dir);
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
            char full[2 * PATH_MAX];
            tn_file *file;
            snprintf(full, sizeof full, "%s%s", where, entry->d_name);
            if (tn_open(full, NULL, &file, NULL))
                continue;
            use(full, file);
            tn_close(file);
        }
        closedir(dir);
    }
}

static size_t not_offered;

static void offer_sample(const char *name, const tn_file *file)
{
    tn_error err = { .text = "" };
    tn_status status = tn_offer_file(offering, name, file, false, &err);
    not_offered += status != TN_OK;
    REQUIRE(status == err.status);
    REQUIRE(!status || status == TN_ERR_LOSS || status == TN_ERR_UNSUPPORTED || status == TN_ERR_CORRUPT ||
            status == TN_ERR_CHECKSUM || status == TN_ERR_ARGUMENT);
}

static void offer_samples(tn_offer *offer)
{
    (void)offer;
    each_sample(offer_sample);
}

static tn_attachment *attachment;
static size_t agreeing, forms_seen;

static void note_form(const tn_file *file)
{
    static const tn_form forms[] = { TN_FORM_DENSE, TN_FORM_COO, TN_FORM_CSR, TN_FORM_SCALED };
    for (size_t i = 0; i < tn_file_count(file); i++)
        for (size_t k = 0; k < 4; k++)
            if (tn_file_tensor(file, i)->form == forms[k])
                forms_seen |= (size_t)1 << k;
}

static void compare_sample(const char *name, const tn_file *file)
{
    size_t different = 1;
    tn_error err = { .text = "" };
    for (size_t i = 0; i < tn_attached_count(attachment); i++) {
        const tn_attached *found = tn_attached_at(attachment, i);
        if (strcmp(found->name, name) != 0)
            continue;
        CHECK(found->file && found->buffer && !found->tensor && !found->descriptor);
        CHECK(tn_file_count(found->file) == tn_file_count(file));
        if (tn_compare(file, found->file, NULL, NULL, &different, &err))
            fail_msg("%s: %s", name, line_of(&err));
        if (different)
            fail_msg("%s: %zu tensors differ", name, different);
        note_form(found->file);
        agreeing++;
    }
}

static void every_form_arrives_as_it_is_in_its_file(void)
{
    pid_t server = start_offering(place().text, NULL, offer_samples);
    attachment = attach_so(place().text, NULL);
    agreeing = forms_seen = 0;
    each_sample(compare_sample);
    CHECK(agreeing == tn_attached_count(attachment) && agreeing > 50);
    CHECK((forms_seen & 7) == 7);
    end_offering(server);
    for (size_t i = 0; i < tn_attached_count(attachment); i++)          /* all of it stays ours */
        walk_file(tn_attached_at(attachment, i)->file);
    tn_detach(attachment);
}

static scaled_tensor *made;

static void offer_datatype(tn_offer *offer)
{
    tn_file *f;
    REQUIRE(tn_open(in_folder("scaled.zt").text, NULL, &f, NULL) == TN_OK);
    REQUIRE(tn_offer_file(offer, "scaled", f, false, NULL) == TN_OK);
    tn_close(f);
}

static void a_tensor_of_a_datatype_that_was_compressed_arrives_with_all_its_parts(void)
{
    const int64_t shape[] = { 40, 96 };
    tn_create_options options = { .size = sizeof options, .encoding = TN_ENCODING_ZSTD,
                                  .checksum = TN_CHECKSUM_SHA256 };
    tn_writer *w;
    made = scaled_of("w", datatype_of("mxfp4"), 2, shape, false, "walsh32:7");
    CHECK(tn_create(in_folder("scaled.zt").text, &options, &w, NULL) == TN_OK);
    CHECK(tn_writer_add(w, &made->t, NULL) == TN_OK);
    CHECK(tn_writer_finish(w, NULL) == TN_OK);
    pid_t server = start_offering(place().text, NULL, offer_datatype);
    tn_attachment *a = attach_so(place().text, NULL);
    const tn_attached *found = attached_called(a, "scaled");
    check_scaled_tensor(found->file, made);
    const tn_part *p = &tn_file_find(found->file, "w")->parts[0];
    CHECK(p->data && stored_info(p).encoding == TN_ENCODING_RAW);
    CHECK(stored_info(p).checksum == TN_CHECKSUM_CRC32C);
    CHECK(tn_buffer_flags(found->buffer) == (TN_MEM_SHARED | TN_MEM_READ_ONLY));
    end_offering(server);
    tn_detach(a);
    scaled_free(made);
}

static ssize_t full_disk(int fd, const void *data, size_t n, off_t offset)
{
    (void)fd, (void)data, (void)n, (void)offset;
    errno = ENOSPC;
    return -1;
}

static int no_memfd(const char *name, unsigned flags)
{
    (void)name, (void)flags;
    errno = EMFILE;
    return -1;
}

static void expect_failure(tn_offer *offer, const tn_file *file, const char *says)
{
    tn_error err = { .text = "" };
    held before = held_now();
    CHECK(tn_offer_file(offer, "a", file, false, &err) == TN_ERR_IO && strstr(line_of(&err), says));
    CHECK(nothing_more_than(before));
}

static void make_plain(const char *name, float first);

static void a_file_that_there_is_no_room_for_is_not_offered(void)
{
    const struct tn_sink_calls sink = tn_sink_calls;
    const struct tn_memory_calls memory = tn_memory_calls;
    tn_offer *offer;
    make_plain("plain.zt", 1);
    tn_file *f = open_file("plain.zt");
    CHECK(tn_share_offer(place().text, NULL, &offer, NULL) == TN_OK);
    tn_sink_calls.pwrite = full_disk;
    expect_failure(offer, f, "shared memory: cannot write: No space left");
    tn_sink_calls = sink;
    tn_memory_calls.memfd_create = no_memfd;
    expect_failure(offer, f, "Too many open files");
    tn_memory_calls = memory;
    CHECK(tn_offer_file(offer, "a", f, false, NULL) == TN_OK);  /* the name is still free */
    tn_close(f);
    tn_offer_close(offer);
}

static void a_damaged_file_is_not_offered(void)
{
    tn_offer *offer;
    tn_error err = { .text = "" };
    uint8_t byte = 0;
    make_plain("plain.zt", 1);
    tn_file *f = open_file("plain.zt");
    tn_convert_options options = { .size = sizeof options, .checksum = TN_CHOOSE,
                                   .create = &(tn_create_options){ .size = sizeof(tn_create_options),
                                                                   .checksum = TN_CHECKSUM_CRC32C } };
    CHECK(tn_convert(f, in_folder("sum.zt").text, &options, NULL, NULL) == TN_OK);
    tn_close(f);
    int fd = open(in_folder("sum.zt").text, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && pread(fd, &byte, 1, 200) == 1);
    byte ^= 1;
    CHECK(pwrite(fd, &byte, 1, 200) == 1 && close(fd) == 0);
    CHECK(tn_share_offer(place().text, NULL, &offer, NULL) == TN_OK);
    CHECK(tn_open(in_folder("sum.zt").text, NULL, &f, NULL) == TN_OK);
    CHECK(tn_offer_file(offer, "a", f, false, &err) == TN_ERR_CHECKSUM && err.text[0]);
    tn_close(f);
    tn_offer_close(offer);
}

/* ---- a plain file, in place ---- */

enum { FLOATS = 5000 };

static void make_plain(const char *name, float first)
{
    static float data[FLOATS];
    for (int i = 0; i < FLOATS; i++)
        data[i] = first + (float)i;
    write_file(name, (tn_create_options){ .replace = true }, &(simple){ "w", TN_FLOAT32, 1, { FLOATS }, data,
                                                                        NULL, NULL, 0 }, 1);
}

static void offer_plain_twice(tn_offer *offer)
{
    tn_file *f;
    REQUIRE(tn_open(in_folder("plain.zt").text, NULL, &f, NULL) == TN_OK);
    REQUIRE(tn_offer_file(offer, "as it is", f, true, NULL) == TN_OK);
    REQUIRE(tn_offer_file(offer, "copied", f, false, NULL) == TN_OK);
    REQUIRE(tn_offer_file(offer, "copied", f, false, NULL) == TN_ERR_ARGUMENT);
    REQUIRE(tn_offer_file(offer, "", f, false, NULL) == TN_ERR_ARGUMENT);
    tn_close(f);
}

static void a_file_in_place_goes_to_those_who_ask_for_it(void)
{
    tn_attach_options asks = { .size = sizeof asks, .in_place = true, .patience = LONG };
    make_plain("plain.zt", 1);
    pid_t server = start_offering(place().text, NULL, offer_plain_twice);
    tn_attachment *a = attach_so(place().text, NULL), *b = attach_so(place().text, &asks);
    CHECK(tn_attached_count(a) == 1 && tn_attached_withheld(a) == 1);
    CHECK(tn_attached_count(b) == 2 && tn_attached_withheld(b) == 0);
    CHECK(!tn_attached_at(b, 2));
    const tn_attached *itself = attached_called(b, "as it is");
    const float *w = tn_file_find(itself->file, "w")->parts[0].data;
    CHECK(w && w[FLOATS - 1] == FLOATS);
    CHECK(!tn_buffer_broken(itself->buffer) && tn_file_intact(itself->file, NULL) == TN_OK);
    CHECK(truncate(in_folder("plain.zt").text, 64) == 0);       /* by anybody who may write it */
    CHECK(tn_convert(itself->file, in_folder("out.zt").text, NULL, NULL, NULL) == TN_ERR_TRUNCATED);
    CHECK(access(in_folder("out.zt").text, F_OK) != 0);
    CHECK(w[FLOATS - 1] == 0 && tn_buffer_broken(itself->buffer));
    CHECK(tn_file_intact(itself->file, NULL) == TN_ERR_TRUNCATED);
    const float *copy = tn_file_find(attached_called(b, "copied")->file, "w")->parts[0].data;
    CHECK(copy[FLOATS - 1] == FLOATS);
    tn_detach(b);
    tn_detach(a);
    end_offering(server);
}

/* ---- tensors ---- */

static tn_buffer *open_memory, *closed_memory;
static const int64_t grid[] = { 3, 4 }, column_first[] = { 1, 3 };

static tn_buffer *new_memory(void)
{
    tn_buffer *b;
    REQUIRE(tn_buffer_new(8192, &(tn_buffer_options){ .size = sizeof(tn_buffer_options),
                                                      .flags = TN_MEM_SHARED }, &b, NULL) == TN_OK);
    return b;
}

static void offer_two(tn_offer *offer)
{
    tn_part part = { .role = "data", .array = { .dtype = TN_INT32, .rank = 2, .shape = grid } };
    tn_meta meta = { .key = "unit", .text = "metre" };
    tn_tensor t = { .name = "both write", .form = TN_FORM_DENSE, .dtype = TN_INT32, .rank = 2, .shape = grid,
                    .parts = &part, .nparts = 1,
                    .layout = "HW", .meta = &meta, .nmeta = 1 };
    REQUIRE(tn_offer_tensor(offer, &t, open_memory, 256, true, NULL) == TN_OK);
    t.name = "one writes";
    part.array.stride = column_first;
    t.layout = NULL;
    REQUIRE(tn_offer_tensor(offer, &t, closed_memory, 20, false, NULL) == TN_OK);
    tn_error err = { .text = "" };
    t.name = "too far";
    REQUIRE(tn_offer_tensor(offer, &t, closed_memory, 8192 - 47, false, &err) == TN_ERR_ARGUMENT &&
            strstr(line_of(&err), "48 bytes"));
    t.parts = NULL;
    t.nparts = 0;
    REQUIRE(tn_offer_tensor(offer, &t, closed_memory, 0, false, &err) == TN_ERR_ARGUMENT &&
            strstr(line_of(&err), "dense"));
}

static void what_one_writes_the_other_sees(void)
{
    open_memory = new_memory();
    closed_memory = new_memory();
    pid_t server = start_offering(place().text, NULL, offer_two);
    tn_attachment *a = attach_so(place().text, NULL);
    const tn_attached *both = attached_called(a, "both write"), *one = attached_called(a, "one writes");
    int32_t *ours = (int32_t *)((uint8_t *)tn_buffer_data(open_memory) + 256),
            *theirs = (int32_t *)(uintptr_t)both->tensor->parts[0].data;
    CHECK(ours != theirs && !(tn_buffer_flags(both->buffer) & TN_MEM_READ_ONLY));
    theirs[5] = 77;
    CHECK(ours[5] == 77);
    ours[11] = -3;
    CHECK(theirs[11] == -3);
    CHECK(both->tensor->parts[0].nbytes == 48 && !both->tensor->parts[0].array.stride &&
          strcmp(both->tensor->layout, "HW") == 0);
    CHECK(strstr(both->descriptor->metadata, "metre"));
    const int32_t *seen = one->tensor->parts[0].data;
    memcpy((uint8_t *)tn_buffer_data(closed_memory) + 20 + 4, &(int32_t){ 99 }, 4);
    CHECK(seen[1] == 99 && one->tensor->parts[0].array.stride[1] == 3);
    end_offering(server);
    tn_detach(a);
    tn_buffer_unref(open_memory);
    tn_buffer_unref(closed_memory);
}

static void the_descriptor_says_what_is_true_in_this_process(void)
{
    open_memory = new_memory();
    closed_memory = new_memory();
    pid_t server = start_offering(place().text, NULL, offer_two);
    tn_attachment *a = attach_so(place().text, NULL);
    for (size_t i = 0; i < 2; i++) {
        const tn_attached *found = tn_attached_at(a, i);
        const tn_descriptor *d = found->descriptor;
        struct stat st;
        size_t wrong;
        CHECK(d->buffer_handle.type == TN_HANDLE_MEMFD &&
              d->buffer_handle.read_only == (strcmp(found->name, "one writes") == 0));
        CHECK(fstat((int)d->buffer_handle.handle, &st) == 0 && st.st_size == 8192 &&
              d->buffer_handle.size_bytes == 8192);
        CHECK(d->mapping.cpu_mapped && d->mapping.cpu_address == (uintptr_t)tn_buffer_data(found->buffer));
        CHECK((const uint8_t *)tn_buffer_data(found->buffer) + d->offset_bytes ==
              found->tensor->parts[0].data);
        CHECK(tn_descriptor_check(d, NULL, &wrong, NULL) == TN_OK && wrong == 0);
    }
    tn_buffer *kept = tn_buffer_ref(tn_attached_at(a, 0)->buffer);
    tn_detach(a);
    memset(tn_buffer_data(kept), 1, tn_buffer_size(kept));
    tn_buffer_unref(kept);
    end_offering(server);
    tn_buffer_unref(open_memory);
    tn_buffer_unref(closed_memory);
}

static void write_where_it_is_forbidden(void)
{
    tn_attachment *a = NULL;
    REQUIRE(tn_share_attach(place().text, NULL, &a, NULL) == TN_OK);
    for (size_t i = 0; i < tn_attached_count(a); i++) {
        const tn_attached *found = tn_attached_at(a, i);
        char again[64];
        int fd = (int)tn_buffer_handle_of(found->buffer).handle;
        snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
        int reopened = open(again, O_RDWR | O_CLOEXEC);
        if (strcmp(found->name, "both write") == 0) {
            /* nor can it be spoilt for others */
            REQUIRE(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0);
            continue;
        }
        REQUIRE(pwrite(fd, "x", 1, 0) < 0 && (reopened < 0 || pwrite(reopened, "x", 1, 0) < 0));
        REQUIRE(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
        REQUIRE(mprotect(tn_buffer_data(found->buffer), 4096, PROT_READ | PROT_WRITE) != 0);
        REQUIRE(ftruncate(fd, 0) != 0 &&
                fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0);
    }
    tn_detach(a);
}

static void who_may_not_write_cannot(void)
{
    open_memory = new_memory();
    closed_memory = new_memory();
    pid_t server = start_offering(place().text, NULL, offer_two);
    CHECK(in_child(write_where_it_is_forbidden) == 0);
    end_offering(server);
    tn_buffer_unref(open_memory);
    tn_buffer_unref(closed_memory);
}

static void the_image_of_a_file_is_sealed_for_good(void)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    make_plain("plain.zt", 1);
    pid_t server = start_offering(place().text, NULL, offer_plain_twice);
    tn_attachment *a = attach_so(place().text, NULL);
    int fd = (int)tn_buffer_handle_of(attached_called(a, "copied")->buffer).handle;
    CHECK((fcntl(fd, F_GET_SEALS) & seals) == seals);
    tn_detach(a);
    end_offering(server);
}

static void a_tensor_with_too_long_a_description_leaves_its_buffer_free_to_be_frozen(void)
{
    static char text[70000];
    tn_part part = { .role = "data", .array = { .dtype = TN_INT32, .rank = 2, .shape = grid } };
    tn_meta meta = { .key = "text", .text = memset(text, 'x', sizeof text - 1) };
    tn_tensor t = { .name = "t", .form = TN_FORM_DENSE, .dtype = TN_INT32, .rank = 2, .shape = grid,
                    .parts = &part,
                    .nparts = 1,
                    .meta = &meta, .nmeta = 1 };
    tn_offer *offer;
    tn_buffer *b = new_memory();
    CHECK(tn_share_offer(place().text, NULL, &offer, NULL) == TN_OK);
    CHECK(tn_offer_tensor(offer, &t, b, 0, true, NULL) == TN_ERR_LIMIT);
    CHECK(tn_buffer_freeze(b, NULL) == TN_OK);
    tn_buffer_unref(b);
    tn_offer_close(offer);
}

/* ---- who may attach ---- */

enum { STRANGER = 65533, MEMBERS = 65532 };

static void become(uid_t uid, gid_t gid)
{
    REQUIRE(setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0);
}

static tn_status attach_status(const tn_attach_options *options, tn_error *err)
{
    tn_attachment *a;
    tn_attach_options patient = { .size = sizeof patient, .patience = LONG };
    tn_status status = tn_share_attach(place().text, options ? options : &patient, &a, err);
    if (!status)
        tn_detach(a);
    return status;
}

static const uint32_t root_alone[] = { 0 }, strangers[] = { STRANGER }, members[] = { MEMBERS };

static void come_as_a_stranger(void)
{
    tn_error err = { .text = "" };
    REQUIRE(setgroups(0, NULL) == 0);
    become(STRANGER, STRANGER);
    REQUIRE(attach_status(NULL, &err) == TN_ERR_IO && strstr(line_of(&err), "Permission denied"));
}

static void come_uninvited(void)
{
    tn_error err = { .text = "" };
    REQUIRE(setgroups(0, NULL) == 0);
    become(STRANGER + 1, STRANGER + 1);
    REQUIRE(attach_status(NULL, &err) == TN_ERR_IO && strstr(line_of(&err), "user 65534 may not attach here"));
}

static void come_invited(void)
{
    REQUIRE(setgroups(0, NULL) == 0);
    become(STRANGER, STRANGER);
    REQUIRE(attach_status(NULL, NULL) == TN_OK);
}

static void come_as_a_member(void)
{
    REQUIRE(setgroups(1, (gid_t[]){ MEMBERS }) == 0);
    become(STRANGER + 1, STRANGER + 1);
    REQUIRE(attach_status(NULL, NULL) == TN_OK);
}

static bool is_root(void)
{
    if (geteuid() == 0)
        return true;
    print_message("not root: other users are not tried\n");
    return false;
}

static void other_users_are_refused_unless_named(void)
{
    if (!is_root())
        return;
    make_plain("plain.zt", 1);
    pid_t server = start_offering(place().text, NULL, offer_plain_twice);
    CHECK(in_child(come_as_a_stranger) == 0);
    end_offering(server);
    tn_offer_options options = { .size = sizeof options, .uids = strangers, .nuids = 1, .gids = members,
                                 .ngids = 1, .patience = LONG };
    server = start_offering(place().text, &options, offer_plain_twice);
    for (int i = 0; i < 50; i++) {
        CHECK(in_child(come_uninvited) == 0);           /* and is told so, whoever is faster */
        CHECK(in_child(come_invited) == 0);
    }
    CHECK(in_child(come_as_a_member) == 0);
    end_offering(server);
}

/* A stranger's offer, where we look for another's. */
static void offer_as_a_stranger(tn_offer *offer)
{
    offer_plain_twice(offer);
}

static void what_a_stranger_offers_is_taken_only_where_he_is_trusted(void)
{
    tn_error err = { .text = "" };
    tn_attach_options trusts = { .size = sizeof trusts, .uids = strangers, .nuids = 1, .patience = LONG };
    tn_offer_options options = { .size = sizeof options, .uids = root_alone, .nuids = 1, .patience = LONG };
    if (!is_root())
        return;
    make_plain("plain.zt", 1);
    CHECK(chmod(folder, 0777) == 0);
    fflush(NULL);
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    pid_t server = fork();
    if (server == 0) {
        become(STRANGER, STRANGER);
        offer_until_told(place().text, &options, offer_as_a_stranger, ends[1]);
        _exit(0);
    }
    CHECK(read(ends[0], &byte, 1) == 1);
    CHECK(attach_status(NULL, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "offered by user 65533"));
    CHECK(attach_status(&trusts, NULL) == TN_OK);
    end_offering(server);
    close(ends[0]);
    close(ends[1]);
}

/* ---- the socket ---- */

static void offer_nothing(tn_offer *offer)
{
    (void)offer;
}

static void an_offer_of_nothing_is_attached_to(void)
{
    pid_t server = start_offering(place().text, NULL, offer_nothing);
    tn_attachment *a = attach_so(place().text, NULL);
    CHECK(tn_attached_count(a) == 0 && tn_attached_withheld(a) == 0 && !tn_attached_at(a, 0));
    tn_detach(a);
    tn_detach(NULL);
    end_offering(server);
    tn_error err = { .text = "" };
    CHECK(attach_status(NULL, &err) == TN_ERR_IO && strstr(line_of(&err), "No such file"));
}

static void a_socket_is_its_owners_alone_and_of_the_mode_that_its_guests_need(void)
{
    tn_offer *offer;
    struct stat st;
    tn_offer_options options = { .size = sizeof options, .uids = strangers, .nuids = 1 };
    mode_t before = umask(0);
    CHECK(tn_share_offer(place().text, NULL, &offer, NULL) == TN_OK);
    CHECK(stat(place().text, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0600);
    tn_offer_close(offer);
    umask(077);
    CHECK(tn_share_offer(place().text, &options, &offer, NULL) == TN_OK);
    CHECK(stat(place().text, &st) == 0 && (st.st_mode & 0777) == 0666);
    tn_offer_close(offer);
    umask(before);
    tn_offer_close(NULL);
}

static void a_socket_that_nobody_listens_on_is_replaced_and_no_other(void)
{
    tn_offer *offer, *second;
    tn_error err = { .text = "" };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, place().text);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    close(fd);
    CHECK(tn_share_offer(place().text, NULL, &offer, NULL) == TN_OK);
    CHECK(tn_share_offer(place().text, NULL, &second, &err) == TN_ERR_EXISTS &&
          strstr(line_of(&err), "another process listens there"));
    tn_offer_close(offer);
    put_file("socket", "no socket");
    CHECK(tn_share_offer(place().text, NULL, &second, &err) == TN_ERR_EXISTS &&
          strstr(line_of(&err), "is not a socket"));
    CHECK(file_is("socket", "no socket"));
    CHECK(unlink(place().text) == 0 && symlink("elsewhere", place().text) == 0);
    CHECK(tn_share_offer(place().text, NULL, &second, &err) == TN_ERR_EXISTS);
}

static void closing_leaves_another_ones_socket_alone(void)
{
    tn_offer *offer, *second;
    CHECK(tn_share_offer(place().text, NULL, &offer, NULL) == TN_OK);
    CHECK(unlink(place().text) == 0);
    CHECK(tn_share_offer(place().text, NULL, &second, NULL) == TN_OK);
    tn_offer_close(offer);
    CHECK(access(place().text, F_OK) == 0);
    tn_offer_close(second);
    CHECK(access(place().text, F_OK) != 0);
}

static void close_in_child(void)
{
    tn_offer_close(offering);
    REQUIRE(access(place().text, F_OK) == 0);
}

static void a_child_leaves_its_parents_socket_alone(void)
{
    CHECK(tn_share_offer(place().text, NULL, &offering, NULL) == TN_OK);
    CHECK(in_child(close_in_child) == 0);
    tn_offer_close(offering);
    CHECK(access(place().text, F_OK) != 0);
}

static void paths_that_are_none_are_refused(void)
{
    tn_offer *offer;
    tn_error err = { .text = "" };
    char longest[200];
    held before = held_now();
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    CHECK(tn_share_offer(longest, NULL, &offer, &err) == TN_ERR_ARGUMENT && strstr(line_of(&err), "199 bytes"));
    CHECK(tn_share_offer("", NULL, &offer, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_share_offer("/nowhere/socket", NULL, &offer, &err) == TN_ERR_IO);
    CHECK(tn_share_offer(place().text, &(tn_offer_options){ .size = sizeof(tn_offer_options),
                                                            .max_clients = 1 << 20 }, &offer, &err) ==
          TN_ERR_ARGUMENT);
    CHECK(tn_share_attach(longest, NULL, NULL, &err) == TN_ERR_ARGUMENT);
    CHECK(tn_share_attach("", NULL, NULL, &err) == TN_ERR_ARGUMENT);
    CHECK(nothing_more_than(before));
}

/* ---- stopping ---- */

static void *run_in_thread(void *offer)
{
    REQUIRE(tn_offer_run(offer, NULL) == TN_OK);
    return NULL;
}

static void a_server_stops_at_once_whoever_waits(void)
{
    tn_offer *offer;
    pthread_t thread;
    tn_offer_options options = { .size = sizeof options, .patience = 600000 };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fds[20];
    strcpy(address.sun_path, place().text);
    CHECK(tn_share_offer(place().text, &options, &offer, NULL) == TN_OK);
    CHECK(pthread_create(&thread, NULL, run_in_thread, offer) == 0);
    for (int i = 0; i < 20; i++) {
        fds[i] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        CHECK(connect(fds[i], (struct sockaddr *)&address, sizeof address) == 0);
    }
    CHECK(attach_status(NULL, NULL) == TN_OK);          /* so they have been taken in */
    tn_offer_stop(offer);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(tn_offer_run(offer, NULL) == TN_OK);          /* for good */
    tn_offer_close(offer);
    for (int i = 0; i < 20; i++) {
        char byte;
        CHECK(recv(fds[i], &byte, 1, 0) <= 0);
        close(fds[i]);
    }
}

static void many_attach_at_once(void)
{
    enum { MANY = 40 };
    pid_t children[MANY];
    make_plain("plain.zt", 1);
    tn_offer_options options = { .size = sizeof options, .max_clients = 4, .patience = LONG };
    pid_t server = start_offering(place().text, &options, offer_plain_twice);
    fflush(NULL);
    for (int i = 0; i < MANY; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i])
            continue;
        for (int k = 0; k < 5; k++)
            REQUIRE(attach_status(NULL, NULL) == TN_OK);
        _exit(0);
    }
    for (int i = 0; i < MANY; i++) {
        int status;
        CHECK(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
    end_offering(server);
}

static void attaching_leaves_nothing_behind(void)
{
    open_memory = new_memory();
    closed_memory = new_memory();
    pid_t server = start_offering(place().text, NULL, offer_two);
    CHECK(attach_status(NULL, NULL) == TN_OK);
    held before = held_now();
    for (int i = 0; i < 20; i++)
        CHECK(attach_status(NULL, NULL) == TN_OK);
    CHECK(nothing_more_than(before));
    end_offering(server);
    tn_buffer_unref(open_memory);
    tn_buffer_unref(closed_memory);
}

/* ---- confinement ---- */

static void confine_and_try(tn_offer *offer)
{
    const char *how = NULL;
    offer_plain_twice(offer);
    REQUIRE(tn_offer_confine(offer, &how, NULL) == TN_OK && how);
    REQUIRE(open("/dev/null", O_RDONLY) < 0 && errno == EPERM);
    REQUIRE(creat(in_folder("new").text, 0600) < 0 && errno == EPERM);
    REQUIRE(execl("/bin/true", "true", NULL) < 0 && errno == EPERM);
    REQUIRE(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
    REQUIRE(fork() < 0 && errno == EPERM);
    REQUIRE(kill(getppid(), 0) < 0 && errno == EPERM);
    REQUIRE(tgkill(getppid(), getppid(), 0) < 0 && errno == EPERM && tgkill(getpid(), getpid(), 0) == 0);
    REQUIRE(ioctl(0, FIONBIO, &(int){ 0 }) < 0 && errno == EPERM && geteuid() != (uid_t)-1);
    REQUIRE(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    void *memory[64];
    for (size_t i = 0; i < 64; i++)
        REQUIRE((memory[i] = malloc(i << 14)) || i == 0);
    for (size_t i = 0; i < 64; i++)
        free(memory[i]);
}

/* Writes a byte to `ready` as soon as it listens. */
static void serve_confined(int ready)
{
    tn_error err = { .text = "" };
    struct sigaction action = { .sa_handler = stop_offering };
    REQUIRE(tn_share_offer(place().text, NULL, &offering, &err) == TN_OK);
    REQUIRE(sigaction(SIGTERM, &action, NULL) == 0);
    confine_and_try(offering);
    REQUIRE(write(ready, "", 1) == 1);
    REQUIRE(tn_offer_run(offering, NULL) == TN_OK);
    tn_offer_close(offering);
}

static bool can_confine(void)
{
    for (size_t i = 0; tn_build_fact(i); i++)
        if (strcmp(tn_build_fact(i), "confinement: none") == 0)
            return false;
    return true;
}

static void a_confined_server_answers_stops_and_removes_its_socket(void)
{
    if (!can_confine() || SANITIZED) {
        print_message(SANITIZED ? "sanitizers need more than a confined process has\n"
                                : "this build cannot confine\n");
        return;
    }
    make_plain("plain.zt", 1);
    fflush(NULL);
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    pid_t server = fork();
    CHECK(server >= 0);
    if (server == 0) {
        serve_confined(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    CHECK(read(ends[0], &byte, 1) == 1);
    close(ends[0]);
    for (int i = 0; i < 20; i++)
        CHECK(attach_status(NULL, NULL) == TN_OK);
    end_offering(server);
    CHECK(access(place().text, F_OK) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_form_arrives_as_it_is_in_its_file),
        IN_FOLDER(a_tensor_of_a_datatype_that_was_compressed_arrives_with_all_its_parts),
        IN_FOLDER(a_file_that_there_is_no_room_for_is_not_offered),
        IN_FOLDER(a_damaged_file_is_not_offered),
        IN_FOLDER(a_file_in_place_goes_to_those_who_ask_for_it),
        IN_FOLDER(what_one_writes_the_other_sees),
        IN_FOLDER(the_descriptor_says_what_is_true_in_this_process),
        IN_FOLDER(who_may_not_write_cannot),
        IN_FOLDER(the_image_of_a_file_is_sealed_for_good),
        IN_FOLDER(a_tensor_with_too_long_a_description_leaves_its_buffer_free_to_be_frozen),
        IN_FOLDER(other_users_are_refused_unless_named),
        IN_FOLDER(what_a_stranger_offers_is_taken_only_where_he_is_trusted),
        IN_FOLDER(an_offer_of_nothing_is_attached_to),
        IN_FOLDER(a_socket_is_its_owners_alone_and_of_the_mode_that_its_guests_need),
        IN_FOLDER(a_socket_that_nobody_listens_on_is_replaced_and_no_other),
        IN_FOLDER(closing_leaves_another_ones_socket_alone),
        IN_FOLDER(a_child_leaves_its_parents_socket_alone),
        IN_FOLDER(paths_that_are_none_are_refused),
        IN_FOLDER(a_server_stops_at_once_whoever_waits),
        IN_FOLDER(many_attach_at_once),
        IN_FOLDER(attaching_leaves_nothing_behind),
        IN_FOLDER(a_confined_server_answers_stops_and_removes_its_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
