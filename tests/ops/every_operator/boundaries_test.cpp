// Sizes and numbers at the limits of arithmetic: every size of every tensor of every operator, each
// number and each list, alone and in pairs, at 0, 1, 2^31, 2^32, 2^40, 2^62 and their neighbors.
// Each call returns a status, a refused call writes nothing, and no call on an empty tensor takes
// longer than a millisecond.
//
// Tensors larger than the example's memory have no data, so that no call on them can be accepted.
#include <algorithm>
#include <cfloat>
#include <cstdlib>
#include <limits>
#include <set>

#include "tests/ops/every_operator/example_variants.hpp"
#include "tests/ops/every_operator/huge_call.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

bool tries_all() {
  static const bool all = std::getenv("VELO_LIMITS") != nullptr;
  return all;
}

// The second sizes that are tried beside a first one: all with VELO_LIMITS, else a third of them.
std::vector<std::int64_t> sizes_beside(std::int64_t first) {
  std::vector<std::int64_t> some;
  const auto place = std::find(std::begin(boundary_sizes), std::end(boundary_sizes), first);
  auto turn = place - std::begin(boundary_sizes);
  for (const std::int64_t second : boundary_sizes)
    if (tries_all() || turn++ % 3 == 0) some.push_back(second);
  return some;
}

// Changes every size of every tensor, one and two at a time, and equal sizes of all tensors
// together, one and two groups at a time.
template <class Check>
void for_each_boundary(huge_call& call, const Check& check) {
  std::vector<std::pair<std::size_t, std::size_t>> dimensions;
  std::set<std::int64_t> groups;
  for (std::size_t t = 0; t < call.tensors(); ++t) {
    for (std::size_t d = 0; d < call.sizes(t).size(); ++d) {
      dimensions.push_back({t, d});
      groups.insert(call.sizes(t)[d]);
    }
  }
  for (const std::int64_t first : boundary_sizes) {
    const std::vector<std::int64_t> beside = sizes_beside(first);
    for (const auto& [t, d] : dimensions) {
      call.restore();
      call.sizes(t)[d] = first;
      check();
      for (const std::int64_t second : beside) {
        for (std::size_t e = d + 1; e < call.sizes(t).size(); ++e) {
          call.restore();
          call.sizes(t)[d] = first, call.sizes(t)[e] = second;
          check();
        }
      }
    }
    for (const std::int64_t a : groups) {
      call.restore();
      call.replace(a, first);
      check();
      for (const std::int64_t second : beside) {
        for (const std::int64_t b : groups) {
          if (a == b) continue;
          call.restore();
          call.replace(a, first), call.replace(b, second);
          check();
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("every size of every operator may be where arithmetic ends, alone and in pairs") {
  session s;
  int accepted = 0;
  for (const hosts::sample& sample : hosts::samples(true)) {
    if (!sample.known.empty()) continue;
    INFO(text_of(sample));
    huge_call call(sample);
    for_each_boundary(call, [&] { accepted += call.answers(s) ? 1 : 0; });
  }
  CHECK(accepted > 1000);
}

TEST_CASE("every number of every operator is refused where float32 or its range ends") {
  session s;
  constexpr double largest = static_cast<double>(FLT_MAX);
  int numbers = 0;
  for (const hosts::sample& sample : hosts::samples(true)) {
    example_call call(sample);
    const ops::args_block whole = call.args;
    const auto require_refused = [&](const char* field) {
      call.reset();
      const auto untouched = call.result();
      CHECK_REFUSED(call.run(s.stream()), VELO_ERR_ARGUMENT, std::string("args.") + field);
      CHECK(call.result() == untouched);
      call.args = whole;
    };
    for (int i = 0; i < call.spec().field_count; ++i) {
      const ops::field& f = call.spec().fields[i];
      INFO(sample.op << " " << f.name);
      if (f.kind == ops::field_kind::f64) {
        ++numbers;
        for (const double value :
             {std::nextafter(largest, HUGE_VAL), 1e39, 1e308, HUGE_VAL, std::nan("")}) {
          for (const double sign : {1.0, -1.0}) {
            call.args.values[i].f = sign * value;
            require_refused(f.name);
          }
        }
      }
      if (f.kind == ops::field_kind::i64) {
        ++numbers;
        for (const std::int64_t value : boundary_sizes) {
          for (const std::int64_t sign : {1, -1}) {
            call.args.values[i].i = sign * value;
            call.reset();
            const auto untouched = call.result();
            const velo_status status = call.run(s.stream());
            if (status != VELO_OK) CHECK(call.result() == untouched);
            const auto number = static_cast<double>(sign * value);
            if (number < f.minimum || number > f.maximum) require_refused(f.name);
            call.args = whole;
          }
        }
      }
    }
  }
  CHECK(numbers > 20);
}

TEST_CASE("every list of every operator may hold anything") {
  session s;
  int lists = 0;
  for (const hosts::sample& sample : hosts::samples(true)) {
    example_call call(sample);
    for (int i = 0; i < call.spec().field_count; ++i) {
      if (call.spec().fields[i].kind != ops::field_kind::ints) continue;
      const velo_ints* whole = call.args.values[i].ints;
      if (whole == nullptr) continue;
      INFO(sample.op << " " << call.spec().fields[i].name);
      ++lists;
      for (std::int64_t at = 0; at < whole->count; ++at) {
        for (const std::int64_t value : boundary_sizes) {
          std::vector<std::int64_t> numbers(whole->data, whole->data + whole->count);
          if (numbers[static_cast<std::size_t>(at)] == value) continue;
          numbers[static_cast<std::size_t>(at)] = value;
          const velo_ints list{numbers.data(), whole->count};
          call.args.values[i].ints = &list;
          call.reset();
          const auto untouched = call.result();
          if (call.run(s.stream()) != VELO_OK) CHECK(call.result() == untouched);
        }
      }
      for (const std::int64_t count : {INT64_MIN, std::int64_t{-1}, std::int64_t{1} << 62}) {
        const velo_ints list{whole->data, count};
        call.args.values[i].ints = &list;
        CHECK(call.run(s.stream()) == VELO_ERR_ARGUMENT);
      }
      call.args.values[i].ints = whole;
    }
  }
  CHECK(lists >= 4);
}

TEST_CASE("a pack, a tensor and its extent may have any two sizes") {
  session s;
  for (const std::int64_t first : boundary_sizes) {
    for (const std::int64_t second : boundary_sizes) {
      INFO(first << " and " << second);
      velo_pack_desc desc = VELO_PACK_DESC_INIT;
      desc.k = first, desc.n = second;
      velo_pack pack = nullptr;
      const velo_status packed = velo_pack_create(s.context(), &desc, &pack);
      CHECK((packed == VELO_OK || packed == VELO_ERR_SHAPE || packed == VELO_ERR_MEMORY));
      velo_pack_destroy(pack);

      const std::int64_t sizes[] = {first, second};
      const velo_dtype f32 = dtype_of<float>();
      velo_managed_tensor* made = nullptr;
      const velo_status created = velo_tensor_create(s.context(), &f32, 2, sizes, &made);
      CHECK((created == VELO_OK || created == VELO_ERR_SHAPE || created == VELO_ERR_MEMORY));
      velo_tensor_release(made);

      for (const std::int64_t stride : boundary_sizes) {
        const std::int64_t strides[] = {stride, second};
        velo_tensor view{nullptr, {VELO_DEVICE_CPU, 0}, 2, f32, sizes, strides, 0};
        std::uint64_t bytes = 1;
        const velo_status measured = velo_tensor_extent(&view, &bytes);
        const bool empty = first == 0 || second == 0;
        CHECK((measured == VELO_OK || (measured == VELO_ERR_SHAPE && !empty)));
        if (empty) CHECK(bytes == 0);
      }
    }
  }
}

// Whether a pack is so large that to clear its memory takes seconds, and yet some machine has it.
// Only with VELO_LIMITS are such packs made.
bool takes_seconds(const velo_pack_desc& desc) {
  double bytes = desc.dtype.bits / 8.0;
  for (const std::int64_t size : {desc.k, desc.n, desc.count})
    bytes *= static_cast<double>(std::max<std::int64_t>(size, 1));
  return !tries_all() && bytes > 1e8 && bytes < 1e13;
}

TEST_CASE("a pack of more than memory holds is refused, and one of few columns is what it says") {
  session s;
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  velo_pack pack = nullptr;
  desc.k = desc.n = 2147483647;
  CHECK_REFUSED(velo_pack_create(s.context(), &desc, &pack), VELO_ERR_SHAPE, "desc.k");
  CHECK(pack == nullptr);
  desc.k = 1 << 28, desc.n = 1 << 28;
  CHECK(velo_pack_create(s.context(), &desc, &pack) == VELO_ERR_MEMORY);
  CHECK(pack == nullptr);
  const velo_dtype integers = dtype_of<std::int8_t>(), int4{VELO_DTYPE_INT, 4, 1};
  for (const auto& [dtype, weight_only] :
       {std::pair{dtype_of<float>(), 0u}, {integers, 0u}, {integers, 1u}, {int4, 1u}}) {
    for (const std::int64_t k : {0, 1, 131071}) {
      for (const std::int64_t n : boundary_sizes) {
        for (const std::int64_t count : boundary_sizes) {
          INFO("k " << k << " n " << n << " count " << count);
          velo_pack_desc any = VELO_PACK_DESC_INIT;
          any.dtype = dtype, any.k = k, any.n = n, any.count = count;
          any.weight_only = weight_only;
          if (takes_seconds(any)) continue;
          const velo_status made = velo_pack_create(s.context(), &any, &pack);
          CHECK((made == VELO_OK || made == VELO_ERR_SHAPE || made == VELO_ERR_MEMORY));
          const std::int64_t sizes[] = {count, k, n};
          const velo_tensor empty{nullptr, {VELO_DEVICE_CPU, 0}, 3, dtype, sizes, nullptr, 0};
          if (made == VELO_OK && count > 0 && k * n == 0 && n < 4)
            VELO_RUN(velo_pack_update(s.stream(), pack, &empty));
          velo_pack_destroy(pack);
          pack = nullptr;
        }
      }
    }
  }
  desc.k = 2, desc.n = 3;
  VELO_RUN(velo_pack_create(s.context(), &desc, &pack));
  const std::int64_t sizes[] = {2, 3}, far[] = {std::int64_t{1} << 62, 1};
  float weight[6] = {};
  velo_tensor view{weight, {VELO_DEVICE_CPU, 0}, 2, dtype_of<float>(), sizes, far, 0};
  CHECK(velo_pack_update(s.stream(), pack, &view) == VELO_ERR_SHAPE);
  velo_pack_destroy(pack);
}

TEST_CASE("rms_norm of rows without elements writes the rstd of a mean of nothing, which is NaN") {
  for_each_kernel("rms_norm", [](session& s) {
    array<float> x({3, 0}), gamma({0}), y({3, 0}), rstd({3, 1});
    rstd.fill(1);
    velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
    args.x = x.tensor(), args.gamma = gamma.tensor(), args.y = y.tensor();
    args.rstd = rstd.tensor();
    VELO_RUN(velo_rms_norm(s.stream(), &args));
    for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(rstd[i]));
    CHECK(rstd.intact());
  });
}
