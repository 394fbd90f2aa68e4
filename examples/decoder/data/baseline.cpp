// deflate in one piece; only the length of its output is used.
#include "examples/decoder/data/baseline.hpp"

#include <zlib.h>

#include <cstddef>
#include <vector>

#include "examples/decoder/failure.hpp"

namespace decoder {
namespace {

Bytef* bytes_of(std::string_view text) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
}

}  // namespace

double zlib_bits_per_byte(std::string_view text, std::string_view primer) {
  constexpr std::size_t most = 32768;
  const auto bytes = static_cast<double>(text.size());
  if (primer.size() > most) primer.remove_prefix(primer.size() - most);
  z_stream z{};
  if (deflateInit(&z, Z_BEST_COMPRESSION) != Z_OK) fail("zlib: out of memory");
  if (!primer.empty()) deflateSetDictionary(&z, bytes_of(primer), static_cast<uInt>(primer.size()));

  std::vector<Bytef> thrown_away(65536);
  int flush = Z_NO_FLUSH;
  while (flush != Z_FINISH || z.avail_out == 0) {
    if (z.avail_in == 0) {
      const std::string_view piece = text.substr(0, std::size_t{1} << 30);  // avail_in has 32 bits
      z.next_in = bytes_of(piece);
      z.avail_in = static_cast<uInt>(piece.size());
      text.remove_prefix(piece.size());
      if (text.empty()) flush = Z_FINISH;
    }
    z.next_out = thrown_away.data();
    z.avail_out = static_cast<uInt>(thrown_away.size());
    deflate(&z, flush);
  }
  const double bits = 8.0 * static_cast<double>(z.total_out);
  deflateEnd(&z);
  return bits / bytes;
}

}  // namespace decoder
