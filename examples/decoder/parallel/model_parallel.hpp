// How the ranks of a copy of the model share its layers: tensor ranks the matrices, context ranks
// the rows of each window.
//
// Each tensor rank has a part of every matrix. It computes all rows of a product with its part: a
// matrix cut along its outputs needs the rows of all ranks, and the products of a matrix cut along
// its inputs are summed over them. Between two such products the rows of the residual stream are
// whole on each rank, or with sequence parallelism cut between the ranks. Context ranks have the
// rows that a velo::sequence_plan gives them, or where windows are split a part of each split
// (shared_splits.hpp); attention alone sees those of others. A rank that shares nothing sends
// nothing. In two dimensions (hidden_parallel.hpp) the tensor ranks here are those along x, and the
// ranks that share attention are both context ranks and ranks along y.
#pragma once

#include <array>
#include <memory>
#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/data/window_writer.hpp"
#include "examples/decoder/parallel/expert_parallel.hpp"
#include "examples/decoder/parallel/hidden_parallel.hpp"
#include "examples/decoder/parallel/shared_splits.hpp"
#include "examples/decoder/ranks/member.hpp"
#include "examples/decoder/weights/layout.hpp"

namespace decoder {

class tensor_parallel {
 public:
  tensor_parallel() = default;  // one rank
  // `of` must outlive the object. shares_saved: saved_rows.hpp.
  tensor_parallel(const member::part& of, bool cuts_rows, bool shares_saved);

  bool is_alone() const { return of_ == nullptr; }
  int ranks() const { return of_ == nullptr ? 1 : of_->ranks; }
  bool leads() const { return of_ == nullptr || of_->rank == 0; }
  bool cuts_rows() const { return cuts_rows_; }  // sequence parallelism
  bool shares_saved() const { return shares_saved_; }
  velo_group group() const { return of_ == nullptr ? nullptr : velo_group(of_->group); }

  // This rank's part of so many rows.
  range part(std::int64_t all) const;
  // The rows of the residual stream that this rank has of so many.
  std::int64_t rows(std::int64_t all) const { return cuts_rows_ ? part(all).count : all; }
  // The rows that each rank has of so many; the list lives until the next call of this object.
  velo_ints row_counts(std::int64_t all) const;

  // `all` receives the parts of all ranks, in their order.
  void gather(const velo::stream_ref& stream, const velo::tensor_view& own,
              const velo::tensor_view& all) const;
  // Sums products over the ranks: in place, or with sequence parallelism this rank's rows of the
  // sum into `own`.
  void sum(const velo::stream_ref& stream, const velo::tensor_view& products,
           const velo::tensor_view& own) const;
  // Sums gradients of norms, in place, of which each rank has a part with sequence parallelism.
  void sum_gradients(const velo::stream_ref& stream, const velo::tensor_view& x) const;
  // Sums gradients of routers, in place, of which each rank has a part.
  void sum_parts(const velo::stream_ref& stream, const velo::tensor_view& x) const;

 private:
  const std::int64_t* counts(const velo::tensor_view& all) const;

  const member::part* of_ = nullptr;
  bool cuts_rows_ = false, shares_saved_ = false;
  mutable std::vector<std::int64_t> counts_;  // elements or rows of each rank, of the last call
};

// The keys and values of a layer in the plan of its attention.
struct layer_keys {
  bool cached = true;  // as the settings say; with kv_share the cache is that of their owner
  velo_sequence_keys whose = VELO_SEQUENCE_KEYS_OWN;
};

// The plan that the settings ask for, of attention with these heads: over a window, or over the
// documents with these ends; of a layer with these keys. Throws velo::error where there is none.
velo::sequence_plan make_sequence_plan(const settings& values, const part_widths& widths,
                                       const std::vector<std::int64_t>* documents = nullptr,
                                       layer_keys keys = {});

// The rows of a sequence that a context rank holds.
held_rows sequence_rows(const velo::sequence_plan& plan, std::int64_t sequence, std::int64_t rank);

// A context rank's share of a sequence. One that is alone holds it whole, and has no plan.
struct sequence_share {
  // The numbers that attention saves of a share: statistics [heads, queries] of the queries that
  // this rank computes, and elements of other ranks' keys and values.
  struct saved {
    std::int64_t heads, queries, kept;
  };
  struct attention {
    velo::sequence_plan plan;
    saved saves = {};
  };

  held_rows rows;  // in attention
  // A plan for each kind of layer that the model has, by the keys of the layer.
  std::array<attention, 6> plans = {};

  std::vector<held_rows> along_y = {};  // the rows of each rank along y; empty: there is one

  // The rows of all of its tensor ranks.
  std::int64_t all_rows() const;
  attention& of(layer_keys keys) { return plans[place(keys)]; }
  const attention& of(layer_keys keys) const { return plans[place(keys)]; }

 private:
  static std::size_t place(layer_keys keys) {
    return static_cast<std::size_t>((keys.cached ? 3 : 0) + keys.whose);
  }
};

class context_parallel {
 public:
  explicit context_parallel(std::int64_t window)  // one rank
      : window_{held_rows(window), {}, {}} {}
  // `rank` and `values` must outlive the object.
  context_parallel(const member& rank, const settings& values, const part_widths& widths);

  bool is_alone() const { return of_ == nullptr; }
  // Whether attention follows the plan of a share; that of splits does not (split_tensors.hpp).
  bool has_plan() const { return !is_alone() && splits_.empty(); }
  // Context ranks alone, over which gradients are averaged.
  int ranks() const { return is_alone() ? 1 : static_cast<int>(values_->parallel.cp); }
  const velo::group& group() const { return of_->group; }  // in attention
  int rank() const { return is_alone() ? 0 : of_->rank; }  // in attention
  layer_keys keys_of(std::size_t layer) const;

  // The share of each window. Where there are documents it is a whole window, since a rank may have
  // so many rows. Where there are splits it has the rows of all, split by split.
  const sequence_share& of_window() const { return window_; }
  const std::vector<sequence_split>& splits() const { return splits_; }  // empty: there are none
  const head_cuts& heads() const { return heads_; }                      // in splits
  // The share of a micro-batch of documents with these ends.
  sequence_share of_documents(const std::vector<std::int64_t>& ends) const;

 private:
  sequence_share share(std::int64_t sequence, const std::vector<std::int64_t>* documents) const;
  sequence_share share_of_splits() const;
  void add_plan(sequence_share& to, const std::vector<std::int64_t>* documents,
                layer_keys keys) const;

  const member* rank_ = nullptr;
  const member::part* of_ = nullptr;
  const settings* values_ = nullptr;
  part_widths widths_ = {};
  sequence_share window_;
  std::vector<sequence_split> splits_;
  head_cuts heads_;
};

class layer_overlap;

struct model_parallel {
  explicit model_parallel(std::int64_t window) : context(window) {}  // a rank with a whole model
  model_parallel(const member& rank, const settings& values, const part_widths& widths);

  tensor_parallel tensor;
  hidden_parallel hidden;
  context_parallel context;
  expert_parallel experts;
  // The ranks with the same heads of keys and values, each of which has a part of the sum that is
  // the gradient of their projections; nullptr: this rank alone.
  const velo::group* key_ranks = nullptr;
  const velo::group* tied_ends = nullptr;  // the stages whose gradients of an embedding are summed
  // Runs passes whose messages to experts overlap; nullptr: none does.
  std::shared_ptr<layer_overlap> overlap;
};

}  // namespace decoder
