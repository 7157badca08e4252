// SPDX-License-Identifier: Apache-2.0
// Any bytes as an .npy file: an array inside them, or an error. No read beyond their end.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "decode/npy/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // an allocation of exactly this size, so that the address sanitizer detects reads beyond it
  const auto copy = std::make_unique_for_overwrite<std::byte[]>(size);
  std::ranges::copy(std::as_bytes(std::span(data, size)), copy.get());
  const std::span<const std::byte> file(copy.get(), size);
  const auto array = feedline::decode::read_npy(file);
  if (!array) return 0;
  FEEDLINE_CHECK(array->data.size() == array->spec.bytes());
  FEEDLINE_CHECK(array->data.data() >= file.data() && array->data.data() + array->data.size() <= file.data() + size);
  FEEDLINE_CHECK(std::ranges::all_of(array->spec.shape, [](std::int64_t extent) { return extent >= 0; }));
  return 0;
}
