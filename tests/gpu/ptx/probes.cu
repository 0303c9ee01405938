#include "attest/gpu/cuda_error.h"
#include "attest/ptx/cp_async.cuh"
#include "attest/ptx/ldmatrix.cuh"
#include "attest/ptx/math.cuh"
#include "attest/ptx/mma.cuh"
#include "attest/ptx/quad.cuh"
#include "attest/ptx/shared.cuh"
#include "probes.h"

namespace attest::test {
namespace {

/// Device memory with a copy of `from`.
template <class T>
class Mirror {
 public:
  Mirror(const T* from, std::size_t n) : n_(n) {
    cuda_check(cudaMalloc(&data_, n * sizeof(T)), "cudaMalloc");
    cuda_check(cudaMemcpy(data_, from, n * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy to the device");
  }
  ~Mirror() { cudaFree(data_); }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  T* data() const { return data_; }
  void read(T* to) const {
    cuda_check_launch("a probe");
    cuda_check(cudaMemcpy(to, data_, n_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy to the host");
  }

 private:
  T* data_ = nullptr;
  std::size_t n_;
};

__global__ void ldmatrix_kernel(const std::uint16_t* tile, const std::uint32_t* cells, bool transposed,
                                std::uint32_t* out) {
  __shared__ __align__(16) std::uint16_t shared[256];
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < 256; i += 32) shared[i] = tile[i];
  __syncwarp();
  const std::uint32_t at = ptx::shared_address(shared) + cells[2 * lane] * 32 + cells[2 * lane + 1] * 16;
  std::uint32_t r[4];
  if (transposed)
    ptx::load_matrix_x4<true>(r, at);
  else
    ptx::load_matrix_x4<false>(r, at);
  for (int i = 0; i < 4; ++i) out[4 * lane + i] = r[i];
}

template <Dtype T>
__global__ void mma_kernel(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* c) {
  const unsigned lane = threadIdx.x;
  std::uint32_t x[4];
  float acc[4];
  for (int i = 0; i < 4; ++i) x[i] = a[4 * lane + i], acc[i] = __uint_as_float(c[4 * lane + i]);
  ptx::mma_m16n8k16<T>(acc, x, b[2 * lane], b[2 * lane + 1], acc);
  for (int i = 0; i < 4; ++i) c[4 * lane + i] = __float_as_uint(acc[i]);
}

__global__ void function_kernel(Function f, const float* x, std::uint32_t* out) {
  const unsigned i = blockIdx.x * 32 + threadIdx.x;
  const float v = x[i];
  switch (f) {
    case Function::exp2:
      out[i] = __float_as_uint(ptx::exp2_approx(v));
      break;
    case Function::tanh:
      out[i] = __float_as_uint(ptx::tanh_approx(v));
      break;
    case Function::pack_fp16:
      out[i] = ptx::pack<Dtype::fp16>(v, 1.0f);
      break;
    case Function::pack_bf16:
      out[i] = ptx::pack<Dtype::bf16>(v, 1.0f);
      break;
    case Function::quad_max:
      out[i] = __float_as_uint(ptx::quad_max(v));
      break;
    case Function::quad_sum:
      out[i] = __float_as_uint(ptx::quad_sum(v));
      break;
  }
}

__global__ void copy_kernel(int bytes, bool zeros, const std::uint8_t* from, std::uint8_t* out) {
  __shared__ __align__(16) std::uint8_t shared[512];
  const unsigned lane = threadIdx.x;
  for (unsigned i = 0; i < 16; ++i) shared[16 * lane + i] = 0xee;
  __syncwarp();
  const std::uint32_t to = ptx::shared_address(shared) + 16 * lane;
  const bool there = !zeros || lane % 2 == 0;
  if (bytes == 4) ptx::copy_async_or_zero<4>(to, from + 16 * lane, there);
  if (bytes == 8) ptx::copy_async_or_zero<8>(to, from + 16 * lane, there);
  if (bytes == 16 && zeros) ptx::copy_async_or_zero<16>(to, from + 16 * lane, there);
  if (bytes == 16 && !zeros) ptx::copy_async_16(to, from + 16 * lane);
  ptx::commit_group();
  ptx::commit_group();  // an empty one may stay in flight
  ptx::wait_group(1);
  __syncwarp();
  for (unsigned i = 0; i < 16; ++i) out[16 * lane + i] = shared[16 * lane + i];
}

__global__ void copy_if_kernel(bool through_registers, bool some_stay, bool zeros, const std::uint8_t* from,
                               std::uint8_t* out) {
  __shared__ __align__(16) std::uint8_t shared[512];
  const unsigned lane = threadIdx.x;
  for (unsigned i = 0; i < 16; ++i) shared[16 * lane + i] = 0xee;
  __syncwarp();
  const std::uint32_t to = ptx::shared_address(shared) + 16 * lane;
  const bool go = !some_stay || lane % 3 != 0, there = !zeros || lane % 2 == 0;
  const std::uint8_t* of_lane = go && there ? from + 16 * lane : nullptr;  // what may not be read has no address
  if (through_registers)
    ptx::copy_16_if(go, to, of_lane, there);
  else
    ptx::copy_async_16_if(go, to, of_lane, there);
  ptx::commit_group();
  ptx::wait_group(0);
  __syncwarp();
  for (unsigned i = 0; i < 16; ++i) out[16 * lane + i] = shared[16 * lane + i];
}

__global__ void store_kernel(int bytes, const std::uint8_t* from, std::uint8_t* out) {
  __shared__ __align__(16) std::uint8_t shared[512];
  const unsigned lane = threadIdx.x;
  const std::uint32_t at = ptx::shared_address(shared) + 16 * lane;
  for (unsigned i = 0; i < 16; i += 4)
    ptx::store_shared_32(at + i, *reinterpret_cast<const std::uint32_t*>(from + 16 * lane + i));
  if (bytes == 2) ptx::store_shared_16(at, *reinterpret_cast<const std::uint16_t*>(from + 16 * lane));
  __syncwarp();
  const bool there = lane % 2 == 0;
  if (bytes == 2) ptx::store_from_shared<2>(out + 16 * lane, at, there);
  if (bytes == 4) ptx::store_from_shared<4>(out + 16 * lane, at, there);
  if (bytes == 8) ptx::store_from_shared<8>(out + 16 * lane, at, there);
  if (bytes == 16) ptx::store_from_shared<16>(out + 16 * lane, at, there);
}

}  // namespace

PerLane<4> run_ldmatrix(const std::vector<std::uint16_t>& tile, const PerLane<2>& cells, bool transposed) {
  const Mirror<std::uint16_t> in(tile.data(), tile.size());
  const Mirror<std::uint32_t> at(cells[0].data(), 64);
  PerLane<4> result{};
  const Mirror<std::uint32_t> out(result[0].data(), 128);
  ldmatrix_kernel<<<1, 32>>>(in.data(), at.data(), transposed, out.data());
  out.read(result[0].data());
  return result;
}

PerLane<4> run_mma(Dtype dtype, const PerLane<4>& a, const PerLane<2>& b, const PerLane<4>& c) {
  const Mirror<std::uint32_t> a_mirror(a[0].data(), 128), b_mirror(b[0].data(), 64), c_mirror(c[0].data(), 128);
  if (dtype == Dtype::fp16)
    mma_kernel<Dtype::fp16><<<1, 32>>>(a_mirror.data(), b_mirror.data(), c_mirror.data());
  else
    mma_kernel<Dtype::bf16><<<1, 32>>>(a_mirror.data(), b_mirror.data(), c_mirror.data());
  PerLane<4> result{};
  c_mirror.read(result[0].data());
  return result;
}

std::vector<std::uint32_t> run_function(Function f, const std::vector<float>& x) {
  std::vector<float> padded = x;
  padded.resize((x.size() + 31) / 32 * 32);
  std::vector<std::uint32_t> result(padded.size());
  const Mirror<float> in(padded.data(), padded.size());
  const Mirror<std::uint32_t> out(result.data(), result.size());
  function_kernel<<<static_cast<unsigned>(padded.size() / 32), 32>>>(f, in.data(), out.data());
  out.read(result.data());
  result.resize(x.size());
  return result;
}

std::vector<std::uint8_t> run_copy(int bytes, bool zeros, const std::vector<std::uint8_t>& from) {
  std::vector<std::uint8_t> result(512);
  const Mirror<std::uint8_t> in(from.data(), from.size()), out(result.data(), result.size());
  copy_kernel<<<1, 32>>>(bytes, zeros, in.data(), out.data());
  out.read(result.data());
  return result;
}

std::vector<std::uint8_t> run_copy_if(bool through_registers, bool some_stay, bool zeros,
                                      const std::vector<std::uint8_t>& from) {
  std::vector<std::uint8_t> result(512);
  const Mirror<std::uint8_t> in(from.data(), from.size()), out(result.data(), result.size());
  copy_if_kernel<<<1, 32>>>(through_registers, some_stay, zeros, in.data(), out.data());
  out.read(result.data());
  return result;
}

std::vector<std::uint8_t> run_store(int bytes, const std::vector<std::uint8_t>& from) {
  std::vector<std::uint8_t> result(512, 0xee);
  const Mirror<std::uint8_t> in(from.data(), from.size()), out(result.data(), result.size());
  store_kernel<<<1, 32>>>(bytes, in.data(), out.data());
  out.read(result.data());
  return result;
}

}  // namespace attest::test
