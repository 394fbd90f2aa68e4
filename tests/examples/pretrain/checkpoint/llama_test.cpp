// Runs that start with a model of transformers: what config.json may say, and which settings.
#include <catch2/catch.hpp>

#include "examples/pretrain/arguments.hpp"
#include "tests/examples/decoder/checkpoint/llama_files.hpp"
#include "tests/examples/decoder/model/glm_settings.hpp"
#include "tests/examples/decoder/model/latent_settings.hpp"
#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;
using namespace pretrain;

namespace {

// The model that tiny() names.
decoder::model_settings tiny_llama() {
  decoder::model_settings m;
  m.hidden = 32, m.layers = 2, m.heads = 4, m.kv_heads = 2, m.inner = 64, m.dtype = "f32";
  return m;
}

// A folder of transformers, in which one place of config.json changes at a time.
struct folder : temporary {
  folder() {
    put_llama(path, tiny_llama(), llama_tensors(tiny_llama()));
    good = get(*this / "config.json");
  }

  // What --load and --generate say to it; they agree.
  std::string answer(const std::vector<std::string>& more = {}) const {
    std::string first;
    for (std::vector<std::string> words :
         {std::vector<std::string>{"--load", path}, {"--generate", "x", "--load", path}}) {
      words.insert(words.end(), more.begin(), more.end());
      arguments into;
      const std::string refusal = refusal_of([&] { parse_arguments(words, into); });
      if (first.empty()) first = refusal;
      CHECK(refusal == first);
    }
    return first;
  }

  std::string answer_to(const std::string& from, const std::string& to) const {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    put(*this / "config.json", text.replace(at, from.size(), to));
    return answer();
  }

  std::string good;
};

}  // namespace

TEST_CASE("a folder of transformers gives the model, and settings that differ are refused") {
  const folder f;
  arguments into;
  parse_arguments({"--load", f.path, "--sequence", "64", "--hidden", "32"}, into);
  CHECK(into.source() != nullptr);
  const decoder::model_settings& m = into.config.values.model;
  CHECK(m.hidden == 32);
  CHECK(m.layers == 2);
  CHECK(m.heads == 4);
  CHECK(m.kv_heads == 2);
  CHECK(m.inner == 64);
  CHECK(m.dtype == "f32");
  CHECK(m.norm_epsilon == 1e-5);
  CHECK(into.config.values.data.sequence == 64);
  CHECK(f.answer({"--dtype", "bf16"}) == "accepted");
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{"--hidden", "64"}, "--hidden: hidden = 64, but %/config.json has 32"},
      {{"--kv_heads", "4"}, "--kv_heads: kv_heads = 4, but %/config.json has 2"},
      {{"--rope_theta", "5000"}, "--rope_theta: rope_theta = 5000, but %/config.json has 10000"},
      {{"--tied", "true"}, "--tied: tied = true, but %/config.json has false"},
      {{"--kv_share", "2"}, "--kv_share: kv_share = 2, but %/config.json has 0"},
  };
  for (const auto& [words, sentence] : rows) {
    const std::string expected = sentence;
    const std::size_t at = expected.find('%');
    CHECK(f.answer(words) == expected.substr(0, at) + f.path + expected.substr(at + 1));
  }
  CHECK_THAT(refusal_of([&] {
               parse_arguments({"--resume", f.path}, into);
             }),
             Contains("--resume: " + f.path + " has weights alone"));
}

TEST_CASE("what config.json leaves out has LlamaConfig's default") {
  const folder f;
  put(f / "config.json",
      R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 260,
          "num_attention_heads": 4, "intermediate_size": 64, "torch_dtype": "bfloat16",
          "rope_theta": 5e5, "rope_scaling": null, "architectures": null})");
  CHECK_THAT(f.answer(), Contains("k_proj.weight is [16, 32], but config.json makes it [32, 32]"));
  decoder::model_settings m = tiny_llama();
  m.kv_heads = 4;
  put(f / "model.safetensors", safetensors_bytes(llama_tensors(m)));
  arguments into;
  parse_arguments({"--load", f.path}, into);
  CHECK(into.config.values.model.norm_epsilon == 1e-6);
  CHECK(into.config.values.model.rope_theta == 5e5);
  CHECK(into.config.values.model.dtype == "bf16");
}

TEST_CASE("what this decoder does not have is refused with the place and the field") {
  const folder f;
  const char* const rope = R"("rope_type": "default")";
  struct row {
    const char *from, *to, *sentence;
  };
  const row rows[] = {
      {R"("model_type": "llama")", R"("model_type": "mistral")",
       R"(:15:17: model_type is "mistral", but velo's decoder has only "llama")"},
      {R"("model_type")", R"("kind")", ": model_type is missing"},
      {"LlamaForCausalLM", "LlamaModel", R"(:2:20: architectures is ["LlamaModel"])"},
      {R"("silu")", R"("gelu")", R"(hidden_act is "gelu", but velo's decoder has only "silu")"},
      {R"("attention_bias": false)", R"("attention_bias": true)", ":5:21: attention_bias is true"},
      {R"("mlp_bias": false)", R"("mlp_bias": true)", "mlp_bias is true"},
      {R"("attention_dropout": 0.0)", R"("attention_dropout": 0.1)", "attention_dropout is 0.1"},
      {R"("head_dim": 8)", R"("head_dim": 16)",
       "head_dim is 16, but velo's decoder has only hidden_size / num_attention_heads, here 32"},
      {R"("head_dim": 8)", R"("head_dim": "8")", R"(head_dim is "8")"},
      {rope, R"("rope_type": "llama3", "factor": 8.0)",
       R"(rope_parameters.rope_type is "llama3", but velo's decoder has only "default")"},
      {rope, R"("type": "linear", "factor": 2.0)", R"(rope_parameters.type is "linear")"},
      {rope, R"("factor": 2.0)", "rope_parameters.factor is 2.0"},
      {rope, R"("partial_rotary_factor": 0.5)", "rope_parameters.partial_rotary_factor is 0.5"},
      {R"("mlp_bias")", R"("rope_scaling": {"type": "dynamic", "factor": 2.0}, "mlp_bias")",
       R"(rope_scaling.type is "dynamic")"},
      {R"("mlp_bias")", R"("rope_scaling": "yarn", "mlp_bias")", R"(rope_scaling is "yarn")"},
      {R"("mlp_bias")", R"("rope_theta": 5e5, "mlp_bias")",
       "rope_theta is 500000.0, but rope_parameters.rope_theta is 10000.0"},
      {R"("mlp_bias")", R"("quantization_config": {"bits": 4}, "mlp_bias")",
       R"(quantization_config is {"bits":4})"},
      {R"("dtype": "float32")", R"("dtype": "float16")", R"(dtype is "float16")"},
      {R"("hidden_size": 32)", R"("hidden_size": 1e30)", "hidden_size: hidden must be an integer"},
      {R"("hidden_size": 32)", R"("hidden_size": -1)", "hidden_size: hidden must be from 2"},
      {R"("hidden_size")", R"("hidden")", ": hidden_size is missing"},
      {R"("num_attention_heads": 4)", R"("num_attention_heads": 0)", "heads must be from 1"},
      {R"("num_attention_heads": 4)", R"("num_attention_heads": 3)", "head_dim is 8"},
      {R"("num_key_value_heads": 2)", R"("num_key_value_heads": 3)",
       "heads = 4 must be a multiple"},
      {R"("num_hidden_layers": 2)", R"("num_hidden_layers": 3)", "has no tensor model.layers.2."},
      {R"("num_hidden_layers": 2)", R"("num_hidden_layers": 1)", "has no place in this model"},
      {R"("vocab_size": 260)", R"("vocab_size": 128)", "vocab_size: vocab must be from 259"},
      {R"("tie_word_embeddings": false)", R"("tie_word_embeddings": 1)", "tied must be true or"},
      {R"("tie_word_embeddings": false)", R"("tie_word_embeddings": true)",
       "lm_head.weight differs"},
      {"{", "[", "config.json:"},
      {R"("hidden_size")", R"("vocab_size": 260, "hidden_size")", "duplicate object key"},
  };
  for (const row& each : rows) {
    INFO(each.from << " -> " << each.to);
    CHECK_THAT(f.answer_to(each.from, each.to),
               Contains(each.sentence) && Catch::Matchers::StartsWith(f.path + "/"));
  }
  CHECK(f.answer_to(rope, rope) == "accepted");
}

TEST_CASE("training and text start from a model of transformers, whatever the layout") {
  const workplace w;
  const decoder::model_settings m = tiny_llama();
  put_llama(w / "single", m, llama_tensors(m));
  put_llama(w / "shards", m, llama_tensors(m), 3);
  const auto words = [&](const char* from, const char* log, std::vector<std::string> more) {
    std::vector<std::string> all = {"--load",         w / from,
                                    "--paths",        w / "text",
                                    "--sequence",     "32",
                                    "--batch",        "4",
                                    "--steps",        "3",
                                    "--warmup",       "1",
                                    "--out",          w / log + ".out",
                                    "--log",          w / log,
                                    "--sample_bytes", "8",
                                    "--measure",      "false",
                                    "--accumulation", "2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  ended(0, run_program(words("single", "one", {})));
  ended(0, run_program(words("shards", "many", {})));
  CHECK(w.losses("one") == w.losses("many"));
  for (const std::vector<std::string>& cut : {std::vector<std::string>{"--tp", "2"},
                                              {"--pp", "2", "--tp", "2"},
                                              {"--cp", "2"},
                                              {"--tp", "4", "--tp_x", "2"},
                                              {"--ranks", "2", "--zero", "true"}}) {
    std::vector<std::string> more = cut;
    more.insert(more.end(), {"--transport", "local"});
    ended(0, run_program(words("shards", "cut", more)));
    compare_logs(w.losses("one"), w.losses("cut"));
    std::filesystem::remove_all(w / "cut.out");
    std::filesystem::remove(w / "cut");
  }
  ended(0, run_program(words("shards", "both", {"--transport", "shm", "--ranks", "2"})));
  compare_logs(w.losses("one"), w.losses("both"));
  const outcome text = ended(0, run_program({"--generate", "The ", "--load", w / "shards",
                                             "--sample_bytes", "12", "--temperature", "0"}));
  CHECK(text.text == ended(0, run_program({"--generate", "The ", "--load", w / "single",
                                           "--sample_bytes", "12", "--temperature", "0"}))
                         .text);
  CHECK(text.text.size() > 5);
}

namespace {

// Runs that load a model with experts which transformers wrote.
struct given_experts : workplace {
  explicit given_experts(const decoder::model_settings& m) : of(m) {
    put_llama(*this / "given", m, llama_tensors(m), 3);
    config = get(*this / "given/config.json");
  }

  outcome run(const std::string& log, std::vector<std::string> more) const {
    const workplace& w = *this;
    more.insert(more.end(), {"--load",         w / "given",
                             "--paths",        w / "text",
                             "--sequence",     "32",
                             "--batch",        "4",
                             "--steps",        "2",
                             "--warmup",       "1",
                             "--out",          w / log + ".out",
                             "--log",          w / log,
                             "--sample_bytes", "8",
                             "--measure",      "false",
                             "--transport",    "local"});
    return run_program(more);
  }

  // A run without a learning rate writes the weights that it was given, whatever its layout.
  void check_written(const std::vector<std::string>& layout) const {
    std::vector<std::string> words = {"--learning_rate", "0", "--weight_decay", "0"};
    words.insert(words.end(), layout.begin(), layout.end());
    ended(0, run("still", words));
    const decoder::safetensors_reader written(*this / "still.out/checkpoint/model.safetensors");
    CHECK(written.entries().size() == llama_tensors(of).size());
    for (const auto& [name, tensor] : llama_tensors(of)) {
      INFO(name);
      std::vector<float> values(tensor.values.size());
      written.read(
          {name, decoder::element::f32, tensor.shape, reinterpret_cast<std::byte*>(values.data())});
      CHECK((values == tensor.values));
    }
    std::filesystem::remove_all(*this / "still.out");
    std::filesystem::remove(*this / "still");
  }

  void check_trained(const std::vector<std::string>& layout) const {
    ended(0, run("cut", layout));
    compare_logs(losses("whole"), losses("cut"));
    std::filesystem::remove_all(*this / "cut.out");
    std::filesystem::remove(*this / "cut");
  }

  void refused(const char* from, const char* to, const char* why) const {
    std::string changed = config;
    REQUIRE(changed.find(from) != std::string::npos);
    changed.replace(changed.find(from), std::string(from).size(), to);
    put(*this / "given/config.json", changed);
    CHECK_THAT(ended(1, run("none", {})).text, Contains(why));
  }

  decoder::model_settings of;
  std::string config;
};

}  // namespace

TEST_CASE("a Mixtral of transformers is read under any layout, and written again") {
  decoder::model_settings m = tiny_llama();
  m.experts = 4, m.experts_per_token = 2, m.rope_theta = 1e6;
  const given_experts w(m);
  w.check_written({"--ranks", "1"});
  ended(0, w.run("whole", {"--ranks", "1"}));
  w.check_trained({"--ranks", "4", "--ep", "2", "--pp", "2", "--accumulation", "1"});
  w.refused(R"("sliding_window": null)", R"("sliding_window": 16)", "sliding_window is 16");
  w.refused(R"("router_jitter_noise": 0.0)", R"("router_jitter_noise": 0.1)",
            "router_jitter_noise is 0.1");
  w.refused(R"("num_local_experts": 4)", R"("num_local_experts": 5)",
            "has no tensor model.layers.0.block_sparse_moe.experts.4.w1.weight");
}

TEST_CASE("a Glm4Moe of transformers is read under any layout, and written again") {
  decoder::model_settings m = tiny_llama();
  m.experts = 4, m.expert_inner = 24;
  set_glms_layers(m);
  const given_experts w(m);
  w.check_written({"--ranks", "1"});
  w.check_written({"--ranks", "8", "--tp", "2", "--pp", "2", "--ep", "4", "--zero", "true"});
  ended(0, w.run("whole", {"--ranks", "1"}));
  w.check_trained({"--ranks", "4", "--ep", "2", "--pp", "2"});
  w.check_trained({"--tp", "2", "--sequence_parallel", "true", "--cp", "2", "--ep", "2"});
  CHECK_THAT(get(w / "whole.out/checkpoint/config.json"),
             Contains("\"Glm4MoeForCausalLM\"") && Contains("\"first_k_dense_replace\": 1") &&
                 Contains("\"n_shared_experts\": 2") && Contains("\"topk_group\": 1") &&
                 Contains("\"moe_intermediate_size\": 24") &&
                 Contains("\"intermediate_size\": 64"));
  w.refused(R"("use_qk_norm": false)", R"("use_qk_norm": true)", "use_qk_norm is true");
  w.refused(R"("attention_bias": false)", R"("attention_bias": true)", "attention_bias is true");
  w.refused(R"("partial_rotary_factor": 1.0)", R"("partial_rotary_factor": 0.5)",
            "rope_parameters.partial_rotary_factor is 0.5");
  w.refused(R"(    "partial_rotary_factor": 1.0,)", "",
            "partial_rotary_factor is missing, but velo's decoder has only 1");
  w.refused(R"("n_group": 2)", R"("n_group": 3)", "router_groups = 3 must be a divisor of");
  w.refused(R"("topk_group": 1)", R"("topk_group": 3)",
            "router_groups_kept = 3 must not exceed router_groups = 2");
  w.refused(R"("first_k_dense_replace": 1)", R"("first_k_dense_replace": 2)",
            "dense_layers = 2 must be less than layers = 2");
  w.refused(R"("n_shared_experts": 2)", R"("n_shared_experts": 0)",
            "shared_experts.down_proj.weight has no place in this model");
  w.refused(R"("n_routed_experts": 4)", R"("n_routed_experts": 6)",
            "mlp.experts.4.down_proj.weight");
}

TEST_CASE("a DeepseekV3 of transformers is read under any layout, and written again") {
  decoder::model_settings m = tiny_llama();
  m.experts = 4, m.expert_inner = 24;
  set_glms_layers(m);
  set_latent_attention(m);
  const given_experts w(m);
  w.check_written({"--ranks", "1"});
  w.check_written({"--ranks", "8", "--tp", "2", "--pp", "2", "--ep", "4", "--zero", "true"});
  ended(0, w.run("whole", {"--ranks", "1"}));
  w.check_trained({"--ranks", "4", "--ep", "2", "--pp", "2"});
  w.check_trained({"--tp", "2", "--sequence_parallel", "true", "--cp", "2", "--ep", "2"});
  CHECK_THAT(get(w / "whole.out/checkpoint/config.json"),
             Contains("\"DeepseekV3ForCausalLM\"") && Contains("\"q_lora_rank\": 20") &&
                 Contains("\"kv_lora_rank\": 12") && Contains("\"v_head_dim\": 14"));
  w.refused(R"("rope_interleave": true)", R"("rope_interleave": false)",
            "rope_interleave is false");
  w.refused(R"("head_dim": 6)", R"("head_dim": 8)",
            "head_dim is 8, but velo's decoder has only qk_rope_head_dim, here 6");
  w.refused(R"("q_lora_rank": 20)", R"("q_lora_rank": null)",
            "has no tensor model.layers.0.self_attn.q_proj.weight");
  w.refused(R"("num_key_value_heads": 4)", R"("num_key_value_heads": 2)",
            "kv_heads = 2 must be as many as the heads of latent attention, heads = 4");
  w.refused(R"("v_head_dim": 14)", R"("v_head_dim": 0)", "v_head_dim = 0 must be 1 or more");
  w.refused(R"("qk_rope_head_dim": 6)", R"("qk_rope_head_dim": 7)", "qk_rope_head_dim, here 7");
}

TEST_CASE("a damaged model of transformers ends a run before it trains") {
  const workplace w;
  const decoder::model_settings m = tiny_llama();
  put_llama(w / "model", m, llama_tensors(m), 2);
  const std::string path = w / "model/model-2.safetensors", good = get(path);
  put(path, good.substr(0, good.size() - 1));
  for (const std::vector<std::string>& cut : {std::vector<std::string>{}, {"--tp", "2"}}) {
    std::vector<std::string> words = {"--load", w / "model", "--out", w / "none"};
    words.insert(words.end(), cut.begin(), cut.end());
    const outcome done = ended(1, run_program(words));
    CHECK_THAT(done.text, Contains("pretrain: " + path + ": tensor "));
    CHECK_FALSE(std::filesystem::exists(w / "none"));
  }
}
