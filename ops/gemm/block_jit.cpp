// Block kernels from libxsmm's code generator, kept for the life of the process in one registry.
//
// Only the generator (libxsmmgen) is linked: its run-time library would read environment variables,
// open a file in the temporary folder and keep a table that knows one processor for the whole
// process. Here the target is named per kernel, the key holds it, and the code lies in pages of our
// own: written while they are not executable, executable once they are no longer writable, side by
// side in one reserved range so that a thousand kernels stay a handful of mappings. Invariant: code
// is immutable and never freed; equal shape and target give the same address. Cost: making a kernel
// 10-100 us and a page or two; finding it again a lock and a hash.
#include <libxsmm_cpuid.h>
#include <libxsmm_generator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ops/gemm/block_kernels.hpp"

namespace velo::ops {
namespace {

constexpr std::size_t range_bytes = std::size_t{8}
                                    << 20;  // address space only, until kernels fill it
constexpr std::size_t buffer_bytes = std::size_t{128} << 10;
constexpr std::int64_t largest_leading_dimension =
    1 << 22;  // the code holds 32-bit byte offsets of up to 64 rows

struct key {
  block_shape shape;
  int target;

  bool operator==(const key& o) const {
    return shape.m == o.shape.m && shape.n == o.shape.n && shape.k == o.shape.k &&
           shape.lda == o.shape.lda && shape.ldb == o.shape.ldb && shape.ldc == o.shape.ldc &&
           shape.type == o.shape.type && shape.accumulate == o.shape.accumulate &&
           target == o.target;
  }
};

struct key_hash {
  std::size_t operator()(const key& k) const {
    std::uint64_t h = 0xcbf29ce484222325u;
    for (const std::int64_t v :
         {std::int64_t{k.shape.m}, std::int64_t{k.shape.n}, std::int64_t{k.shape.k}, k.shape.lda,
          k.shape.ldb, k.shape.ldc, std::int64_t{static_cast<int>(k.shape.type)},
          std::int64_t{k.shape.accumulate}, std::int64_t{k.target}}) {
      h = (h ^ static_cast<std::uint64_t>(v)) * 0x9e3779b97f4a7c15u;
      h ^= h >> 29;
    }
    return static_cast<std::size_t>(h);
  }
};

class code_store {
 public:
  // Never destroyed: code may still be called by threads that outlive static destructors.
  static code_store& instance() {
    static code_store* const store = new code_store;
    return *store;
  }

  jit_function find_or_make(const key& k) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [place, fresh] = functions_.try_emplace(k, nullptr);
    if (fresh) place->second = make(k);
    return place->second;
  }

 private:
  jit_function make(const key& k);
  void* publish(const void* code, std::size_t bytes);

  std::mutex mutex_;
  std::unordered_map<key, jit_function, key_hash> functions_;
  std::unique_ptr<unsigned char[]> buffer_;
  unsigned char* next_ = nullptr;  // free part of the reserved range
  unsigned char* end_ = nullptr;
};

jit_function code_store::make(const key& k) {
  const block_shape& s = k.shape;
  const bool bf16 = s.type == block_type::bf16;
  libxsmm_descriptor_blob blob;
  const libxsmm_gemm_descriptor* descriptor = libxsmm_gemm_descriptor_dinit2(
      &blob, bf16 ? LIBXSMM_GEMM_PRECISION_BF16 : LIBXSMM_GEMM_PRECISION_F32,
      LIBXSMM_GEMM_PRECISION_F32, s.n, s.m, s.k, static_cast<int>(s.ldb), static_cast<int>(s.lda),
      static_cast<int>(s.ldc), 1.0, s.accumulate ? 1.0 : 0.0, bf16 ? LIBXSMM_GEMM_FLAG_VNNI_A : 0,
      LIBXSMM_GEMM_PREFETCH_NONE);
  if (descriptor == nullptr) return nullptr;

  if (buffer_ == nullptr) buffer_.reset(new unsigned char[buffer_bytes]);
  libxsmm_ninit =
      2;  // "initialized": the generator then obeys the verbosity, which is 0, and prints nothing
  libxsmm_generated_code code{};
  code.generated_code = buffer_.get();
  code.buffer_size = buffer_bytes;
  code.code_type = 2;  // machine code
  code.arch = static_cast<unsigned>(k.target);
  libxsmm_generator_gemm_kernel(&code, descriptor);
  if (code.last_error != 0 || code.code_size == 0) return nullptr;
  return reinterpret_cast<jit_function>(publish(buffer_.get(), code.code_size));
}

// Copies code into fresh pages and makes them executable; null when the system forbids it.
void* code_store::publish(const void* code, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t size = (bytes + page - 1) / page * page;
  if (static_cast<std::size_t>(end_ - next_) < size) {
    void* range =
        mmap(nullptr, range_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return nullptr;
    next_ = static_cast<unsigned char*>(range);
    end_ = next_ + range_bytes;
  }
  if (mprotect(next_, size, PROT_READ | PROT_WRITE) != 0) return nullptr;
  std::memset(next_, 0xcc, size);  // a jump past the end traps
  std::memcpy(next_, code, bytes);
  if (mprotect(next_, size, PROT_READ | PROT_EXEC) != 0) return nullptr;
  void* start = next_;
  next_ += size;
  return start;
}

}  // namespace

jit_function jit_block(const block_shape& shape, core::isa isa) {
  const bool bf16 = shape.type == block_type::bf16;
  if (bf16 && (isa < core::isa::avx512_bf16 || shape.lda % 2 != 0)) return nullptr;
  if (isa < core::isa::avx2) return nullptr;
  if (shape.lda > largest_leading_dimension || shape.ldb > largest_leading_dimension ||
      shape.ldc > largest_leading_dimension) {
    return nullptr;
  }
  int target = LIBXSMM_X86_AVX512_CORE;
  if (bf16) target = LIBXSMM_X86_AVX512_CPX;
  if (isa == core::isa::avx2) target = LIBXSMM_X86_AVX2;
  return code_store::instance().find_or_make({shape, target});
}

}  // namespace velo::ops
