// Random calls, driven by the spec: every operator with sizes, strides, offsets, shared memory,
// missing pointers, numbers and dtypes of every kind, against an oracle in plain loops
// (placed_call.hpp) and against the reference on tensors of their own.
//
// Each call returns a status. Forbidden calls are refused, promised ones accepted; a refused call
// writes nothing, an accepted one writes correct outputs and nothing else.
// VELO_RANDOM_CALLS: calls a family (default some hundred); VELO_RANDOM_SEED: the first seed. A
// failure names the seed of the call.
#include <cstdlib>
#include <map>
#include <memory>

#include "tests/ops/every_operator/example_variants.hpp"
#include "tests/ops/every_operator/huge_call.hpp"
#include "tests/ops/every_operator/placed_call.hpp"

using namespace velo;
using namespace velo::testing;
using velo::simd::bf16;

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t standard) {
  const char* value = std::getenv(variable);
  return value == nullptr ? standard : std::strtoull(value, nullptr, 10);
}

// An operator's examples, and as many calls of other sizes derived from them.
std::vector<hosts::sample> calls_of(const std::string& op, const session& s,
                                    random_source& random) {
  std::vector<hosts::sample> out = examples_of(op);
  const std::size_t examples = out.size();
  for (int i = 0; i < 40; ++i) {
    const hosts::sample& example = out[random.below(examples)];
    std::map<std::int64_t, std::int64_t> sizes;
    const std::int64_t choices[] = {0, 1, 2, 3, 4, 5, 8, 17, 32, 33};
    const auto map = [&](std::int64_t size) {
      if (sizes.count(size) == 0) sizes[size] = random.chance(50) ? size : random.pick(choices);
      return sizes[size];
    };
    hosts::sample next;
    if (with_sizes(example, s, map, next) && largest_count(next) <= 2000)
      out.push_back(std::move(next));
  }
  return out;
}

// Changes one thing about a call. Returns whether its values can still be compared.
class change {
 public:
  change(example_call& call, random_source& random) : random_(random) {
    const int field = static_cast<int>(random.below(call.spec().field_count));
    const ops::field& f = call.spec().fields[field];
    ops::args_block::field_value& value = call.args.values[field];
    what = f.name;
    switch (f.kind) {
      case ops::field_kind::f64: {
        const double numbers[] = {0,    0.5,    1,    -1,     1e-3,     1e-310,
                                  1e30, 3.4e38, 1e39, -1e300, HUGE_VAL, std::nan("")};
        value.f = random.pick(numbers);
        comparable = false;  // terms may cancel
        return;
      }
      case ops::field_kind::i64:
        value.i = random.pick(boundary_sizes) * (random.chance(30) ? -1 : 1);
        return;
      case ops::field_kind::boolean:
      case ops::field_kind::enumeration:
        value.i = static_cast<std::int64_t>(random.below(9)) - 2;
        return;
      case ops::field_kind::tensor:
        if (value.tensor != nullptr && random.chance(70))
          change_tensor(value.tensor);
        else
          value.pointer = nullptr;
        return;
      default:
        value.pointer = nullptr;
    }
  }
  change(const change&) = delete;
  bool comparable = true;
  std::string what;

 private:
  void change_tensor(const velo_tensor*& at) {
    view_ = *at;
    comparable = false;
    if (random_.chance(50)) {
      const velo_dtype types[] = {dtype_of<float>(),        dtype_of<bf16>(),
                                  dtype_of<std::int32_t>(), {VELO_DTYPE_UINT, 8, 1},
                                  {VELO_DTYPE_BOOL, 8, 1},  {VELO_DTYPE_FLOAT, 16, 1}};
      const velo_dtype type = random_.pick(types);
      if (type.bits <= view_.dtype.bits) view_.dtype = type;
    } else if (view_.ndim > 0) {
      shape_.assign(view_.shape, view_.shape + view_.ndim);
      if (random_.chance(30)) {
        shape_.clear();
      } else if (random_.chance(50)) {
        shape_.pop_back();
      } else if (shape_.size() < 8) {
        shape_.insert(shape_.begin() + random_.below(view_.ndim), 1);
      }
      const int rank = static_cast<int>(shape_.size());
      if (ops::product(shape_.data(), rank) <= ops::numel(view_))
        view_.shape = shape_.data(), view_.ndim = rank;
    }
    at = &view_;
  }

  random_source& random_;
  velo_tensor view_{};
  std::vector<std::int64_t> shape_;
};

struct sessions {
  session plain{1, R"({"level": 0})"}, best, threads{2}, avx2{1, R"({"isa": "avx2"})"};
  const session& any(random_source& random) const {
    const session* all[] = {&plain, &best, &best, &threads, &avx2};
    return *random.pick(all);
  }
};

struct tally {
  int accepted = 0, refused = 0, forbidden = 0, promised = 0;
};

std::string last_sentence() {
  char text[1024] = "";
  velo_error_text(text, sizeof text, nullptr);
  return text;
}

bool names_argument() {
  return last_record().argument.rfind("args", 0) == 0;
}

void require_right(example_call& base, const placed_call& placed) {
  const bool mixed = base.is_mixed();
  for (std::size_t t = 0; t < base.tensors(); ++t) {
    const ops::field& f = base.spec().fields[base.field(t)];
    if (!f.output || base.args.values[base.field(t)].tensor == nullptr) continue;
    INFO(f.name);
    const hosts::array got = placed.gathered(t);
    require_agreement(got, base.memory(t), ops::bound_of(base.spec(), got.dtype, mixed));
  }
}

// Makes one call twice: on tensors of their own, and on tensors placed at random.
void call_placed(const hosts::sample& sample, const sessions& s, random_source& random,
                 tally& counted) {
  example_call base(sample);
  std::unique_ptr<change> changed;
  if (random.chance(25)) changed = std::make_unique<change>(base, random);
  placed_call placed(base, random);
  const bool forbidden = placed.forbidden(), promised = placed.promised();
  const velo_status expected = base.run(s.plain.stream());
  const velo_status status = placed.run(s.any(random).stream());
  INFO(placed.text() << "\n  " << sample.attributes_json()
                     << (changed ? "\n  changed: " + changed->what : std::string())
                     << (forbidden  ? "\n  forbidden"
                         : promised ? "\n  promised"
                                    : "")
                     << "\n  status " << status << ", compact " << expected << ": "
                     << (status == VELO_OK && expected == VELO_OK ? "" : last_sentence()));
  counted.forbidden += forbidden, counted.promised += promised;
  if (status != VELO_OK) {
    ++counted.refused;
    if (!placed.untouched()) FAIL("a refused call has written");
    if (!names_argument()) FAIL("no argument is named");
    if (promised && expected == VELO_OK) FAIL("what is promised was refused");
    return;
  }
  ++counted.accepted;
  if (expected != VELO_OK) FAIL("accepted where the call on compact tensors is refused");
  if (forbidden) FAIL("what is forbidden was accepted");
  if (!placed.untouched_beside_outputs()) FAIL("something beside the outputs was written");
  if ((!changed || changed->comparable) && !placed.inputs_shared()) require_right(base, placed);
}

// Makes one call of sizes beyond all memory.
void call_huge(const hosts::sample& sample, const sessions& s, random_source& random) {
  huge_call call(sample);
  const auto any_size = [&]() -> std::int64_t {
    const std::int64_t power = std::int64_t{1} << random.below(63);
    if (random.chance(50)) return random.pick(boundary_sizes);
    return power + static_cast<std::int64_t>(random.below(3)) - 1;
  };
  for (std::int64_t changes = 1 + random.below(3); changes > 0; --changes) {
    const auto t = random.below(call.tensors());
    if (call.sizes(t).empty()) continue;
    const std::int64_t from = random.pick(call.sizes(t));
    if (random.chance(70)) {
      call.replace(from, any_size());
    } else {
      call.sizes(t)[random.below(call.sizes(t).size())] = any_size();
    }
  }
  call.answers(s.best);
}

}  // namespace

TEST_CASE("calls at random are refused when forbidden, accepted when promised, and right") {
  const std::uint64_t calls = number_from("VELO_RANDOM_CALLS", 400);
  const std::uint64_t seed = number_from("VELO_RANDOM_SEED", 1);
  const sessions s;
  std::map<std::string, std::vector<std::vector<hosts::sample>>> families;
  for (int i = 0; i < ops::op_count(); ++i) {
    const ops::op_spec& spec = ops::spec_of(static_cast<ops::op_id>(i));
    if (hosts::takes_lists(spec.name)) continue;
    random_source random(static_cast<std::uint64_t>(i));
    families[spec.family].push_back(calls_of(spec.name, s.plain, random));
  }
  for (const auto& [family, operators] : families) {
    tally counted;
    for (std::uint64_t n = 0; n < calls; ++n) {
      const std::uint64_t own = seed + n;
      INFO("VELO_RANDOM_CALLS=1 VELO_RANDOM_SEED=" << own << ", family " << family);
      random_source random(own);
      const hosts::sample& sample = random.pick(random.pick(operators));
      if (random.chance(20) && !sample.inputs.empty())
        call_huge(sample, s, random);
      else
        call_placed(sample, s, random, counted);
    }
    INFO(family << ": " << counted.accepted << " accepted, " << counted.refused << " refused, "
                << counted.forbidden << " forbidden, " << counted.promised << " promised");
    if (calls >= 100)
      CHECK(std::min({counted.accepted, counted.refused, counted.forbidden, counted.promised}) >
            static_cast<int>(calls / 100));
  }
}
