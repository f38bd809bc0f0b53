/* formats/pytorch/machine.c - the opcodes of a pickle, protocols 0 to 5. */
#include "formats/pytorch/machine.h"
#include "base/pages.h"
#include "bytes/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_PROTOCOL = 5,
    MAX_NUMBER_BYTES = 1024,
    MAX_COPIED = 32,            /* bytes that calls copy for each byte of the pickle, and... */
    FREE_COPIED = 1 << 16,      /* ...these */
    USUAL_MEMO = 12,            /* bytes of a pickle for each value that is put into the memo, at least */
    MOST_MEMO = 1 << 22         /* values that memory is taken for at once */
};

/* Pushes or changes values; `arg` is of the opcode's row. */
typedef tn_status (*op_fn)(tn_pt_machine *m, unsigned arg, tn_error *err);

tn_status tn_pt_fail(const tn_pt_machine *m, tn_error *err, tn_status status, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    uint64_t at = m->base == TN_NO_OFFSET ? TN_NO_OFFSET : m->base + m->op;
    return tn_fail_at(err, status, at, "%s", text);
}

tn_status tn_pt_count_copied(tn_pt_machine *m, uint64_t bytes, tn_error *err)
{
    uint64_t most = FREE_COPIED + MAX_COPIED * (uint64_t)m->cur.end;
    m->copied += bytes;         /* each time at most what memory has */
    if (m->copied <= most)
        return TN_OK;
    return tn_pt_fail(m, err, TN_ERR_LIMIT, "calls of the pickle copy more than the %llu bytes allowed",
                      (unsigned long long)most);
}

static tn_status truncated(const tn_pt_machine *m, tn_error *err)
{
    return tn_pt_fail(m, err, TN_ERR_TRUNCATED, "the pickle ends inside an opcode");
}

/* --- the stack --- */

static tn_status push(tn_pt_machine *m, tn_pt_value value, tn_error *err)
{
    TN_NEED(m->count < m->cap || TN_GROW(m->stack, m->count, m->cap), err);
    m->stack[m->count++] = value;
    return TN_OK;
}

/* The lowest place of the stack that may be taken: the last mark. */
static size_t floor_of(const tn_pt_machine *m)
{
    return m->nmarks ? m->marks[m->nmarks - 1] : 0;
}

static tn_status need(const tn_pt_machine *m, size_t n, tn_error *err)
{
    if (m->count - floor_of(m) >= n)
        return TN_OK;
    return tn_pt_fail(m, err, TN_ERR_CORRUPT, "expected %zu values on the stack of the pickle but found %zu",
                      n, m->count - floor_of(m));
}

static tn_status take_mark(tn_pt_machine *m, size_t *from, tn_error *err)
{
    if (!m->nmarks)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT,
                          "expected a mark on the stack of the pickle but found none");
    *from = m->marks[--m->nmarks];
    return TN_OK;
}

static tn_status op_mark(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    TN_NEED(TN_GROW(m->marks, m->nmarks, m->marks_cap), err);
    m->marks[m->nmarks++] = m->count;
    return TN_OK;
}

/* POP takes a mark if that is on top. */
static tn_status op_pop(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    size_t from = 0;
    if (m->nmarks && m->count == floor_of(m))
        return take_mark(m, &from, err);
    TN_TRY(need(m, 1, err));
    m->count--;
    return TN_OK;
}

static tn_status op_pop_mark(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    return take_mark(m, &m->count, err);
}

static tn_status op_dup(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    TN_TRY(need(m, 1, err));
    return push(m, m->stack[m->count - 1], err);
}

/* --- the memo --- */

/* Room for about as many as there will be: a memo that grows is copied again and again. */
static tn_status begin_memo(tn_pt_machine *m, tn_error *err)
{
    size_t n = m->cur.end / USUAL_MEMO;
    m->memo_cap = n < MOST_MEMO ? n + 1 : MOST_MEMO;
    m->memo = tn_pages_alloc(m->memo_cap * sizeof *m->memo);
    return m->memo ? TN_OK : tn_fail_nomem(err);
}

static tn_status put_memo(tn_pt_machine *m, uint64_t i, tn_error *err)
{
    static const tn_pt_value none = { .kind = TN_PT_NONE };
    TN_TRY(need(m, 1, err));
    if (i >= m->cur.end)        /* each takes a byte of the pickle at least */
        return tn_pt_fail(m, err, TN_ERR_CORRUPT,
                          "expected a memo below the %zu bytes of the pickle but found %llu", m->cur.end,
                          (unsigned long long)i);
    if (!m->memo)
        TN_TRY(begin_memo(m, err));
    while (m->nmemo <= i) {
        TN_NEED(m->nmemo < m->memo_cap || TN_GROW(m->memo, m->nmemo, m->memo_cap), err);
        m->memo[m->nmemo] = none;
        m->memo[m->nmemo++].size = UINT32_MAX;      /* not set */
    }
    m->memo[i] = m->stack[m->count - 1];
    return TN_OK;
}

static tn_status get_memo(tn_pt_machine *m, uint64_t i, tn_error *err)
{
    if (i >= m->nmemo || m->memo[i].size == UINT32_MAX)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "memo %llu of the pickle was never put",
                          (unsigned long long)i);
    return push(m, m->memo[i], err);
}

static tn_status op_put(tn_pt_machine *m, unsigned width, tn_error *err)
{
    uint64_t i = tn_cur_le(&m->cur, width);
    return m->cur.bad ? truncated(m, err) : put_memo(m, i, err);
}

static tn_status op_get(tn_pt_machine *m, unsigned width, tn_error *err)
{
    uint64_t i = tn_cur_le(&m->cur, width);
    return m->cur.bad ? truncated(m, err) : get_memo(m, i, err);
}

static tn_status op_memoize(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    return put_memo(m, m->nmemo, err);
}

/* --- lines: protocol 0 --- */

static tn_status take_line(tn_pt_machine *m, tn_text *line, tn_error *err)
{
    tn_cur *c = &m->cur;
    const uint8_t *from = c->base + c->pos;
    const uint8_t *end = tn_cur_left(c) ? memchr(from, '\n', tn_cur_left(c)) : NULL;
    if (!end)
        return tn_pt_fail(m, err, TN_ERR_TRUNCATED, "a line of the pickle does not end");
    *line = (tn_text){ (const char *)from, (size_t)(end - from) };
    tn_cur_take(c, line->len + 1);
    return TN_OK;
}

static tn_status take_number(tn_pt_machine *m, tn_text *line, tn_error *err)
{
    TN_TRY(take_line(m, line, err));
    if (line->len > MAX_NUMBER_BYTES)
        return tn_pt_fail(m, err, TN_ERR_LIMIT, "expected a number of at most %d characters but found %zu",
                          MAX_NUMBER_BYTES, line->len);
    return TN_OK;
}

static tn_status bad_number(tn_pt_machine *m, tn_text line, tn_error *err)
{
    return tn_pt_fail(m, err, TN_ERR_CORRUPT, "expected a number in the pickle but found %s",
                      tn_quote(line.ptr, line.len).text);
}

/* A decimal integer; one beyond 64 bits becomes BIG. */
static bool parse_integer(tn_text line, tn_pt_value *out)
{
    bool negative = line.len && line.ptr[0] == '-', fits = true;
    uint64_t number = 0;
    size_t i = negative || (line.len && line.ptr[0] == '+');
    if (i == line.len)
        return false;
    for (; i < line.len; i++) {
        if (!tn_is_digit(line.ptr[i]))
            return false;
        fits = fits && tn_add_digit(&number, line.ptr[i]);
    }
    *out = (tn_pt_value){ .kind = TN_PT_BIG };
    if (fits && number <= (uint64_t)INT64_MAX + negative)
        *out = (tn_pt_value){ .kind = TN_PT_INT, .i = (int64_t)(negative ? 0 - number : number) };
    else if (fits && !negative)
        *out = (tn_pt_value){ .kind = TN_PT_UINT, .u = number };
    return true;
}

static tn_status op_int_line(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    tn_text line = { 0 };
    tn_pt_value v;
    TN_TRY(take_number(m, &line, err));
    if (tn_text_is(line, "00") || tn_text_is(line, "01"))
        return push(m, (tn_pt_value){ .kind = TN_PT_BOOL, .i = line.ptr[1] == '1' }, err);
    if (line.len && line.ptr[line.len - 1] == 'L')
        line.len--;
    return parse_integer(line, &v) ? push(m, v, err) : bad_number(m, line, err);
}

/* As Python writes floats: JSON has the same grammar, but no word for those that are not finite. */
static bool parse_float(tn_pt_machine *m, tn_text line, double *value)
{
    tn_json j;
    bool negative = line.len && line.ptr[0] == '-';
    tn_text word = { line.ptr + negative, line.len - negative };
    if (tn_text_is(word, "inf") || tn_text_is(word, "nan")) {
        *value = word.ptr[0] == 'i' ? (double)INFINITY : (double)NAN;
        *value = negative ? -*value : *value;
        return true;
    }
    tn_json_init(&j, line.ptr, line.len, m->arena);
    *value = tn_json_f64(&j);
    return tn_json_done(&j);
}

static tn_status op_float_line(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    double value = 0;
    tn_text line = { 0 };
    TN_TRY(take_number(m, &line, err));
    if (!parse_float(m, line, &value))
        return bad_number(m, line, err);
    return push(m, (tn_pt_value){ .kind = TN_PT_FLOAT, .f = value }, err);
}

static tn_status take_index(tn_pt_machine *m, uint64_t *i, tn_error *err)
{
    tn_text line = { 0 };
    tn_pt_value v;
    TN_TRY(take_number(m, &line, err));
    if (!parse_integer(line, &v) || v.kind != TN_PT_INT || v.i < 0)
        return bad_number(m, line, err);
    *i = (uint64_t)v.i;
    return TN_OK;
}

static tn_status op_put_line(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    uint64_t i = 0;
    TN_TRY(take_index(m, &i, err));
    return put_memo(m, i, err);
}

static tn_status op_get_line(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    uint64_t i = 0;
    TN_TRY(take_index(m, &i, err));
    return get_memo(m, i, err);
}

/* --- numbers --- */

static tn_status op_none(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    return push(m, (tn_pt_value){ .kind = TN_PT_NONE }, err);
}

static tn_status op_bool(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    return push(m, (tn_pt_value){ .kind = TN_PT_BOOL, .i = arg }, err);
}

/* BININT has a sign, the shorter ones have none. */
static tn_status op_int(tn_pt_machine *m, unsigned width, tn_error *err)
{
    uint64_t number = tn_cur_le(&m->cur, width);
    int64_t value = width == 4 ? (int32_t)(uint32_t)number : (int64_t)number;
    return m->cur.bad ? truncated(m, err) : push(m, (tn_pt_value){ .kind = TN_PT_INT, .i = value }, err);
}

static tn_status op_float(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    const uint8_t *p = tn_cur_take(&m->cur, 8);
    uint64_t bits = 0;
    if (!p)
        return truncated(m, err);
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | p[i];
    tn_pt_value v = { .kind = TN_PT_FLOAT };
    memcpy(&v.f, &bits, sizeof v.f);
    return push(m, v, err);
}

/* Two's complement of any length, little-endian. */
static tn_pt_value long_value(const uint8_t *p, size_t n)
{
    bool negative = n && p[n - 1] & 0x80;
    while (n > 8 && p[n - 1] == (negative ? 0xff : 0))
        n--;
    if (n > 8)
        return (tn_pt_value){ .kind = TN_PT_BIG };
    uint64_t bits = negative ? UINT64_MAX : 0;
    for (size_t i = n; i-- > 0;)
        bits = bits << 8 | p[i];
    bool fits = (bits >> 63 != 0) == negative;
    if (fits)
        return (tn_pt_value){ .kind = TN_PT_INT, .i = (int64_t)bits };
    return negative ? (tn_pt_value){ .kind = TN_PT_BIG } : (tn_pt_value){ .kind = TN_PT_UINT, .u = bits };
}

static tn_status op_long(tn_pt_machine *m, unsigned width, tn_error *err)
{
    uint64_t n = tn_cur_le(&m->cur, width);
    if (n > MAX_NUMBER_BYTES)
        return tn_pt_fail(m, err, TN_ERR_LIMIT, "expected an integer of at most %d bytes but found %llu",
                          MAX_NUMBER_BYTES, (unsigned long long)n);
    const uint8_t *p = tn_cur_take(&m->cur, n);
    return p ? push(m, long_value(p, (size_t)n), err) : truncated(m, err);
}

/* --- text and bytes --- */

static tn_status take_counted(tn_pt_machine *m, unsigned width, tn_text *text, tn_error *err)
{
    uint64_t n = tn_cur_le(&m->cur, width);
    const uint8_t *p = tn_cur_take(&m->cur, n);
    *text = (tn_text){ (const char *)p, (size_t)n };
    return p ? TN_OK : truncated(m, err);
}

static tn_pt_value text_value(tn_pt_kind kind, tn_text text)
{
    return (tn_pt_value){ .kind = (uint8_t)kind, .size = (uint32_t)text.len, .text = text.ptr };
}

static tn_status push_text(tn_pt_machine *m, tn_text text, tn_error *err)
{
    if (tn_utf8_valid(text.ptr, text.len) != text.len)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "a text of the pickle is not UTF-8: %s",
                          tn_quote(text.ptr, text.len).text);
    return push(m, text_value(TN_PT_TEXT, text), err);
}

static tn_status op_text(tn_pt_machine *m, unsigned width, tn_error *err)
{
    tn_text text = { 0 };
    TN_TRY(take_counted(m, width, &text, err));
    return push_text(m, text, err);
}

static tn_status op_bytes(tn_pt_machine *m, unsigned width, tn_error *err)
{
    tn_text text = { 0 };
    TN_TRY(take_counted(m, width, &text, err));
    return push(m, text_value(TN_PT_BYTES, text), err);
}

/* A str of Python 2: text if it is ASCII, else bytes. */
static tn_status push_string(tn_pt_machine *m, tn_text text, tn_error *err)
{
    bool ascii = true;
    for (size_t i = 0; i < text.len && ascii; i++)
        ascii = !((uint8_t)text.ptr[i] & 0x80);
    tn_pt_value v = text_value(ascii ? TN_PT_TEXT : TN_PT_BYTES, text);
    v.is_raw = true;
    return push(m, v, err);
}

static tn_status op_string(tn_pt_machine *m, unsigned width, tn_error *err)
{
    tn_text text = { 0 };
    TN_TRY(take_counted(m, width, &text, err));
    return push_string(m, text, err);
}

/* The byte that an escape of a Python literal stands for, and its length; 0: not known. */
static size_t unescape(tn_text rest, char *byte)
{
    static const char letters[] = "n\nr\rt\t\\\\''\"\"a\ab\bf\fv\v";
    for (size_t i = 0; rest.len && i + 1 < sizeof letters; i += 2)
        if (rest.ptr[0] == letters[i]) {
            *byte = letters[i + 1];
            return 1;
        }
    uint8_t value;
    if (rest.len < 3 || rest.ptr[0] != 'x' || !tn_hex_read((tn_text){ rest.ptr + 1, 2 }, &value, 1))
        return 0;
    *byte = (char)value;
    return 3;
}

/* STRING: a literal of Python 2 in quotes. */
static tn_status op_string_line(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    tn_text line = { 0 };
    TN_TRY(take_line(m, &line, err));
    bool quoted = line.len >= 2 && (line.ptr[0] == '\'' || line.ptr[0] == '"') &&
                  line.ptr[line.len - 1] == line.ptr[0];
    if (!quoted)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "expected a text in quotes but found %s",
                          tn_quote(line.ptr, line.len).text);
    line = (tn_text){ line.ptr + 1, line.len - 2 };
    char *copy = tn_arena_alloc(m->arena, line.len);
    size_t n = 0;
    TN_NEED(copy, err);
    for (size_t i = 0; i < line.len; i++) {
        copy[n] = line.ptr[i];
        if (line.ptr[i] == '\\') {
            size_t taken = unescape((tn_text){ line.ptr + i + 1, line.len - i - 1 }, &copy[n]);
            if (!taken)
                return tn_pt_fail(m, err, TN_ERR_CORRUPT, "a text of the pickle has an unknown escape");
            i += taken;
        }
        n++;
    }
    return push_string(m, (tn_text){ copy, n }, err);
}

static size_t put_utf8(uint32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t n = (size_t)2 + (c >= 0x800) + (c >= 0x10000);
    static const uint8_t first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(first[n] | c);
    return n;
}

/* UNICODE: characters of Latin-1, and \uXXXX or \UXXXXXXXX. */
static tn_status op_unicode_line(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    tn_text line = { 0 };
    TN_TRY(take_line(m, &line, err));
    char *copy = tn_arena_alloc(m->arena, 2 * line.len);
    size_t n = 0;
    TN_NEED(copy, err);
    for (size_t i = 0; i < line.len; i++) {
        uint32_t c = (uint8_t)line.ptr[i];
        char next = i + 1 < line.len ? line.ptr[i + 1] : 0;
        size_t digits = c == '\\' && next == 'u' ? 4 : 0;
        digits = c == '\\' && next == 'U' ? 8 : digits;
        if (digits > line.len - i - 1)
            return tn_pt_fail(m, err, TN_ERR_CORRUPT, "a text of the pickle has an unknown escape");
        for (size_t k = 0; k < digits; k++) {
            int digit = tn_hex_digit(i + 2 + k < line.len ? line.ptr[i + 2 + k] : 'x');
            if (digit < 0)
                return tn_pt_fail(m, err, TN_ERR_CORRUPT, "a text of the pickle has an unknown escape");
            c = (k ? c << 4 : 0) | (uint32_t)digit;
        }
        if (c > 0x10ffff)
            return tn_pt_fail(m, err, TN_ERR_CORRUPT, "a text of the pickle has an unknown escape");
        n += put_utf8(c, copy + n);
        i += digits ? digits + 1 : 0;
    }
    return push_text(m, (tn_text){ copy, n }, err);
}

/* --- containers --- */

static tn_pt_value items_value(tn_pt_kind kind, tn_pt_items *items)
{
    return (tn_pt_value){ .kind = (uint8_t)kind, .items = items };
}

tn_status tn_pt_append(tn_pt_machine *m, tn_pt_items *items, const tn_pt_value *values, size_t n,
                       tn_error *err)
{
    if (!n)
        return TN_OK;
    if (n > items->cap - items->count) {
        size_t cap = (size_t)items->count + n > 2 * (size_t)items->cap ? items->count + n
                                                                      : 2 * (size_t)items->cap;
        tn_pt_value *grown = cap < UINT32_MAX ? tn_arena_alloc(m->arena, cap * sizeof *grown) : NULL;
        TN_NEED(grown, err);
        if (items->count)
            memcpy(grown, items->at, items->count * sizeof *grown);
        items->at = grown;
        items->cap = (uint32_t)cap;
    }
    memcpy(items->at + items->count, values, n * sizeof *values);
    items->count += (uint32_t)n;
    return TN_OK;
}

tn_status tn_pt_new_items(tn_pt_machine *m, tn_pt_kind kind, const tn_pt_value *values, size_t n,
                          tn_pt_value *out, tn_error *err)
{
    tn_pt_items *items = tn_arena_zalloc(m->arena, 1, sizeof *items);
    TN_NEED(items, err);
    *out = items_value(kind, items);
    return tn_pt_append(m, items, values, n, err);
}

static tn_status push_items(tn_pt_machine *m, tn_pt_kind kind, size_t from, tn_error *err)
{
    tn_pt_value made;
    if (kind == TN_PT_DICT && (m->count - from) % 2)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "a dict of the pickle has a key without a value");
    const tn_pt_value *values = m->count > from ? m->stack + from : NULL;
    TN_TRY(tn_pt_new_items(m, kind, values, m->count - from, &made, err));
    m->count = from;
    return push(m, made, err);
}

static tn_status op_empty(tn_pt_machine *m, unsigned kind, tn_error *err)
{
    if (kind == TN_PT_TUPLE && m->no_items)
        return push(m, items_value(TN_PT_TUPLE, m->no_items), err);
    TN_TRY(push_items(m, (tn_pt_kind)kind, m->count, err));
    if (kind == TN_PT_TUPLE)
        m->no_items = m->stack[m->count - 1].items;
    return TN_OK;
}

static tn_status op_from_mark(tn_pt_machine *m, unsigned kind, tn_error *err)
{
    size_t from = 0;
    TN_TRY(take_mark(m, &from, err));
    return push_items(m, (tn_pt_kind)kind, from, err);
}

static tn_status op_tuple(tn_pt_machine *m, unsigned n, tn_error *err)
{
    TN_TRY(need(m, n, err));
    return push_items(m, TN_PT_TUPLE, m->count - n, err);
}

/* Appends the values from `from` on to the container before them; what an unknown object does with them is
 * not known: they are dropped. */
static tn_status add_items(tn_pt_machine *m, tn_pt_kind kind, size_t from, tn_error *err)
{
    size_t n = m->count - from;
    m->count = from;
    TN_TRY(need(m, 1, err));
    tn_pt_value *to = &m->stack[from - 1];
    if (kind == TN_PT_DICT && n % 2)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "a dict of the pickle has a key without a value");
    if (to->kind == kind)
        return tn_pt_append(m, to->items, m->stack + from, n, err);
    if (to->kind == TN_PT_OBJECT || to->kind == TN_PT_GLOBAL || to->kind == TN_PT_SET)
        return TN_OK;
    return tn_pt_fail(m, err, TN_ERR_CORRUPT, "the pickle adds items to a value that has none");
}

static tn_status op_add_item(tn_pt_machine *m, unsigned kind, tn_error *err)
{
    size_t n = kind == TN_PT_DICT ? 2 : 1;
    TN_TRY(need(m, n + 1, err));
    return add_items(m, (tn_pt_kind)kind, m->count - n, err);
}

static tn_status op_add_items(tn_pt_machine *m, unsigned kind, tn_error *err)
{
    size_t from = 0;
    TN_TRY(take_mark(m, &from, err));
    return add_items(m, (tn_pt_kind)kind, from, err);
}

/* --- globals and calls --- */

static tn_status push_global(tn_pt_machine *m, tn_text module, tn_text name, tn_error *err)
{
    tn_pt_value v;
    TN_TRY(tn_pt_count_copied(m, module.len + name.len, err));
    if (tn_utf8_valid(module.ptr, module.len) != module.len || tn_utf8_valid(name.ptr, name.len) != name.len)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "the name of a global is not UTF-8");
    TN_TRY(tn_pt_new_global(m, module, name, &v, err));
    return push(m, v, err);
}

static tn_status op_global(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    tn_text module = { 0 }, name = { 0 };
    TN_TRY(take_line(m, &module, err));
    TN_TRY(take_line(m, &name, err));
    return push_global(m, module, name, err);
}

static tn_status op_stack_global(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    TN_TRY(need(m, 2, err));
    const tn_pt_value *v = &m->stack[m->count - 2];
    if (v[0].kind != TN_PT_TEXT || v[1].kind != TN_PT_TEXT)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "the name of a global is not a text");
    m->count -= 2;
    return push_global(m, tn_pt_text(&v[0]), tn_pt_text(&v[1]), err);
}

/* The function is at `at`; all from there on becomes the result. */
static tn_status call_at(tn_pt_machine *m, size_t at, const tn_pt_value *args, size_t n, tn_error *err)
{
    tn_pt_value made, function = m->stack[at];
    TN_TRY(tn_pt_call_value(m, &function, args, n, &made, err));
    m->count = at;
    return push(m, made, err);
}

/* REDUCE and NEWOBJ; NEWOBJ_EX has a dict of named arguments too, which are dropped. */
static tn_status op_call(tn_pt_machine *m, unsigned named, tn_error *err)
{
    TN_TRY(need(m, 2 + named, err));
    size_t at = m->count - 2 - named;
    const tn_pt_value *args = &m->stack[at + 1];
    if (!tn_pt_is_list(args))
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "the arguments of a call are not a tuple");
    return call_at(m, at, args->items->at, args->items->count, err);
}

static tn_status op_obj(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    size_t from = 0;
    TN_TRY(take_mark(m, &from, err));
    if (from == m->count)
        return tn_pt_fail(m, err, TN_ERR_CORRUPT, "a call of the pickle has no function");
    return call_at(m, from, m->stack + from + 1, m->count - from - 1, err);
}

static tn_status op_inst(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    size_t from = 0;
    TN_TRY(op_global(m, arg, err));
    tn_pt_value made, function = m->stack[--m->count];
    TN_TRY(take_mark(m, &from, err));
    TN_TRY(tn_pt_call_value(m, &function, m->stack + from, m->count - from, &made, err));
    m->count = from;
    return push(m, made, err);
}

static tn_status op_build(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    TN_TRY(need(m, 2, err));
    m->count--;
    return tn_pt_build(m, &m->stack[m->count - 1], &m->stack[m->count], err);
}

static tn_status op_persistent(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    TN_TRY(need(m, 1, err));
    tn_pt_value made;
    TN_TRY(tn_pt_persistent(m, &m->stack[m->count - 1], &made, err));
    m->stack[m->count - 1] = made;
    return TN_OK;
}

static tn_status op_persistent_line(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    tn_text line = { 0 };
    TN_TRY(take_line(m, &line, err));
    return tn_pt_fail(m, err, TN_ERR_CORRUPT,
                      "expected a persistent id that is a tuple but found the text %s",
                      tn_quote(line.ptr, line.len).text);
}

/* --- all --- */

static tn_status op_protocol(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    unsigned protocol = tn_cur_u8(&m->cur);
    if (m->cur.bad)
        return truncated(m, err);
    if (protocol > MAX_PROTOCOL)
        return tn_pt_fail(m, err, TN_ERR_UNSUPPORTED, "expected a pickle of protocol 0 to %d but found %u",
                          MAX_PROTOCOL, protocol);
    return TN_OK;
}

static tn_status op_frame(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    uint64_t n = tn_cur_le(&m->cur, 8);
    return m->cur.bad || n > tn_cur_left(&m->cur) ? truncated(m, err) : TN_OK;
}

static tn_status op_extension(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    return tn_pt_fail(m, err, TN_ERR_UNSUPPORTED,
                      "the pickle uses a registry of extensions, which only the program that wrote it has");
}

static tn_status op_buffer(tn_pt_machine *m, unsigned arg, tn_error *err)
{
    (void)arg;
    return tn_pt_fail(m, err, TN_ERR_UNSUPPORTED, "the pickle uses buffers that are not in it");
}

typedef struct opcode {
    op_fn    run;
    unsigned arg;
} opcode;

enum { STOP = '.' };

static const opcode opcodes[256] = {
    ['('] = { op_mark, 0 },             ['0'] = { op_pop, 0 },          ['1'] = { op_pop_mark, 0 },
    ['2'] = { op_dup, 0 },              ['N'] = { op_none, 0 },         [0x88] = { op_bool, 1 },
    [0x89] = { op_bool, 0 },            ['J'] = { op_int, 4 },          ['K'] = { op_int, 1 },
    ['M'] = { op_int, 2 },              ['I'] = { op_int_line, 0 },     ['L'] = { op_int_line, 0 },
    [0x8a] = { op_long, 1 },            [0x8b] = { op_long, 4 },        ['G'] = { op_float, 0 },
    ['F'] = { op_float_line, 0 },       ['X'] = { op_text, 4 },         [0x8c] = { op_text, 1 },
    [0x8d] = { op_text, 8 },            ['V'] = { op_unicode_line, 0 }, ['T'] = { op_string, 4 },
    ['U'] = { op_string, 1 },           ['S'] = { op_string_line, 0 },  ['B'] = { op_bytes, 4 },
    ['C'] = { op_bytes, 1 },            [0x8e] = { op_bytes, 8 },       [0x96] = { op_bytes, 8 },
    [']'] = { op_empty, TN_PT_LIST },   [')'] = { op_empty, TN_PT_TUPLE },
    ['}'] = { op_empty, TN_PT_DICT },   [0x8f] = { op_empty, TN_PT_SET },
    ['l'] = { op_from_mark, TN_PT_LIST },       ['t'] = { op_from_mark, TN_PT_TUPLE },
    ['d'] = { op_from_mark, TN_PT_DICT },       [0x91] = { op_from_mark, TN_PT_SET },
    [0x85] = { op_tuple, 1 },           [0x86] = { op_tuple, 2 },       [0x87] = { op_tuple, 3 },
    ['a'] = { op_add_item, TN_PT_LIST },        ['s'] = { op_add_item, TN_PT_DICT },
    ['e'] = { op_add_items, TN_PT_LIST },       ['u'] = { op_add_items, TN_PT_DICT },
    [0x90] = { op_add_items, TN_PT_SET },       ['q'] = { op_put, 1 },  ['r'] = { op_put, 4 },
    ['p'] = { op_put_line, 0 },         [0x94] = { op_memoize, 0 },     ['h'] = { op_get, 1 },
    ['j'] = { op_get, 4 },              ['g'] = { op_get_line, 0 },     ['c'] = { op_global, 0 },
    [0x93] = { op_stack_global, 0 },    ['R'] = { op_call, 0 },         [0x81] = { op_call, 0 },
    [0x92] = { op_call, 1 },            ['o'] = { op_obj, 0 },          ['i'] = { op_inst, 0 },
    ['b'] = { op_build, 0 },            ['Q'] = { op_persistent, 0 },   ['P'] = { op_persistent_line, 0 },
    [0x80] = { op_protocol, 0 },        [0x95] = { op_frame, 0 },       [0x82] = { op_extension, 0 },
    [0x83] = { op_extension, 0 },       [0x84] = { op_extension, 0 },   [0x97] = { op_buffer, 0 },
    [0x98] = { op_buffer, 0 },
};

tn_status tn_pt_run(tn_pt_machine *m, tn_pt_value *root, tn_error *err)
{
    m->count = m->nmarks = m->nmemo = 0;
    for (;;) {
        m->op = m->cur.pos;
        uint8_t op = tn_cur_u8(&m->cur);
        if (m->cur.bad)
            return tn_pt_fail(m, err, TN_ERR_TRUNCATED, "the pickle has no end");
        m->opcodes++;
        if (m->most_opcodes && m->opcodes > m->most_opcodes)
            return tn_pt_fail(m, err, TN_ERR_LIMIT, "expected at most %llu opcodes but found more",
                              (unsigned long long)m->most_opcodes);
        if (op == STOP)
            break;
        if (!opcodes[op].run)
            return tn_pt_fail(m, err, TN_ERR_CORRUPT, "unknown opcode 0x%02x in the pickle", op);
        TN_TRY(opcodes[op].run(m, opcodes[op].arg, err));
    }
    TN_TRY(need(m, 1, err));
    *root = m->stack[m->count - 1];
    return TN_OK;
}

void tn_pt_machine_free(tn_pt_machine *m)
{
    free(m->stack);
    free(m->marks);
    free(m->memo);
    free(m->storages);
    *m = (tn_pt_machine){ 0 };
}
