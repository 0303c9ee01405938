"""The shared library of bench/gpu: calls of the sm80 forward, of its ablations and of the unfused baseline on tensors of
PyTorch's."""
import ctypes
import json
import math

import torch


class Kernels:
    """The shared library's calls."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.attest_error.restype = ctypes.c_char_p
        self.library.attest_workspace_bytes.restype = ctypes.c_longlong
        self.library.attest_workspace_bytes.argtypes = [ctypes.c_char_p] * 2
        self.library.attest_open.restype = ctypes.c_void_p
        self.library.attest_open.argtypes = [ctypes.c_char_p] * 2 + [ctypes.c_void_p] * 7
        self.library.attest_launch.argtypes = [ctypes.c_void_p] * 2

    def check(self, good):
        if not good:
            raise RuntimeError(self.library.attest_error().decode())

    def num_splits(self, case):
        number = self.library.attest_num_splits(json.dumps(case).encode())
        self.check(number > 0)
        return number

    def prepare(self, case, q, k, v, kernel="sm80", page_table=None):
        """A function that launches `case`, and its O and LSE. Tensors are [batch, seqlen, heads, headdim], or K and V
        [pages, page size, heads, headdim]."""
        text = json.dumps(case).encode()
        size = self.library.attest_workspace_bytes(kernel.encode(), text)
        self.check(size >= 0)
        workspace = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
        o = torch.full((*q.shape[:3], v.shape[3]), math.nan, dtype=q.dtype, device="cuda")
        lse = torch.full((q.shape[0], q.shape[2], q.shape[1]), math.nan, device="cuda")
        pointers = [t.data_ptr() for t in (q, k, v, o, lse, workspace)]
        call = self.library.attest_open(kernel.encode(), text, *pointers, page_table.data_ptr() if page_table is not None else None)
        self.check(call)
        stream = torch.cuda.current_stream().cuda_stream

        def launch(keep=(q, k, v, workspace, page_table)):
            self.check(self.library.attest_launch(call, stream) == 0)

        return launch, o, lse
