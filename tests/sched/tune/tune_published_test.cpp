// Published trainings: their layouts fit, and take what was measured, under the profiles that come
// with velo. Efficiencies are the same for all, and the defaults: nothing is fitted to a case.
#include <fstream>
#include <sstream>

#include "tests/sched/tune/tunings.hpp"

using namespace velo;
using namespace velo::testing;
using namespace velo::sched::tune;

namespace {

constexpr double gib = 1 << 30, tolerance = 0.15;

std::string profile_in(const std::string& name) {
  std::ifstream file(VELO_SOURCE_DIR "/examples/tune/" + name);
  REQUIRE(file.good());
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

// The one layout of a search; recompute: what is to be made again.
plan only_plan(wanted one, const std::string& recompute, const std::string& profile) {
  one.search += R"(, "recompute": [")" + recompute + "\"]";
  const tuning found = searched(one.text(), profile_in(profile));
  REQUIRE(found.plans.size() == 1);
  CHECK(found.plans[0].bytes() < 80 * gib);
  return found.plans[0];
}

// Grattafiori et al., The Llama 3 Herd of Models (arXiv:2407.21783), table 4: tp 8, pp 16.
wanted llama(int accelerators, int cp, int dp, int batch, int sequence) {
  wanted one;
  one.model =
      R"("layers": 126, "hidden": 16384, "heads": 128, "kv_heads": 8, "ffn_hidden": 53248, )"
      R"("vocabulary": 128256)";
  one.training = R"("global_batch": )" + std::to_string(batch) + R"(, "sequence": )" +
                 std::to_string(sequence) + R"(, "zero": 2)";
  one.accelerators = accelerators;
  one.search = R"("tp": [8], "pp": [16], "vpp": [8], "cp": [)" + std::to_string(cp) +
               R"(], "dp": [)" + std::to_string(dp) +
               R"(], "micro_batch": [1], "kind": ["interleaved"], "split": ["even"], )" +
               R"("cp_algorithm": ["all_gather"])";
  return one;
}

// DeepSeek-AI, DeepSeek-V3 Technical Report (arXiv:2412.19437): pp 16, ep 64, no tp, ZeRO-1, FP8.
wanted deepseek() {
  wanted one;
  one.model = deepseek_v3;
  one.training = R"("global_batch": 15360, "sequence": 4096, "optimizer_bytes": 8, "fp8": true)";
  one.accelerators = 2048;
  one.search = R"("tp": [1], "pp": [16], "vpp": [2], "ep": [64], "cp": [1], "micro_batch": [1], )"
               R"("kind": ["dualpipev"], "split": ["balanced"])";
  return one;
}

}  // namespace

TEST_CASE("published models have the parameters that are published") {
  // 126 layers of 2 h^2 + 2 h 1024 of attention, 3 h f, two norms; embedding, output, a norm.
  const double h = 16384, f = 53248;
  CHECK(parameters_of(job_of(llama(8192, 1, 64, 2048, 8192).text()).model) ==
        126 * (2 * h * h + 2 * h * 1024 + 3 * h * f + 2 * h) + 2 * 128256 * h + h);
  const model deep = job_of(deepseek().text()).model;
  CHECK(parameters_of(deep) / 1e9 == Approx(671).epsilon(1e-3));
  model active = deep;  // a token goes through 8 of the experts
  active.experts = active.active;
  CHECK(parameters_of(active) / 1e9 == Approx(37).epsilon(0.02));
}

TEST_CASE("Llama 3 405B on 8,192 and 16,384 H100 reaches the utilization that was measured") {
  const struct {
    wanted job;
    double utilization;  // of bf16
  } rows[] = {{llama(8192, 1, 64, 2048, 8192), 0.43},
              {llama(16384, 1, 128, 2048, 8192), 0.41},
              {llama(16384, 16, 8, 128, 131072), 0.38}};
  for (const auto& row : rows) {
    const plan found = only_plan(row.job, "norms", "h100_80g.json");
    CHECK(found.utilization == Approx(row.utilization).epsilon(tolerance));
    CHECK(found.stage_layers.front() == 0);  // the embedding alone
    CHECK(found.stage_layers.back() == 0);   // the output alone
  }
}

TEST_CASE("DeepSeek-V3 on 2,048 H800 takes the time that was measured") {
  const plan found = only_plan(deepseek(), "norms", "h800_80g.json");
  // 14.8 T tokens in 2.664 M hours of one H800.
  const double measured = 14.8e12 / (2.664e6 / 2048 * 3600);
  CHECK(measured == Approx(3.16e6).epsilon(0.001));
  CHECK(found.tokens_per_second == Approx(measured).epsilon(tolerance));
}

TEST_CASE("profiles of one generation differ in their links alone") {
  std::string h100 = profile_in("h100_80g.json"), h800 = profile_in("h800_80g.json");
  const auto replace = [](std::string& in, const std::string& from, const std::string& to) {
    const std::size_t at = in.find(from);
    REQUIRE(at != std::string::npos);
    in.replace(at, from.size(), to);
  };
  replace(h100, "H100", "H800");
  replace(h100, R"("intra_gb_per_s": 450)", R"("intra_gb_per_s": 200)");
  CHECK(h100 == h800);
  // Efficiencies are the defaults.
  const profile shipped = job_of(llama(8192, 1, 64, 2048, 8192).text(), h800).profile;
  const profile usual = job_of(llama(8192, 1, 64, 2048, 8192).text()).profile;
  CHECK(shipped.matmul_flops / shipped.peak_flops == usual.matmul_flops / usual.peak_flops);
  CHECK(shipped.attention_flops / shipped.peak_flops == usual.attention_flops / usual.peak_flops);
}

TEST_CASE("each of what published layouts rest on takes memory away") {
  const auto bytes = [](wanted one, const char* from, const char* to, const char* recompute) {
    const std::size_t at = one.training.find(from);
    REQUIRE(at != std::string::npos);
    one.training.replace(at, std::string(from).size(), to);
    one.search += std::string(R"(, "recompute": [")") + recompute + "\"]";
    const tuning found = searched(one.text(), R"({"memory_gib": 1000, "memory_fraction": 1})");
    REQUIRE(found.plans.size() == 1);
    return found.plans[0].bytes() / gib;
  };
  const wanted meta = llama(8192, 1, 64, 2048, 8192);
  CHECK(bytes(meta, R"("zero": 2)", R"("zero": 1)", "none") > 80);
  CHECK(bytes(meta, R"("zero": 2)", R"("zero": 1)", "none") >
        bytes(meta, R"("zero": 2)", R"("zero": 2)", "none") + 9);
  CHECK(bytes(meta, R"("zero": 2)", R"("zero": 2)", "none") >
        bytes(meta, R"("zero": 2)", R"("zero": 2)", "norms") + 20);
  CHECK(bytes(deepseek(), R"("fp8": true)", R"("fp8": false)", "none") > 110);
  CHECK(bytes(deepseek(), R"("fp8": true)", R"("fp8": false)", "norms") >
        bytes(deepseek(), R"("fp8": true)", R"("fp8": true)", "norms") + 15);
}

TEST_CASE("gradients under ZeRO-2 are a share, and whole for the stage that is worked on") {
  // Rajbhandari et al.: parameters, and gradients and optimizer states over the ranks that share.
  wanted one;
  one.training = R"("global_batch": 64, "sequence": 64, "gradient_bytes": 4, "zero": 2)";
  one.accelerators = 8;
  one.search = R"("tp": [1], "cp": [1], "pp": [2], "vpp": [2], "micro_batch": [1], )"
               R"("kind": ["interleaved"], "recompute": ["none"], "split": ["even"])";
  const tuning found = searched(one.text());
  REQUIRE(found.plans.size() == 1);
  const double layer = 2 * 256 + 4 * 256 * 256 + 3 * 256 * 1024, table = 256 * 4000;
  const rank_memory& first = found.plans[0].memory[0];
  CHECK(first.gradients == 4 * ((4 * layer + table) / 4 + 2 * layer + table));
  CHECK(first.optimizer == 12 * (4 * layer + table) / 4);
}

TEST_CASE("fp8 halves what products keep, and doubles their rate") {
  wanted one;
  const auto dense = [&](const char* more, const char* recompute) {
    velo_tuning_layout alone{};
    alone.tp = alone.pp = alone.vpp = alone.dp = alone.cp = alone.ep = alone.micro_batch = 1;
    alone.recompute = std::string(recompute) == "norms" ? VELO_TUNING_RECOMPUTE_NORMS
                                                        : VELO_TUNING_RECOMPUTE_NONE;
    wanted with = one;
    with.training += more;
    return layer_costs_of(job_of(with.text(), R"({"layer_us": 0, "memory_gb_per_s": 1000000})"),
                          alone)
        .dense;
  };
  const double tokens = 256, h = 256, f = 1024;
  const layer_cost wide = dense("", "none"), narrow = dense(R"(, "fp8": true)", "none");
  // Two inputs of norms, q, k, v in two bytes; two outputs of norms, one of attention, three of the
  // feed-forward in one; row sums in four.
  CHECK(narrow.kept == tokens * (2 * (2 + 3) * h + (3 * h + 3 * f) + 4 * 8));
  CHECK(wide.weight == Approx(2 * narrow.weight));
  // Outputs of norms and of the activation function are made again.
  CHECK(wide.kept - dense("", "norms").kept == tokens * 2 * (2 * h + f));
  CHECK(dense("", "norms").remade == tokens * 2 * (2 * h + f));
}
