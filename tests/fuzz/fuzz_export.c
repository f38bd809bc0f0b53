/* Names of tensors in C source: identifiers are valid and different, a comment
 * cannot be ended by a name, a literal gives the same bytes back; and tensors of
 * such names can be written as source. */
#include "literals.h"
#include "scarce.h"
#include "scratch.h"

#include "firmware/c_names.h"

#include <tenon/export.h>
#include <tenon/writer.h>

enum { NAMES_MAX = 40 };

static char names_text[4096];
static const char *names[NAMES_MAX];
static size_t nnames;

/* One name a line, each once. */
static void read_names(const uint8_t *data, size_t size)
{
    size_t n = size < sizeof names_text - 1 ? size : sizeof names_text - 1;
    for (size_t i = 0; i < n; i++)
        names_text[i] = data[i] ? (char)data[i] : '_';
    names_text[n] = '\0';
    nnames = 0;
    for (char *at = strtok(names_text, "\n"); at && nnames < NAMES_MAX; at = strtok(NULL, "\n")) {
        bool known = false;
        for (size_t i = 0; i < nnames; i++)
            known |= strcmp(names[i], at) == 0;
        if (!known)
            names[nnames++] = at;
    }
}

static void check_identifier(const char *id)
{
    size_t n = strlen(id);
    REQUIRE(strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n);
    REQUIRE(n < TN_C_WORDS_MAX + 24 && !strstr(id, "__"));
    REQUIRE(!n || (id[0] != '_' && id[n - 1] != '_'));
}

static tn_status make_identifiers(const void *context, tn_error *err)
{
    const char *ids[NAMES_MAX];
    tn_arena arena = { 0 };
    (void)context;
    tn_status status = tn_c_identifiers(names, nnames, &arena, ids, err);
    for (size_t i = 0; i < nnames && !status; i++) {
        check_identifier(ids[i]);
        for (size_t k = 0; k < i; k++)
            REQUIRE(strcmp(ids[i], ids[k]) != 0);
    }
    tn_arena_free(&arena);
    return status;
}

static void check_texts(const char *name)
{
    static char back[LITERAL_MAX];
    tn_buf b = { 0 };
    size_t n;
    char prefix[TN_EXPORT_MAX_NAME + 1];
    tn_c_put_comment(&b, name);
    tn_buf_putc(&b, '\0');
    REQUIRE(!b.bad && !strstr((const char *)b.data, "*/") && !strstr((const char *)b.data, "/*") &&
            !strchr((const char *)b.data, '\n'));
    b.size = 0;
    tn_c_put_literal(&b, name, "    ");
    tn_buf_putc(&b, '\0');
    REQUIRE(!b.bad && !strstr((const char *)b.data, "??"));
    take_literal((const char *)b.data, back, &n);
    REQUIRE(n == strlen(name) && memcmp(back, name, n) == 0);
    tn_buf_free(&b);
    tn_c_prefix(name, prefix);
    REQUIRE(tn_c_is_prefix(prefix));
}

/* Source of float tensors called so; what is no UTF-8 cannot be one's name. */
static void check_export(void)
{
    static const float one[2] = { 1, -2 };
    static const int64_t shape[] = { 2 };
    tn_create_options create = { .size = sizeof create, .format = "ztensor", .replace = true, .jobs = 1 };
    tn_export_options options = { .size = sizeof options, .mli = TN_FOR_MLI_2_0, .name = "n",
                                  .replace = true };
    tn_part part = { .role = "data", .array = { .dtype = TN_FLOAT32, .rank = 1, .shape = shape },
                     .nbytes = sizeof one, .data = one };
    tn_writer *w;
    tn_file *file;
    tn_error err = { .text = "" };
    char folder[100];
    REQUIRE(tn_create(scratch_file("named.zt"), &create, &w, &err) == TN_OK);
    for (size_t i = 0; i < nnames; i++) {
        const tn_tensor t = { .name = names[i], .form = TN_FORM_DENSE, .dtype = TN_FLOAT32, .rank = 1,
                              .shape = shape, .parts = &part, .nparts = 1 };
        if (tn_writer_add(w, &t, &err)) {
            tn_writer_abandon(w);
            return;
        }
    }
    REQUIRE(tn_writer_finish(w, &err) == TN_OK &&
            tn_open(scratch_file("named.zt"), NULL, &file, &err) == TN_OK);
    snprintf(folder, sizeof folder, "%s", scratch_file("c"));
    tn_status status = tn_export_c(file, folder, &options, NULL, &err);
    REQUIRE(status == TN_OK || status == TN_ERR_LIMIT || (!nnames && status));
    tn_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_names(data, size);
    scarce_check(make_identifiers, NULL, scarce_choice(data, size));
    for (size_t i = 0; i < nnames; i++)
        check_texts(names[i]);
    if (size % 16 == 0)
        check_export();
    return 0;
}
