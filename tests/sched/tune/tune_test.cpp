// Searches: what is found is what trying everything finds, and what is refused says where.
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/comma_locale.hpp"
#include "tests/core/fails.hpp"
#include "tests/random.hpp"
#include "tests/sched/tune/tunings.hpp"

using namespace velo;
using namespace velo::testing;
using namespace velo::sched::tune;

namespace {

// Some of everything, in a second.
wanted mixed() {
  wanted one;
  one.model += R"(, "moe": {"experts": 4, "active": 2, "hidden": 512, "first": 1})";
  one.search = R"("micro_batch": [1, 2, 3], "cp": [1, 2, 3], "tp": [1, 2, 16], "ep": [1, 2, 3])";
  return one;
}
std::string with_keep(wanted one, int keep) {
  one.search += R"(, "keep": )" + std::to_string(keep);
  return one.text();
}

bool same(const plan& a, const plan& b) {
  const velo_tuning_layout &x = a.layout, &y = b.layout;
  return x.tp == y.tp && x.pp == y.pp && x.vpp == y.vpp && x.dp == y.dp && x.cp == y.cp &&
         x.ep == y.ep && x.micro_batch == y.micro_batch && x.recompute == y.recompute &&
         x.kind == y.kind && x.split == y.split && a.step() == b.step();
}

call_record refusal(const std::string& config, const std::string& profile = "{}") {
  return thrown_by([&] { job_of(config, profile); });
}

constexpr const char* memory_profile = R"({"memory_gib": 2.25, "memory_fraction": 1})";

}  // namespace

TEST_CASE("the plans kept are the best of all candidates") {
  // In a memory that a third of the candidates exceed.
  const tuning all = searched(with_keep(mixed(), 10000), memory_profile);
  REQUIRE(all.plans.size() > 100);
  CHECK(all.simulated == static_cast<std::int64_t>(all.plans.size()));
  CHECK(std::is_sorted(all.plans.begin(), all.plans.end(),
                       [](const plan& a, const plan& b) { return a.step() < b.step(); }));
  for (const int keep : {1, 7, 60}) {
    const tuning some = searched(with_keep(mixed(), keep), memory_profile);
    REQUIRE(some.plans.size() == static_cast<std::size_t>(keep));
    CHECK(some.simulated < all.simulated);
    for (std::size_t i = 0; i < some.plans.size(); ++i) CHECK(same(some.plans[i], all.plans[i]));
    // Nothing is lost.
    CHECK(some.plans.size() + some.rejections.size() == all.plans.size() + all.rejections.size());
  }
}

TEST_CASE("every candidate is a plan that fits, or has its reason") {
  const tuning all = searched(with_keep(mixed(), 10000), memory_profile);
  int reasons[11] = {};
  for (const rejection& one : all.rejections) {
    ++reasons[one.code];
    CHECK(reason_of(all, one).size() > 10);
    if (one.code == VELO_TUNING_REASON_MEMORY) CHECK(one.value > all.of.profile.memory_bytes);
  }
  for (const velo_tuning_reason code :
       {VELO_TUNING_REASON_HEADS, VELO_TUNING_REASON_RANKS, VELO_TUNING_REASON_EXPERTS,
        VELO_TUNING_REASON_BATCH, VELO_TUNING_REASON_SEQUENCE, VELO_TUNING_REASON_LAYERS,
        VELO_TUNING_REASON_SCHEDULE, VELO_TUNING_REASON_MEMORY, VELO_TUNING_REASON_SAME})
    CHECK(reasons[code] > 0);
  CHECK(reasons[VELO_TUNING_REASON_SLOWER] == 0);  // all are kept
  for (const plan& one : all.plans) {
    const velo_tuning_layout& l = one.layout;
    CHECK(l.tp * l.pp * l.dp * l.cp == 8);
    CHECK(l.dp * l.micro_batch * l.microbatches == 16);
    CHECK(one.bytes() <= all.of.profile.memory_bytes);
    std::int64_t layers = 0;
    for (const std::int32_t stage : one.stage_layers) layers += stage;
    CHECK(layers == 8);
    CHECK(one.bubble >= -1e-9);
    CHECK(one.utilization < 1);
  }
}

TEST_CASE("ways to share a sequence that no other beats are tried, others have their reason") {
  const auto ways = [](const char* more, const char* profile) {
    wanted one;
    one.model = R"("layers": 8, "hidden": 512, "heads": 8, "kv_heads": 8, "ffn_hidden": 1024, )"
                R"("vocabulary": 4000)";
    one.training = R"("global_batch": 16, "sequence": 4096)";
    one.search = std::string(R"("tp": [1], "cp": [4], "pp": [1], "micro_batch": [1], "split": )") +
                 R"(["even"], "recompute": ["none"])" + more;
    return searched(one.text(), profile);
  };
  // Links so slow that the fewest bytes win, or so quick that nothing is exposed in a ring.
  constexpr const char* slow = R"({"intra_gb_per_s": 1})";
  constexpr const char* quick = R"({"intra_gb_per_s": 2000, "intra_latency_us": 0})";
  CHECK(ways("", slow).plans[0].layout.cp_algorithm == VELO_SEQUENCE_ULYSSES);
  const tuning ring = ways("", quick);
  REQUIRE(ring.plans[0].layout.cp_algorithm == VELO_SEQUENCE_RING);
  const context_use use = layer_costs_of(ring.of, ring.plans[0].layout).context;
  CHECK(use.cells == 8.0 * 4096 * 4097 / 2 / 4);
  CHECK(use.forward_exposed == 0);
  const auto same = std::count_if(ring.rejections.begin(), ring.rejections.end(),
                                  [](auto& one) { return one.code == VELO_TUNING_REASON_SAME; });
  CHECK(same > 0);
  CHECK(ring.plans.size() + static_cast<std::size_t>(same) == 4);  // and the hybrid of 2
  CHECK(write_rejected(ring).find("takes no less time and memory in a layer than ring") !=
        std::string::npos);
  CHECK(write_json(ring).find(R"("cp_algorithm": "ring")") != std::string::npos);

  const tuning two = ways(R"(, "cp_algorithm": ["hybrid"])", quick);
  REQUIRE(two.plans.size() == 1);
  CHECK(two.plans[0].layout.cp_ulysses == 2);
  wanted few;
  few.search = R"("tp": [4], "cp": [4], "pp": [1], "cp_algorithm": ["ulysses"])";
  few.accelerators = 16;
  const tuning none = searched(few.text());
  REQUIRE(none.rejections.size() == 1);
  CHECK(none.rejections[0].code == VELO_TUNING_REASON_HEADS);
  CHECK(reason_of(none, none.rejections[0]) ==
        "ulysses of 4 ranks needs as many heads of a rank, which are 2");
}

TEST_CASE("tensors' exchanges overlap in as many slices as hide them best") {
  const auto best = [](const char* profile, const char* more = "") {
    wanted one;
    one.training = std::string(R"("global_batch": 16, "sequence": 2048)") + more;
    one.search = R"("tp": [4], "cp": [1], "pp": [1], "micro_batch": [1], "split": ["even"], )"
                 R"("recompute": ["none"], "tp_slices": [1, 2, 4, 8])";
    return searched(one.text(), profile);
  };
  constexpr const char* bytes = R"({"intra_gb_per_s": 100, "intra_latency_us": 0})";
  constexpr const char* latency = R"({"intra_gb_per_s": 10000, "intra_latency_us": 100})";
  const tuning many = best(bytes);
  REQUIRE(many.plans.size() == 1);
  CHECK(many.plans[0].layout.tp_slices == 8);
  CHECK(write_rejected(many).find("takes no less time and memory in a layer than 8 slices") !=
        std::string::npos);
  CHECK(write_summary(many).find("tp_slices") != std::string::npos);
  CHECK(best(latency).plans[0].layout.tp_slices == 1);
  CHECK(best(bytes, R"(, "sequence_parallel": false)").plans[0].layout.tp_slices == 8);
  // Beyond a node nothing is shared.
  CHECK(best(R"({"per_node": 2})").plans[0].layout.tp_slices == 1);

  // By hand: two blocks, each with a gather and a scatter that take less than the products.
  const job of = job_of(wanted().text(), R"({"intra_latency_us": 0, "intra_gb_per_s": 1e5,
      "link_efficiency": 1, "peak_tflops": 1, "matmul_efficiency": 1, "memory_gb_per_s": 1e6})");
  velo_tuning_layout two{};
  two.tp = 2;
  two.pp = two.vpp = two.dp = two.cp = two.ep = two.micro_batch = 1;
  const full_layout apart = two;
  full_layout sliced = two;
  sliced.tp_slices = 4;
  const double exchange = 256 * 256 * 2 / 2.0 / 1e14;  // half of the rows come from the other
  CHECK(layer_costs_of(of, apart).dense.forward - layer_costs_of(of, sliced).dense.forward ==
        Approx(4 * exchange * 3 / 4).epsilon(1e-6));
}

TEST_CASE("tokens that products put in order cost their square") {
  wanted one;
  one.model += R"(, "moe": {"experts": 4, "active": 2, "hidden": 512})";
  one.search = R"("tp": [1], "cp": [1], "pp": [1], "ep": [1], "micro_batch": [1], )"
               R"("recompute": ["none"], "split": ["even"])";
  const tuning usual = searched(one.text());
  CHECK(write_json(usual).find(R"("token_rearrange": "index")") != std::string::npos);
  one.search += R"(, "token_rearrange": ["one_hot"])";
  CHECK(searched(one.text()).plans[0].step() > usual.plans[0].step());
  one.search.replace(one.search.find(R"(["one_hot"])"), 11, R"(["index", "one_hot"])");
  const tuning both = searched(one.text());
  CHECK(both.plans.size() == usual.plans.size());
  CHECK(write_rejected(both).find("takes no less time and memory in a layer than index") !=
        std::string::npos);
  velo_tuning_layout alone{};
  alone.tp = alone.pp = alone.vpp = alone.dp = alone.cp = alone.ep = alone.micro_batch = 1;
  full_layout products = alone;
  products.tokens = rearrange::one_hot;
  const job of = job_of(one.text(), R"({"peak_tflops": 1, "matmul_efficiency": 1})");
  const layer_cost by_products = layer_costs_of(of, products).moe;
  const layer_cost by_index = layer_costs_of(of, alone).moe;
  // 256 tokens, 512 places, 256 wide, twice; and the matrix is kept.
  const double kept = 512 * 256 * 2.0;
  CHECK(by_products.kept - by_index.kept == kept);
  CHECK(by_products.forward - by_index.forward ==
        Approx(2 * 2.0 * 512 * 256 * 256 / 1e12 + 2 * kept / of.profile.memory_rate));
}

TEST_CASE("a reason has the numbers that decide") {
  const auto first = [](const wanted& of, velo_tuning_reason code) {
    const tuning found = searched(of.text());
    for (const rejection& one : found.rejections)
      if (one.code == code) return reason_of(found, one);
    return std::string("none");
  };
  wanted cut;
  cut.search = R"("tp": [2], "cp": [129, 3])";
  CHECK(first(cut, VELO_TUNING_REASON_SEQUENCE) == "tp * cp = 258 exceeds sequences of 256");
  cut.search = R"("tp": [3, 16], "cp": [257])";
  cut.training += R"(, "sequence_parallel": false)";
  CHECK(first(cut, VELO_TUNING_REASON_SEQUENCE) == "cp = 257 exceeds sequences of 256");
  CHECK(first(cut, VELO_TUNING_REASON_HEADS) ==
        "tp 16 exceeds 8 heads of keys and is no multiple of them that divides 8 heads");
  wanted even;
  even.model += R"(, "moe": {"experts": 4, "active": 2, "hidden": 512})";
  even.search = R"("tp": [2], "cp": [3])";
  CHECK(first(even, VELO_TUNING_REASON_SEQUENCE) == "tp * cp = 6 does not divide sequences of 256");
  wanted narrow;
  narrow.model = R"("layers": 2, "hidden": 64, "heads": 16, "ffn_hidden": 8, "vocabulary": 100)";
  narrow.search = R"("tp": [16])";
  CHECK(first(narrow, VELO_TUNING_REASON_HEADS) ==
        "tp 16 exceeds feed-forwards of 8 or a vocabulary of 100");
  wanted shared;
  shared.model += R"(, "moe": {"experts": 4, "active": 2, "hidden": 512, "shared_hidden": 511})";
  shared.search = R"("tp": [2])";
  CHECK(first(shared, VELO_TUNING_REASON_HEADS) ==
        "tp 2 does not divide 8 heads, 8 of keys, or feed-forwards of 1024 and 511");
  wanted parted;
  parted.model += R"(, "moe": {"experts": 24, "active": 2, "hidden": 512})";
  const auto of_experts = [&](const char* ep, const char* pp) {
    parted.search =
        std::string(R"("tp": [1], "cp": [1], "pp": [)") + pp + R"(], "ep": [)" + ep + "]";
    return first(parted, VELO_TUNING_REASON_EXPERTS);
  };
  CHECK(of_experts("16", "1") == "ep 16 does not divide 24 experts, or 8 ranks of a stage");
  CHECK(of_experts("8", "2") == "ep 8 does not divide 4 ranks of a stage");
  CHECK(of_experts("7", "1") == "ep 7 does not divide 24 experts, or 8 ranks of a stage");
  parted.model.replace(parted.model.find(R"(24, "active")"), 2, "12");
  CHECK(of_experts("8", "1") == "ep 8 does not divide 12 experts");
  parted.model = wanted().model;
  CHECK(of_experts("2", "1") == "ep 2 of a model without experts");
}

TEST_CASE(
    "a kind with no number of stages among those to be tried is rejected, and says which it "
    "takes") {
  const auto reason = [](const char* kind, const char* vpp) {
    wanted one;
    one.search = std::string(R"("tp": [1], "cp": [1], "pp": [4], "micro_batch": [1], )") +
                 R"("recompute": ["none"], "kind": [")" + kind + R"("], "vpp": )" + vpp;
    const tuning found = searched(one.text());
    CHECK(found.plans.empty());
    REQUIRE(found.rejections.size() == 1);
    const rejection& only = found.rejections[0];
    CHECK(only.code == VELO_TUNING_REASON_SCHEDULE);
    CHECK(only.layout.pp == 4);
    CHECK(only.layout.vpp == 0);  // none of them
    CHECK(write_rejected(found).find(std::string(kind) + ",,schedule,") != std::string::npos);
    return reason_of(found, only);
  };
  CHECK(reason("zbv", "[1, 4]") == "zbv takes a vpp of 2, which search.vpp does not list");
  CHECK(reason("dualpipev", "[3]") == "dualpipev takes a vpp of 2, which search.vpp does not list");
  CHECK(reason("interleaved", "[1]") ==
        "interleaved takes a vpp of 2 or more, which search.vpp does not list");

  // The table has a line for each such kind.
  wanted three;
  three.search = R"("pp": [4], "vpp": [1], "kind": ["zbv", "1f1b", "interleaved", "vmin"])";
  const std::string table = write_summary(searched(three.text()));
  for (const char* line :
       {"schedule zbv: zbv takes a vpp of 2", "schedule vmin: vmin takes a vpp of 2",
        "schedule interleaved: interleaved takes a vpp of 2 or more"})
    CHECK(table.find(line) != std::string::npos);

  // Beside it, kinds that have one.
  wanted both;
  both.search = R"("pp": [2], "vpp": [2], "kind": ["zbv", "1f1b"])";
  for (const rejection& one : searched(both.text()).rejections)
    CHECK(one.code != VELO_TUNING_REASON_SCHEDULE);
}

TEST_CASE("no pipeline of any kind takes less than its bound") {
  wanted any = mixed();
  any.search += R"(, "kind": ["1f1b", "interleaved", "zbh1", "zb1p", "zbv", "vhalf", "vmin", )"
                R"("dualpipev", "1f1b-v", "gpipe", "looped-bfs"])";
  const tuning all = searched(with_keep(any, 10000));
  std::set<velo_schedule_kind> kinds;
  for (const plan& one : all.plans) {
    kinds.insert(one.layout.kind);
    const layer_costs costs = layer_costs_of(all.of, one.layout);
    const auto stages = stages_of(all.of.model, costs, one.stage_layers);
    const sched::placement of = placements_of(one.layout)[0];
    CHECK(least_seconds(one.layout, costs, stages, of) <= one.pipeline * (1 + 1e-9));
  }
  CHECK(kinds.size() == 11);
}

TEST_CASE("a pipeline of equal stages takes what the formula of 1F1B says") {
  wanted one;
  one.model = R"("layers": 8, "hidden": 256, "heads": 8, "ffn_hidden": 1024, "vocabulary": 1)";
  one.accelerators = 4;
  one.search = R"("tp": [1], "cp": [1], "pp": [4], "micro_batch": [1], "kind": ["1f1b"], )"
               R"("recompute": ["none"], "split": ["even"])";
  const tuning found = searched(
      one.text(), R"({"inter_latency_us": 0, "intra_latency_us": 0, "intra_gb_per_s": 1000000})");
  REQUIRE(found.plans.size() == 1);
  const layer_costs costs = layer_costs_of(found.of, found.plans[0].layout);
  const double stage = 2 * costs.dense.seconds();
  CHECK(found.plans[0].pipeline == Approx((16 + 3) * stage).epsilon(0.02));
  CHECK(found.plans[0].bubble == Approx(3.0 / 19).epsilon(0.05));
}

TEST_CASE("more of anything is never slower") {
  const auto best = [](const std::string& profile) {
    const tuning found = searched(with_keep(mixed(), 1), profile);
    return found.plans.empty() ? std::numeric_limits<double>::infinity() : found.plans[0].step();
  };
  const auto falls = [&](const char* key, std::initializer_list<const char*> values) {
    double before = std::numeric_limits<double>::infinity();
    for (const char* value : values) {
      const double now = best(std::string("{\"") + key + "\": " + value + "}");
      INFO(key << " " << value);
      CHECK(now <= before);
      before = now;
    }
    CHECK(std::isfinite(before));
  };
  falls("memory_gib", {"2.3", "2.4", "2.6", "3", "80"});
  falls("peak_tflops", {"10", "100", "1000"});
  falls("memory_gb_per_s", {"100", "1000", "4000"});
  falls("intra_gb_per_s", {"1", "30", "300"});
  falls("intra_latency_us", {"100", "10", "0"});
  falls("layer_us", {"50", "5", "0"});
}

TEST_CASE("where nothing fits the nearest is named") {
  const tuning none = searched(with_keep(mixed(), 5), R"({"memory_gib": 0.5})");
  CHECK(none.plans.empty());
  REQUIRE(none.nearest >= 0);
  const rejection& nearest = none.rejections[static_cast<std::size_t>(none.nearest)];
  CHECK(nearest.code == VELO_TUNING_REASON_MEMORY);
  CHECK_FALSE(nearest.at_least);
  // With that much memory it is what fits, and with less nothing does.
  const auto with_bytes = [](double bytes) {
    return R"({"memory_gib": )" + std::to_string(bytes / (1 << 30)) + R"(, "memory_fraction": 1})";
  };
  const tuning fits = searched(with_keep(mixed(), 10000), with_bytes(nearest.value + 4096));
  CHECK_FALSE(fits.plans.empty());
  CHECK(searched(with_keep(mixed(), 5), with_bytes(nearest.value - 4096)).plans.empty());

  wanted odd;
  odd.search = R"("tp": [3])";
  const tuning shapeless = searched(odd.text());
  CHECK(shapeless.plans.empty());
  CHECK(shapeless.nearest == -1);
}

TEST_CASE("what is wrong in a text is named by its place") {
  const wanted good;
  CHECK(refusal(good.text()).code == VELO_OK);
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = good.text();
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return refusal(text.replace(at, from.size(), to));
  };
  const auto at = [&](const std::string& from, const std::string& to, const char* argument) {
    INFO(to);
    CHECK_REFUSED(broken(from, to), VELO_ERR_ARGUMENT, argument);
  };
  at(R"("layers": 8)", R"("layers": 0)", "config.model.layers");
  at(R"("layers": 8)", R"("layers": 8.0)", "config.model.layers");
  at(R"("layers": 8)", R"("layers": "8")", "config.model.layers");
  at(R"("layers": 8)", R"("layers": -9223372036854775808)", "config.model.layers");
  at(R"("layers": 8, )", "", "config.model.layers");
  at(R"("layers": 8)", R"("layers": 8, "layer": 9)", "config.model.layer");
  at(R"("heads": 8)", R"("heads": 8, "kv_heads": 3)", "config.model.kv_heads");
  at(R"("heads": 8)", R"("heads": 8, "gated": 1)", "config.model.gated");
  at(R"("heads": 8)", R"("heads": 8, "moe": {"experts": 4, "hidden": 3, "active": 5})",
     "config.model.moe.active");
  at(R"("heads": 8)", R"("heads": 8, "moe": [])", "config.model.moe");
  at(R"("sequence": 256)", R"("sequence": 256, "imbalance": 0.5)", "config.training.imbalance");
  at(R"("sequence": 256)", R"("sequence": 256, "zero": 3)", "config.training.zero");
  at(R"("search": {)", R"("search": {"tp": [])", "config.search.tp");
  at(R"("search": {)", R"("search": {"tp": [1, 2, 1])", "config.search.tp");
  at(R"("search": {)", R"("search": {"tp": [1, 0])", "config.search.tp[1]");
  at(R"("search": {)", R"("search": {"kind": ["1f1b", "ripipe"])", "config.search.kind[1]");
  at(R"("search": {)", R"("search": {"cp_algorithm": ["rings"])", "config.search.cp_algorithm[0]");
  at(R"("search": {)", R"("search": {"cp": [8192])", "config.search.cp[0]");
  at(R"("search": {)", R"("search": {"tp_slices": [1025])", "config.search.tp_slices[0]");
  at(R"("search": {)", R"("search": {"token_rearrange": ["sort"])",
     "config.search.token_rearrange[0]");
  at(R"("search": {)", R"("search": {"keep": 10001)", "config.search.keep");
  at(R"("accelerators": 8)", R"("accelerators": 65537)", "config.accelerators");
  at(R"("accelerators": 8)", R"("profile": {}, "accelerators": 8)", "desc.profile");

  const auto malformed = [&](const std::string& from, const std::string& to, const char* where) {
    const call_record why = broken(from, to);
    INFO(to << " " << why.got);
    CHECK_REFUSED(why, VELO_ERR_PARSE, "config");
    CHECK(why.got.find(where) != std::string::npos);
  };
  malformed(R"("layers": 8)", R"("layers": NaN)", "line 1, column");
  malformed(R"("layers": 8)", R"("layers": 8, "layers": 8)", "duplicate");
  malformed(R"("layers": 8)", R"("layers": 1e999)", "line 1, column");
  malformed(R"("layers": 8)", R"("layers": 99999999999999999999)", "line 1, column");
  malformed(R"("search": {)", "\"search\": {\n\n!", "line 3, column");
  malformed(R"("search": {)", R"("search": {"tp": )" + std::string(100000, '['), "line 1, column");
  malformed(R"("search": {)", std::string("\"search\": {\n\0", 13),
            "line 2, column 1: a zero byte");
  malformed(R"("search": {)", "\"search\": {\"\xff\": 1", "line 1, column");
  velo_tune_desc nothing = VELO_TUNE_DESC_INIT;
  velo_tuning none = nullptr;
  CHECK(velo_tune(&nothing, &none) == VELO_ERR_NULL);
  CHECK(refusal("").code == VELO_ERR_PARSE);
  CHECK(refusal("[]").code == VELO_ERR_ARGUMENT);

  const call_record profile = refusal(good.text(), R"({"memory_gib": -1})");
  CHECK(profile.argument == "profile.memory_gib");
  CHECK(refusal(good.text(), R"({"memory": 1})").argument == "profile.memory");
  CHECK(refusal(good.text(), "{").argument == "profile");
}

TEST_CASE("texts damaged at random are read or refused, and nothing else") {
  const std::string whole = mixed().text();
  velo::testing::cheap_random draw(17);
  const auto random = [&](std::size_t below) {
    return static_cast<std::size_t>((draw() >> 8) % below);
  };
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (std::size_t n = random(3) + 1; n-- > 0;) {
      static const std::string bytes("{}[],:\"-.019eE\\tn \0\xff", 20);
      const std::size_t at = random(text.size());
      if (random(3) == 0)
        text.erase(at, random(9) + 1);
      else
        text.insert(at, 1, bytes[random(bytes.size())]);
    }
    const call_record why = refusal(text);
    refused += why.code != VELO_OK;
    INFO(text);
    if (why.code == VELO_OK) continue;
    CHECK((why.code == VELO_ERR_PARSE || why.code == VELO_ERR_ARGUMENT));
    CHECK(why.argument.compare(0, 6, "config") == 0);
  }
  CHECK(refused > 1000);
}

TEST_CASE("the largest numbers that are taken do no harm") {
  wanted large;
  large.model = R"("layers": 4096, "hidden": 1048576, "heads": 65536, "ffn_hidden": 4194304, )"
                R"("vocabulary": 16777216, "moe": {"experts": 65536, "active": 65536, )"
                R"("hidden": 4194304})";
  large.training = R"("global_batch": 1048576, "sequence": 16777216)";
  large.accelerators = 65536;
  large.search = R"("tp": [1, 65536], "cp": [1], "pp": [1, 4096], "vpp": [2], "ep": [1, 65536], )"
                 R"("micro_batch": [1, 1048576], "recompute": ["full"])";
  const tuning none = searched(large.text(), R"({"memory_gib": 1000000, "peak_tflops": 1e-6})");
  CHECK(none.plans.empty());
  CHECK(none.nearest >= 0);
  CHECK(write_json(none).find("inf") == std::string::npos);
}

TEST_CASE("texts are the same under any locale") {
  const tuning found = searched(with_keep(mixed(), 3));
  const std::string summary = write_summary(found), data = write_json(found);
  const std::string rejected = write_rejected(found), assumptions = write_assumptions(found);
  const comma_locale comma;
  CHECK(write_summary(found) == summary);
  CHECK(write_json(found) == data);
  CHECK(write_rejected(found) == rejected);
  CHECK(write_assumptions(found) == assumptions);
  CHECK(searched(with_keep(mixed(), 3)).plans[0].step() == found.plans[0].step());
}
