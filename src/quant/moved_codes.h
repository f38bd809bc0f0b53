/* quant/moved_codes.h - codes of 4 bits that other tools have in another order. */
#ifndef TN_QUANT_MOVED_CODES_H
#define TN_QUANT_MOVED_CODES_H

#include <stddef.h>
#include <stdint.h>

/* Exchanges both codes of each byte. */
void tn_codes_swap(uint8_t *out, const uint8_t *in, size_t n);

/* n words of eight codes into eight packed rows: those in place r of all words into out[r]. */
void tn_codes_turn(uint8_t *const out[8], const uint32_t *words, size_t n);

/* The 16 values of a datatype of bitsandbytes, by how its text begins ("bnb:nf4_t"); NULL: it has none. */
const float *tn_lookup_table(const char *text);

#endif
