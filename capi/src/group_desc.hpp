// The arguments of a new group: a checked description, and the transport that it asks for.
#pragma once

#include <memory>

#include "comm/group/group.hpp"
#include "core/context.hpp"
#include "velo/group.h"

namespace velo::capi {

velo_group_desc read_group_desc(const velo_group_desc* given);  // NULL: the defaults
comm::group_settings settings_of(const velo_group_desc& desc);

// Bytes of a staging slot in memory shared by `ranks` ranks.
std::size_t slot_of(const velo_group_desc& desc, int ranks);

// Connects to the other ranks. Throws as velo_group_create does.
std::unique_ptr<comm::transport> transport_of(const core::context& owner,
                                              const velo_group_desc& desc);

}  // namespace velo::capi
