// The command `velo sharding` shows, and draws, the parts that the ranks of a run have.
#include <jansson.h>

#include <catch2/catch.hpp>
#include <map>

#include "examples/decoder/checkpoint/checkpoint.hpp"
#include "examples/decoder/pipeline/stage_plan.hpp"
#include "examples/decoder/weights/layout.hpp"
#include "tests/examples/decoder/model/glm_settings.hpp"
#include "tests/examples/decoder/model/latent_settings.hpp"
#include "tests/examples/decoder/temporary.hpp"
#include "tests/tools/velo/run.hpp"

namespace {

using decoder::model_settings;

std::string config_in(const temporary& folder, const model_settings& m) {
  return put(folder / "config.json", decoder::hugging_face_config(m, 256));
}

// Begin and end of each dimension of each tensor of a rank.
using parts = std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>>;

parts parts_shown(const std::string& text, int rank) {
  json_t* root = json_loads(text.c_str(), 0, nullptr);
  REQUIRE(root != nullptr);
  parts all;
  const char* name;
  json_t* tensor;
  json_object_foreach(json_object_get(root, std::to_string(rank).c_str()), name, tensor) {
    const json_t* part = json_object_get(tensor, "part");
    for (std::size_t i = 0; i < json_array_size(part); ++i) {
      const json_t* range = json_array_get(part, i);
      all[name].emplace_back(json_integer_value(json_array_get(range, 0)),
                             json_integer_value(json_array_get(range, 1)));
    }
  }
  json_decref(root);
  return all;
}

parts parts_held(const model_settings& m, const decoder::holding& held) {
  parts all;
  const decoder::weight_layout layout(m, held);
  for (const decoder::score_bias& each : layout.biases) all[each.name] = {{0, m.experts}};
  for (const decoder::weight_slice& each : layout.slices)
    for (std::size_t i = 0; i < each.shape.size(); ++i)
      all[each.name].emplace_back(each.begin[i], each.begin[i] + each.shape[i]);
  return all;
}

parts parts_held(const model_settings& m, int rank, int ranks, int along_x) {
  decoder::holding held = decoder::holding::all(m);
  held.tensor_rank = rank, held.tensor_ranks = ranks, held.tensor_x = along_x;
  return parts_held(m, held);
}

}  // namespace

TEST_CASE("the parts of tensor ranks are those that velo sharding shows") {
  model_settings m;
  m.hidden = 96, m.heads = 6, m.kv_heads = 3, m.inner = 110, m.vocab = 261, m.layers = 2;
  m.kv_share = GENERATE(0, 2);
  const temporary folder;
  const std::string config = config_in(folder, m);
  // Tensor ranks, and those along x; 0: in one dimension.
  for (const auto& [ranks, along_x] :
       {std::pair(1, 0), {2, 0}, {3, 0}, {2, 1}, {2, 2}, {4, 2}, {6, 3}, {5, 1}, {6, 0}, {12, 6}}) {
    const std::string in_two = along_x == 0 ? "" : " --tp-x " + std::to_string(along_x);
    const auto shown =
        run_velo("sharding " + config + " --json --tp " + std::to_string(ranks) + in_two);
    REQUIRE(shown.code == 0);
    for (int rank = 0; rank < ranks; ++rank) {
      INFO(rank << " of " << ranks << ", " << along_x << " along x");
      CHECK(parts_shown(shown.out, rank) == parts_held(m, rank, ranks, along_x));
    }
  }
}

TEST_CASE("the parts of ranks with experts are those that velo sharding shows") {
  model_settings m;
  m.hidden = 96, m.heads = 6, m.kv_heads = 3, m.vocab = 261, m.layers = 2;
  m.experts = 8, m.experts_per_token = 3, m.expert_inner = 38;
  const int kind = GENERATE(0, 1, 2, 3, 4);
  if (kind > 2) set_latent_attention(m, kind != 4);
  if (kind == 1) m.dense_layers = 1, m.shared_experts = 1;
  if (kind == 2 || kind == 3) set_glms_layers(m);
  const temporary folder;
  const std::string config = config_in(folder, m);
  struct cut {
    int tp, dp, ep, etp;
  };
  for (const auto& [tp, dp, ep, etp] : {cut{1, 1, 1, 1},
                                        {1, 2, 2, 1},
                                        {2, 1, 2, 1},
                                        {2, 2, 4, 1},
                                        {1, 4, 2, 1},
                                        {2, 1, 1, 2},
                                        {2, 4, 2, 2},
                                        {3, 2, 2, 3}}) {
    const std::string job = " --tp " + std::to_string(tp) + " --dp " + std::to_string(dp) +
                            " --ep " + std::to_string(ep) + " --etp " + std::to_string(etp);
    const auto shown = run_velo("sharding " + config + " --json" + job);
    INFO(job << shown.out.substr(0, 300));
    REQUIRE(shown.code == 0);
    for (int rank = 0; rank < tp * dp; ++rank) {
      INFO("rank " << rank);
      decoder::holding held = decoder::holding::all(m);
      held.tensor_rank = rank % tp, held.tensor_ranks = tp;
      held.expert_rank = rank / etp % ep, held.expert_ranks = ep;
      held.cuts_experts = etp > 1;
      CHECK(parts_shown(shown.out, rank) == parts_held(m, held));
    }
  }
}

TEST_CASE("velo sharding and pretrain give each layer to the same ranks") {
  struct cut {
    std::int64_t pp, vpp, layers;
    const char *pipeline, *stage_layers, *noop_layers;
  };
  const cut all[] = {{2, 0, 5, "1f1b", "", ""},
                     {3, 0, 5, "zbh1", "", "1,0"},
                     {4, 2, 11, "interleaved", "", "1,3"},
                     {4, 2, 8, "interleaved", "[[0,1],[1,1],[1,1],[3,0]]", ""},
                     {4, 0, 8, "1f1b", "0,0,8,0", ""},
                     {4, 0, 8, "1f1b", "[[0],[3],[3],[4]]", "1,8"},
                     {3, 0, 10, "zbv", "", ""},
                     {3, 0, 10, "zbv", "0,1,2,3,4,0", ""},
                     {3, 0, 10, "dualpipev", "[[0,4],[5,1],[0,0]]", ""},
                     {2, 0, 3, "seq1f1b", "3,0", ""},
                     {2, 3, 9, "interleaved", "0,1,2,3,3,0", ""}};
  const bool is_tied = GENERATE(false, true);
  for (const cut& each : all) {
    decoder::settings s;
    s.model.layers = each.layers;
    s.model.tied = is_tied;
    s.parallel.pp = each.pp, s.parallel.vpp = each.vpp, s.parallel.pipeline = each.pipeline;
    s.parallel.stage_layers = each.stage_layers, s.parallel.noop_layers = each.noop_layers;
    s.parallel.sequence_splits = s.parallel.pipeline == "seq1f1b" ? 2 : 1;
    s.data.accumulation = 2 * each.pp;
    const decoder::stage_plan plan(s);
    const temporary folder;
    std::string command = "sharding " + config_in(folder, s.model) + " --json --pp " +
                          std::to_string(each.pp) + " --pipeline " + each.pipeline;
    if (each.vpp > 0) command += " --vpp " + std::to_string(each.vpp);
    if (*each.stage_layers != 0) command += std::string(" --stage-layers ") + each.stage_layers;
    if (*each.noop_layers != 0) command += std::string(" --noop-layers ") + each.noop_layers;
    const auto shown = run_velo(command);
    INFO(command << "\n" << shown.out.substr(0, 300));
    REQUIRE(shown.code == 0);
    for (int rank = 0; rank < each.pp; ++rank) {
      INFO("rank " << rank);
      const decoder::weight_layout held(s.model, plan.held_by(rank));
      parts expected;
      for (const decoder::weight_slice& slice : held.slices)
        for (const std::int64_t size : slice.shape) expected[slice.name].emplace_back(0, size);
      CHECK(parts_shown(shown.out, rank) == expected);
    }
  }
}

// The picture of examples/pretrain/README.md, which shows how it is drawn.
TEST_CASE("the picture of eight ranks is what velo sharding draws of the default model") {
  const temporary folder;
  const std::string config = config_in(folder, {});
  REQUIRE(run_velo("sharding " + config + " --tp 2 --cp 2 --pp 2 --svg " + folder / "layout.svg")
              .code == 0);
  CHECK((get(folder / "layout.svg") == get(LAYOUT_PICTURE)));
}
