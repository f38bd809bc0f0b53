/* The folder that processes share, with records and a plan of anybody: each is refused with a reason, made
 * again, or believed; nothing is published but a whole file.  shared_work.h says what an input is. */
#include "mutate.h"
#include "sets.h"
#include "shared_work.h"

#include "pipeline/plan.h"
#include "pipeline/work_text.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    enum { MOST = 8 };
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    const uint8_t *at = data + WORK_CHOICES, *bytes;
    size_t left = size < WORK_CHOICES ? 0 : size - WORK_CHOICES, places[MOST], count = 0;
    while (count < MOST && left && set_take(&at, &left, &bytes) != SIZE_MAX)
        places[count++] = (size_t)(bytes - data);
    if (!count || mutant_pick(&m, 16) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (mutant_pick(&m, 16) == 0) {
        data[mutant_pick(&m, WORK_CHOICES)] = (uint8_t)mutant_random(&m);
        return size;
    }
    size_t which = mutant_pick(&m, count), from = places[which];
    size_t gone = (which + 1 < count ? places[which + 1] - 2 : size) - from;
    uint8_t *copy = malloc(gone + 512);
    REQUIRE(copy);
    memcpy(copy, data + from, gone);
    mutant file = { .data = copy, .size = gone, .cap = gone + 512, .random = mutant_random(&m) };
    if (gone > 1)
        mutate_json(&file, 1, gone - 1);
    if (file.size <= UINT16_MAX && replace_range(&m, from, gone, copy, file.size))
        set_le(m.data + from - 2, file.size, 2);
    free(copy);
    return m.size;
}

/* ---- putting files ---- */

/* A text as it is in the folder: with its names and numbers, and sealed. */
static tn_buf finish_text(const uint8_t *text, size_t n, uint32_t id, bool seals)
{
    static const char plan[] = "\"plan\":0";
    tn_buf b = { 0 };
    for (size_t i = 0; i < n; i++) {
        if (n - i >= 2 && memcmp(text + i, "@@", 2) == 0) {
            tn_buf_puts(&b, scratch_folder);
            i++;
        } else if (n - i >= sizeof plan - 1 && memcmp(text + i, plan, sizeof plan - 1) == 0) {
            tn_buf_printf(&b, "\"plan\":%" PRIu32, id);
            i += sizeof plan - 2;
        } else {
            tn_buf_putc(&b, (char)text[i]);
        }
    }
    if (seals)
        tn_work_seal(&b);
    REQUIRE(!b.bad);
    return b;
}

static void put_text(const char *name, const tn_buf *b)
{
    FILE *f = fopen(work_file(name), "wb");
    REQUIRE(f && (b->size == 0 || fwrite(b->data, 1, b->size, f) == b->size) && fclose(f) == 0);
}

/* Returns whether one of them is the plan. */
static bool put_files(const uint8_t *data, size_t size, uint32_t id, bool seals)
{
    const uint8_t *bytes;
    char name[40];
    size_t n;
    bool plan = false;
    while ((n = set_take(&data, &size, &bytes)) != SIZE_MAX) {
        if (!n)
            continue;
        tn_buf b = finish_text(bytes + 1, n - 1, id, seals && !(bytes[0] & WORK_FAILED));
        snprintf(name, sizeof name, "pieces/%05u%s", bytes[0] & 15u, bytes[0] & WORK_FAILED ? ".failed" : ".done");
        if (bytes[0] == WORK_PLAN) {
            tn_buf_free(&b);
            b = finish_text(bytes + 1, n - 1, id, seals);
            plan = true;
        }
        put_text(bytes[0] == WORK_PLAN ? "plan.json" : name, &b);
        tn_buf_free(&b);
    }
    return plan;
}

static uint32_t plan_number(void)
{
    size_t n;
    char *text = work_load("plan.json", &n);
    REQUIRE(text);
    uint32_t id = tn_crc32c(0, text, n);
    free(text);
    return id;
}

static void check_error(tn_status status, const tn_error *err)
{
    REQUIRE(!status || (err->status == status && err->text[0]));
    for (const char *c = err->text; *c; c++)
        REQUIRE((unsigned char)*c >= ' ' && *c != 0x7f);
}

/* ---- a conversion ---- */

/* A plan may name any file: it is only run where it names those of this target. */
static bool is_own_plan(void)
{
    tn_arena arena = { 0 };
    tn_plan_head h = { 0 };
    size_t n;
    char *text = work_load("plan.json", &n), in[100];
    snprintf(in, sizeof in, "%s", scratch_file("in.zt"));
    bool own = tn_plan_read_head(text, n, &arena, &h, NULL) == TN_OK && !h.verb && h.ninput == 1 &&
               strcmp(h.input[0], in) == 0 && strcmp(h.output, scratch_file("out.zt")) == 0 &&
               !h.o.map && !h.o.metadata_from;
    for (size_t i = 0; i < h.o.nrules && own; i++)
        own = strchr(h.o.rules[i].text, '/') == NULL;           /* of a codebook */
    tn_arena_free(&arena);
    free(text);
    return own;
}

static void check_output(tn_status status)
{
    tn_file *file = NULL;
    tn_error err = { .text = "" };
    bool there = access(scratch_file("out.zt"), F_OK) == 0;
    REQUIRE(there == (status == TN_OK));
    if (!there)
        return;
    status = tn_open(scratch_file("out.zt"), NULL, &file, &err);
    snprintf(require_note, sizeof require_note, "(%.150s)", err.text);
    REQUIRE(status == TN_OK);
    require_note[0] = '\0';
    tn_close(file);
    unlink(scratch_file("out.zt"));
}

static tn_status go_on(const struct work_way *way, bool opens, tn_error *err)
{
    const tn_work_options o = { .size = sizeof o, .jobs = 1 };
    tn_work *work = NULL;
    tn_status status = opens ? tn_work_open(scratch_file("out.zt.tenon"), &o, &work, err)
                             : work_make(way, &work, err);
    if (!status)
        status = tn_work_run_all(work, false, err);
    if (!status)
        status = tn_work_finish(work, NULL, err);
    tn_work_close(work);
    return status;
}

static void convert(const struct work_way *way, const uint8_t *data, size_t size, uint8_t choice)
{
    tn_work *work = NULL;
    tn_work_state state = { .size = sizeof state };
    tn_error err = { .text = "" };
    REQUIRE(work_make(way, &work, NULL) == TN_OK);
    tn_work_close(work);
    bool plan = put_files(data, size, plan_number(), !(choice & 1));
    check_error(tn_work_look(scratch_file("out.zt.tenon"), &state, NULL, NULL, &err), &err);
    bool opens = (choice & 2) && (!plan || is_own_plan());
    err = (tn_error){ .text = "" };
    tn_status status = go_on(way, opens, &err);
    check_error(status, &err);
    check_output(status);
    if (status)
        (void)tn_work_abandon(scratch_file("out.zt.tenon"), NULL);
}

/* ---- looking at a file ---- */

static void look(const struct work_way *way, const uint8_t *data, size_t size, uint8_t choice)
{
    tn_error err = { .text = "" };
    REQUIRE(work_look_as(way, 0, NULL) == TN_OK);
    unlink(work_file("published"));
    (void)put_files(data, size, plan_number(), !(choice & 1));
    check_error(work_look_as(way, 1, &err), &err);
}

static void remove_work(void)
{
    char command[200];
    if (access(scratch_file("out.zt.tenon"), F_OK) != 0)
        return;
    snprintf(command, sizeof command, "rm -rf '%s'", scratch_file("out.zt.tenon"));
    REQUIRE(system(command) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < WORK_CHOICES)
        return 0;
    const struct work_way *way = &work_ways[data[0] % WORK_WAYS];
    if (way->verb)
        look(way, data + WORK_CHOICES, size - WORK_CHOICES, data[1]);
    else
        convert(way, data + WORK_CHOICES, size - WORK_CHOICES, data[1]);
    remove_work();
    return 0;
}
