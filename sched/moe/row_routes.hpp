// The routes of a micro-batch: which rows of this rank's tokens go to which expert, and which rows
// of which rank this rank's experts get.
//
// read() takes this rank's choices, of which a capacity may then drop some; sort() orders the
// others by expert (stable, so by token and choice within one). When the counts of all ranks are
// there, complete() derives every place from them: own rows lie by expert, then rank; rows of a
// message lie by expert. Rows that fill an expert up to its capacity lie behind those of the last
// rank, or, where each rank has a capacity, behind its own. Invariant: all ranks have the same
// counts, so places agree without another message. Each rank numbers its routings, so that two of
// equal counts differ in their hashes. Cost: four passes over the choices, one over ranks x
// experts, and 32 bytes a choice; with map_choices() 4 bytes for each choice of all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/operation/operation.hpp"
#include "core/index.hpp"
#include "velo/dispatcher.h"

namespace velo::sched {

// The experts of a layer on the ranks of a group, and this rank.
struct expert_layout {
  int ranks, rank;
  std::int64_t experts;
  std::int64_t top_k;
  velo_dispatch_kind kind = VELO_DISPATCH_ALL_TO_ALL;

  std::int64_t each() const { return experts / ranks; }  // experts of a rank
  std::int64_t first(int of) const { return of * each(); }
  int owner(std::int64_t expert) const { return static_cast<int>(expert / each()); }
};

// The rows that one rank gives to one of this rank's experts, or rows of padding.
struct expert_run {
  static constexpr int padding = -1;

  std::int64_t row;       // the first, among this rank's rows
  std::int64_t received;  // the same, where rows lie by rank, then expert
  std::int64_t first;     // the first, among the sorted choices of the rank
  std::int64_t count;
  int from;  // the rank, or padding

  bool is_padding() const { return from == padding; }
};

// How experts are filled up with rows of zeros.
enum class padding { none, of_expert, of_rank };  // to one capacity, or to that of each rank

class host_routes;  // host_routes.hpp

class row_routes {
 public:
  // tokens: of this rank. serial: the number of this routing among those of the rank.
  row_routes(const expert_layout& of, std::int64_t tokens, padding fill, std::int64_t serial);

  // Throws ARGUMENT for a choice beyond the experts.
  void read(const std::int32_t* choices);
  bool is_read() const { return is_read_; }  // or that has failed
  const std::vector<std::int32_t>& choices() const { return choices_; }
  void drop(std::int32_t choice);  // by its number
  void set_capacity(std::int64_t rows) { own_[at_capacity()] = rows; }
  void sort();
  // With the counts of all ranks: an expert that has more rows from all of them together than the
  // capacity of some rank, as where a batch group lacks ranks. The same on all ranks.
  static constexpr std::int64_t no_expert = -1;
  std::int64_t expert_beyond_capacity() const;
  void complete();

  const expert_layout& layout() const { return layout_; }
  std::int64_t tokens() const { return tokens_; }
  // What ranks exchange: the rows that a rank gives to each expert; its tokens that have choices;
  // the capacity of an expert; the number of its routing; its tokens. all_counts: these of each
  // rank.
  std::int64_t numbers() const { return layout_.experts + 4; }
  const std::int64_t* own_counts() const { return own_.data(); }
  std::int64_t* all_counts() { return all_.data(); }
  // The sorted choices: entry i is that of number order()[i] (token x top_k + choice).
  const std::vector<std::int32_t>& order() const { return order_; }

  bool is_complete() const { return hash_ != 0; }

  // After complete():
  std::int64_t rows() const { return rows_; }  // of this rank's experts
  std::int64_t rows_of(std::int64_t own_expert) const;
  const std::vector<expert_run>& runs() const { return runs_; }  // by row, none empty
  std::uint64_t hash() const { return hash_; }                   // the same on all ranks
  // Entries of the order, and rows of this rank, for each rank.
  const comm::blocks& given() const { return given_; }
  const comm::blocks& received() const { return received_; }

  std::int64_t given_rows() const { return static_cast<std::int64_t>(order_.size()); }
  std::int64_t received_rows() const { return received_.back().begin + received_.back().count; }
  std::int64_t tokens_of(int rank) const { return all_[core::at((rank + 1) * numbers() - 1)]; }
  bool is_padded() const { return fill_ != padding::none; }

  // received: the order of each rank's choices of this rank's experts, as received() says. Then the
  // rows of a rank's choices, [tokens of the rank, top_k], are known.
  static constexpr std::int32_t no_row = -1;
  void map_choices(std::vector<std::int32_t> received);
  const std::vector<std::int32_t>& received_choices() const { return received_choices_; }
  bool maps_choices() const { return !rows_of_choices_.empty(); }
  const std::int32_t* rows_of_choices(int rank) const {
    return rows_of_choices_[core::at(rank)].data();
  }

  // The ways of tokens over hosts; nullptr: rows go from rank to rank.
  const host_routes* over_hosts() const { return over_hosts_.get(); }
  void set_over_hosts(std::shared_ptr<const host_routes> ways);

  // Lists of all choices that have rows, by token and choice; of_token() gives a part of them.
  // choices_before: the number of choices of the tokens before `token`. entries: the entry of each
  // choice in the order. rows_at: its row at the rank of its expert. ranks_at: that rank.
  std::int64_t choices_before(std::int64_t token) const { return starts_[core::at(token)]; }
  const std::int32_t* entries() const { return entries_.data(); }
  const std::int32_t* rows_at() const { return rows_at_.data(); }
  const std::int32_t* ranks_at() const { return ranks_at_.data(); }

  // The choices of a token that have rows: their numbers, the entries of the order, and the rows at
  // their experts' ranks.
  struct token_choices {
    std::int64_t before, count;  // before: choices of earlier tokens
    const std::int32_t* numbers;
    const std::int32_t* entries;
    const std::int32_t* rows;
    const std::int32_t* ranks;
  };
  token_choices of_token(std::int64_t token) const {
    const std::int64_t first = starts_[core::at(token)];
    return {first,
            starts_[core::at(token + 1)] - first,
            numbers_.data() + first,
            entries_.data() + first,
            rows_at_.data() + first,
            ranks_at_.data() + first};
  }

 private:
  std::size_t at_capacity() const { return core::at(layout_.experts + 1); }
  std::int64_t capacity_of(int rank) const {
    return all_[core::at(rank * numbers()) + at_capacity()];
  }
  std::int64_t count(int rank, std::int64_t expert) const {
    return all_[core::at(rank * numbers() + expert)];
  }
  std::int64_t padding_behind(int rank, std::int64_t expert, std::int64_t rows) const;
  void set_blocks();
  void set_runs();
  void set_rows_at();

  const expert_layout layout_;
  const std::int64_t tokens_;
  const padding fill_;
  std::vector<std::int64_t> own_, all_;
  std::vector<std::int32_t> choices_, order_, numbers_, entries_, rows_at_, ranks_at_;
  std::vector<std::int64_t> starts_;  // [tokens + 1], into the four lists above
  std::vector<expert_run> runs_;
  std::vector<std::int32_t> received_choices_;
  std::vector<std::vector<std::int32_t>> rows_of_choices_;  // by rank
  std::shared_ptr<const host_routes> over_hosts_;
  comm::blocks given_, received_;
  std::int64_t rows_ = 0;
  bool is_read_ = false;
  std::uint64_t hash_ = 0;
};

}  // namespace velo::sched
