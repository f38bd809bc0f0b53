/* formats/foreign.c - files that are no container of this build: what they are, and what to do.
 *
 * One row each; a row goes when a format reads it. */
#include "base/text.h"
#include "formats/onnx/onnx.h"

#include <string.h>

typedef struct foreign {
    const char *magic;          /* NULL: `is` tells alone */
    size_t      length, at;
    bool      (*is)(const uint8_t *head, size_t n);     /* what else must hold, or NULL */
    const char *sentence;
} foreign;

/* ---- zip archives, by the name of their first member ---- */

static tn_text first_member(const uint8_t *head, size_t n)
{
    enum { NAME_LENGTH = 26, NAME = 30 };
    if (n < NAME)
        return (tn_text){ 0 };
    size_t length = (size_t)(head[NAME_LENGTH] | head[NAME_LENGTH + 1] << 8);
    return (tn_text){ (const char *)head + NAME, length < n - NAME ? length : n - NAME };
}

static bool is_export_zip(const uint8_t *head, size_t n)
{
    static const char *const inside[] = { "archive_format", "models/", "serialized_exported_program.json" };
    tn_text name = first_member(head, n);
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (name.len && memmem(name.ptr, name.len, inside[i], strlen(inside[i])))
            return true;
    return false;
}

static bool is_keras_zip(const uint8_t *head, size_t n)
{
    tn_text name = first_member(head, n);
    return tn_text_is(name, "metadata.json") || tn_text_is(name, "config.json") ||
           tn_text_is(name, "model.weights.h5");
}

/* ---- formats without a magic ---- */

/* A tensor by itself, as the tests of ONNX models have them: its type, and some data. */
static bool is_onnx_tensor(const uint8_t *head, size_t n)
{
    enum { DATA = 1 << TN_ONNX_TENSOR_FLOATS | 1 << TN_ONNX_TENSOR_INT32S | 1 << TN_ONNX_TENSOR_STRINGS |
                  1 << TN_ONNX_TENSOR_INT64S | 1 << TN_ONNX_TENSOR_RAW | 1 << TN_ONNX_TENSOR_DOUBLES |
                  1 << TN_ONNX_TENSOR_UINT64S };
    uint64_t seen = tn_onnx_look(&tn_onnx_tensor_kind, head, n).seen;
    return seen & 1 << TN_ONNX_TENSOR_TYPE && seen & DATA;
}

static bool has_word(const uint8_t *head, size_t n, const char *word)
{
    size_t m = strlen(word), i = 0;
    while (i < m && i < n && tn_lower((char)head[i]) == word[i])
        i++;
    return i == m;
}

static bool is_page(const uint8_t *head, size_t n)
{
    size_t i = n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < n && tn_is_space((char)head[i]))
        i++;
    return has_word(head + i, n - i, "<!doctype html") || has_word(head + i, n - i, "<html") ||
           has_word(head + i, n - i, "<?xml");
}

/* Behind a block of the user's own. */
static bool is_later_hdf5(const uint8_t *head, size_t n)
{
    for (size_t at = 512; at < n && n - at >= 8; at *= 2)
        if (memcmp(head + at, "\x89HDF\r\n\x1a\n", 8) == 0)
            return true;
    return false;
}

/* A protocol from 2 to 5 and then an opcode that begins an object. */
static bool is_pickle(const uint8_t *head, size_t n)
{
    return n > 2 && head[1] >= 2 && head[1] <= 5 && memchr("}](\x8a\x95" "c)l", head[2], 8);
}

#define HDF5 "an HDF5 file, which this version does not read: in Python, h5py reads its arrays and " \
             "safetensors.numpy.save_file() writes them (Keras: save each array of model.get_weights())"
#define MAGIC(text) text, sizeof text - 1

static const foreign table[] = {        /* the first that fits is taken */
    { MAGIC("PK\3\4"), 0, is_export_zip,
      "a program of torch.export (.pt2), which this version does not read: in Python, load it and save its "
      "state_dict with torch.save()" },
    { MAGIC("ustar"), 257, NULL,
      "a tar archive, as PyTorch before 0.1.10 wrote checkpoints, which is not read: load a checkpoint with "
      "torch.load() and save it again, and unpack any other archive" },
    { MAGIC("\x80"), 0, is_pickle,
      "a Python pickle, which can run code and is never read: load it in Python if you trust it, and save "
      "its arrays with numpy.savez()" },
    { MAGIC("PK\3\4"), 0, is_keras_zip,
      "a Keras model (zip), which this version does not read: in Python, save the arrays of "
      "model.get_weights() with numpy.savez()" },
    { MAGIC("PK\3\4"), 0, NULL,
      "a zip archive without NumPy arrays: unpack it and name the tensor file that was in it" },
    { MAGIC("\x89HDF\r\n\x1a\n"), 0, NULL, HDF5 },
    { NULL, 0, 0, is_later_hdf5, HDF5 },
    { MAGIC("TFL3"), 4, NULL,
      "a TensorFlow Lite model, which this version does not read: use the checkpoint it was made of" },
    { MAGIC("version https://git-lfs.github.com/spec/"), 0, NULL,
      "a Git LFS pointer, not the file itself: fetch the file with \"git lfs pull\"" },
    { MAGIC("\x1f\x8b"), 0, NULL, "a gzip file: unpack it first, as in \"gunzip FILE\"" },
    { MAGIC("\x28\xb5\x2f\xfd"), 0, NULL, "a zstd file: unpack it first, as in \"zstd -d FILE\"" },
    { NULL, 0, 0, is_page,
      "an HTML or XML page, not a model: the download failed or needs a login; fetch the file again" },
    { MAGIC("ORTM"), 4, NULL,
      "a model in the format of ONNX Runtime (.ort), which this version does not read: use the .onnx model "
      "it was made of" },
    { NULL, 0, 0, is_onnx_tensor,
      "an ONNX tensor by itself (TensorProto), not a model, which this version does not read: in Python, "
      "onnx.numpy_helper.to_array() gives its array" },
};

const char *tn_format_foreign(const uint8_t *head, size_t n)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const foreign *f = &table[i];
        bool magic = f->at <= n && f->length <= n - f->at && (!f->length ||
                     memcmp(head + f->at, f->magic, f->length) == 0);
        if (magic && (!f->is || f->is(head, n)))
            return f->sentence;
    }
    return NULL;
}
