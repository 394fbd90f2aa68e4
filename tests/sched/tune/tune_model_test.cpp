// Memory and costs of a tuning's parts, against published formulas and sums by hand.
#include <numeric>

#include "sched/tune/exchange_seconds.hpp"
#include "sched/tune/orders.hpp"
#include "tests/sched/schedules.hpp"
#include "tests/sched/tune/tunings.hpp"

using namespace velo;
using namespace velo::testing;
using namespace velo::sched::tune;

namespace {

velo_tuning_layout layout_of(std::int32_t tp, std::int32_t pp, std::int32_t dp = 1,
                             std::int32_t micro_batch = 1) {
  velo_tuning_layout made{};
  made.tp = tp;
  made.pp = pp;
  made.vpp = made.cp = made.ep = 1;
  made.dp = dp;
  made.micro_batch = micro_batch;
  made.microbatches = 1;
  made.kind = VELO_SCHEDULE_1F1B;
  return made;
}

// A layer as in Korthikanti et al.: h = 64, a = 4, s = 32.
wanted published(const std::string& training = "") {
  wanted one;
  one.model = R"("layers": 4, "hidden": 64, "heads": 4, "ffn_hidden": 256, "vocabulary": 1000, )"
              R"("gated": false, "dropout": true, "flash_attention": false)";
  one.training = R"("global_batch": 8, "sequence": 32)" + training;
  return one;
}
constexpr double s = 32, b = 3, h = 64, a = 4, v = 1000;

layer_costs published_costs(std::int32_t tp, velo_tuning_recompute recompute,
                            const std::string& training = "") {
  velo_tuning_layout layout = layout_of(tp, 1, 1, static_cast<std::int32_t>(b));
  layout.recompute = recompute;
  return layer_costs_of(job_of(published(training).text()), layout);
}

}  // namespace

TEST_CASE("activations of a layer are those of Korthikanti et al., table 2") {
  const auto kept = [](std::int32_t tp, velo_tuning_recompute recompute,
                       const std::string& training = "") {
    return published_costs(tp, recompute, training).dense.kept;
  };
  const double t = 2;
  CHECK(kept(1, VELO_TUNING_RECOMPUTE_NONE) == s * b * h * (34 + 5 * a * s / h));
  CHECK(kept(2, VELO_TUNING_RECOMPUTE_NONE, R"(, "sequence_parallel": false)") ==
        s * b * h * (10 + 24 / t + 5 * a * s / (h * t)));
  CHECK(kept(2, VELO_TUNING_RECOMPUTE_NONE) == s * b * h / t * (34 + 5 * a * s / h));
  // In float32 all but the masks of dropout, a byte each, are twice as large.
  CHECK(kept(1, VELO_TUNING_RECOMPUTE_NONE, R"(, "parameter_bytes": 4)") ==
        s * b * h * (66 + 9 * a * s / h));
  CHECK(kept(2, VELO_TUNING_RECOMPUTE_CORE) == 34 * s * b * h / t);
  CHECK(kept(1, VELO_TUNING_RECOMPUTE_FULL) == 2 * s * b * h);
  // Embedding: the mask. Output: norm, product, logits in float32.
  const layer_costs all = published_costs(2, VELO_TUNING_RECOMPUTE_NONE);
  CHECK(all.embedding.kept == s * b * h / t);
  CHECK(all.output.kept == 4 * s * b * h / t * (1 + v / h));
}

TEST_CASE("activations of a layer of 4096 rows and columns are those published") {
  const auto kept = [](std::int32_t tp, const std::string& training) {
    wanted one = published();
    one.model =
        R"("layers": 4, "hidden": 4096, "heads": 32, "ffn_hidden": 16384, "vocabulary": 1000, )"
        R"("gated": false, "dropout": true, "flash_attention": false)";
    one.training = R"("global_batch": 8, "sequence": 4096)" + training;
    velo_tuning_layout layout = layout_of(tp, 1);
    layout.recompute = VELO_TUNING_RECOMPUTE_CORE;  // without scores, as a fused attention
    return layer_costs_of(job_of(one.text()), layout).dense.kept;
  };
  CHECK(kept(1, "") == 570425344);
  CHECK(kept(8, R"(, "sequence_parallel": false)") == 218103808);
  CHECK(kept(8, "") == 71303168);
}

TEST_CASE("a fused attention keeps no scores, and a gate one tensor more") {
  wanted one;  // h = 256, 8 heads, 1024 wide
  const layer_costs all = layer_costs_of(job_of(one.text()), layout_of(1, 1));
  const double tokens = 256;
  // Two norms, three inputs of products, q, k, v and the output, three of the feed-forward, row
  // sums.
  CHECK(all.dense.kept == tokens * (2 * 256 * (2 + 2 + 4) + 2 * 3 * 1024 + 4 * 8));
  velo_tuning_layout less = layout_of(1, 1);
  less.recompute = VELO_TUNING_RECOMPUTE_ACTIVATION;
  const layer_costs with_less = layer_costs_of(job_of(one.text()), less);
  CHECK(all.dense.kept - with_less.dense.kept == tokens * 2 * 1024);
  CHECK(with_less.dense.remade == tokens * 2 * 1024);
  CHECK(with_less.dense.input > all.dense.input);
}

TEST_CASE("models have as many parameters as are published") {
  wanted llama;
  llama.model =
      R"("layers": 32, "hidden": 4096, "heads": 32, "ffn_hidden": 11008, "vocabulary": 32000)";
  CHECK(parameters_of(job_of(llama.text()).model) == 6738415616.0);
  llama.model = R"("layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn_hidden": 14336, )"
                R"("vocabulary": 128256)";
  CHECK(parameters_of(job_of(llama.text()).model) == 8030261248.0);  // Llama-3-8B
  wanted deepseek;
  deepseek.model = deepseek_v3;
  // 671026419200 but for the bias of each router.
  CHECK(parameters_of(job_of(deepseek.text()).model) == 671026419200.0 - 58 * 256);
}

TEST_CASE("a step's operations are six a parameter and token, and attention's") {
  const wanted one;
  const job training_job = job_of(one.text());
  // For all parameters but norms and the embedding.
  const double products = 8 * (4.0 * 256 * 256 + 3.0 * 256 * 1024) + 256 * 4000.0;
  const double attention = 8 * 256.0 * 2 * 256;  // 2 s h, the half that causes
  CHECK(operations_of(training_job) == Approx(3 * (2 * products + attention) * 16 * 256));
}

TEST_CASE("tensors are cut by tp, experts by ep") {
  wanted one;
  one.model += R"(, "moe": {"experts": 8, "active": 2, "hidden": 512})";
  velo_tuning_layout layout = layout_of(2, 1, 4);
  layout.ep = 4;
  const layer_costs all = layer_costs_of(job_of(one.text()), layout);
  CHECK(all.moe.expert_parameters == 2 * 3 * 256 * 512);  // two experts of a rank
  CHECK(all.moe.parameters == 2 * 256 + 4 * 256 * 256 / 2.0 + 256 * 8);
  CHECK(all.dense.parameters == 2 * 256 + (4 * 256 * 256 + 3 * 256 * 1024) / 2.0);
  CHECK(all.embedding.parameters == 256 * 4000 / 2.0);
}

TEST_CASE("memory of a rank is that of ZeRO") {
  // Rajbhandari et al.: 2 + 2 + 12 bytes a parameter, the last shared by 64 under stage 1.
  wanted one;
  one.training = R"("global_batch": 64, "sequence": 64, "gradient_bytes": 2)";
  one.accelerators = 64;
  one.search = R"("tp": [1], "cp": [1], "pp": [1], "micro_batch": [1])";
  const double parameters = parameters_of(job_of(one.text()).model);
  const rank_memory shared = searched(one.text()).plans[0].memory[0];
  CHECK(shared.parameters == 2 * parameters);
  CHECK(shared.gradients == 2 * parameters);
  CHECK(shared.optimizer == 12 * parameters / 64);
  one.training += R"(, "zero": 0)";
  CHECK(searched(one.text()).plans[0].memory[0].optimizer == 12 * parameters);
  CHECK(shared.layers == 8);
  const double sum = shared.parameters + shared.gradients + shared.optimizer + shared.activations +
                     shared.workspace + shared.communication;
  CHECK(shared.total() == sum);
  // Workspace: 2 GiB and the gradient of the logits; buffers: two buckets and one group.
  CHECK(shared.workspace == 2.0 * (1 << 30) + 64 * 4000 * 4.0);
  CHECK(shared.communication == (2 * 40 + 16) * 1048576.0);
}

TEST_CASE("activations are those that the order holds") {
  // 1F1B holds min(M, P - r) micro-batches.
  wanted one;
  one.training = R"("global_batch": 3, "sequence": 256)";
  one.accelerators = 4;
  one.search = R"("tp": [1], "cp": [1], "pp": [4], "micro_batch": [1], "kind": ["1f1b"], )"
               R"("recompute": ["none"], "split": ["even"])";
  const tuning found = searched(one.text());
  REQUIRE(found.plans.size() == 1);
  const layer_costs costs = layer_costs_of(found.of, found.plans[0].layout);
  const std::vector<rank_memory>& ranks = found.plans[0].memory;
  CHECK(ranks[0].activations == 3 * 2 * costs.dense.kept);
  CHECK(ranks[1].activations == 3 * 2 * costs.dense.kept);
  CHECK(ranks[2].activations == 2 * 2 * costs.dense.kept);
  CHECK(ranks[3].activations == 2 * costs.dense.kept + costs.output.kept);
}

TEST_CASE("a matrix shared by embedding and output is on both of their ranks") {
  wanted one;
  one.model += R"(, "tied_embeddings": true)";
  one.accelerators = 2;
  one.search =
      R"("tp": [1], "cp": [1], "pp": [2], "vpp": [2], "micro_batch": [1], "kind": ["1f1b", )"
      R"("zbv"], "recompute": ["none"], "split": ["even"])";
  const tuning found = searched(one.text());
  REQUIRE(found.plans.size() == 2);
  const double layers = 4 * (2 * 256 + 4 * 256 * 256 + 3 * 256 * 1024);
  for (const plan& p : found.plans) {
    const bool v_shaped = p.layout.kind == VELO_SCHEDULE_ZBV;  // both ends are on rank 0
    CHECK(p.memory[0].parameters == 2 * (layers + 256 * 4000 + (v_shaped ? 256 : 0)));
    CHECK(p.memory[1].parameters == 2 * (layers + (v_shaped ? 0 : 256 * 4000 + 256)));
  }
}

TEST_CASE("collectives take what rings take") {
  const job training_job = job_of(
      wanted().text(),
      R"({"per_node": 4, "intra_gb_per_s": 100, "inter_gb_per_s": 10, "link_efficiency": 1, )"
      R"("intra_latency_us": 1, "inter_latency_us": 2})");
  const double bytes = 8e9;
  CHECK(collective_seconds(training_job.profile, 1, 1, bytes) == 0);
  CHECK(collective_seconds(training_job.profile, 4, 1, bytes) == Approx(6.0 / 100 + 2e-6));
  CHECK(collective_seconds(training_job.profile, 8, 1, bytes) ==
        Approx(7.0 / 40 + 6e-6));  // four links
  CHECK(collective_seconds(training_job.profile, 4, 4, bytes) == Approx(6.0 / 10 + 4e-6));  // one
}

TEST_CASE("a balanced split is the best of all splits") {
  for (const char* vocabulary : {"100", "20000", "200000"}) {
    wanted one;
    one.model = R"("layers": 7, "hidden": 256, "heads": 8, "ffn_hidden": 1024, "vocabulary": )" +
                std::string(vocabulary) +
                R"(, "moe": {"experts": 4, "active": 3, "hidden": 900, "first": 2})";
    const job training_job = job_of(one.text());
    const layer_costs costs = layer_costs_of(training_job, layout_of(1, 3));
    const auto slowest = [&](const std::vector<std::int32_t>& layers) {
      double most = 0;
      for (const layer_cost& stage : stages_of(training_job.model, costs, layers))
        most = std::max(most, stage.seconds());
      return most;
    };
    double best = std::numeric_limits<double>::infinity();
    // The first and the last may have none.
    for (std::int32_t i = 0; i <= 6; ++i)
      for (std::int32_t k = 1; i + k <= 7; ++k) best = std::min(best, slowest({i, k, 7 - i - k}));
    const auto found = split_layers(training_job.model, costs, 3, VELO_TUNING_SPLIT_BALANCED);
    CHECK(std::accumulate(found.begin(), found.end(), 0) == 7);
    CHECK(slowest(found) == Approx(best).epsilon(1e-9));
    CHECK(split_layers(training_job.model, costs, 3, VELO_TUNING_SPLIT_EVEN) ==
          std::vector<std::int32_t>{2, 3, 2});
    CHECK(split_layers(training_job.model, costs, 4, VELO_TUNING_SPLIT_EVEN).empty());
    CHECK(split_layers(training_job.model, costs, 9, VELO_TUNING_SPLIT_BALANCED) ==
          std::vector<std::int32_t>{0, 1, 1, 1, 1, 1, 1, 1, 0});
    CHECK(split_layers(training_job.model, costs, 9, VELO_TUNING_SPLIT_EVEN) ==
          std::vector<std::int32_t>{0, 1, 1, 1, 1, 1, 1, 1, 0});
    CHECK(split_layers(training_job.model, costs, 10, VELO_TUNING_SPLIT_BALANCED).empty());
    CHECK(split_layers(training_job.model, costs, 10, VELO_TUNING_SPLIT_EVEN).empty());
  }
}

TEST_CASE("peaks of an order are those of the simulator") {
  orders all;
  for (const velo_schedule_kind kind :
       {VELO_SCHEDULE_GPIPE, VELO_SCHEDULE_1F1B, VELO_SCHEDULE_INTERLEAVED,
        VELO_SCHEDULE_LOOPED_BFS, VELO_SCHEDULE_ZBH1, VELO_SCHEDULE_ZB1P, VELO_SCHEDULE_ZBV,
        VELO_SCHEDULE_VHALF, VELO_SCHEDULE_VMIN, VELO_SCHEDULE_1F1B_V, VELO_SCHEDULE_DUALPIPEV}) {
    const bool one =
        kind == VELO_SCHEDULE_GPIPE || kind == VELO_SCHEDULE_1F1B || kind == VELO_SCHEDULE_ZBH1;
    const std::int32_t chunks = one ? 1 : 2;
    const auto made = all.get(kind, 4, chunks, 12);
    REQUIRE(made->rows != nullptr);
    const sched::timeline times = timed(*made->rows);
    for (std::int32_t rank = 0; rank < 4; ++rank) {
      const std::vector<double> sizes(static_cast<std::size_t>(chunks), 1.0);
      CHECK(made->peak(rank, sizes) ==
            static_cast<double>(times.times.ranks[static_cast<std::size_t>(rank)].peak));
    }
  }
  CHECK(all.get(VELO_SCHEDULE_DUALPIPEV, 4, 2, 3)->rows == nullptr);
}

TEST_CASE("orders are kept as long as there is room for their bytes, and made again") {
  constexpr std::size_t room = 1 << 20;
  orders all(room);
  std::vector<std::weak_ptr<const order>> made;
  std::size_t bytes = 0, kept = 0;
  for (std::int32_t microbatches = 100; bytes < 4 * room; microbatches += 10) {
    const auto one = all.get(VELO_SCHEDULE_VHALF, 4, 2, microbatches);
    REQUIRE(one->rows != nullptr);
    CHECK(one->bytes() >= static_cast<std::size_t>(one->rows->actions()) * sizeof(velo_action));
    CHECK(all.get(VELO_SCHEDULE_VHALF, 4, 2, microbatches) == one);
    bytes += one->bytes();
    made.push_back(one);
  }
  for (const auto& one : made)
    if (const auto still = one.lock()) kept += still->bytes();
  CHECK(kept > 0);
  CHECK(kept <= room);
  CHECK(all.get(VELO_SCHEDULE_VHALF, 4, 2, 100)->rows->sizes().microbatches == 100);
}

TEST_CASE("stages of unequal costs are simulated as they are") {
  const sched::schedule order = made(VELO_SCHEDULE_1F1B, {2, 2});
  sched::ticks uneven;
  uneven.stages = {{1, 1, 1, 0}, {3, 2, 2, 0}};
  uneven.latency = 1;
  std::vector<sched::stuck_rank> stuck;
  // Rank 1: F 2..5, B 5..9, F 9..12, B 12..16; rank 0 ends with B 17..19.
  const sched::simulation times = sched::simulate(order, uneven, stuck);
  CHECK(times.makespan() == 19);
  CHECK(times.ranks[1].work == 14);
  CHECK(times.ranks[0].work == 6);
  // A pair saves the less of what its stages hide.
  uneven.stages[0].hidden = 2;
  uneven.stages[1].hidden = 1;
  CHECK(uneven.of_fused(0, 1) == 1 + 4 - 1);
}
