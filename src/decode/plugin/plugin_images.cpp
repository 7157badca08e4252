// SPDX-License-Identifier: Apache-2.0
#include "decode/plugin/plugin_images.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/plugin_call.h"
#include "base/plugin_checks.h"
#include "decode/codec.h"
#include "decode/color.h"
#include "decode/image_formats.h"
#include "decode/plugin/plugin_table.h"
#include "feedline/foreign_images.h"

namespace feedline::decode {
namespace {

using OwnedBytes = std::vector<std::byte>;

feedline_bytes plugin_bytes(std::span<const std::byte> bytes) { return {bytes.data(), bytes.size()}; }

class PluginImages final : public ForeignImages {
 public:
  explicit PluginImages(const feedline_codec_v1& codec)
      : codec_(codec), what_("the plugin's codec '" + std::string(codec.name) + "'") {}

  // Copies the bytes, as decode() may be called after they are gone.
  Result<Opened> open(std::span<const std::byte> bytes, bool /*applies_exif*/) const override {
    Opened opened;
    opened.kind = codec_.name;
    FEEDLINE_CHECK_OK(call([&](feedline_message* message) {
      return codec_.read_header(codec_.context, plugin_bytes(bytes), &opened.width, &opened.height, message);
    }));
    opened.image = std::make_shared<OwnedBytes>(bytes.begin(), bytes.end());
    return opened;
  }

  Result<void> decode(const Opened& opened, const Box& region, ColorMode mode, std::uint8_t* out,
                      std::size_t stride) const override {
    const bool is_whole = region.width == opened.width && region.height == opened.height;
    if (is_whole && mode == ColorMode::kRgb) return decode_all(opened, out, stride);
    memory::PixelBuffer whole;
    FEEDLINE_CHECK_OK(whole.resize(opened.width, opened.height, 3));
    FEEDLINE_CHECK_OK(decode_all(opened, whole.row(0), whole.stride()));
    for (int y = 0; y < region.height; ++y) {
      const std::uint8_t* const from = whole.row(region.top + y) + static_cast<std::ptrdiff_t>(region.left) * 3;
      std::uint8_t* const to = out + static_cast<std::size_t>(y) * stride;
      if (mode == ColorMode::kRgb)
        std::memcpy(to, from, static_cast<std::size_t>(region.width) * 3);
      else
        rgb_to_l(from, region.width, to);
    }
    return {};
  }

  const feedline_codec_v1& codec() const { return codec_; }

 private:
  template <typename Call>
  Result<void> call(Call&& call) const {
    auto done = base::call_plugin(what_, std::forward<Call>(call));
    if (!done) done.error().where.stage = "decode";
    return done;
  }
  Result<void> decode_all(const Opened& opened, std::uint8_t* out, std::size_t stride) const {
    return call([&](feedline_message* message) {
      return codec_.decode(codec_.context, plugin_bytes(*static_cast<const OwnedBytes*>(opened.image.get())), out,
                           stride, message);
    });
  }

  const feedline_codec_v1 codec_;
  const std::string what_;
};

std::string_view magic_of(const feedline_codec_v1& codec) {
  return {static_cast<const char*>(codec.magic.data), codec.magic.size};
}

// Returns the codec's row of the table of image formats.
ImageFormat row_of(const feedline_codec_v1& codec) {
  ImageFormat row{.name = codec.name, .title = codec.name};
  std::copy_n(codec.extensions, codec.extension_count, std::begin(row.extensions));
  row.image_folder = codec.extension_count;
  row.signatures[0] = {magic_of(codec), row.extensions[0]};
  return row;
}

// kConfig: the codec has the name, an extension or the magic bytes of the other one.
Result<void> check_against(const feedline_codec_v1& codec, const ImageFormat& other, const std::string& what) {
  if (other.name == codec.name) return config_error(what + " exists already; choose another name");
  const std::string name = "of the codec '" + std::string(other.name) + "'";
  for (const std::string_view extension : std::span(codec.extensions, codec.extension_count))
    if (std::ranges::find(other.extensions, extension) != std::end(other.extensions))
      return config_error(what + " has the extension '" + std::string(extension) + "' " + name);
  const std::string_view magic = magic_of(codec);
  for (const ImageSignature& signature : other.signatures)
    if (!signature.bytes.empty() && signature.offset == 0 &&
        (signature.bytes.starts_with(magic) || magic.starts_with(signature.bytes)))
      return config_error(what + " has the magic bytes " + name);
  return {};
}

}  // namespace

Result<void> check_plugin(const feedline_codec_v1& codec, std::span<const feedline_codec_v1> others) {
  FEEDLINE_CHECK_OK(base::check_plugin_name("a codec", "name", codec.name, true));
  const std::string what = "the codec '" + std::string(codec.name) + "'";
  if (codec.read_header == nullptr || codec.decode == nullptr)
    return config_error(what + " lacks one of read_header() and decode()");
  if (codec.magic.data == nullptr || codec.magic.size < 2 || codec.magic.size > kImageHead)
    return config_error(what + " has " + std::to_string(codec.magic.size) + " magic bytes; between 2 and " +
                        std::to_string(kImageHead) + " are required");
  constexpr std::size_t kMostExtensions = std::size(ImageFormat{}.extensions);
  if (codec.extension_count > kMostExtensions)
    return config_error(what + " has " + std::to_string(codec.extension_count) + " extensions; the limit is " +
                        std::to_string(kMostExtensions));
  FEEDLINE_CHECK_OK(base::check_plugin_extensions(what, codec.extensions, codec.extension_count));
  if (plugin_image_formats().size() + others.size() >= kMostPluginFormats)
    return config_error(what + " is one too many: the limit is " + std::to_string(kMostPluginFormats) +
                        " codecs of plugins");
  for (const feedline_codec_v1& other : others) FEEDLINE_CHECK_OK(check_against(codec, row_of(other), what));
  for (const ImageFormat& other : plugin_image_formats()) FEEDLINE_CHECK_OK(check_against(codec, other, what));
  for (const ImageFormat& other : image_formats())
    if (other.codec != nullptr) FEEDLINE_CHECK_OK(check_against(codec, other, what));
  return {};
}

void add_plugin(const feedline_codec_v1& codec) {
  // never destroyed: threads may decode until the process ends
  add_plugin_image_format(row_of(codec), *new PluginImages(codec));
}

std::string plugin_codecs() {
  std::string text;
  for (const ImageFormat& format : plugin_image_formats()) {
    const auto& codec = static_cast<const PluginImages*>(plugin_images_of(format))->codec();
    text.append(text.empty() ? "" : ", ").append(format.name);
    if (codec.version != nullptr) text.append(" ").append(codec.version);
  }
  return text;
}

std::string plugin_image_extensions() {
  std::string text;
  for (const ImageFormat& format : plugin_image_formats())
    for (const std::string_view extension : std::span(format.extensions).first(format.image_folder))
      text.append(text.empty() ? "" : ", ").append(extension);
  return text;
}

}  // namespace feedline::decode
