// SPDX-License-Identifier: Apache-2.0
#include "feedline/plugin/loading.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/guarded.h"
#include "base/plugin_call.h"
#include "decode/plugin/plugin_images.h"
#include "feedline/plugin/plugin.h"
#include "format/plugin/plugin_formats.h"
#include "format/registry/format_names.h"
#include "storage/plugin/plugin_storage.h"
#include "transform/plugin/plugin_operations.h"

namespace feedline {
namespace {

constexpr const char* kFeedlineVersion = FEEDLINE_VERSION;  // defined by CMakeLists.txt

using Register = int (*)(const feedline_registry_v1*, feedline_message*);

// Never destroyed, as plugins stay loaded.
struct Loaded {
  std::mutex mutex;  // also held while a plugin registers, so that names are checked and added by one thread
  std::vector<PluginContents> plugins;  // guarded by mutex
};
Loaded& loaded() {
  static Loaded* const all = new Loaded;
  return *all;
}

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
  const char* word;  // "storage"
  Result<void> (*check)(const Kind& part);
  void (*add)(const Kind& part);
  std::vector<Kind> list = {};

  Result<void> take(const Kind* part) {
    if (part == nullptr) return config_error(std::string("a ") + word + " is NULL");
    if (part->size != sizeof(Kind))
      return config_error(std::string("the struct of a ") + word + " has " + std::to_string(part->size) +
                          " bytes, but this Feedline's version of the interface has " + std::to_string(sizeof(Kind)) +
                          ": compile the plugin with the headers of Feedline " + kFeedlineVersion);
    FEEDLINE_CHECK_OK(check(*part));
    for (const Kind& other : list)
      if (std::string_view(name_of(other)) == name_of(*part))
        return config_error(std::string("it registers the ") + word + " '" + name_of(*part) + "' twice");
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

Result<void> check_format(const feedline_format_v1& format) {
  FEEDLINE_CHECK_OK(format::check_plugin(format));
  if (format::is_format(format.name))
    return config_error("the format '" + std::string(format.name) + "' exists already; choose another name");
  return {};
}

// Receives a plugin's registrations.
struct Registration {
  Parts<feedline_storage_v1> storages{"storage", storage::check_plugin, storage::add_plugin};
  Parts<feedline_format_v1> formats{"format", check_format, format::add_plugin};
  Parts<feedline_codec_v1> codecs{"codec", decode::check_plugin, decode::add_plugin};
  Parts<feedline_operation_v1> operations{"operation", transform::check_plugin, transform::add_plugin};
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

std::unexpected<Error> refused(const std::string& path, const std::string& why) {
  return config_error("load_plugin: '" + path + "': " + why);
}

Result<std::string> real_path(const std::string& path) {
  char resolved[PATH_MAX];
  if (path.empty() || ::realpath(path.c_str(), resolved) == nullptr)
    return refused(path, "the file does not exist; give the path of a shared library");
  return std::string(resolved);
}

Result<Register> find_register(void* library, const std::string& path) {
  if (void* const found = ::dlsym(library, "feedline_register_v1")) return reinterpret_cast<Register>(found);
  constexpr int kLatest = 9;
  for (int version = FEEDLINE_PLUGIN_VERSION + 1; version <= kLatest; ++version)
    if (::dlsym(library, ("feedline_register_v" + std::to_string(version)).c_str()) != nullptr)
      return refused(path, "the plugin has version " + std::to_string(version) +
                               " of the plugin interface, but Feedline " + kFeedlineVersion + " has version " +
                               std::to_string(FEEDLINE_PLUGIN_VERSION) +
                               ": update Feedline, or compile the plugin with the headers of this version");
  return refused(path,
                 "it is not a plugin: the library does not export feedline_register_v1() "
                 "(feedline/plugin/plugin.h); in C++, declare it extern \"C\" and with default visibility");
}

Result<PluginContents> register_library(void* library, const std::string& path) {
  FEEDLINE_TRY(const Register register_plugin, find_register(library, path));
  Registration registration;
  const feedline_registry_v1 registry = registration.registry();
  const auto registered = base::call_plugin(
      "feedline_register_v1()", [&](feedline_message* message) { return register_plugin(&registry, message); });
  if (registration.error) return refused(path, registration.error->what);
  if (!registered) return refused(path, registered.error().what);
  PluginContents contents{.path = path};
  contents.storages = registration.storages.add_all();
  contents.formats = registration.formats.add_all();
  contents.codecs = registration.codecs.add_all();
  contents.operations = registration.operations.add_all();
  return contents;
}

}  // namespace

Result<PluginContents> load_plugin(const std::string& given) {
  return base::guarded([&]() -> Result<PluginContents> {
    FEEDLINE_TRY(const std::string path, real_path(given));
    const std::lock_guard lock(loaded().mutex);
    for (const PluginContents& plugin : loaded().plugins)
      if (plugin.path == path) return plugin;
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* const why = ::dlerror();
      return refused(path, std::string("the library cannot be loaded: ") + (why == nullptr ? "unknown reason" : why));
    }
    auto contents = register_library(library, path);
    if (!contents) {
      ::dlclose(library);
      return contents;
    }
    loaded().plugins.push_back(*contents);
    return contents;
  });
}

std::vector<PluginContents> loaded_plugins() {
  const std::lock_guard lock(loaded().mutex);
  return loaded().plugins;
}

}  // namespace feedline
