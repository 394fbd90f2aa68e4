// Checkpoints whose checksums are right and whose contents are not: whatever number is changed,
// resuming, training on and sampling refuse it with the file's name, before memory is taken.
#include <jansson.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/weights/weights.hpp"
#include "examples/pretrain/arguments.hpp"
#include "tests/examples/decoder/temporary.hpp"

using Catch::Matchers::Contains;
using namespace pretrain;

namespace {

using json = std::unique_ptr<json_t, void (*)(json_t*)>;

json parsed(const std::string& text) {
  return {json_loads(text.c_str(), JSON_DECODE_ANY, nullptr), json_decref};
}

// A checkpoint of a small model, whole and consistent until `change` or `remove`.
struct victim : temporary {
  victim() {
    configuration c;
    for (const auto& [flag, text] :
         {std::pair("hidden", "32"), {"layers", "2"}, {"inner", "64"}, {"sequence", "32"}})
      c.set(flag, text);
    run_memory memory;
    const weights small(memory, c.values.model, true);
    checkpoint contents;
    contents.step = 2;
    contents.settings = c.json();
    contents.model = c.values.model;
    contents.sequence = c.values.data.sequence;
    contents.weights = small.files();
    contents.state = small.training_files({});
    contents.validations = {{1, 5.0}, {2, 4.0}};
    save_checkpoint(path + "/checkpoint", contents);
    config = get(file("config.json"));
    trainer = get(file("trainer.json"));
  }

  void restore() const {
    put(file("config.json"), config);
    put(file("trainer.json"), trainer);
  }

  std::string file(const std::string& name) const { return path + "/checkpoint/" + name; }

  // Sets the value at a dotted path, or removes it when there is none, and signs all files anew.
  void change(const std::string& name, const std::string& at, const char* value) const {
    const json root = parsed(get(file(name)));
    json_t* inside = root.get();
    std::string key = at;
    for (std::size_t dot; (dot = key.find('.')) != std::string::npos; key = key.substr(dot + 1))
      inside = json_object_get(inside, key.substr(0, dot).c_str());
    REQUIRE(json_object_get(inside, key.c_str()));
    if (value) {
      json_object_set_new(inside, key.c_str(), parsed(value).release());
    } else {
      json_object_del(inside, key.c_str());
    }
    char* text = json_dumps(root.get(), JSON_INDENT(2));
    put(file(name), text);
    std::free(text);
    sign();
  }

  void sign() const {
    std::string lines;
    for (const char* name :
         {"model.safetensors", "training_state.safetensors", "config.json", "trainer.json"}) {
      const std::string all = get(file(name));
      char line[128];
      std::snprintf(line, sizeof line, "%08x %zu %s\n", crc32_of(0, all.data(), all.size()),
                    all.size(), name);
      lines += line;
    }
    char last[16];
    std::snprintf(last, sizeof last, "%08x\n", crc32_of(0, lines.data(), lines.size()));
    put(file("CHECKSUMS"), lines + last);
  }

  std::string config, trainer;  // as they were saved

  // The refusal of each way of opening it; one sentence, since they agree.
  std::string answer() const {
    std::string first;
    for (const std::vector<std::string>& words : {std::vector<std::string>{"--resume", path},
                                                  {"--load", path},
                                                  {"--generate", "x", "--load", path}}) {
      arguments into;
      const std::string refusal = refusal_of([&] { parse_arguments(words, into); });
      if (first.empty()) first = refusal;
      CHECK(refusal == first);
    }
    return first;
  }
};

}  // namespace

TEST_CASE("a checkpoint that was only signed anew is accepted") {
  const victim v;
  v.sign();
  CHECK(v.answer() == "accepted");
}

TEST_CASE("hostile values of the trainer's state are refused by name") {
  struct row {
    const char *at, *value, *sentence;
  };
  const row rows[] = {
      {"step", "9223372036854775807", "step must be an integer from 0 to 1000000000"},
      {"step", "-1", "step must be an integer from 0"},
      {"step", "1.5", "step must be an integer"},
      {"step", R"("2")", "step must be an integer"},
      {"step", nullptr, "step must be an integer"},
      {"step", "1", "step must be an integer from 0 to 1, not 2"},  // of a validation
      {"data_crc", "-1", "data_crc must be an integer from 0 to 4294967295, not -1"},
      {"data_crc", "4294967296", "data_crc must be an integer"},
      {"validations", "{}", "validations must be an array"},
      {"validations", nullptr, "validations must be an array"},
      {"validations", "[7]", "step must be an integer"},
      {"validations", R"([{"step": 2, "bits_per_byte": 1}, {"step": 1, "bits_per_byte": 1}])",
       "out of order"},
      {"validations", R"([{"step": 1, "bits_per_byte": "1"}])", "no number"},
      {"settings", nullptr, "settings must be an object, not missing"},
      {"settings", "[]", "settings must be an object, not an array"},
      {"settings.model", "3", "model must be an object"},
      {"settings.model.rope_theta", "0", "rope_theta must be from 1 to 1000000000000, not 0"},
      {"settings.model.rope_theta", "5000", "config.json: rope_theta is 10000.0, but"},
      {"settings.model.norm_epsilon", "-1e300", "norm_epsilon must be from 0 to 1"},
      {"settings.model.heads", "0", "heads must be from 1"},
      {"settings.model.heads", "3", "hidden = 32 must be a multiple of heads = 3"},
      {"settings.model.hidden", "9223372036854775807", "hidden must be from 2 to 65536"},
      {"settings.model.hidden", "65536", "config.json: hidden_size is 32, but"},
      {"settings.model.layers", "1024", "config.json: num_hidden_layers is 2, but"},
      {"settings.model.vocab", "0", "vocab must be from 259"},
      {"settings.model.dtype", R"("f64")", R"(dtype = "f64" must be bf16 or f32)"},
      {"settings.model.tied", "true", "config.json: tie_word_embeddings is false, but"},
      {"settings.data.sequence", "1", "sequence must be from 2"},
      {"settings.data.sequence", "64", "config.json: max_position_embeddings is 32, but"},
      {"settings.data.batch", "1000000000", "times sequence must not exceed 2^31"},
      {"settings.data.paths", "[]", "must name a file"},
      {"settings.schedule.steps", "-5", "steps must be from 1"},
      {"settings.schedule.warmup", "300", "warmup = 300 must not exceed steps = 200"},
      {"settings.run.threads", "-1", "threads must be from 0"},
      {"settings.run.top_k", "-1", "top_k must be from 0"},
      {"settings.run.temperature", "-1", "temperature must be from 0"},
  };
  const victim v;
  for (const row& each : rows) {
    v.restore();
    v.change("trainer.json", each.at, each.value);
    INFO(each.at << " = " << (each.value ? each.value : "missing"));
    CHECK_THAT(v.answer(), Contains(each.sentence) && Contains(v.path + "/checkpoint/"));
  }
}

TEST_CASE("config.json is read back: no key of it may differ from the settings") {
  const victim v;
  const json root = parsed(get(v.file("config.json")));
  const char* key;
  json_t* value;
  json_object_foreach(root.get(), key, value) {
    for (const char* other : {"0.125", R"("other")", static_cast<const char*>(nullptr)}) {
      v.restore();
      v.change("config.json", key, other);
      CHECK_THAT(v.answer(), Contains(std::string("config.json: ") + key + " is ") &&
                                 Contains("but the settings in trainer.json make it"));
    }
  }
}

TEST_CASE("a shape that settings and config.json agree on, but not the weights, is refused") {
  const victim v;
  v.change("trainer.json", "settings.model.layers", "1024");
  v.change("config.json", "num_hidden_layers", "1024");
  CHECK_THAT(v.answer(), Contains("model.safetensors: has no tensor model.layers.2."));
  v.change("trainer.json", "settings.model.layers", "1");
  v.change("config.json", "num_hidden_layers", "1");
  CHECK_THAT(v.answer(), Contains("model.layers.1.") && Contains("has no place in this model"));
  v.change("trainer.json", "settings.model.inner", "1048576");
  v.change("config.json", "intermediate_size", "1048576");
  CHECK_THAT(v.answer(), Contains("expected BF16 [1048576, 32]"));
}
