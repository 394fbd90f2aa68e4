// sequence_all_to_all of other systems' shapes: 8 ranks, each ordered pair of dimensions as the one
// that is gathered and the one that is divided, even sizes and sizes that 8 does not divide, three
// and four dimensions. The pair's dimensions come first, as the operator has them. What arrives has
// the bits of what was sent.
#include <cstring>

#include "comm/ranks.hpp"

using namespace velo::testing;

namespace {

constexpr int ranks = 8;
using sizes = std::vector<std::int64_t>;

// The first X mod w of w ranks have one more: begins of all ranks, and the end.
sizes begins_of(std::int64_t size) {
  sizes all{0};
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    all.push_back(all.back() + size / ranks + (rank < size % ranks ? 1 : 0));
  return all;
}

// A sequence [rows, heads, ..] and its two cuts.
class exchanged {
 public:
  explicit exchanged(sizes shape)
      : shape_(std::move(shape)), rows_(begins_of(shape_[0])), heads_(begins_of(shape_[1])) {
    for (std::size_t i = 2; i < shape_.size(); ++i) inner_ *= shape_[i];
    for (std::int64_t i = 0; i < shape_[0] * shape_[1] * inner_; ++i)  // finite as fp16 and bf16
      whole_.push_back(static_cast<std::uint16_t>((i * 2654435761 >> 13) & 0x3bff));
    for (int rank = 0; rank < ranks; ++rank) {
      row_counts_.push_back(rows_[at(rank + 1)] - rows_[at(rank)]);
      head_bounds_.insert(head_bounds_.end(), {heads_[at(rank)], heads_[at(rank + 1)]});
    }
  }

  void check(const local_ranks& all, velo_dtype dtype, bool to_heads) const {
    std::vector<std::vector<std::uint16_t>> results(ranks);
    all.require([&](const rank_of_group& me) {
      const std::vector<std::uint16_t> x = part(me.rank, !to_heads);
      results[at(me.rank)].resize(part_size(me.rank, to_heads));
      return run(me, dtype, to_heads, x, results[at(me.rank)]);
    });
    for (int rank = 0; rank < ranks; ++rank)
      CHECK((results[at(rank)] == part(rank, to_heads)));  // too long to print
  }

 private:
  sizes part_shape(int rank, bool of_heads) const {
    sizes all = shape_;
    of_heads ? all[1] = heads_[at(rank + 1)] - heads_[at(rank)] : all[0] = row_counts_[at(rank)];
    return all;
  }
  std::size_t part_size(int rank, bool of_heads) const {
    const sizes shape = part_shape(rank, of_heads);
    return static_cast<std::size_t>(shape[0] * shape[1] * inner_);
  }
  std::vector<std::uint16_t> part(int rank, bool of_heads) const {
    std::vector<std::uint16_t> all;
    const std::int64_t first = of_heads ? 0 : rows_[at(rank)];
    const sizes shape = part_shape(rank, of_heads);
    for (std::int64_t row = first; row < first + shape[0]; ++row) {
      const auto begin =
          whole_.begin() + (row * shape_[1] + (of_heads ? heads_[at(rank)] : 0)) * inner_;
      all.insert(all.end(), begin, begin + shape[1] * inner_);
    }
    return all;
  }
  velo_status run(const rank_of_group& me, velo_dtype dtype, bool to_heads,
                  const std::vector<std::uint16_t>& x, std::vector<std::uint16_t>& y) const {
    const sizes from = part_shape(me.rank, !to_heads), to = part_shape(me.rank, to_heads);
    velo_tensor in = view_of(const_cast<std::uint16_t*>(x.data()), dtype, from[0]),
                out = view_of(y.data(), dtype, to[0]);
    in.ndim = out.ndim = static_cast<std::int32_t>(from.size());
    in.shape = from.data(), out.shape = to.data();
    const velo_ints rows{row_counts_.data(), ranks}, heads{head_bounds_.data(), 2 * ranks};
    velo_sequence_all_to_all_args args = VELO_SEQUENCE_ALL_TO_ALL_ARGS_INIT;
    args.group = me.group, args.x = &in, args.y = &out;
    args.to = to_heads ? VELO_SEQUENCE_CUT_HEADS : VELO_SEQUENCE_CUT_ROWS;
    if (shape_[0] % ranks != 0) args.rows = &rows;
    if (shape_[1] % ranks != 0) args.heads = &heads;
    return velo_sequence_all_to_all(me.stream, &args);
  }

  const sizes shape_, rows_, heads_;
  std::int64_t inner_ = 1;
  std::vector<std::uint16_t> whole_;
  sizes row_counts_, head_bounds_;
};

}  // namespace

TEST_CASE("shapes of other systems keep their bits, whichever dimensions change places") {
  const local_ranks all(ranks);
  for (const sizes& shape : {sizes{32, 64, 32}, {32, 64, 32, 32}, {29, 51, 57}, {29, 51, 65, 57}})
    for (std::size_t gathered = 0; gathered < shape.size(); ++gathered)
      for (std::size_t divided = 0; divided < shape.size(); ++divided) {
        if (gathered == divided) continue;
        sizes order{shape[gathered], shape[divided]};
        for (std::size_t i = 0; i < shape.size(); ++i)
          if (i != gathered && i != divided) order.push_back(shape[i]);
        INFO(shape.size() << " dimensions of " << shape[0] << ", " << gathered << " gathered, "
                          << divided << " divided");
        const exchanged one(order);
        for (const velo_dtype dtype : {f16, bf16})
          for (const bool to_heads : {true, false}) one.check(all, dtype, to_heads);
      }
}
