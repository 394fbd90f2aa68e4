// rope_frequencies against the formulas of each scaling and published numbers: frequencies, tables,
// long positions, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;

namespace {

using args = velo_rope_frequencies_args;

struct tables {
  array<float> cos, sin, f;
  tables(session& s, array<std::int64_t>& positions, args a)
      : cos({static_cast<std::int64_t>(positions.size()), a.dim}),
        sin({static_cast<std::int64_t>(positions.size()), a.dim}),
        f({a.dim / 2}) {
    a.positions = positions.tensor(), a.cos = cos.tensor(), a.sin = sin.tensor();
    a.frequencies = f.tensor();
    VELO_RUN(velo_rope_frequencies(s.stream(), &a));
  }
};

args with(std::int64_t dim, std::int64_t scaling, double factor, std::int64_t original) {
  args a = VELO_ROPE_FREQUENCIES_ARGS_INIT;
  a.dim = dim, a.scaling = scaling, a.factor = factor, a.original_length = original;
  return a;
}

struct positions_of : array<std::int64_t> {
  positions_of(std::initializer_list<std::int64_t> list)
      : array({static_cast<std::int64_t>(list.size())}) {
    std::copy(list.begin(), list.end(), data());
  }
};

}  // namespace

TEST_CASE("rope_frequencies makes cosines and sines of any position, in both modes") {
  for_each_kernel("rope_frequencies", [](session& s) {
    positions_of positions{0, 1, 2, 3, 5, 11, 100, 4095, 131071, 1048575, (1 << 24) - 1};
    for (const std::int64_t dim : {2, 6, 64, 70, 128}) {
      for (const std::int64_t mode : {VELO_ROTARY_MODE_HALF, VELO_ROTARY_MODE_INTERLEAVED}) {
        INFO("dim " << dim << ", mode " << mode);
        args a = with(dim, VELO_ROPE_SCALING_NONE, 1, 4096);
        a.mode = mode;
        const tables got(s, positions, a);
        for (std::size_t p = 0; p < positions.size(); ++p) {
          for (std::int64_t j = 0; j < dim; ++j) {
            const bool half = mode == VELO_ROTARY_MODE_HALF;
            const std::int64_t i = half ? j % (dim / 2) : j / 2;
            const double power = -2 * static_cast<double>(i) / static_cast<double>(dim);
            const double angle = static_cast<double>(positions[p]) * std::pow(1e4, power);
            const std::size_t at = p * static_cast<std::size_t>(dim) + static_cast<std::size_t>(j);
            REQUIRE(got.cos.at(at) == Approx(std::cos(angle)).margin(7e-8).epsilon(1e-7));
            REQUIRE(got.sin.at(at) == Approx(std::sin(angle)).margin(7e-8).epsilon(1e-7));
          }
        }
      }
    }
  });
}

TEST_CASE("rope_frequencies scales by yarn as published") {
  session s;
  positions_of positions{1};
  args a = with(64, VELO_ROPE_SCALING_YARN, 40, 4096);
  const tables got(s, positions, a);
  CHECK(got.f.at(0) == 1);
  CHECK(got.f.at(10) == Approx(0.0562341).epsilon(1e-5));
  CHECK(got.f.at(11) == Approx(0.0390069).epsilon(1e-5));
  CHECK(got.f.at(16) == Approx(0.0055).epsilon(1e-5));
  CHECK(got.f.at(23) == Approx(3.3338e-5).epsilon(1e-4));
  CHECK(got.f.at(31) == Approx(3.3338e-6).epsilon(1e-4));
  CHECK(got.cos.at(0) == Approx(1.36889 * std::cos(1.0)).epsilon(1e-5));
  a.mscale = 0.707;
  CHECK(tables(s, positions, a).sin.at(0) == Approx(1.26080 * std::sin(1.0)).epsilon(1e-5));
  a.mscale = a.mscale_all_dim = 0.5;
  CHECK(tables(s, positions, a).cos.at(0) == Approx(std::cos(1.0)));
}

// Numbers of transformers' formulas (modeling_rope_utils) in Python's floats.
TEST_CASE("rope_frequencies scales by llama3 and by dynamic NTK as transformers does") {
  session s;
  positions_of first{0}, last{7, 16383};
  args a = with(128, VELO_ROPE_SCALING_LLAMA3, 8, 8192);
  a.theta = 500000;
  const tables llama(s, first, a);
  CHECK(llama.f.at(1) == Approx(0.814617234).epsilon(1e-6));
  CHECK(llama.f.at(28) == Approx(0.00321144599).epsilon(1e-6));
  CHECK(llama.f.at(32) == Approx(0.000524846161).epsilon(1e-6));
  CHECK(llama.f.at(35) == Approx(9.55621235e-05).epsilon(1e-6));
  CHECK(llama.f.at(63) == Approx(3.06892599e-07).epsilon(1e-6));
  a = with(128, VELO_ROPE_SCALING_DYNAMIC, 2, 4096);
  const tables shorter(s, first, a), longer(s, last, a);
  CHECK(shorter.f.at(63) == Approx(std::pow(1e4, -126.0 / 128)).epsilon(1e-6));
  CHECK(longer.f.at(1) == Approx(0.839625743).epsilon(1e-6));
  CHECK(longer.f.at(32) == Approx(0.00372172134).epsilon(1e-6));
  CHECK(longer.f.at(63) == Approx(1.64968855e-05).epsilon(1e-6));
  a = with(128, VELO_ROPE_SCALING_LINEAR, 4, 4096);
  CHECK(tables(s, last, a).f.at(0) == 0.25f);
}

TEST_CASE("rope_frequencies refuses what does not fit, by name") {
  session s;
  positions_of positions{0, 3};
  array<float> cos({2, 8}), sin({2, 8});
  cos.fill(1);
  args valid = with(8, VELO_ROPE_SCALING_LLAMA3, 2, 16);
  valid.positions = positions.tensor(), valid.cos = cos.tensor(), valid.sin = sin.tensor();
  check_refusals(
      s, velo_rope_frequencies, valid, cos,
      {{[](args& a) { a.dim = 7; }, VELO_ERR_ARGUMENT, "args.dim"},
       {[](args& a) { a.dim = 2, a.scaling = VELO_ROPE_SCALING_DYNAMIC; }, VELO_ERR_ARGUMENT,
        "args.dim"},
       {[](args& a) { a.dim = 6; }, VELO_ERR_SHAPE, "args.cos.shape"},
       {[](args& a) { a.theta = 1; }, VELO_ERR_ARGUMENT, "args.theta"},
       {[](args& a) { a.factor = 0.5; }, VELO_ERR_ARGUMENT, "args.factor"},
       {[](args& a) { a.high_freq_factor = 1; }, VELO_ERR_ARGUMENT, "args.high_freq_factor"},
       {[](args& a) { a.scaling = 5; }, VELO_ERR_ARGUMENT, "args.scaling"}});
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{1} << 24}) {
    positions[1] = bad;
    check_refusals(s, velo_rope_frequencies, valid, cos,
                   {{[](args&) {}, VELO_ERR_ARGUMENT, "args.positions"}});
  }
}
