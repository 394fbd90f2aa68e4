// The functions that all pictures share: joining text, escaping names, byte counts, colors.
#pragma once

#include <cstdint>
#include <string>

#include "core/text/print.hpp"

namespace velo::core::svg {

inline constexpr const char* fills[] = {"#4e79a7", "#f28e2b", "#e15759", "#76b7b2",
                                        "#59a14f", "#edc948", "#b07aa1", "#ff9da7",
                                        "#9c755f", "#86bcb6", "#d37295", "#a0cbe8"};

// Names come from files and callers. Reserved characters of XML are escaped, forbidden ones become
// a point, and long names are cut.
std::string escaped(const std::string& name);

std::string bytes(std::int64_t count);  // "512 B", "12.5 MiB"

// The color of number `index`: first those of `fills`, then computed ones; the first 1024 differ.
std::string fill(std::uint64_t index);

}  // namespace velo::core::svg
