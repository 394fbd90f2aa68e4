// The record lives in thread-local storage and is constant-initialized; `rank` starts at -1.
#include "core/handle/record.hpp"

#include <cstdio>
#include <cstring>
#include <type_traits>

namespace velo::core {
namespace {

thread_local velo_error_info record = {sizeof(velo_error_info), VELO_OK, -1, "", "", "", "", ""};
thread_local std::uint32_t written = 0;

static_assert(std::is_trivially_destructible_v<velo_error_info>);
static_assert(sizeof(velo_error_info) <= 2048);

// Control characters become question marks, since records are shown on terminals and contain texts
// from files and peers.
template <std::size_t capacity>
void copy_line(char (&to)[capacity], const char* source) noexcept {
  copy_text(to, capacity, source);
  for (char* at = to; *at != 0; ++at)
    if (static_cast<unsigned char>(*at) < ' ' || *at == '\x7f') *at = '?';
}

}  // namespace

void write_record(const char* function, const failure& what) noexcept {
  record.code = what.code;
  record.rank = what.rank;
  copy_line(record.function, what.function[0] != 0 ? what.function : function);
  copy_line(record.argument, what.argument);
  copy_line(record.expected, what.expected);
  copy_line(record.got, what.got);
  copy_line(record.cause, what.cause);
  ++written;
}

const velo_error_info& last_record() noexcept {
  return record;
}

std::uint32_t records_written() noexcept {
  return written;
}

const velo_error_info* record_left(velo_status status, std::uint32_t before) noexcept {
  return written != before && record.code == status ? &record : nullptr;
}

std::size_t record_text(const velo_error_info& r, char* buffer, std::size_t capacity) noexcept {
  if (r.code == VELO_OK) {
    if (capacity > 0) copy_text(buffer, capacity, "no error");
    return std::strlen("no error");
  }
  char rank[32] = "";
  if (r.rank >= 0) std::snprintf(rank, sizeof rank, " (rank %d)", r.rank);
  // Each part includes the punctuation that joins it to the previous part.
  const bool facts = r.expected[0] != 0 || r.got[0] != 0;
  const int length =
      std::snprintf(buffer, capacity, "%s%s%s%s%s%s%s%s%s%s", r.function, r.argument[0] ? ": " : "",
                    r.argument, r.expected[0] ? ": expected " : (facts ? ":" : ""), r.expected,
                    r.got[0] ? (r.expected[0] ? ", got " : " got ") : "", r.got,
                    r.cause[0] ? ": " : "", r.cause, rank);
  return length < 0 ? 0 : static_cast<std::size_t>(length);
}

}  // namespace velo::core
