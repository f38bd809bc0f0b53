/* bench_sparse.c - conversions of sparse tensors and reading of .npy, on request.
 *
 *     bench-sparse dense float32|float64|int8 SIDE FOLDER
 *     bench-sparse entries COUNT FOLDER
 *     bench-sparse files MIB FOLDER
 *
 * Makes its data, which is the same in every run, and writes it into FOLDER for
 * a peer: dense.npy; indices.npy and values.npy; large.npy.  Converts once and
 * holds the results against plain loops: a fast wrong answer is none.  Then
 * prints "ready ENTRIES" and for each line "ACTION THREADS" that it reads the
 * seconds that takes.  bench/sparse runs it in turn with SciPy and NumPy. */
#include "add_up.h"
#include "clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tenon/tenon.h>

enum { MAX_THREADS = 64, ROWS = 1000000, SPARSITY = 20 };
#define HUGE_PAGE ((size_t)2 << 20)

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench-sparse: %s: %s\n", what, why);
    exit(1);
}

static uint64_t state = 1;
static uint32_t random32(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 32);
}

/* New memory in huge pages, as NumPy takes it and as results of Tenon have it. */
static void *get(size_t size)
{
    size_t whole = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *block = aligned_alloc(HUGE_PAGE, whole ? whole : HUGE_PAGE);
    if (!block)
        stop("memory", "there is none");
#ifdef MADV_HUGEPAGE
    madvise(block, whole, MADV_HUGEPAGE);
#endif
    return block;
}

static void write_npy(const char *folder, const char *name, const char *descr, const char *shape,
                      const void *data, size_t size)
{
    char path[4096], header[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f)
        stop(path, "cannot be written");
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    int n = snprintf(header + 10, sizeof header - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
    header[10 + n] = ' ';
    header[sizeof header - 1] = '\n';
    if (fwrite(header, sizeof header, 1, f) != 1 || fwrite(data, 1, size, f) != size || fclose(f))
        stop(path, "cannot be written");
}

/* Of this thread, if there is only one. */
static double time_of(unsigned threads) { return threads == 1 ? own_time() : now(); }

/* --- limits of the machine -------------------------------------------------- */

typedef struct share {
    uint8_t *bytes;
    size_t   size;
    uint64_t sum;
} share;

static void *read_share(void *argument)
{
    share *s = argument;
    s->sum = add_up(s->bytes, s->size);
    return NULL;
}

static void *clear_share(void *argument)
{
    share *s = argument;
    memset(s->bytes, 0, s->size);
    return NULL;
}

/* Seconds of all threads together, each with its own share. */
static double shared(void *(*work)(void *), void *data, size_t size, unsigned threads)
{
    static volatile uint64_t seen;
    share shares[MAX_THREADS];
    pthread_t ids[MAX_THREADS];
    double began = time_of(threads);
    for (unsigned i = 0; i < threads; i++) {
        size_t first = size / threads * i, end = i + 1 < threads ? size / threads * (i + 1) : size;
        shares[i] = (share){ .bytes = (uint8_t *)data + first, .size = end - first };
        if (i && pthread_create(&ids[i], NULL, work, &shares[i]))
            stop("thread", "cannot be started");
    }
    work(&shares[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(ids[i], NULL);
    double took = time_of(threads) - began;
    seen = seen + shares[0].sum;
    return took;
}

/* --- tensors ---------------------------------------------------------------- */

typedef struct tensor {
    tn_tensor t;
    tn_part   parts[2];
    int64_t   shape[2], shapes[2][2];
} tensor;

static tn_tensor *reform(const tn_tensor *from, tn_form form, unsigned jobs, double *took)
{
    tn_sparse_options options = { .size = sizeof options, .duplicates = TN_DUPLICATES_SUM, .jobs = jobs };
    tn_tensor *made;
    tn_error err;
    double began = time_of(jobs);
    if (tn_convert_form(from, form, &options, &made, &err))
        stop(tn_form_name(form), err.text);
    if (took)
        *took = time_of(jobs) - began;
    return made;
}

static double reform_seconds(const tn_tensor *from, tn_form form, unsigned jobs)
{
    double took;
    tn_tensor_free(reform(from, form, jobs, &took));
    return took;
}

/* --- dense and back --------------------------------------------------------- */

typedef struct matrix {
    tensor     dense;
    tn_tensor *csr, *coo;
    uint8_t   *data;
    size_t     side, width, nbytes;
} matrix;

/* One element in SPARSITY is not zero. */
static void fill(matrix *m, tn_dtype dtype)
{
    for (size_t i = 0; i < m->side * m->side; i++) {
        uint32_t r = random32();
        bool zero = r % SPARSITY != 0;
        int8_t small = (int8_t)(1 + r / SPARSITY % 127);
        float f = zero ? 0 : (float)small / 3;
        double d = zero ? 0 : (double)small / 3;
        small = zero ? 0 : small;
        memcpy(m->data + i * m->width,
               dtype == TN_INT8      ? (void *)&small
               : dtype == TN_FLOAT32 ? (void *)&f
                                     : (void *)&d,
               m->width);
    }
}

static bool is_zero(const matrix *m, size_t i)
{
    static const uint8_t zeros[8];
    return memcmp(m->data + i * m->width, zeros, m->width) == 0;
}

/* The entries of both forms, element after element. */
static void check_entries(const matrix *m)
{
    const int32_t *columns = m->csr->parts[1].data, *pointers = m->csr->parts[2].data,
                  *pairs = m->coo->parts[1].data;
    const uint8_t *csr = m->csr->parts[0].data, *coo = m->coo->parts[0].data;
    size_t n = 0, count = (size_t)m->csr->parts[0].array.shape[0];
    if (count != (size_t)m->coo->parts[0].array.shape[0] || m->csr->parts[1].array.dtype != TN_INT32 ||
        m->coo->parts[1].array.dtype != TN_INT32 || pointers[0] != 0)
        stop("csr and coo", "differ");
    for (size_t i = 0; i < m->side * m->side; i++) {
        if (!is_zero(m, i)) {
            const uint8_t *value = m->data + i * m->width;
            if (n == count || (size_t)columns[n] != i % m->side || (size_t)pairs[2 * n] != i / m->side ||
                (size_t)pairs[2 * n + 1] != i % m->side || memcmp(csr + n * m->width, value, m->width) != 0 ||
                memcmp(coo + n * m->width, value, m->width) != 0)
                stop("dense to csr and coo", "an entry is wrong");
            n++;
        }
        if ((i + 1) % m->side == 0 && (size_t)pointers[(i + 1) / m->side] != n)
            stop("dense to csr", "a pointer is wrong");
    }
    if (n != count)
        stop("dense to csr and coo", "there are too many entries");
}

static void check_dense(const matrix *m, const tn_tensor *from)
{
    tn_tensor *dense = reform(from, TN_FORM_DENSE, 2, NULL);
    if (dense->parts[0].nbytes != m->nbytes || memcmp(dense->parts[0].data, m->data, m->nbytes) != 0)
        stop("to dense", "an element is wrong");
    tn_tensor_free(dense);
}

static void make_matrix(matrix *m, const char *type, size_t side, const char *folder)
{
    char shape[64];
    tn_dtype dtype = tn_dtype_parse(type);
    if (dtype != TN_FLOAT32 && dtype != TN_FLOAT64 && dtype != TN_INT8)
        stop(type, "expected float32, float64 or int8");
    m->side = side;
    m->width = tn_dtype_get(dtype)->bits / 8u;
    m->nbytes = side * side * m->width;
    m->data = get(m->nbytes);
    fill(m, dtype);
    tensor *d = &m->dense;
    d->shape[0] = d->shape[1] = (int64_t)side;
    d->parts[0] = (tn_part){ .role = "data", .array = { .dtype = dtype, .rank = 2, .shape = d->shape },
                             .nbytes = m->nbytes, .data = m->data };
    d->t = (tn_tensor){ .name = "m", .form = TN_FORM_DENSE, .dtype = dtype, .rank = 2, .shape = d->shape,
                        .parts = d->parts, .nparts = 1 };
    m->csr = reform(&d->t, TN_FORM_CSR, 2, NULL);
    m->coo = reform(&d->t, TN_FORM_COO, 2, NULL);
    check_entries(m);
    check_dense(m, m->csr);
    check_dense(m, m->coo);
    snprintf(shape, sizeof shape, "%zu, %zu", side, side);
    write_npy(folder, "dense.npy",
              dtype == TN_FLOAT32   ? "<f4"
              : dtype == TN_FLOAT64 ? "<f8"
                                    : "|i1",
              shape, m->data, m->nbytes);
}

/* Into new memory, as a result is, or into memory that is there already. */
static double clear_seconds(size_t size, unsigned threads, bool warm)
{
    void *block = get(size);
    if (warm)
        memset(block, 1, size);
    double took = shared(clear_share, block, size, threads);
    free(block);
    return took;
}

static double matrix_action(const void *subject, const char *action, unsigned threads)
{
    const matrix *m = subject;
    if (strcmp(action, "read") == 0)
        return shared(read_share, m->data, m->nbytes, threads);
    if (strcmp(action, "memset") == 0)
        return clear_seconds(m->nbytes, threads, false);
    if (strcmp(action, "warm") == 0)
        return clear_seconds(m->nbytes, threads, true);
    if (strcmp(action, "dense:csr") == 0)
        return reform_seconds(&m->dense.t, TN_FORM_CSR, threads);
    if (strcmp(action, "dense:coo") == 0)
        return reform_seconds(&m->dense.t, TN_FORM_COO, threads);
    if (strcmp(action, "csr:dense") == 0)
        return reform_seconds(m->csr, TN_FORM_DENSE, threads);
    if (strcmp(action, "coo:dense") == 0)
        return reform_seconds(m->coo, TN_FORM_DENSE, threads);
    return -1;
}

/* --- entries in any order --------------------------------------------------- */

static const int32_t *sorting_pairs;

static int compare_columns(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int32_t left = sorting_pairs[2 * (size_t)x + 1], right = sorting_pairs[2 * (size_t)y + 1];
    return left != right ? (left < right ? -1 : 1) : x < y ? -1 : 1;
}

/* The numbers of all entries: row after row, columns ascending, equal ones in their order. */
static uint32_t *plain_order(const int32_t *pairs, size_t n)
{
    size_t *ends = calloc(ROWS + 1, sizeof *ends), first = 0;
    uint32_t *order = get(n * sizeof *order);
    if (!ends)
        stop("memory", "there is none");
    for (size_t i = 0; i < n; i++)
        ends[pairs[2 * i] + 1]++;
    for (size_t r = 0; r < ROWS; r++)
        ends[r + 1] += ends[r];
    for (size_t i = 0; i < n; i++)
        order[ends[pairs[2 * i]]++] = (uint32_t)i;
    sorting_pairs = pairs;
    for (size_t r = 0; r < ROWS; first = ends[r++])
        qsort(order + first, ends[r] - first, sizeof *order, compare_columns);
    free(ends);
    return order;
}

static size_t check_sorted(const tensor *coo, const tn_tensor *csr)
{
    const int32_t *pairs = coo->parts[1].data, *columns = csr->parts[1].data, *pointers = csr->parts[2].data;
    const float *given = coo->parts[0].data, *values = csr->parts[0].data;
    size_t n = (size_t)coo->shapes[0][0], made = (size_t)csr->parts[0].array.shape[0], at = 0;
    uint32_t *order = plain_order(pairs, n);
    for (size_t i = 0, same; i < n; i += same, at++) {
        const int32_t *pair = pairs + 2 * (size_t)order[i];
        double sum = (double)given[order[i]];
        for (same = 1;
             i + same < n && memcmp(pairs + 2 * (size_t)order[i + same], pair, 2 * sizeof *pair) == 0; same++)
            sum += (double)given[order[i + same]];
        if (at >= made || columns[at] != pair[1] || values[at] != (float)sum ||
            pointers[pair[0]] > (int32_t)at || pointers[pair[0] + 1] <= (int32_t)at)
            stop("coo to csr", "an entry is wrong");
    }
    if (at != made || pointers[0] != 0 || (size_t)pointers[ROWS] != made)
        stop("coo to csr", "there are too many entries");
    free(order);
    return made;
}

static size_t make_entries(tensor *coo, size_t n, const char *folder)
{
    char shape[64];
    int32_t *pairs = get(n * 2 * sizeof *pairs);
    float *values = get(n * sizeof *values);
    for (size_t i = 0; i < n; i++) {
        pairs[2 * i] = (int32_t)(random32() % ROWS);
        pairs[2 * i + 1] = (int32_t)(random32() % ROWS);
        values[i] = (float)random32() * 0x1p-32F;
    }
    coo->shape[0] = coo->shape[1] = ROWS;
    coo->shapes[0][0] = coo->shapes[1][0] = (int64_t)n;
    coo->shapes[1][1] = 2;
    coo->parts[0] = (tn_part){ .role = "values", .array = { .dtype = TN_FLOAT32, .rank = 1,
                                                            .shape = coo->shapes[0] },
                               .nbytes = n * sizeof *values, .data = values };
    coo->parts[1] = (tn_part){ .role = "indices",
                               .array = { .dtype = TN_INT32, .rank = 2, .shape = coo->shapes[1] },
                               .nbytes = n * 2 * sizeof *pairs, .data = pairs };
    coo->t = (tn_tensor){ .name = "m", .form = TN_FORM_COO, .dtype = TN_FLOAT32, .rank = 2,
                          .shape = coo->shape,
                          .parts = coo->parts, .nparts = 2 };
    tn_tensor *csr = reform(&coo->t, TN_FORM_CSR, 2, NULL);
    size_t made = check_sorted(coo, csr);
    tn_tensor_free(csr);
    snprintf(shape, sizeof shape, "%zu, 2", n);
    write_npy(folder, "indices.npy", "<i4", shape, pairs, n * 2 * sizeof *pairs);
    snprintf(shape, sizeof shape, "%zu,", n);
    write_npy(folder, "values.npy", "<f4", shape, values, n * sizeof *values);
    return made;
}

static double entries_action(const void *subject, const char *action, unsigned threads)
{
    return strcmp(action, "coo:csr") == 0 ? reform_seconds(&((const tensor *)subject)->t, TN_FORM_CSR,
                                                           threads)
                                          : -1;
}

/* --- files ------------------------------------------------------------------ */

typedef struct files {
    const char *folder;
    size_t      count;
} files;

static tn_file *open_in(const files *f, const char *name)
{
    char path[4096];
    tn_file *file;
    tn_error err;
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    if (tn_open(path, NULL, &file, &err))
        stop(path, err.text);
    return file;
}

static uint32_t element(size_t i) { return (uint32_t)i * UINT32_C(2654435761); }

static void make_file(const files *f)
{
    char shape[64];
    uint32_t *data = get(f->count * sizeof *data);
    for (size_t i = 0; i < f->count; i++)
        data[i] = element(i);
    snprintf(shape, sizeof shape, "%zu,", f->count);
    write_npy(f->folder, "large.npy", "<u4", shape, data, f->count * sizeof *data);
    free(data);
}

/* Everything into memory of its own. */
static double read_seconds(const files *f)
{
    tn_error err;
    double began = own_time();
    tn_file *file = open_in(f, "large.npy");
    const tn_part *part = &tn_file_tensor(file, 0)->parts[0];
    uint32_t *data = get(part->nbytes);
    if (tn_part_read(file, part, data, part->nbytes, &err))
        stop("large.npy", err.text);
    tn_close(file);
    double took = own_time() - began;
    for (size_t i = 0; i < f->count; i++)
        if (data[i] != element(i))
            stop("large.npy", "an element is wrong");
    free(data);
    return took;
}

/* Opened and listed, not read. */
static double open_seconds(const files *f)
{
    uint64_t bytes = 0;
    double began = own_time();
    tn_file *file = open_in(f, "large.npz");
    for (size_t i = 0; i < tn_file_count(file); i++)
        bytes += tn_file_tensor(file, i)->parts[0].nbytes;
    tn_close(file);
    double took = own_time() - began;
    if (bytes != f->count * sizeof(uint32_t))
        stop("large.npz", "has another size");
    return took;
}

static double files_action(const void *subject, const char *action, unsigned threads)
{
    (void)threads;
    if (strcmp(action, "npy") == 0)
        return read_seconds(subject);
    return strcmp(action, "npz") == 0 ? open_seconds(subject) : -1;
}

/* --- on request ------------------------------------------------------------- */

static int answer(const void *subject, size_t entries, double (*action)(const void *, const char *, unsigned))
{
    char word[32];
    unsigned threads;
    printf("ready %zu\n", entries);
    fflush(stdout);
    while (scanf("%31s %u", word, &threads) == 2) {
        double took = threads >= 1 && threads <= MAX_THREADS ? action(subject, word, threads) : -1;
        if (took < 0)
            stop(word, "no such action");
        printf("%.9f\n", took);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    size_t size = argc > 2 ? strtoull(argv[argc - 2], NULL, 10) : 0;
    const char *folder = argv[argc - 1];
    if (argc == 5 && strcmp(argv[1], "dense") == 0 && size > 0 && size < 1 << 16) {
        static matrix m;
        make_matrix(&m, argv[2], size, folder);
        return answer(&m, (size_t)m.csr->parts[0].array.shape[0], matrix_action);
    }
    if (argc == 4 && strcmp(argv[1], "entries") == 0 && size > 0 && size < INT32_MAX) {
        static tensor coo;
        size_t made = make_entries(&coo, size, folder);
        return answer(&coo, made, entries_action);
    }
    if (argc == 4 && strcmp(argv[1], "files") == 0 && size > 0 && size < 1 << 20) {
        const files f = { folder, size << 18 };
        make_file(&f);
        return answer(&f, f.count, files_action);
    }
    fprintf(stderr, "usage: bench-sparse dense TYPE SIDE FOLDER | entries COUNT FOLDER | files MIB FOLDER\n");
    return 2;
}
