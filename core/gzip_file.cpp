// zlib's fastest level: a training waits for the file.
#define ZLIB_CONST  // zlib does not write its inputs
#include "core/gzip_file.hpp"

#include <algorithm>
#include <new>

namespace velo::core {
namespace {
constexpr int gzip_format = 15 + 16;  // history of 32 KiB, and gzip's header instead of zlib's
constexpr std::size_t piece = 1 << 30;
}  // namespace

gzip_file::gzip_file(const char* path) : file_(path, "check.capsules") {
  if (deflateInit2(&z_, Z_BEST_SPEED, Z_DEFLATED, gzip_format, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
}

gzip_file::~gzip_file() {
  deflateEnd(&z_);
}

void gzip_file::deflate_all(int flush) {
  do {
    z_.next_out = packed_;
    z_.avail_out = sizeof packed_;
    deflate(&z_, flush);
    file_.write(reinterpret_cast<const char*>(packed_), sizeof packed_ - z_.avail_out);
  } while (z_.avail_out == 0);
}

void gzip_file::write(const char* bytes, std::size_t count) {
  while (count > 0) {
    const std::size_t part = std::min(count, piece);
    z_.next_in = reinterpret_cast<const Bytef*>(bytes);
    z_.avail_in = static_cast<uInt>(part);
    deflate_all(Z_NO_FLUSH);
    bytes += part;
    count -= part;
  }
}

void gzip_file::finish() {
  z_.avail_in = 0;
  deflate_all(Z_FINISH);
  file_.finish();
}

}  // namespace velo::core
