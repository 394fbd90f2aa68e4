// Sizes of a packed weight, its columns, and its update.
#include "ops/gemm/pack/packed_matrix.hpp"

#include <cassert>
#include <cstring>

#include "ops/gemm/pack/pack_panels.hpp"

namespace velo::ops {

packed_matrix::packed_matrix(std::int64_t k, std::int64_t n, element_type type,
                             const gemm_target& target)
    : k_(k), n_(n), type_(type), target_(target) {}

std::size_t packed_matrix::bytes() const {
  return packed_form(k_, n_, type_, target_).bytes();
}

int packed_matrix::panel() const {
  return packed_form(k_, n_, type_, target_).panel;
}

bool packed_matrix::serves(const gemm_target& target) const {
  const packed_form own(k_, n_, type_, target_), wanted(k_, n_, type_, target);
  return own.compute == wanted.compute && own.panel == wanted.panel && own.pass == wanted.pass;
}

packed_matrix packed_matrix::columns(std::int64_t first, std::int64_t count) const {
  const packed_form form(k_, n_, type_, target_);
  assert(first % form.panel == 0 && first + count <= n_);
  packed_matrix some = *this;
  some.n_ = count;
  some.words_ += form.padded_k() / form.per_word() * first;
  return some;
}

packed_matrix::column packed_matrix::at(std::int64_t n) const {
  const packed_form form(k_, n_, type_, target_);
  const std::int64_t q = n / form.panel;
  return {words_ + q * form.panel_words() + n % form.panel, form.width(q), form.per_word()};
}

float packed_matrix::column::operator[](std::int64_t k) const {
  const std::uint32_t word = words[k / per_word * stride];
  std::uint32_t bits = word;
  if (per_word == 2) bits = k % 2 == 0 ? word << 16 : word & 0xffff0000u;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void packed_matrix::update(const void* weight, std::int64_t ld, bool transposed,
                           const core::parallel& threads) {
  const packed_form form(k_, n_, type_, target_);
  pack_in_parallel(form, {weight, ld, transposed}, 0, form.panels(), words_, threads,
                   gemm_kernels_for(target_.isa));
}

}  // namespace velo::ops
