// The transport of ranks that are processes of one host: shared memory that a rendezvous handed
// out.
#pragma once

#include <memory>

#include "comm/transport/shm/rendezvous.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

class outside;

// Meets the other ranks; throws as rendezvous does. beside: what its ranks look after while they
// wait.
std::unique_ptr<transport> make_shm(const meeting_place& at, outside* beside = nullptr);

// Whether it can be: throws IO with what is missing.
void require_shm();

}  // namespace velo::comm
