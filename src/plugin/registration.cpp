// SPDX-License-Identifier: Apache-2.0
#include "plugin/registration.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/plugin_call.h"
#include "decode/plugin/plugin_images.h"
#include "format/plugin/plugin_formats.h"
#include "format/registry/format_names.h"
#include "storage/plugin/plugin_storage.h"
#include "transform/plugin/plugin_operations.h"

namespace feedline::plugin {
namespace {

constexpr const char* kFeedlineVersion = FEEDLINE_VERSION;  // defined by CMakeLists.txt

void write(feedline_message* message, const std::string& text) {
  std::snprintf(message->text, sizeof message->text, "%s", text.c_str());
}

const char* name_of(const feedline_storage_v1& one) { return one.scheme; }
template <typename Kind>
const char* name_of(const Kind& one) {
  return one.name;
}

// A kind of part that plugins register. Parts are added after the plugin has registered all of them without an error.
template <typename Kind>
struct Parts {
  const char* word;  // "a storage"
  Result<void> (*check)(const Kind& part, std::span<const Kind> others);
  void (*add)(const Kind& part);
  std::vector<Kind> list = {};

  Result<void> take(const Kind* part) {
    if (part == nullptr) return config_error(std::string(word) + " is NULL");
    if (part->size != sizeof(Kind))
      return config_error("the struct of " + std::string(word) + " has the size " + std::to_string(part->size) +
                          ", but version 1 of the interface has " + std::to_string(sizeof(Kind)) +
                          " bytes: compile the plugin with the headers of Feedline " + kFeedlineVersion);
    for (const Kind& other : list)
      if (name_of(*part) != nullptr && std::string_view(name_of(other)) == name_of(*part))
        return config_error("it registers " + std::string(word) + " twice: '" + name_of(*part) + "'");
    FEEDLINE_CHECK_OK(check(*part, list));
    list.push_back(*part);
    return {};
  }
  std::vector<std::string> add_all() const {
    std::vector<std::string> names;
    for (const Kind& part : list) {
      add(part);
      names.emplace_back(name_of(part));
    }
    return names;
  }
};

Result<void> check_storage(const feedline_storage_v1& storage, std::span<const feedline_storage_v1>) {
  return storage::check_plugin(storage);
}

Result<void> check_format(const feedline_format_v1& format, std::span<const feedline_format_v1> others) {
  FEEDLINE_CHECK_OK(format::check_plugin(format, others));
  const std::string what = "the format '" + std::string(format.name) + "'";
  if (format::is_format(format.name)) return config_error(what + " exists already; choose another name");
  for (const char* const extension : std::span(format.extensions, format.extension_count))
    if (format::is_extension_of_engine(extension))
      return config_error(what + " has the extension '" + extension + "', which Feedline reads; choose another one");
  return {};
}

Result<void> check_operation(const feedline_operation_v1& operation, std::span<const feedline_operation_v1>) {
  return transform::check_plugin(operation);
}

// Receives a plugin's registrations.
struct Registration {
  Parts<feedline_storage_v1> storages{"a storage", check_storage, storage::add_plugin};
  Parts<feedline_format_v1> formats{"a format", check_format, format::add_plugin};
  Parts<feedline_codec_v1> codecs{"a codec", decode::check_plugin, decode::add_plugin};
  Parts<feedline_operation_v1> operations{"an operation", check_operation, transform::add_plugin};
  std::optional<Error> error = {};  // the first one, which the plugin may have ignored

  template <auto kMember, typename Kind>
  static int take(void* host, const Kind* part, feedline_message* message) noexcept {
    auto& self = *static_cast<Registration*>(host);
    auto taken = base::guarded([&] { return (self.*kMember).take(part); });
    if (taken) return FEEDLINE_OK;
    write(message, taken.error().what);
    if (!self.error) self.error = std::move(taken).error();
    return FEEDLINE_BAD_ARGUMENT;
  }

  feedline_registry_v1 registry() {
    return {sizeof(feedline_registry_v1),
            kFeedlineVersion,
            this,
            take<&Registration::storages, feedline_storage_v1>,
            take<&Registration::formats, feedline_format_v1>,
            take<&Registration::codecs, feedline_codec_v1>,
            take<&Registration::operations, feedline_operation_v1>};
  }
};

// kConfig: the plugin registers a reserved name.
template <typename Kind>
Result<void> check_reserved(const Parts<Kind>& parts, const std::vector<std::string>& reserved) {
  for (const Kind& part : parts.list)
    if (std::ranges::find(reserved, std::string_view(name_of(part))) != reserved.end())
      return config_error("it registers " + std::string(parts.word) + " '" + name_of(part) +
                          "', which a Python function has registered; choose another name");
  return {};
}

}  // namespace

const char* engine_version() { return kFeedlineVersion; }

Result<PluginContents> register_plugin(const std::string& path, Register call, const ReservedNames& reserved) {
  Registration registration;
  const feedline_registry_v1 registry = registration.registry();
  const auto registered =
      base::call_plugin("feedline_register_v1()", [&](feedline_message* message) { return call(&registry, message); });
  if (registration.error) return std::unexpected(std::move(*registration.error));
  if (!registered) return config_error(registered.error().what);
  FEEDLINE_CHECK_OK(check_reserved(registration.formats, reserved.formats));
  FEEDLINE_CHECK_OK(check_reserved(registration.operations, reserved.operations));
  PluginContents contents{.path = path};
  contents.storages = registration.storages.add_all();
  contents.formats = registration.formats.add_all();
  contents.codecs = registration.codecs.add_all();
  contents.operations = registration.operations.add_all();
  return contents;
}

}  // namespace feedline::plugin
