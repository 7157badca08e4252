// SPDX-License-Identifier: Apache-2.0
#include "format/pixels/pixel_entry.h"

#include <utility>

#include "format/pixels/pixel_file.h"
#include "format/pixels/pixel_format.h"

namespace feedline::format {
namespace {

Result<bool> is_pixels(const std::string& source, const storage::Storage& storage) {
  return is_pixel_file(storage, source);
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
