// Plans of sublayers through their C entries, and what their steps read and write: a second, plain
// account of the parts of a layer, by which orders are judged.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/index.hpp"
#include "tests/record.hpp"
#include "velo/sublayers.h"

namespace velo::testing {

using step_list = std::vector<velo_sublayer_step>;

// A description that owns its lists.
struct wish {
  std::int32_t forward = 0, backward = 0;
  std::uint32_t flags = 0;
  velo_sublayer_slicing slicing = VELO_SUBLAYER_WHOLE;
  std::int32_t slices = 1;
  std::vector<std::int32_t> forward_dense = {}, backward_dense = {};
  std::vector<double> times = {};
  double latency = 0;
  step_list order = {};

  velo_sublayers_desc desc() const {
    velo_sublayers_desc all = VELO_SUBLAYERS_DESC_INIT;
    all.flags = flags;
    all.forward_layers = forward, all.backward_layers = backward;
    all.slicing = slicing, all.slices = slices;
    if (!forward_dense.empty()) all.forward_dense = forward_dense.data();
    if (!backward_dense.empty()) all.backward_dense = backward_dense.data();
    if (!times.empty()) all.times = times.data();
    all.latency = latency;
    if (!order.empty()) all.order = order.data();
    all.order_steps = static_cast<std::int64_t>(order.size());
    return all;
  }
};

class sublayers_handle {
 public:
  explicit sublayers_handle(const wish& of) {
    const velo_sublayers_desc desc = of.desc();
    REQUIRE(velo_sublayers_create(&desc, &plan_) == VELO_OK);
  }
  sublayers_handle(const sublayers_handle&) = delete;
  sublayers_handle& operator=(const sublayers_handle&) = delete;
  ~sublayers_handle() { velo_sublayers_destroy(plan_); }

  operator velo_sublayers() const { return plan_; }
  velo_sublayers_info info() const {
    velo_sublayers_info found = VELO_SUBLAYERS_INFO_INIT;
    REQUIRE(velo_sublayers_get_info(plan_, &found) == VELO_OK);
    return found;
  }
  step_list steps() const {
    std::int64_t count = 0;
    REQUIRE(velo_sublayers_get_steps(plan_, nullptr, 0, &count) == VELO_OK);
    step_list all(core::at(count));
    REQUIRE(velo_sublayers_get_steps(plan_, all.data(), count, nullptr) == VELO_OK);
    return all;
  }
  std::set<std::int64_t> needs(std::int64_t step) const {
    std::int64_t count = 0;
    REQUIRE(velo_sublayers_get_needs(plan_, step, nullptr, 0, &count) == VELO_OK);
    std::vector<std::int64_t> all(core::at(count));
    REQUIRE(velo_sublayers_get_needs(plan_, step, all.data(), count, nullptr) == VELO_OK);
    return {all.begin(), all.end()};
  }
  std::string text(velo_sublayers_format format, const velo_sublayer_span* spans = nullptr) const {
    std::uint64_t needed = 0;
    REQUIRE(velo_sublayers_write(plan_, spans, format, nullptr, 0, &needed) == VELO_OK);
    std::string all(needed, '\0');
    REQUIRE(velo_sublayers_write(plan_, spans, format, all.data(), needed, nullptr) == VELO_OK);
    all.pop_back();
    return all;
  }

 private:
  velo_sublayers plan_ = nullptr;
};

// The values that one step reads and writes, by name.
struct flow {
  std::vector<std::string> reads, writes;
};

// The values of a layer's passes. "x.L" is the input of layer L, in pieces that are added up; "g.L"
// the gradient of its output, in pieces of rows.
class layer_values {
 public:
  explicit layer_values(const wish& of) : of_(of) {}

  flow of(const velo_sublayer_step& step) const {
    const std::string l = std::to_string(step.layer), s = std::to_string(step.slice);
    const auto name = [&](const char* what) { return what + l + "." + s; };
    const bool dense = is_dense(step.kind <= VELO_SUBLAYER_SHARED_F, step.layer);
    switch (step.kind) {
      case VELO_SUBLAYER_ATTENTION_F:
        return {pieces_of_input(step.layer), {name("a")}};
      case VELO_SUBLAYER_DISPATCH_F:
        return {{cuts_all() ? name("a") : "a" + l + ".0"}, {name("d")}};
      case VELO_SUBLAYER_EXPERTS_F:
        if (dense) return {{name("a")}, {"x" + next(step.layer) + ".c" + s}};
        return {{name("d")}, {name("e")}};
      case VELO_SUBLAYER_COMBINE_F:
        return {{name("e")}, {"x" + next(step.layer) + ".c" + s}};
      case VELO_SUBLAYER_SHARED_F:
        return {{name("a")}, {"x" + next(step.layer) + ".h" + s}};
      case VELO_SUBLAYER_COMBINE_B:
        return {pieces_of_gradient(step.layer), {name("cb")}};
      case VELO_SUBLAYER_SHARED_B:
        return {pieces_of_gradient(step.layer), {name("hb")}};
      case VELO_SUBLAYER_EXPERTS_B:
        if (dense) return {pieces_of_gradient(step.layer), {name("eb")}};
        return {{name("cb")}, {name("eb")}};
      case VELO_SUBLAYER_DISPATCH_B:
        return {{name("eb")}, {name("db")}};
      case VELO_SUBLAYER_EXPERTS_W:
        return {{name("eb")}, {name("ew")}};
      case VELO_SUBLAYER_ATTENTION_B: {
        std::vector<std::string> reads;
        for (int i = 0; i < (cuts_all() || dense ? 1 : of_.slices); ++i)
          reads.push_back((dense ? "eb" : "db") + l + "." + (cuts_all() ? s : std::to_string(i)));
        if (!dense && has_shared()) reads.push_back(name("hb"));
        return {reads, {"g" + before(step.layer) + "." + s}};
      }
      case VELO_SUBLAYER_ATTENTION_W:
        return {{"g" + before(step.layer) + "." + s}, {name("aw")}};
      default:
        return {pieces_of_gradient(-1), {"sent"}};
    }
  }

  // Whether each step of an order comes after all that writes what it reads, and nothing is
  // written twice.
  bool works(const step_list& order) const {
    std::set<std::string> there;
    for (const velo_sublayer_step& step : order) {
      const flow one = of(step);
      for (const std::string& read : one.reads)
        if (there.count(read) == 0) return false;
      for (const std::string& write : one.writes)
        if (!there.insert(write).second) return false;
    }
    return true;
  }

  // How many steps there are, by a count of its own.
  std::size_t count() const {
    const bool cut = of_.slicing != VELO_SUBLAYER_WHOLE;
    const int n = cut ? of_.slices : 1, all = cuts_all() ? n : 1;
    int sum = (of_.flags & VELO_SUBLAYERS_SEND) != 0 && of_.backward > 0 ? 1 : 0;
    for (int i = 0; i < of_.forward; ++i)
      sum += is_dense(true, i) ? 2 * all : all + 3 * n + (has_shared() ? all : 0);
    for (int i = 0; i < of_.backward; ++i)
      sum += is_dense(false, i) ? 4 * all : 2 * all + 4 * n + (has_shared() ? all : 0);
    return core::at(sum);
  }

 private:
  bool cuts_all() const { return of_.slicing == VELO_SUBLAYER_BY_SEQUENCE; }
  bool has_shared() const { return (of_.flags & VELO_SUBLAYERS_SHARED) != 0; }
  bool is_dense(bool forward, int layer) const {
    const auto& list = forward ? of_.forward_dense : of_.backward_dense;
    return !list.empty() && list[core::at(layer)] != 0;
  }
  static std::string next(int layer) { return std::to_string(layer + 1); }
  static std::string before(int layer) { return std::to_string(layer - 1); }
  std::vector<std::string> pieces_of_input(int layer) const {
    std::vector<std::string> all;
    if (layer == 0) return all;
    const bool dense = is_dense(true, layer - 1);
    const int n = dense && !cuts_all() ? 1 : of_.slices;
    for (int i = 0; i < n; ++i)
      all.push_back("x" + std::to_string(layer) + ".c" + std::to_string(i));
    for (int i = 0; has_shared() && !dense && i < (cuts_all() ? n : 1); ++i)
      all.push_back("x" + std::to_string(layer) + ".h" + std::to_string(i));
    return all;
  }
  std::vector<std::string> pieces_of_gradient(int layer) const {
    std::vector<std::string> all;
    for (int i = 0; layer + 1 < of_.backward && i < (cuts_all() ? of_.slices : 1); ++i)
      all.push_back("g" + std::to_string(layer) + "." + std::to_string(i));
    return all;
  }

  const wish& of_;
};

}  // namespace velo::testing
