// SPDX-License-Identifier: Apache-2.0
#include "decode/plugin/plugin_table.h"

#include <array>
#include <atomic>

#include "base/check.h"

namespace feedline::decode {
namespace {

struct PluginTable {
  std::array<ImageFormat, kMostPluginFormats> formats;
  std::array<const ForeignImages*, kMostPluginFormats> images{};
  std::atomic<std::size_t> count{0};  // released after a row was written
};
constinit PluginTable plugin_table;

}  // namespace

std::span<const ImageFormat> plugin_image_formats() {
  return std::span(plugin_table.formats).first(plugin_table.count.load(std::memory_order_acquire));
}

const ForeignImages* plugin_images_of(const ImageFormat& format) {
  for (const ImageFormat& one : plugin_image_formats())
    if (&one == &format) return plugin_table.images[static_cast<std::size_t>(&one - plugin_table.formats.data())];
  return nullptr;
}

void add_plugin_image_format(const ImageFormat& format, const ForeignImages& images) {
  const std::size_t count = plugin_table.count.load(std::memory_order_relaxed);
  FEEDLINE_CHECK(count < kMostPluginFormats);
  plugin_table.formats[count] = format;
  plugin_table.images[count] = &images;
  plugin_table.count.store(count + 1, std::memory_order_release);
}

}  // namespace feedline::decode
