// Sums and averages of subnormal numbers beside those of normal ones.
//
// Two ranks, each a thread, all_reduce of 1 MiB; random subnormal and normal numbers alternate call
// by call. Small gradients are such numbers. Some processors multiply and divide subnormal numbers
// 100 cycles longer, none adds them longer: a sum must not multiply.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bench/comm/scenes.hpp"
#include "bench/harness/protocol.hpp"
#include "bench/harness/require.hpp"
#include "velo/velo.h"

namespace velo::bench {
namespace {

constexpr int ranks = 2, rounds = 400;
constexpr std::size_t bytes = 1 << 20;

// Elements as bits, in words of 16 or 32: any sign and fraction, with the exponent 0, or that of 1.
std::vector<unsigned char> numbers(bool subnormal, bool narrow, std::uint32_t state) {
  std::vector<unsigned char> all(bytes);
  const std::size_t size = narrow ? 2 : 4;
  for (std::size_t i = 0; i < bytes; i += size) {
    state = state * 1664525u + 1013904223u;
    std::uint32_t word = (state & 0x807fffffu) | (subnormal ? 0 : 0x3f800000u);
    if (narrow) word >>= 16;
    std::memcpy(all.data() + i, &word, size);
  }
  return all;
}

result row_of(velo_reduce_op op, bool narrow) {
  velo_context contexts[ranks] = {};
  velo_stream streams[ranks] = {};
  velo_group groups[ranks] = {};
  for (int r = 0; r < ranks; ++r) {
    velo_context_desc one = VELO_CONTEXT_DESC_INIT;
    one.threads = 1;
    require(velo_context_create(&one, &contexts[r]));
    require(velo_context_stream(contexts[r], &streams[r]));
  }
  require(velo_group_create_local(contexts, ranks, nullptr, groups));
  std::vector<double> took[2][ranks];  // of subnormal numbers, of normal ones
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      const auto seed = static_cast<std::uint32_t>(r + 1);
      std::vector<unsigned char> in[] = {numbers(true, narrow, seed), numbers(false, narrow, seed)};
      std::vector<unsigned char> out(bytes);
      const velo_dtype type =
          narrow ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1} : velo_dtype{VELO_DTYPE_FLOAT, 32, 1};
      const std::int64_t count = static_cast<std::int64_t>(bytes) / (type.bits / 8);
      velo_reduction how = VELO_REDUCTION_INIT;
      how.op = op;
      for (int round = 0; round < rounds; ++round)
        for (int kind = 0; kind < 2; ++kind) {
          const velo_tensor x{in[kind].data(), {VELO_DEVICE_CPU, 0}, 1, type, &count, nullptr, 0},
              y{out.data(), {VELO_DEVICE_CPU, 0}, 1, type, &count, nullptr, 0};
          require(velo_group_barrier(streams[r], groups[r]));
          const double begin = now();
          require(velo_group_all_reduce(streams[r], groups[r], &how, &x, &y));
          took[kind][r].push_back(now() - begin);
        }
    });
  for (std::thread& one : threads) one.join();
  for (const velo_context one : contexts) velo_context_destroy(one);
  for (auto& kind : took)
    for (std::size_t i = 0; i < kind[0].size(); ++i) kind[0][i] = std::max(kind[0][i], kind[1][i]);
  result row;
  row.name = op == VELO_REDUCE_SUM ? "subnormal sums" : "subnormal averages";
  row.shape = "1 MiB";
  row.residency = "local";
  row.unit = "GB/s";
  row.type = narrow ? dtype::bf16 : dtype::f32;
  row.threads = ranks;
  const double mine = quantile(took[0][0], 0.25), theirs = quantile(took[1][0], 0.25);
  row.rates = {static_cast<double>(bytes) / mine / 1e9};
  row.limits = {0};
  row.p25s = {mine};
  row.mins = {*std::min_element(took[0][0].begin(), took[0][0].end())};
  row.add_peer("normal numbers", static_cast<double>(bytes) / theirs / 1e9, theirs / mine);
  row.calls = rounds;
  return row;
}

}  // namespace

std::vector<result> subnormal_rows() {
  std::vector<result> all;
  for (const velo_reduce_op op : {VELO_REDUCE_SUM, VELO_REDUCE_AVG})
    for (const bool narrow : {false, true}) all.push_back(row_of(op, narrow));
  return all;
}

}  // namespace velo::bench
