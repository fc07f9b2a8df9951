#pragma once

// Every header that algorithms and formats include from the system, from base, or that holds ordinary functions: an
// instruction set includes them here, before its target region begins.
#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "base/ensure.h"
#include "base/views.h"
#include "formats/format.h"
#include "formats/nibble_table.h"
#include "kernels/isa/region.h"
#include "kernels/isa/tables.h"
#include "kernels/isa/vector.h"
#include "kernels/kernels.h"
