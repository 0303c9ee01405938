/* A kernel of one's own in C11, put to the test by
 *
 *     cc -std=c11 -O2 -fPIC -shared -I PREFIX/include cpu_plugin.c -o libcpu_plugin.so -lm
 *     attest doctor --kernel ./libcpu_plugin.so
 *     attest fuzz --kernel ./libcpu_plugin.so --time 10s
 *
 * Plain loops in fp32 on fp32 inputs: causal masks of both alignments, windows, grouped heads, any strides. */
#include <math.h>
#include <stdio.h>

#include "attest/gpu/kernel_api.h"

static const attest_capability capability = {
    .struct_size = sizeof(attest_capability),
    .device = ATTEST_DEVICE_CPU,
    .name = "plain-c",
    .description = "plain fp32 loops in C",
    .dtypes = 1u << ATTEST_FP32,
    .channels = ATTEST_CHANNEL_O | ATTEST_CHANNEL_LSE,
    .features = ATTEST_FEATURE_GQA | ATTEST_FEATURE_VALUE_DIM | ATTEST_FEATURE_WINDOW,
    .causal = 1u << ATTEST_CAUSAL_BOTTOM_RIGHT | 1u << ATTEST_CAUSAL_TOP_LEFT,
    .bitwise = ATTEST_BITWISE_BATCH | ATTEST_BITWISE_GQA | ATTEST_BITWISE_LAYOUT | ATTEST_BITWISE_REPEAT,
    .arithmetic = ATTEST_ARITHMETIC_FP32,
    .isolates_values = 1,
    .lse_base = 2.718281828459045,
    .lse_of_empty_row = -INFINITY,
};

static int32_t supports(void* self, const attest_problem* p, attest_text* why_not) {
  (void)self;
  if (p->seqlen_k <= 1 << 20) return ATTEST_OK;
  snprintf(why_not->data, why_not->capacity, "seqlen_k: %lld is above %d", (long long)p->seqlen_k, 1 << 20);
  return ATTEST_UNSUPPORTED;
}

/* The scores of a row. */
static int32_t workspace(void* self, const attest_problem* p, int32_t pass, int64_t* bytes, attest_text* message) {
  (void)self, (void)pass, (void)message;
  *bytes = p->seqlen_k * (int64_t)sizeof(float);
  return ATTEST_OK;
}

static float* row(const attest_tensor* t, int64_t a, int64_t b, int64_t c) {
  return (float*)t->data + a * t->strides[0] + b * t->strides[1] + c * t->strides[2];
}

static int sees(const attest_problem* p, int64_t i, int64_t j) {
  const int64_t diagonal = i + (p->causal == ATTEST_CAUSAL_TOP_LEFT ? 0 : p->seqlen_k - p->seqlen_q);
  if (p->causal != ATTEST_CAUSAL_NONE && j > diagonal) return 0;
  if (p->window_right >= 0 && j > diagonal + p->window_right) return 0;
  return p->window_left < 0 || j >= diagonal - p->window_left;
}

static void attend(const attest_problem* p, const attest_forward* args, int64_t b, int64_t h, int64_t i) {
  const int64_t h_k = h / (p->nheads / p->nheads_k);
  const float* const q = row(&args->q, b, i, h);
  const float scale = (float)p->softmax_scale;
  float* const scores = args->workspace;
  float max = -INFINITY, sum = 0;
  for (int64_t j = 0; j < p->seqlen_k; ++j) {
    if (!sees(p, i, j)) continue;
    const float* const k = row(&args->k, b, j, h_k);
    float dot = 0;
    for (int64_t d = 0; d < p->headdim; ++d) dot += q[d] * k[d];
    scores[j] = dot * scale;
    if (!(scores[j] <= max)) max = scores[j]; /* a NaN becomes the maximum and stays it */
  }
  float* const o = row(&args->o, b, i, h);
  for (int64_t d = 0; d < p->headdim_v; ++d) o[d] = 0;
  const float base = max == -INFINITY ? 0 : max;
  for (int64_t j = 0; j < p->seqlen_k; ++j) {
    if (!sees(p, i, j)) continue;
    const float weight = expf(scores[j] - base);
    const float* const v = row(&args->v, b, j, h_k);
    for (int64_t d = 0; d < p->headdim_v; ++d) o[d] += weight * v[d];
    sum += weight;
  }
  for (int64_t d = 0; d < p->headdim_v && sum != 0; ++d) o[d] /= sum;
  *row(&args->lse, b, h, i) = sum == 0 ? -INFINITY : base + logf(sum);
}

static int32_t forward(void* self, const attest_problem* p, const attest_forward* args, attest_text* message) {
  (void)self, (void)message;
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->nheads; ++h)
      for (int64_t i = 0; i < p->seqlen_q; ++i) attend(p, args, b, h, i);
  return ATTEST_OK;
}

static const attest_kernel_api api = {
    .struct_size = sizeof(attest_kernel_api),
    .abi_version = ATTEST_KERNEL_ABI,
    .capability = &capability,
    .supports = supports,
    .workspace = workspace,
    .forward = forward,
};

const attest_kernel_api* attest_kernel(uint32_t host_abi_version) {
  (void)host_abi_version;
  return &api;
}
