// The machine's limits: all there, of the right size beside each other, above what velo reaches.
#include "bench/limits/calibration.hpp"
#include "tests/structs.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <velo/velo.hpp>

using namespace velo::bench;
using velo::testing::context_desc;

namespace {

const machine& here() {
  static const machine found = identify_machine();
  return found;
}

// Measured with one thread and, where there are more processors, with two.
const calibration& measured() {
  static const calibration found = calibrate(
      here(), here().cpus.size() > 1 ? std::vector<int>{1, 2} : std::vector<int>{1}, brief);
  return found;
}

// Gflop/s of velo's best packed product of a size that caches hold, one thread.
template <class Element>
double product_rate(const char* isa) {
  constexpr std::int64_t n = 512;
  const velo_context_desc desc = context_desc(1);
  velo::context context = velo::context::create(desc);
  if (*isa) context.set("isa", isa);
  const velo::stream_ref stream = context.inline_stream();
  const std::vector<Element> a(n * n, Element(0.5f)), b(n * n, Element(0.5f));
  std::vector<Element> c(n * n);
  velo_pack_desc pack_desc = VELO_PACK_DESC_INIT;
  pack_desc.dtype = velo::dtype<Element>;
  pack_desc.k = pack_desc.n = n;
  velo::pack packed = velo::pack::create(context, pack_desc);
  packed.update(stream, velo::tensor_view(b.data(), {n, n}));
  const velo::tensor_view ta(a.data(), {n, n}), tc(c.data(), {n, n});
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    velo::matmul(stream, velo::matmul_args().a(ta).packed(packed).c(tc));
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return 2.0 * n * n * n / best * 1e-9;
}

}  // namespace

TEST_CASE("every limit of this machine is positive, and only what it lacks is zero") {
  for (const int threads : measured().thread_counts())
    for (int i = 0; i < static_cast<int>(limit::count); ++i) {
      const auto which = static_cast<limit>(i);
      const bool there = which == limit::dot_bf16   ? here().avx512_bf16
                         : which == limit::amx_bf16 ? here().amx
                                                    : true;
      INFO(limit_name(which) << " " << threads << " threads");
      CHECK((measured().at(which, threads) > 0.01) == there);
      CHECK(measured().at(which, 7) == 0);
    }
}

TEST_CASE("limits stand in the order that hardware has") {
  const calibration& c = measured();
  CHECK(product_peak(c, true, 1) >= product_peak(c, false, 1));
  CHECK(product_peak(c, false, 1) == c.at(limit::fma_f32, 1));
  if (here().amx) CHECK(c.at(limit::amx_bf16, 1) > 2 * c.at(limit::dot_bf16, 1));
  if (here().avx2 && here().kind.rfind("zen", 0) == 0 && here().avx512_bf16)
    CHECK(product_peak(c, true, 1) > 1.5 * product_peak(c, false, 1));
}

TEST_CASE("a lower instruction set has lower limits") {
  const machine plain = identify_machine("scalar");
  CHECK(!plain.avx2);
  CHECK(!plain.amx);
  const calibration c = calibrate(plain, {1}, brief);
  CHECK(c.at(limit::fma_f32, 1) > 0.01);
  CHECK(c.at(limit::dot_bf16, 1) == 0);
  CHECK(c.at(limit::cache_copy, 1) > 0.01);
  if (here().avx2) CHECK(c.at(limit::fma_f32, 1) < 0.8 * measured().at(limit::fma_f32, 1));
}

// A neighbor may slow the machine down while the peak is measured, so a breach counts when it is
// seen three times.
TEST_CASE("velo's products stay below the peak of the machine, also with a lower instruction set") {
  for (const char* isa : {"", "avx2"}) {
    if (*isa && !here().avx2) continue;
    const machine m = *isa ? identify_machine(isa) : here();
    double f32 = 2, bf16 = 2;
    for (int attempt = 0; attempt < 3 && std::max(f32, bf16) > 1.03; ++attempt) {
      const calibration c = calibrate(m, {1}, brief);
      f32 = std::min(f32, product_rate<float>(isa) / product_peak(c, false, 1));
      bf16 = std::min(bf16, product_rate<velo::bfloat16>(isa) / product_peak(c, true, 1));
    }
    INFO("isa " << isa);
    CHECK(f32 <= 1.03);
    CHECK(bf16 <= 1.03);
  }
}

TEST_CASE("drift names the limit that moved most, and the mean lies between") {
  calibration before, after;
  for (calibration* c : {&before, &after}) c->at(limit::read, 1) = c->at(limit::adam, 2) = 10;
  after.at(limit::read, 1) = 11;
  after.at(limit::adam, 2) = 6;
  std::string worst;
  CHECK(drift(before, after, worst) == Approx(0.4));
  CHECK(worst == "adam 2T");
  CHECK(mean(before, after).at(limit::adam, 2) == Approx(8));
}
