// Several products at once, of any shapes, in one parallel region: those of experts, the parts of a
// gradient.
//
// Small products by themselves leave threads idle at the end of each; here the tiles of all follow
// one another, and each thread takes a run of them of an even share of the work. Every tile packs
// the B it reads while it multiplies, unless that comes packed, so nothing waits between products.
// A that several tiles read is packed once, in a region before, while it fits into 64 MiB in all.
// Invariant: an element has the bits it has in a product alone (gemm.hpp), so the share a thread
// takes changes none. Cost: the sum of the products', and about a microsecond a product.
#pragma once

#include "core/host/arena.hpp"
#include "ops/gemm/gemm.hpp"

namespace velo::ops {

// Products of one element type, whose results do not overlap. Empty ones may be among them.
void gemm_groups(const gemm_problem* problems, std::int64_t count, const core::parallel& threads,
                 core::arena& scratch, const gemm_target& target);

}  // namespace velo::ops
