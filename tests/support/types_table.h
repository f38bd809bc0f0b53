/* tests/support/types_table.h - the type table as Markdown, as docs/types.md has it. */
#ifndef TN_TESTS_TYPES_TABLE_H
#define TN_TESTS_TYPES_TABLE_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <tenon/tensor.h>

#define TYPES_TABLE_BEGIN "<!-- types: begin (printed by tests/support/types_table.c) -->\n"
#define TYPES_TABLE_END   "<!-- types: end -->\n"

static inline const char *types_kind_text(tn_kind kind)
{
    switch (kind) {
    case TN_KIND_FLOAT:   return "float";
    case TN_KIND_INT:     return "signed";
    case TN_KIND_UINT:    return "unsigned";
    case TN_KIND_BOOL:    return "bool";
    case TN_KIND_COMPLEX: return "complex";
    case TN_KIND_FIXED:   return "fixed point";
    default:              return "";
    }
}

static inline const char *types_specials_text(const tn_dtype_info *row)
{
    switch (row->specials) {
    case TN_SPECIALS_IEEE: return "inf, nan";
    case TN_SPECIALS_FN:   return "nan: all ones";
    case TN_SPECIALS_FNUZ: return "nan: code of -0";
    case TN_SPECIALS_E8M0: return "nan: 255; no sign";
    default:               return row->kind == TN_KIND_FLOAT ? "none" : "";
    }
}

static inline void types_print_bits(FILE *out)
{
    fputs("| type | kind | bits | exponent | mantissa | bias | not finite |\n"
          "|---|---|--:|--:|--:|--:|---|\n", out);
    for (int i = 1; i < TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *row = tn_dtype_get((tn_dtype)i);
        fprintf(out, "| `%s` | %s | %d |", row->name, types_kind_text(row->kind), row->bits);
        if (row->exponent_bits)
            fprintf(out, " %d | %d | %d |", row->exponent_bits, row->mantissa_bits, row->bias);
        else
            fputs(" | | |", out);
        fprintf(out, " %s |\n", types_specials_text(row));
    }
}

/* A float's value by its code, with digits enough to tell it from its neighbours in float32. */
static inline void types_print_value(FILE *out, const tn_dtype_info *row, uint64_t code)
{
    char text[48];
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)            /* little-endian is the host's order wherever this runs */
        bytes[i] = (uint8_t)(code >> 8 * i);
    tn_value_format(text, sizeof text, row->mantissa_bits < 23 ? TN_FLOAT32 : row->dtype,
                    tn_value_get(row->dtype, bytes, 0));
    fprintf(out, " %s |", text);
}

/* Codes without their sign; nan_last is 0 where there is a single NaN. */
typedef struct types_codes {
    uint64_t infinity, nan, nan_last, largest, normal, smallest, sign;
} types_codes;

static inline types_codes types_codes_of(const tn_dtype_info *row)
{
    unsigned m = row->mantissa_bits;
    bool e8m0 = row->specials == TN_SPECIALS_E8M0;
    unsigned ignored = e8m0 ? 0 : row->bits - 1u - row->exponent_bits - m;
    uint64_t all = (UINT64_C(1) << (row->exponent_bits + m)) - 1, top = all - ((UINT64_C(1) << m) - 1);
    types_codes c = { .largest = all, .normal = UINT64_C(1) << m, .smallest = 1,
                      .sign = UINT64_C(1) << (row->bits - 1) };
    switch (row->specials) {
    case TN_SPECIALS_IEEE: c.infinity = top, c.nan = top + 1, c.nan_last = all, c.largest = top - 1; break;
    case TN_SPECIALS_FN:   c.nan = all, c.largest = all - 1; break;
    case TN_SPECIALS_FNUZ: c.nan = c.sign; break;
    case TN_SPECIALS_E8M0: c.nan = all, c.largest = all - 1, c.normal = c.smallest = 0, c.sign = 0; break;
    default: break;
    }
    c.infinity <<= ignored;
    c.nan <<= row->specials == TN_SPECIALS_FNUZ ? 0 : ignored;
    c.nan_last <<= ignored;
    c.largest <<= ignored;
    c.normal <<= ignored;
    c.smallest <<= ignored;
    return c;
}

static inline void types_print_hex(FILE *out, const tn_dtype_info *row, uint64_t code)
{
    fprintf(out, "`0x%0*" PRIx64 "`", (row->bits + 3) / 4, code);
}

static inline void types_print_specials(FILE *out)
{
    fputs("| type | infinity | NaN | -0 | largest | smallest normal | smallest |\n"
          "|---|---|---|---|--:|--:|--:|\n", out);
    for (int i = 1; i < TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *row = tn_dtype_get((tn_dtype)i);
        if (row->kind != TN_KIND_FLOAT)
            continue;
        types_codes c = types_codes_of(row);
        fprintf(out, "| `%s` | ", row->name);
        if (c.infinity)
            types_print_hex(out, row, c.infinity);
        fputs(" | ", out);
        if (c.nan)
            types_print_hex(out, row, c.nan);
        if (c.nan_last)
            fputs(" to ", out), types_print_hex(out, row, c.nan_last);
        fputs(" | ", out);
        if (c.sign && row->specials != TN_SPECIALS_FNUZ)
            types_print_hex(out, row, c.sign);
        fputs(" |", out);
        types_print_value(out, row, c.largest);
        types_print_value(out, row, c.normal);
        types_print_value(out, row, c.smallest);
        fputs("\n", out);
    }
}

static inline void types_print_name(FILE *out, const char *name)
{
    if (name && name[0] == '|')         /* would end the cell */
        fprintf(out, " `\\%s` |", name);
    else if (name)
        fprintf(out, " `%s` |", name);
    else
        fputs(" |", out);
}

static inline void types_print_code(FILE *out, int code)
{
    if (code >= 0)
        fprintf(out, " %d |", code);
    else
        fputs(" |", out);
}

static inline void types_print_names(FILE *out)
{
    fputs("| type | short | safetensors | zTensor 0.1 | WIA | NumPy | PyTorch | MLI | BTF | DLPack |\n"
          "|---|---|---|---|---|---|---|---|--:|--:|\n", out);
    for (int i = 1; i < TN_DTYPE_COUNT; i++) {
        const tn_dtype_info *row = tn_dtype_get((tn_dtype)i);
        const char *names[] = { row->name, row->short_name, row->safetensors, row->ztensor,
                                row->wia, row->numpy, row->torch, row->mli };
        fputs("|", out);
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            types_print_name(out, names[k]);
        types_print_code(out, row->btf);
        types_print_code(out, row->dlpack_code);
        fputs("\n", out);
    }
}

/* What stands between the two markers in docs/types.md. */
static inline void types_table_print(FILE *out)
{
    fputs("\n## What the bits mean\n\n", out);
    types_print_bits(out);
    fputs("\n## Special codes\n\n", out);
    types_print_specials(out);
    fputs("\n## Names\n\n", out);
    types_print_names(out);
    fputs("\n", out);
}

#endif
