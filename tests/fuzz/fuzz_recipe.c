/* Recipes and the codebooks they name: a file of rules is refused with its line and
 * a reason, or read into rules.  The command line's own reader is what is tested. */
#include "../../cli/ui/rules.c"

#include <fcntl.h>
#include <stdarg.h>

#include "mutate.h"
#include "scratch.h"

static unsigned said;           /* messages since the last input */

static void check_message(const char *format, va_list args)
{
    char text[4096];
    int n = vsnprintf(text, sizeof text, format, args);
    REQUIRE(n > 0);
    for (size_t i = 0; text[i]; i++)
        REQUIRE((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
    said++;
}

int give_up(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    check_message(format, args);
    va_end(args);
    return code;
}

int give_up_by(int code, const tn_error *err, const char *format, ...)
{
    va_list args;
    REQUIRE(err->status);
    va_start(args, format);
    check_message(format, args);
    va_end(args);
    return code;
}

const char *escaped(const char *text)
{
    static char kept[4][512];
    static unsigned next;
    char *to = kept[next++ % 4];
    tn_escape(to, sizeof kept[0], text, strlen(text));
    return to;
}

const char *error_line(const tn_error *err)
{
    static char line[TN_ERROR_LINE];
    tn_error_format(err, line, sizeof line);
    return line;
}

int exit_code(tn_status status)
{
    return status == TN_ERR_IO || status == TN_ERR_NOMEM ? EXIT_SYSTEM : EXIT_BAD;
}

void *must_resize(void *old, size_t size)
{
    void *p = realloc(old, size);
    REQUIRE(p);
    return p;
}

void *must_allocate(size_t count, size_t size)
{
    void *p = calloc(count, size);
    REQUIRE(p);
    return p;
}

char *cast_defaults(const opts *o)
{
    (void)o;
    return NULL;
}

static void put_file(const char *name, const uint8_t *bytes, size_t n)
{
    FILE *f = fopen(scratch_file(name), "wb");
    REQUIRE(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

/* The codebook stands behind a byte that no text has. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    const uint8_t *mark = size ? memchr(data, 0xff, size) : NULL;
    if (!mark || mutant_pick(&m, 2))
        return LLVMFuzzerMutate(data, size, max_size);
    size_t from = (size_t)(mark - data) + 1;
    mutate_json(&m, from, size - from);
    return m.size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *mark = size ? memchr(data, 0xff, size) : NULL;
    size_t n = mark ? (size_t)(mark - data) : size;
    static char line[256];
    static const char *const steps[] = { "cast", "layout", "pad", "form", "slice", "concat" };
    const char *path = size % 32 ? "recipe" : "missing";
    tn_rule rule = { steps[size / 4 % (sizeof steps / sizeof *steps)], line };
    opts o = { .recipes = { .items = &path, .count = 1 }, .rules = &rule };
    o.nrules = size % 4 == 0;   /* the first line as an option, too */
    snprintf(line, sizeof line, "%.*s", (int)(n < 255 ? n : 255), (const char *)data);
    line[strcspn(line, "\n")] = '\0';
    rule_list rules;
    static int home;
    put_file("recipe", data, n);
    put_file("table.json", mark ? mark + 1 : data, mark ? size - n - 1 : 0);
    if (!home)
        home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(home > 0 && chdir(scratch_folder) == 0);        /* where a recipe finds table.json */
    said = 0;
    int code = rules_read(&rules, &o);
    REQUIRE(fchdir(home) == 0);
    REQUIRE(code == EXIT_DONE ? said == 0 && rules.count > 0 : said == 1);
    for (size_t i = 0; i < rules.count; i++)
        REQUIRE(rules.items[i].step && rules.items[i].text[0]);
    rules_free(&rules);
    return 0;
}
