#pragma once

#include <cstddef>
#include <span>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/views.h"

namespace headrace {

/// Reads or writes a piece of a state in place; an error ends the visit.
using PieceVisitor = FunctionRef<Status(std::span<std::byte> piece)>;

/// Hands out the numbers of all rows, without what lies between rows: in one piece where nothing does.
Status visit_rows(MatrixView<float> rows, PieceVisitor visitor);

/// The numbers of `from`, of the same shape, to `to`.
void copy_rows(MatrixView<const float> from, MatrixView<float> to);

}  // namespace headrace
