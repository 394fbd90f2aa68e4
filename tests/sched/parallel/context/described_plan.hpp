// A sequence plan as its C entries describe it: lists of rows, tasks and messages of all ranks.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "velo/sequence_plan.h"

namespace velo::testing {

struct described_task {
  std::int64_t rank;
  velo_sequence_task is;
  std::vector<std::int64_t> queries, keys;
};

struct described_message {
  velo_sequence_message is;
  std::vector<std::int64_t> rows;
};

class described_plan {
 public:
  explicit described_plan(const velo_sequence_desc& desc) {
    REQUIRE(velo_sequence_plan_create(&desc, &handle_) == VELO_OK);
  }
  ~described_plan() { velo_sequence_plan_destroy(handle_); }
  described_plan(const described_plan&) = delete;
  operator velo_sequence_plan() const { return handle_; }

  void require_proven() const { REQUIRE(velo_sequence_plan_check(handle_) == VELO_OK); }
  velo_sequence_info info() const {
    velo_sequence_info found = VELO_SEQUENCE_INFO_INIT;
    REQUIRE(velo_sequence_plan_get_info(handle_, &found) == VELO_OK);
    return found;
  }
  velo_sequence_step step(velo_sequence_pass pass, std::int64_t rank, std::int64_t at) const {
    velo_sequence_step found = VELO_SEQUENCE_STEP_INIT;
    REQUIRE(velo_sequence_plan_get_step(handle_, pass, rank, at, &found) == VELO_OK);
    return found;
  }
  std::vector<std::int64_t> held(std::int64_t rank) const {
    return listed([&](std::int64_t* spans, std::int64_t capacity, std::int64_t* count) {
      return velo_sequence_plan_get_rows(handle_, rank, spans, capacity, count);
    });
  }
  std::vector<described_task> tasks(velo_sequence_pass pass) const {
    std::vector<described_task> all;
    each_step(pass, [&](std::int64_t rank, std::int64_t at, const velo_sequence_step& of) {
      for (std::int64_t i = 0; i < of.tasks; ++i) {
        described_task one{rank, VELO_SEQUENCE_TASK_INIT, {}, {}};
        REQUIRE(velo_sequence_plan_get_task(handle_, pass, rank, at, i, &one.is) == VELO_OK);
        one.queries = rows_of(pass, rank, at, VELO_SEQUENCE_TASK_QUERIES, i);
        one.keys = rows_of(pass, rank, at, VELO_SEQUENCE_TASK_KEYS, i);
        all.push_back(one);
      }
    });
    return all;
  }
  std::vector<described_message> messages(velo_sequence_pass pass, velo_sequence_part part) const {
    std::vector<described_message> all;
    each_step(pass, [&](std::int64_t rank, std::int64_t at, const velo_sequence_step& of) {
      const std::int64_t count = part == VELO_SEQUENCE_SENT ? of.sends : of.receives;
      for (std::int64_t i = 0; i < count; ++i) {
        described_message one{VELO_SEQUENCE_MESSAGE_INIT, {}};
        REQUIRE(velo_sequence_plan_get_message(handle_, pass, rank, at, part, i, &one.is) ==
                VELO_OK);
        one.rows = rows_of(pass, rank, at, part, i);
        all.push_back(one);
      }
    });
    return all;
  }
  std::string text(velo_sequence_format format) const {
    std::uint64_t needed = 0;
    REQUIRE(velo_sequence_plan_write(handle_, format, nullptr, 0, &needed) == VELO_OK);
    std::string all(needed, ' ');
    REQUIRE(velo_sequence_plan_write(handle_, format, all.data(), needed, nullptr) == VELO_OK);
    all.pop_back();
    return all;
  }

 private:
  template <class Body>
  void each_step(velo_sequence_pass pass, const Body& body) const {
    const velo_sequence_info all = info();
    const bool forward = pass == VELO_SEQUENCE_FORWARD;
    for (std::int64_t rank = 0; rank < all.cp; ++rank)
      for (std::int64_t at = 0; at <= (forward ? all.forward_steps : all.gradient_steps); ++at)
        body(rank, at, step(pass, rank, at));
  }
  template <class Ask>
  static std::vector<std::int64_t> listed(const Ask& ask) {
    std::int64_t count = 0;
    REQUIRE(ask(nullptr, 0, &count) == VELO_OK);
    std::vector<std::int64_t> spans(static_cast<std::size_t>(2 * count)), all;
    REQUIRE(ask(spans.data(), count, &count) == VELO_OK);
    for (std::size_t i = 0; i < spans.size(); i += 2)
      for (std::int64_t row = spans[i]; row < spans[i + 1]; ++row) all.push_back(row);
    return all;
  }
  std::vector<std::int64_t> rows_of(velo_sequence_pass pass, std::int64_t rank, std::int64_t at,
                                    velo_sequence_part part, std::int64_t index) const {
    return listed([&](std::int64_t* spans, std::int64_t capacity, std::int64_t* count) {
      return velo_sequence_plan_get_spans(handle_, pass, rank, at, part, index, spans, capacity,
                                          count);
    });
  }

  velo_sequence_plan handle_ = nullptr;
};

}  // namespace velo::testing
