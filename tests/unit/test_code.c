/* The bits of an element: where they lie in bytes. */
#include "support.h"

#include "tensor/code.h"

static void codes_lie_in_bytes_from_the_least_significant_bit(void)
{
    static const unsigned widths[] = { 2, 4, 6, 8, 16, 32, 64 };
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
        for (size_t n = 0; n <= 17; n++) {
            unsigned bits = widths[w];
            uint64_t codes[17], mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
            size_t size = (n * bits + 7) / 8;
            uint8_t *data = malloc(size ? size : 1);
            assert_non_null(data);
            memset(data, 0xa5, size);
            for (size_t i = 0; i < n; i++)
                tn_code_put(data, i, bits, codes[i] = (n + 31 * i) * UINT64_C(0x9e3779b97f4a7c15) & mask);
            for (size_t i = 0; i < n; i++) {
                uint64_t code = 0;
                CHECK(tn_code_get(data, i, bits) == codes[i]);
                for (unsigned b = 0; b < bits; b++)
                    code |= (uint64_t)(data[(i * bits + b) / 8] >> (i * bits + b) % 8 & 1) << b;
                CHECK(code == codes[i]);
            }
            if (size)
                CHECK((data[size - 1] ^ 0xa5) >> (n * bits - (size - 1) * 8) == 0);  /* bits of nobody stay */
            free(data);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(codes_lie_in_bytes_from_the_least_significant_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
