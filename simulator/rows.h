// A row of a row-major block in memory.
#pragma once
#include <cstddef>

namespace attest {

/// Row `row` of a block `width` wide.
template <class T>
T* row_of(T* block, int row, int width) {
  return block + std::ptrdiff_t{row} * width;
}

}  // namespace attest
