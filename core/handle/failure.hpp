// Moved to core/failure.hpp.
#pragma once

#include "core/failure.hpp"
