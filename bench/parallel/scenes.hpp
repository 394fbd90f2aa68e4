// The rows that bench_parallel measures beside exchanges: attention, losses, embeddings, linear
// layers, norms, tokens of experts and layers of experts over two ranks.
#pragma once

#include <functional>

#include "bench/comm/two_ranks.hpp"

namespace velo::bench {

// Takes a row, of so many rounds.
using row_taker = std::function<void(const result&, int rounds)>;

// Attention of a causal sequence that two ranks share. false: a result was wrong, which is printed.
bool measure_attention(const pair_options& set, board& all, const row_taker& take);
// The loss of classes that are cut between two ranks; the same.
bool measure_losses(const pair_options& set, board& all, const row_taker& take);
// Linear layers that are cut between two ranks; the same.
bool measure_linears(const pair_options& set, board& all, const row_taker& take);
// A pair of such layers with packs of their weights; the same.
bool measure_packed_pairs(const pair_options& set, board& all, const row_taker& take);
// Rows of a table that is cut between two ranks; the same.
bool measure_embeddings(const pair_options& set, board& all, const row_taker& take);
// Norms of a hidden dimension that is cut between two ranks; the same.
bool measure_norms(const pair_options& set, board& all, const row_taker& take);
// Tokens to experts on two ranks and back; the same.
bool measure_dispatches(const pair_options& set, board& all, const row_taker& take);

// A layer of experts on two ranks, whose messages travel meanwhile; the same.
bool measure_expert_layers(const pair_options& set, board& all, const row_taker& take);

}  // namespace velo::bench
