// The layouts that tests of shared models go through. Each says how it changes shared_model.hpp's
// small model.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/examples/decoder/parallel/shared_model.hpp"

// A layout by its settings.
struct layout {
  const char* name;
  std::int64_t ranks;
  std::function<void(settings&)> set;
};

inline const std::vector<layout>& layouts() {
  static const std::vector<layout> all = {
      {"tp 2, pp 2, cp 2", 8,
       [](settings& s) { s.parallel.tp = s.parallel.pp = s.parallel.cp = 2; }},
      {"tp 2 with rows cut, heads and inner uneven", 2,
       [](settings& s) { s.parallel.tp = 2, s.parallel.sequence_parallel = true; }},
      {"tp 3, two copies", 6, [](settings& s) { s.parallel.tp = 3; }},
      {"tp 3 with rows cut, uneven rows", 3,
       [](settings& s) { s.parallel.tp = 3, s.parallel.sequence_parallel = true; }},
      {"hybrid of 4, ulysses 2, in two copies that share the optimizer", 8,
       [](settings& s) {
         s.parallel.cp = 4, s.parallel.cp_ulysses = 2, s.parallel.cp_algorithm = "hybrid";
         s.run.zero = true;
       }},
      {"tp 2 with rows cut, cp 2 by ulysses, two copies that share the optimizer", 8,
       [](settings& s) {
         s.parallel.tp = s.parallel.cp = 2, s.parallel.cp_algorithm = "ulysses";
         s.parallel.sequence_parallel = true;
         s.model.heads = s.model.kv_heads = 6;
         s.run.zero = true;
       }},
      {"tp 4, two ranks to a head of keys, rows cut", 4,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 2;
         s.parallel.tp = 4, s.parallel.sequence_parallel = true;
       }},
      {"tp 4, one head of keys, two copies that share the optimizer", 8,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 1;
         s.parallel.tp = 4;
         s.run.zero = true;
       }},
      {"tp 4, two ranks to a head of keys, two stages by zbh1", 8,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 2;
         s.parallel.tp = 4, s.parallel.pp = 2, s.parallel.pipeline = "zbh1";
       }},
      {"tp 4, two ranks to a head of keys, cp 2 by ulysses, all recomputed", 8,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 2;
         s.parallel.tp = 4, s.parallel.cp = 2, s.parallel.cp_algorithm = "ulysses";
         s.memory.recompute = "full";
       }},
      {"shared keys, tp 4 by 2, two ranks to a head of keys", 8,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 2, s.model.kv_share = 2;
         s.parallel.tp = 8, s.parallel.tp_x = 4;
       }},
      {"tp 2 by 1", 2, [](settings& s) { s.parallel.tp = s.parallel.tp_x = 2; }},
      {"tp 1 by 5, hidden and rows uneven", 5,
       [](settings& s) { s.parallel.tp = 5, s.parallel.tp_x = 1; }},
      {"tp 2 by 2, heads and inner uneven, two copies that share the optimizer", 8,
       [](settings& s) {
         s.parallel.tp = 4, s.parallel.tp_x = 2;
         s.run.zero = true;
       }},
      {"tp 2 by 2, pp 2", 8,
       [](settings& s) { s.parallel.tp = 4, s.parallel.tp_x = s.parallel.pp = 2; }},
      {"tp 2 by 1, cp 2", 4,
       [](settings& s) { s.parallel.tp = s.parallel.tp_x = s.parallel.cp = 2; }},
      {"tp 2 by 2, cp 2 by hybrid that keeps keys and values", 8,
       [](settings& s) {
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.cp = 2;
         s.parallel.cp_algorithm = "hybrid", s.parallel.cp_ulysses = 2;
         s.parallel.cp_kv_cache = "full", s.parallel.cp_kv_interval = 1;
         s.model.heads = s.model.kv_heads = 6;
       }},
      {"tied, tp 3 by 2, all recomputed", 6,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.tp = 6, s.parallel.tp_x = 3;
         s.memory.recompute = "full";
       }},
      {"tied over 2 stages, tp 2 by 2", 8,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.pp = 2;
       }},
      {"shared keys, tp 2 by 2, cp 2, all recomputed", 8,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.cp = 2;
         s.memory.recompute = "full";
       }},
      {"documents, tp 2 by 2, two stages by dualpipev", 8,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.pp = 2;
         s.parallel.pipeline = "dualpipev";
       }},
      {"tied, tp 2 with rows cut, cp 3", 6,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.tp = 2, s.parallel.cp = 3, s.parallel.sequence_parallel = true;
       }},
      {"dualpipev of 2, tp 2 with rows cut, two copies", 8,
       [](settings& s) {
         s.parallel.tp = s.parallel.pp = 2, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "dualpipev";
       }},
      {"dualpipe of 2, tp 2, cp 2 by all_gather", 8,
       [](settings& s) {
         s.parallel.tp = s.parallel.pp = s.parallel.cp = 2;
         s.parallel.pipeline = "dualpipe", s.parallel.cp_algorithm = "all_gather";
       }},
      {"tied over 2 stages by 1f1b, cp 2, two copies that share the optimizer", 8,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = s.parallel.cp = 2;
         s.run.zero = true;
       }},
      {"tied over 4 stages on 2 ranks by zbv, tp 3 with rows cut", 6,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = 2, s.parallel.tp = 3, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "zbv";
       }},
      {"tied over 2 stages by dualpipe", 2,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = 2, s.parallel.pipeline = "dualpipe";
       }},
      {"stages of 1 and 3 layers by 1f1b, tp 2", 4,
       [](settings& s) { s.parallel.pp = s.parallel.tp = 2, s.parallel.noop_layers = "2,0,0"; }},
      {"double ring of 4 that keeps keys and values, pp 2 by zbh1", 8,
       [](settings& s) {
         s.parallel.cp = 4, s.parallel.cp_window = 2, s.parallel.cp_kv_cache = "full";
         s.parallel.pp = 2, s.parallel.pipeline = "zbh1";
       }},
      {"tp 3 that share saved inputs, uneven rows, cp 2", 6,
       [](settings& s) {
         s.parallel.tp = 3, s.parallel.cp = 2;
         s.memory.recompute = "uniform", s.memory.recompute_layers = 2;
         s.memory.distribute_saved = true;
       }},
      {"ring of 3 that keeps keys and values of every third layer", 3,
       [](settings& s) {
         s.parallel.cp = 3, s.parallel.cp_kv_cache = "full", s.parallel.cp_kv_interval = 2;
       }},
      {"seq1f1b of 2, windows in 3 uneven splits, tp 3", 6,
       [](settings& s) {
         s.parallel.pp = 2, s.parallel.tp = 3;
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
       }},
      {"seq1f1b of 4, 2 splits, tp 2 with rows cut", 8,
       [](settings& s) {
         s.parallel.pp = 4, s.parallel.tp = 2, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 2;
       }},
      {"tied over stages of 1 and 3 layers by seq1f1b, two copies that share the optimizer", 4,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = 2, s.parallel.noop_layers = "0,2";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 7;
         s.run.zero = true;
       }},
      {"seq1f1b of 2, 3 uneven splits, cp 2 by all_gather", 4,
       [](settings& s) {
         s.parallel.pp = s.parallel.cp = 2, s.parallel.cp_algorithm = "all_gather";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
       }},
      {"seq1f1b of 2, 3 uneven splits, cp 2 by ulysses that cuts the queries of a head of keys", 4,
       [](settings& s) {
         s.parallel.pp = s.parallel.cp = 2, s.parallel.cp_algorithm = "ulysses";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
       }},
      {"seq1f1b of 2, 4 splits, tp 2 with rows cut, cp 2 by all_gather, all recomputed", 8,
       [](settings& s) {
         s.parallel.tp = s.parallel.pp = s.parallel.cp = 2, s.parallel.sequence_parallel = true;
         s.parallel.cp_algorithm = "all_gather";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 4;
         s.memory.recompute = "full";
       }},
      {"seq1f1b of 2, 2 splits, tp 2, cp 2 by ulysses, tied", 8,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.tp = s.parallel.pp = s.parallel.cp = 2, s.parallel.cp_algorithm = "ulysses";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 2;
       }},
      {"seq1f1b of 2, 16 splits of 3 rows and 4, cp 3 by all_gather", 6,
       [](settings& s) {
         s.parallel.pp = 2, s.parallel.cp = 3, s.parallel.cp_algorithm = "all_gather";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 16;
       }},
      {"seq1f1b of 2, 3 splits, tp 2 by 2, all_gather over y", 8,
       [](settings& s) {
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.pp = 2;
         s.parallel.cp_algorithm = "all_gather";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
       }},
      {"documents, seq1f1b of 2, 5 splits, tp 2 by 1, cp 2, ulysses over both", 8,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.tp = s.parallel.pp = s.parallel.cp = 2, s.parallel.tp_x = 1;
         s.parallel.cp_algorithm = "ulysses";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 5;
       }},
      {"shared keys, documents, seq1f1b of 2, 3 splits, cp 2 by all_gather, two copies", 8,
       [](settings& s) {
         s.model.kv_share = 3, s.parallel.noop_layers = "4,5";
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.pp = s.parallel.cp = 2, s.parallel.cp_algorithm = "all_gather";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
       }},
      {"shared keys, seq1f1b of 2, 7 splits, cp 4 by ulysses that recomputes groups of 2", 8,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.pp = 2, s.parallel.cp = 4, s.parallel.cp_algorithm = "ulysses";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 7;
         s.memory.recompute = "uniform", s.memory.recompute_layers = 2;
       }},
      {"documents, tp 2, pp 2, cp 2", 8,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.tp = s.parallel.pp = s.parallel.cp = 2;
       }},
      {"documents, seq1f1b of 2, 7 splits, tp 2 with rows cut", 4,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.pp = s.parallel.tp = 2, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 7;
       }},
      {"shared keys, documents, seq1f1b of 2, 3 splits, two copies", 4,
       [](settings& s) {
         s.model.kv_share = 3, s.parallel.noop_layers = "4,5";
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.pp = 2;
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
       }},
      {"documents, cp 3 by all_gather, two copies that share the optimizer", 6,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.cp = 3, s.parallel.cp_algorithm = "all_gather";
         s.run.zero = true;
       }},
      {"documents, tp 2 with rows cut, cp 2 that keeps keys, two stages by dualpipe", 8,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.tp = s.parallel.cp = s.parallel.pp = 2, s.parallel.sequence_parallel = true;
         s.parallel.cp_kv_cache = "half", s.parallel.pipeline = "dualpipe";
         s.parallel.cp_kv_interval = 1;
       }},
      {"cp 2 by ulysses that keeps its own keys and values in every second layer, two stages", 4,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 1;
         s.parallel.cp = s.parallel.pp = 2, s.parallel.cp_algorithm = "ulysses";
         s.parallel.cp_kv_cache = "full", s.parallel.cp_kv_interval = 1;
       }},
      {"cp 3 by ulysses that gathers all heads of keys, two copies that share the optimizer", 6,
       [](settings& s) {
         s.parallel.cp = 3, s.parallel.cp_algorithm = "ulysses", s.parallel.cp_kv_gather = true;
         s.run.zero = true;
       }},
      {"hybrid of 4, ulysses 2, that gathers all heads of keys and keeps keys, tp 2", 8,
       [](settings& s) {
         s.parallel.cp = 4, s.parallel.cp_algorithm = "hybrid", s.parallel.cp_ulysses = 2;
         s.parallel.cp_kv_gather = true, s.parallel.cp_kv_cache = "half", s.parallel.tp = 2;
       }},
      {"shared keys, tp 3 with rows cut, cp 2 by ring", 6,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.tp = 3, s.parallel.cp = 2, s.parallel.sequence_parallel = true;
       }},
      {"shared keys, cp 2 by ulysses, two stages by dualpipev, two copies that share the optimizer",
       8,
       [](settings& s) {
         s.model.kv_share = 2, s.model.layers = 8;
         s.parallel.cp = s.parallel.pp = 2, s.parallel.cp_algorithm = "ulysses";
         s.parallel.pipeline = "dualpipev";
         s.run.zero = true;
       }},
      {"shared keys, hybrid of 4, ulysses 2, that recomputes groups of 3", 4,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.cp = 4, s.parallel.cp_ulysses = 2, s.parallel.cp_algorithm = "hybrid";
         s.memory.recompute = "uniform", s.memory.recompute_layers = 3;
       }},
      {"shared keys, cp 4 that keeps keys and values and recomputes core attention", 4,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.cp = 4, s.parallel.cp_kv_cache = "full";
         s.memory.recompute = "selective";
       }},
      {"shared keys, ring of 4 in windows, half a cache, two stages, swapped", 8,
       [](settings& s) {
         s.model.kv_share = 2, s.model.layers = 8;
         s.parallel.cp = 4, s.parallel.cp_window = 2, s.parallel.cp_kv_cache = "half";
         s.parallel.pp = 2, s.parallel.cp_kv_interval = 2;
         s.memory.swap_activations = "host";
       }},
      {"shared keys, cp 3 by all_gather, tp 2 that share saved inputs", 6,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.cp = 3, s.parallel.cp_algorithm = "all_gather";
         s.parallel.tp = 2, s.memory.distribute_saved = true;
         s.memory.recompute = "uniform", s.memory.recompute_layers = 3;
       }},
      {"shared keys, adaptive of 4, two stages by zbh1", 8,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.cp = 4, s.parallel.cp_algorithm = "adaptive";
         s.parallel.pp = 2, s.parallel.pipeline = "zbh1";
         s.memory.recompute = "full";
       }},
      {"shared keys, two stages by seq1f1b that recompute groups of 2, tp 2 with rows cut", 4,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.tp = s.parallel.pp = 2, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 4;
         s.memory.recompute = "uniform", s.memory.recompute_layers = 2;
       }},
      {"shared keys, documents, cp 2 that keeps keys, two copies", 4,
       [](settings& s) {
         s.model.kv_share = 3;
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.cp = 2, s.parallel.cp_kv_cache = "full", s.parallel.cp_kv_interval = 1;
       }},
      {"shared keys, documents, tp 2, two stages of 3 and 1 layers by dualpipe", 4,
       [](settings& s) {
         s.model.kv_share = 3;
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.tp = s.parallel.pp = 2, s.parallel.noop_layers = "4,5";
         s.parallel.pipeline = "dualpipe";
       }},
      {"stages of 0, 1, 1, 3, 1, 1, 1 and 0 layers on 4 ranks by interleaved, tp 2", 8,
       [](settings& s) {
         s.model.layers = 8;
         s.parallel.tp = 2, s.parallel.pp = 4;
         s.parallel.pipeline = "interleaved", s.parallel.vpp = 2;
         s.parallel.stage_layers = "[[0,1],[1,1],[1,1],[3,0]]";
       }},
      {"stages of the embedding, of 4 layers, of nothing and of the head by zbh1, rows cut", 8,
       [](settings& s) {
         s.parallel.tp = 2, s.parallel.pp = 4, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "zbh1", s.parallel.stage_layers = "0,4,0,0";
       }},
      {"tied, 2 ranks by zbv with the embedding alone in one stage, two copies that share", 4,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = 2, s.parallel.pipeline = "zbv", s.parallel.stage_layers = "0,0,3,1";
         s.run.zero = true;
       }},
      {"tied over ends without a layer, a rank of nothing, two copies that share", 8,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = 4, s.parallel.stage_layers = "0,0,4,0";
         s.run.zero = true;
       }},
      {"seq1f1b of stages of 2, 0, 2 and 0 layers, cp 2 by ulysses", 8,
       [](settings& s) {
         s.parallel.pp = 4, s.parallel.cp = 2, s.parallel.cp_algorithm = "ulysses";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
         s.parallel.stage_layers = "2,0,2,0";
       }},
      {"dualpipev of stages of 0, 4, 0 and 0 layers, tp 2 by 2, cp 2", 16,
       [](settings& s) {
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.pp = s.parallel.cp = 2;
         s.parallel.pipeline = "dualpipev", s.parallel.stage_layers = "[[0,0],[4,0]]";
       }},
      {"shared keys, stages of 2, 0 and 2 layers between places without one, all recomputed", 6,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.pp = 3, s.parallel.tp = 2;
         s.parallel.stage_layers = "3,1,3", s.parallel.noop_layers = "5,3,0";
         s.memory.recompute = "full", s.memory.distribute_saved = true;
       }},
      {"dualpipe of stages of 4 and 0 layers that wait elsewhere, tp 2", 4,
       [](settings& s) {
         s.parallel.pp = s.parallel.tp = 2;
         s.parallel.pipeline = "dualpipe", s.parallel.stage_layers = "4,0";
         s.memory.swap_activations = "host";
       }},
  };
  return all;
}
