/* bytes/remote/blocks.h - which bytes of a remote object are here, are coming, and will be asked for.
 *
 * An object is fetched in blocks.  What callers announce is cut into blocks of at most 8 MiB, neighbours
 * merged, and fetched ahead in the order of use, several at a time.  Such a block is given back when its
 * bytes were read.  What nobody announced is fetched when it is read: 64 KiB at first, twice as much
 * whenever reading goes on where such a block ended.  These blocks stay for a while, because indexes are
 * read back and forth.  Memory is bounded for all objects together.
 *
 * All functions are called under the lock of bytes/remote/exchange.h. */
#ifndef TN_BYTES_REMOTE_BLOCKS_H
#define TN_BYTES_REMOTE_BLOCKS_H

#include "bytes/source.h"

#define TN_BLOCK_BYTES  ((uint64_t)8 << 20)     /* of a block that was announced */
#define TN_BLOCK_FIRST  ((uint64_t)64 << 10)    /* of one that was not, at first */
#define TN_BLOCK_GAP    ((uint64_t)256 << 10)   /* ranges nearer than this are fetched as one */
#define TN_BLOCKS_KEPT  ((uint64_t)32 << 20)    /* bytes of blocks that stay for a while */

typedef enum tn_block_state {
    TN_BLOCK_PLANNED, TN_BLOCK_LOADING, TN_BLOCK_READY, TN_BLOCK_FAILED
} tn_block_state;

typedef struct tn_remote_block {
    struct tn_remote_blocks *of;
    uint64_t       begin, end;
    uint64_t       need, taken;     /* bytes to be read before it is given back, and those that were */
    uint8_t       *bytes;           /* owned */
    void          *loading;         /* whoever fetches it keeps its own here, also of one that failed */
    unsigned       round;           /* of announcements, when it was planned */
    tn_block_state state;
    unsigned       users;           /* who wait for it or copy from it */
    bool           is_kept;         /* nobody announced it */
    bool           ends;            /* it is removed when nobody uses it */
    struct tn_remote_block *before, *after;     /* in the order of use */
    struct tn_remote_block *older, *newer;      /* among those that are ready */
} tn_remote_block;

/* The blocks of one object.  Set `size`, `start` and `forget`, zero the rest. */
typedef struct tn_remote_blocks {
    uint64_t size;
    /* Begins to fetch a block, whose end calls tn_block_loaded(); false: no memory. */
    bool   (*start)(tn_remote_block *block);
    void   (*forget)(tn_remote_block *block);   /* frees what is in `loading` */
    tn_remote_block **list;         /* by place; none overlap */
    size_t   count, cap;
    tn_remote_block *first, *last;  /* in the order of use */
    struct { uint64_t end, size; } runs[4];     /* where the last blocks ended that nobody announced */
    unsigned next_run, round;
    struct tn_remote_blocks *following;         /* the object that was announced after this one */
    bool     is_listed;             /* among those that were announced */
} tn_remote_blocks;

/* These ranges will be read, each byte once, about in this order.  false: no memory; nothing is lost. */
bool tn_blocks_expect(tn_remote_blocks *blocks, const tn_range *ranges, size_t n);

/* The block that has byte `offset`, of n bytes that are wanted; it is loaded or on its way.  Counts the
 * caller as a user.  NULL: no memory. */
tn_remote_block *tn_blocks_want(tn_remote_blocks *blocks, uint64_t offset, uint64_t n);

/* A block that is ready or has failed was used: n bytes were read. */
void tn_block_used(tn_remote_block *block, uint64_t n);

/* A block was fetched, or could not be. */
void tn_block_loaded(tn_remote_block *block, bool good);

/* Memory for the bytes of a block.  What large blocks leave is used again: fresh pages would take the kernel
 * as long as the transfer.  The second gives all of it back. */
uint8_t *tn_block_room(uint64_t n);
void     tn_blocks_drop_room(void);

/* Puts a block that is complete into an object that has none. */
bool tn_blocks_put(tn_remote_blocks *blocks, uint8_t *bytes, uint64_t size);

/* Frees all blocks, none of which is loading or used. */
void tn_blocks_free(tn_remote_blocks *blocks);

/* In a process that has forked: the blocks of all objects are the parent's. */
void tn_blocks_forget_all(void);

#endif
