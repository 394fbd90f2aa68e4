// The facts about a machine that detection reads, as a struct so that a test can describe another
// machine; and the permission that an ISA may also need from Linux.
#pragma once

#include "core/host/cpu.hpp"

namespace velo::core {

struct machine {
  unsigned one_c, seven_a, seven_b, seven_c, seven_d, seven_one_a;
  std::uint64_t saved;  // XCR0: the register files the system saves on a switch

  bool saves(std::uint64_t files) const { return (saved & files) == files; }
};

machine this_machine();
isa highest_isa(const machine& m);  // reads nothing else, asks for nothing

// Whether this process may use the registers of AMX. The first call asks Linux, which grants them
// to the whole process permanently and then requires larger signal stacks from every thread, so
// call it only before a product. The answer is cached.
bool amx_permitted() noexcept;

// The same for any ISA that the machine has.
inline bool permitted(isa which) noexcept {
  return which != isa::amx || amx_permitted();
}

}  // namespace velo::core
