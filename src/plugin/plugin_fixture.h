// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: plugins in the test program, whose functions tests replace. Only for one thread:
// `offered` is global, and must exist until register_plugin() returns.

#include <cstring>
#include <string>
#include <vector>

#include "plugin/registration.h"

namespace feedline::plugin {

// The parts that feedline_register_v1() adds, and its result.
struct Offered {
  std::vector<feedline_storage_v1> storages = {};
  std::vector<feedline_format_v1> formats = {};
  std::vector<feedline_codec_v1> codecs = {};
  std::vector<feedline_operation_v1> operations = {};
  int code = FEEDLINE_OK;
  bool throws = false;
};

inline const Offered* offered = nullptr;  // by the running test

// Ignores the codes of the add_ functions, which must not matter.
inline int register_offered(const feedline_registry_v1* registry, feedline_message* message) {
  for (const auto& one : offered->storages) registry->add_storage(registry->host, &one, message);
  for (const auto& one : offered->formats) registry->add_format(registry->host, &one, message);
  for (const auto& one : offered->codecs) registry->add_codec(registry->host, &one, message);
  for (const auto& one : offered->operations) registry->add_operation(registry->host, &one, message);
  if (offered->throws) throw 7;
  return offered->code;
}

inline Result<PluginContents> registered(const Offered& parts, const ReservedNames& reserved = {}) {
  offered = &parts;
  return register_plugin("test", register_offered, reserved);
}

// Returns the error's text, or "" if the plugin was registered.
inline std::string refusal(const Offered& parts, const ReservedNames& reserved = {}) {
  const auto contents = registered(parts, reserved);
  return contents ? std::string() : contents.error().what;
}

inline int failed(feedline_message* message, int code, const char* text) {
  std::strncpy(message->text, text, sizeof message->text);
  return code;
}

// ---- valid parts, with names that no other test may register ----

inline feedline_storage_v1 storage_part(const char* scheme) {
  return {
      sizeof(feedline_storage_v1),
      scheme,
      "1",
      nullptr,
      [](void*, const char*, feedline_object* object, feedline_message*) {
        *object = {10, 1, 0};
        return int{FEEDLINE_OK};
      },
      [](void*, const char*, std::uint64_t offset, void* out, std::size_t bytes, std::size_t* got, feedline_message*) {
        *got = std::min<std::size_t>(bytes, 10 - std::min<std::uint64_t>(offset, 10));
        std::memcpy(out, &"0123456789"[10 - (10 - std::min<std::uint64_t>(offset, 10))], *got);
        return int{FEEDLINE_OK};
      },
      nullptr};
}

inline const feedline_field kByteField[] = {{"data", "bytes"}, {"label", "value"}};

// A sample is a byte of the file, and its label is that byte.
inline feedline_format_v1 format_part(const char* name) {
  return {sizeof(feedline_format_v1),
          name,
          "1",
          nullptr,
          nullptr,
          0,
          kByteField,
          2,
          [](void*, const feedline_file* file, void** shard, std::uint64_t* samples, feedline_message*) {
            *shard = nullptr;
            *samples = file->bytes;
            return int{FEEDLINE_OK};
          },
          [](void*, void*) {},
          [](void*, void*, std::uint64_t sample, std::uint64_t* offset, std::uint64_t* bytes, feedline_message*) {
            *offset = sample;
            *bytes = 1;
            return int{FEEDLINE_OK};
          },
          [](void*, void*, std::uint64_t, feedline_bytes stored, const feedline_memory*, feedline_bytes* values,
             feedline_message*) {
            static thread_local std::int64_t label;
            label = *static_cast<const unsigned char*>(stored.data);
            values[0] = stored;
            values[1] = {&label, sizeof label};
            return int{FEEDLINE_OK};
          }};
}

// Images of 2 x 2 black pixels.
inline feedline_codec_v1 codec_part(const char* name, const char* magic) {
  return {sizeof(feedline_codec_v1),
          name,
          "1",
          nullptr,
          nullptr,
          0,
          {magic, std::strlen(magic)},
          [](void*, feedline_bytes, int* width, int* height, feedline_message*) {
            *width = *height = 2;
            return int{FEEDLINE_OK};
          },
          [](void*, feedline_bytes, std::uint8_t* out, std::size_t stride, feedline_message*) {
            std::memset(out, 0, 6);
            std::memset(out + stride, 0, 6);
            return int{FEEDLINE_OK};
          }};
}

// Does nothing.
inline feedline_operation_v1 operation_part(const char* name) {
  return {sizeof(feedline_operation_v1),
          name,
          "1",
          nullptr,
          nullptr,
          0,
          0,
          nullptr,
          nullptr,
          [](void*, const double*, std::uint64_t, const feedline_pixels*, const feedline_pixels*, feedline_message*) {
            return int{FEEDLINE_OK};
          }};
}

}  // namespace feedline::plugin
