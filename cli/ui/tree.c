/* cli/ui/tree.c - names with dots as a tree. */
#include "ui/tree.h"
#include "ui/table.h"
#include "ui/text.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 16 };          /* levels; the rest of a name is then one */

/* What is below a common beginning: tensors [from, to), from byte `begin` of their names on. */
typedef struct branch {
    size_t   from, to, begin;
    unsigned depth;
} branch;

static void name_cell(table *t, unsigned depth, const char *name, size_t n)
{
    char text[400];
    size_t indent = 2 * (size_t)depth;
    memset(text, ' ', indent);
    tn_escape(text + indent, sizeof text - indent, name, n);
    table_cell(t, text);
}

static void leaf(table *t, const tn_tensor *tensor, const branch *b)
{
    const char *name = tensor->name + b->begin;
    name_cell(t, b->depth, name, strlen(name));
    table_cell(t, tensor_type(tensor).s);
    table_cell(t, shape_of(tensor->rank, tensor->shape).s);
    table_cell(t, human_size(tensor_nbytes(tensor)).s);
}

static void node(table *t, const chosen *c, const branch *b, size_t end)
{
    uint64_t bytes = 0;
    for (size_t i = b->from; i < b->to; i++)
        bytes += tensor_nbytes(c->tensors[i]);
    name_cell(t, b->depth, c->tensors[b->from]->name + b->begin, end - b->begin);
    table_cell(t, counted(b->to - b->from, "tensor").s);
    table_cell(t, "");
    table_cell(t, human_size(bytes).s);
}

/* Where the part of a name that begins at `begin` ends: at a dot or the end. */
static size_t part_end(const char *name, size_t begin) { return begin + strcspn(name + begin, "."); }

/* Whether tensors [from, to) go on with the same part, and more behind it. */
static bool share_part(const chosen *c, size_t from, size_t to, size_t begin)
{
    const char *name = c->tensors[from]->name;
    size_t end = part_end(name, begin);
    for (size_t i = from; i < to; i++)
        if (strncmp(c->tensors[i]->name + begin, name + begin, end - begin + 1) != 0 ||
            c->tensors[i]->name[end] != '.')
            return false;
    return true;
}

static void out_branch(table *t, const chosen *c, branch b)
{
    for (size_t i = b.from, next; i < b.to; i = next) {
        size_t end = part_end(c->tensors[i]->name, b.begin);
        for (next = i + 1; next < b.to && share_part(c, i, i + 1, b.begin) &&
                           strncmp(c->tensors[next]->name, c->tensors[i]->name, end + 1) == 0;)
            next++;
        branch inner = { i, next, b.begin, b.depth };
        if (next - i == 1 || b.depth == DEEPEST) {
            for (size_t k = i; k < next; k++)
                leaf(t, c->tensors[k], &inner);
            continue;
        }
        while (share_part(c, i, next, end + 1))         /* one node for "model.layers" */
            end = part_end(c->tensors[i]->name, end + 1);
        node(t, c, &inner, end);
        out_branch(t, c, (branch){ i, next, end + 1, b.depth + 1 });
    }
}

void out_tree(chosen *c)
{
    static const char *const headings[] = { "name", "type", "shape", "size", NULL };
    table t;
    chosen_sort_names(c);
    table_begin(&t, headings, 1u << 3);
    out_branch(&t, c, (branch){ 0, c->count, 0, 0 });
    table_end(&t);
}
