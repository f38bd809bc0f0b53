/* reorder/layout_interleave.c - few channels: images between planes and pixels,
 * pixels that gain or lose a channel.
 *
 * A step moves whole vectors with all channels of some positions.  The source of
 * each byte of the output is the same in every step, so it is computed once. */
#include <string.h>

#include "reorder/layout_plan.h"

/* One side: its channels are adjacent, or each has a plane. */
typedef struct side {
    bool    together;
    int64_t channels;           /* that are adjacent, with those that are not moved */
} side;

typedef struct channel_sides {
    const tn_reorder_axis *positions, *channels;
    side dst, src;
} channel_sides;

static bool make_side(side *s, int64_t position_stride, int64_t channel_stride, int64_t channels)
{
    s->together = channel_stride == 1;
    s->channels = s->together ? position_stride : channels;
    return (s->together || position_stride == 1) && s->channels >= channels &&
        s->channels <= TN_INTERLEAVE_MOST;
}

static bool find_channels(channel_sides *w, const tn_reorder_plan *p)
{
    const tn_reorder_axis *last = &p->dims[p->rank - 1], *other = last - 1;
    bool is_last = last->extent <= TN_INTERLEAVE_MOST && last->src != 1;
    is_last = is_last || other->extent > TN_INTERLEAVE_MOST;
    w->channels = is_last ? last : other;
    w->positions = is_last ? other : last;
    return make_side(&w->dst, w->positions->dst, w->channels->dst, w->channels->extent) &&
           make_side(&w->src, w->positions->src, w->channels->src, w->channels->copy) &&
           (w->dst.together || w->src.together) &&
           (!w->dst.together || w->dst.channels == w->channels->extent);
}

/* Sets the source of byte `at` of output vector `o`. */
static void set_byte(tn_interleave *t, const channel_sides *w, unsigned o, unsigned at,
                     const tn_reorder_plan *p)
{
    unsigned size = (unsigned)p->size, width = p->kernels->interleave_width;
    unsigned byte = w->dst.together ? o * width + at : at, element = byte / size;
    unsigned position = element, channel = o;
    if (w->dst.together) {
        position = element / (unsigned)w->dst.channels;
        channel = element % (unsigned)w->dst.channels;
    }
    unsigned from = position * size + byte % size, vector = channel;
    if (w->src.together) {
        from = (position * (unsigned)w->src.channels + channel) * size + byte % size;
        vector = from / width;
    }
    bool copied = channel < (unsigned)w->channels->copy;
    if (copied)
        t->from[o][vector][at] = (uint8_t)(from % width);
    else
        t->fill[o][at] = p->fill[byte % size];
}

bool tn_plan_interleave(tn_reorder_plan *p)
{
    channel_sides w;
    tn_interleave *t = &p->interleave;
    unsigned width = p->kernels->interleave_width;
    if (p->rank < 2 || !p->kernels->interleave || !find_channels(&w, p) ||
        w.positions->copy * (int64_t)p->size < 4 * width)
        return false;
    t->in = (unsigned)(w.src.together ? w.src.channels : w.channels->copy);
    t->out = (unsigned)(w.dst.together ? w.dst.channels : w.channels->copy);
    t->in_gap = w.src.together ? width : (ptrdiff_t)(w.channels->src * (int64_t)p->size);
    t->out_gap = w.dst.together ? width : (ptrdiff_t)(w.channels->dst * (int64_t)p->size);
    t->in_step = width * (w.src.together ? t->in : 1);
    t->out_step = width * (w.dst.together ? t->out : 1);
    memset(t->from, TN_INTERLEAVE_NONE, sizeof t->from);
    memset(t->fill, 0, sizeof t->fill);
    for (unsigned o = 0; o < t->out; o++)
        for (unsigned at = 0; at < width; at++)
            set_byte(t, &w, o, at, p);
    return true;
}

/* Positions one by one. */
static void move_positions(const tn_reorder_plan *p, const channel_sides *w, int64_t dst, int64_t src,
                           int64_t n)
{
    size_t size = p->size;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < w->channels->copy; c++)
            memcpy(p->dst + (dst + i * w->positions->dst + c * w->channels->dst) * (int64_t)size,
                   p->src + (src + i * w->positions->src + c * w->channels->src) * (int64_t)size, size);
    if (w->dst.together && w->channels->copy < w->channels->extent)
        for (int64_t i = 0; i < n; i++)
            tn_reorder_fill(p, dst + i * w->positions->dst + w->channels->copy,
                            w->channels->extent - w->channels->copy);
}

/* Positions before the first whole line of dst; -1: there is none. */
static int64_t positions_before(const tn_reorder_plan *p, const channel_sides *w, int64_t dst)
{
    uintptr_t at = (uintptr_t)p->dst + (uintptr_t)dst * p->size;
    uintptr_t step = (uintptr_t)w->positions->dst * p->size;
    if (!w->dst.together && (size_t)w->channels->dst * p->size % TN_LINE)
        return -1;
    for (unsigned i = 0; i < TN_LINE; i++)
        if ((at + i * step) % TN_LINE == 0)
            return i;
    return -1;
}

void tn_inner_interleaved(const tn_reorder_plan *p, int64_t dst, int64_t src)
{
    channel_sides w;
    find_channels(&w, p);
    const tn_reorder_axis *along = w.positions, *channels = w.channels;
    int64_t size = (int64_t)p->size, a_step = p->kernels->interleave_width / size;
    int64_t head = p->stream && !p->kernels->interleave_ordinary ? positions_before(p, &w, dst) : -1;
    int64_t first = head > 0 ? head : 0;
    /* After the last position the channels that are not moved may be missing. */
    int64_t spare = w.src.together && w.src.channels > channels->copy ? 1 : 0;
    int64_t steps = (along->copy - first - spare) / a_step, rest = first + steps * a_step;
    move_positions(p, &w, dst, src, first);
    p->kernels->interleave(p->dst + (dst + first * along->dst) * size,
                           p->src + (src + first * along->src) * size, (size_t)steps, &p->interleave,
                           head >= 0);
    move_positions(p, &w, dst + rest * along->dst, src + rest * along->src, along->copy - rest);
    if (w.dst.together && along->copy < along->extent)
        tn_reorder_fill(p, dst + along->copy * along->dst, (along->extent - along->copy) * along->dst);
    for (int64_t c = 0; c < channels->extent && !w.dst.together; c++)
        if (c >= channels->copy)
            tn_reorder_fill(p, dst + c * channels->dst, along->extent);
        else if (along->copy < along->extent)
            tn_reorder_fill(p, dst + c * channels->dst + along->copy, along->extent - along->copy);
}
