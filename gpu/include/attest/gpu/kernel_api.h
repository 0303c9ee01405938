/* The door for anybody's attention kernel: what a shared library offers so that `attest fuzz --kernel ./libmine.so`
 * can put it to the test. C11 (and C++17), no other header of attest. The guide is docs/plugins.md; C++ authors derive
 * a class instead (attest/gpu/kernel_adapter.h), Python authors take gpu/python/attest.py.
 *
 * The library exports one function,
 *
 *     const attest_kernel_api* attest_kernel(uint32_t host_abi_version);
 *
 * which gives a table that stays valid. attest loads the library in a process of its own, calls one function at a time,
 * and holds what goes wrong there (a crash, a hang, an error, damaged memory) against the kernel.
 *
 * How this header grows. Every struct starts with struct_size, its size in bytes as whoever fills it was compiled.
 *   - New fields come at a struct's end, and 0 in them means what went before. The side that reads a struct takes the
 *     smaller of struct_size and its own size and has the rest as 0, so old libraries work with a new attest and new
 *     ones with an old attest.
 *   - What a problem may newly ask for gets a bit of ATTEST_FEATURE_*. A library that does not declare a bit is never
 *     given a problem with it.
 *   - ATTEST_KERNEL_ABI changes only where an old field changes its meaning. A table of another ABI is refused, with
 *     exit 3, as is one whose struct_size is below that of this ABI's first edition.
 *
 * Functions give an attest_status. Whatever is not ATTEST_OK should leave a line in `message`: the field, its value,
 * and the limit.
 */
/* NOLINTBEGIN(readability-identifier-naming,modernize-*): C, with C's own manner of names */
#ifndef ATTEST_GPU_KERNEL_API_H
#define ATTEST_GPU_KERNEL_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTEST_KERNEL_ABI 1u
#define ATTEST_KERNEL_SYMBOL "attest_kernel"

#if defined(__GNUC__)
#define ATTEST_EXPORT __attribute__((visibility("default")))
#else
#define ATTEST_EXPORT
#endif

enum attest_status {
  ATTEST_OK = 0,
  ATTEST_UNSUPPORTED = 1,   /* supports(): not this problem, for the reason in the message. Elsewhere it is a failure */
  ATTEST_INVALID = 2,       /* what the user wrote after the library's name is wrong: "<field>: <value> <limit>" */
  ATTEST_FAILED = 3,        /* any other error of the kernel's: a finding */
  ATTEST_LOST = 4,          /* and this process can run nothing more, as after an illegal address on a GPU */
  ATTEST_NO_ENVIRONMENT = 5 /* create(): a driver, a GPU or a library is missing (exit 3) */
};

enum attest_device {
  ATTEST_DEVICE_CPU = 0, /* every pointer is the host's; stream is NULL */
  ATTEST_DEVICE_CUDA = 1 /* tensors, lists and workspace are in memory of the current CUDA device */
};

/* O, dO and gradients have the inputs' dtype, bf16 beside 8-bit inputs; LSE and lists of numbers are fp32. 8 bits are
 * OCP's: e4m3 without infinities, largest 448. */
enum attest_dtype { ATTEST_FP16 = 0, ATTEST_BF16 = 1, ATTEST_FP32 = 2, ATTEST_FP8_E4M3 = 3, ATTEST_FP8_E5M2 = 4 };

/* Query i sees keys j <= i + offset, of windows and ALiBi too: offset = keys - queries of the batch entry at the bottom
 * right, 0 at the top left. */
enum attest_causal { ATTEST_CAUSAL_NONE = 0, ATTEST_CAUSAL_BOTTOM_RIGHT = 1, ATTEST_CAUSAL_TOP_LEFT = 2 };

/* Along which of batch, heads, queries and keys a dense bias varies; it is shared (stride 0) along the others. */
enum attest_bias {
  ATTEST_BIAS_NONE = 0,
  ATTEST_BIAS_BHQK = 1,
  ATTEST_BIAS_HQK = 2,
  ATTEST_BIAS_BQK = 3,
  ATTEST_BIAS_QK = 4
};

/* Bits. Gradients are dQ, dK, dV, and dsink and dbias where the kernel takes a sink and a bias. */
enum attest_channel { ATTEST_CHANNEL_O = 1, ATTEST_CHANNEL_LSE = 2, ATTEST_CHANNEL_GRADIENTS = 4 };

/* Bits: what a problem may ask for beyond plain attention. */
enum attest_feature {
  /* nheads_k < nheads: query head h reads key head h / (nheads / nheads_k) */
  ATTEST_FEATURE_GQA = 1,
  /* headdim_v != headdim */
  ATTEST_FEATURE_VALUE_DIM = 2,
  ATTEST_FEATURE_WINDOW = 4,
  ATTEST_FEATURE_PREFIX = 8,
  ATTEST_FEATURE_DOCUMENTS = 16,
  ATTEST_FEATURE_SOFTCAP = 32,
  ATTEST_FEATURE_ALIBI = 64,
  ATTEST_FEATURE_SINK = 128,
  ATTEST_FEATURE_BIAS = 256,
  /* packed sequences, cu_seqlens */
  ATTEST_FEATURE_VARLEN = 512,
  ATTEST_FEATURE_SEQUSED_K = 1024,
  ATTEST_FEATURE_PAGED = 2048,
  /* num_splits > 1 */
  ATTEST_FEATURE_SPLITS = 4096
};

/* Bits: what holds bit for bit, and is held to it; anything else holds within the error budget. */
enum attest_bitwise {
  /* a batch gives its members */
  ATTEST_BITWISE_BATCH = 1,
  /* GQA gives MHA with repeated heads */
  ATTEST_BITWISE_GQA = 2,
  /* the same values in other strides, packed or in pages */
  ATTEST_BITWISE_LAYOUT = 4,
  /* the same call again; of gradients only where the problem is deterministic */
  ATTEST_BITWISE_REPEAT = 8
};

/* Where the kernel rounds, by the name of a scheme; numerics() changes single fields. */
enum attest_arithmetic {
  /* S and sums in fp32, P rounded to the inputs' dtype before P V, a running maximum */
  ATTEST_ARITHMETIC_FLASH = 0,
  /* S rounded to the inputs' dtype too, one maximum a row */
  ATTEST_ARITHMETIC_UNFUSED = 1,
  /* everything in fp32 but inputs and outputs: plain loops */
  ATTEST_ARITHMETIC_FP32 = 2
};

enum attest_pass { ATTEST_PASS_FORWARD = 0, ATTEST_PASS_BACKWARD = 1 };

/* A line, or a document, that a function leaves. `data` has room for `capacity` bytes and holds "" before the call. */
typedef struct attest_text {
  char* data;
  size_t capacity; /* bytes, the closing 0 included */
} attest_text;

/* What a kernel declares of itself. Verdicts hold it to this and to nothing else. Must stay valid. */
typedef struct attest_capability {
  uint32_t struct_size;    /* bytes */
  int32_t device;          /* attest_device */
  const char* name;        /* 1 to 64 printable characters: how reports call it */
  const char* description; /* one line for `attest kernels`; NULL: none */
  uint32_t dtypes;         /* bit (1 << attest_dtype) for each that it takes; at least one */
  uint32_t channels;       /* of attest_channel; ATTEST_CHANNEL_O among them */
  uint64_t features;       /* of attest_feature */
  uint32_t causal;         /* bit (1 << attest_causal) for each alignment. Where all lengths are equal both are the
                              same, and such a problem comes in either word */
  uint32_t bitwise;        /* of attest_bitwise */
  int32_t arithmetic;      /* attest_arithmetic */
  int32_t isolates_values; /* 1: a NaN or an Inf in V (in the backward, in any input) reaches no row that does not see
                              its key. 0: it may reach every row of its sequence, as where 0 times NaN is added */
  double lse_base;         /* LSE is a logarithm to this base: 2.718281828459045, 2. Above 0, not 1 */
  double lse_of_empty_row; /* LSE of a row that sees no key: -INFINITY, 0, INFINITY. O of it is 0 */
} attest_capability;

/* What attention is asked for:  O = softmax(score) V,  LSE = log sum exp score,  over the keys that a query sees,
 *   score = softcap(softmax_scale * q.k) + alibi + bias,   softcap(x) = c tanh(x / c),   alibi = -slope |i + off - j|.
 * Query i sees key j of its batch entry where  documents(i) == documents(j)  and
 *   ( j < prefix  or  ( causal: j <= i + off )  and  ( j <= i + off + window_right )  and  ( j >= i + off - window_left
 * ) ), off = 0 with ATTEST_CAUSAL_TOP_LEFT, keys - queries of the batch entry otherwise. A sink adds exp(sink) to the
 * denominator of its head's rows. A row that sees nothing: O = 0, LSE = lse_of_empty_row, or the sink; gradients 0. */
typedef struct attest_problem {
  uint32_t struct_size;       /* bytes */
  int32_t dtype;              /* attest_dtype */
  uint64_t features;          /* of attest_feature: those that this problem has, all of them declared by the kernel */
  int64_t batch;              /* >= 1 */
  int64_t nheads, nheads_k;   /* >= 1; nheads a multiple of nheads_k */
  int64_t seqlen_q, seqlen_k; /* tokens, >= 0; of the longest batch entry where lengths differ */
  int64_t headdim, headdim_v; /* values a row, 1 to 256 */
  double softmax_scale;       /* any finite number, 0 and negative ones included */
  double softcap;             /* c; 0: none */
  int64_t window_left;        /* keys before the diagonal, inclusive; -1: unlimited */
  int64_t window_right;
  int64_t prefix;        /* keys 0 to prefix - 1 are seen whatever causal and windows say; 0: none */
  int32_t causal;        /* attest_causal */
  int32_t bias;          /* attest_bias */
  int32_t alibi, sink;   /* 1: there is one */
  int32_t backward;      /* 1: gradients will be asked for as well */
  int32_t deterministic; /* 1: and they must be the same bits in every run */
  int64_t num_splits;    /* shares that the keys of a row are to be split into, then combined; 1: none */
  /* Host memory, [batch], also where the device is CUDA; NULL: all batch entries have seqlen_q and seqlen_k. */
  const int64_t* varlen_q;  /* queries of each entry: Q and O are packed */
  const int64_t* varlen_k;  /* keys of each entry: K and V are packed */
  const int64_t* seqused_k; /* of these keys, how many exist; NULL: all */
  const int64_t* documents; /* [num_documents], host memory: lengths that cut the positions of queries and keys into
                               documents; NULL: one document */
  int64_t num_documents;
  /* How the tensors will lie, for a kernel that takes only some strides. */
  int32_t heads_first; /* 0: [batch, seqlen, heads, dim]; 1: [batch, heads, seqlen, dim]; dim always has stride 1 */
  int32_t reserved;    /* 0 */
  int64_t row_gap;     /* elements between the end of an innermost row and the next row */
  int64_t seq_gap;     /* rows of padding after each sequence or page */
  int64_t base_offset; /* elements by which the first value is off an alignment of 256 bytes */
  int64_t page_size;   /* keys a page; 0: K and V are not in pages */
  uint64_t seed;       /* differs from case to case: of what a kernel may choose freely (a tile, an order) it draws
                          from this, so that a failure repeats */
} attest_problem;

/* A tensor: element (a, b, c, d) lies at data + (a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3])
 * elements. Everything between the elements is NaN and must be left alone. */
typedef struct attest_tensor {
  void* data;
  int64_t sizes[4];   /* elements */
  int64_t strides[4]; /* elements; 0 along what is shared */
} attest_tensor;

/* What a forward is handed. The pointers' targets are NaN outside the elements; o and lse hold a pattern, and every
 * element of both must be written. Below `lse` a pointer is NULL where the problem has no use for it. */
typedef struct attest_forward {
  uint32_t struct_size; /* bytes */
  uint32_t reserved;    /* 0 */
  attest_tensor q;      /* [batch, seqlen_q, nheads, headdim]; packed: [1, total_q, nheads, headdim] */
  attest_tensor k;      /* [batch, seqlen_k, nheads_k, headdim]; packed: [1, total_k, ...]; pages: [num_pages,
                           page_size, nheads_k, headdim] */
  attest_tensor v;      /* as k, with headdim_v */
  attest_tensor o;      /* as q, with headdim_v; written */
  attest_tensor lse;    /* fp32 [batch, nheads, seqlen_q, 1]; packed: [1, nheads, total_q, 1]; contiguous; written
                           where the kernel offers ATTEST_CHANNEL_LSE */
  const int32_t* cu_seqlens_q; /* [batch + 1], running sums of lengths from 0: entry b begins at row cu_seqlens[b] */
  const int32_t* cu_seqlens_k;
  const int32_t* seqused_k;  /* [batch] */
  const int32_t* page_table; /* [batch, pages_per_sequence]: keys n * page_size on of entry b are in page [b, n] */
  int64_t pages_per_sequence;
  const int32_t* document_ends; /* [num_documents], running sums of the documents' lengths */
  const float* alibi_slopes;    /* [batch, nheads] */
  const float* sink;            /* [nheads] */
  const float* q_descale;       /* [batch, nheads_k], beside 8-bit inputs: the values are the tensor's times this */
  const float* k_descale;
  const float* v_descale;
  attest_tensor bias;      /* fp32 [batch, nheads, seqlen_q, seqlen_k] */
  void* workspace;         /* workspace_bytes bytes, aligned to 256, NaN; NULL where workspace() gave 0 */
  int64_t workspace_bytes; /* as workspace() gave */
  void* stream;            /* CUDA: the cudaStream_t to launch on; need not wait for it */
  /* For a kernel that checks itself: tells of a violated ordering or the like, a finding. Each name counts once. */
  void (*hazard)(void* host, const char* name);
  void* host; /* the first argument of hazard */
} attest_forward;

/* What a backward is handed: of `forward`, o and lse are inputs now, as this kernel's forward left them (lse is NaN if
 * it offers none), and o and lse's memory must be left alone. Every element of the gradients must be written. */
typedef struct attest_backward {
  uint32_t struct_size;          /* bytes */
  uint32_t reserved;             /* 0 */
  const attest_forward* forward; /* its workspace and stream are the backward's */
  attest_tensor dout;            /* as o, in strides of its own */
  attest_tensor dq, dk, dv;      /* as q, k, v, but never in pages; written */
  attest_tensor dbias;           /* as bias; written; data NULL where there is none */
  float* dsink;                  /* [nheads]; written; NULL where there is none */
} attest_backward;

/* Where a kernel rounds: the error budget of every element is computed from this (docs/numerics.md). The host fills it
 * with the scheme that the capability names; numerics() changes what is otherwise. Unit roundoffs u_* are relative,
 * a_* and floor_* absolute (half the smallest spacing). */
typedef struct attest_numerics {
  uint32_t struct_size;  /* bytes */
  int32_t chain;         /* partial sums that a row's denominator is split over; 1 to 2^26 */
  int64_t smallest_tile; /* fewest keys a tile: how often a row maximum can change; 1 to 2^26 */
  int64_t num_splits;    /* shares of the keys with a softmax each, combined in fp32; 1 to 256 */
  double u_S;            /* scores before the softmax; 0: fp32. All u_*: 0 to 0.25 */
  double u_P;            /* probabilities before P V; 0: fp32 */
  double a_P;            /* half the spacing of P's subnormals */
  double min_normal_P;   /* smallest normal P */
  double max_P;          /* largest P before rounding: 1, 2^8 where O is rescaled lazily; 1 to 2^16 */
  double u_acc;    /* one step of a matrix accumulator: 2^-23 (tensor cores truncate), 2^-24 (rounds to nearest) */
  double eps_exp;  /* relative error of one exponential */
  double eps_tanh; /* and of one tanh, beside a softcap */
  double lse_max_roundings; /* of the row maximum on its way into LSE: 2, 5 where it goes through base 2; 0 to 64 */
  double u_out, floor_out;  /* rounding of O to its dtype */
  double u_P_backward, a_P_backward, u_dS, a_dS; /* P and dS on their way into the backward's products */
  double u_share, floor_share; /* a head's share of dK and dV, where a group of heads is summed of rounded shares */
  int32_t normalises_first;    /* 1: P is divided by its row's sum before it is rounded and meets V; 0: O is, after */
  uint32_t reserved;           /* 0 */
} attest_numerics;

/* `self` is what create() gave. Functions that may be NULL say so. */
typedef struct attest_kernel_api {
  uint32_t struct_size;                /* bytes of this table */
  uint32_t abi_version;                /* ATTEST_KERNEL_ABI */
  const attest_capability* capability; /* never NULL */

  /* Once, before all below. `options`: what follows the library's name and a colon on the command line, "" if nothing.
   * NULL: takes no options, and self is NULL. */
  int32_t (*create)(const char* options, void** self, attest_text* message);
  void (*destroy)(void* self); /* may be NULL */

  /* Whether the kernel takes a problem that its capability admits: OK, or ATTEST_UNSUPPORTED with the reason. Must be
   * right of every size, so a limit of shared memory, grid or strides stands here. NULL: it takes them all. */
  int32_t (*supports)(void* self, const attest_problem* problem, attest_text* why_not);
  /* Changes `numerics` where the kernel's arithmetic on this problem is not the declared scheme's. May be NULL. */
  int32_t (*numerics)(void* self, const attest_problem* problem, attest_numerics* numerics, attest_text* message);
  /* Bytes of scratch memory on the device that `pass` (attest_pass) wants; *bytes is 0 before. NULL: none. */
  int32_t (*workspace)(void* self, const attest_problem* problem, int32_t pass, int64_t* bytes, attest_text* message);
  /* Computes O, and LSE if offered. On CUDA: enqueues it on the stream. Never NULL. */
  int32_t (*forward)(void* self, const attest_problem* problem, const attest_forward* args, attest_text* message);
  /* Computes the gradients. NULL where they are not offered. */
  int32_t (*backward)(void* self, const attest_problem* problem, const attest_backward* args, attest_text* message);
  /* The plan that the kernel runs this problem with, for `attest predict --kernel`: JSON as a --plan file has it
   * ("attest/plan/1", see `attest plans`). May be NULL, or leave "". */
  int32_t (*plan)(void* self, const attest_problem* problem, attest_text* json);
} attest_kernel_api;

/* The one exported symbol. `host_abi_version` is the host's ATTEST_KERNEL_ABI. */
ATTEST_EXPORT const attest_kernel_api* attest_kernel(uint32_t host_abi_version);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ATTEST_GPU_KERNEL_API_H */
/* NOLINTEND(readability-identifier-naming,modernize-*) */
