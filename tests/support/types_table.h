/* tests/support/types_table.h - the type table as Markdown, as docs/types.md has it. */
#ifndef TN_TESTS_TYPES_TABLE_H
#define TN_TESTS_TYPES_TABLE_H

#include <stdio.h>

#include <tenon/dtype.h>

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
    fputs("\n## Names\n\n", out);
    types_print_names(out);
    fputs("\n", out);
}

#endif
