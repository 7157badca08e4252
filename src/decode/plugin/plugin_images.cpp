// SPDX-License-Identifier: Apache-2.0
#include "decode/plugin/plugin_images.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/plugin_call.h"
#include "decode/codec.h"
#include "decode/color.h"
#include "decode/image_formats.h"
#include "decode/plugin/plugin_table.h"
#include "feedline/foreign_images.h"

namespace feedline::decode {
namespace {

using Bytes = std::vector<std::byte>;

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
    opened.image = std::make_shared<Bytes>(bytes.begin(), bytes.end());
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

 private:
  template <typename Call>
  Result<void> call(Call&& call) const {
    auto done = base::call_plugin(what_, std::forward<Call>(call));
    if (!done) done.error().where.stage = "decode";
    return done;
  }
  Result<void> decode_all(const Opened& opened, std::uint8_t* out, std::size_t stride) const {
    return call([&](feedline_message* message) {
      return codec_.decode(codec_.context, plugin_bytes(*static_cast<const Bytes*>(opened.image.get())), out, stride,
                           message);
    });
  }

  const feedline_codec_v1 codec_;
  const std::string what_;
};

std::string_view magic_of(const feedline_codec_v1& codec) {
  return {static_cast<const char*>(codec.magic.data), codec.magic.size};
}

std::vector<std::string_view> extensions_of(const feedline_codec_v1& codec) {
  return {codec.extensions, codec.extensions + codec.extension_count};
}

// kConfig: the codec has the name, an extension or the magic bytes of the other one.
Result<void> check_against(const feedline_codec_v1& codec, const ImageFormat& other, const std::string& what) {
  if (other.name == codec.name) return config_error(what + "exists already; choose another name");
  const std::string name = "of the codec '" + std::string(other.name) + "'";
  for (const std::string_view extension : extensions_of(codec))
    if (std::ranges::find(other.extensions, extension) != std::end(other.extensions))
      return config_error(what + "has the extension '" + std::string(extension) + "' " + name);
  const std::string_view magic = magic_of(codec);
  for (const ImageSignature& signature : other.signatures)
    if (!signature.bytes.empty() && signature.offset == 0 &&
        (signature.bytes.starts_with(magic) || magic.starts_with(signature.bytes)))
      return config_error(what + "has the magic bytes " + name);
  return {};
}

}  // namespace

Result<void> check_plugin(const feedline_codec_v1& codec) {
  if (codec.name == nullptr || *codec.name == '\0') return config_error("a codec has no name");
  const std::string what = "the codec '" + std::string(codec.name) + "' ";
  if (codec.read_header == nullptr || codec.decode == nullptr)
    return config_error(what + "has no read_header() or no decode()");
  if (codec.magic.data == nullptr || codec.magic.size < 2 || codec.magic.size > kImageHead)
    return config_error(what + "has " + std::to_string(codec.magic.size) + " magic bytes; between 2 and " +
                        std::to_string(kImageHead) + " are required");
  if (codec.extension_count > std::size(ImageFormat{}.extensions))
    return config_error(what + "has " + std::to_string(codec.extension_count) + " extensions; the limit is " +
                        std::to_string(std::size(ImageFormat{}.extensions)));
  if (plugin_image_formats().size() == kMostPluginFormats)
    return config_error(what + "is one too many: the limit is " + std::to_string(kMostPluginFormats));
  for (const ImageFormat& other : plugin_image_formats()) FEEDLINE_CHECK_OK(check_against(codec, other, what));
  for (const ImageFormat& other : image_formats())
    if (other.codec != nullptr) FEEDLINE_CHECK_OK(check_against(codec, other, what));
  return {};
}

void add_plugin(const feedline_codec_v1& codec) {
  ImageFormat format{.name = codec.name, .title = codec.name};
  const auto extensions = extensions_of(codec);
  std::ranges::copy(extensions, std::begin(format.extensions));
  format.image_folder = extensions.size();
  format.signatures[0] = {magic_of(codec), extensions.empty() ? std::string_view() : extensions.front()};
  // never destroyed: threads may decode until the process ends
  add_plugin_image_format(format, *new PluginImages(codec));
}

}  // namespace feedline::decode
