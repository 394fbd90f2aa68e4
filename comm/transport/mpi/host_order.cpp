// A reduction in two, and both on what one rank has of all.
#include "comm/transport/mpi/host_order.hpp"

#include <algorithm>

#include "core/round_up.hpp"

namespace velo::comm {
namespace {

bool is_float(const terms& what) {
  return what.in_code == VELO_DTYPE_FLOAT || what.in_code == VELO_DTYPE_BFLOAT;
}

bool adds(const terms& what) {
  return what.reduction == VELO_REDUCE_SUM || what.reduction == VELO_REDUCE_AVG;
}

}  // namespace

host_order::host_order(const std::vector<std::string>& names) : names_(names.size()) {
  const auto name_of = [&](int rank) -> const std::string& {
    return names[static_cast<std::size_t>(rank)];
  };
  for (int rank = 0; rank < static_cast<int>(names.size()); ++rank) {
    auto at = std::find_if(hosts_.begin(), hosts_.end(),
                           [&](const host& one) { return name_of(one.ranks[0]) == name_of(rank); });
    if (at == hosts_.end()) at = hosts_.insert(at, host());
    at->is_block = at->ranks.empty() || (at->is_block && at->ranks.back() == rank - 1);
    at->ranks.push_back(rank);
  }
}

std::size_t host_order::host_of(int rank) const noexcept {
  std::size_t at = 0;
  while (!std::binary_search(hosts_[at].ranks.begin(), hosts_[at].ranks.end(), rank)) ++at;
  return at;
}

void host_order::combine(const operation& what, const void* const* sources, void* out,
                         std::int64_t n, core::execution& state) const {
  const two_reductions both = split(what, static_cast<int>(names_), reductions_for(state.isa));
  const std::int64_t bytes = core::round_up(n * both.near.out_size(), 64);
  const auto count = static_cast<std::int64_t>(hosts_.size());
  char* const results = state.scratch.take<char>(static_cast<std::size_t>(count * bytes));
  std::vector<const void*> near, far;
  for (const host& one : hosts_) {
    near.clear();
    for (const int rank : one.ranks) near.push_back(sources[rank]);
    char* const result = results + static_cast<std::int64_t>(far.size()) * bytes;
    both.near.combine(
        {near.data(), static_cast<int>(near.size()), result, n, what.terms.scale, false});
    far.push_back(result);
  }
  both.far.combine({far.data(), static_cast<int>(far.size()), out, n, 1, false, both.far.shares});
}

bool is_split(const operation& what) noexcept {
  return what.reduces() && (what.terms.reduction != VELO_REDUCE_AVG || is_float(what.terms));
}

two_reductions split(const operation& what, int ranks, const reduction_kernels& kernels) {
  two_reductions both{what, what};
  terms &near = both.near.terms, &far = both.far.terms;
  const bool widens = adds(what.terms) && is_float(what.terms) && what.terms.in_bits == 16;
  if (adds(what.terms)) near.reduction = VELO_REDUCE_SUM;
  near.out_code = widens ? std::uint8_t{VELO_DTYPE_FLOAT} : near.in_code;
  near.out_bits = widens ? std::uint8_t{32} : near.in_bits;
  both.near.kernel = kernel_for(near, kernels);
  far.in_code = near.out_code, far.in_bits = near.out_bits;
  far.scale = 1;
  both.far.shares = ranks;
  const bool narrows = widens && far.out_bits == 16, averages = far.reduction == VELO_REDUCE_AVG;
  both.far.kernel = narrows ? kernels.narrow[averages][far.out_code == VELO_DTYPE_BFLOAT]
                            : kernel_for(far, kernels);
  return both;
}

}  // namespace velo::comm
