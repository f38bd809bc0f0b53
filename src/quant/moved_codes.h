/* quant/moved_codes.h - codes that other tools have in another order. */
#ifndef TN_QUANT_MOVED_CODES_H
#define TN_QUANT_MOVED_CODES_H

#include <stddef.h>
#include <stdint.h>

/* Exchanges both codes of each byte. */
void tn_codes_swap(uint8_t *out, const uint8_t *in, size_t n);

/* n words of eight codes into eight packed rows: those in place r of all words into out[r]. */
void tn_codes_turn(uint8_t *const out[8], const uint32_t *words, size_t n);

/* A matrix of elements of 1, 2, 4 or 8 bytes with its dimensions exchanged: rows of `in`, `in_step` bytes
 * apart, become columns of `out`. */
typedef struct tn_turned {
    size_t size, rows, columns, in_step, out_step;
} tn_turned;
void tn_matrix_turn(uint8_t *out, const uint8_t *in, const tn_turned *matrix);

/* The 16 values of a datatype of bitsandbytes, by how its text begins ("bnb:nf4_t"); NULL: it has none. */
const float *tn_lookup_table(const char *text);

#endif
