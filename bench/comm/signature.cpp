// The cost of a call's signature, by which ranks find that others called something else.
#include <algorithm>
#include <chrono>

#include "bench/comm/scenes.hpp"
#include "comm/operation/operation.hpp"

namespace velo::bench {

std::vector<result> signature_rows() {
  constexpr int blocks = 50, calls = 20000;
  std::vector<double> seconds;
  comm::terms what;
  what.kind = comm::collective::all_reduce;
  std::uint64_t sum = 0;
  for (int block = 0; block < blocks; ++block) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      asm volatile("" : "+m"(what));  // terms that the compiler does not know
      sum += what.signature();
    }
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls);
  }
  volatile std::uint64_t kept = sum;
  static_cast<void>(kept);
  result row;
  row.name = "signature";
  row.shape = "";
  row.residency = "";
  row.unit = "1/ns";
  row.p25s = {median(seconds)};
  row.mins = {*std::min_element(seconds.begin(), seconds.end())};
  row.rates = {1e-9 / row.p25s[0]};
  row.limits = {0};
  row.calls = blocks * calls;
  return {row};
}

}  // namespace velo::bench
