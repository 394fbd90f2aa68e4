// Texts of terms.
#include "comm/operation/terms.hpp"

#include <iterator>
#include <utility>

#include "core/failure.hpp"
#include "core/tensor/dtype.hpp"
#include "velo/group.h"

namespace velo::comm {
namespace {

constexpr const char* others[] = {"send",   "receive",  "exchange", "create_part",
                                  "shrink", "dispatch", "combine"};
constexpr int weighted_step = 0x100;
constexpr const char* reductions[] = {"sum", "avg", "min", "max", "custom"};

// "weighted combine (all_to_all of 64 float32)"
std::string text_of_step(terms step) {
  const int of = std::exchange(step.root, std::uint16_t{0});
  step.counts = 0;
  const std::string whole = call_kind::numbered(of & ~weighted_step).name();
  return ((of & weighted_step) != 0 ? "weighted " : "") + whole + " (" + step.text() + ")";
}

// " to rank 2", " from rank 0"; empty if the call has no root.
std::string text_of_root(call_kind kind, int root) {
  const root_role role = kind.is_collective() ? kind.traits().root : root_role::none;
  if (kind == other_call::send || role == root_role::takes)
    return " to rank " + std::to_string(root);
  if (kind == other_call::receive || role == root_role::gives)
    return " from rank " + std::to_string(root);
  return "";
}

}  // namespace

const char* call_kind::name() const noexcept {
  if (is_collective()) return traits().name;
  const std::size_t other = number_ - collective_count;
  return other < std::size(others) ? others[other] : "an unknown operation";
}

std::uint16_t step_of(other_call whole, bool weighted) noexcept {
  return static_cast<std::uint16_t>(call_kind(whole).number() | (weighted ? weighted_step : 0));
}

std::uint64_t hash_of(const std::vector<block>& blocks) noexcept {
  std::uint64_t all = blocks.size();
  for (const block& one : blocks) all = mixed(all + static_cast<std::uint64_t>(one.count));
  return all;
}

std::string terms::text() const {
  if (kind == collective::all_to_all && root != 0) return text_of_step(*this);
  std::string all = kind.name();
  if (kind == collective::barrier) return counts == of_measure ? "measurement" : all;
  if (kind == other_call::exchange) return all + " of " + std::to_string(count) + " messages";
  if (kind == other_call::create_part || kind == other_call::shrink)
    return all + " of " + std::to_string(count) + " ranks";
  all += " of " + std::to_string(count) + " " + core::dtype_name(in_dtype()).buffer;
  if (out_code != in_code || out_bits != in_bits)
    all += std::string(" to ") + core::dtype_name(out_dtype()).buffer;
  all += text_of_root(kind, root);
  if (kind.is_collective() && kind.traits().reduces) {
    all += std::string(", ") +
           (reduction < std::size(reductions) ? reductions[reduction] : "unknown reduction");
    if (scale != 1) all += core::text(" scaled by %g", scale);
  }
  if (counts > 1) all += core::text(", counts %016llx", static_cast<unsigned long long>(counts));
  return all;
}

}  // namespace velo::comm
