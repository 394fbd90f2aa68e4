// Rows and heads of one content in memory, and copies between such stores.
//
// A store is a tensor of this rank, memory of a call, or the same of a peer. It holds the rows of a
// list in order and a range of heads, with any strides. Invariant: a copy or sum touches the rows
// and heads that it names and no others; sums are float32. Cost: one read and one write of them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/stream/execution.hpp"
#include "ops/attention/engine/attention.hpp"
#include "sched/parallel/context/rows.hpp"

namespace velo::sched {

// Neighboring rows of the sequence that lie side by side in a store, too.
struct row_run {
  std::int64_t position, count, row;  // position: of the first row in the store
};

// The positions of the rows of an ascending list.
class row_places {
 public:
  row_places() = default;
  explicit row_places(rows list);

  const rows& list() const { return list_; }
  std::int64_t size() const { return starts_.empty() ? 0 : starts_.back() + list_.back().size(); }
  std::int64_t row(std::int64_t place) const;  // of the sequence
  std::int64_t place(std::int64_t row) const;  // of a row that lies here
  bool has(const rows& of) const;
  bool has_some(const rows& of) const;
  // The rows of `of` that lie here, in its order.
  std::vector<row_run> runs(const rows& of) const;

 private:
  std::size_t first_behind(std::int64_t row) const;  // the first span that ends behind a row

  rows list_;
  std::vector<std::int64_t> starts_;  // of each span
};

struct row_store {
  char* data = nullptr;
  const row_places* places = nullptr;
  span heads{0, 0};
  ops::attention_strides strides;
  std::int64_t width = 0;  // elements of a head
  ops::element_type type = ops::element_type::f32;

  char* at(std::int64_t batch, std::int64_t position, std::int64_t head) const {
    return data + (batch * strides.batch + position * strides.token +
                   (head - heads.begin) * strides.head) *
                      ops::element_bytes(type);
  }
  bool has(const rows& of, span some) const {
    return heads.begin <= some.begin && some.end <= heads.end && places->has(of);
  }
  // Whether it is dense and holds these rows and heads of a batch, and nothing else.
  bool is_exactly(const rows& of, span some, std::int64_t batch) const;
};

// A store [batch, rows, heads, width] without gaps, in `data`.
row_store dense_store(void* data, const row_places& places, span heads, std::int64_t width,
                      ops::element_type type);
std::size_t dense_bytes(std::int64_t batch, std::int64_t rows_of_it, span heads, std::int64_t width,
                        ops::element_type type);

// The elements that take the room of some float32 numbers.
inline std::int64_t elements_of(std::int64_t numbers, ops::element_type type) {
  return numbers * 4 / ops::element_bytes(type);
}
// A store may hold float32 numbers behind each row and head. without_numbers: the rows alone, with
// the strides of the whole store. numbers_at: the place behind a row, of a store made by
// without_numbers.
row_store without_numbers(const row_store& all, std::int64_t numbers);
inline char* numbers_at(const row_store& rows_alone, std::int64_t batch, std::int64_t position,
                        std::int64_t head) {
  return rows_alone.at(batch, position, head) +
         rows_alone.width * ops::element_bytes(rows_alone.type);
}

// Some rows and heads of every sequence of a batch.
struct rows_of_heads {
  std::int64_t batch;
  const rows& of;
  span heads{0, 0};
};

// Copies what both stores have, rounded where `to` is of 16 bits.
void copy_rows(const row_store& from, const row_store& to, const rows_of_heads& which,
               core::execution& turn);
// Adds float32 to float32.
void add_rows(const row_store& from, const row_store& to, const rows_of_heads& which,
              core::execution& turn);
// Sets rows at some positions, of all heads, to 0.
void clear(const row_store& to, span positions, std::int64_t batch, core::execution& turn);

}  // namespace velo::sched
