// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/border_source.h"

#include <algorithm>

namespace feedline::transform {
namespace {

int modulo(int i, int period) {
  const int rest = i % period;
  return rest < 0 ? rest + period : rest;
}

}  // namespace

int border_source(int i, int size, PaddingMode mode) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case PaddingMode::kConstant:
      return -1;
    case PaddingMode::kEdge:
      return std::clamp(i, 0, size - 1);
    case PaddingMode::kReflect: {
      if (size == 1) return 0;
      const int point = modulo(i, 2 * (size - 1));
      return point < size ? point : 2 * (size - 1) - point;
    }
    case PaddingMode::kSymmetric: {
      const int point = modulo(i, 2 * size);
      return point < size ? point : 2 * size - 1 - point;
    }
  }
  return -1;
}

}  // namespace feedline::transform
