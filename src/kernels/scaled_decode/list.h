/* kernels/scaled_decode/list.h - the loops of every level, one per kind of number
 * and width of codes.  The includer defines DECODE(name, kind, width) and finite_8. */
DECODE(topped_8, TN_DECODE_TOPPED, 0)
DECODE(topped_16, TN_DECODE_TOPPED, 1)
DECODE(topped_32, TN_DECODE_TOPPED, 2)
DECODE(float_8, TN_DECODE_FLOAT, 0)
DECODE(float_16, TN_DECODE_FLOAT, 1)
DECODE(float_32, TN_DECODE_FLOAT, 2)
DECODE(int_8, TN_DECODE_INT, 0)
DECODE(int_16, TN_DECODE_INT, 1)
DECODE(uint_8, TN_DECODE_UINT, 0)
DECODE(uint_16, TN_DECODE_UINT, 1)
DECODE(shifted_8, TN_DECODE_SHIFTED, 0)
DECODE(shifted_16, TN_DECODE_SHIFTED, 1)
DECODE(exponent_8, TN_DECODE_EXPONENT, 0)
DECODE(halved_8, TN_DECODE_HALVED, 0)
DECODE(codebook_8, TN_DECODE_CODEBOOK, 0)

#define DECODERS                                                                                    \
    {                                                                                               \
        [TN_DECODE_FINITE] = { finite_8 }, [TN_DECODE_TOPPED] = { topped_8, topped_16, topped_32 }, \
        [TN_DECODE_FLOAT] = { float_8, float_16, float_32 }, [TN_DECODE_INT] = { int_8, int_16 },   \
        [TN_DECODE_UINT] = { uint_8, uint_16 }, [TN_DECODE_SHIFTED] = { shifted_8, shifted_16 },    \
        [TN_DECODE_EXPONENT] = { exponent_8 }, [TN_DECODE_HALVED] = { halved_8 },                   \
        [TN_DECODE_CODEBOOK] = { codebook_8 },                                                      \
    }
