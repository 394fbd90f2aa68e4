// Every kernel of every operator against the reference over the magnitudes of float32, from
// denormals to the largest: each floating input scaled to a magnitude, filled with it or with any
// up to it, and all inputs at once, real attributes at their least too, wherever the operator's
// spec says that its bound holds. A gradient's inputs from its forward call are computed by that
// call. An input meets every fifth magnitude, the next input those behind them; with the variable
// VELO_MAGNITUDES all (label long). A new operator is tested without a change.
#include <cstdio>
#include <cstdlib>

#include "tests/ops/every_operator/example_variants.hpp"
#include "tests/ops/every_operator/placed_call.hpp"
#include "tests/ops/every_operator/where_to_edit.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

constexpr double magnitudes[] = {
    1.5e-45, 1e-42, 1.2e-38, 1e-34, 1e-30, 1e-25, 1e-20, 1e-19, 1e-18, 1e-17, 1e-15, 1e-12,
    1e-9,    1e-6,  1e-3,    30,    80,    87,    88,    89,    95,    103,   1e3,   1e6,
    1e9,     1e12,  1e15,    1e17,  1e18,  1e19,  1e20,  1e22,  1e25,  1e30,  1e35,  3.3e38};

// Whether an input meets a magnitude in this run.
bool is_met(std::size_t input, std::size_t magnitude) {
  return magnitude % 5 == input % 5 || std::getenv("VELO_MAGNITUDES") != nullptr;
}

// The least and the largest positive number of a floating dtype.
bool is_float16(velo_dtype dtype) {
  return dtype.bits == 16 && dtype.code == VELO_DTYPE_FLOAT;
}
double least_of(velo_dtype dtype) {
  return dtype.bits == 32 ? 0x1p-149 : is_float16(dtype) ? 0x1p-24 : 0x1p-133;
}
double largest_of(velo_dtype dtype) {
  return is_float16(dtype) ? 65504 : 3.3e38;
}

// The change of an input: its elements are scaled so that the largest has a magnitude, or each gets
// that magnitude, or each gets any magnitude down to the least. Signs and zeros stay.
enum class pattern { scaled, filled, mixed };

void change(hosts::array& a, pattern how, double magnitude, double least, random_source& random) {
  const auto count = static_cast<std::size_t>(a.count());
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(element(a, i)));
  for (std::size_t i = 0; i < count; ++i) {
    const double x = element(a, i);
    if (x == 0) continue;
    const double share = static_cast<double>(random.below(1 << 20)) / (1 << 20);
    const double to = how == pattern::scaled   ? magnitude * std::abs(x) / largest
                      : how == pattern::filled ? magnitude
                                               : least * std::pow(magnitude / least, share);
    set_element(a, i, std::copysign(std::clamp(to, least, largest_of(a.dtype)), x));
  }
}

struct changed_call {
  hosts::sample sample;
  std::string what;
};

void set_real(hosts::sample& sample, const std::string& name, double value) {
  std::vector<hosts::attribute>& all = sample.attributes;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const hosts::attribute& a) { return a.name == name; }),
            all.end());
  hosts::attribute a;
  a.name = name, a.kind = VELO_VALUE_FLOAT, a.real = value;
  all.push_back(a);
}

// An operator's calls of some thousand elements, and those with each real attribute at its least.
std::vector<changed_call> calls_of(const std::string& op, const session& s) {
  std::vector<changed_call> out;
  for (const hosts::sample& example : examples_of(op)) {
    if (!example.known.empty()) continue;
    const hosts::sample call = grown(example, s, 6000);
    out.push_back({call, "as it is"});
    const ops::op_spec& spec = example_call(call).spec();
    for (int i = 0; i < spec.field_count; ++i) {
      const ops::field& f = spec.fields[i];
      if (f.kind != ops::field_kind::f64 || f.minimum < 0) continue;
      out.push_back({call, std::string(f.name) + " at its least"});
      set_real(out.back().sample, f.name, f.minimum);
    }
  }
  return out;
}

std::vector<hosts::array> outputs(example_call& call, const session& s) {
  call.reset();
  const velo_status status = call.run(s.stream());
  if (status == VELO_ERR_UNSUPPORTED) return {};
  VELO_RUN(status);
  std::vector<hosts::array> out;
  for (std::size_t t = 0; t < call.tensors(); ++t)
    if (call.spec().fields[call.field(t)].output) out.push_back(call.memory(t));
  return out;
}

bool takes_numbers(const std::string& op) {
  for (const hosts::sample& example : examples_of(op))
    for (const hosts::named_array& in : example.inputs)
      if (is_floating(in.data)) return true;
  return false;
}

// Replaces a gradient's inputs by the outputs of the same name of its forward call.
void follow_forward(hosts::sample& gradient, const session& s) {
  const char* forward = example_call(gradient).spec().gradient_of;
  if (forward == nullptr) return;
  ops::op_id id{};
  REQUIRE(ops::find_op(forward, id));
  const ops::op_spec& spec = ops::spec_of(id);
  hosts::sample call;
  call.op = forward;
  bool follows = false, lacks = false;
  for (int i = 0; i < spec.field_count; ++i) {
    const ops::field& f = spec.fields[i];
    for (const hosts::named_array& in : gradient.inputs)
      if (in.field == f.name) f.output ? void(follows = true) : call.inputs.push_back(in);
    const bool needed = f.kind == ops::field_kind::tensor && !f.output && !f.optional;
    lacks = lacks || (needed && call.input(f.name) == nullptr);
    for (const hosts::attribute& a : gradient.attributes)
      if (a.name == f.name) call.attributes.push_back(a);
  }
  if (!follows || lacks) return;
  hosts::sample whole;
  REQUIRE(with_sizes(
      call, s, [](std::int64_t size) { return size; }, whole));
  example_call ran(whole);
  VELO_RUN(ran.run(s.stream()));
  for (std::size_t t = 0; t < ran.tensors(); ++t) {
    for (hosts::named_array& in : gradient.inputs)
      if (in.field == spec.fields[ran.field(t)].name && in.data.shape == ran.memory(t).shape)
        in.data = ran.memory(t);
  }
}

// Makes a call with its inputs changed in every way within the spec's range.
std::vector<changed_call> changes_of(const changed_call& base, const ops::op_spec& spec,
                                     const session& s) {
  random_source random(1);
  std::vector<changed_call> out;
  const double least = std::max(spec.least_input, 0x1p-149);
  const double most = std::min(spec.most_input, 3.3e38);
  for (std::size_t i = 0; i <= base.sample.inputs.size(); ++i) {
    const bool all = i == base.sample.inputs.size();
    if (!all && !is_floating(base.sample.inputs[i].data)) continue;
    std::vector<double> within = {least, most};
    for (std::size_t m = 0; m < std::size(magnitudes); ++m)
      if (is_met(i, m) && magnitudes[m] > least && magnitudes[m] < most)
        within.push_back(magnitudes[m]);
    for (const double m : within) {
      for (const pattern how : {pattern::scaled, pattern::filled, pattern::mixed}) {
        if (all && (how != pattern::mixed || m < most / 1e3)) continue;
        out.push_back(base);
        hosts::sample& sample = out.back().sample;
        for (std::size_t k = all ? 0 : i; k < (all ? i : i + 1); ++k)
          if (is_floating(sample.inputs[k].data))
            change(sample.inputs[k].data, how, m, least, random);
        follow_forward(sample, s);
        const char* const named[] = {"scaled to", "filled with", "mixed up to"};
        char text[128];
        std::snprintf(text, sizeof text, ", %s %s %g",
                      all ? "all inputs" : sample.inputs[i].field.c_str(),
                      named[static_cast<int>(how)], m);
        out.back().what += text;
      }
    }
  }
  return out;
}

// Whether a value is within the bound and the rounding of a denormal, twice, since the reference
// rounds to the dtype as well; or the same infinity or NaN.
void require_bound(const hosts::array& got, const hosts::array& reference,
                   const ops::error_bound& bound) {
  const auto count = static_cast<std::size_t>(got.count());
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double exact = element(reference, i);
    // A float16 output that overflowed does not show its largest magnitude.
    if (std::isinf(exact) && is_float16(got.dtype) && bound.largest > 0) return;
    if (std::isfinite(exact)) largest = std::max(largest, std::abs(exact));
  }
  const double denormal = least_of(got.dtype);
  for (std::size_t i = 0; i < count; ++i) {
    const double exact = element(reference, i), value = element(got, i);
    const double limit = 2 * (ops::allowed_error(bound, exact, largest) + denormal);
    if (value == exact || (std::isnan(value) && std::isnan(exact)) ||
        (std::isfinite(exact) && std::abs(value - exact) <= limit))
      continue;
    INFO("element " << i << ": got " << value << ", reference " << exact << ", allowed " << limit);
    CHECK(false);
    return;
  }
}

}  // namespace

TEST_CASE("every kernel of every operator keeps its bound for every magnitude its spec allows") {
  session plain(1, R"({"level": 0})");
  for (const std::string& op : hosts::operator_names()) {
    INFO(where_to_edit(op));
    std::size_t changed = 0;
    for (const changed_call& base : calls_of(op, plain)) {
      for (const changed_call& c : changes_of(base, example_call(base.sample).spec(), plain)) {
        INFO(text_of(c.sample) << ", " << c.what);
        example_call call(c.sample);
        const std::vector<hosts::array> reference = outputs(call, plain);
        for_each_kernel(op.c_str(), [&](session& s) {
          const std::vector<hosts::array> got = outputs(call, s);
          for (std::size_t i = 0; i < got.size(); ++i)
            require_bound(got[i], reference[i],
                          ops::bound_of(call.spec(), got[i].dtype, call.is_mixed()));
        });
        ++changed;
      }
    }
    CHECK((changed >= 20 || !takes_numbers(op)));
  }
}
