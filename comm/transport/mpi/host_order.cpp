// Splitting a reduction into two, and running both on elements that one rank holds.
#include "comm/transport/mpi/host_order.hpp"

#include <algorithm>

#include "core/index.hpp"
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
  const auto name_of = [&](int rank) -> const std::string& { return names[core::at(rank)]; };
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
  const std::int64_t bytes = core::round_up(n * both.inside.out_size(), 64);
  const auto count = static_cast<std::int64_t>(hosts_.size());
  char* const results = state.scratch.take<char>(static_cast<std::size_t>(count * bytes));
  std::vector<const void*> inside, between;
  for (const host& one : hosts_) {
    inside.clear();
    for (const int rank : one.ranks) inside.push_back(sources[rank]);
    char* const result = results + static_cast<std::int64_t>(between.size()) * bytes;
    both.inside.combine(
        {inside.data(), static_cast<int>(inside.size()), result, n, what.terms.scale, false});
    between.push_back(result);
  }
  both.between.combine({between.data(), static_cast<int>(between.size()), out, n, 1, false,
                        both.between.reducer.shares});
}

bool is_split(const operation& what) noexcept {
  return what.reduces() && (what.terms.reduction != VELO_REDUCE_AVG || is_float(what.terms));
}

two_reductions split(const operation& what, int ranks, const reduction_kernels& kernels) {
  two_reductions both{what, what};
  terms &inside = both.inside.terms, &between = both.between.terms;
  const bool widens = adds(what.terms) && is_float(what.terms) && what.terms.in_bits == 16;
  if (adds(what.terms)) inside.reduction = VELO_REDUCE_SUM;
  inside.out_code = widens ? std::uint8_t{VELO_DTYPE_FLOAT} : inside.in_code;
  inside.out_bits = widens ? std::uint8_t{32} : inside.in_bits;
  both.inside.reducer.kernel = kernel_for(inside, kernels);
  between.in_code = inside.out_code;
  between.in_bits = inside.out_bits;
  between.scale = 1;
  both.between.reducer.shares = ranks;
  const bool narrows = widens && between.out_bits == 16,
             averages = between.reduction == VELO_REDUCE_AVG;
  both.between.reducer.kernel =
      narrows ? kernels.narrow[averages][between.out_code == VELO_DTYPE_BFLOAT]
              : kernel_for(between, kernels);
  return both;
}

}  // namespace velo::comm
