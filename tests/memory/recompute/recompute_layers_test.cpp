// Rules for layers through their C entry: which layer gets which kind, and what is refused.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/memory/pool/pools.hpp"
#include "velo/velo.h"

namespace {

using rule = velo_recompute_rule;

constexpr std::int32_t none = VELO_RECOMPUTE_NONE, full = VELO_RECOMPUTE_FULL,
                       activation = VELO_RECOMPUTE_ACTIVATION, norm = VELO_RECOMPUTE_NORM;

rule rule_of(velo_recompute_method method, std::int32_t layers, std::int32_t size = 1,
             std::int32_t rank = 0, std::int32_t chunks = 1) {
  rule r = VELO_RECOMPUTE_RULE_INIT;
  r.method = method;
  r.layers = layers;
  r.pipeline_size = size;
  r.pipeline_rank = rank;
  r.chunks = chunks;
  return r;
}

std::vector<velo_recompute_layer> layers_of(const rule& r) {
  std::int64_t count = -1;
  REQUIRE(velo_recompute_layers(&r, nullptr, 0, &count) == VELO_OK);
  std::vector<velo_recompute_layer> all(static_cast<std::size_t>(count));
  REQUIRE(velo_recompute_layers(&r, all.data(), count, nullptr) == VELO_OK);
  return all;
}

template <class F>
std::vector<std::int32_t> each(const rule& r, F&& of) {
  std::vector<std::int32_t> all;
  for (const velo_recompute_layer& layer : layers_of(r)) all.push_back(of(layer));
  return all;
}

std::vector<std::int32_t> kinds(const rule& r) {
  return each(r, [](const velo_recompute_layer& l) { return l.kinds; });
}
std::vector<std::int32_t> in_flight(const rule& r) {
  return each(r, [](const velo_recompute_layer& l) { return l.in_flight; });
}

using numbers = std::vector<std::int32_t>;

// Changes one field of a rule that is accepted and checks that this is what is named.
template <class Change>
void refused(rule r, const std::string& field, Change&& change) {
  INFO(field);
  CHECK(velo_recompute_layers(&r, nullptr, 0, nullptr) == VELO_OK);
  change(r);
  std::int64_t count = -7;
  velo_recompute_layer layer{};
  layer.kinds = -7;
  CHECK_REFUSED(velo_recompute_layers(&r, &layer, 1, &count), VELO_ERR_ARGUMENT, "rule." + field);
  CHECK(count == -7);
  CHECK(layer.kinds == -7);
}

}  // namespace

TEST_CASE("the layers of a stage are those of its chunks, as virtual stages number them") {
  const auto model = [](const rule& r) {
    return each(r, [](const velo_recompute_layer& l) { return l.layer; });
  };
  CHECK(model(rule_of(VELO_RECOMPUTE_METHOD_NONE, 16, 4, 0, 2)) == numbers{0, 1, 8, 9});
  CHECK(model(rule_of(VELO_RECOMPUTE_METHOD_NONE, 16, 4, 3, 2)) == numbers{6, 7, 14, 15});
  CHECK(model(rule_of(VELO_RECOMPUTE_METHOD_NONE, 8, 2, 1)) == numbers{4, 5, 6, 7});
}

TEST_CASE("full, selective and none treat all layers alike") {
  CHECK(kinds(rule_of(VELO_RECOMPUTE_METHOD_NONE, 3)) == numbers{none, none, none});
  CHECK(kinds(rule_of(VELO_RECOMPUTE_METHOD_FULL, 2)) == numbers{full, full});
  CHECK(kinds(rule_of(VELO_RECOMPUTE_METHOD_SELECTIVE, 2)) ==
        numbers{VELO_RECOMPUTE_SELECTIVE, VELO_RECOMPUTE_SELECTIVE});
  CHECK(kinds(rule_of(VELO_RECOMPUTE_METHOD_ADAPTIVE, 2)) == numbers{none, none});
}

TEST_CASE("block recomputes the first layers of each chunk, or of the stage") {
  rule r = rule_of(VELO_RECOMPUTE_METHOD_BLOCK, 24, 4, 1, 2);  // 3 layers in each of 2 chunks
  r.count = 2;
  CHECK(kinds(r) == numbers{full, full, none, full, full, none});
  r.per_stage = 1;  // the first of both chunks
  CHECK(kinds(r) == numbers{full, none, none, full, none, none});
  r.count = 3;  // and the second of the first chunk
  CHECK(kinds(r) == numbers{full, full, none, full, none, none});
  r.count = 0;
  CHECK(kinds(r) == numbers{none, none, none, none, none, none});
  r.count = -1;
  CHECK(kinds(r) == numbers(6, full));
}

TEST_CASE("uniform recomputes groups of layers that end with their chunk") {
  rule r = rule_of(VELO_RECOMPUTE_METHOD_UNIFORM, 20, 2, 0, 2);  // 5 layers in each of 2 chunks
  r.count = 2;
  CHECK(kinds(r) == numbers(10, full));
  CHECK(each(r, [](const velo_recompute_layer& l) { return l.first; }) ==
        numbers{0, 0, 2, 2, 4, 5, 5, 7, 7, 9});
}

TEST_CASE("activations and norms are recomputed in the layers that follow the whole ones") {
  rule r = rule_of(VELO_RECOMPUTE_METHOD_BLOCK, 6);
  r.count = 2;
  r.activation = 1;
  CHECK(kinds(r) == numbers{full, full, activation, activation, activation, activation});
  r.activation_layers = 3;
  r.norm = 1;
  r.norm_layers = 1;
  CHECK(kinds(r) == numbers{full, full, activation | norm, activation, activation, none});
  r.method = VELO_RECOMPUTE_METHOD_NONE;  // whose count is not looked at
  CHECK(kinds(r) == numbers{activation | norm, activation, activation, none, none, none});

  rule staged = rule_of(VELO_RECOMPUTE_METHOD_BLOCK, 24, 4, 0, 2);
  staged.per_stage = 1;
  staged.count = 1;
  staged.norm = 1;
  staged.norm_layers = 2;
  CHECK(kinds(staged) == numbers{full, norm, none, norm, none, none});
}

TEST_CASE(
    "where attention is swapped all layers do, of block the first, and some recompute the rest") {
  constexpr std::int32_t rest = VELO_RECOMPUTE_FEED_FORWARD;
  const auto swaps = [](const rule& r) {
    return each(r, [](const velo_recompute_layer& l) { return l.swap; });
  };
  rule r = rule_of(VELO_RECOMPUTE_METHOD_NONE, 4);
  CHECK(swaps(r) == numbers{0, 0, 0, 0});
  r.beside = VELO_RECOMPUTE_BESIDE_SWAP_ATTENTION;
  CHECK(swaps(r) == numbers{1, 1, 1, 1});
  CHECK(kinds(r) == numbers{none, none, none, none});
  r.feed_forward_layers = 2;
  r.activation = 1, r.activation_layers = 3;
  r.norm = 1, r.norm_layers = 1;
  CHECK(kinds(r) == numbers{rest | norm, rest, activation, none});
  r.method = VELO_RECOMPUTE_METHOD_BLOCK, r.count = 3, r.norm = r.activation = 0;
  CHECK(swaps(r) == numbers{1, 1, 1, 0});
  CHECK(kinds(r) == numbers{rest, rest, none, none});
  r.count = 1, r.feed_forward_layers = -1;
  CHECK(swaps(r) == numbers{1, 0, 0, 0});
  CHECK(kinds(r) == numbers{rest, none, none, none});
  r.count = -1;
  CHECK(swaps(r) == numbers{1, 1, 1, 1});
  r.method = VELO_RECOMPUTE_METHOD_SELECTIVE, r.feed_forward_layers = 0;
  CHECK(swaps(r) == numbers{1, 1, 1, 1});
  for (const velo_recompute_method whole :
       {VELO_RECOMPUTE_METHOD_FULL, VELO_RECOMPUTE_METHOD_UNIFORM}) {
    r.method = whole, r.count = 2, r.feed_forward_layers = 1;
    CHECK(swaps(r) == numbers{0, 0, 0, 0});
    CHECK(kinds(r) == numbers{full, full, full, full});
  }
  rule staged = rule_of(VELO_RECOMPUTE_METHOD_BLOCK, 24, 4, 0, 2);
  staged.beside = VELO_RECOMPUTE_BESIDE_SWAP_ATTENTION;
  staged.per_stage = 1, staged.count = 3, staged.feed_forward_layers = 2;
  CHECK(swaps(staged) == numbers{1, 1, 0, 1, 0, 0});
  CHECK(kinds(staged) == numbers{rest, none, none, rest, none, none});
}

TEST_CASE("micro-batches in flight follow the schedule") {
  const auto plain = VELO_RECOMPUTE_METHOD_NONE;
  for (std::int32_t rank = 0; rank < 4; ++rank)
    CHECK(in_flight(rule_of(plain, 4, 4, rank)) == numbers{4 - rank});
  rule few = rule_of(plain, 4, 4, 0);
  few.micro_batches = 2;
  CHECK(in_flight(few) == numbers{2});
  // 2 (P - 1 - r) + (V - 1) P + 1 passes, 4 a chunk and turn: of rank 0 in 2 chunks 11.
  CHECK(in_flight(rule_of(plain, 8, 4, 0, 2)) == numbers{7, 4});
  CHECK(in_flight(rule_of(plain, 8, 4, 3, 2)) == numbers{4, 1});
  CHECK(in_flight(rule_of(plain, 12, 4, 1, 3)) == numbers{5, 4, 4});
  rule all = rule_of(plain, 8, 4, 3, 2);
  all.micro_batches = 4;  // as many as stages: all forward passes come first
  CHECK(in_flight(all) == numbers{4, 4});
}

TEST_CASE("numbers that make no sense are refused by their field") {
  const rule r = rule_of(VELO_RECOMPUTE_METHOD_BLOCK, 8, 2, 1, 2);
  refused(r, "method", [](rule& x) { x.method = 6; });
  refused(r, "layers", [](rule& x) { x.layers = 6; });
  refused(r, "layers", [](rule& x) { x.layers = INT32_MAX; });
  refused(r, "pipeline_size", [](rule& x) { x.pipeline_size = 0; });
  refused(r, "pipeline_rank", [](rule& x) { x.pipeline_rank = 2; });
  refused(r, "chunks", [](rule& x) { x.chunks = 0; });
  refused(r, "pipeline_rank", [](rule& x) { x.pipeline_size = 1; });
  refused(rule_of(VELO_RECOMPUTE_METHOD_NONE, 8), "chunks", [](rule& x) { x.chunks = 2; });
  refused(r, "micro_batches", [](rule& x) { x.micro_batches = 3; });
  refused(r, "count", [](rule& x) { x.count = -2; });
  refused(rule_of(VELO_RECOMPUTE_METHOD_UNIFORM, 8), "count", [](rule& x) { x.count = 0; });
  refused(r, "per_stage", [](rule& x) { x.per_stage = 2; });
  refused(r, "activation", [](rule& x) { x.activation = -1; });
  refused(r, "norm_layers", [](rule& x) { x.norm_layers = -2; });
  refused(r, "beside", [](rule& x) { x.beside = 64; });
  refused(r, "feed_forward_layers", [](rule& x) { x.feed_forward_layers = 1; });
  refused(r, "feed_forward_layers", [](rule& x) {
    x.beside = VELO_RECOMPUTE_BESIDE_SWAP_ATTENTION, x.feed_forward_layers = -2;
  });
  velo_recompute_layer layer{};
  CHECK(velo_recompute_layers(&r, &layer, -1, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(velo_recompute_layers(&r, nullptr, 1, nullptr) == VELO_ERR_NULL);
}

TEST_CASE("ways that exclude each other are refused") {
  for (const velo_recompute_method method :
       {VELO_RECOMPUTE_METHOD_FULL, VELO_RECOMPUTE_METHOD_UNIFORM, VELO_RECOMPUTE_METHOD_SELECTIVE,
        VELO_RECOMPUTE_METHOD_ADAPTIVE}) {
    refused(rule_of(method, 4), "activation", [](rule& x) { x.activation = 1; });
    refused(rule_of(method, 4), "norm", [](rule& x) { x.norm = 1; });
  }
  for (const std::int32_t beside : {VELO_RECOMPUTE_BESIDE_BUBBLE, VELO_RECOMPUTE_BESIDE_ADVANCE,
                                    VELO_RECOMPUTE_BESIDE_SWAP_ATTENTION,
                                    VELO_RECOMPUTE_BESIDE_LIFETIMES, VELO_RECOMPUTE_BESIDE_AMPIPE})
    refused(rule_of(VELO_RECOMPUTE_METHOD_ADAPTIVE, 8, 4, 0, 2), "beside",
            [&](rule& x) { x.beside = beside; });

  rule bubble = rule_of(VELO_RECOMPUTE_METHOD_NONE, 8, 2, 0, 2);
  bubble.beside = VELO_RECOMPUTE_BESIDE_BUBBLE;
  refused(bubble, "method", [](rule& x) { x.method = VELO_RECOMPUTE_METHOD_SELECTIVE; });
  refused(bubble, "beside", [](rule& x) { x.chunks = 1; });
  refused(bubble, "beside", [](rule& x) { x.beside |= VELO_RECOMPUTE_BESIDE_ADVANCE; });
  refused(bubble, "beside", [](rule& x) { x.beside |= VELO_RECOMPUTE_BESIDE_BALANCE; });

  rule advance = rule_of(VELO_RECOMPUTE_METHOD_BLOCK, 4, 2, 0, 2);
  advance.beside = VELO_RECOMPUTE_BESIDE_ADVANCE;
  refused(advance, "method", [](rule& x) { x.method = VELO_RECOMPUTE_METHOD_UNIFORM; });
  refused(advance, "method", [](rule& x) { x.count = 0; });
  refused(advance, "beside", [](rule& x) { x.layers = 8; });
  refused(advance, "beside", [](rule& x) { x.beside |= VELO_RECOMPUTE_BESIDE_AMPIPE; });

  rule balance = rule_of(VELO_RECOMPUTE_METHOD_SELECTIVE, 4);
  balance.beside = VELO_RECOMPUTE_BESIDE_BALANCE;
  refused(balance, "method", [](rule& x) { x.method = VELO_RECOMPUTE_METHOD_BLOCK; });
}

TEST_CASE("layers are asked for by name as well") {
  rule r = rule_of(VELO_RECOMPUTE_METHOD_BLOCK, 4);
  std::int64_t count = 0;
  velo_recompute_layer layers[4] = {};
  velo_value values[4] = {{VELO_VALUE_POINTER, 0, {0}},
                          {VELO_VALUE_POINTER, 0, {0}},
                          {VELO_VALUE_INT, 0, {0}},
                          {VELO_VALUE_POINTER, 0, {0}}};
  values[0].as.p = &r;
  values[1].as.p = layers;
  values[2].as.i = 4;
  values[3].as.p = &count;
  REQUIRE(velo_invoke("velo_recompute_layers", values, 4, nullptr) == VELO_OK);
  CHECK(count == 4);
  CHECK(layers[0].kinds == full);
  CHECK(layers[1].kinds == none);
}
