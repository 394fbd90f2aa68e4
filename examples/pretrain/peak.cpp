// The best of some products.
#include "peak.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "weights.hpp"

namespace pretrain {

double peak_flops(const velo::context& context, element type) {
  constexpr std::int64_t n = 1024;
  const velo::stream_ref stream = context.inline_stream();
  const auto matrix = [&] {
    velo::managed_tensor made = velo::managed_tensor::create(context, dtype_of(type), {n, n});
    std::memset(made.view().data<std::byte>(), 0,
                static_cast<std::size_t>(n * n) * element_bytes(type));
    return made;
  };
  const velo::managed_tensor a = matrix(), b = matrix(), c = matrix();
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.dtype = dtype_of(type);
  desc.k = desc.n = n;
  velo::pack packed = velo::pack::create(context, desc);
  packed.update(stream, b.view());

  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  double best = 1e30, spent = 0;
  for (int i = 0; i < 5 || spent < 0.3; ++i) {
    const auto start = clock::now();
    velo::matmul(stream, velo::matmul_args().a(a.view()).packed(packed).c(c.view()));
    const auto end = clock::now();
    best = std::min(best, std::chrono::duration<double>(end - start).count());
    spent = std::chrono::duration<double>(end - begin).count();
    if (spent > 2) break;
  }
  return 2.0 * n * n * n / best;
}

}  // namespace pretrain
