/* formats/onnx/model.c - walks a model: its tensors, their names and their order.
 *
 * Fields come in any order, and names may follow what they name.  So a message is gone through more than
 * once: first for the names, then for what is inside.  What lies in another message is passed over by its
 * length, so every field is seen a few times and no more, however deep the graphs are nested. */
#include "formats/onnx/onnx.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 32 };

/* Nested graphs repeat the names of what they are in: names may take this many bytes more than the model. */
#define NAMES_MAX ((uint64_t)16 << 20)

enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_SPARSE = 15 };
static const tn_proto_rule graph_fields[] = {
    [GRAPH_NODE] = { "node", TN_PROTO_LENGTH, false },
    [2] = { "name", TN_PROTO_LENGTH, true },
    [GRAPH_INITIALIZER] = { "initializer", TN_PROTO_LENGTH, false },
    [10] = { "doc_string", TN_PROTO_LENGTH, true },
    [11] = { "input", TN_PROTO_LENGTH, false },
    [12] = { "output", TN_PROTO_LENGTH, false },
    [13] = { "value_info", TN_PROTO_LENGTH, false },
    [14] = { "quantization_annotation", TN_PROTO_LENGTH, false },
    [GRAPH_SPARSE] = { "sparse_initializer", TN_PROTO_LENGTH, false },
    [16] = { "metadata_props", TN_PROTO_LENGTH, false },
};
static const tn_proto_kind graph_kind = TN_PROTO_KIND("GraphProto", graph_fields);

enum { NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
static const tn_proto_rule node_fields[] = {
    [1] = { "input", TN_PROTO_LENGTH, false },
    [NODE_OUTPUT] = { "output", TN_PROTO_LENGTH, false },
    [NODE_NAME] = { "name", TN_PROTO_LENGTH, true },
    [NODE_OP] = { "op_type", TN_PROTO_LENGTH, true },
    [NODE_ATTRIBUTE] = { "attribute", TN_PROTO_LENGTH, false },
    [6] = { "doc_string", TN_PROTO_LENGTH, true },
    [NODE_DOMAIN] = { "domain", TN_PROTO_LENGTH, true },
    [8] = { "overload", TN_PROTO_LENGTH, true },
    [9] = { "metadata_props", TN_PROTO_LENGTH, false },
};
static const tn_proto_kind node_kind = TN_PROTO_KIND("NodeProto", node_fields);

enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_TENSOR = 5, ATTRIBUTE_GRAPH = 6, ATTRIBUTE_TENSORS = 10,
       ATTRIBUTE_GRAPHS = 11, ATTRIBUTE_SPARSE = 22 };
static const tn_proto_rule attribute_fields[] = {
    [ATTRIBUTE_NAME] = { "name", TN_PROTO_LENGTH, true },
    [4] = { "s", TN_PROTO_LENGTH, true },
    [ATTRIBUTE_TENSOR] = { "t", TN_PROTO_LENGTH, true },
    [ATTRIBUTE_GRAPH] = { "g", TN_PROTO_LENGTH, true },
    [ATTRIBUTE_TENSORS] = { "tensors", TN_PROTO_LENGTH, false },
    [ATTRIBUTE_GRAPHS] = { "graphs", TN_PROTO_LENGTH, false },
    [13] = { "doc_string", TN_PROTO_LENGTH, true },
    [20] = { "type", TN_PROTO_VARINT, true },
    [21] = { "ref_attr_name", TN_PROTO_LENGTH, true },
    [ATTRIBUTE_SPARSE] = { "sparse_tensor", TN_PROTO_LENGTH, true },
    [23] = { "sparse_tensors", TN_PROTO_LENGTH, false },
};
static const tn_proto_kind attribute_kind = TN_PROTO_KIND("AttributeProto", attribute_fields);

enum { FUNCTION_NAME = 1, FUNCTION_NODE = 7, FUNCTION_DOMAIN = 10 };
static const tn_proto_rule function_fields[] = {
    [FUNCTION_NAME] = { "name", TN_PROTO_LENGTH, true },
    [FUNCTION_NODE] = { "node", TN_PROTO_LENGTH, false },
    [8] = { "doc_string", TN_PROTO_LENGTH, true },
    [FUNCTION_DOMAIN] = { "domain", TN_PROTO_LENGTH, true },
    [13] = { "overload", TN_PROTO_LENGTH, true },
};
static const tn_proto_kind function_kind = TN_PROTO_KIND("FunctionProto", function_fields);

enum { SPARSE_VALUES = 1, SPARSE_INDICES = 2, SPARSE_DIMS = 3 };
static const tn_proto_rule sparse_fields[] = {
    [SPARSE_VALUES] = { "values", TN_PROTO_LENGTH, true },
    [SPARSE_INDICES] = { "indices", TN_PROTO_LENGTH, true },
    [SPARSE_DIMS] = { "dims", TN_PROTO_VARINTS, false },
};
static const tn_proto_kind sparse_kind = TN_PROTO_KIND("SparseTensorProto", sparse_fields);

/* A message that is walked, and those around it. */
typedef struct scope {
    struct scope *outer;        /* NULL: it is the model */
    tn_proto      message;      /* at its first field */
    uint64_t      length_at;
    bool          is_kept;      /* in model->messages */
    /* of graphs and functions: */
    const char   *prefix;       /* of the names of their tensors */
    unsigned      depth;        /* graphs around it */
} scope;

static scope enter(scope *outer, const tn_proto_field *f, const tn_proto_kind *kind)
{
    return (scope){ .outer = outer, .message = tn_proto_enter(&outer->message, f, kind),
                    .length_at = f->value_at, .prefix = outer->prefix, .depth = outer->depth };
}

static tn_status failed_nomem(const tn_onnx_model *m)
{
    return m->in->status = tn_fail_nomem(m->in->err);
}

/* ---- names ---- */

static tn_status count_name(tn_onnx_model *m, size_t n, uint64_t at)
{
    uint64_t most = NAMES_MAX + tn_source_size(m->source);
    m->name_bytes += n;
    if (m->name_bytes <= most)
        return TN_OK;
    return tn_proto_reject(m->in, TN_ERR_LIMIT, at,
                           "the names of tensors in nested graphs take more than the %" PRIu64
                           " bytes allowed", most);
}

const char *tn_onnx_name(tn_onnx_model *m, const char *prefix, const char *name, uint64_t at)
{
    size_t n = strlen(prefix);
    if (count_name(m, n + strlen(name), at))
        return NULL;
    const char *joined = n ? tn_arena_join(m->arena, prefix, n, name) : name;
    if (!joined)
        failed_nomem(m);
    return joined;
}

/* ---- the list ---- */

static tn_status keep_message(tn_onnx_model *m, const scope *s, size_t tensor)
{
    if (!TN_GROW(m->messages, m->nmessages, m->messages_cap))
        return failed_nomem(m);
    m->messages[m->nmessages++] = (tn_onnx_message){ s->length_at, s->message.pos, s->message.end, tensor };
    return TN_OK;
}

/* Appends a tensor and, for a graph that gets other data, the messages around it. */
static tn_status add_tensor(tn_onnx_model *m, const tn_onnx_tensor *t, scope *around,
                            const tn_proto_field *field)
{
    if (!TN_GROW(m->tensors, m->count, m->cap))
        return failed_nomem(m);
    m->tensors[m->count++] = *t;
    if (m->file)
        return TN_OK;
    scope own = enter(around, field, &tn_onnx_tensor_kind);
    TN_TRY(keep_message(m, &own, m->count - 1));
    for (scope *s = around; s->outer && !s->is_kept; s = s->outer) {
        TN_TRY(keep_message(m, s, SIZE_MAX));
        s->is_kept = true;
    }
    return TN_OK;
}

static tn_status list_tensor(tn_onnx_model *m, scope *around, const tn_proto_field *field, const char *name)
{
    tn_onnx_tensor t;
    TN_TRY(tn_onnx_read_tensor(m, &around->message, field, around->prefix, name, &t));
    return add_tensor(m, &t, around, field);
}

/* ---- sparse tensors ---- */

typedef struct sparse {
    tn_proto_field values, indices;
    tn_dims        dims;
    tn_onnx_tensor parts[2];
} sparse;

static tn_status take_dims(tn_onnx_model *m, const tn_proto *p, const tn_proto_field *f, tn_dims *dims)
{
    tn_proto all = tn_proto_enter(p, f, p->kind);
    uint64_t dim = f->value;
    bool packed = f->wire == TN_WIRE_LENGTH;
    while (packed ? tn_proto_packed(&all, TN_WIRE_VARINT, &dim) : !m->in->status) {
        tn_status status = tn_dims_add(dims, dim, m->in->err);
        if (status)
            m->in->status = tn_at_byte(status, f->at, m->in->err);
        if (!packed)
            break;
    }
    return m->in->status;
}

static tn_status read_sparse(tn_onnx_model *m, const scope *s, sparse *x)
{
    tn_proto p = s->message;
    tn_proto_field f;
    while (tn_proto_next(&p, &f)) {
        if (f.number == SPARSE_VALUES)
            x->values = f;
        else if (f.number == SPARSE_INDICES)
            x->indices = f;
        else if (f.number == SPARSE_DIMS)
            TN_TRY(take_dims(m, &p, &f, &x->dims));
    }
    if (!m->in->status && (!x->values.number || !x->indices.number))
        tn_proto_reject(m->in, TN_ERR_CORRUPT, s->length_at, "a sparse tensor has no %s",
                        x->values.number ? "indices" : "values");
    return m->in->status;
}

/* Whether the parts are those of a COO tensor.  Else they are listed as they are. */
static tn_status check_sparse(tn_onnx_model *m, const sparse *x, bool *coo)
{
    const tn_onnx_tensor *values = &x->parts[0], *indices = &x->parts[1];
    bool read = values->place != TN_ONNX_UNREAD && indices->place != TN_ONNX_UNREAD;
    bool linear = indices->rank == 1;
    *coo = read && !linear;
    if (!read)
        return TN_OK;
    if (values->rank != 1 || indices->rank < 1 || indices->rank > 2 || indices->dtype != TN_INT64 ||
        indices->shape[0] != values->shape[0] ||
        (*coo && indices->shape[1] != (int64_t)x->dims.rank))
        return tn_proto_reject(m->in, TN_ERR_CORRUPT, indices->at,
                               "expected values [n] and int64 indices [n, %u] or [n] but found %s %s and "
                               "%s %s", x->dims.rank, values->type,
                               tn_show_shape(values->rank, values->shape).text, indices->type,
                               tn_show_shape(indices->rank, indices->shape).text);
    if (linear && m->file)
        tn_file_warn(m->file, values->at, "tensor %s is sparse with linear indices: it is listed as values "
                     "and indices", tn_quote_z(values->name).text);
    return TN_OK;
}

/* `name` is NULL: that of the values. */
static tn_status list_sparse(tn_onnx_model *m, scope *around, const tn_proto_field *field, const char *name)
{
    sparse x = { .values.number = 0 };
    scope s = enter(around, field, &sparse_kind);
    bool coo;
    TN_TRY(read_sparse(m, &s, &x));
    TN_TRY(tn_onnx_read_tensor(m, &s.message, &x.values, s.prefix, name, &x.parts[0]));
    const char *indices = tn_arena_join(m->arena, x.parts[0].name, strlen(x.parts[0].name), ".indices");
    if (!indices || count_name(m, strlen(indices), field->at))
        return m->in->status ? m->in->status : failed_nomem(m);
    TN_TRY(tn_onnx_read_tensor(m, &s.message, &x.indices, "", indices, &x.parts[1]));
    TN_TRY(tn_in_tensor(check_sparse(m, &x, &coo), x.parts[0].name, m->in->err));
    if (coo && !(x.parts[0].sparse = tn_arena_copy(m->arena, &x.dims, sizeof x.dims)))
        return failed_nomem(m);
    x.parts[1].is_indices = coo;
    TN_TRY(add_tensor(m, &x.parts[0], &s, &x.values));
    return add_tensor(m, &x.parts[1], &s, &x.indices);
}

/* ---- nodes ---- */

static tn_status list_graph(tn_onnx_model *m, scope *graph);

typedef struct node {
    tn_proto_field name, output;
    uint64_t       index;       /* in its graph */
    bool           is_constant, has_attributes;
} node;

/* What names its tensors: NODE.ATTRIBUTE. or NODE.ATTRIBUTE.INDEX., after what names those of its graph. */
static const char *prefix_of(tn_onnx_model *m, const scope *attribute, const node *n,
                             const tn_proto_field *name, int64_t index)
{
    const tn_proto *p = &attribute->message;
    const char *own = name->number ? tn_proto_text(p, name, "attribute name", m->arena) : "";
    const char *of = n->name.value ? tn_proto_text(p, &n->name, "node name", m->arena)
                                   : tn_arena_printf(m->arena, "#%" PRIu64, n->index);
    char number[24] = "";
    if (m->in->status)
        return NULL;
    if (index >= 0)
        snprintf(number, sizeof number, "%" PRId64 ".", index);
    if (count_name(m, strlen(attribute->prefix) + n->name.value + name->value, name->at))
        return NULL;
    const char *prefix = NULL;
    if (of && own)
        prefix = tn_arena_printf(m->arena, "%s%s.%s.%s", attribute->prefix, of, own, number);
    if (!prefix)
        failed_nomem(m);
    return prefix;
}

static tn_status list_inner_graph(tn_onnx_model *m, scope *attribute, const node *n,
                                  const tn_proto_field *name, const tn_proto_field *field, int64_t index)
{
    scope graph = enter(attribute, field, &graph_kind);
    graph.prefix = prefix_of(m, attribute, n, name, index);
    graph.depth++;
    return m->in->status ? m->in->status : list_graph(m, &graph);
}

/* Tensors that are not listed keep their bytes: those in other files would be lost. */
static tn_status look_for_external(tn_onnx_model *m, const scope *attribute, const tn_proto_field *field)
{
    tn_proto p = tn_proto_enter(&attribute->message, field, &tn_onnx_tensor_kind);
    tn_proto_field f;
    while (!m->file && tn_proto_next(&p, &f))
        if (f.number == TN_ONNX_TENSOR_LOCATION && f.value && !m->others_external)
            m->others_external = field->at;
    return m->in->status;
}

static tn_status list_constant(tn_onnx_model *m, scope *attribute, const node *n, const tn_proto_field *field)
{
    const char *name = "";
    if (n->output.number)
        name = tn_proto_text(&attribute->message, &n->output, "output name", m->arena);
    if (m->in->status)
        return m->in->status;
    return field->number == ATTRIBUTE_TENSOR ? list_tensor(m, attribute, field, name)
                                             : list_sparse(m, attribute, field, name);
}

static tn_status list_attribute(tn_onnx_model *m, scope *around, const node *n, const tn_proto_field *field)
{
    scope s = enter(around, field, &attribute_kind);
    tn_proto p = s.message;
    tn_proto_field f, name = { 0 };
    int64_t index = 0;
    while (tn_proto_next(&p, &f))
        if (f.number == ATTRIBUTE_NAME)
            name = f;
    bool value = n->is_constant && name.number && tn_proto_is(&p, &name, "value");
    bool sparse_value = n->is_constant && name.number && tn_proto_is(&p, &name, "sparse_value");
    p = s.message;
    while (tn_proto_next(&p, &f)) {
        if ((value && f.number == ATTRIBUTE_TENSOR) || (sparse_value && f.number == ATTRIBUTE_SPARSE))
            TN_TRY(list_constant(m, &s, n, &f));
        else if (f.number == ATTRIBUTE_TENSOR || f.number == ATTRIBUTE_TENSORS)
            TN_TRY(look_for_external(m, &s, &f));
        else if (f.number == ATTRIBUTE_GRAPH)
            TN_TRY(list_inner_graph(m, &s, n, &name, &f, -1));
        else if (f.number == ATTRIBUTE_GRAPHS)
            TN_TRY(list_inner_graph(m, &s, n, &name, &f, index++));
    }
    return m->in->status;
}

static tn_status read_node(tn_onnx_model *m, const scope *s, node *n)
{
    tn_proto p = s->message;
    tn_proto_field f;
    bool constant = false, own_domain = false;
    while (tn_proto_next(&p, &f)) {
        if (f.number == NODE_NAME)
            n->name = f;
        else if (f.number == NODE_OUTPUT && !n->output.number)
            n->output = f;
        else if (f.number == NODE_OP)
            constant = tn_proto_is(&p, &f, "Constant");
        else if (f.number == NODE_DOMAIN)
            own_domain = f.value && !tn_proto_is(&p, &f, "ai.onnx");
        n->has_attributes |= f.number == NODE_ATTRIBUTE;
    }
    n->is_constant = constant && !own_domain;
    return m->in->status;
}

static tn_status list_node(tn_onnx_model *m, scope *around, const tn_proto_field *field, uint64_t index)
{
    scope s = enter(around, field, &node_kind);
    node n = { .index = index };
    tn_proto_field f;
    TN_TRY(read_node(m, &s, &n));
    tn_proto p = s.message;
    while (n.has_attributes && tn_proto_next(&p, &f))
        if (f.number == NODE_ATTRIBUTE)
            TN_TRY(list_attribute(m, &s, &n, &f));
    return m->in->status;
}

/* ---- graphs and functions ---- */

/* Goes through the fields from `first` on for those of this number. */
static tn_status list_fields(tn_onnx_model *m, scope *s, const tn_proto *from, uint32_t number)
{
    tn_proto p = *from;
    tn_proto_field f;
    uint64_t index = 0;
    while (tn_proto_next(&p, &f)) {
        if (f.number != number)
            continue;
        if (number == GRAPH_SPARSE)
            TN_TRY(list_sparse(m, s, &f, NULL));
        else
            TN_TRY(list_node(m, s, &f, index++));
    }
    return m->in->status;
}

/* The fields of nodes are next to each other in nearly all models: only these are gone through again. */
static tn_status list_graph(tn_onnx_model *m, scope *graph)
{
    tn_proto p = graph->message, nodes = p, sparses = p;
    tn_proto_field f;
    if (graph->depth >= MAX_DEPTH)
        return tn_proto_reject(m->in, TN_ERR_LIMIT, p.pos, "expected graphs nested at most %d deep but found "
                               "more", MAX_DEPTH);
    nodes.end = sparses.end = p.pos;
    while (tn_proto_next(&p, &f)) {
        tn_proto *other = f.number == GRAPH_NODE ? &nodes : &sparses;
        if (f.number == GRAPH_INITIALIZER)
            TN_TRY(list_tensor(m, graph, &f, NULL));
        if (f.number != GRAPH_NODE && f.number != GRAPH_SPARSE)
            continue;
        if (other->end == graph->message.pos)
            other->pos = f.at;
        other->end = p.pos;
    }
    TN_TRY(m->in->status);
    TN_TRY(list_fields(m, graph, &sparses, GRAPH_SPARSE));
    return list_fields(m, graph, &nodes, GRAPH_NODE);
}

static tn_status list_function(tn_onnx_model *m, scope *model, const tn_proto_field *field)
{
    scope s = enter(model, field, &function_kind);
    tn_proto p = s.message;
    tn_proto_field f;
    const char *name = "", *domain = "";
    while (tn_proto_next(&p, &f)) {
        if (f.number == FUNCTION_NAME)
            name = tn_proto_text(&p, &f, "function name", m->arena);
        else if (f.number == FUNCTION_DOMAIN)
            domain = tn_proto_text(&p, &f, "function domain", m->arena);
    }
    TN_TRY(m->in->status);
    TN_TRY(count_name(m, strlen(domain) + strlen(name), field->at));
    s.prefix = tn_arena_printf(m->arena, "%s.%s.", domain, name);
    return s.prefix ? list_fields(m, &s, &s.message, FUNCTION_NODE) : failed_nomem(m);
}

static tn_status walk(tn_onnx_model *m)
{
    scope model = { .message = tn_proto_open(m->in, &tn_onnx_model_kind), .prefix = "", .is_kept = true };
    tn_proto p = model.message;
    tn_proto_field f, graph = { 0 };
    uint64_t training = 0;
    bool functions = false;
    while (tn_proto_next(&p, &f)) {
        if (f.number == TN_ONNX_MODEL_GRAPH)
            graph = f;
        functions |= f.number == TN_ONNX_MODEL_FUNCTIONS;
        if (f.number == TN_ONNX_MODEL_TRAINING_INFO && m->file && training++ == 0)
            tn_file_warn(m->file, f.at, "it has training information, which is not read");
    }
    if (!m->in->status && !graph.number)
        tn_proto_reject(m->in, TN_ERR_CORRUPT, 0, "the model has no graph");
    TN_TRY(m->in->status);
    scope main = enter(&model, &graph, &graph_kind);
    TN_TRY(list_graph(m, &main));
    p = model.message;
    while (functions && tn_proto_next(&p, &f))
        if (f.number == TN_ONNX_MODEL_FUNCTIONS)
            TN_TRY(list_function(m, &model, &f));
    return m->in->status;
}

tn_status tn_onnx_walk(tn_onnx_model *m, tn_error *err)
{
    m->in = calloc(1, sizeof *m->in);
    TN_NEED(m->in, err);
    m->in->source = m->source;
    m->in->err = err;
    TN_TRY(tn_onnx_read_meta(m, err));
    return walk(m);
}

void tn_onnx_free(tn_onnx_model *m)
{
    free(m->in);
    free(m->tensors);
    free(m->messages);
    free(m->meta);
}
