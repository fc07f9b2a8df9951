#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/dispatch.h"

namespace headrace::test {

/// A test that runs once for each table that this processor has.
class EveryTable : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

inline std::string table_name(const testing::TestParamInfo<const Kernels*>& table) {
  return table.param->name;
}

}  // namespace headrace::test
