"""A kernel of attest that is a Python function: PyTorch, Triton, CuPy, NumPy. One file, no build step.

    import attest

    @attest.kernel("mine", dtypes=["fp16", "bf16"], device="cuda", causal=["top-left"])
    def mine(problem, t):
        q, k, v = (x.torch().transpose(1, 2) for x in (t.q, t.k, t.v))
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=problem.causal != 0)
        t.o.torch().copy_(o.transpose(1, 2))

in mine.py, and then

    attest doctor --kernel ./mine.py
    attest fuzz --kernel ./mine.py:mine --time 30s

attest runs this file in a process of its own (`$ATTEST_PYTHON`, or python3) and shares memory with it. The structs are
those of attest/gpu/kernel_api.h, whose comments say what each field is; docs/plugins.md is the guide.
"""

import ctypes
import importlib.util
import math
import mmap
import os
import socket
import struct
import sys
import time
import traceback
from ctypes import c_char, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p

OK, UNSUPPORTED, INVALID, FAILED, LOST, NO_ENVIRONMENT = range(6)
BATCH_DONE = -1  # python_process.cpp
DTYPES = ["fp16", "bf16", "fp32", "fp8_e4m3", "fp8_e5m2"]
ITEM_BYTES = [2, 2, 4, 1, 1]
CAUSAL = ["none", "bottom-right", "top-left"]
CHANNELS = ["o", "lse", "gradients"]
FEATURES = ["gqa", "headdim_v", "window", "prefix", "documents", "softcap", "alibi", "sink", "bias", "varlen",
            "seqused_k", "pages", "num_splits"]
BITWISE = ["batch", "gqa", "layout", "repeat"]
ARITHMETIC = ["flash", "unfused", "fp32"]
SHARED_BYTES = 64 << 30
SHORTEST_SECONDS = 0.01  # as attest's own measurements: a shorter one is mostly the clock's and the caches' state
LONGEST_WAIT_SECONDS = 1  # for that, longest_batch_seconds in forward_buffers.h: no number of calls of a kernel that sleeps takes CPU time


class CTensor(ctypes.Structure):  # attest_tensor
    _fields_ = [("data", c_void_p), ("sizes", c_int64 * 4), ("strides", c_int64 * 4)]


class Capability(ctypes.Structure):  # attest_capability
    _fields_ = [("struct_size", c_uint32), ("device", c_int32), ("name", c_void_p), ("description", c_void_p),
                ("dtypes", c_uint32), ("channels", c_uint32), ("features", c_uint64), ("causal", c_uint32),
                ("bitwise", c_uint32), ("arithmetic", c_int32), ("isolates_values", c_int32), ("lse_base", c_double),
                ("lse_of_empty_row", c_double)]


class Problem(ctypes.Structure):  # attest_problem
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("features", c_uint64), ("batch", c_int64),
                ("nheads", c_int64), ("nheads_k", c_int64), ("seqlen_q", c_int64), ("seqlen_k", c_int64),
                ("headdim", c_int64), ("headdim_v", c_int64), ("softmax_scale", c_double), ("softcap", c_double),
                ("window_left", c_int64), ("window_right", c_int64), ("prefix", c_int64), ("causal", c_int32),
                ("bias", c_int32), ("alibi", c_int32), ("sink", c_int32), ("backward", c_int32),
                ("deterministic", c_int32), ("num_splits", c_int64), ("varlen_q", ctypes.POINTER(c_int64)),
                ("varlen_k", ctypes.POINTER(c_int64)), ("seqused_k", ctypes.POINTER(c_int64)),
                ("documents", ctypes.POINTER(c_int64)), ("num_documents", c_int64), ("heads_first", c_int32),
                ("reserved", c_int32), ("row_gap", c_int64), ("seq_gap", c_int64), ("base_offset", c_int64),
                ("page_size", c_int64), ("seed", c_uint64)]

    @property
    def dtype_name(self):
        return DTYPES[self.dtype]


class CForward(ctypes.Structure):  # attest_forward
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("q", CTensor), ("k", CTensor), ("v", CTensor),
                ("o", CTensor), ("lse", CTensor), ("cu_seqlens_q", c_void_p), ("cu_seqlens_k", c_void_p),
                ("seqused_k", c_void_p), ("page_table", c_void_p), ("pages_per_sequence", c_int64),
                ("document_ends", c_void_p), ("alibi_slopes", c_void_p), ("sink", c_void_p), ("q_descale", c_void_p),
                ("k_descale", c_void_p), ("v_descale", c_void_p), ("bias", CTensor), ("workspace", c_void_p),
                ("workspace_bytes", c_int64), ("stream", c_void_p), ("hazard", c_void_p), ("host", c_void_p)]


class CBackward(ctypes.Structure):  # attest_backward
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("forward", c_void_p), ("dout", CTensor),
                ("dq", CTensor), ("dk", CTensor), ("dv", CTensor), ("dbias", CTensor), ("dsink", c_void_p)]


class Numerics(ctypes.Structure):  # attest_numerics
    _fields_ = [("struct_size", c_uint32), ("chain", c_int32), ("smallest_tile", c_int64), ("num_splits", c_int64)] + [
        (name, c_double) for name in
        ("u_S", "u_P", "a_P", "min_normal_P", "max_P", "u_acc", "eps_exp", "eps_tanh", "lse_max_roundings", "u_out",
         "floor_out", "u_P_backward", "a_P_backward", "u_dS", "a_dS", "u_share", "floor_share")] + [
         ("normalises_first", c_int32), ("reserved", c_uint32)]


class Control(ctypes.Structure):  # gpu/python/control.h
    _fields_ = [("struct_size", c_int64), ("arena_begin", c_int64), ("arena_bytes", c_int64),
                ("capability", Capability), ("name", c_char * 72), ("description", c_char * 264), ("problem", Problem),
                ("forward", CForward), ("backward", CBackward), ("numerics", Numerics), ("repeats", c_int64), ("seconds", c_double * 1000),
                ("message", c_char * (1 << 16))]


class Tensor:
    """Elements at `address`, of `sizes` and `strides` in elements. On CUDA in `arena`'s copy on the device."""

    def __init__(self, arena, address, sizes, strides, dtype):
        self.arena, self.address, self.dtype = arena, address, dtype
        self.sizes, self.strides = tuple(sizes), tuple(strides)

    @property
    def item_bytes(self):
        return 4 if self.dtype == "int32" else ITEM_BYTES[DTYPES.index(self.dtype)]

    def _span(self):
        """Elements from the first to the last, both counted."""
        return 1 + sum((n - 1) * s for n, s in zip(self.sizes, self.strides)) if all(self.sizes) else 0

    def torch(self):
        """A torch tensor over the same memory, on the kernel's device."""
        import torch
        of = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "int32": "int32", "fp8_e4m3": "float8_e4m3fn",
              "fp8_e5m2": "float8_e5m2"}
        dtype, span = getattr(torch, of[self.dtype]), self._span()
        if span == 0:
            return torch.empty(self.sizes, dtype=dtype, device=self.arena.device)
        flat = self.arena.torch_bytes(self.address, span * self.item_bytes).view(dtype)
        return flat.as_strided(self.sizes, self.strides, flat.storage_offset())

    def numpy(self):
        """A NumPy array over the same memory; bf16 as uint16, 8 bits as uint8. Kernels on the CPU only."""
        import numpy
        return numpy.asarray(self)

    def _interface(self, address):
        typestr = {"fp16": "<f2", "bf16": "<u2", "fp32": "<f4", "int32": "<i4"}.get(self.dtype, "|u1")
        return {"shape": self.sizes, "typestr": typestr, "data": (address, False), "version": 3,
                "strides": tuple(s * self.item_bytes for s in self.strides)}

    @property
    def __array_interface__(self):
        if self.arena.device != "cpu":
            raise AttributeError("the tensor is on the device")
        return self._interface(self.address)

    @property
    def __cuda_array_interface__(self):
        if self.arena.device != "cuda":
            raise AttributeError("the tensor is on the host")
        return self._interface(self.arena.torch_bytes(self.address, self._span() * self.item_bytes).data_ptr())

    def __dlpack__(self, **arguments):
        return self.torch().__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.torch().__dlpack_device__()


class Tensors:
    """What a call is handed: q, k, v, o, lse, and in the backward dout, dq, dk, dv; of the rest what the problem has,
    None otherwise. Sizes and strides are those of kernel_api.h."""


class _Arena:
    """The shared memory of a run: on CUDA copied there whole, poison included, and back."""

    def __init__(self, device, base, begin, size):
        self.device, self.first, self.size = device, base + begin, size
        if device == "cuda":
            import torch
            self.host = torch.frombuffer((c_char * size).from_address(self.first), dtype=torch.uint8)
            self.copy = self.host.to("cuda")

    def torch_bytes(self, address, count):
        import torch
        if self.device == "cuda":
            return self.copy[address - self.first:address - self.first + count]
        return torch.frombuffer((c_char * count).from_address(address), dtype=torch.uint8)

    def bring_back(self):
        if self.device == "cuda":
            self.host.copy_(self.copy)  # waits


class _Kernel:
    def __init__(self, forward, **declared):
        self.forward = forward
        self.__dict__.update(declared)


_kernels = {}


def kernel(name, *, dtypes, device="cpu", description="", channels=("o",), features=(), causal=(), bitwise=("repeat",),
           arithmetic="flash", normalises_first=False, isolates_values=False, lse_base=math.e,
           lse_of_empty_row=-math.inf, supports=None, numerics=None, backward=None, plan=None):
    """Registers the function below as a kernel, forward(problem, tensors), and declares what it is held to.

    supports(problem)            a reason to refuse a problem, or None
    numerics(problem, numerics)  changes fields where the arithmetic is not the scheme's (attest_numerics)
    backward(problem, tensors)   with channels=("o", "lse", "gradients")
    plan(problem)                JSON for `attest predict --kernel`
    normalises_first: the softmax is divided by its sum before it is multiplied with V, as in softmax(scores) @ V
    device: "cpu", or "cuda", where the tensors are copied to the GPU first (needs PyTorch)
    """
    def register(forward):
        _kernels[name] = _Kernel(forward, name=name, dtypes=dtypes, device=device, description=description,
                                 channels=channels, features=features, causal=causal, bitwise=bitwise,
                                 arithmetic=arithmetic, normalises_first=normalises_first,
                                 isolates_values=isolates_values, lse_base=lse_base, lse_of_empty_row=lse_of_empty_row,
                                 supports=supports, numerics=numerics, backward=backward, plan=plan)
        return forward
    return register


def _bits(words, known, what):
    unknown = [word for word in words if word not in known]
    if unknown:
        raise ValueError(f"{what}: {unknown[0]!r} is none of {', '.join(known)}")
    return sum(1 << known.index(word) for word in set(words))


def _declare(k, control):
    c = control.capability
    c.struct_size = ctypes.sizeof(Capability)
    c.device = ["cpu", "cuda"].index(k.device)
    control.name = k.name.encode("ascii")
    control.description = (k.description or f"{k.name} on {k.device}, in Python").encode("ascii", "replace")
    c.dtypes = _bits(k.dtypes, DTYPES, "dtypes")
    c.channels = _bits(set(k.channels) | {"o"}, CHANNELS, "channels")
    c.features = _bits(k.features, FEATURES, "features")
    c.causal = _bits(k.causal, CAUSAL, "causal")
    c.bitwise = _bits(k.bitwise, BITWISE, "bitwise")
    c.arithmetic = ARITHMETIC.index(k.arithmetic)
    c.isolates_values = bool(k.isolates_values)
    c.lse_base, c.lse_of_empty_row = k.lse_base, k.lse_of_empty_row


def _tensors(k, control, base, backward):
    p, f = control.problem, control.forward
    arena = _Arena(k.device, base, control.arena_begin, control.arena_bytes)
    inputs = DTYPES[p.dtype]
    outputs = "bf16" if inputs.startswith("fp8") else inputs

    def strided(t, dtype):
        return Tensor(arena, t.data, t.sizes, t.strides, dtype) if t.data else None

    def plain(address, *sizes, dtype="fp32"):
        if not address:
            return None
        strides = [math.prod(sizes[n + 1:]) for n in range(len(sizes))]
        return Tensor(arena, address, sizes, strides, dtype)

    t = Tensors()
    t.q, t.k, t.v = (strided(x, inputs) for x in (f.q, f.k, f.v))
    t.o, t.lse, t.bias = strided(f.o, outputs), strided(f.lse, "fp32"), strided(f.bias, "fp32")
    t.cu_seqlens_q = plain(f.cu_seqlens_q, p.batch + 1, dtype="int32")
    t.cu_seqlens_k = plain(f.cu_seqlens_k, p.batch + 1, dtype="int32")
    t.seqused_k = plain(f.seqused_k, p.batch, dtype="int32")
    t.page_table = plain(f.page_table, p.batch, f.pages_per_sequence, dtype="int32")
    t.document_ends = plain(f.document_ends, p.num_documents, dtype="int32")
    t.alibi_slopes, t.sink = plain(f.alibi_slopes, p.batch, p.nheads), plain(f.sink, p.nheads)
    t.q_descale, t.k_descale, t.v_descale = (plain(x, p.batch, p.nheads_k)
                                             for x in (f.q_descale, f.k_descale, f.v_descale))
    if backward:
        b = control.backward
        t.dout = strided(b.dout, outputs)
        t.dq, t.dk, t.dv = (strided(x, outputs) for x in (b.dq, b.dk, b.dv))
        t.dbias, t.dsink = strided(b.dbias, "fp32"), plain(b.dsink, p.nheads)
    return t, arena


def _device_seconds(call, calls):
    import torch
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def _process_seconds(call, calls):
    begin = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - begin


class _Server:
    def __init__(self, path, name):
        self.path, self.name, self.kernel = path, name, None
        self.memory = mmap.mmap(4, SHARED_BYTES)
        self.base = ctypes.addressof(c_char.from_buffer(self.memory))
        self.control = Control.from_address(self.base)

    def load(self):
        if self.control.struct_size != ctypes.sizeof(Control):
            self.say(f"attest.py is of another version than attest: {ctypes.sizeof(Control)} bytes are shared, not "
                     f"{self.control.struct_size}")
            return NO_ENVIRONMENT
        sys.modules["attest"] = sys.modules["__main__"]
        sys.path.insert(0, os.path.dirname(os.path.abspath(self.path)))
        spec = importlib.util.spec_from_file_location("attest_kernel_under_test", self.path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        if not self.name and len(_kernels) == 1:
            self.name = next(iter(_kernels))
        if self.name not in _kernels:
            self.say(f"names none of its kernels: {', '.join(_kernels) or 'it registers none'}")
            return INVALID
        self.kernel = _kernels[self.name]
        _declare(self.kernel, self.control)
        return OK

    def supports(self):
        why = self.kernel.supports(self.control.problem) if self.kernel.supports else None
        if why:
            self.say(why)
        return UNSUPPORTED if why else OK

    def numerics(self):
        self.control.numerics.normalises_first = bool(self.kernel.normalises_first)
        if self.kernel.numerics:
            self.kernel.numerics(self.control.problem, self.control.numerics)
        return OK

    def forward(self):
        return self.run(self.kernel.forward, False)

    def backward(self):
        return self.run(self.kernel.backward, True)

    def run(self, function, backward):
        tensors, arena = _tensors(self.kernel, self.control, self.base, backward)
        function(self.control.problem, tensors)
        if self.control.repeats and not backward:
            self.measure(lambda: function(self.control.problem, tensors), arena.device)
        arena.bring_back()
        return OK

    def measure(self, call, device):
        """Seconds of a call, `repeats` times, each the mean of as many in a row as its clock needs: by events in the
        stream of the GPU, where gaps between launches count, or the CPU seconds of this process. attest hears of the
        end of each such batch."""
        clock = _device_seconds if device == "cuda" else _process_seconds

        def seconds(call, calls):
            taken = clock(call, calls)
            self.reply(BATCH_DONE)
            return taken

        calls, began = 1, time.monotonic()
        while seconds(call, calls) < SHORTEST_SECONDS and time.monotonic() - began < LONGEST_WAIT_SECONDS:
            calls *= 2
        for repeat in range(self.control.repeats):
            self.control.seconds[repeat] = seconds(call, calls) / calls

    def plan(self):
        if self.kernel.plan:
            self.say(self.kernel.plan(self.control.problem))
        return OK

    def say(self, words):
        self.control.message = str(words).encode("utf-8", "replace")[:(1 << 16) - 1]

    def after(self, error):
        """What an exception means: a device that answers nothing any more is lost."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        self.say(f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})")
        if self.kernel and self.kernel.device == "cuda":
            import torch
            try:
                torch.cuda.synchronize()
            except Exception:
                return LOST
        return FAILED

    def serve(self):
        calls = [self.load, self.supports, self.numerics, self.forward, self.backward, self.plan]
        with socket.socket(fileno=3) as self.peer:
            while True:
                request = self.peer.recv(8, socket.MSG_WAITALL)
                if len(request) < 8:
                    return
                call = calls[struct.unpack("<ii", request)[0]]
                try:
                    status = call()
                except Exception as error:
                    status = self.after(error)
                self.reply(status)

    def reply(self, status):
        self.peer.sendall(struct.pack("<iiq", status, 0, self.base))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("attest.py is started by attest: attest doctor --kernel ./mine.py")
    server = _Server(sys.argv[1], sys.argv[2])
    server.serve()
    os._exit(0)
