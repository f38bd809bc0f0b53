/* kernels/scaled_decode/list.h - the loops of every level, one per kind of number
 * and width of codes.  The includer defines DECODE(name, kind, width) and finite_8. */
#define EACH_DECODER(X)                                                                                     \
    X(topped_8, TN_DECODE_TOPPED, 0)    X(topped_16, TN_DECODE_TOPPED, 1)                                   \
    X(topped_32, TN_DECODE_TOPPED, 2)                                                                       \
    X(float_8, TN_DECODE_FLOAT, 0)      X(float_16, TN_DECODE_FLOAT, 1)     X(float_32, TN_DECODE_FLOAT, 2) \
    X(int_8, TN_DECODE_INT, 0)          X(int_16, TN_DECODE_INT, 1)                                         \
    X(uint_8, TN_DECODE_UINT, 0)        X(uint_16, TN_DECODE_UINT, 1)                                       \
    X(shifted_8, TN_DECODE_SHIFTED, 0)  X(shifted_16, TN_DECODE_SHIFTED, 1)                                 \
    X(exponent_8, TN_DECODE_EXPONENT, 0) X(halved_8, TN_DECODE_HALVED, 0) X(codebook_8, TN_DECODE_CODEBOOK, 0)
EACH_DECODER(DECODE)

#define DECODER_ENTRY(name, kind, width) [kind][width] = name,
#define DECODERS { [TN_DECODE_FINITE][0] = finite_8, EACH_DECODER(DECODER_ENTRY) }
