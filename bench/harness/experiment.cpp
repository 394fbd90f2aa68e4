// Fills tensors by repeating a short random stretch: 65537 elements, prime, so that no row repeats
// another; a memcpy is quicker than a generator, and the values matter only in not being alike.
#include "bench/harness/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

namespace velo::bench {
namespace {

constexpr std::int64_t stretch = 65537;

velo_dtype velo_type(dtype type) {
  switch (type) {
    case dtype::f32:
      return {VELO_DTYPE_FLOAT, 32, 1};
    case dtype::bf16:
      return {VELO_DTYPE_BFLOAT, 16, 1};
    case dtype::f16:
      return {VELO_DTYPE_FLOAT, 16, 1};
    case dtype::i64:
      return {VELO_DTYPE_INT, 64, 1};
    default:
      return {VELO_DTYPE_FLOAT, 64, 1};
  }
}

context make_context(int threads) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = threads;
  return context::create(desc);
}

void repeat(const tensor& filled) {
  auto* bytes = static_cast<char*>(filled.data());
  const std::int64_t all = filled.count() * bytes_of(filled.type());
  const std::int64_t unit = stretch * bytes_of(filled.type());
  for (std::int64_t at = unit; at < all; at += unit)
    std::memcpy(bytes + at, bytes, static_cast<std::size_t>(std::min(unit, all - at)));
}

}  // namespace

host::host(int threads)
    : owner(make_context(threads)), stream(owner.inline_stream()), threads(threads) {}

bool has_operator(const std::string& name) {
  const std::int64_t count = op_count();
  for (std::int64_t i = 0; i < count; ++i)
    if (name == static_cast<const char*>(op_name(i))) return true;
  return false;
}

tensor::tensor(dtype type, std::vector<std::int64_t> shape) : type_(type) {
  for (std::int64_t size : shape) count_ *= size;
  memory_ = buffer(static_cast<std::size_t>(std::max<std::int64_t>(count_, 1) * bytes_of(type)));
  const auto rank = static_cast<std::int32_t>(shape.size());
  view_ = tensor_view(memory_.data(), velo_type(type), sizes(shape.data(), rank));
}

double tensor::at(std::int64_t index) const {
  switch (type_) {
    case dtype::f32:
      return memory_.as<float>()[index];
    case dtype::bf16:
      return widen(memory_.as<std::uint16_t>()[index]);
    case dtype::f16:
      return widen_f16(memory_.as<std::uint16_t>()[index]);
    case dtype::i64:
      return static_cast<double>(memory_.as<std::int64_t>()[index]);
    default:
      return memory_.as<double>()[index];
  }
}

void tensor::set(std::int64_t index, double value) {
  switch (type_) {
    case dtype::f32:
      memory_.as<float>()[index] = static_cast<float>(value);
      break;
    case dtype::bf16:
      memory_.as<std::uint16_t>()[index] = narrow(static_cast<float>(value));
      break;
    case dtype::f16:
      memory_.as<std::uint16_t>()[index] = narrow_f16(value);
      break;
    case dtype::i64:
      memory_.as<std::int64_t>()[index] = static_cast<std::int64_t>(value);
      break;
    default:
      memory_.as<double>()[index] = value;
  }
}

tensor& experiment::zeros(dtype type, std::vector<std::int64_t> shape) {
  tensors_.push_back(std::make_unique<tensor>(type, std::move(shape)));
  return *tensors_.back();
}

tensor& experiment::random(dtype type, std::vector<std::int64_t> shape, double scale) {
  tensor& made = zeros(type, std::move(shape));
  std::mt19937 generator(static_cast<std::mt19937::result_type>(tensors_.size()));
  std::uniform_real_distribution<double> values(-scale, scale);
  for (std::int64_t i = 0; i < std::min(stretch, made.count()); ++i) made.set(i, values(generator));
  repeat(made);
  return made;
}

tensor& experiment::indices(std::vector<std::int64_t> shape, std::int64_t below) {
  tensor& made = zeros(dtype::i64, std::move(shape));
  std::mt19937_64 generator(1);
  std::uniform_int_distribution<std::int64_t> values(0, below - 1);
  for (std::int64_t i = 0; i < made.count(); ++i)
    made.memory().as<std::int64_t>()[i] = values(generator);
  return made;
}

void experiment::check(std::function<double()> error, double tolerance) {
  if (sets_ > 1) return;
  error_ = std::move(error);
  tolerance_ = tolerance;
}

void experiment::call(const std::string& who, bound_call bound) {
  if (!bound) return;
  for (auto& [name, calls] : calls_)
    if (name == who) {
      calls.push_back(std::move(bound));
      return;
    }
  calls_.push_back({who, {std::move(bound)}});
}

bound_call experiment::bind(const std::string& name, const std::vector<named_value>& values) const {
  // A named value borrows its tensor: the views are kept beside the values.
  struct binding {
    std::string name;
    std::vector<tensor_view> views;
    std::vector<named_value> values;
  };
  auto bound = std::make_shared<binding>(binding{name, {}, values});
  bound->views.reserve(values.size());
  for (named_value& each : bound->values)
    if (each.value.kind == VELO_VALUE_TENSOR) {
      bound->views.emplace_back(*each.value.as.tensor);
      each.value.as.tensor = bound->views.back().get();
    }
  return [stream = velo_->stream, bound] {
    const velo_status status = velo_op_call(stream.get(), bound->name.c_str(), bound->values.data(),
                                            static_cast<std::int64_t>(bound->values.size()));
    if (status != VELO_OK) throw velo::error::last(status);
  };
}

void experiment::velo(const std::string& name, const std::vector<named_value>& values) {
  call("velo", bind(name, values));
}

std::vector<candidate> experiment::candidates() const {
  std::vector<candidate> all;
  for (const auto& [name, calls] : calls_)
    all.push_back({name, [&calls = calls](int set) { calls[static_cast<std::size_t>(set)](); }});
  return all;
}

limit product_limit(const machine& m, dtype type) {
  if (type != dtype::bf16) return limit::fma_f32;  // f16 is widened
  return m.amx ? limit::amx_bf16 : m.avx512_bf16 ? limit::dot_bf16 : limit::fma_f32;
}

double sampled_error(std::int64_t count, const std::function<double(std::int64_t)>& got,
                     const std::function<double(std::int64_t)>& want) {
  constexpr std::int64_t samples = 997;
  const std::int64_t step = std::max<std::int64_t>(1, count / samples);
  double largest = 0, difference = 0;
  for (std::int64_t i = 0; i < count; i += step) {
    const double truth = want(i), value = got(i);
    largest = std::max(largest, std::abs(truth));
    difference = std::max(difference, std::isfinite(value) ? std::abs(value - truth) : HUGE_VAL);
  }
  return difference / (largest > 0 ? largest : 1);
}

double default_tolerance(dtype type) {
  return type == dtype::f32 ? 1e-4 : type == dtype::f16 ? 2e-3 : 2e-2;
}

}  // namespace velo::bench
