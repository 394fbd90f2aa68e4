// velo sharding, run as a program: the parts of models by their config.json, a change of layout,
// pictures, and what it refuses.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/model_configs.hpp"
#include "tests/tools/velo/run.hpp"

namespace {

class models {
 public:
  outcome run(const std::string& config, const std::string& options) const {
    return run_velo("sharding " + folder_.put("config.json", config) + " " + options);
  }
  json parts(const std::string& config, const std::string& options) const {
    const outcome o = run(config, options + " --json");
    INFO(o.out);
    REQUIRE(o.code == 0);
    return parsed(o.out);
  }
  std::string at(const std::string& name) const { return folder_.at(name); }

 private:
  velo::testing::temporary_folder folder_;
};

std::string text(const json_t* value) {
  const std::unique_ptr<char, void (*)(void*)> all(
      json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY), &free);
  return all != nullptr ? all.get() : "none";
}
const json_t* tensor(const json& all, const char* rank, const std::string& name) {
  return json_object_get(json_object_get(all.get(), rank), name.c_str());
}
std::string field(const json& all, const char* rank, const std::string& name, const char* key) {
  return text(json_object_get(tensor(all, rank, name), key));
}

}  // namespace

TEST_CASE("sharding cuts a Llama by tensors, stages and batches") {
  const models m;
  const std::string tied = std::string(llama) + R"(, "tie_word_embeddings": true})";
  const json all = m.parts(tied, "--tp 2 --dp 2 --pp 2");
  CHECK(json_object_size(all.get()) == 8);
  const std::string at = "model.layers.0.self_attn.";
  CHECK(field(all, "1", at + "q_proj.weight", "part") == "[[32,64],[0,64]]");
  CHECK(field(all, "1", at + "k_proj.weight", "part") == "[[8,16],[0,64]]");
  CHECK(field(all, "1", at + "o_proj.weight", "part") == "[[0,64],[32,64]]");
  CHECK(field(all, "1", at + "q_proj.weight", "copies") == "2");
  CHECK(field(all, "1", at + "q_proj.weight", "sum") == R"(["dp-cp"])");
  CHECK(field(all, "3", at + "q_proj.weight", "range") == "[1024,2048]");
  CHECK(field(all, "0", "model.layers.0.input_layernorm.weight", "sum") == R"(["dp-cp","tp"])");
  CHECK(field(all, "0", "model.layers.0.input_layernorm.weight", "copies") == "4");
  CHECK(field(all, "0", "model.embed_tokens.weight", "part") == "[[0,51],[0,64]]");
  CHECK(field(all, "7", "model.embed_tokens.weight", "part") == "[[51,101],[0,64]]");
  CHECK(field(all, "7", "model.embed_tokens.weight", "sum") == R"(["dp-cp","embedding"])");
  CHECK(field(all, "7", "model.embed_tokens.weight", "copies") == "4");
  // layers 0 and 1 in the first stage, layer 2 in the last
  CHECK(tensor(all, "0", "model.layers.1.mlp.up_proj.weight") != nullptr);
  CHECK(tensor(all, "0", "model.layers.2.mlp.up_proj.weight") == nullptr);
  CHECK(tensor(all, "4", "model.layers.2.mlp.up_proj.weight") != nullptr);
  CHECK(tensor(all, "4", "lm_head.weight") == nullptr);

  const json one = m.parts(tied, "--tp 2 --no-sequence-parallel --rank 1");
  CHECK(json_object_size(one.get()) == 1);
  CHECK(field(one, "1", "model.norm.weight", "sum") == "[]");
}

TEST_CASE("sharding leaves places of an even division without a layer") {
  const models m;
  const auto stages_of = [&](const std::string& options) {
    const json all = m.parts(std::string(llama) + "}", options);
    std::string stages;
    for (const char* layer : {"0", "1", "2"})
      for (const char* rank : {"0", "1"})
        if (tensor(all, rank, std::string("model.layers.") + layer + ".mlp.up_proj.weight"))
          stages += rank;
    return stages;
  };
  CHECK(stages_of("--pp 2") == "001");
  CHECK(stages_of("--pp 2 --noop-layers 0") == "011");
  CHECK(stages_of("--pp 2 --noop-layers 3") == "001");
  CHECK(stages_of("--pp 2 --noop-layers 4,0,1,0") == "011");
  CHECK(stages_of("--pp 2 --noop-layers 0,1") == "011");  // 3 and 2 places
  CHECK(stages_of("--pp 2 --stage-layers 0,3") == "111");
  CHECK(stages_of("--pp 2 --stage-layers 3,1 --noop-layers 1") == "001");
  CHECK(stages_of("--pp 2 --pipeline zbv --stage-layers 1,0,1,1") == "010");
  CHECK(stages_of("--pp 2 --pipeline interleaved --vpp 2 --stage-layers [[1,1],[1,0]]") == "010");
}

TEST_CASE("sharding shares key heads among more tensor ranks than there are") {
  const models m;
  const json all = m.parts(std::string(llama) + "}", "--tp 4");
  const std::string k = "model.layers.0.self_attn.k_proj.weight";
  CHECK(field(all, "1", k, "part") == "[[0,8],[0,64]]");
  CHECK(field(all, "2", k, "part") == "[[8,16],[0,64]]");
  CHECK(field(all, "2", k, "copies") == "2");
  CHECK(field(all, "2", k, "sum") == R"(["copies"])");
  const json two = m.parts(std::string(llama) + "}", "--tp 4 --tp_x 2");
  CHECK(field(two, "1", "model.layers.0.mlp.up_proj.weight", "part") == "[[48,96],[0,32]]");
  CHECK(field(two, "1", "model.layers.0.mlp.down_proj.weight", "part") == "[[0,32],[48,96]]");
  CHECK(field(two, "1", "model.norm.weight", "part") == "[[0,32]]");
  CHECK(field(two, "1", "model.norm.weight", "sum") == R"(["nd1-dim1"])");
  // norms of query and key see the heads and the rows of a rank
  std::string qwen = llama;
  qwen.replace(qwen.find("llama"), 5, "qwen3");
  const json norms = m.parts(qwen + "}", "--tp 4 --tp-x 2 --dp 2");
  CHECK(field(norms, "1", "model.layers.0.self_attn.k_norm.weight", "part") == "[[0,8]]");
  CHECK(field(norms, "1", "model.layers.0.self_attn.k_norm.weight", "sum") == R"(["dp-cp","tp"])");
  CHECK(field(norms, "1", "model.layers.0.self_attn.k_norm.weight", "copies") == "8");
}

TEST_CASE("sharding knows which products have a bias, and counts of 0") {
  const models m;
  const auto tensors = [&](std::string config, const char* type) {
    config.replace(config.find("llama"), 5, type);
    return json_object_size(
        json_object_get(m.parts(config + R"(, "attention_bias": true})", "").get(), "0"));
  };
  CHECK(tensors(llama, "llama") == 30 + 3 * 4);
  CHECK(tensors(llama, "qwen2") == 30 + 3 * 3);
  CHECK(tensors(llama, "qwen3") == 30 + 3 * 4 + 3 * 2);  // and norms of query and key
  std::string all_experts = deepseek;
  all_experts.replace(all_experts.find("\"first_k_dense_replace\": 1"), 26,
                      "\"first_k_dense_replace\": 0");
  const json parts = m.parts(all_experts, "");
  CHECK(tensor(parts, "0", "model.layers.0.mlp.experts.7.up_proj.weight") != nullptr);
  CHECK(tensor(parts, "0", "model.layers.0.self_attn.q_a_proj.bias") == nullptr);
}

TEST_CASE("sharding deals experts out, whatever their names") {
  const models m;
  const json all = m.parts(mixtral, "--tp 2 --dp 2 --ep 2");
  const std::string at = "model.layers.1.block_sparse_moe.";
  CHECK(field(all, "0", at + "experts.1.w1.weight", "part") == "[[0,24],[0,32]]");
  CHECK(field(all, "1", at + "experts.1.w2.weight", "part") == "[[0,32],[24,48]]");
  CHECK(field(all, "1", at + "experts.1.w2.weight", "copies") == "1");
  CHECK(tensor(all, "0", at + "experts.2.w1.weight") == nullptr);
  CHECK(tensor(all, "2", at + "experts.2.w1.weight") != nullptr);
  CHECK(field(all, "2", at + "gate.weight", "sum") == R"(["dp-cp","tp"])");
  const json latent = m.parts(deepseek, "--tp 2 --ep 4 --dp 2 --etp 1");
  const std::string first = "model.layers.0.", second = "model.layers.1.";
  CHECK(field(latent, "1", first + "self_attn.q_b_proj.weight", "part") == "[[20,40],[0,12]]");
  CHECK(field(latent, "1", first + "self_attn.kv_a_proj_with_mqa.weight", "part") ==
        "[[0,12],[0,32]]");
  CHECK(tensor(latent, "1", first + "mlp.gate_proj.weight") != nullptr);
  const std::string correction = second + "mlp.gate.e_score_correction_bias";
  CHECK(field(latent, "1", correction, "sum") == "[]");
  CHECK(field(latent, "1", correction, "range") == "[0,0]");
  CHECK(field(latent, "1", correction, "copies") == "4");
  CHECK(field(latent, "3", second + "mlp.experts.7.down_proj.weight", "part") == "[[0,32],[0,16]]");
  CHECK(tensor(latent, "2", second + "mlp.experts.7.down_proj.weight") == nullptr);
  CHECK(tensor(latent, "2", second + "mlp.shared_experts.up_proj.weight") != nullptr);
}

TEST_CASE("sharding says what each rank of another layout takes from which rank") {
  const models m;
  const json moves = m.parts(std::string(llama) + "}", "--tp 2 --pp 2 --to tp=4");
  CHECK(json_object_size(moves.get()) == 4);
  // rank 3 held the second half of the last layer, and takes the third layer's quarter from itself
  CHECK(text(tensor(moves, "3", "model.layers.2.mlp.up_proj.weight")) ==
        R"([{"from":3,"part":[[72,96],[0,64]],"from_at":[24,0],"at":[0,0]}])");
  CHECK(text(tensor(moves, "3", "model.layers.0.mlp.up_proj.weight")) ==
        R"([{"from":1,"part":[[72,96],[0,64]],"from_at":[24,0],"at":[0,0]}])");
  const outcome table = m.run(std::string(llama) + "}", "--tp 2 --to tp=1,dp=2");
  CHECK(table.code == 0);
  CHECK(table.out.find("from others") != std::string::npos);
}

TEST_CASE("sharding prints tables and draws") {
  const models m;
  const std::string config = std::string(llama) + "}";
  const outcome all = m.run(config, "--tp 2 --dp 2 --svg " + m.at("parts.svg"));
  CHECK(all.code == 0);
  CHECK(all.out.find("30 tensors over 4 ranks") != std::string::npos);
  const std::string picture = contents_of(m.at("parts.svg"));
  CHECK(picture.find("<svg ") == 0);
  CHECK(picture.find("model.layers.0.self_attn.q_proj.weight") != std::string::npos);
  CHECK(picture.find("3 alike") != std::string::npos);
  const outcome one = m.run(config, "--tp 2 --rank 1");
  CHECK(one.out.find("model.layers.2.mlp.down_proj.weight") != std::string::npos);
  CHECK(one.out.find("0:64, 48:96") != std::string::npos);
}

TEST_CASE("sharding refuses what makes no model and no job, in words") {
  const models m;
  const auto refused = [&](const std::string& config, const std::string& options,
                           const std::string& reason) {
    const outcome o = m.run(config, options);
    INFO(o.out);
    CHECK(o.code == 1);
    CHECK(o.out.find(reason) != std::string::npos);
  };
  const std::string good = std::string(llama) + "}";
  refused("{", "--tp 2", "config.json:1:");
  refused("[]", "", "expected an object");
  refused(R"({"model_type": "gpt2"})", "", "model_type: expected one of llama, mistral");
  refused(R"({"model_type": "llama"})", "", "expected a key hidden_size");
  refused(R"({"model_type": "llama", "hidden_size": -1})", "",
          "hidden_size: expected a whole number");
  refused(std::string(llama) + R"(, "num_hidden_layers": 0})", "", "num_hidden_layers");
  refused(std::string(llama) + R"(, "num_key_value_heads": 3})", "",
          "num_key_value_heads: expected a divisor of num_attention_heads, 8, got 3");
  refused(good, "--tp 16", "--tp: expected at most 8 ranks");
  refused(good, "--tp 16 --tp-x 16", "--tp-x: expected at most 8 ranks");
  refused(mixtral, "--tp 4 --tp-x 2",
          "--tp-x: expected a model without experts, whose routers take whole rows: in two "
          "dimensions a rank has a part of each row, got mixtral");
  refused(R"({"model_type": "mixtral", "hidden_size": 8, "intermediate_size": 8,
              "num_hidden_layers": 65536, "num_attention_heads": 1, "vocab_size": 8,
              "num_local_experts": 65536})",
          "", "at most 2^20 experts");
  refused(good, "--gtp 2", "--gtp, --egtp: expected 1");
  refused(std::string(llama) + R"(, "head_dim": 4294967296})", "", "head_dim: expected a whole");
  refused(std::string(llama) + R"(, "num_hidden_layers": 549755813888})", "", "1 to 65536");
  refused(good, "--pp 4", "--pp: expected at most 3 stages");
  refused(good, "--pp 65537", "--pp: expected at most 65536 stages, got 65537");
  refused(good, "--pp 2 --stage-layers 1,1,1",
          "--stage-layers: expected 2 counts, one a stage, got 3");
  refused(good, "--pp 2 --stage-layers 1,1", "--stage-layers: expected a sum of 3, got 2");
  refused(good, "--pp 2 --stage-layers [[1],[2],[0]]",
          "--stage-layers: expected 2 lists, one a rank, got 3");
  refused(good, "--pp 2 --pipeline zbv --stage-layers [[1,1],[1]]",
          "--stage-layers: expected 2 counts, one a stage, of rank 1, got 1");
  for (const char* wrong : {"-1,4", "1,", "[[1],[2]", "[[1]]2", "[1,2]", "[[1,[2]]", "1 ,x", "''"})
    refused(good, std::string("--pp 2 --stage-layers '") + wrong + "'",
            "--stage-layers: expected a list of counts from 0, like 0,1,1,3 or");
  refused(good, "--pp 2 --pipeline zvb", "--pipeline: expected a kind that velo help schedule");
  refused(good, "--pp 2 --pipeline dualpipe", "dualpipe, which has each layer on two ranks");
  refused(good, "--vpp 2", "--vpp: expected --pp from 2 to 1024, got 1");
  refused(good, "--pp 2 --vpp 3", "chunks");
  refused(mixtral, "--ep 8 --dp 8", "--ep: expected at most 4 ranks");
  refused(good, "--ep 3", "ep: expected a divisor");
  refused(good, "--tp 2 --rank 2", "rank: expected 0 to 1, got 2");
  refused(good, "--noop-layers 0", "--noop-layers: expected --pp 2 or more, got 1 stage");
  refused(good, "--pp 2 --noop-layers 4", "--noop-layers: expected places below 4, the number");
  refused(good, "--pp 2 --noop-layers 0,1,2",
          "expected a layer in each stage, got none in stage 0");
  for (const char* wrong : {"-1", "0,", "0,,1", "x", "''", "9999999999999999999"})
    refused(good, std::string("--pp 2 --noop-layers ") + wrong,
            "--noop-layers wants places, as in 0,7");
  refused(good, "--to tp", "--to: expected KEY=N");
  refused(good, "--to ''", "--to: expected KEY=N");
  refused(good, "--to xp=2", "--to: expected KEY=N");
  refused(good, "--to tp=x", "expected a whole number");
  check_refused("sharding", "wants one CONFIG.json");
  check_refused("sharding /nowhere/config.json", "/nowhere/config.json");
}

TEST_CASE("sharding refuses files that are no config.json by their line or key") {
  const models m;
  const auto refused = [&](const std::string& config, const std::string& reason) {
    const outcome o = m.run(config, "--tp 2");
    INFO(config.substr(0, 200) << "\n" << o.out.substr(0, 1000));
    CHECK(o.code == 1);
    CHECK(o.out.find("config.json:" + reason) != std::string::npos);
    CHECK(o.out.size() < 1000);
  };
  const std::string good = std::string(llama) + "}";
  for (std::size_t bytes = 0; bytes < good.size(); bytes += 7) refused(good.substr(0, bytes), "");
  std::string all_bytes;
  for (int i = 0; i < 1024; ++i) all_bytes += static_cast<char>(i * 37 % 256);
  refused(all_bytes, "1: ");
  refused(std::string(100, '\0'), "1: ");
  refused(good + "}", "2: end of file expected");
  refused("{\"model_type\": \x02}", "1: invalid token near '?'");
  refused(std::string(1 << 20, '['), "1: maximum parsing depth");
  refused("{\"a\": " + std::string(100000, '{'), "1: ");
  refused(std::string(1 << 22, ' '), "1: ");
  for (const char* wrong :
       {"\"64\"", "64.0", "[64]", "{}", "null", "true", "-64", "0", "1048577"}) {
    std::string config = good;
    config.replace(config.find("64"), 2, wrong);
    refused(config, " hidden_size: expected a whole number from 1 to 1048576");
  }
  for (const char* wrong : {"1e400", "99999999999999999999"}) {
    std::string config = good;
    config.replace(config.find("64"), 2, wrong);
    refused(config, "1: ");
  }
  refused(R"({"model_type": 7})", " model_type: expected one of llama");
  refused(R"({"model_type": ["llama"]})", " model_type: expected one of llama");
  refused(R"({"model_type": "ll\u0000ama"})", "1: ");
  refused("{\"model_type\": \"" + std::string(100000, 'x') + "\"}",
          " model_type: expected one of llama, mistral, qwen2, qwen3, mixtral, "
          "mixtral_router, glm4_moe, glm4_moe_router, deepseek_v3, deepseek_v3_router, llama_cla, "
          "got 100000 characters");
  std::string shared = good;
  shared.replace(shared.find("llama"), 5, "llama_cla");
  refused(shared, " expected a key cla_share_factor");
  shared.insert(1, R"("cla_share_factor": 1, )");
  refused(shared, " cla_share_factor: expected a whole number from 2 to 65536");
  refused(std::string(llama) + R"(, "tie_word_embeddings": "yes"})",
          " tie_word_embeddings: expected true or false");
}
