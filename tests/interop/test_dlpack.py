"""test_dlpack.py TOOL: Tenon, NumPy and (where it is installed) PyTorch look at one another's memory, through DLPack.

libtenon.so, beside TOOL, is called through ctypes; the capsules that Python's libraries exchange are made here."""
import ctypes as c
import gc
import pathlib
import sys
import weakref

import numpy as np

import each

try:
    import torch
except ImportError:
    torch = None

MAX_RANK = 64
READ_ONLY = 8                   # TN_MEM_READ_ONLY
UNSUPPORTED = 12                # TN_ERR_UNSUPPORTED
NAME, USED = b"dltensor_versioned", b"used_dltensor_versioned"      # for as long as any capsule


class Array(c.Structure):
    _fields_ = [("dtype", c.c_int), ("rank", c.c_uint32), ("shape", c.POINTER(c.c_int64)), ("stride", c.POINTER(c.c_int64))]


class Foreign(c.Structure):
    """tn_dlpack_array"""
    _fields_ = [("array", Array), ("data", c.c_void_p), ("buffer", c.c_void_p),
                ("shape", c.c_int64 * MAX_RANK), ("stride", c.c_int64 * MAX_RANK)]


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("reason", c.c_int), ("offset", c.c_uint64), ("file", c.c_char * 256),
                ("tensor", c.c_char * 128), ("value", c.c_char * 64), ("text", c.c_char * 480)]


class Managed(c.Structure):
    """The beginning of DLManagedTensorVersioned."""
    _fields_ = [("version", c.c_uint32 * 2), ("context", c.c_void_p), ("deleter", c.CFUNCTYPE(None, c.c_void_p)),
                ("flags", c.c_uint64)]


Release = c.CFUNCTYPE(None, c.c_void_p)
Destructor = c.PYFUNCTYPE(None, c.c_void_p)

tenon = c.CDLL(str(pathlib.Path(sys.argv[1]).resolve().parent / "libtenon.so"))
tenon.tn_dtype_parse.argtypes = [c.c_char_p]
tenon.tn_buffer_new.argtypes = [c.c_uint64, c.c_void_p, c.POINTER(c.c_void_p), c.POINTER(Error)]
tenon.tn_buffer_wrap.argtypes = [c.c_void_p, c.c_uint64, c.c_bool, Release, c.c_void_p, c.POINTER(c.c_void_p), c.POINTER(Error)]
tenon.tn_buffer_unref.argtypes = tenon.tn_buffer_data.argtypes = tenon.tn_buffer_size.argtypes = [c.c_void_p]
tenon.tn_buffer_flags.argtypes = [c.c_void_p]
tenon.tn_buffer_unref.restype = None
tenon.tn_buffer_data.restype = c.c_void_p
tenon.tn_buffer_size.restype = c.c_uint64
tenon.tn_dlpack_export.argtypes = [c.POINTER(Array), c.c_void_p, c.c_uint64, c.POINTER(c.c_void_p), c.POINTER(Error)]
tenon.tn_dlpack_import.argtypes = [c.c_void_p, c.POINTER(Foreign), c.POINTER(Error)]

api = c.pythonapi
api.PyCapsule_New.restype = c.py_object
api.PyCapsule_New.argtypes = [c.c_void_p, c.c_char_p, Destructor]
api.PyCapsule_IsValid.argtypes = [c.c_void_p, c.c_char_p]
pointer_of_dying = c.PYFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(("PyCapsule_GetPointer", api))
api.PyCapsule_GetPointer.restype = c.c_void_p
api.PyCapsule_GetPointer.argtypes = [c.py_object, c.c_char_p]
api.PyCapsule_SetName.argtypes = [c.py_object, c.c_char_p]


# ---- Tenon's arrays, given to others ----

@Destructor
def destroy_capsule(capsule):
    """Of a capsule that nobody has taken the contents of."""
    if api.PyCapsule_IsValid(capsule, NAME):
        managed = pointer_of_dying(capsule, NAME)
        Managed.from_address(managed).deleter(managed)


def extents(numbers):
    return (c.c_int64 * len(numbers))(*numbers)


class Memory:
    """A buffer of Tenon's around bytes of Python's, that counts its releases."""
    kept = []                   # Tenon has their addresses: until all is over

    def __init__(self, data, read_only=False):
        self.data = (c.c_uint8 * max(len(data), 1)).from_buffer_copy(data or b"\0")
        self.released = 0
        self.kept.append(self)
        self.callback = Release(self.release)
        self.buffer = c.c_void_p()
        assert tenon.tn_buffer_wrap(c.addressof(self.data), len(data), read_only, self.callback, None, self.buffer, None) == 0

    def release(self, _):
        self.released += 1

    def unref(self):
        tenon.tn_buffer_unref(self.buffer)


class Shared:
    """What numpy.from_dlpack() takes: an array in a buffer of Tenon's."""

    def __init__(self, buffer, dtype, shape, stride=None, offset=0):
        self.array = Array(tenon.tn_dtype_parse(dtype.encode()), len(shape), extents(shape), extents(stride) if stride else None)
        self.buffer, self.offset = buffer, offset
        self.capsules = []      # not destroyed while the consumer's exception is on its way

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        assert stream is None and max_version >= (1, 0) and dl_device in (None, (1, 0)) and not copy
        managed, error = c.c_void_p(), Error()
        if tenon.tn_dlpack_export(self.array, self.buffer, self.offset, managed, error):
            raise BufferError(error.text.decode())
        self.capsules.append(api.PyCapsule_New(managed, NAME, destroy_capsule))
        return self.capsules[-1]

    def __dlpack_device__(self):
        return 1, 0


def raises(kind, function):
    try:
        function()
    except kind as problem:
        return str(problem) or "no reason"
    return None


TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128"]


def sample(dtype, shape):
    """Small numbers, all different where there is room."""
    return (np.arange(np.prod(shape, dtype=int)) % (2 if dtype == "bool" else 100)).astype(dtype).reshape(shape)


def numpy_reads_every_type_that_it_has(folder):
    for dtype in TYPES:
        expected = sample(dtype, (3, 5))
        memory = Memory(expected.tobytes())
        array = np.from_dlpack(Shared(memory.buffer, dtype, (3, 5)))
        assert array.dtype == expected.dtype and array.ctypes.data == c.addressof(memory.data), dtype
        assert np.array_equal(array, expected) and array.flags.c_contiguous, dtype
        memory.unref()


def both_write_the_same_memory(folder):
    buffer = c.c_void_p()
    assert tenon.tn_buffer_new(24, None, buffer, None) == 0
    array = np.from_dlpack(Shared(buffer, "float32", (2, 3)))
    other = np.from_dlpack(Shared(buffer, "float32", (3, 2), (1, 3)))
    assert array.flags.writeable and not array.any()
    seen = (c.c_float * 6).from_address(tenon.tn_buffer_data(buffer))
    seen[4] = 7
    assert array[1, 1] == 7 and other[1, 1] == 7
    array[0, 2] = 5
    assert seen[2] == 5 and other[2, 0] == 5
    tenon.tn_buffer_unref(buffer)       # the arrays have their own references
    other[:] = 1
    assert array.sum() == 6


def read_only_memory_cannot_be_written(folder):
    memory = Memory(bytes(8), read_only=True)
    array = np.from_dlpack(Shared(memory.buffer, "uint8", (8,)))
    assert not array.flags.writeable and raises(ValueError, lambda: array.fill(1))
    memory.unref()


def views_are_the_same_for_numpy(folder):
    whole = sample("int32", (4, 6))
    memory = Memory(whole.tobytes())
    wanted = [whole.T, whole[::-1], whole[:, ::-1], whole[::2, 1::3], whole[1], whole[2:3, 3].reshape(()), whole[:, :0], whole[3:, 5:],
              np.broadcast_to(whole[1], (3, 6)), whole[:, None, :]]
    for view in wanted:
        offset = view.ctypes.data - whole.ctypes.data
        stride = [step // 4 for step in view.strides]
        array = np.from_dlpack(Shared(memory.buffer, "int32", view.shape, stride, offset))
        assert array.shape == view.shape and np.array_equal(array, view)
        assert view.size == 0 or array.ctypes.data == c.addressof(memory.data) + offset
        assert all(a == b for a, b, n in zip(array.strides, view.strides, view.shape) if n > 1 and view.size)
    memory.unref()


def memory_is_released_when_the_last_array_goes(folder):
    memory = Memory(bytes(64))
    array = np.from_dlpack(Shared(memory.buffer, "float64", (8,)))
    memory.unref()
    part = array[2:4]
    del array
    gc.collect()
    assert memory.released == 0
    part[:] = 3
    del part
    gc.collect()
    assert memory.released == 1


def a_capsule_that_nobody_takes_releases_memory(folder):
    memory = Memory(bytes(64))
    capsule = Shared(memory.buffer, "float64", (8,)).__dlpack__(max_version=(1, 2))
    memory.unref()
    assert memory.released == 0
    del capsule
    assert memory.released == 1


def types_that_numpy_lacks_are_refused_by_it_and_memory_is_released(folder):
    for dtype in ["bfloat16", "float8_e4m3fn", "float6_e2m3", "float4_e2m1", "int4", "uint2"]:
        memory = Memory(bytes(64))
        shared = Shared(memory.buffer, dtype, (8,))
        assert raises((BufferError, RuntimeError, TypeError), lambda: np.from_dlpack(shared)), dtype
        memory.unref()
        assert memory.released == 0, dtype
        del shared
        gc.collect()
        assert memory.released == 1, dtype


def what_dlpack_has_no_name_for_is_refused(folder):
    memory = Memory(bytes(64))
    for dtype in ["tf32", "fx8"]:
        assert dtype in raises(BufferError, lambda: np.from_dlpack(Shared(memory.buffer, dtype, (8,))))
    assert "the buffer has 64 bytes" in raises(BufferError, lambda: np.from_dlpack(Shared(memory.buffer, "int8", (65,))))
    memory.unref()
    assert memory.released == 1


# ---- arrays of others, given to Tenon ----

def take(producer, code=None):
    """The array as Tenon has it; or its status and reason, with the capsule as it was.  `code`: of another type than it has."""
    capsule = producer.__dlpack__(max_version=(1, 2))
    managed = api.PyCapsule_GetPointer(capsule, NAME)
    if code is not None:
        c.c_uint8.from_address(managed + 52).value = code
    foreign, error = Foreign(), Error()
    status = tenon.tn_dlpack_import(managed, foreign, error)
    if status:
        return status, error.text.decode()
    api.PyCapsule_SetName(capsule, USED)
    return foreign


def span(array):
    """The bytes that an ndarray's elements are in."""
    return np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)


def check_taken(array, foreign):
    rank = foreign.array.rank
    assert foreign.array.dtype == tenon.tn_dtype_parse(array.dtype.name.encode())
    assert tuple(foreign.shape[:rank]) == array.shape
    assert all(a * array.itemsize == b for a, b, n in zip(foreign.stride[:rank], array.strides, array.shape) if n > 1 and array.size)
    assert bool(foreign.array.stride) == (not array.flags.c_contiguous)
    low, high = span(array)
    assert foreign.data == (array.ctypes.data if array.size else None)
    assert tenon.tn_buffer_size(foreign.buffer) == high - low and (tenon.tn_buffer_data(foreign.buffer) or 0) == low
    assert tenon.tn_buffer_flags(foreign.buffer) == (0 if array.flags.writeable else READ_ONLY)


def arrays_of_numpy_are_taken_as_they_lie(folder):
    for dtype in TYPES:
        whole = sample(dtype, (4, 6))
        fixed = whole.copy()
        fixed.flags.writeable = False
        for array in [whole, whole.T, whole[::-1, ::2], whole[1:3, 4:1:-1], whole[2], whole[0, :0], fixed, np.asfortranarray(whole),
                      np.array(7).astype(dtype), whole[:, None]]:
            foreign = take(array)
            check_taken(array, foreign)
            tenon.tn_buffer_unref(foreign.buffer)


def both_see_what_the_other_writes(folder):
    array = np.zeros((2, 3), np.float32)
    foreign = take(array[::-1])
    seen = (c.c_float * 6).from_address(tenon.tn_buffer_data(foreign.buffer))
    array[1, 0] = 4
    assert seen[3] == 4 and c.c_float.from_address(foreign.data).value == 4
    seen[0] = 9
    assert array[0, 0] == 9
    tenon.tn_buffer_unref(foreign.buffer)


class Watched(np.ndarray):
    """Can be watched by a weak reference."""


def an_array_lives_as_long_as_tenon_has_it(folder):
    array = np.ones(5).view(Watched)
    gone = weakref.ref(array)
    foreign = take(array)
    del array
    gc.collect()
    assert gone() is not None
    tenon.tn_buffer_unref(foreign.buffer)
    gc.collect()
    assert gone() is None


def an_array_that_is_refused_stays_its_owners(folder):
    array = np.ones(5).view(Watched)
    gone = weakref.ref(array)
    status, reason = take(array, code=3)
    assert status == UNSUPPORTED and "code 3 with 64 bits" in reason
    del array
    gc.collect()
    assert gone() is None


def an_array_comes_back_to_numpy_through_tenon(folder):
    array = sample("int16", (4, 6))[::-1, 1::2].view(Watched)
    gone = weakref.ref(array)
    foreign = take(array)
    offset = foreign.data - tenon.tn_buffer_data(foreign.buffer)
    back = np.from_dlpack(Shared(foreign.buffer, "int16", foreign.shape[:2], foreign.stride[:2], offset))
    tenon.tn_buffer_unref(foreign.buffer)
    assert np.array_equal(back, array) and back.strides == array.strides and back.ctypes.data == array.ctypes.data
    del array
    gc.collect()
    assert gone() is not None
    del back
    gc.collect()
    assert gone() is None


# ---- PyTorch ----

TORCH_TYPES = [t for t in TYPES if t not in ("uint16", "uint32", "uint64")] + \
    ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0"]


def torch_name(dtype):
    return {"float8_e8m0": "float8_e8m0fnu"}.get(dtype, dtype)


def torch_and_tenon_share_every_type(folder):
    for dtype in TORCH_TYPES:
        memory = Memory(bytes(i % 2 for i in range(16 * 24)))
        tensor = torch.from_dlpack(Shared(memory.buffer, dtype, (3, 4), (4, 1), 16))
        memory.unref()
        assert tensor.dtype == getattr(torch, torch_name(dtype)) and tuple(tensor.shape) == (3, 4), dtype
        assert tensor.data_ptr() == c.addressof(memory.data) + 16, dtype
        foreign = take(tensor.T)
        assert foreign.array.dtype == tenon.tn_dtype_parse(dtype.encode()), dtype
        assert foreign.shape[:2] == [4, 3] and foreign.stride[:2] == [1, 4] and foreign.data == tensor.data_ptr(), dtype
        tenon.tn_buffer_unref(foreign.buffer)
        assert memory.released == 0
        del tensor
        gc.collect()
        assert memory.released == 1, dtype


def torch_and_tenon_write_the_same_memory(folder):
    memory = Memory(bytes(24))
    tensor = torch.from_dlpack(Shared(memory.buffer, "float32", (2, 3)))
    seen = (c.c_float * 6).from_buffer(memory.data)
    tensor[1, 2] = 3
    seen[0] = 2
    assert seen[5] == 3 and tensor[0, 0] == 2
    memory.unref()
    tensor = torch.zeros(2, 3)
    foreign = take(tensor)
    c.c_float.from_address(foreign.data).value = 8
    assert tensor[0, 0] == 8
    tenon.tn_buffer_unref(foreign.buffer)


def pairs_of_torch_are_a_last_dimension(folder):
    tensor = torch.zeros(3, 5, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    foreign = take(tensor)
    assert foreign.array.dtype == tenon.tn_dtype_parse(b"float4_e2m1") and foreign.array.rank == 3
    assert foreign.shape[:3] == [3, 5, 2] and tenon.tn_buffer_size(foreign.buffer) == 15 and not foreign.array.stride
    tenon.tn_buffer_unref(foreign.buffer)


TESTS = [numpy_reads_every_type_that_it_has, both_write_the_same_memory, read_only_memory_cannot_be_written,
         views_are_the_same_for_numpy, memory_is_released_when_the_last_array_goes, a_capsule_that_nobody_takes_releases_memory,
         types_that_numpy_lacks_are_refused_by_it_and_memory_is_released, what_dlpack_has_no_name_for_is_refused,
         arrays_of_numpy_are_taken_as_they_lie, both_see_what_the_other_writes, an_array_lives_as_long_as_tenon_has_it,
         an_array_that_is_refused_stays_its_owners, an_array_comes_back_to_numpy_through_tenon]
if torch:
    TESTS += [torch_and_tenon_share_every_type, torch_and_tenon_write_the_same_memory, pairs_of_torch_are_a_last_dimension]
else:
    print("note  PyTorch is not installed: it is left out")
each.run(TESTS)
