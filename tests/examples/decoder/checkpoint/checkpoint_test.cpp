// Checkpoints: whole or not there.
#include "examples/decoder/checkpoint/checkpoint.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/failure.hpp"
#include "tests/examples/decoder/temporary.hpp"

using Catch::Matchers::Contains;
using namespace decoder;

namespace {

struct state {
  std::vector<std::uint16_t> weight = std::vector<std::uint16_t>(6, 1);
  std::vector<float> master = std::vector<float>(6, 1.0f);

  checkpoint contents(std::int64_t step) {
    checkpoint c;
    c.step = step;
    c.data_crc = 0xdeadbeef;
    c.settings = configuration().json();
    if (step > 2) c.validations = {{1, 5.5}, {2, 4.25}};
    c.weights = {{"model.norm.weight", element::bf16, {6}, weight.data()}};
    c.state = {{"master.model.norm.weight", element::f32, {6}, master.data()}};
    return c;
  }
};

std::string refusal(const std::string& path) {
  return refusal_of([&] { checkpoint_reader reader(path); });
}

}  // namespace

TEST_CASE("what was saved is read, and saving again replaces it") {
  temporary t;
  state saved, read;
  save_checkpoint(t / "out/c", saved.contents(3));
  saved.weight[2] = 99;
  saved.master[1] = 0.5f;
  save_checkpoint(t / "out/c", saved.contents(4));
  const checkpoint_reader reader(t / "out/c");
  CHECK(reader.step() == 4);
  CHECK(reader.data_crc() == 0xdeadbeef);
  configuration c;
  c.read_text(reader.trainer(), reader.trainer_name(), "settings");
  CHECK(c.json() == configuration().json());
  REQUIRE(reader.validations().size() == 2);
  CHECK(reader.validations()[1].step == 2);
  CHECK(reader.validations()[1].bits == 4.25);
  reader.read_weights(read.contents(0).weights);
  reader.read_state(read.contents(0).state);
  CHECK(read.weight == saved.weight);
  CHECK(read.master == saved.master);
  CHECK_FALSE(std::filesystem::exists(t / "out/c.saving"));
}

TEST_CASE("any flipped bit and any cut of any file is refused") {
  temporary t;
  state s;
  save_checkpoint(t / "c", s.contents(1));
  for (const char* name : {"model.safetensors", "training_state.safetensors", "config.json",
                           "trainer.json", "CHECKSUMS"}) {
    const std::string path = t / "c/" + name, good = get(path);
    for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 50) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
      put(path, bad);
      CHECK_THAT(refusal(t / "c"), Contains(name) || Contains("damaged"));
    }
    for (const std::size_t size : {std::size_t{0}, good.size() / 2, good.size() - 1}) {
      put(path, good.substr(0, size));
      CHECK(refusal(t / "c") != "accepted");
    }
    std::filesystem::remove(path);
    CHECK_THAT(refusal(t / "c"), Contains(name));
    put(path, good);
    CHECK(refusal(t / "c") == "accepted");
  }
}

TEST_CASE("what is not there or not a checkpoint is refused") {
  temporary t;
  CHECK_THAT(refusal(t / "none"), Contains("no such checkpoint"));
  put(t / "mine/precious", "text");
  CHECK_THAT(refusal(t / "mine"), Contains("CHECKSUMS"));
  state s;
  CHECK_THROWS_WITH(save_checkpoint(t / "mine", s.contents(1)), Contains("not a checkpoint"));
  CHECK(get(t / "mine/precious") == "text");
  put(t / "file", "");
  CHECK_THROWS_WITH(save_checkpoint(t / "file/c", s.contents(1)), Contains("cannot create"));
}

TEST_CASE("a save that meets a size limit leaves the previous checkpoint") {
  temporary t;
  state s;
  s.master.resize(1 << 16);
  checkpoint big = s.contents(2);
  big.state[0].shape = {1 << 16};
  save_checkpoint(t / "c", s.contents(1));
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{100000, 100000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    try {
      save_checkpoint(t / "c", big);
    } catch (const failure& f) {
      ::_exit(std::string(f.what()).find("File too large") != std::string::npos ? 1 : 2);
    }
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(checkpoint_reader(t / "c").step() == 1);
  CHECK_FALSE(std::filesystem::exists(t / "c.saving"));
}

TEST_CASE("what is in the place of a checkpoint is kept under another name when asked") {
  temporary t;
  state s;
  save_checkpoint(t / "c", s.contents(1));
  save_checkpoint(t / "c", s.contents(2), t / "c.1");
  CHECK(checkpoint_reader(t / "c").step() == 2);
  CHECK(checkpoint_reader(t / "c.1").step() == 1);
}

TEST_CASE("a checkpoint is found in the folder of its run, which it tells") {
  temporary t;
  state s;
  save_checkpoint(t / "run/checkpoint", s.contents(1));
  for (const char* name : {"run", "run/", "run/checkpoint", "run/checkpoint/"}) {
    const checkpoint_reader reader(t / name);
    CHECK(reader.step() == 1);
    CHECK(reader.out() == t / "run");
  }
  std::filesystem::rename(t / "run/checkpoint", t / "run/checkpoint.previous");  // between renames
  CHECK(checkpoint_reader(t / "run").out() == t / "run");
  CHECK(checkpoint_reader(t / "run/checkpoint").step() == 1);
  save_checkpoint(t / "elsewhere", s.contents(1));
  CHECK(checkpoint_reader(t / "elsewhere").out().empty());
}

TEST_CASE("a checkpoint that another run replaces after it was opened is noticed") {
  temporary t;
  state s;
  save_checkpoint(t / "c", s.contents(1));
  checkpoint_reader reader(t / "c");
  CHECK_NOTHROW(reader.require_unchanged());
  save_checkpoint(t / "c", s.contents(2));
  CHECK_THROWS_WITH(reader.require_unchanged(), Contains("another run has just saved"));
}

TEST_CASE("a killed save's leavings do not disturb the next one") {
  temporary t;
  put(t / "c.saving/model.safetensors", "half");
  state s;
  save_checkpoint(t / "c", s.contents(7));
  CHECK(checkpoint_reader(t / "c").step() == 7);
}

TEST_CASE("config.json has the keys that LlamaConfig reads") {
  model_settings m;
  const std::string text = hugging_face_config(m, 256);
  for (const char* key : {R"("LlamaForCausalLM")", R"("hidden_size": 256)",
                          R"("intermediate_size": 768)", R"("num_key_value_heads": 2)",
                          R"("tie_word_embeddings": false)", R"("rope_theta": 10000.0)"}) {
    CHECK_THAT(text, Contains(key));
  }
}
