// Signatures and texts of operations, and the place of their dtypes in the table of kernels.
#include "comm/group/operation.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/handle/failure.hpp"
#include "core/handle/host_call.hpp"

namespace velo::comm {
namespace {

constexpr const char* others[] = {"send",   "receive",  "exchange", "create_part",
                                  "shrink", "dispatch", "combine"};
constexpr int weighted_step = 0x100;
constexpr const char* reductions[] = {"sum", "avg", "min", "max", "custom"};

// -1: reductions do not know it.
int element_of(std::uint8_t code, std::uint8_t bits) {
  struct known {
    std::uint8_t code, bits;
    element as;
  };
  constexpr known table[] = {
      {VELO_DTYPE_FLOAT, 32, element::f32}, {VELO_DTYPE_FLOAT, 64, element::f64},
      {VELO_DTYPE_FLOAT, 16, element::f16}, {VELO_DTYPE_BFLOAT, 16, element::bf16},
      {VELO_DTYPE_INT, 8, element::i8},     {VELO_DTYPE_INT, 32, element::i32},
      {VELO_DTYPE_INT, 64, element::i64},   {VELO_DTYPE_UINT, 8, element::u8}};
  for (const known& one : table)
    if (one.code == code && one.bits == bits) return static_cast<int>(one.as);
  return -1;
}

bool is_float(int of) {
  return of >= 0 && of <= static_cast<int>(element::bf16);
}

[[noreturn]] void refuse_scale(double scale) {
  core::fail(VELO_ERR_ARGUMENT, "reduction.scale", "1 where no floating-point numbers are added",
             core::text("%g", scale));
}

// "weighted combine (all_to_all of 64 float32)"
std::string text_of_step(terms step) {
  const int of = std::exchange(step.root, std::uint16_t{0});
  step.counts = 0;
  const std::string whole = name_of(static_cast<collective>(of & ~weighted_step));
  return ((of & weighted_step) != 0 ? "weighted " : "") + whole + " (" + step.text() + ")";
}

// Elements of any dtype, which stay of it.
void require_custom(const terms& what) {
  if (what.in_code != what.out_code || what.in_bits != what.out_bits)
    core::fail(VELO_ERR_DTYPE, "out", name_of_dtype(what.in_code, what.in_bits).c_str(),
               name_of_dtype(what.out_code, what.out_bits).c_str());
  if (what.scale != 1) refuse_scale(what.scale);
}

}  // namespace

// Terms come from peers, too: a number that none of them knows has a text.
const char* name_of(collective kind) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  if (number < collective_count) return collectives[number].name;
  const std::size_t other = number - collective_count;
  return other < std::size(others) ? others[other] : "an unknown operation";
}

std::uint16_t step_of(collective whole, bool weighted) noexcept {
  return static_cast<std::uint16_t>(static_cast<int>(whole) | (weighted ? weighted_step : 0));
}

std::string name_of_dtype(std::uint8_t code, std::uint8_t bits) {
  const char* kind = code == VELO_DTYPE_INT      ? "int"
                     : code == VELO_DTYPE_UINT   ? "uint"
                     : code == VELO_DTYPE_FLOAT  ? "float"
                     : code == VELO_DTYPE_BFLOAT ? "bfloat"
                     : code == VELO_DTYPE_BOOL   ? "bool"
                                                 : "dtype ";
  return kind + std::to_string(bits);
}

std::uint64_t hash_of(const std::vector<part>& parts) noexcept {
  std::uint64_t all = parts.size();
  for (const part& one : parts) all = mixed(all + static_cast<std::uint64_t>(one.count));
  return all;
}

std::string terms::text() const {
  if (kind == collective::all_to_all && root != 0) return text_of_step(*this);
  std::string all = name_of(kind);
  if (kind == collective::barrier) return counts == of_measure ? "measurement" : all;
  if (kind == collective::exchange) return all + " of " + std::to_string(count) + " messages";
  if (kind == collective::create_part || kind == collective::shrink)
    return all + " of " + std::to_string(count) + " ranks";
  all += " of " + std::to_string(count) + " " + name_of_dtype(in_code, in_bits);
  if (out_code != in_code || out_bits != in_bits) all += " to " + name_of_dtype(out_code, out_bits);
  const bool is_collective = static_cast<std::size_t>(kind) < collective_count;
  const collective_traits traits = is_collective ? traits_of(kind) : collective_traits{};
  if (kind == collective::send || traits.root == root_role::takes)
    all += " to rank " + std::to_string(root);
  if (kind == collective::receive || traits.root == root_role::gives)
    all += " from rank " + std::to_string(root);
  if (traits.reduces) {
    all += std::string(", ") +
           (reduction < std::size(reductions) ? reductions[reduction] : "unknown reduction");
    if (scale != 1) all += core::text(" scaled by %g", scale);
  }
  if (counts > 1) all += core::text(", counts %016llx", static_cast<unsigned long long>(counts));
  return all;
}

std::int64_t operation::bytes() const noexcept {
  std::int64_t all = in_bytes();
  for (const message& one : messages) all += one.bytes;
  return all;
}

// By way of a block of its own, since out may be one of the sources.
void operation::combine(const reduction_slice& slice) const {
  if (custom == nullptr) return kernel(slice);
  alignas(64) char total[4096];
  const velo_dtype dtype{terms.in_code, terms.in_bits, 1};
  const std::int64_t size = in_size(), most = static_cast<std::int64_t>(sizeof total) / size;
  for (std::int64_t begin = 0; begin < slice.n; begin += most) {
    const std::int64_t n = std::min(most, slice.n - begin);
    const auto from = [&](int rank) {
      return static_cast<const char*>(slice.in[rank]) + begin * size;
    };
    std::memcpy(total, from(0), static_cast<std::size_t>(n * size));
    core::call_host("reduction.fn", [&] {
      for (int rank = 1; rank < slice.ranks; ++rank) custom(user, from(rank), total, n, &dtype);
    });
    std::memcpy(static_cast<char*>(slice.out) + begin * size, total,
                static_cast<std::size_t>(n * size));
  }
}

reduce_fn kernel_for(const terms& what, const reduction_kernels& kernels) {
  if (what.reduction == VELO_REDUCE_CUSTOM) {
    require_custom(what);
    return nullptr;
  }
  const int in = element_of(what.in_code, what.in_bits);
  const int out = element_of(what.out_code, what.out_bits);
  if (in < 0)
    core::fail(VELO_ERR_DTYPE, "in",
               "float32, float64, float16, bfloat16, int8, int32, int64 or uint8",
               name_of_dtype(what.in_code, what.in_bits).c_str());
  const bool narrow = in == static_cast<int>(element::f16) || in == static_cast<int>(element::bf16);
  const bool widens = narrow && out == static_cast<int>(element::f32);
  if (out != in && !widens)
    core::fail(VELO_ERR_DTYPE, "out",
               core::text("%s%s", name_of_dtype(what.in_code, what.in_bits).c_str(),
                          narrow ? " or float32" : ""),
               name_of_dtype(what.out_code, what.out_bits).c_str());
  const bool adds = what.reduction == VELO_REDUCE_SUM || what.reduction == VELO_REDUCE_AVG;
  if (what.scale != 1 && !(adds && is_float(in))) refuse_scale(what.scale);
  if (widens) return kernels.wide[what.reduction][in == static_cast<int>(element::bf16) ? 1 : 0];
  return kernels.same[what.reduction][in];
}

}  // namespace velo::comm
