// The sort of choices, and the places that follow from the counts of all ranks.
#include "sched/moe/row_routes.hpp"

#include <algorithm>
#include <utility>

#include "core/failure.hpp"
#include "core/index.hpp"

namespace velo::sched {

using core::at;
using core::fail;

namespace {

constexpr std::int64_t most_rows = std::int64_t{1} << 31;

// The beginnings of consecutive parts, and the end of the last.
std::vector<std::int64_t> begins_of(const std::int64_t* counts, std::int64_t parts) {
  std::vector<std::int64_t> begins{0};
  begins.reserve(at(parts + 1));
  for (std::int64_t i = 0; i < parts; ++i) begins.push_back(begins.back() + counts[i]);
  return begins;
}

}  // namespace

row_routes::row_routes(const expert_layout& of, std::int64_t tokens, padding fill,
                       std::int64_t serial)
    : layout_(of),
      tokens_(tokens),
      fill_(fill),
      own_(at(numbers())),
      all_(at(of.ranks * numbers())),
      starts_(at(tokens + 1)) {
  own_[at_capacity() + 1] = serial, own_.back() = tokens;
  const std::size_t choices = at(tokens * of.top_k);
  choices_.reserve(choices);
  order_.reserve(choices), numbers_.reserve(choices), entries_.reserve(choices);
  rows_at_.reserve(choices), ranks_at_.reserve(choices);
  runs_.reserve(at(of.experts));
}

void row_routes::read(const std::int32_t* choices) {
  is_read_ = true;
  for (std::int64_t t = 0; t < tokens_; ++t) {
    std::int64_t taken = 0;
    for (std::int64_t j = 0; j < layout_.top_k; ++j) {
      const std::int32_t expert = choices[t * layout_.top_k + j];
      if (expert >= layout_.experts)
        fail(VELO_ERR_ARGUMENT, core::concat("choices[", t, "][", j, "]"),
             core::concat("an expert below ", layout_.experts, ", or a negative number"),
             core::number(expert));
      choices_.push_back(expert);
      if (expert >= 0) ++own_[at(expert)], ++taken;
    }
    if (taken > 0) ++own_[at(layout_.experts)];
  }
}

void row_routes::drop(std::int32_t choice) {
  std::int32_t& expert = choices_[at(choice)];
  --own_[at(expert)];
  expert = -1 - expert;
}

void row_routes::sort() {
  std::vector<std::int64_t> next = begins_of(own_.data(), layout_.experts);
  order_.resize(at(next.back()));
  for (std::int64_t t = 0; t < tokens_; ++t) {
    for (std::int64_t i = t * layout_.top_k; i < (t + 1) * layout_.top_k; ++i) {
      const std::int32_t expert = choices_[at(i)];
      if (expert < 0) continue;
      const std::int64_t entry = next[at(expert)]++;
      order_[at(entry)] = static_cast<std::int32_t>(i);
      numbers_.push_back(static_cast<std::int32_t>(i));
      entries_.push_back(static_cast<std::int32_t>(entry));
    }
    starts_[at(t + 1)] = static_cast<std::int64_t>(numbers_.size());
  }
}

std::int64_t row_routes::expert_beyond_capacity() const {
  std::int64_t capacity = capacity_of(0);
  for (int rank = 1; rank < layout_.ranks; ++rank) capacity = std::min(capacity, capacity_of(rank));
  for (std::int64_t e = 0; e < layout_.experts; ++e) {
    std::int64_t rows = 0;
    for (int rank = 0; rank < layout_.ranks; ++rank) rows += count(rank, e);
    if (rows > capacity) return e;
  }
  return no_expert;
}

void row_routes::complete() {
  set_blocks();
  set_runs();
  set_rows_at();
  std::uint64_t hash = 0;
  for (const std::int64_t count : all_)
    hash = comm::mixed(hash + static_cast<std::uint64_t>(count) + 1);
  hash_ = hash | 1;
}

// Rows of zeros behind those of `rank`; rows: those of the expert so far.
std::int64_t row_routes::padding_behind(int rank, std::int64_t expert, std::int64_t rows) const {
  const std::int64_t capacity = capacity_of(rank);
  if (fill_ == padding::of_rank) return capacity - count(rank, expert);
  return fill_ == padding::of_expert && rank + 1 == layout_.ranks ? capacity - rows : 0;
}

void row_routes::set_blocks() {
  std::int64_t given = 0, received = 0;
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    std::int64_t to = 0, from = 0;
    for (std::int64_t e = 0; e < layout_.each(); ++e) {
      to += own_[at(layout_.first(rank) + e)];
      from += count(rank, layout_.first(layout_.rank) + e);
    }
    given_.push_back({given, to});
    received_.push_back({received, from});
    given += to, received += from;
  }
}

void row_routes::set_runs() {
  std::vector<std::int64_t> first, received;  // by rank: its next entry, and the next received row
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    first.push_back(0);
    for (std::int64_t e = 0; e < layout_.first(layout_.rank); ++e) first.back() += count(rank, e);
    received.push_back(received_[at(rank)].begin);
  }
  for (std::int64_t e = layout_.first(layout_.rank); e < layout_.first(layout_.rank + 1); ++e) {
    const std::int64_t begin = rows_;
    for (int rank = 0; rank < layout_.ranks; ++rank) {
      const std::int64_t rows = count(rank, e);
      if (rows > 0) runs_.push_back({rows_, received[at(rank)], first[at(rank)], rows, rank});
      rows_ += rows, first[at(rank)] += rows, received[at(rank)] += rows;
      const std::int64_t zeros = padding_behind(rank, e, rows_ - begin);
      if (zeros > 0) runs_.push_back({rows_, 0, 0, zeros, expert_run::padding});
      rows_ += zeros;
    }
  }
  if (rows_ >= most_rows)
    fail(VELO_ERR_ARGUMENT, "choices", "fewer than 2^31 rows for the experts of a rank",
         core::number(rows_));
}

// A row of this rank lies behind those of the experts before, and of the ranks before.
void row_routes::set_rows_at() {
  std::vector<std::int64_t> row_of_first(at(layout_.experts));
  for (int owner = 0; owner < layout_.ranks; ++owner) {
    std::int64_t row = 0;
    for (std::int64_t e = layout_.first(owner); e < layout_.first(owner + 1); ++e) {
      const std::int64_t begin = row;
      for (int rank = 0; rank < layout_.ranks; ++rank) {
        if (rank == layout_.rank) row_of_first[at(e)] = row;
        row += count(rank, e);
        row += padding_behind(rank, e, row - begin);
      }
    }
  }
  const std::vector<std::int64_t> begins = begins_of(own_.data(), layout_.experts);
  std::vector<std::int32_t> row(order_.size()), rank(order_.size());
  for (std::int64_t e = 0; e < layout_.experts; ++e)
    for (std::int64_t i = begins[at(e)]; i < begins[at(e + 1)]; ++i) {
      row[at(i)] = static_cast<std::int32_t>(row_of_first[at(e)] + i - begins[at(e)]);
      rank[at(i)] = layout_.owner(e);
    }
  for (const std::int32_t entry : entries_) {
    rows_at_.push_back(row[at(entry)]);
    ranks_at_.push_back(rank[at(entry)]);
  }
}

void row_routes::map_choices(std::vector<std::int32_t> received) {
  received_choices_ = std::move(received);
  for (int rank = 0; rank < layout_.ranks; ++rank)
    rows_of_choices_.emplace_back(at(tokens_of(rank) * layout_.top_k), no_row);
  for (const expert_run& run : runs_) {
    if (run.is_padding()) continue;
    std::vector<std::int32_t>& rows = rows_of_choices_[at(run.from)];
    for (std::int64_t i = 0; i < run.count; ++i)
      rows[at(received_choices_[at(run.received + i)])] = static_cast<std::int32_t>(run.row + i);
  }
}

void row_routes::set_over_hosts(std::shared_ptr<const host_routes> ways) {
  over_hosts_ = std::move(ways);
}

std::int64_t row_routes::rows_of(std::int64_t own_expert) const {
  const std::int64_t expert = layout_.first(layout_.rank) + own_expert;
  std::int64_t rows = 0;
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    rows += count(rank, expert);
    rows += padding_behind(rank, expert, rows);
  }
  return rows;
}

}  // namespace velo::sched
