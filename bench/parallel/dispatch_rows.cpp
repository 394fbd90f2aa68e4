// Tokens to 16 experts on two ranks and back: velo_routing_set, velo_dispatcher_dispatch and
// velo_dispatcher_combine.
//
// They take turns with their composition: moe_token_permute, velo_group_all_to_all of the counts,
// velo_group_all_to_all_v of the rows, and moe_token_permute into the order of the experts; then
// the same backwards, with moe_token_unpermute. The composition gets the experts of the rows that
// arrive ready made. Experts return their rows as they are. Outputs are held against the
// composition's, bit for bit.
#include "bench/parallel/pair_rows.hpp"
#include "bench/parallel/routed_rows.hpp"

namespace velo::bench {
namespace {

struct row {
  dtype type;
  std::int64_t tokens;  // of each rank

  std::string text() const {
    return std::to_string(tokens) + "x" + std::to_string(routed_width) + ", " +
           std::to_string(routed_experts) + " experts";
  }
};

class dispatches {
 public:
  dispatches(const row& r, const rank_of& me) : me_(me), rows_(r.type, r.tokens, me) {}

  void call(int which) {
    if (which != ours)
      return rows_.compose([](const velo_tensor& rows, const velo_tensor&) { return rows; });
    rows_.set(me_.stream);
    rows_.dispatch(me_.stream);
    rows_.combine(me_.stream, rows_.arrived_rows());
    rows_.reset();
  }
  bool is_right() const { return rows_.is_right(); }

 private:
  const rank_of& me_;
  routed_rows rows_;
};

}  // namespace

bool measure_dispatches(const pair_options& set, board& all, const row_taker& take) {
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const std::int64_t tokens : {64, 2048}) {
      const row r{type, tokens};
      const pair_row of{"velo_dispatcher", type, r.text(), "composition"};
      if (!measure_pair<dispatches>(of, r, set, all, take)) return false;
    }
  return true;
}

}  // namespace velo::bench
