// SPDX-License-Identifier: Apache-2.0
// Any bytes as a NIfTI header: the layout of an array whose size does not overflow, or an error.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "format/volumes/nifti.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto copy = std::make_unique_for_overwrite<std::byte[]>(size);
  std::ranges::copy(std::as_bytes(std::span(data, size)), copy.get());
  const auto header = feedline::format::read_nifti_header({copy.get(), size});
  if (!header) return 0;
  FEEDLINE_CHECK(header->layout.stored.bytes() > 0);
  FEEDLINE_CHECK(std::ranges::all_of(header->affine, [](double number) { return std::isfinite(number); }));
  return 0;
}
