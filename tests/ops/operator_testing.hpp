// The tools of operator tests: tensors that own their memory, contexts that force a kernel, and
// comparisons that name the first difference.
//
// Expected values come from plain double-precision formulas in the test itself, never from velo.
// `for_each_kernel` runs a check under every candidate of an operator in turn, so that each kernel
// is tested whatever dispatch prefers.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/handle/handle.hpp"
#include "core/simd/scalar.hpp"
#include "core/stream/stream.hpp"
#include "ops/operator/registry.hpp"
#include "tests/context.hpp"
#include "tests/dtype_of.hpp"
#include "tests/ops/compared_rows.hpp"
#include "tests/random.hpp"
#include "tests/record.hpp"
#include "tests/refusals.hpp"
#include "tests/structs.hpp"
#include "velo/velo.h"

namespace velo::testing {

inline double value_of(float x) {
  return static_cast<double>(x);
}
inline double value_of(double x) {
  return x;
}
inline double value_of(simd::bf16 x) {
  return static_cast<double>(simd::to_float(x));
}
inline double value_of(simd::f16 x) {
  return static_cast<double>(simd::to_float(x));
}

// A compact tensor with its memory, with guards on both sides: a write outside it fails the test in
// `intact`.
template <class T>
class array {
 public:
  explicit array(std::vector<std::int64_t> shape) : shape_(std::move(shape)) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape_) count *= size;
    size_ = static_cast<std::size_t>(count);
    memory_.assign(size_ * sizeof(T) + 2 * guard + 64, guard_byte);
    const auto first = reinterpret_cast<std::uintptr_t>(memory_.data()) + guard;
    start_ = reinterpret_cast<T*>(memory_.data() + guard + (64 - first % 64) % 64);
  }
  array(array&&) = delete;

  T* data() { return start_; }
  const T* data() const { return start_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  double at(std::size_t i) const { return value_of(data()[i]); }
  const velo_tensor* tensor() {
    view_ = {data(),
             {VELO_DEVICE_CPU, 0},
             static_cast<std::int32_t>(shape_.size()),
             dtype_of<T>(),
             shape_.data(),
             nullptr,
             0};
    return &view_;
  }
  bool intact() const {
    const auto untouched = [](unsigned char byte) { return byte == guard_byte; };
    const auto* first = reinterpret_cast<const unsigned char*>(start_);
    return std::all_of(memory_.data(), first, untouched) &&
           std::all_of(first + size_ * sizeof(T), memory_.data() + memory_.size(), untouched);
  }
  // Uniform in [-scale, scale], the same for a seed on every machine.
  array& fill(std::uint64_t seed, double scale = 1) {
    cheap_random64 draw(seed * 0x9e3779b97f4a7c15u + 1);
    for (T *x = start_, *end = start_ + size_; x != end; ++x)
      simd::assign(*x, scale * (static_cast<double>(draw() >> 11) * 0x1p-52 - 1));
    return *this;
  }
  std::vector<unsigned char> bytes() const {
    const auto* first = reinterpret_cast<const unsigned char*>(start_);
    return {first, first + size_ * sizeof(T)};
  }

 private:
  static constexpr std::size_t guard = 128;
  static constexpr unsigned char guard_byte = 0xa5;
  std::vector<std::int64_t> shape_;
  std::size_t size_ = 0;
  std::vector<unsigned char> memory_;
  T* start_ = nullptr;
  velo_tensor view_{};
};

// A context with its inline stream, closed at the end of its scope.
class session {
 public:
  explicit session(int threads = 1, const std::string& config_json = "",
                   const velo_allocator* allocator = nullptr)
      : context_(desc_of(threads, config_json, allocator)) {}
  velo_context context() const { return context_; }
  velo_stream stream() const { return context_.inline_stream(); }
  velo_stream new_stream() const { return context_.new_stream(); }  // it ends with the session
  // The ISA of this machine, or the lower one of VELO_ISA.
  core::isa isa() const { return core::resolve<core::stream>(stream(), "stream").owner().isa(); }

 private:
  static velo_context_desc desc_of(int threads, const std::string& config_json,
                                   const velo_allocator* allocator) {
    velo_context_desc desc = context_desc(threads, allocator);
    desc.config_json = config_json.empty() ? nullptr : config_json.c_str();
    return desc;
  }

  live_context context_;
};

// Runs check(session, kernel) with every candidate of `op` that this machine and VELO_ISA allow,
// each forced in turn.
inline void for_each_named_kernel(
    const char* op, const std::function<void(session&, const std::string& kernel)>& check,
    int threads = 1) {
  ops::op_id id{};
  REQUIRE(ops::find_op(op, id));
  const ops::kernel_list& kernels = *ops::definition_of(id).kernels;
  for (int i = 0; i < kernels.count; ++i) {
    const ops::kernel_entry& kernel = kernels.entries[i];
    session forced(threads, std::string("{\"kernel.") + op + "\": \"" + kernel.name + "\"}");
    if (kernel.isa > forced.isa()) continue;
    INFO("kernel " << kernel.name);
    check(forced, kernel.name);
  }
}

inline void for_each_kernel(const char* op, const std::function<void(session&)>& check,
                            int threads = 1) {
  for_each_named_kernel(
      op, [&](session& s, const std::string&) { check(s); }, threads);
}

// Runs an operator and requires success, with the record's sentence if it fails.
#define VELO_RUN(call)                                   \
  do {                                                   \
    const velo_status run_status = (call);               \
    char run_text[1024] = "";                            \
    velo_error_text(run_text, sizeof run_text, nullptr); \
    INFO((run_status == VELO_OK ? "" : run_text));       \
    REQUIRE(run_status == VELO_OK);                      \
  } while (false)

// |got - truth| <= absolute + relative * |truth| everywhere, and half of a denormal of float16;
// names the first place where it is not, NaN matching NaN.
template <class T>
void require_close(const array<T>& got, const std::vector<double>& truth, double relative,
                   double absolute) {
  REQUIRE(got.size() == truth.size());
  if (std::is_same_v<T, simd::f16>) absolute += 0x1p-25;
  const double* want = truth.data();
  for (std::size_t i = 0, count = truth.size(); i < count; ++i) {
    const double g = got.at(i), t = want[i];
    if (std::isnan(t) ? std::isnan(g)
                      : g == t || std::abs(g - t) <= absolute + relative * std::abs(t))
      continue;
    INFO("element " << i << ": got " << g << ", truth " << t);
    FAIL("outside the bound");
  }
  CHECK(got.intact());
}

// Tries rows of refusals on an operator, and that none of them writes to `output`.
template <class Args, class T>
void check_refusals(session& s, velo_status (*op)(velo_stream, const Args*), const Args& valid,
                    const array<T>& output, std::initializer_list<refusal<Args>> rows) {
  const std::vector<unsigned char> before = output.bytes();
  const auto call = [&](const Args& args) {
    const velo_status status = op(s.stream(), &args);
    CHECK(output.bytes() == before);
    return status;
  };
  check_refusals(valid, call, rows);
}

// The change of a row that gives a field a changed copy of its tensor.
template <class Args, class Change>
std::function<void(Args&)> changed(const velo_tensor* Args::*field, const Change& change) {
  return [field, change, copy = velo_tensor{}](Args& args) mutable {
    copy = *(args.*field);
    change(copy);
    args.*field = &copy;
  };
}

// Checks a gradient against the slope of objective() at every element of x.
template <class Objective>
void check_slope(array<float>& x, const array<float>& gradient, const Objective& objective,
                 double margin = 2e-3) {
  constexpr float step = 1e-2f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float kept = x[i];
    x[i] = kept + step;
    const double above = objective();
    x[i] = kept - step;
    const double below = objective();
    x[i] = kept;
    CHECK(gradient.at(i) == Approx((above - below) / (2 * step)).margin(margin));
  }
}

// The relative rounding of one stored element: half an ulp, 2 ulp of a float32.
template <class T>
constexpr double rounding() {
  return sizeof(T) == 4 ? 0x1p-22 : std::is_same_v<T, simd::f16> ? 0x1p-11 : 0x1p-8;
}

}  // namespace velo::testing
