// The program with experts: what it prints, writes and refuses. tests/examples/decoder/parallel has
// the numbers.
#include <catch2/catch.hpp>
#include <map>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

const std::vector<std::string> experts = {"--experts", "4", "--expert_inner", "24"};

}  // namespace

TEST_CASE("experts on ranks have the same bits on threads and processes") {
  workplace w;
  for (const char* transport : {"local", "shm"}) {
    const outcome done = ended(
        0, w.run(experts, {"--ep", "4", "--tp", "2", "--sequence_parallel", "true", "--transport",
                           transport, "--log", w / transport, "--out", w / transport + ".out"}));
    CHECK_THAT(done.text, Contains("4 experts, 2 for each token") &&
                              Contains("experts dealt out to 4 ranks") &&
                              Contains("the model writes"));
  }
  CHECK(w.losses("local") == w.losses("shm"));
  check_same_state(w / "local.out/checkpoint/", w / "shm.out/checkpoint/");
}

TEST_CASE("what ranks with experts began others go on with, and one writes with") {
  workplace w;
  ended(0,
        w.run(experts, {"--ranks", "2", "--ep", "2", "--transport", "local", "--stop_after", "2"}));
  CHECK_THAT(get(w / "out/checkpoint/config.json"), Contains("\"MixtralForCausalLM\"") &&
                                                        Contains("\"num_local_experts\": 4") &&
                                                        Contains("\"intermediate_size\": 24"));
  ended(0, run_program({"--resume", w / "out", "--ep", "1", "--pp", "2", "--stop_after", "3"}));
  ended(0, run_program({"--resume", w / "out", "--pp", "1"}));
  CHECK(ended(0, run_program({"--generate", "The ", "--load", w / "out"})).text.size() > 4);
  ended(0, w.run({"--load", w / "out", "--out", w / "tuned", "--balance_loss", "0"}));
}

TEST_CASE("the models that are here train a step, and their checkpoints have the types they name") {
  const std::map<std::string, std::string> types = {{"mixtral_small", "\"mixtral\""},
                                                    {"glm4_moe_small", "\"glm4_moe\""},
                                                    {"deepseek_v3_small", "\"deepseek_v3\""}};
  std::size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator(PRETRAIN_MODELS)) {
    INFO(each.path());
    const auto type = types.find(each.path().stem().string());
    REQUIRE(type != types.end());
    workplace w;
    ended(0, run_program({"--config", each.path().string(), "--paths", w / "text", "--sequence",
                          "32", "--batch", "4", "--steps", "1", "--warmup", "0", "--measure",
                          "false", "--sample_bytes", "0", "--out", w / "out"}));
    CHECK_THAT(get(w / "out/checkpoint/config.json"), Contains("\"model_type\": " + type->second));
    ++count;
  }
  CHECK(count == types.size());
}

TEST_CASE("choices that the program records it replays on other ranks") {
  workplace w;
  ended(0, w.run(experts, {"--routing_record", w / "routing", "--log", w / "one"}));
  ended(0, w.run(experts, {"--routing_replay", w / "routing", "--log", w / "cut", "--ranks", "4",
                           "--ep", "2", "--pp", "2", "--transport", "shm"}));
  compare_logs(w.losses("one"), w.losses("cut"));
  CHECK_THAT(ended(1, w.run(experts, {"--routing_record", w / "routing"})).text,
             Contains("has a recording already: step-"));
  std::filesystem::remove(w / "routing/step-000002.safetensors");
  CHECK_THAT(ended(1, w.run(experts, {"--routing_replay", w / "routing"})).text,
             Contains("routing/step-000002.safetensors: cannot open"));
  put(w / "file", "");
  CHECK_THAT(ended(1, w.run(experts, {"--routing_record", w / "file"})).text,
             Contains("--routing_record: ") && Contains("cannot create the directory"));
  CHECK_THAT(ended(1, w.run({"--routing_record", w / "routing"})).text,
             Contains("is of a model with experts, not with experts = 0"));
  CHECK_THAT(
      ended(1, w.run(experts, {"--routing_record", w / "a", "--routing_replay", w / "b"})).text,
      Contains("would record the choices that are replayed, so not with routing_replay"));
}

namespace {

// How many exchanges of rank 0's profile there are on the thread that computes, and on others.
struct exchange_count {
  int computing = 0, other = 0;
};
exchange_count exchanges_in(const std::string& path) {
  const std::unique_ptr<json_t, void (*)(json_t*)> root(json_load_file(path.c_str(), 0, nullptr),
                                                        json_decref);
  const json_t* const events = json_object_get(root.get(), "traceEvents");
  const auto each = [&](const char* wanted, const auto& take) {
    std::size_t i;
    json_t* event;
    json_array_foreach(const_cast<json_t*>(events), i, event) {
      const char* const name = json_string_value(json_object_get(event, "name"));
      if (name != nullptr && std::string(name) == wanted)
        take(json_integer_value(json_object_get(event, "tid")));
    }
  };
  std::int64_t computes = -1;
  each("grouped_matmul", [&](std::int64_t thread) { computes = thread; });
  exchange_count found;
  each("all_to_all",
       [&](std::int64_t thread) { ++(thread == computes ? found.computing : found.other); });
  return found;
}

}  // namespace

TEST_CASE("messages to experts travel on a thread of their own, with the same bits") {
  workplace w;
  for (const char* kind : {"none", "shared", "fused"}) {
    INFO(kind);
    ended(0,
          w.run(experts, words_of("--layers 4 --accumulation 4 --ranks 4 --ep 2 --pp 2 --pipeline "
                                  "dualpipev --transport shm --expert_overlap " +
                                  std::string(kind) + " --log " + w / kind + " --profile " +
                                  (w / kind + ".profile") +
                                  " --profile_start 1 --profile_end 2 --profile_level 1")));
    const exchange_count found = exchanges_in(w / kind + ".profile/rank0.json");
    CHECK(found.computing > 0);  // of counts
    CHECK((found.other > 0) == (*kind != 'n'));
    CHECK(w.losses(kind) == w.losses("none"));
  }
}

TEST_CASE("settings that latent attention does not have are refused by their names") {
  workplace w;
  const std::vector<std::string> latent = {
      "--attention",        "latent", "--kv_heads",         "4", "--kv_lora_rank", "12",
      "--qk_nope_head_dim", "10",     "--qk_rope_head_dim", "6", "--v_head_dim",   "14"};
  const auto refused = [&](const std::vector<std::string>& words, const char* why) {
    CHECK_THAT(ended(1, w.run(latent, words)).text, Contains(why));
  };
  refused({"--attention", "sparse"}, "attention = \"sparse\" must be grouped or latent");
  refused({"--attention", "grouped"}, "is of latent attention, not with attention = \"grouped\"");
  refused({"--kv_heads", "2"}, "kv_heads = 2 must be as many as the heads of latent attention");
  for (const char* name : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
    refused({std::string("--") + name, "0"},
            (name + std::string(" = 0 must be 1 or more with attention = \"latent\"")).c_str());
  refused({"--qk_rope_head_dim", "7"}, "qk_rope_head_dim = 7 must be even");
  refused({"--kv_share", "2"}, "kv_share = 2 is of heads with keys of their own");
  refused({"--tp", "4", "--tp_x", "2"}, "tp_x = 2 cuts the columns of rows");
  refused({"--pp", "2", "--accumulation", "2", "--pipeline", "seq1f1b", "--sequence_splits", "2"},
          "pipeline = \"seq1f1b\" keeps keys and values of one width");
  refused({"--tp", "8"}, "heads = 4");
}

TEST_CASE("settings of experts that do not go together are refused by their names") {
  workplace w;
  const auto refused = [&](const std::vector<std::string>& words, const char* why) {
    CHECK_THAT(ended(1, w.run(experts, words)).text, Contains(why));
  };
  refused({"--experts_per_token", "5"}, "experts_per_token = 5 must not exceed experts = 4");
  refused({"--router", "sinkhorn"}, "router = \"sinkhorn\" must be softmax or sigmoid");
  refused({"--kv_share", "2"}, "not with experts = 4");
  refused({"--tp", "4", "--tp_x", "2"}, "tp_x = 2 cuts the columns of rows");
  refused({"--pp", "2", "--pipeline", "dualpipe", "--accumulation", "4"},
          "pipeline = \"dualpipe\" has two ranks with the weights of a stage, so not with experts");
  refused({"--pp", "2", "--pipeline", "seq1f1b", "--sequence_splits", "2"},
          "pipeline = \"seq1f1b\" cuts windows");
  refused({"--ranks", "3", "--ep", "3"}, "ep = 3 must be a divisor of experts = 4");
  refused({"--ranks", "2", "--ep", "4"}, "ep = 4 must divide the 2 ranks that share a stage");
  refused({"--ranks", "2", "--ep", "2", "--plan", "true"},
          "plan = true is of ranks with as many rows in each step, not with ep = 2");
  refused({"--ranks", "2", "--ep", "2", "--memory_budget", "100000000"}, "not with ep = 2");
  refused({"--ranks", "2", "--ep", "2", "--expert_overlap", "both"},
          "expert_overlap = \"both\" must be none, shared or fused");
  refused({"--ranks", "2", "--expert_overlap", "shared"}, "so not with ep = 1");
  refused({"--ranks", "4", "--tp", "2", "--ep", "2", "--etp", "0", "--expert_overlap", "shared"},
          "is of ranks with whole experts, so not with etp = 0");
  refused({"--ranks", "2", "--ep", "2", "--expert_overlap", "fused"}, "so not with pp = 1");
  refused({"--etp", "2"}, "etp = 2 must be 0, 1 or tp = 1");
  refused({"--tp", "2", "--ep", "2", "--etp", "0"},
          "ep = 2 times tp must divide the 2 ranks that share a stage, where each expert is cut by "
          "etp = 0");
  refused({"--dense_layers", "2"}, "dense_layers = 2 must be less than layers = 2");
  refused({"--router_groups_kept", "2"},
          "router_groups_kept = 2 must not exceed router_groups = 1");
  refused({"--router_groups", "3"}, "router_groups = 3 must be a divisor of experts = 4");
  refused({"--router_groups", "4"}, "router_groups = 4 leaves groups of one expert");
  refused({"--router_groups", "2", "--experts_per_token", "3"},
          "experts_per_token = 3 must not exceed 2, the experts of the kept groups, with "
          "router_groups_kept = 1");
  refused({"--shared_experts", "1", "--expert_inner", "1", "--tp", "2"},
          "shared_experts = 1 are as wide as 1, which must be at least tp = 2");
  refused({"--shared_experts", "1024", "--expert_inner", "1048576"},
          "shared_experts = 1024 are as wide as 1073741824, which must not exceed 2^20");
  refused({"--router_scale", "-1"}, "router_scale must be from 0");
  for (const char* flag :
       {"--ep", "--experts_per_token", "--expert_inner", "--dense_layers", "--shared_experts",
        "--router_scale", "--router_groups", "--router_groups_kept", "--capacity_factor"}) {
    CHECK_THAT(ended(1, w.run({flag, "3"})).text,
               Contains("is of a model with experts, not with experts = 0"));
  }
}

TEST_CASE("settings of capacity and dispatchers are refused by their names and values") {
  workplace w;
  const auto refused = [&](const std::vector<std::string>& words, const char* why) {
    CHECK_THAT(ended(1, w.run(experts, words)).text, Contains(why));
  };
  refused({"--capacity_pad", "true"},
          "capacity_pad = true is of experts with a capacity, not with capacity_factor = 0");
  refused({"--capacity_drop", "position"},
          "capacity_drop = \"position\" is of experts with a "
          "capacity, not with capacity_factor = 0");
  refused({"--capacity_by_rank", "true"}, "capacity_by_rank = true is of experts");
  refused({"--capacity_factor", "1", "--capacity_drop", "probs"},
          "capacity_drop = \"probs\" must be probability or position");
  refused({"--capacity_factor", "-1"}, "capacity_factor must be from 0 to 1000000, not -1");
  refused({"--capacity_factor", "1", "--plan", "true"},
          "plan = true is of ranks with a row for each choice, not with capacity_factor = 1");
  refused({"--capacity_factor", "1", "--memory_budget", "100000000"},
          "memory_budget = 100000000 is of ranks with a row for each choice");
  refused({"--dispatcher", "all_gather"},
          "dispatcher = \"all_gather\" is of experts that are dealt out to ranks, not with ep = 1");
  refused({"--ep", "2", "--dispatcher", "alltoall"},
          "dispatcher = \"alltoall\" must be all_to_all, all_gather");
  CHECK_THAT(
      ended(1, w.run({"--dispatcher", "all_gather"})).text,
      Contains("dispatcher = \"all_gather\" is of a model with experts, not with experts = 0"));
  CHECK_THAT(ended(1, w.run({"--capacity_pad", "true"})).text, Contains("capacity_factor = 0"));
}

TEST_CASE("a run whose passes overlap goes on under an order without such pairs, or in one stage") {
  workplace w;
  ended(0, w.run(experts, {"--layers", "4", "--accumulation", "4", "--ranks", "4", "--ep", "2",
                           "--pp", "2", "--pipeline", "dualpipev", "--expert_overlap", "fused",
                           "--transport", "local", "--stop_after", "1"}));
  ended(0, run_program({"--resume", w / "out", "--pipeline", "zbh1", "--stop_after", "2"}));
  ended(0, run_program({"--resume", w / "out", "--pp", "1", "--ranks", "2"}));
}

TEST_CASE("a run with a capacity goes on without ranks, and a new one without the capacity") {
  workplace w;
  ended(0, w.run(experts,
                 {"--ranks", "2", "--ep", "2", "--dispatcher", "all_gather", "--capacity_factor",
                  "0.8", "--capacity_pad", "true", "--transport", "local", "--stop_after", "2"}));
  ended(0, run_program({"--resume", w / "out", "--ep", "1", "--ranks", "1"}));
  CHECK(ended(0, run_program({"--generate", "The ", "--load", w / "out"})).text.size() > 4);
  ended(0, w.run({"--load", w / "out", "--out", w / "tuned", "--capacity_factor", "0"}));
}

TEST_CASE(
    "the log has the choices of each expert, the same on any ranks, and a picture shows them") {
  workplace w;
  const auto tokens = [&](const std::string& log) {
    std::string all, line;
    std::istringstream lines(get(w / log));
    while (std::getline(lines, line)) {
      const auto at = line.find("\"busiest_expert\"");
      if (at != std::string::npos) all += line.substr(at) + "\n";
    }
    return all;
  };
  const outcome one =
      ended(0, w.run(experts, {"--log", w / "one", "--routing_record", w / "routing"}));
  CHECK_THAT(one.text, Contains("roof  busy"));
  ended(0, w.run(experts, {"--ranks", "8", "--tp", "2", "--pp", "2", "--cp", "2", "--ep", "2",
                           "--transport", "local", "--log", w / "cut", "--expert_picture",
                           w / "experts.svg", "--routing_replay", w / "routing"}));
  CHECK_THAT(tokens("one"), Contains("\"expert_tokens\": [["));
  CHECK(tokens("one") == tokens("cut"));
  ended(0, w.run(experts, {"--layers", "4", "--accumulation", "4", "--log", w / "four",
                           "--routing_record", w / "of_four"}));
  ended(0, w.run(experts, words_of("--layers 4 --accumulation 4 --ranks 4 --ep 2 --pp 2 --pipeline "
                                   "ripipe --in_advance true --transport local --log " +
                                   w / "in_advance" + " --routing_replay " + w / "of_four")));
  CHECK(tokens("four") == tokens("in_advance"));
  CHECK_THAT(get(w / "experts.svg"), Contains("layer 1") && Contains("</svg>"));
  put(w / "mine.svg", "precious");
  CHECK_THAT(ended(1, w.run(experts, {"--expert_picture", w / "mine.svg"})).text,
             Contains("mine.svg"));
  CHECK(get(w / "mine.svg") == "precious");
  CHECK_THAT(ended(1, w.run({"--expert_picture", w / "a.svg"})).text,
             Contains("is of a model with experts, not with experts = 0"));
}
