// Tensor ranks in two dimensions and splits of sequences: sums by hand, and searches with them.
#include "sched/tune/orders.hpp"
#include "tests/core/fails.hpp"
#include "tests/sched/tune/tunings.hpp"

using namespace velo;
using namespace velo::testing;
using namespace velo::sched::tune;
using Catch::Matchers::Contains;

namespace {

constexpr double tokens = 256, hidden = 256, inner = 1024, symbols = 4000, vectors = 2;  // bytes

full_layout layout_of(std::int32_t tp, std::int32_t tp_x, std::int32_t splits = 0) {
  full_layout made;
  made.tp = tp;
  made.pp = made.vpp = made.dp = made.cp = made.ep = made.micro_batch = made.microbatches = 1;
  made.kind = VELO_SCHEDULE_1F1B;
  made.tp_x = tp_x;
  made.sequence_splits = splits;
  made.tp_slices = tp > 1 ? 1 : 0;
  if (made.attention_ranks() > 1) made.cp_algorithm = VELO_SEQUENCE_RING;
  return made;
}

layer_costs costs_of(const full_layout& layout, const std::string& profile = "{}") {
  return layer_costs_of(job_of(wanted().text(), profile), layout);
}

std::vector<std::string> texts_of(const tuning& found, velo_tuning_reason code) {
  std::vector<std::string> all;
  for (const rejection& one : found.rejections)
    if (one.code == code) all.push_back(reason_of(found, one));
  return all;
}

}  // namespace

TEST_CASE("matrices cut both ways exchange rows along x and products along y") {
  // X = 2, Y = 2: a rank has a half of a gather's or a scatter's bytes from or for others.
  const tensor_use use = costs_of(layout_of(4, 2)).tensor;
  const double row = tokens * vectors, half = 0.5;
  const double stream = row * hidden / 2 * half;
  const double qkv = row * 3 * hidden / 2 * half, attended = row * hidden / 2 * half;
  const double gates = row * 2 * inner / 2 * half, gated = row * inner / 2 * half;
  const double norms = 4 * (tokens / 2 * 4) * half;  // two norms, a gather and a scatter each
  CHECK(use.forward_bytes == 4 * stream + qkv + attended + gates + gated + norms);
  CHECK(use.gradient_bytes == 6 * stream + qkv + 2 * attended + gates + 2 * gated + norms);
}

TEST_CASE("the first linear layer of 16 ranks exchanges the published numbers of elements") {
  // s 4096, h 8192, O 28672: elements that a rank receives in the gather, and sends in the scatter.
  const struct {
    std::int64_t x, y;
    double gathered, scattered;
  } cuts[] = {{8, 2, 14680064, 7340032}, {4, 4, 6291456, 22020096}, {16, 1, 31457280, 0}};
  for (const auto& [x, y, gathered, scattered] : cuts) {
    const auto elements = [&, x_ranks = x, y_ranks = y](double stream, double first) {
      // A column of 4096 rows; what is cut along the other dimension is a rank's part of it.
      const cut_block block{x_ranks,
                            y_ranks,
                            4096,
                            0,
                            stream / static_cast<double>(y_ranks),
                            first / static_cast<double>(x_ranks),
                            0};
      return exchanged_both_ways({}, block).forward_bytes;
    };
    CHECK(elements(8192, 0) == 2 * gathered);  // and the block's second layer scatters as much
    CHECK(elements(0, 28672) == scattered);
  }
}

TEST_CASE("along y alone nothing of the stream is gathered, along x alone no product is summed") {
  const double row = tokens * vectors, part = 3.0 / 4;
  const tensor_use along_y = costs_of(layout_of(4, 1)).tensor;
  CHECK(along_y.forward_bytes == row * (4 * hidden + 3 * inner) * part + 4 * tokens * 4 * part);
  const tensor_use along_x = costs_of(layout_of(4, 4)).tensor;
  CHECK(along_x.forward_bytes == 4 * row * hidden * part);
  // Which is what one dimension exchanges, and takes as long.
  const layer_costs one = costs_of(layout_of(4, 0)), x = costs_of(layout_of(4, 4));
  CHECK(x.dense.forward == Approx(one.dense.forward));
  CHECK(x.dense.input == Approx(one.dense.input));
  CHECK(x.dense.kept == one.dense.kept);
  CHECK(x.gathered_bytes == one.gathered_bytes);
}

TEST_CASE("a gradient gathers the inputs of a block's first product again, if ranks cut the rows") {
  // Links alone take time: 3 / 4 of all rows' bytes in or out of a rank at 10 GB/s, 80 % of it.
  const char* profile =
      R"({"per_node": 4, "intra_gb_per_s": 10, "link_efficiency": 0.8, "intra_latency_us": 0, )"
      R"("layer_us": 0, "memory_gb_per_s": 1e6, "peak_tflops": 1e6, "tp_overlap": 0})";
  const double exchange = tokens * vectors * hidden * 3 / 4 / 8e9;
  const layer_cost cut = costs_of(layout_of(4, 0), profile).dense;
  CHECK(cut.forward == Approx(4 * exchange).epsilon(1e-3));
  CHECK(cut.input == Approx(6 * exchange).epsilon(1e-3));
  // Every rank has all rows: two sums a pass, each a scatter and a gather.
  wanted whole;
  whole.training += R"(, "sequence_parallel": false)";
  const layer_cost uncut = layer_costs_of(job_of(whole.text(), profile), layout_of(4, 0)).dense;
  CHECK(uncut.forward == Approx(4 * exchange).epsilon(1e-3));
  CHECK(uncut.input == Approx(4 * exchange).epsilon(1e-3));
}

TEST_CASE("in slices the second gather travels beside the product whose sums are scattered") {
  const char* profile = R"({"per_node": 4, "intra_gb_per_s": 10, "link_efficiency": 1, )"
                        R"("intra_latency_us": 0, "layer_us": 0, "memory_gb_per_s": 1e6, )"
                        R"("matmul_efficiency": 1, "tp_overlap": 0, "peak_tflops": 5})";
  full_layout sliced = layout_of(4, 0);
  sliced.tp_slices = 2;
  const double exchange = tokens * vectors * hidden * 3 / 4 / 1e10;
  const auto product = [](double inner_columns) { return 2 * tokens * inner_columns / 5e12; };
  const double qkv = product(hidden * 3 * hidden / 4), out = product(hidden * hidden / 4),
               gates = product(hidden * 2 * inner / 4), down = product(hidden * inner / 4);
  // Of two slices one is exposed, and of the other what the product does not hide.
  const auto saved = [&](double exchanges, double beside) {
    return std::min(exchanges * exchange, beside) / 2;
  };
  CHECK(costs_of(layout_of(4, 0), profile).dense.input - costs_of(sliced, profile).dense.input ==
        Approx(saved(2, qkv) + saved(1, out) + saved(2, gates) + saved(1, down)));
}

TEST_CASE("weights and kept activations are cut by x and y, rows of attention by cp and y") {
  const layer_costs one = costs_of(layout_of(4, 0)), two = costs_of(layout_of(4, 2));
  CHECK(one.dense.parameters - two.dense.parameters == 2 * hidden / 2);  // gains
  CHECK(two.embedding.parameters == hidden * symbols / 4);
  CHECK(two.dense.kept - two.context.kept_bytes == one.dense.kept);
  CHECK(two.output.kept == one.output.kept);
  CHECK(two.message_bytes == one.message_bytes);
  // A ring of two, of half of the heads: as many cells of a rank as of four parts of the heads.
  CHECK(two.context.cells == Approx(4 * (256 * 257.0 / 2) / 2));
  // All rows of the stream, the widest product, and the ring's buffers.
  const double ring = two.gathered_bytes - tokens * vectors * (hidden / 2 + 2 * inner / 2);
  CHECK(ring > 0);
  CHECK(ring < tokens * vectors * 8 * hidden);
}

TEST_CASE("of sizes that ranks do not divide the largest part counts") {
  wanted uneven, largest;
  const auto model = [](const char* heads, const char* keys, int inner_size, int vocabulary) {
    return std::string(R"("layers": 8, "hidden": 256, "head_dim": 32, "heads": )") + heads +
           R"(, "kv_heads": )" + keys + R"(, "ffn_hidden": )" + std::to_string(inner_size) +
           R"(, "vocabulary": )" + std::to_string(vocabulary);
  };
  uneven.model = model("8", "4", 1000, 4000);  // over 3 ranks: 2 heads of keys at most, 334, 1334
  largest.model = model("12", "6", 1002, 4002);
  uneven.training = R"("global_batch": 16, "sequence": 250)";
  largest.training = R"("global_batch": 16, "sequence": 252)";  // with cp 4, and cp 4 by tp 3
  const auto of = [](const wanted& job, std::int32_t tp, std::int32_t cp) {
    full_layout made = layout_of(tp, 0);
    made.cp = cp;
    if (cp > 1) made.cp_algorithm = VELO_SEQUENCE_RING;
    return layer_costs_of(job_of(job.text()), made);
  };
  for (const auto& [tp, cp] : {std::pair{3, 4}, {3, 1}, {1, 4}}) {
    INFO("tp " << tp << ", cp " << cp);
    wanted bound = uneven;  // what ranks do divide
    if (tp > 1) bound.model = largest.model;
    if (cp > 1) bound.training = largest.training;
    const layer_costs a = of(uneven, tp, cp), b = of(bound, tp, cp);
    CHECK(a.dense.parameters == b.dense.parameters);
    CHECK(a.embedding.parameters == b.embedding.parameters);
    CHECK(a.context.cells == b.context.cells);
    CHECK(a.context.forward_bytes == b.context.forward_bytes);
    if (cp == 1) continue;  // 250 rows are no multiple of 3
    CHECK(a.dense.forward == b.dense.forward);
    CHECK(a.dense.input == b.dense.input);
    CHECK(a.dense.kept == b.dense.kept);
    CHECK(a.output.kept == b.output.kept);
    CHECK(a.message_bytes == b.message_bytes);
    CHECK(a.gathered_bytes == b.gathered_bytes);
  }
  // Along y the hidden dimension is cut: 86 columns of 256 at most, 84 rows of 250.
  const layer_costs y = layer_costs_of(job_of(uneven.text()), layout_of(3, 1));
  CHECK(y.message_bytes == 250 * vectors * 86);
  CHECK(y.embedding.parameters == 86.0 * 4000);
}

TEST_CASE("two dimensions win where one exchanges more, and go where one has too few heads") {
  wanted one;
  one.accelerators = 16;
  one.model = R"("layers": 4, "hidden": 4096, "heads": 16, "kv_heads": 4, "ffn_hidden": 4096, )"
              R"("vocabulary": 4000)";
  one.training = R"("global_batch": 1, "sequence": 1024)";
  const std::string search =
      R"("tp": [16], "pp": [1], "cp": [1], "micro_batch": [1], "recompute": ["none"], )"
      R"("split": ["even"], "tp_x": [0, 1, 2, 4, 8, 16])";
  const char* profile =
      R"({"per_node": 16, "intra_gb_per_s": 10, "intra_latency_us": 0, "layer_us": 0})";
  one.search = search;
  const tuning found = searched(one.text(), profile);
  REQUIRE(found.plans.size() > 4);
  CHECK(found.plans[0].layout.tp_x == 4);
  CHECK_THAT(write_json(found), Contains("\"tp_x\": 4") && Contains("\"tensor\": {"));
  CHECK_THAT(write_summary(found), Contains("tp_x"));

  one.model = R"("layers": 4, "hidden": 512, "heads": 4, "ffn_hidden": 1024, "vocabulary": 4000)";
  const tuning few = searched(one.text(), profile);
  REQUIRE(!few.plans.empty());
  for (const plan& each : few.plans) CHECK(each.layout.tp_x >= 1);
  for (const plan& each : few.plans) CHECK(each.layout.tp_x <= 4);
}

TEST_CASE("a cut both ways that does not divide says what") {
  wanted one;
  one.model = R"("layers": 2, "hidden": 6, "heads": 2, "ffn_hidden": 64, "vocabulary": 100)";
  one.search = R"("tp": [1, 8], "cp": [1], "pp": [1], "tp_x": [1, 2, 3, 4])";
  const std::vector<std::string> found = texts_of(searched(one.text()), VELO_TUNING_REASON_HEADS);
  for (const char* expected :
       {"tp_x 2 does not divide tp 1", "tp_x 3 does not divide tp 8",
        "tp / tp_x = 8 exceeds a hidden dimension of 6",
        "tp_x 4 exceeds 2 heads of keys and is no multiple of them that divides 2 heads"}) {
    INFO(expected);
    CHECK(std::count(found.begin(), found.end(), expected) > 0);
  }
  one.model += R"(, "moe": {"experts": 4, "active": 2, "hidden": 512})";
  const call_record refused = thrown_by([&] { job_of(one.text()); });
  CHECK(refused.argument == "config.search.tp_x");
  CHECK_THAT(refused.expected, Contains("[0] where there are experts"));
}

TEST_CASE("a cut both ways that is the cut one way is rejected where that is a candidate, too") {
  wanted one;
  one.search = R"("tp": [1, 4], "cp": [1], "pp": [1], "micro_batch": [1], "recompute": ["none"], )"
               R"("split": ["even"], "keep": 100, )";
  const std::string rest = one.search;
  const auto cuts_of = [&](const std::string& more) {
    one.search = rest + more;
    const tuning found = searched(one.text());
    std::vector<std::string> all = texts_of(found, VELO_TUNING_REASON_SAME);
    for (const plan& each : found.plans)
      all.push_back(std::to_string(each.layout.tp) + " by " + std::to_string(each.layout.tp_x));
    std::sort(all.begin(), all.end());
    return all;
  };
  using texts = std::vector<std::string>;
  const std::string of_1 = "tp_x 1 of tp 1 is the same cut as tp_x 0",
                    of_4 = "tp_x 4 of tp 4 is the same cut as tp_x 0";
  CHECK(cuts_of(R"("tp_x": [0, 1, 4], "cp_algorithm": ["ring"])") ==
        texts{"1 by 0", "4 by 0", "4 by 1", of_1, of_4});
  CHECK(cuts_of(R"("tp_x": [1, 4], "cp_algorithm": ["ring"])") ==
        texts{"1 by 1", "4 by 1", "4 by 4"});
  // One dimension in two slices only, or with all rows on each rank.
  CHECK(cuts_of(R"("tp_x": [0, 4], "tp_slices": [2])") == texts{"1 by 0", "4 by 0", "4 by 4"});
  one.training += R"(, "sequence_parallel": false)";
  CHECK(cuts_of(R"("tp_x": [0, 1, 4], "cp_algorithm": ["ring"])") ==
        texts{"1 by 0", "4 by 0", "4 by 1", "4 by 4", of_1});
}

TEST_CASE("rows and optimizer states are shared or not as a choice of the search") {
  wanted one;
  one.accelerators = 4;
  one.search = R"("tp": [2], "cp": [1], "pp": [1, 2], "micro_batch": [4], "recompute": ["none"], )"
               R"("split": ["even"], "kind": ["1f1b"], "sequence_parallel": [true, false], )"
               R"("zero": [0, 1, 2])";
  const tuning found = searched(one.text());
  // With stages no ranks have the same parameters: one plan for all of zero.
  CHECK(found.plans.size() == 2 * 3 + 2 * 1);
  CHECK(texts_of(found, VELO_TUNING_REASON_SAME) ==
        std::vector<std::string>{"no ranks share parameters, so zero 1 is the same as zero 0",
                                 "no ranks share parameters, so zero 2 is the same as zero 0",
                                 "no ranks share parameters, so zero 1 is the same as zero 0",
                                 "no ranks share parameters, so zero 2 is the same as zero 0"});
  for (const plan& each : found.plans) {
    // A plan is the one of a training with the same choices.
    wanted fixed = one;
    const full_layout& l = each.layout;
    fixed.training += std::string(R"(, "sequence_parallel": )") +
                      (l.sequence_parallel == 1 ? "true" : "false") + R"(, "zero": )" +
                      std::to_string(l.zero);
    fixed.search = fixed.search.substr(0, fixed.search.find(R"(, "sequence_parallel")"));
    const tuning alone = searched(fixed.text());
    CHECK(std::count_if(alone.plans.begin(), alone.plans.end(), [&](const plan& other) {
            return other.layout.pp == l.pp && other.step() == each.step() &&
                   other.bytes() == each.bytes();
          }) == 1);
  }
  const std::string json = write_json(found);
  CHECK_THAT(json, Contains("\"sequence_parallel\": true, \"zero\": 0") &&
                       Contains("\"sequence_parallel\": false, \"zero\": 2"));
  CHECK_THAT(write_summary(found), Contains("sequence_parallel  zero"));
  CHECK_THAT(write_summary(searched(wanted().text())), !Contains("sequence_parallel  zero"));
}

TEST_CASE("lists of rows and of ZeRO's stages are checked") {
  const auto refused = [](const char* search, const char* more = "") {
    wanted one;
    one.model += more;
    one.search = search;
    const call_record found = thrown_by([&] { job_of(one.text()); });
    return std::string(found.argument) + ": " + std::string(found.expected);
  };
  CHECK(refused(R"("zero": [3])") == "config.search.zero[0]: a whole number from 0 to 2");
  CHECK(refused(R"("zero": [1, 1])") == "config.search.zero: each choice once");
  CHECK(refused(R"("sequence_parallel": [true, 1])") ==
        "config.search.sequence_parallel[1]: true or false");
  CHECK(refused(R"("sequence_parallel": true)") ==
        "config.search.sequence_parallel: an array of 1 to 64");
  CHECK(refused(R"("sequence_parallel": [false])",
                R"(, "moe": {"experts": 4, "active": 2, "hidden": 512})") ==
        "config.search.sequence_parallel: [true] where there are experts");
}

TEST_CASE("a split has the costs of its tokens, and the keys of its sequence lie beside it") {
  const char* profile = R"({"intra_latency_us": 0, "layer_us": 0, "memory_gb_per_s": 1000000})";
  const layer_costs whole = costs_of(layout_of(1, 0), profile),
                    split = costs_of(layout_of(1, 0, 4), profile);
  CHECK(4 * split.dense.seconds() == Approx(whole.dense.seconds()));
  CHECK(4 * split.dense.kept == whole.dense.kept);
  CHECK(4 * split.message_bytes == whole.message_bytes);
  CHECK(whole.dense.shared == 0);
  // Keys and values of a sequence but for the split's own, and their gradients.
  CHECK(split.dense.shared == (3 + 2 * 4) * (tokens / 4) * vectors * 2 * hidden);
  full_layout again = layout_of(1, 0, 4);
  again.recompute = VELO_TUNING_RECOMPUTE_FULL;
  // The layer's input, and keys and values, which are not made again.
  CHECK(costs_of(again).dense.kept == tokens / 4 * vectors * 3 * hidden);
}

TEST_CASE("seq1f1b holds P - 1 + S splits on the first rank, and waits less than 1f1b") {
  wanted one;
  one.training = R"("global_batch": 4, "sequence": 256)";
  one.accelerators = 4;
  one.search = R"("tp": [1], "cp": [1], "pp": [4], "micro_batch": [1], )"
               R"("kind": ["1f1b", "seq1f1b"], "sequence_splits": [4, 257], )"
               R"("recompute": ["none"], "split": ["even"])";
  const char* profile = R"({"intra_latency_us": 0, "layer_us": 0, "memory_gb_per_s": 1000000, )"
                        R"("intra_gb_per_s": 1000})";
  const tuning found = searched(one.text(), profile);
  REQUIRE(found.plans.size() == 2);
  const plan& best = found.plans[0];
  CHECK(best.layout.kind == VELO_SCHEDULE_SEQ1F1B);
  CHECK(best.layout.sequence_splits == 4);
  CHECK(best.bubble < found.plans[1].bubble);
  const layer_costs costs = layer_costs_of(found.of, best.layout);
  CHECK(best.memory[0].activations == (4 - 1 + 4) * 2 * costs.dense.kept);
  CHECK(best.memory[1].workspace == 2.0 * (1 << 30) + 2 * costs.dense.shared);
  CHECK(texts_of(found, VELO_TUNING_REASON_SEQUENCE) ==
        std::vector<std::string>{"cp * sequence_splits = 257 exceeds sequences of 256"});
  // Ranks work as long as those of whole sequences.
  CHECK(best.pipeline * (1 - best.bubble) ==
        Approx(found.plans[1].pipeline * (1 - found.plans[1].bubble)));
  CHECK_THAT(write_rejected(found),
             Contains("token_rearrange,tp_x,sequence_splits,sequence_parallel,zero\n"));
}

TEST_CASE("ranks that share splits keep keys of all rows, or of all rows of their heads") {
  const double own = tokens / 4 / 2 * vectors * 2 * hidden;  // of a split
  const auto shared_by = [](velo_sequence_kind kind) {
    full_layout made = layout_of(1, 0, 4);
    made.cp = 2;
    made.cp_algorithm = kind;
    return costs_of(made);
  };
  const layer_costs gathered = shared_by(VELO_SEQUENCE_ALL_GATHER),
                    exchanged = shared_by(VELO_SEQUENCE_ULYSSES);
  // Keys and values of a sequence but for the split's own, and the gradients of all.
  CHECK(gathered.dense.shared == 3 * 4 * 2 * own - own);
  CHECK(exchanged.dense.shared == 3 * 4 * own - own);
  CHECK(gathered.dense.kept == exchanged.dense.kept);
  CHECK(gathered.context.kept_bytes == 0);
  // The other rank's keys and values, and back the sums of this one's gradients.
  CHECK(gathered.context.forward_bytes == own);
  CHECK(gathered.context.gradient_bytes == own);
  // Half of the heads of half of the rows, of queries, keys and values, and of outputs; back of the
  // outputs and their gradients, and of those of queries, keys and values.
  CHECK(exchanged.context.forward_bytes == 4 * own / 2 / 2);
  CHECK(exchanged.context.gradient_bytes == 5 * own / 2 / 2);
  CHECK(exchanged.context.cells == Approx(gathered.context.cells));
}

TEST_CASE("seq1f1b has splits that ranks share by all_gather or ulysses, whatever else is faster") {
  wanted one;
  const auto split = [&](const char* tensors) {
    one.search = std::string(tensors) + R"(, "pp": [2], "kind": ["seq1f1b"])";
    tuning found = searched(one.text());
    CHECK(!found.plans.empty());
    for (const plan& each : found.plans) {
      CHECK(each.layout.attention_ranks() == 2);
      CHECK((each.layout.cp_algorithm == VELO_SEQUENCE_ALL_GATHER ||
             each.layout.cp_algorithm == VELO_SEQUENCE_ULYSSES));
    }
    return found;
  };
  split(R"("tp": [2], "tp_x": [1], "cp": [1])");
  const tuning found = split(R"("tp": [1], "cp": [2])");
  const auto texts = texts_of(found, VELO_TUNING_REASON_SCHEDULE);
  CHECK(std::count(texts.begin(), texts.end(),
                   "seq1f1b splits sequences, and ring sends keys between parts of whole ones; "
                   "all_gather and ulysses have splits") > 0);
}

TEST_CASE("slices that pay for whole sequences and not for their splits are chosen for each") {
  wanted one;
  one.accelerators = 4;
  one.search = R"("tp": [2], "cp": [1], "pp": [2], "micro_batch": [1], "tp_slices": [1, 2], )"
               R"("kind": ["1f1b", "seq1f1b"], "sequence_splits": [4], "recompute": ["none"], )"
               R"("split": ["even"])";
  // An exchange takes 2 us besides its bytes, less than half a product of all rows, and more than
  // half a product of a quarter of them.
  const char* profile = R"({"per_node": 4, "intra_gb_per_s": 10, "link_efficiency": 1, )"
                        R"("intra_latency_us": 2, "memory_gb_per_s": 1e6, )"
                        R"("matmul_efficiency": 1, "tp_overlap": 0, "peak_tflops": 5})";
  const auto covers = [&](std::int32_t slices, std::int32_t others, std::int32_t splits) {
    full_layout a = layout_of(2, 0, splits), b = a;
    a.tp_slices = slices;
    b.tp_slices = others;
    return costs_of(a, profile).covers(costs_of(b, profile));
  };
  REQUIRE(covers(2, 1, 0));
  REQUIRE(covers(1, 2, 4));
  const tuning found = searched(one.text(), profile);
  REQUIRE(found.plans.size() == 2);
  for (const plan& each : found.plans) {
    const bool splits = each.layout.kind == VELO_SCHEDULE_SEQ1F1B;
    CHECK(each.layout.sequence_splits == (splits ? 4 : 0));
    CHECK(each.layout.tp_slices == (splits ? 1 : 2));
  }
  CHECK(texts_of(found, VELO_TUNING_REASON_SAME) ==
        std::vector<std::string>{"takes no less time and memory in a layer than 2 slices",
                                 "takes no less time and memory in a layer than 1 slice"});
}
