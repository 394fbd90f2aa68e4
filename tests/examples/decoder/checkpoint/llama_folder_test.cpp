// Models that transformers wrote: what they hold is read exactly, and what they lack is named.
#include "examples/decoder/checkpoint/llama_folder.hpp"

#include <catch2/catch.hpp>

#include "examples/decoder/ranks/context.hpp"
#include "tests/examples/decoder/checkpoint/llama_files.hpp"

using Catch::Matchers::Contains;
using namespace decoder;

namespace {

model_settings tiny_model() {
  model_settings m;
  m.hidden = 32, m.layers = 2, m.inner = 40, m.dtype = "f32";
  return m;
}

// The refusal of a folder, opened for a model.
std::string refusal(const std::string& folder, const model_settings& m = tiny_model()) {
  return refusal_of([&] { llama_folder(folder).require_model(m); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("weights of either type are read as either type, from one file or several") {
  const bool stored_as_bf16 = GENERATE(false, true), mixed = GENERATE(false, true);
  const std::size_t files = GENERATE(1u, 3u);
  model_settings m = tiny_model();
  m.tied = GENERATE(false, true);
  m.dtype = GENERATE("f32", "bf16");
  stored_model tensors = llama_tensors(m, stored_as_bf16);
  if (mixed) tensors["model.norm.weight"] = stored({32}, 5, !stored_as_bf16);
  const temporary t;
  put_llama(t.path, m, tensors, files);
  REQUIRE(is_llama_folder(t.path));

  run_memory memory;
  const velo::context context = make_context({}, memory);
  weights all(memory, m, true);
  const llama_folder folder(t.path);
  folder.require_model(m);
  folder.read(all, context.inline_stream());
  for (const weight_slice& slice : all.layout().slices) {
    INFO(slice.name);
    const std::vector<float>& values = tensors.at(slice.name).values;
    const float* exact = m.dtype == "bf16" ? all.master() : nullptr;
    if (exact == nullptr) exact = all.weight(0, {1}).data<float>();
    CHECK(std::equal(values.begin(), values.end(), exact + slice.offset));
    if (m.dtype == "f32") continue;
    const auto* rounded = all.weight(slice.offset, {1}).data<std::uint16_t>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float near = float_of(static_cast<std::uint32_t>(rounded[i]) << 16);
      CHECK(std::abs(near - values[i]) <= std::abs(values[i]) / 256);
    }
  }
}

TEST_CASE("a folder with a file of a run's checkpoint is not one of transformers") {
  const temporary t;
  put_llama(t.path, tiny_model(), llama_tensors(tiny_model()));
  for (const char* name : {"CHECKSUMS", "trainer.json", "training_state.safetensors"}) {
    put(t / name, "");
    CHECK_FALSE(is_llama_folder(t.path));
    std::filesystem::remove(t / name);
    CHECK(is_llama_folder(t.path));
  }
  std::filesystem::remove(t / "config.json");
  CHECK_FALSE(is_llama_folder(t.path));
}

TEST_CASE("a head of its own may lie beside a tied embedding if it is the same") {
  model_settings m = tiny_model();
  m.tied = true;
  stored_model tensors = llama_tensors(m);
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  const temporary t;
  put_llama(t.path, m, tensors, 2);
  CHECK(refusal(t.path, m) == "accepted");
  tensors["lm_head.weight"].values.back() += 1;
  put_llama(t.path, m, tensors, 2);
  CHECK_THAT(refusal(t.path, m), Contains(".safetensors: tensor lm_head.weight differs from "
                                          "model.embed_tokens.weight"));
}

TEST_CASE(
    "tensors that are missing, too many, or of another shape are refused with file and name") {
  const model_settings m = tiny_model();
  const std::string layer = "model.layers.1.", file = GENERATE("", "model.safetensors");
  const std::size_t files = file.empty() ? 2 : 1;
  const stored_model whole = llama_tensors(m);
  const auto answer = [&](const std::function<void(stored_model&)>& change) {
    const temporary t;
    stored_model tensors = whole;
    change(tensors);
    put_llama(t.path, m, tensors, files);
    std::string found = refusal(t.path);
    CHECK((found == "accepted" || found.find(t.path) == 0));
    return found;
  };
  CHECK(answer([](stored_model&) {}) == "accepted");
  CHECK(answer([](stored_model& all) {
          all["model.layers.0.self_attn.rotary_emb.inv_freq"] = stored({4}, 1, false);
        }) == "accepted");
  CHECK_THAT(answer([&](stored_model& all) { all.erase(layer + "mlp.up_proj.weight"); }),
             Contains(file + (files == 1 ? "" : "model.safetensors.index.json") +
                      ": has no tensor model.layers.1.mlp.up_proj.weight"));
  CHECK_THAT(answer([](stored_model& all) { all.erase("lm_head.weight"); }),
             Contains("has no tensor lm_head.weight"));
  CHECK_THAT(
      answer([&](stored_model& all) {
        all[layer + "self_attn.q_proj.bias"] = stored({32}, 1, false);
      }),
      Contains(".safetensors: tensor model.layers.1.self_attn.q_proj.bias has no place in this"));
  CHECK_THAT(
      answer([&](stored_model& all) {
        all[layer + "self_attn.k_proj.weight"] = stored({32, 16}, 1, false);
      }),
      Contains(".safetensors: tensor model.layers.1.self_attn.k_proj.weight is [32, 16], but "
               "config.json makes it [16, 32]"));
}

TEST_CASE("any cut of any file, and headers that lie, are refused with the file's name") {
  const model_settings m = tiny_model();
  const temporary t;
  put_llama(t.path, m, llama_tensors(m), 2);
  for (const char* name :
       {"model-1.safetensors", "model-2.safetensors", "model.safetensors.index.json"}) {
    const std::string path = t / name, good = get(path);
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{7}, good.size() / 2, good.size() - 3}) {
      put(path, good.substr(0, size));
      CHECK_THAT(refusal(t.path), Contains(path));
    }
    std::filesystem::remove(path);
    CHECK_THAT(refusal(t.path), Contains(t.path));
    put(path, good);
    CHECK(refusal(t.path) == "accepted");
  }
  const std::string path = t / "model-1.safetensors", good = get(path);
  for (const auto& [from, to] : {std::pair("\"F32\"", "\"F16\""),
                                 {"\"F32\"", "\"I32\""},
                                 {"[32", "[31"},
                                 {"\"data_offsets\":[0,", "\"data_offsets\":[4,"}}) {
    put(path, replaced(good, from, to));
    CHECK_THAT(refusal(t.path), Contains(path + ": tensor "));
  }
}

TEST_CASE("an index that leads out of the folder, or contradicts its files, is refused") {
  const model_settings m = tiny_model();
  const temporary t;
  const std::string folder = t / "inside", path = folder + "/model.safetensors.index.json";
  put_llama(folder, m, llama_tensors(m), 2);
  const std::string good = get(path), first = "\"model-1.safetensors\"";
  std::filesystem::copy(folder + "/model-1.safetensors", t / "model-1.safetensors");
  const std::string absolute = "\"" + (t / "model-1.safetensors") + "\"";
  for (const std::string& leads_out :
       {std::string("\"../model-1.safetensors\""), absolute,
        std::string("\"./model-1.safetensors\""), std::string("\"..\""), std::string("\".\""),
        std::string("\"\""), std::string("7"), std::string("[\"model-1.safetensors\"]")}) {
    put(path, replaced(good, first, leads_out));
    CHECK_THAT(refusal(folder), Contains(path + ": weight_map.lm_head.weight must be the name of a "
                                                "file in the same folder"));
  }
  const std::pair<std::string, std::string> lies[] = {
      {first, "\"model-2.safetensors\""},  // not its file
      {first, "\"model-3.safetensors\""},  // no such file
      {first, "\"config.json\""},
      {"\"lm_head.weight\"", "\"lm_head.bias\""},
      {"\"weight_map\": {", "\"weight_map\": {\"lm_head.bias\": \"model-1.safetensors\","},
      {"\"weight_map\"", "\"weight_maps\""},
      {"\"weight_map\": {", "\"weight_map\": [], \"rest\": {"},
      {"    \"lm_head", "    \"model.norm.weight\": \"model-1.safetensors\",\n    \"lm_head"},
      {"{", "[{"},
  };
  for (const auto& [from, to] : lies) {
    put(path, replaced(good, from, to));
    INFO(from << " -> " << to);
    CHECK_THAT(refusal(folder), Contains(folder + "/"));
    CHECK(refusal(folder) != "accepted");
  }
  put(path, good);
  CHECK(refusal(folder) == "accepted");
}
