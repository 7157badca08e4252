// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/npy/npy.h"
#include "feedline/error.h"
#include "memory/record.h"

namespace feedline::pipeline {

// Returns a stored array, which is in memory or in a .npy file. kData: as for decode::read_npy().
inline Result<decode::NpyArray> read_array(const memory::Record::Field& stored) {
  if (stored.array) return decode::NpyArray{*stored.array, stored.bytes};
  return decode::read_npy(stored.bytes);
}

}  // namespace feedline::pipeline
