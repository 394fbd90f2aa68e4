// The places of weights, and draws from logits.
#include "examples/decoder/weights/layout.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "examples/decoder/model/generate.hpp"

using namespace decoder;

TEST_CASE("weights do not overlap, fused ones lie end to end, and norms come first") {
  for (const bool tied : {false, true}) {
    model_settings m;
    m.hidden = 24, m.heads = 4, m.kv_heads = 2, m.inner = 36, m.vocab = 261, m.layers = 2,
    m.tied = tied;
    const weight_layout layout(m);
    std::int64_t end = 0, count = 0;
    for (const weight_slice& slice : layout.slices) {
      CHECK(slice.offset >= end);
      CHECK(slice.offset - end < 16);
      end = slice.offset + slice.elements();
      count += slice.elements();
      CHECK((slice.offset < layout.decayed) == (slice.shape.size() == 1));
    }
    CHECK(layout.total >= end);
    CHECK(count ==
          261 * 24 * (tied ? 1 : 2) + 2 * (24 * (24 + 24) + 24 * 24 + 3 * 24 * 36 + 2 * 24) + 24);
    CHECK((layout.head == layout.embedding) == tied);
    const auto* matrices = layout.slices.data() + 5;  // behind the norms
    CHECK(matrices[2].offset == matrices[1].offset + 24 * 24);
    CHECK(matrices[3].offset == matrices[2].offset + 12 * 24);
    CHECK(layout.layers[0].gate_up + 36 * 24 == matrices[6].offset);
  }
}

TEST_CASE("runs of any piece of a weight are those of the whole that lie in it") {
  model_settings m;
  m.hidden = 24, m.heads = 4, m.kv_heads = 2, m.inner = 36, m.vocab = 261, m.layers = 1;
  for (const int ranks : {1, 2, 4})
    for (int rank = 0; rank < ranks; ++rank) {
      holding held = holding::all(m);
      held.tensor_ranks = ranks, held.tensor_rank = rank;
      if (ranks == 4) held.tensor_x = 2;
      for (const weight_slice& slice : weight_layout(m, held).slices) {
        INFO(slice.name << ", rank " << rank << " of " << ranks);
        using run = std::pair<std::int64_t, std::int64_t>;  // an element's places
        std::vector<run> whole, pieces;
        const auto to = [](std::vector<run>& all) {
          return [&all](std::int64_t place, std::int64_t from, std::int64_t count) {
            for (std::int64_t i = 0; i < count; ++i) all.emplace_back(place + i, from + i);
          };
        };
        slice.each_run(to(whole));
        std::int64_t size = 1;
        for (const std::int64_t one : slice.whole) size *= one;
        for (std::int64_t first = 0; first < size; first += 35)
          slice.each_run(first, std::min<std::int64_t>(35, size - first), to(pieces));
        CHECK(static_cast<std::int64_t>(whole.size()) == slice.elements());
        CHECK(pieces == whole);
      }
    }
}

TEST_CASE("tensor names are those of Hugging Face's Llama") {
  const weight_layout layout{model_settings()};
  std::set<std::string> names;
  for (const weight_slice& slice : layout.slices) names.insert(slice.name);
  for (const char* name :
       {"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
        "model.layers.3.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight",
        "model.layers.0.self_attn.o_proj.weight", "model.layers.0.mlp.gate_proj.weight",
        "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight",
        "model.layers.0.input_layernorm.weight", "model.layers.0.post_attention_layernorm.weight",
        "model.norm.weight", "lm_head.weight"}) {
    CHECK(names.count(name) == 1);
  }
  CHECK(names.size() == 4 * 9 + 3);
}

TEST_CASE("a layer whose number kv_share divides has no projections of keys and values") {
  model_settings m;
  m.layers = 7, m.kv_share = 3;
  std::set<std::string> names;
  for (const weight_slice& slice : weight_layout(m).slices) names.insert(slice.name);
  for (std::size_t layer = 0; layer < 7; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".self_attn.";
    const std::size_t owns = layer == 2 || layer == 5 ? 0 : 1;
    CHECK(names.count(at + "q_proj.weight") == 1);
    CHECK(names.count(at + "k_proj.weight") == owns);
    CHECK(names.count(at + "v_proj.weight") == owns);
  }
  CHECK(names.size() == 7 * 9 - 4 + 3);
}

TEST_CASE("drawing follows temperature and top_k") {
  std::vector<double> logits(drawn_symbols, -20);
  logits['a'] = 2, logits['b'] = 1, logits['c'] = 0;
  CHECK(draw(logits.data(), 0, 0, 0.999) == 'a');
  CHECK(draw(logits.data(), 1, 1, 0.999) == 'a');
  CHECK(draw(logits.data(), 1, 2, 0.0) == 'a');
  CHECK(draw(logits.data(), 1, 2, 0.72) == 'a');  // e / (e + 1) = 0.731
  CHECK(draw(logits.data(), 1, 2, 0.74) == 'b');
  CHECK(draw(logits.data(), 1, 3, 0.95) == 'c');
  CHECK(draw(logits.data(), 100, 0, 0.9) != 'a');
}

TEST_CASE("control characters are shown as escapes") {
  CHECK(printable("a\nb\tc\x1b[0m\x7f\xc3\xa9") == "a\nb\tc\\x1b[0m\\x7f\xc3\xa9");
}
