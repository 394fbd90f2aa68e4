// Weights that transformers wrote are the same bits under any layout, and each rank reads the
// elements of its part alone.
#include <atomic>

#include "examples/decoder/checkpoint/llama_folder.hpp"
#include "tests/examples/decoder/checkpoint/llama_files.hpp"
#include "tests/examples/decoder/parallel/named_layouts.hpp"

namespace {

// Counts what a rank asks for.
class counting : public decoder::stored_weights {
 public:
  mutable std::int64_t count = 0;
  void read(decoder::weights& into, const velo::stream_ref& stream) const override {
    into.fill(stream,
              [&](const decoder::weight_slice&, std::int64_t, std::int64_t some, float* to) {
                std::fill_n(to, some, 0.0f);
                count += some;
              });
  }
};

std::int64_t elements_of(const decoder::weights& part) {
  std::int64_t count = 0;
  for (const decoder::weight_slice& each : part.layout().slices) count += each.elements();
  return count;
}

// The tensors of a file, in f32.
std::vector<float> values_in(const decoder::safetensors_reader& file, const std::string& name,
                             std::size_t count) {
  std::vector<float> values(count);
  file.read(name, 0, static_cast<std::int64_t>(count), values.data());
  return values;
}

void check_saved(const std::string& checkpoint, const stored_model& tensors, bool bf16) {
  const decoder::safetensors_reader weights(checkpoint + "/model.safetensors"),
      state(checkpoint + "/training_state.safetensors");
  CHECK(weights.entries().size() == tensors.size());
  for (const auto& [name, each] : tensors) {
    INFO(name);
    const std::size_t count = each.values.size();
    CHECK(
        (values_in(bf16 ? state : weights, bf16 ? "master." + name : name, count) == each.values));
    if (!bf16) continue;
    const std::vector<float> rounded = values_in(weights, name, count);
    for (std::size_t i = 0; i < count; ++i)
      if (std::abs(rounded[i] - each.values[i]) > std::abs(each.values[i]) / 256) FAIL(i);
  }
}

}  // namespace

TEST_CASE("weights of transformers have the same bits under any layout") {
  for (const char* type : {"f32", "bf16"}) {
    for (const layout& to : layouts()) {
      settings s = small_model();
      s.model.dtype = type;
      to.set(s);
      if (s.model.kv_share > 0) continue;  // no Llama
      s.run.ranks = to.ranks;
      INFO(type << ", " << to.name);
      const stored_model tensors = llama_tensors(s.model);
      const temporary t;
      put_llama(t / "given", s.model, tensors, 3);
      const decoder::llama_folder given(t / "given");
      given.require_model(s.model);
      std::atomic<int> wrong{0};
      on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
        const counting asked;
        one.start(&asked);
        if (asked.count != elements_of(one.weights())) ++wrong;
        one.start(&given);
        const decoder::checkpoint now = one.state("{}");
        if (rank.leads())
          decoder::save_checkpoint(t / "saved", now, "");
        else
          decoder::trainer::give(now);
      });
      CHECK(wrong == 0);
      check_saved(t / "saved", tensors, s.model.dtype == "bf16");
    }
  }
}
