// SPDX-License-Identifier: Apache-2.0
#include "format/pixels/pixel_entry.h"

#include <utility>

#include "format/pixels/pixel_format.h"
#include "format/pixels/pixel_layout.h"

namespace feedline::format {
namespace {

// By its first bytes. What cannot be read is no pixel file: others may know what it is.
Result<bool> is_pixels(const std::string& source, const storage::Storage& storage) {
  const auto reader = storage.open(source, storage::Access::kRead);
  if (!reader) return false;
  std::uint64_t magic = 0;
  const auto read = (*reader)->read_at(0, std::as_writable_bytes(std::span(&magic, 1)));
  return read && *read == sizeof magic && magic == kPixelMagic;
}

Result<std::shared_ptr<const Format>> open_pixels(const std::string& source, const OpenOptions& options) {
  return PixelFormat::open(source, options);
}

}  // namespace

const FormatEntry& pixel_entry() {
  static constexpr FormatEntry kEntry{"pixels", is_pixels, open_pixels, PixelFormat::inspect};
  return kEntry;
}

}  // namespace feedline::format
